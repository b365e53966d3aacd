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
use crate::sync::Mutex;
use crate::sync::unwind::quietly;

/// What wakes a future that waits for the pool.
struct Relay {
    shared: Weak<Shared>,
    /// `None` once it has been called. Moved, since to clone it is user code.
    waker: Mutex<Option<Waker>>,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        let Some(waker) = self.waker.lock().take() else { return };
        match self.shared.upgrade() {
            Some(shared) => shared.wake_later(waker),
            None => call(waker),
        }
    }
}

/// Calls a waker. What it polls is polled as if by an executor outside the pool.
pub(super) fn call(waker: Waker) {
    let _polls = Meanwhile::begin(Driver::Pool, None);
    off_trampoline(|| quietly(|| waker.wake()));
}

impl Shared {
    fn wake_later(&self, waker: Waker) {
        let mut state = self.keeper.state.lock();
        if !state.is_there {
            drop(state);
            return call(waker);
        }
        state.wakers.push(waker);
        drop(state);
        // Race 42: added first.
        self.keeper.recheck();
    }
}

/// Awaits a future which threads of the pool wake.
pub(crate) async fn relayed<F: Future + Unpin>(shared: &Arc<Shared>, mut future: F) -> F::Output {
    let poll = |context: &mut Context<'_>| {
        let waker = Mutex::new(Some(context.waker().clone()));
        let relay = Relay { shared: Arc::downgrade(shared), waker };
        Pin::new(&mut future).poll(&mut Context::from_waker(&Waker::from(Arc::new(relay))))
    };
    poll_fn(poll).await
}
