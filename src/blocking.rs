//! Blocking regions: a worker that waits does not count as runnable, so that its place can be filled (laws 1,
//! 4 and 10).
//!
//! Knows a worker's pool only as an [`Employer`].

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{cmp, mem};

use crate::parker::{Parker, Signal};
use crate::sync::thread_local;

/// The pauses before a refused thread is asked for again: from a millisecond to a second.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Pauses(Duration::from_millis(1))
    }

    fn next(&mut self) -> Duration {
        let longer = cmp::min(2 * self.0, Duration::from_secs(1));
        mem::replace(&mut self.0, longer)
    }
}

/// What a worker that blocks needs of its pool.
pub(crate) trait Employer {
    /// The calling worker is not runnable any more: sees to it that others come for what is queued. `false`
    /// if that would have taken a thread that the system refused.
    fn enter_region(self: Arc<Self>, duty: Duty) -> bool;

    /// The calling worker is runnable again.
    fn exit_region(self: Arc<Self>, duty: Duty);

    /// Whether one more worker may wait in its start hook for others.
    fn may_wait_in_hook(&self) -> bool;

    /// Has `parker` nudged whenever the system refuses a thread while workers are in regions.
    fn attend(&self, parker: &Arc<Parker>);

    /// Undoes one [`attend`](Self::attend).
    fn unattend(&self, parker: &Arc<Parker>);

    /// Tries again to start what was refused. `true` if there is no need any more.
    fn retry(self: Arc<Self>) -> bool;
}

/// What the calling thread works as.
#[derive(Clone)]
struct Post {
    employer: Arc<dyn Employer>,
    duty: Duty,
    in_region: bool,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// It runs its start hook.
    StartHook,
    /// It runs tasks.
    Tasks,
}

thread_local! {
    // Not `const`: the model checker's macro does not know that.
    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static POST: RefCell<Option<Post>> = RefCell::new(None);
}

fn post() -> Option<Post> {
    // None any more while the thread's locals are destroyed.
    POST.try_with(|post| post.borrow().clone()).ok().flatten()
}

fn is_on_duty() -> bool {
    POST.try_with(|post| post.borrow().is_some()).unwrap_or(false)
}

fn mark(in_region: bool) {
    let _ = POST.try_with(|post| {
        if let Some(post) = post.borrow_mut().as_mut() {
            post.in_region = in_region;
        }
    });
}

/// From now on the calling thread works for `employer`, or for nobody.
pub(crate) fn employ(employer: Option<(Arc<dyn Employer>, Duty)>) {
    let post = employer.map(|(employer, duty)| Post { employer, duty, in_region: false });
    drop(replace(post));
}

/// Runs `f` as if the calling thread worked for nobody.
pub(crate) fn off_duty<R>(f: impl FnOnce() -> R) -> R {
    struct Return(Option<Post>);

    impl Drop for Return {
        fn drop(&mut self) {
            replace(self.0.take());
        }
    }

    let _return = Return(replace(None));
    f()
}

fn replace(post: Option<Post>) -> Option<Post> {
    // Returned: nothing is dropped while the place is borrowed.
    POST.try_with(|place| place.replace(post)).ok().flatten()
}

/// Runs `f` as a blocking region: while it lasts, a worker of a pool does not count as one of the
/// [`max_size`](crate::ThreadPool::max_size) that may be runnable, so if work is queued, or arrives,
/// another worker takes its place.
///
/// Use it around whatever may wait long for something other than the CPU: a lock, a socket, a child process, a
/// channel that another task of the same pool is to fill. Waiting for a [`JoinHandle`](crate::JoinHandle), a
/// [scope](crate::ThreadPool::scope) or a [group](crate::TaskGroup) is a blocking region by itself, as are
/// [`complete`](crate::ThreadPool::complete) while its future waits and a submission that waits for room in the queue of
/// its pool or for a place in its group. Inside of another region, in worker hooks, and outside of
/// workers, it does nothing but call `f`.
///
/// Entering starts no thread if nothing is queued. If the system refuses the thread that would be needed, `f` is called
/// all the same; the next submission, or the next worker that blocks, tries again. After the region the pool has one
/// runnable worker too many until the next one ends its task, and leaves.
///
/// A panic of `f` ends the region and goes on.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// // One runnable worker, and still the second task runs while the first one waits for it.
/// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
/// let (sender, receiver) = mpsc::channel();
/// let first = pool.evaluate(move || elastipool::blocking(|| receiver.recv()));
/// pool.execute(move || sender.send(42).unwrap());
/// assert_eq!(first.await_complete(), Ok(42));
/// ```
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    let _region = Region::enter();
    f()
}

/// Blocks the calling thread until the future is ready, or until `deadline`; a worker in a blocking region.
///
/// Without an executor: it may be used inside of another one's `block_on`, and so may another one's inside of it.
pub(crate) fn wait_for<F: Future>(
    mut future: Pin<&mut F>,
    deadline: Option<Instant>,
) -> Option<F::Output> {
    // A parker of its own for each wait: with one per thread, a wait inside of a poll of an outer
    // wait would take the outer one's signal.
    let parker = Arc::new(Parker::new());
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    let mut in_time = true;
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return Some(output),
            // Polled once more after the deadline: it may have come in the last moment.
            Poll::Pending if !in_time => return None,
            Poll::Pending => {}
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return None;
        }
        // A worker does not wait outside of a region: it may be waiting for whoever is to take its place.
        if !is_on_duty() {
            parker.spin();
        }
        // A future that yields has woken itself: there is nothing to wait for.
        if parker.try_park() == Some(Signal::Unparked) {
            continue;
        }
        // Only while it waits: polling may be work.
        let mut region = Region::enter_to_park(&parker);
        in_time = region.park(&parker, deadline) != Signal::Expired;
    }
}

/// The calling thread is in a blocking region until this is dropped.
pub(crate) struct Region {
    /// Whose worker the caller is.
    employer: Option<Arc<dyn Employer>>,
    /// Another pool that the wait depends on.
    pool: Option<Arc<dyn Employer>>,
    duty: Duty,
    waits_for_own: bool,
    /// Whether the worker counts as away: not outside of workers, and not by a region in a region.
    is_counted: bool,
    /// Whether a thread was refused that would be needed.
    is_starved: bool,
    attending: Option<Arc<Parker>>,
}

impl Region {
    fn enter() -> Self {
        Region::enter_with(None, None)
    }

    /// For a wait with [`park`](Self::park): `parker` is also told when the system refuses a thread.
    pub(crate) fn enter_to_park(parker: &Arc<Parker>) -> Self {
        Region::enter_with(Some(parker), None)
    }

    /// For a wait that depends on `pool`, also if the caller is no worker.
    pub(crate) fn enter_to_wait_for(pool: Arc<dyn Employer>, parker: &Arc<Parker>) -> Self {
        Region::enter_with(Some(parker), Some(pool))
    }

    fn enter_with(parker: Option<&Arc<Parker>>, pool: Option<Arc<dyn Employer>>) -> Self {
        let post = post().filter(|post| match post.duty {
            Duty::Tasks => true,
            // Each worker that was started in its place would be in the same hook. What it waits for may be a task of
            // the pool, though.
            Duty::StartHook => parker.is_some() && post.employer.may_wait_in_hook(),
        });
        let own = post.as_ref().map(|post| address(&post.employer));
        let waits_for_own = own.is_some() && own == pool.as_ref().map(address);
        let pool = pool.filter(|_| !waits_for_own);
        let mut region = Region {
            employer: post.as_ref().map(|post| Arc::clone(&post.employer)),
            pool,
            duty: post.as_ref().map_or(Duty::Tasks, |post| post.duty),
            waits_for_own,
            is_counted: post.as_ref().is_some_and(|post| !post.in_region),
            is_starved: false,
            attending: parker.cloned(),
        };
        // First of all: a refusal that comes after this is heard.
        if let Some(parker) = parker {
            region.attended().for_each(|employer| employer.attend(parker));
        }
        if region.is_counted {
            mark(true);
            if let Some(Post { employer, duty, .. }) = post {
                region.is_starved = !employer.enter_region(duty);
            }
            // The other pool, if there is one, has to be asked as well.
            region.is_starved |= region.pool.clone().is_some_and(|pool| !pool.retry());
        } else if region.attending.is_some() {
            // Nobody has asked for a thread since it was refused: whoever entered the outer region does not.
            region.retry();
        }
        region
    }

    /// Those who may have to be asked for a thread again.
    fn attended(&self) -> impl Iterator<Item = &Arc<dyn Employer>> {
        self.employer.iter().chain(&self.pool)
    }

    fn retry(&mut self) {
        // All of them, whatever the first one says.
        let refused = self.attended().filter(|employer| !Arc::clone(employer).retry()).count();
        self.is_starved = refused > 0;
    }

    /// Whether the caller is a worker of the pool that it waits for.
    pub(crate) fn waits_for_own(&self) -> bool {
        self.waits_for_own
    }

    /// Whether the system has refused a thread while the calling worker was in this region.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Parks once: a nudge says that a thread was refused.
    pub(crate) fn park_once(&mut self, parker: &Parker, deadline: Option<Instant>) -> Signal {
        let signal = parker.park(deadline);
        self.is_starved |= signal == Signal::Nudged;
        signal
    }

    /// Parks until the parker is unparked or the deadline is over. If a thread is refused meanwhile, asks for
    /// it again, after a pause that grows: what the caller waits for may depend on it, and there may be
    /// nobody else to do it.
    pub(crate) fn park(&mut self, parker: &Parker, deadline: Option<Instant>) -> Signal {
        let mut pauses = Pauses::new();
        let mut retry_at = None;
        loop {
            if self.is_starved && retry_at.is_none() {
                retry_at = Some(Instant::now() + pauses.next());
            }
            let until = match (deadline, retry_at) {
                (Some(deadline), Some(retry_at)) => Some(cmp::min(deadline, retry_at)),
                (deadline, retry_at) => deadline.or(retry_at),
            };
            match self.park_once(parker, until) {
                Signal::Nudged => {}
                Signal::Expired if until != deadline => {
                    retry_at = None;
                    self.retry();
                }
                signal => return signal,
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(parker) = self.attending.take() {
            self.attended().for_each(|employer| employer.unattend(&parker));
        }
        if let (Some(employer), true) = (self.employer.take(), self.is_counted) {
            mark(false);
            employer.exit_region(self.duty);
        }
    }
}

/// To compare: two references to the same pool are the same.
fn address(employer: &Arc<dyn Employer>) -> usize {
    Arc::as_ptr(employer).addr()
}
