//! Futures that wait for the pool itself: for a permit, a slot of a group, or quiet.
//!
//! The threads that end such a wait are in the middle of a change that others rely on, and a waker is user code, which may take long. So they
//! hand it to the keeper. There is a keeper while anything is in flight. Without one, the calling thread is none of the pool's.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};

use crate::runtime::poll_wait::{Driver, Meanwhile};
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::off_trampoline;
use crate::sync::unwind::quietly;

/// What wakes a future that waits for the pool.
pub(super) struct Relay {
    shared: Weak<Shared>,
    waker: Waker,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        match self.shared.upgrade() {
            Some(shared) => shared.wake_later(self),
            None => self.call(),
        }
    }
}

impl Relay {
    /// What the waker polls is polled as if by an executor outside the pool.
    pub(super) fn call(self: Arc<Self>) {
        let _polls = Meanwhile::begin(Driver::Pool, None);
        off_trampoline(|| quietly(move || self.waker.wake_by_ref()));
    }
}

impl Shared {
    fn wake_later(&self, relay: Arc<Relay>) {
        let mut state = self.keeper.state.lock();
        if !state.is_there {
            drop(state);
            return relay.call();
        }
        state.wakers.push(relay);
        drop(state);
        // Race 42: added first.
        self.keeper.recheck();
    }
}

/// Awaits a future which threads of the pool wake.
pub(crate) async fn relayed<F: Future + Unpin>(shared: &Arc<Shared>, mut future: F) -> F::Output {
    let poll = |context: &mut Context<'_>| {
        let relay = Relay { shared: Arc::downgrade(shared), waker: context.waker().clone() };
        Pin::new(&mut future).poll(&mut Context::from_waker(&Waker::from(Arc::new(relay))))
    };
    poll_fn(poll).await
}
