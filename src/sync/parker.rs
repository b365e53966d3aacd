//! Blocks a thread until another one signals it.
//!
//! A [`Parker`] belongs to one waiting thread, and any other thread may signal it. It does not use
//! `std::thread::park`: user code may consume that token. So waits can nest.

use std::sync::Arc;
use std::task::Wake;
use std::time::Instant;

use crate::sync::cpu::current_cpu;
use crate::sync::spin::spin_until;
use crate::sync::waking::Waking;
use crate::sync::{Condvar, Hint, Mutex};

/// Why a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The event that the owner waits for. It replaces a recheck and is never lost.
    Unparked,
    /// The owner evaluates its state again, and may park again.
    Recheck,
    /// The deadline has passed without a signal.
    Expired,
}

/// See the [module's documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Parker {
    pub(super) mailbox: Mutex<SignalBox>,
    pub(super) delivered: Condvar,
    /// Whether there is a signal. Spares a spinning owner the lock.
    is_signalled: Hint,
}

#[derive(Debug, Default)]
pub(super) struct SignalBox {
    pub(super) signal: Option<Signal>,
    /// Whether the owner waits on the condition variable. Otherwise a notification would be a
    /// wasted system call.
    pub(super) waiting: bool,
    /// The CPU on which the owner ran before its last wait.
    cpu: Option<usize>,
    /// Counts the owner as waiting for that CPU, from the signal until it runs.
    waking: Option<Waking>,
    /// Whether the owner's wait has a deadline, which a model may expire.
    #[cfg(elastipool_loom)]
    pub(super) timed: bool,
}

impl Parker {
    /// Blocks until there is a signal and takes it, or returns [`Signal::Expired`] once `deadline`
    /// has passed. What the signalling thread did before is visible to the owner afterwards.
    pub(crate) fn park(&self, deadline: Option<Instant>) -> Signal {
        let mut mailbox = self.mailbox.lock();
        loop {
            if let Some(signal) = self.take(&mut mailbox) {
                return signal;
            }
            mailbox.waiting = true;
            mailbox.cpu = current_cpu();
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

    /// Takes the signal, if there is one. Does not block.
    pub(crate) fn try_park(&self) -> Option<Signal> {
        self.take(&mut self.mailbox.lock())
    }

    fn take(&self, mailbox: &mut SignalBox) -> Option<Signal> {
        self.is_signalled.set(false);
        mailbox.waking = None;
        mailbox.signal.take()
    }

    /// Spins for a moment until there is a signal. Leaves the signal to the next park. Returns
    /// whether there is one.
    pub(crate) fn spin(&self) -> bool {
        spin_until(|| self.is_signalled.get())
    }

    /// Ends the owner's park, or its next one.
    pub(crate) fn unpark(&self) {
        self.deliver(Signal::Unparked);
    }

    /// Makes the owner evaluate its state again, unless it was unparked.
    pub(crate) fn recheck(&self) {
        self.deliver(Signal::Recheck);
    }

    fn deliver(&self, signal: Signal) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.signal != Some(Signal::Unparked) {
            mailbox.signal = Some(signal);
            self.is_signalled.set(true);
        }
        let waiting = mailbox.waiting;
        // Not for a recheck: the owner may have nothing to do.
        if waiting && signal == Signal::Unparked {
            mailbox.waking = mailbox.cpu.map(Waking::begin);
        }
        // Unlock first: otherwise the owner would wake and block on the lock.
        drop(mailbox);
        if waiting {
            Waking::during(|| self.delivered.notify_one());
        }
    }
}

/// As the waker of a future that the owner blocks on.
impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Parker, Signal};
    use crate::sync::cpu::{cpus, current_cpu};
    use crate::sync::spin::tests::gives_way;

    #[test]
    fn an_owner_counts_as_woken_until_it_runs() {
        let parker = Parker::default();
        let is_waking = || parker.mailbox.lock().waking.is_some();
        parker.unpark();
        assert!(!is_waking(), "it does not wait");
        assert_eq!(parker.try_park(), Some(Signal::Unparked));
        parker.mailbox.lock().waiting = true;
        parker.mailbox.lock().cpu = Some(0);
        parker.recheck();
        assert!(!is_waking());
        parker.unpark();
        assert!(is_waking());
        assert_eq!(parker.park(None), Signal::Unparked);
        assert!(!is_waking());
    }

    #[test]
    fn an_owner_that_waits_leaves_its_cpu_behind() {
        let parker = Parker::default();
        let soon = Instant::now() + Duration::from_millis(1);
        assert_eq!(parker.park(Some(soon)), Signal::Expired);
        assert_eq!(parker.mailbox.lock().cpu.is_some(), current_cpu().is_some());
    }

    #[test]
    fn the_spin_of_an_owner_gives_way() {
        let parker = Parker::default();
        // With a single CPU there is no spin.
        let expected = current_cpu().is_some() || cpus() == 1;
        assert_eq!(gives_way(|| assert!(!parker.spin())), expected);
    }
}
