//! Where a future lies that many may wake or cancel, and one at a time may touch (feature `async`).
//!
//! # The state word
//!
//! | state | meaning | who may change it |
//! |---|---|---|
//! | `IDLE` | waits to be woken | a waker or a canceller, to `SCHEDULED` |
//! | `SCHEDULED` | in the queue, or on its way there, once | the worker that takes it, to `RUNNING` |
//! | `RUNNING` | somebody polls it | wakers, to `NOTIFIED`; its runner, to any |
//! | `NOTIFIED` | running, and woken since the poll began | its runner |
//! | `DONE` | its last owner drops it, or it has been dropped | nobody |
//!
//! `CANCELLED` is a bit beside `SCHEDULED`, `RUNNING` and `NOTIFIED`: the runner is to drop the future and not
//! to poll it (again).
//!
//! `FRESH` is a bit beside the first `SCHEDULED`, until the future is polled, cancelled or given back: the thread that
//! waits for the future may poll it without its entry in the queue. Then `STALE` is a bit beside every state until the
//! entry is taken from the queue: it is the future's first one, and is skipped. An entry of a woken future is another one.
//!
//! Whoever moves the word to `SCHEDULED` submits the future and whoever moves it from there to `RUNNING` owns it, so it
//! is in the queue at most once and polled by one thread at a time (law 11).
//!
//! Every change but the skip of a stale entry is a read-modify-write that acquires and releases, even a wake that changes nothing: what
//! the waker's thread wrote before it woke is visible to the poll that this wake leads to.
//!
//! The word is modelled on those of async-task and tokio.
//!
//! # Who may touch what is in the cell
//! 1. The [`Owner`], of whom there is one at most: it comes from the one change of `SCHEDULED` to `RUNNING`, and is
//!    given up before the word leaves `RUNNING` and `NOTIFIED`. After `DONE` there is no other, and what was the
//!    owner's is that of [`Ended`].
//! 2. A canceller, while it holds the lock and `SCHEDULED` and `CANCELLED` are set. Nobody owns the cell then: whoever
//!    finds `CANCELLED` when it comes to own it passes through the lock first, and so comes after the canceller, or
//!    the canceller sees that it has come. No other state follows on these two, so they are not seen twice.
//! 3. Whoever has the last reference to the cell, exclusively.
//!
//! The future is pinned: the cell is made in an `Arc`, by [`FutureTask::new`](crate::waker::FutureTask::new), out of
//! which nobody takes it.
#![allow(unsafe_code, reason = "no allocation and no lock for each poll; see the SAFETY comments")]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::Waker;

use crate::sync::{AtomicUsize, Mutex, Ordering, UnsafeCell, latest};

const IDLE: usize = 0;
const SCHEDULED: usize = 1;
const RUNNING: usize = 2;
const NOTIFIED: usize = 3;
const DONE: usize = 4;
const CANCELLED: usize = 8;
const FRESH: usize = 16;
const STALE: usize = 32;

/// The state itself, without what is said of the first entry.
const STATE: usize = 15;

/// See the [module's documentation](self).
///
/// # Invariant
/// The contents are there unless the state is `DONE`.
pub(crate) struct FutureCell<F, T> {
    state: AtomicUsize,
    contents: UnsafeCell<Contents<F, T>>,
    /// For those who cancel. A poll does not come here. (Boxed: it is almost never there.)
    lock: Mutex<Option<Box<Waker>>>,
}

struct Contents<F, T> {
    rest: ManuallyDrop<T>,
    future: ManuallyDrop<F>,
}

// SAFETY: the contents are touched by one thread at a time, as the module's documentation says, and can be sent to it.
unsafe impl<F: Send, T: Send> Sync for FutureCell<F, T> {}

/// Owns a future that has not ended.
#[must_use]
pub(crate) struct Owner<'a, F, T> {
    cell: &'a FutureCell<F, T>,
    _owns: PhantomData<&'a mut (F, T)>,
}

/// A future that was taken from the queue.
pub(crate) enum Taken<'a, F, T> {
    ToPoll(Owner<'a, F, T>),
    /// It was cancelled.
    ToDrop(Owner<'a, F, T>),
}

/// What a runner does after a poll that was not ready.
#[must_use]
pub(crate) enum AfterPoll<'a, F, T> {
    Wait,
    Reschedule,
    Drop(Owner<'a, F, T>),
}

/// What a cancellation has to do.
#[must_use]
pub(crate) struct Cancelled<R> {
    /// What it found when it came early enough.
    pub(crate) found: Option<R>,
    /// Whether the caller must submit the task.
    pub(crate) is_to_submit: bool,
}

/// What is left of a task at its end.
pub(crate) struct Ended<'a, F, T> {
    pub(crate) future: Last<'a, F, T>,
    pub(crate) rest: T,
}

/// A future that is nobody else's any more. Dropping this drops it.
///
/// # Invariant
/// The future is there, and only this may touch it. This is not forgotten: what is pinned is dropped before its memory is
/// used again.
pub(crate) struct Last<'a, F, T> {
    cell: &'a FutureCell<F, T>,
    _owns: PhantomData<&'a mut F>,
}

impl<F, T> FutureCell<F, T> {
    /// A new task is on its way into the queue.
    pub(crate) fn new(future: F, rest: T) -> Self {
        let contents =
            Contents { rest: ManuallyDrop::new(rest), future: ManuallyDrop::new(future) };
        FutureCell {
            state: AtomicUsize::new(SCHEDULED | FRESH),
            contents: UnsafeCell::new(contents),
            lock: Mutex::new(None),
        }
    }

    /// Changes the state, and returns the one before. What is said of the first entry stays.
    fn update(&self, mut next: impl FnMut(usize) -> usize) -> usize {
        let change = |now| Some(next(now & STATE) | (now & !STATE));
        match self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(before) | Err(before) => before & STATE,
        }
    }

    /// A wake. `true` if the caller must submit the task.
    #[must_use]
    pub(crate) fn transition_to_scheduled(&self) -> bool {
        let before = self.update(|now| match now {
            IDLE => SCHEDULED,
            RUNNING => NOTIFIED,
            other => other,
        });
        before == IDLE
    }

    /// The first entry was taken from the queue: the caller owns the future. `None` if the entry is stale.
    ///
    /// # Panics
    /// If that has been taken before.
    pub(crate) fn take_first(&self) -> Option<Taken<'_, F, T>> {
        let change = |now| {
            if now & STALE != 0 { Some(now & !STALE) } else { take(now).map(|next| next & !FRESH) }
        };
        let updated = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        let before = updated.expect("an entry is taken once");
        (before & STALE == 0).then(|| self.taken(before))
    }

    /// The task was taken from the queue again: the caller owns the future.
    ///
    /// # Panics
    /// If it was not in the queue.
    pub(crate) fn take(&self) -> Taken<'_, F, T> {
        let updated = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        self.taken(updated.expect("a task is taken once each time it is queued"))
    }

    fn taken(&self, before: usize) -> Taken<'_, F, T> {
        let owner = Owner { cell: self, _owns: PhantomData };
        if before & CANCELLED == 0 {
            return Taken::ToPoll(owner);
        }
        // A canceller may be at it.
        drop(self.lock.lock());
        Taken::ToDrop(owner)
    }

    /// The thread that waits for the future takes it, if it has been neither polled nor cancelled nor given back. Its entry
    /// is stale then.
    pub(crate) fn claim(&self) -> Option<Owner<'_, F, T>> {
        let claimed = self.state.compare_exchange(
            SCHEDULED | FRESH,
            RUNNING | STALE,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        claimed.is_ok().then_some(Owner { cell: self, _owns: PhantomData })
    }

    /// An immediate shutdown has taken the first entry from the queue, to give it back. `false` if the future has been
    /// polled or cancelled.
    pub(crate) fn withdraw(&self) -> bool {
        let (fresh, withdrawn) = (SCHEDULED | FRESH, SCHEDULED);
        self.state.compare_exchange(fresh, withdrawn, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether the first entry is in the queue and stale. It is not any more after this.
    pub(crate) fn skip(&self) -> bool {
        // Nothing is published, and nothing is read.
        self.state.fetch_and(!STALE, Ordering::Relaxed) & STALE != 0
    }

    /// A cancellation. Nothing but `early` may touch the contents while it runs, which is under a lock: it is not called
    /// if another thread owns the future or comes to do so.
    pub(crate) fn cancel<R>(&self, early: impl FnOnce(&mut T) -> R) -> Cancelled<R> {
        let before = self.update(|now| match now {
            IDLE | SCHEDULED => SCHEDULED | CANCELLED,
            RUNNING | NOTIFIED => now | CANCELLED,
            other => other,
        });
        let mut found = None;
        if before & CANCELLED == 0 && before != DONE {
            let away = self.lock.lock();
            // Relaxed: an owner who had the lock before us has left the state before that, and is seen.
            if self.state.load(Ordering::Relaxed) & STATE == SCHEDULED | CANCELLED {
                found = Some(self.contents.with_mut(|contents| {
                    // SAFETY: case 2 of the module's documentation. We hold the lock until the end of this.
                    early(unsafe { &mut (*contents).rest })
                }));
            } else if let Some(waker) = &*away {
                waker.wake_by_ref();
            }
        }
        Cancelled { found, is_to_submit: before == IDLE }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        // Acquire: whoever asks is about to drop it.
        self.state.load(Ordering::Acquire) & CANCELLED != 0
    }

    /// For the last reference: what has not ended.
    pub(crate) fn last(&mut self) -> Option<Owner<'_, F, T>> {
        if latest(&mut self.state) & STATE == DONE {
            return None;
        }
        // After a canceller: only a model has to be told.
        drop(self.lock.lock());
        Some(Owner { cell: self, _owns: PhantomData })
    }
}

/// The state after a task was taken from the queue, if it was there.
fn take(now: usize) -> Option<usize> {
    (now & STATE & !CANCELLED == SCHEDULED).then(|| now - SCHEDULED + RUNNING)
}

impl<'a, F, T> Owner<'a, F, T> {
    /// Does something with what is owned.
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(Pin<&mut F>, &mut T) -> R) -> R {
        self.cell.contents.with_mut(|contents| {
            // SAFETY: only the owner touches the contents, and it lends each of them to `f` alone.
            let future = unsafe { &mut (*contents).future };
            // SAFETY: the future is not moved until it is dropped where it lies.
            let future = unsafe { Pin::new_unchecked(&mut **future) };
            // SAFETY: as for the future.
            let rest = unsafe { &mut (*contents).rest };
            f(future, rest)
        })
    }

    /// After a poll that was not ready.
    pub(crate) fn after_poll(self) -> AfterPoll<'a, F, T> {
        let before = self.cell.update(|now| match now {
            RUNNING => IDLE,
            NOTIFIED => SCHEDULED,
            // Cancelled: the runner goes on owning it.
            other => other,
        });
        match before {
            RUNNING => AfterPoll::Wait,
            NOTIFIED => AfterPoll::Reschedule,
            _ => AfterPoll::Drop(self),
        }
    }

    /// For one who is to be woken to hear that the future is cancelled: `waker` does that from now on. `true` if it is
    /// cancelled already.
    pub(crate) fn listen(&self, waker: &Waker) -> bool {
        // First told how to be woken, then looked; a canceller does it the other way round.
        let mut away = self.cell.lock.lock();
        if !away.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *away = Some(Box::new(waker.clone()));
        }
        drop(away);
        self.cell.is_cancelled()
    }

    /// The task has ended, or is to end: what is left of it is nobody else's from now on.
    pub(crate) fn end(self) -> Ended<'a, F, T> {
        self.cell.update(|_| DONE);
        let rest = self.cell.contents.with_mut(|contents| {
            // SAFETY: it was ours, and there is no owner after `DONE`: it is not used again where it lies.
            unsafe { ManuallyDrop::take(&mut (*contents).rest) }
        });
        Ended { future: Last { cell: self.cell, _owns: PhantomData }, rest }
    }
}

impl<F, T> Drop for Last<'_, F, T> {
    fn drop(&mut self) {
        self.cell.contents.with_mut(|contents| {
            // SAFETY: only this may touch the future.
            let future = unsafe { &mut (*contents).future };
            // SAFETY: it is there, and is not used again. It is dropped where it lies, pinned as it is.
            unsafe { ManuallyDrop::drop(future) }
        });
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::pin::Pin;
    use std::rc::{Rc, Weak};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::{AfterPoll, Cancelled, Ended, FutureCell, Owner, Taken};
    use crate::sync::unwind::{contain, discard};

    /// Stands for a future, or for what is beside it, and counts how often it is dropped.
    struct Part<'a>(&'a Cell<usize>);

    impl Drop for Part<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    /// The same, and the destructor panics.
    struct Bomb<'a>(Part<'a>);

    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            assert_eq!(self.0.0.get(), 0, "what a bomb holds is dropped after it");
            panic!("on purpose");
        }
    }

    #[derive(Default)]
    struct Drops {
        future: Cell<usize>,
        rest: Cell<usize>,
    }

    impl Drops {
        fn cell(&self) -> FutureCell<Part<'_>, Part<'_>> {
            FutureCell::new(Part(&self.future), Part(&self.rest))
        }

        fn counts(&self) -> (usize, usize) {
            (self.future.get(), self.rest.get())
        }
    }

    #[track_caller]
    fn to_poll<F, T>(cell: &FutureCell<F, T>) -> Owner<'_, F, T> {
        match cell.take() {
            Taken::ToPoll(owner) => owner,
            Taken::ToDrop(_) => panic!("it is not cancelled"),
        }
    }

    #[track_caller]
    fn to_drop<F, T>(cell: &FutureCell<F, T>) -> Owner<'_, F, T> {
        match cell.take() {
            Taken::ToDrop(owner) => owner,
            Taken::ToPoll(_) => panic!("it is cancelled"),
        }
    }

    /// Takes it from the queue and polls it; it has to wait.
    #[track_caller]
    fn wait<F, T>(cell: &FutureCell<F, T>) {
        assert!(matches!(to_poll(cell).after_poll(), AfterPoll::Wait));
    }

    /// Cancels it, and says whether the contents were found and whether it is to be submitted.
    fn cancel<F, T>(cell: &FutureCell<F, T>) -> (bool, bool) {
        let Cancelled { found, is_to_submit } = cell.cancel(|_| ());
        (found.is_some(), is_to_submit)
    }

    /// Neither wakes nor cancellations reach the contents, or lead to anything.
    #[track_caller]
    fn is_out_of_reach<F, T>(cell: &FutureCell<F, T>) {
        for _ in 0..2 {
            assert!(!cell.transition_to_scheduled());
            assert_eq!(cancel(cell), (false, false));
        }
    }

    #[test]
    fn what_has_ended_is_dropped_once() {
        let drops = Drops::default();
        let mut cell = drops.cell();
        let Ended { future, rest } = to_poll(&cell).end();
        assert_eq!(drops.counts(), (0, 0));
        drop(rest);
        assert_eq!(drops.counts(), (0, 1));
        drop(future);
        assert_eq!(drops.counts(), (1, 1));
        is_out_of_reach(&cell);
        assert!(cell.last().is_none());
        drop(cell);
        assert_eq!(drops.counts(), (1, 1));
    }

    #[test]
    fn what_has_not_ended_is_there_for_the_last_reference() {
        let stages: [fn(&FutureCell<Part<'_>, Part<'_>>); 6] = [
            |_| (),
            |cell| {
                let _owner = to_poll(cell);
            },
            |cell| {
                let owner = to_poll(cell);
                assert!(!cell.transition_to_scheduled());
                assert!(matches!(owner.after_poll(), AfterPoll::Reschedule));
            },
            |cell| wait(cell),
            |cell| assert_eq!(cancel(cell), (true, false)),
            |cell| {
                let owner = to_poll(cell);
                assert_eq!(cancel(cell), (false, false));
                assert!(matches!(owner.after_poll(), AfterPoll::Drop(_)));
            },
        ];
        for (number, prepare) in stages.into_iter().enumerate() {
            let drops = Drops::default();
            let mut cell = drops.cell();
            prepare(&cell);
            let owner = cell.last();
            assert_eq!(drops.counts(), (0, 0), "stage {number}");
            drop(owner.expect("it has not ended").end());
            assert_eq!(drops.counts(), (1, 1), "stage {number}");
            assert!(cell.last().is_none());
            drop(cell);
            assert_eq!(drops.counts(), (1, 1), "stage {number}");
        }
    }

    #[test]
    fn a_cancellation_before_the_first_poll() {
        let drops = Drops::default();
        let cell = drops.cell();
        let cancelled = cell.cancel(|rest| rest.0.get());
        assert_eq!((cancelled.found, cancelled.is_to_submit), (Some(0), false));
        assert!(cell.is_cancelled());
        is_out_of_reach(&cell);
        let owner = to_drop(&cell);
        is_out_of_reach(&cell);
        drop(owner.end());
        assert_eq!(drops.counts(), (1, 1));
        is_out_of_reach(&cell);
    }

    #[test]
    fn a_cancellation_while_it_waits() {
        let drops = Drops::default();
        let cell = drops.cell();
        wait(&cell);
        assert_eq!(cancel(&cell), (true, true));
        is_out_of_reach(&cell);
        drop(to_drop(&cell).end());
        assert_eq!(drops.counts(), (1, 1));
    }

    /// By the future itself: this is no deadlock, and the future is still there.
    #[test]
    fn a_cancellation_during_a_poll() {
        for is_woken in [false, true] {
            let drops = Drops::default();
            let cell = drops.cell();
            let mut owner = to_poll(&cell);
            owner.with(|future, rest| {
                assert!(!is_woken || !cell.transition_to_scheduled());
                is_out_of_reach(&cell);
                assert_eq!((future.0.get(), rest.0.get()), (0, 0));
            });
            assert!(cell.is_cancelled());
            let AfterPoll::Drop(owner) = owner.after_poll() else { panic!("it is cancelled") };
            is_out_of_reach(&cell);
            drop(owner.end());
            assert_eq!(drops.counts(), (1, 1));
        }
    }

    #[test]
    fn many_wakes_lead_to_one_entry() {
        let drops = Drops::default();
        let cell = drops.cell();
        assert!(!cell.transition_to_scheduled(), "it is in the queue");
        let mut owner = to_poll(&cell);
        owner.with(|_, _| (0..3).for_each(|_| assert!(!cell.transition_to_scheduled())));
        assert!(matches!(owner.after_poll(), AfterPoll::Reschedule));
        assert!(!cell.transition_to_scheduled(), "it is on its way into the queue");
        wait(&cell);
        assert!(cell.transition_to_scheduled());
        assert!(!cell.transition_to_scheduled());
        wait(&cell);
    }

    /// Otherwise two would own it.
    #[test]
    fn it_is_taken_only_from_the_queue() {
        let drops = Drops::default();
        let cell = drops.cell();
        let refuses = || assert!(contain(|| cell.take()).is_err());
        let mut owner = to_poll(&cell);
        owner.with(|_, _| refuses());
        assert!(matches!(owner.after_poll(), AfterPoll::Wait));
        refuses();
        assert!(cell.transition_to_scheduled());
        drop(to_poll(&cell).end());
        refuses();
        assert_eq!(drops.counts(), (1, 1));
    }

    #[test]
    fn panics_in_a_poll_and_in_destructors() {
        let drops = Drops::default();
        let mut cell = FutureCell::new(Bomb(Part(&drops.future)), Bomb(Part(&drops.rest)));
        let mut owner = to_poll(&cell);
        assert!(contain(|| owner.with(|_, _| panic!("on purpose"))).is_err());
        let Ended { future, rest } = owner.end();
        discard(future);
        assert_eq!(drops.counts(), (1, 0));
        discard(rest);
        assert_eq!(drops.counts(), (1, 1));
        assert!(cell.last().is_none());
        drop(cell);
        assert_eq!(drops.counts(), (1, 1));
    }

    /// A panic of our own between the end and the destructor leaves nothing behind.
    #[test]
    fn what_has_ended_is_dropped_by_unwinding() {
        let drops = Drops::default();
        let cell = drops.cell();
        let ended = to_poll(&cell).end();
        let unwound = contain(move || {
            let Ended { future: _future, rest: _rest } = ended;
            panic!("on purpose");
        });
        assert!(unwound.is_err());
        assert_eq!(drops.counts(), (1, 1));
    }

    /// Wherever the future lies when it is first polled, it stays there to its end.
    #[test]
    fn a_future_is_pinned_and_aligned() {
        #[repr(align(256))]
        struct Aligned<'a>(&'a Cell<usize>);

        impl Drop for Aligned<'_> {
            fn drop(&mut self) {
                assert_eq!(std::ptr::from_ref(self).addr(), self.0.get());
                self.0.set(1);
            }
        }

        let place = Cell::new(0);
        let cell = Rc::new((0_u8, FutureCell::new(Aligned(&place), 0_u8)));
        let mut owner = to_poll(&cell.1);
        let address = |future: Pin<&mut Aligned<'_>>, _: &mut u8| (&raw const *future).addr();
        let first = owner.with(address);
        assert_eq!(first % 256, 0);
        place.set(first);
        assert_eq!(owner.with(address), first);
        assert!(matches!(owner.after_poll(), AfterPoll::Wait));
        assert!(cell.1.transition_to_scheduled());
        let mut owner = to_poll(&cell.1);
        assert_eq!(owner.with(address), first);
        drop(owner.end());
        assert_eq!(place.get(), 1);
    }

    #[test]
    fn a_destructor_that_wakes_and_cancels() {
        struct Meddler {
            cell: Weak<FutureCell<Meddler, ()>>,
            drops: Rc<Cell<usize>>,
        }

        impl Drop for Meddler {
            fn drop(&mut self) {
                is_out_of_reach(&*self.cell.upgrade().expect("the cell is there"));
                self.drops.set(self.drops.get() + 1);
            }
        }

        for is_cancelled in [false, true] {
            let drops = Rc::new(Cell::new(0));
            let cell = Rc::new_cyclic(|cell| {
                let meddler = Meddler { cell: Weak::clone(cell), drops: Rc::clone(&drops) };
                FutureCell::new(meddler, ())
            });
            if is_cancelled {
                assert_eq!(cancel(&cell), (true, false));
            }
            let (Taken::ToPoll(owner) | Taken::ToDrop(owner)) = cell.take();
            drop(owner.end());
            assert_eq!(drops.get(), 1);
        }
    }

    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wakes() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        (Arc::clone(&wakes), Waker::from(wakes))
    }

    #[test]
    fn whoever_listens_is_woken_by_a_cancellation() {
        let drops = Drops::default();
        let cell = drops.cell();
        let owner = to_poll(&cell);
        let [(first, first_waker), (second, second_waker)] = [wakes(), wakes()];
        assert!(!owner.listen(&first_waker));
        assert!(!owner.listen(&second_waker));
        assert_eq!(cancel(&cell), (false, false));
        assert_eq!(first.0.load(Ordering::Relaxed), 0, "another one has listened since");
        assert_eq!(second.0.load(Ordering::Relaxed), 1);
        assert!(owner.listen(&first_waker));
        drop(owner.end());
        assert_eq!(drops.counts(), (1, 1));
    }

    /// What is in it goes to other threads, one at a time.
    #[test]
    fn it_is_shared_by_threads_if_its_contents_may_go_there() {
        /// Says no, unless `T` is `Sync` and there is a method of its own.
        trait Otherwise {
            fn is_sync(&self) -> bool {
                false
            }
        }
        struct Asked<T>(PhantomData<T>);
        impl<T> Otherwise for Asked<T> {}
        impl<T: Sync> Asked<T> {
            fn is_sync(&self) -> bool {
                true
            }
        }

        type Yes = Cell<u8>;
        type No = Rc<u8>;
        assert!(Asked(PhantomData::<FutureCell<Yes, Yes>>).is_sync());
        assert!(!Asked(PhantomData::<FutureCell<No, Yes>>).is_sync());
        assert!(!Asked(PhantomData::<FutureCell<Yes, No>>).is_sync());
    }
}
