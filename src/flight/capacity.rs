//! The capacity of a bounded queue: permits, and the submitters that wait for one.
//!
//! There are `capacity` permits and one for each worker that may run (`Sizes::limit`). A task of a
//! worker holds one from its acceptance until it has ended, so the pool accepts that many tasks
//! that never end, however long its workers take to start. A future releases its permit at the end
//! of its first poll, and the worker that polls it later takes one for the poll, free or not. A
//! worker that counts as blocked gives up the permit of its task, and takes one when it returns,
//! free or not. So a worker that runs above the limit takes a place in the queue.
//!
//! The number of permits held is in one word. A submission and the end of a task change it without
//! a lock, unless a submitter waits: a flag in the word says so. Then the thread that releases a
//! permit takes the lock, grants the permit to the submitter that waits longest, and wakes it. So
//! none is woken for a permit that it does not get.
//!
//! While that submitter wakes up, further permits stay free, and any submission may acquire them.
//! Otherwise each task would cost a wake-up, and all permits could be held by submitters that
//! sleep. Once awake, it grants a free permit to the next one (race 29). So does a worker that
//! rests.
//!
//! A cancelled task releases its permit at once, and its entry stays in the queue, stale. Once as
//! many entries are stale as the queue has capacity, a further one keeps the permit of its task.
//! The thread that takes an entry releases it.
//!
//! The permits are the pool's, whatever its views: tasks of a view that may have no more workers
//! hold theirs until then, and there is one for each worker that is reserved for a view, too,
//! whichever view's task holds it.
//!
//! # Where a permit changes hands
//! *Over* means: free or not.
//!
//! | event | permit | by |
//! |---|---|---|
//! | a task is accepted | acquired, perhaps after a wait; over if too many workers wait, or in a hook | `acquire_permit`, `wait_for_permit`; in async code `acquire` in `submit/reserve.rs` |
//! | it is not accepted after all | released | `accept_with_permit`, `retract`, the drop of a `Reservation` |
//! | a task in line for a slot of its group gets it | over | `enqueue_over_limit`, `exceed_capacity` |
//! | a worker begins the poll of a woken future | over | `begin` in `worker.rs` |
//! | a worker ends a job, of whichever kind | released | `end` in `worker.rs` |
//! | a worker counts as blocked; does so no more | released; over | `change_region` |
//! | a waiter claims a task, whose entry it has taken back; has not | released; released, or left to the entry | `begin` in `wait/awaited.rs` |
//! | a task is cancelled before its start | released, or left to the entry | `begin_cancelled` |
//! | a worker has taken a stale entry of a new task | over, since `end` releases one; that of the entry released | `end_rare` |
//! | a stale entry is found otherwise, or serves another task | that of the entry released | `drop_entries`, `advance_on_caller` |
//! | a task is handed back, or runs on its caller | released | `hand_back`, `advance_on_caller` |
//! | one may be free that no release has granted | granted to the first submitter | `resize`, `change_view`, `measure`, `begin_rest`, `begin_wait`, `end_wait` |
//! | the system refuses a thread, and all may wait for permits | granted to a worker that waits, over | `ask_again` |

use std::collections::VecDeque;
use std::mem;

use futures_channel::oneshot;

use crate::crew::Sizes;
use crate::sync::unwind::OnDrop;
use crate::sync::{AtomicUsize, Counter, Mutex, MutexGuard, Ordering};
use crate::task::ViewId;

/// Set in the word while a submitter waits or is about to. Changed under the lock.
const AWAITED: usize = 1;

/// Set in the word while a submitter that was granted a permit wakes up.
const WAKING: usize = 2;

/// One permit in the word. Each task takes more memory than this, so no number of permits overflows
/// it.
const PERMIT: usize = 4;

/// The permits of a bounded queue, and the submitters that wait for one.
#[derive(Default)]
pub(crate) struct Capacity {
    capacity: usize,
    /// The number of permits held times [`PERMIT`], and the flags.
    word: AtomicUsize,
    /// Waiting submitters, the first in front.
    submitters: Mutex<VecDeque<Submitter>>,
    stale: Mutex<Stale>,
}

/// The first entries of tasks that lie in a queue without their tasks.
#[derive(Default)]
struct Stale {
    /// Below zero while a thread that has taken an entry is faster than the one that has left it,
    /// which then keeps no permit for it.
    entries: isize,
    /// Permits that cancelled tasks have left to their entries: at most one for each.
    permits: usize,
}

/// How many workers of the pool wait for a permit, or for a slot of a group. Each of them costs a
/// thread, and those that run in their place may submit tasks as well: so at most `max_size`
/// workers wait, or as many as are wanted awake if those are fewer.
#[derive(Default)]
pub(crate) struct OwnWaits(Counter);

impl OwnWaits {
    /// The caller waits until what this returns is dropped. `None` if it must not, since as many
    /// others wait as may.
    pub(crate) fn begin(&self, sizes: &Sizes) -> Option<impl Drop + use<'_>> {
        let others = self.0.increment();
        let wait = OnDrop(|| _ = self.0.subtract(1));
        (others < sizes.max().min(sizes.wanted_awake())).then_some(wait)
    }
}

/// What a waiting submitter receives with its permit. If it is dropped instead, the pool or the
/// view was closed.
pub(crate) type Granted = oneshot::Receiver<()>;

/// The locked queue of waiting submitters.
type Submitters<'a> = MutexGuard<'a, VecDeque<Submitter>>;

struct Submitter {
    view: ViewId,
    waits: Waits,
    granted: oneshot::Sender<()>,
}

/// What waits for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// A worker of the pool.
    Worker,
    /// Another thread.
    Outside,
    /// A future, which may not be polled for long after its wake.
    Future,
}

/// What a pool asks of its [`Capacity`]. It is called through `dyn`, and only
/// [`Builder::queue_capacity`](crate::Builder::queue_capacity) makes one. So a program without
/// bounded queues does not contain it.
pub(crate) trait Permits: Send + Sync {
    /// Acquires a permit for one task, if one is free and not meant for a waiting submitter. Also
    /// in a closed pool, where the task is not accepted afterwards.
    fn try_acquire(&self, sizes: &Sizes) -> bool;

    /// Queues the caller as a waiting submitter. It waits for what this returns. A thread must then
    /// call [`end_wait`](Self::end_wait), and a future that gives up [`give_up`](Self::give_up).
    fn begin_wait(&self, sizes: &Sizes, view: ViewId, waits: Waits) -> Granted;

    /// Ends the wait of a thread. `is_granted`: the receiver has said so. Returns whether the
    /// submitter has a permit.
    #[must_use]
    fn end_wait(&self, sizes: &Sizes, granted: Granted, is_granted: bool) -> bool;

    /// Ends the wait of a future that gives up, and releases the permit that it was granted.
    fn give_up(&self, sizes: &Sizes, granted: Granted);

    /// Acquires a permit, free or not: for a task that was accepted earlier and cannot wait, or for
    /// a worker that polls a woken future or leaves a blocking region.
    fn acquire_over_limit(&self);

    /// Releases a permit: a task or a poll has ended, a task will not be started, or its worker
    /// enters a blocking region.
    fn release(&self, sizes: &Sizes);

    /// Releases the permit of a task whose first entry stays in a queue without it. That of a task
    /// that `is_cancelled` stays with the entry if as many others lie there as the capacity:
    /// entries take memory, and a task can be cancelled as fast as it is submitted.
    fn leave_entry(&self, sizes: &Sizes, is_cancelled: bool);

    /// Entries that have been left are no longer in a queue, or have a task again. Releases as many
    /// permits, if there are any.
    fn drop_entries(&self, sizes: &Sizes, count: usize);

    /// Ends the waits of the submitters to a view that was closed, or of all to a pool that was.
    fn close(&self, view: Option<ViewId>);

    /// Grants a free permit to the first submitter if one waits. The caller is about to rest, and
    /// may have left a permit free while another submitter woke up.
    fn grant_before_rest(&self, sizes: &Sizes);

    /// Grants a permit to the first submitter, if one is free, and wakes it. There may be a free
    /// one after a release, after a change of the sizes, and when a submitter has woken up.
    fn grant(&self, sizes: &Sizes);

    /// Grants a permit, free or not, to the first submitter that is a worker of the pool.
    fn grant_over_limit(&self, sizes: &Sizes);

    /// Returns the views to which the waiting submitters submit. Takes the lock only if there is
    /// one.
    fn awaiting_views(&self) -> Vec<ViewId>;
}

impl Permits for Capacity {
    fn try_acquire(&self, sizes: &Sizes) -> bool {
        self.acquire_unless(is_reserved, sizes)
    }

    fn begin_wait(&self, sizes: &Sizes, view: ViewId, waits: Waits) -> Granted {
        let (sender, granted) = oneshot::channel();
        let mut submitters = self.submitters.lock();
        submitters.push_back(Submitter { view, waits, granted: sender });
        // Race 29: sets the flag, then looks for a permit. Who releases one does it in the reverse
        // order.
        self.word.fetch_or(AWAITED, Ordering::AcqRel);
        self.grant_locked(submitters, sizes);
        granted
    }

    fn end_wait(&self, sizes: &Sizes, mut granted: Granted, is_granted: bool) -> bool {
        granted.close();
        if is_granted || granted.try_recv() == Ok(Some(())) {
            // Race 29: awake from now on. Then looks for a permit for the next submitter.
            self.word.fetch_and(!WAKING, Ordering::AcqRel);
            self.grant(sizes);
            return true;
        }
        self.remove(granted);
        // One may be free: another submitter wakes up.
        self.try_acquire(sizes)
    }

    fn give_up(&self, sizes: &Sizes, mut granted: Granted) {
        granted.close();
        if granted.try_recv() == Ok(Some(())) {
            self.release(sizes);
        } else {
            self.remove(granted);
        }
    }

    fn acquire_over_limit(&self) {
        self.word.fetch_add(PERMIT, Ordering::AcqRel);
    }

    fn release(&self, sizes: &Sizes) {
        let before = self.word.fetch_sub(PERMIT, Ordering::AcqRel);
        debug_assert!(before >= PERMIT, "each permit is released once");
        if is_reserved(before) {
            self.grant(sizes);
        }
    }

    fn leave_entry(&self, sizes: &Sizes, is_cancelled: bool) {
        let mut stale = self.stale.lock();
        let is_full = usize::try_from(stale.entries).is_ok_and(|entries| entries >= self.capacity);
        let is_kept = is_cancelled && is_full;
        stale.entries += 1;
        stale.permits += usize::from(is_kept);
        drop(stale);
        if !is_kept {
            self.release(sizes);
        }
    }

    fn drop_entries(&self, sizes: &Sizes, count: usize) {
        let mut stale = self.stale.lock();
        stale.entries -= count as isize;
        let released = count.min(stale.permits);
        stale.permits -= released;
        drop(stale);
        (0..released).for_each(|_| self.release(sizes));
    }

    fn close(&self, view: Option<ViewId>) {
        let mut submitters = self.submitters.lock();
        let is_refused = |submitter: &Submitter| view.is_none_or(|view| submitter.view == view);
        let all = mem::take(&mut *submitters).into_iter();
        let (refused, others): (VecDeque<_>, _) = all.partition(is_refused);
        *submitters = others;
        self.update_flag(&submitters);
        // Unlock first: the submitters take the lock when they are awake.
        drop(submitters);
        drop(refused);
    }

    fn grant_before_rest(&self, sizes: &Sizes) {
        // The worker itself has seen the flag when it released its permit.
        if self.is_awaited() {
            self.grant(sizes);
        }
    }

    fn grant(&self, sizes: &Sizes) {
        self.grant_locked(self.submitters.lock(), sizes);
    }

    fn grant_over_limit(&self, sizes: &Sizes) {
        let acquire = || {
            self.acquire_over_limit();
            true
        };
        let is_worker = |submitter: &Submitter| submitter.waits == Waits::Worker;
        self.grant_to(self.submitters.lock(), is_worker, acquire, sizes);
    }

    fn awaiting_views(&self) -> Vec<ViewId> {
        let mut views = Vec::new();
        if self.is_awaited() {
            views.extend(self.submitters.lock().iter().map(|submitter| submitter.view));
            // Mostly all wait for the same view.
            views.dedup();
        }
        views
    }
}

impl Capacity {
    pub(crate) fn new(capacity: usize) -> Self {
        Capacity { capacity, ..Capacity::default() }
    }

    fn remove(&self, granted: Granted) {
        let mut submitters = self.submitters.lock();
        let own = submitters.iter().position(|queued| queued.granted.is_connected_to(&granted));
        let own = own.and_then(|own| submitters.remove(own));
        self.update_flag(&submitters);
        // Unlock first, and forget the waker, which is user code: the sender's drop would call it.
        drop(submitters);
        drop(granted);
        drop(own);
    }

    /// Acquires a permit, if one is free, unless `is_barred` by the word.
    #[inline]
    fn acquire_unless(&self, is_barred: impl Fn(usize) -> bool, sizes: &Sizes) -> bool {
        // Read here: under the lock, after the `grant` of a resize in the lock's order, these are
        // the new sizes.
        let limit = self.capacity.saturating_add(sizes.limit());
        let acquire = |word| {
            let may_acquire = word / PERMIT < limit && !is_barred(word);
            may_acquire.then_some(word + PERMIT)
        };
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, acquire).is_ok()
    }

    fn grant_locked<'a>(&'a self, mut submitters: Submitters<'a>, sizes: &Sizes) {
        let acquire = || self.acquire_unless(|_| false, sizes);
        // A future does not grant the next permit when it wakes up.
        while self.grant_to(submitters, |_| true, acquire, sizes) == Some(Waits::Future) {
            submitters = self.submitters.lock();
        }
    }

    /// Grants a permit to the first submitter that may receive one. Returns what has waited.
    fn grant_to(
        &self,
        mut submitters: Submitters<'_>,
        may_receive: impl Fn(&Submitter) -> bool,
        acquire: impl FnOnce() -> bool,
        sizes: &Sizes,
    ) -> Option<Waits> {
        let first = submitters.iter().position(may_receive).filter(|_| acquire())?;
        let Submitter { waits, granted, .. } = submitters.remove(first)?;
        let waking = if waits == Waits::Future { 0 } else { WAKING };
        self.word.fetch_or(waking, Ordering::AcqRel);
        self.update_flag(&submitters);
        // Unlock first: the submitter takes the lock when it is awake.
        drop(submitters);
        if granted.send(()).is_err() {
            // It has given up meanwhile.
            self.word.fetch_and(!waking, Ordering::AcqRel);
            self.release(sizes);
        }
        Some(waits)
    }

    /// Whether a submitter waits, or is about to.
    fn is_awaited(&self) -> bool {
        // Relaxed: the caller has fenced, or has changed the word itself.
        self.word.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// Clears the flag if no submitter waits. The caller holds the lock.
    fn update_flag(&self, submitters: &VecDeque<Submitter>) {
        if submitters.is_empty() {
            self.word.fetch_and(!AWAITED, Ordering::AcqRel);
        }
    }
}

/// Whether free permits are about to be granted: submitters wait, and none that was granted one
/// still wakes up.
fn is_reserved(word: usize) -> bool {
    word & (AWAITED | WAKING) == AWAITED
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
