//! Blocking one thread until another has a message for it.
//!
//! A [`Parker`] belongs to one waiting thread; any number of others may signal it. It does not use
//! `std::thread::park`, whose token user code may consume, so a wait nests in any other wait.

use std::sync::Arc;
use std::task::Wake;
use std::time::Instant;

use crate::sync::spin::spin_until;
use crate::sync::{Condvar, Hint, Mutex};

/// What a [`Parker`] was told, or that it was told nothing in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The signal that the owner waits for. It outranks a recheck and is never lost.
    Unparked,
    /// "Look again whether you still want to wait": means nothing by itself.
    Recheck,
    /// The deadline has passed.
    Expired,
}

/// See the [module's documentation](self).
#[derive(Debug)]
pub(crate) struct Parker {
    mailbox: Mutex<Mailbox>,
    delivered: Condvar,
    /// Whether there is a signal, for an owner that does not want to take the lock as often as it looks.
    is_signalled: Hint,
}

#[derive(Debug)]
struct Mailbox {
    signal: Option<Signal>,
    /// Whether the owner is blocked on the condition variable: only then is notifying it worth a
    /// system call.
    waiting: bool,
    /// Whether the owner's wait has a deadline, which a model may let pass.
    #[cfg(elastipool_loom)]
    timed: bool,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Parker {
            mailbox: Mutex::new(Mailbox {
                signal: None,
                waiting: false,
                #[cfg(elastipool_loom)]
                timed: false,
            }),
            delivered: Condvar::new(),
            is_signalled: Hint::default(),
        }
    }

    /// Blocks until there is a signal, takes it and returns it; [`Signal::Expired`] once `deadline`
    /// has passed without one. Everything done before the signal was given is visible afterwards.
    pub(crate) fn park(&self, deadline: Option<Instant>) -> Signal {
        let mut mailbox = self.mailbox.lock();
        loop {
            if let Some(signal) = self.take(&mut mailbox) {
                return signal;
            }
            mailbox.waiting = true;
            #[cfg(elastipool_loom)]
            {
                mailbox.timed = deadline.is_some();
            }
            let in_time;
            (mailbox, in_time) = self.delivered.wait(mailbox, deadline);
            mailbox.waiting = false;
            if !in_time {
                return self.take(&mut mailbox).unwrap_or(Signal::Expired);
            }
        }
    }

    /// Takes the signal that is there, if any, without waiting for one.
    pub(crate) fn try_park(&self) -> Option<Signal> {
        self.take(&mut self.mailbox.lock())
    }

    fn take(&self, mailbox: &mut Mailbox) -> Option<Signal> {
        self.is_signalled.set(false);
        mailbox.signal.take()
    }

    /// Waits a moment for a signal. The next park takes it, if there is one.
    pub(crate) fn spin(&self) {
        spin_until(|| self.is_signalled.get());
    }

    /// Wakes the owner from its park, or makes its next park return at once.
    pub(crate) fn unpark(&self) {
        self.deliver(Signal::Unparked);
    }

    /// Makes the owner look again whether it still wants to wait.
    pub(crate) fn recheck(&self) {
        self.deliver(Signal::Recheck);
    }

    /// Lets the owner's deadline pass, if it waits and has one: in a model, time is an event that the
    /// model fires.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire(&self) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.waiting && mailbox.timed && mailbox.signal.is_none() {
            mailbox.signal = Some(Signal::Expired);
            self.delivered.notify_one();
        }
    }

    fn deliver(&self, signal: Signal) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.signal != Some(Signal::Unparked) {
            mailbox.signal = Some(signal);
            self.is_signalled.set(true);
        }
        let waiting = mailbox.waiting;
        // Unlocked first, so that the owner does not wake only to wait for the lock.
        drop(mailbox);
        if waiting {
            self.delivered.notify_one();
        }
    }
}

/// A parker is the waker of a thread that blocks on a future.
impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}
