//! Futures that hop to a foreign thread and back: [`Hops`], and the [`deliver_wakes`] that wakes
//! them.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;

use fastrand::Rng;

use crate::oracle::{HANDED_BACK, Ticket};

/// A waker on its way to a foreign thread.
pub(crate) struct DelayedWake {
    waker: Waker,
    /// To be dropped and not to be woken.
    abandon: bool,
    /// Whether a copy may be kept: not of a future that will be abandoned, which would live on in
    /// it.
    copy: bool,
}

/// What a task does beside ending: a future in its first poll.
pub(crate) type Errand = Box<dyn FnOnce(&Ticket) + Send>;

/// A future that is woken some times by a foreign thread before it is ready.
pub(crate) struct Hops<T> {
    ticket: Ticket,
    left: u32,
    abandoned_at: Option<u32>,
    errand: Option<Errand>,
    end: fn(&Ticket) -> T,
    wakes: mpsc::Sender<DelayedWake>,
    polled: AtomicBool,
}

impl<T> Hops<T> {
    pub(crate) fn new(
        ticket: Ticket,
        rng: &mut Rng,
        errand: Option<Errand>,
        end: fn(&Ticket) -> T,
        wakes: &mpsc::Sender<DelayedWake>,
    ) -> Self {
        let left = rng.u32(0..5);
        Hops {
            ticket,
            left,
            abandoned_at: (rng.u8(..) < 16).then(|| rng.u32(0..=left)),
            errand,
            end,
            wakes: wakes.clone(),
            polled: AtomicBool::new(false),
        }
    }
}

impl<T> Future for Hops<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        assert!(!self.polled.swap(true, Ordering::Relaxed), "polled twice at the same time");
        let _running = self.ticket.begin();
        if let Some(errand) = self.errand.take() {
            errand(&self.ticket);
        }
        self.polled.store(false, Ordering::Relaxed);
        if self.left == 0 {
            return Poll::Ready((self.end)(&self.ticket));
        }
        self.ticket.case().waited.set();
        // A thread outside of the pool that runs it waits for its end: that must come.
        let abandon = self.abandoned_at == Some(self.left) && !HANDED_BACK.get();
        if abandon {
            self.ticket.case().excused.set();
        }
        self.left -= 1;
        let waker = context.waker().clone();
        let delayed_wake = DelayedWake { waker, abandon, copy: self.abandoned_at.is_none() };
        self.wakes.send(delayed_wake).expect("the deliverer ends last");
        Poll::Pending
    }
}

/// Wakes what it is sent: at once or late, once or more often, or not at all.
pub(crate) fn deliver_wakes(delayed: &mpsc::Receiver<DelayedWake>, mut rng: Rng) {
    let mut late = Vec::new();
    for DelayedWake { waker, abandon, copy } in delayed {
        if abandon {
            continue;
        }
        match rng.u8(0..8) {
            0 => thread::yield_now(),
            1 => waker.wake_by_ref(),
            2 if copy => late.push(waker.clone()),
            _ => {}
        }
        waker.wake();
    }
    // Long after their futures have ended, and their pool.
    late.into_iter().for_each(Waker::wake);
}
