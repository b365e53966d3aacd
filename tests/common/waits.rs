//! Async waits, and executors and wakers for them.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::{CountingWaker, wait_until};

struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A waker that runs something of its user's.
pub(crate) fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Calls(wake)))
}

/// What the future resolves to. It is polled only when it has been woken.
#[track_caller]
pub(crate) fn resolved<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (woken, waker) = CountingWaker::new();
    loop {
        let before = woken.count();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        wait_until("the future is woken", || woken.count() > before);
    }
}

/// A wait that has begun. Its wake has no effect.
#[track_caller]
pub(crate) fn waiting<'a, T>(
    future: impl Future<Output = T> + 'a,
) -> Pin<Box<dyn Future<Output = T> + 'a>> {
    let mut future: Pin<Box<dyn Future<Output = T> + 'a>> = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    future
}

/// An executor that polls inside of the wake.
pub(crate) struct Inline {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    /// How often it was woken, since the last poll began that found no other one.
    wakes: AtomicUsize,
    is_over: AtomicBool,
}

impl Inline {
    pub(crate) fn run(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let future = Mutex::new(Some(Box::pin(future) as _));
        let (wakes, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let inline = Arc::new(Inline { future, wakes, is_over });
        Arc::clone(&inline).wake();
        inline
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        // Polled by another call, perhaps below this one: that polls again.
        let mut seen = self.wakes.fetch_add(1, Ordering::SeqCst) + 1;
        if seen > 1 {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        let mut future = self.future.lock().unwrap();
        while seen > 0 {
            let polled =
                future.as_mut().map(|own| own.as_mut().poll(&mut Context::from_waker(&waker)));
            if polled.is_some_and(|polled| polled.is_ready()) {
                *future = None;
                self.is_over.store(true, Ordering::SeqCst);
            }
            seen = self.wakes.fetch_sub(seen, Ordering::SeqCst) - seen;
        }
    }
}
