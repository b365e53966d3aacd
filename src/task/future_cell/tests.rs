use std::cell::Cell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::{FutureCell, FutureOwner, TransitionToIdle};
use crate::sync::unwind::{contain, discard};
use crate::task::job::Action;
use crate::task::pending::PendingKey;
use crate::task::state::{Taken, WakerDropped};

/// Stands in for a future or the rest of the contents, and counts its drops.
struct Part<'a>(&'a Cell<usize>);

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

type Parts<'a> = FutureCell<Part<'a>, Part<'a>, ()>;

/// A part whose destructor panics.
struct Bomb<'a>(Part<'a>);

impl Drop for Bomb<'_> {
    fn drop(&mut self) {
        assert_eq!(self.0.0.get(), 0, "a field is dropped after its struct");
        panic!("on purpose");
    }
}

#[derive(Default)]
struct Drops {
    future: Cell<usize>,
    rest: Cell<usize>,
}

impl Drops {
    fn cell(&self) -> Parts<'_> {
        FutureCell::new(Part(&self.future), Part(&self.rest), ())
    }

    fn counts(&self) -> (usize, usize) {
        (self.future.get(), self.rest.get())
    }
}

#[track_caller]
fn to_poll<F, T>(cell: &FutureCell<F, T, ()>) -> FutureOwner<'_> {
    match cell.header().take(Action::RunWoken) {
        Taken::ToPoll(owner) => owner,
        Taken::ToDrop(..) | Taken::Idle(..) | Taken::Nothing => {
            panic!("it is not cancelled")
        }
    }
}

#[track_caller]
fn to_drop<F, T>(cell: &FutureCell<F, T, ()>) -> FutureOwner<'_> {
    match cell.header().take(Action::RunWoken) {
        Taken::ToDrop(owner, _) => owner,
        Taken::ToPoll(_) | Taken::Idle(..) | Taken::Nothing => {
            panic!("it is cancelled")
        }
    }
}

/// Takes the future from the queue and ends a poll that is not ready, in which a waker was kept.
#[track_caller]
fn wait<F, T>(cell: &FutureCell<F, T, ()>) {
    cell.header().add_waker();
    assert!(matches!(to_poll(cell).after_poll(), Ok(TransitionToIdle::Idle)));
}

/// Cancels the future. Returns whether the caller must submit.
fn cancel<F, T>(cell: &FutureCell<F, T, ()>) -> bool {
    cell.header().cancel().is_some()
}

/// Asserts that neither a wake nor a cancellation asks for a submission.
#[track_caller]
fn assert_needs_no_submission<F, T>(cell: &FutureCell<F, T, ()>) {
    for _ in 0..2 {
        assert!(!cell.header().transition_to_scheduled());
        assert!(!cancel(cell));
    }
}

#[test]
fn the_contents_of_an_ended_task_are_dropped_once() {
    let drops = Drops::default();
    let mut cell = drops.cell();
    let (future, rest) = cell.end(to_poll(&cell));
    assert_eq!(drops.counts(), (0, 0));
    drop(rest);
    assert_eq!(drops.counts(), (0, 1));
    drop(future);
    assert_eq!(drops.counts(), (1, 1));
    assert_needs_no_submission(&cell);
    assert!(cell.header.has_ended());
    drop(cell);
    assert_eq!(drops.counts(), (1, 1));
}

#[test]
fn what_has_not_been_dropped_has_not_ended() {
    let stages: [fn(&Parts<'_>); 6] = [
        |_| (),
        |cell| {
            let _owner = to_poll(cell);
        },
        |cell| {
            let owner = to_poll(cell);
            assert!(!cell.header().transition_to_scheduled());
            assert!(matches!(owner.after_poll(), Ok(TransitionToIdle::Submit)));
        },
        |cell| wait(cell),
        |cell| assert!(!cancel(cell)),
        |cell| {
            let owner = to_poll(cell);
            assert!(!cancel(cell));
            assert!(owner.after_poll().is_err());
        },
    ];
    for (number, prepare) in stages.into_iter().enumerate() {
        let drops = Drops::default();
        let mut cell = drops.cell();
        prepare(&cell);
        assert!(!cell.header.has_ended(), "stage {number}");
    }
}

#[test]
fn a_cancellation_before_the_first_poll() {
    let drops = Drops::default();
    let cell = drops.cell();
    assert!(!cancel(&cell));
    assert_eq!(drops.counts(), (0, 0));
    assert!(cell.header().is_cancelled());
    assert_needs_no_submission(&cell);
    let owner = to_drop(&cell);
    assert_needs_no_submission(&cell);
    drop(cell.end(owner));
    assert_eq!(drops.counts(), (1, 1));
    assert_needs_no_submission(&cell);
}

#[test]
fn a_cancellation_of_an_idle_future() {
    let drops = Drops::default();
    let cell = drops.cell();
    wait(&cell);
    assert!(cancel(&cell));
    assert_needs_no_submission(&cell);
    let owner = to_drop(&cell);
    assert_needs_no_submission(&cell);
    drop(cell.end(owner));
    assert_eq!(drops.counts(), (1, 1));
}

/// The future cancels itself: this is no deadlock, and the future stays until its poll has ended.
#[test]
fn a_cancellation_during_a_poll() {
    for is_woken in [false, true] {
        let drops = Drops::default();
        let cell = drops.cell();
        let mut owner = to_poll(&cell);
        cell.with(&mut owner, |future, rest| {
            assert!(!is_woken || !cell.header().transition_to_scheduled());
            assert_needs_no_submission(&cell);
            assert_eq!((future.0.get(), rest.0.get()), (0, 0));
        });
        assert!(cell.header().is_cancelled());
        let Err(owner) = owner.after_poll() else { panic!("it is cancelled") };
        assert_needs_no_submission(&cell);
        drop(cell.end(owner));
        assert_eq!(drops.counts(), (1, 1));
    }
}

#[test]
fn many_wakes_lead_to_one_entry() {
    let drops = Drops::default();
    let cell = drops.cell();
    assert!(!cell.header().transition_to_scheduled(), "it is in the queue");
    let mut owner = to_poll(&cell);
    cell.with(&mut owner, |_, _| {
        (0..3).for_each(|_| assert!(!cell.header().transition_to_scheduled()));
    });
    assert!(matches!(owner.after_poll(), Ok(TransitionToIdle::Submit)));
    assert!(!cell.header().transition_to_scheduled(), "its owner submits it");
    wait(&cell);
    assert!(cell.header().transition_to_scheduled());
    assert!(!cell.header().transition_to_scheduled());
    wait(&cell);
}

/// Otherwise it would have two owners.
#[test]
fn only_a_queued_future_can_be_taken() {
    let drops = Drops::default();
    let cell = drops.cell();
    let refuses = || {
        for action in [Action::Run, Action::RunWoken] {
            assert!(matches!(cell.header().take(action), Taken::Nothing));
        }
    };
    let mut owner = to_poll(&cell);
    cell.with(&mut owner, |_, _| refuses());
    cell.header().add_waker();
    assert!(matches!(owner.after_poll(), Ok(TransitionToIdle::Idle)));
    refuses();
    assert!(cell.header().transition_to_scheduled());
    drop(cell.end(to_poll(&cell)));
    refuses();
    assert_eq!(drops.counts(), (1, 1));
}

#[test]
fn an_owner_reaches_no_other_future() {
    let (drops, others) = (Drops::default(), Drops::default());
    let (cell, other) = (drops.cell(), others.cell());
    let mut owner = to_poll(&cell);
    let _owner_of_other = to_poll(&other);
    assert!(contain(|| other.with(&mut owner, |_, _| ())).is_err());
    assert!(contain(|| other.end(owner)).is_err());
    drop((cell, other));
    assert_eq!((drops.counts(), others.counts()), ((0, 0), (0, 0)));
}

#[test]
fn panics_in_a_poll_and_in_destructors() {
    let drops = Drops::default();
    let mut cell = FutureCell::new(Bomb(Part(&drops.future)), Bomb(Part(&drops.rest)), ());
    let mut owner = to_poll(&cell);
    assert!(contain(|| cell.with(&mut owner, |_, _| panic!("on purpose"))).is_err());
    let (future, rest) = cell.end(owner);
    discard(future);
    assert_eq!(drops.counts(), (1, 0));
    discard(rest);
    assert_eq!(drops.counts(), (1, 1));
    assert!(cell.header.has_ended());
    drop(cell);
    assert_eq!(drops.counts(), (1, 1));
}

/// A panic between the end and the destructors leaks nothing.
#[test]
fn unwinding_drops_the_contents_of_an_ended_task() {
    let drops = Drops::default();
    let cell = drops.cell();
    let ended = cell.end(to_poll(&cell));
    let unwound = contain(move || {
        let (_future, _rest) = ended;
        panic!("on purpose");
    });
    assert!(unwound.is_err());
    assert_eq!(drops.counts(), (1, 1));
}

/// The future keeps its address from the first poll to its drop.
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
    let cell = Rc::new((0_u8, FutureCell::new(Aligned(&place), 0_u8, ())));
    let mut owner = to_poll(&cell.1);
    let address = |future: Pin<&mut Aligned<'_>>, _: &mut u8| (&raw const *future).addr();
    let first = cell.1.with(&mut owner, address);
    assert_eq!(first % 256, 0);
    place.set(first);
    assert_eq!(cell.1.with(&mut owner, address), first);
    cell.1.header().add_waker();
    assert!(matches!(owner.after_poll(), Ok(TransitionToIdle::Idle)));
    assert!(cell.1.header().transition_to_scheduled());
    let mut owner = to_poll(&cell.1);
    assert_eq!(cell.1.with(&mut owner, address), first);
    drop(cell.1.end(owner));
    assert_eq!(place.get(), 1);
}

#[test]
fn a_destructor_that_wakes_and_cancels() {
    struct Meddler {
        cell: Weak<FutureCell<Meddler, (), ()>>,
        drops: Rc<Cell<usize>>,
    }

    impl Drop for Meddler {
        fn drop(&mut self) {
            assert_needs_no_submission(&*self.cell.upgrade().expect("the cell is there"));
            self.drops.set(self.drops.get() + 1);
        }
    }

    for is_cancelled in [false, true] {
        let drops = Rc::new(Cell::new(0));
        let cell = Rc::new_cyclic(|cell| {
            let meddler = Meddler { cell: Weak::clone(cell), drops: Rc::clone(&drops) };
            FutureCell::new(meddler, (), ())
        });
        if is_cancelled {
            assert!(!cancel(&cell));
        }
        let taken = cell.header().take(Action::RunWoken);
        let (Taken::ToPoll(owner) | Taken::ToDrop(owner, _)) = taken else { unreachable!() };
        drop(cell.end(owner));
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
fn a_cancellation_wakes_the_last_listener() {
    let drops = Drops::default();
    let cell = drops.cell();
    let owner = to_poll(&cell);
    let [(first, first_waker), (second, second_waker)] = [wakes(), wakes()];
    assert!(!cell.header().listen(&first_waker));
    assert!(!cell.header().listen(&second_waker));
    assert!(!cancel(&cell));
    assert_eq!(first.0.load(Ordering::Relaxed), 0, "the second waker has replaced it");
    assert_eq!(second.0.load(Ordering::Relaxed), 1);
    assert!(cell.header().listen(&first_waker));
    drop(cell.end(owner));
    assert_eq!(drops.counts(), (1, 1));
}

/// A future keeps its key from its first pending poll to its end.
#[test]
fn a_pending_key_stays_until_the_end() {
    let drops = Drops::default();
    let cell = drops.cell();
    let owner = to_poll(&cell);
    assert!(cell.header().pending_key().is_none());
    let key = PendingKey::new(7).unwrap();
    cell.header().set_pending_key(key);
    cell.header().add_waker();
    assert!(matches!(owner.after_poll(), Ok(TransitionToIdle::Idle)));
    assert!(cell.header().transition_to_scheduled());
    let owner = to_poll(&cell);
    assert_eq!(cell.header().pending_key().map(PendingKey::get), Some(7));
    drop(cell.end(owner));
}

/// A cell is `Sync` if its contents are `Send`: threads get them one at a time.
#[test]
fn a_cell_is_sync_if_its_contents_are_send() {
    /// Returns `false`, unless `T: Sync` brings an inherent method, which takes precedence.
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
    assert!(Asked(PhantomData::<FutureCell<Yes, Yes, ()>>).is_sync());
    assert!(!Asked(PhantomData::<FutureCell<No, Yes, ()>>).is_sync());
    assert!(!Asked(PhantomData::<FutureCell<Yes, No, ()>>).is_sync());
    assert!(!Asked(PhantomData::<FutureCell<Yes, Yes, Yes>>).is_sync());
}

#[test]
fn the_last_waker_of_an_idle_future_cancels_it() {
    let drops = Drops::default();
    let cell = drops.cell();
    let state = cell.header();
    wait(&cell);
    state.add_waker();
    assert_eq!(state.remove_waker(), WakerDropped::Other);
    assert_eq!(state.remove_waker(), WakerDropped::Submit);
    assert_needs_no_submission(&cell);
    let owner = to_drop(&cell);
    assert_needs_no_submission(&cell);
    drop(cell.end(owner));
    assert!(!cell.header().leave_to_wakers());
}

#[test]
fn a_poll_that_keeps_no_waker_ends_the_future() {
    let drops = Drops::default();
    let cell = drops.cell();
    let owner = to_poll(&cell);
    cell.header().add_waker();
    assert_eq!(cell.header().remove_waker(), WakerDropped::Other);
    let Err(owner) = owner.after_poll() else { panic!("nothing can wake it") };
    drop(cell.end(owner));
}

#[test]
fn the_last_waker_of_an_ended_future_frees_it() {
    let drops = Drops::default();
    let cell = drops.cell();
    let state = cell.header();
    wait(&cell);
    assert!(cell.header().transition_to_scheduled());
    state.add_waker();
    drop(cell.end(to_poll(&cell)));
    assert_eq!(state.remove_waker(), WakerDropped::Other, "there is another one");
    assert!(cell.header().leave_to_wakers());
    assert_eq!(state.remove_waker(), WakerDropped::Free);
    // Before its owner has left it.
    let mut cell = drops.cell();
    let owner = to_poll(&cell);
    cell.header().add_waker();
    drop(cell.end(owner));
    assert!(cell.header.has_wakers());
    assert_eq!(cell.header().remove_waker(), WakerDropped::Other, "its owner still uses it");
    assert!(!cell.header.has_wakers());
    assert!(!cell.header().leave_to_wakers());
}

#[test]
fn more_wakers_than_can_be_counted_keep_the_task() {
    let drops = Drops::default();
    let cell = drops.cell();
    let state = cell.header();
    wait(&cell);
    (0..1 << 24).for_each(|_| state.add_waker());
    (0..1 << 24).for_each(|_| assert_eq!(state.remove_waker(), WakerDropped::Other));
    assert!(cell.header().transition_to_scheduled());
    drop(cell.end(to_poll(&cell)));
    assert!(cell.header().leave_to_wakers());
}
