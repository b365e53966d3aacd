//! Views of a pool: handles whose tasks have a priority, a weight, a limit, a reserve or a queue
//! timeout of their own.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::builder::built;
use crate::error::BuildError;
use crate::pool::ThreadPool;
use crate::priority::Priority;
use crate::views::{Terms, ViewCore, ViewHandle};
use crate::wait::enable_wrapping;

/// A handle of a pool whose tasks are scheduled by settings of their own. Built by
/// [`ThreadPool::view`].
///
/// A view is a way into the pool, not a pool: it has no threads, and the workers run tasks of all
/// views. It dereferences to a [`ThreadPool`] and so offers every way of submitting: closures,
/// futures, scopes, groups and handlers. Whatever is made from the view's handle submits to the
/// view. A future is always polled as a task of the view that spawned it. A task that submits work
/// chooses the view by the handle that it uses. Tasks that are submitted through a plain handle of
/// the pool belong to the default view: of normal priority and weight 1, without a limit, a reserve
/// or a timeout.
///
/// ```
/// use std::time::Duration;
/// use elastipool::{Priority, ThreadPool};
///
/// let pool = ThreadPool::new(2, 4, Duration::from_secs(5));
/// // At most two workers run reports, and requests always find a worker.
/// let reports = pool.view().name("reports").priority(Priority::Low).limit(2).build();
/// let requests = pool.view().name("requests").reserve(1).build();
///
/// reports.execute(|| println!("long"));
/// assert_eq!(requests.evaluate(|| 6 * 7).await_complete(), 42);
///
/// let group = reports.group::<()>(); // a group of reports that cannot fail
/// group.execute(|| Ok(println!("one of several"))).unwrap();
/// group.wait().unwrap();
/// pool.shutdown_join(); // waits for all reports
/// ```
///
/// # What concerns the view, and what the pool
///
/// | call through the view | concerns |
/// |---|---|
/// | submitting in any form, [`ready`](ThreadPool::ready), [`scope`](ThreadPool::scope), [`group`](ThreadPool::group), [`handler`](ThreadPool::handler), [`downgrade`](ThreadPool::downgrade) | the view |
/// | [`join`](ThreadPool::join), [`join_timeout`](ThreadPool::join_timeout), [`quiet`](ThreadPool::quiet) | the view's tasks. In a task of the pool, of any view, they do what `join` of the pool does |
/// | [`close`](ThreadPool::close) | the view: it accepts no more tasks, through any of its handles. Other views stay open |
/// | [`is_closed`](ThreadPool::is_closed) | the view: `true` if it or the pool was closed |
/// | [`queued_count`](ThreadPool::queued_count), [`stats`](ThreadPool::stats) | the view's tasks. Those of the pool count the tasks of all views. The fields of `stats` about workers and threads are the pool's |
/// | [`name`](Self::name) | the view; [`ThreadPool::name`] is the pool's |
/// | the settings, such as [`set_limit`](Self::set_limit) | the view, while it lives |
/// | [`pause`](ThreadPool::pause), [`resume`](ThreadPool::resume), [`is_paused`](ThreadPool::is_paused) | the view. On a handle of the pool they concern the default view |
/// | [`join_running`](ThreadPool::join_running), [`join_running_timeout`](ThreadPool::join_running_timeout), [`running_ended`](ThreadPool::running_ended) | as `pause`: the view, or the default view. In a task of the pool, of any view, they refuse as `join` does |
/// | sizes and their setters, worker counts, [`start_core_threads`](ThreadPool::start_core_threads), [`shutdown_now`](ThreadPool::shutdown_now), [`terminated`](ThreadPool::terminated) | the pool, and so all views |
/// | `shutdown`, `shutdown_join`, `shutdown_join_timeout` | the pool. They consume a [`ThreadPool`], so they cannot be called through a view |
/// | [`view`](ThreadPool::view) | the pool: the new view is not part of this one |
///
/// A view's handle keeps the pool open, as every handle does. Dropping a view closes nothing: its
/// accepted tasks run. Once no handle, task, future or weak handle of a view is left, its reserve
/// is free for others. (A task that has ended does not count, also if one of its wakers or its
/// handle is kept.)
///
/// # How tasks are chosen
/// A worker that has ended a task takes the next one of the highest
/// [priority](ViewBuilder::priority) with queued tasks, and among views of the same priority by
/// [weight](ViewBuilder::weight). Within a view, woken futures come before new tasks, with the
/// exceptions that [`spawn`](ThreadPool::spawn) lists, and tasks that one thread submits from
/// outside the pool are taken in the order of their submission, but for futures in a pool that
/// [measures](crate::Growth::Measured), which wait for no closures. Running tasks are not
/// interrupted.
///
/// - **A worker in a [blocking region](crate::blocking())** counts for no limit and no reserve.
///   Beyond [`max_blocked`](crate::Builder::max_blocked) it is not replaced either, and may be one
///   of the workers that a reserve counts on.
/// - **At the end of the region** it waits in line until its view may have one more worker. If no
///   worker leaves the line for a while, the first one continues anyway, then two, then four,
///   because running tasks may need what it holds, such as a lock. In no other case is a limit
///   exceeded, or a reserve used by other views.
/// - **A task that a waiting worker runs on its own stack** counts for the view of that task. It
///   runs none of a view that may have no more workers: another one does later. Of a paused view it
///   waits for the place itself, in a wait without a limit for this task alone, or for its scope or
///   group.
/// - **A task does not count** if it runs outside the workers, on the thread that submitted it or
///   opened its scope, or was taken before the pool had its first view.
///
/// A pool that has had no view pays nothing for views. Nor do the tasks of the pool itself, in one
/// that has, while no view has a task that may start. A take of a view's task, and beside such
/// tasks each take, takes a lock and looks at each view that has queued tasks: a few dozen of those
/// cost little, thousands do.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "dropping a view that nothing else refers to gives its reserve back"]
pub struct View(pub(crate) ThreadPool);

impl View {
    /// Returns the view's name.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.view().name("reports").build().name(), "reports");
    /// ```
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    fn inner(&self) -> &ViewCore {
        let Some(view) = &self.0.view else { unreachable!("built with its view") };
        view
    }

    fn terms(&self) -> Terms {
        self.shared().policy.terms(self.inner().id)
    }

    fn change(&self, change: impl Fn(&mut Terms)) -> Result<(), BuildError> {
        self.shared().change_view(self.inner().id, &change)
    }
}

/// # Settings of a live view
///
/// Each setter changes the view for all of its handles, and does not interrupt running tasks.
/// Setters block only while they start threads.
impl View {
    /// Returns how many workers may run the view's tasks at the same time. `None`: no limit.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.view().limit(2).build().limit(), Some(2));
    /// ```
    pub fn limit(&self) -> Option<usize> {
        Some(self.terms().limit).filter(|&limit| limit < usize::MAX)
    }

    /// Changes the view's [`limit`](ViewBuilder::limit). If it grows, queued tasks start at once.
    /// If it shrinks, no task starts until fewer than the new limit run. `usize::MAX` means no
    /// limit.
    ///
    /// # Errors
    /// If it would be zero (to stop the view for a while, [`pause`](ThreadPool::pause) it) or below
    /// the view's reserve. The error names the values, and nothing changes.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let imports = pool.view().limit(1).build();
    /// imports.set_limit(4).unwrap(); // at night
    /// assert!(imports.set_limit(0).is_err());
    /// assert_eq!(imports.limit(), Some(4));
    /// ```
    pub fn set_limit(&self, limit: usize) -> Result<(), BuildError> {
        self.change(|terms| terms.limit = limit)
    }

    /// Returns how many workers tasks of other views leave free.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.view().reserve(1).build().reserve(), 1);
    /// ```
    pub fn reserve(&self) -> usize {
        self.terms().reserve
    }

    /// Changes the view's [`reserve`](ViewBuilder::reserve). If it shrinks, queued tasks of others
    /// start at once. It is free once enough running tasks of others have ended.
    ///
    /// # Errors
    /// If it would be above the view's limit, or if the reserves of all views would not leave at
    /// least one worker of [`max_size`](ThreadPool::max_size) to tasks without a reserve. The error
    /// names the values, and nothing changes.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(1, 4, std::time::Duration::from_secs(1));
    /// let requests = pool.view().reserve(1).build();
    /// requests.set_reserve(3).unwrap();
    /// let error = requests.set_reserve(4).unwrap_err();
    /// assert!(error.to_string().contains("max_size, which is 4"));
    /// assert_eq!(requests.reserve(), 3);
    /// ```
    pub fn set_reserve(&self, reserve: usize) -> Result<(), BuildError> {
        self.change(|terms| terms.reserve = reserve)
    }

    /// Returns how urgent the view's tasks are.
    ///
    /// ```
    /// use elastipool::{Priority, ThreadPool};
    ///
    /// assert_eq!(ThreadPool::default().view().build().priority(), Priority::Normal);
    /// ```
    pub fn priority(&self) -> Priority {
        self.terms().priority
    }

    /// Changes the view's [`priority`](ViewBuilder::priority), also for the tasks that are queued.
    ///
    /// ```
    /// use elastipool::{Priority, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// let reports = pool.view().priority(Priority::Low).build();
    /// reports.set_priority(Priority::High); // the auditor is here
    /// assert_eq!(reports.priority(), Priority::High);
    /// ```
    pub fn set_priority(&self, priority: Priority) {
        // A view may have any priority.
        _ = self.change(|terms| terms.priority = priority);
    }

    /// Returns the view's share among views of its priority.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.view().weight(3).build().weight(), 3);
    /// ```
    pub fn weight(&self) -> usize {
        self.terms().weight
    }

    /// Changes the view's [`weight`](ViewBuilder::weight), from the next take on.
    ///
    /// # Errors
    /// If it is zero. Then nothing changes.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let tenant = pool.view().build();
    /// tenant.set_weight(3).unwrap(); // has paid
    /// assert!(tenant.set_weight(0).is_err());
    /// assert_eq!(tenant.weight(), 3);
    /// ```
    pub fn set_weight(&self, weight: usize) -> Result<(), BuildError> {
        self.change(|terms| terms.weight = weight)
    }

    /// Returns for how long a task of the view may wait for its start. `None`: as long as it takes.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let requests = pool.view().queue_timeout(Duration::from_secs(2)).build();
    /// assert_eq!(requests.queue_timeout(), Some(Duration::from_secs(2)));
    /// ```
    pub fn queue_timeout(&self) -> Option<Duration> {
        self.terms().queue_timeout
    }

    /// Changes the view's [`queue_timeout`](ViewBuilder::queue_timeout) for the tasks that are
    /// submitted from now on. `None` means no timeout.
    ///
    /// # Errors
    /// If it is zero. Then nothing changes.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let requests = pool.view().build();
    /// requests.set_queue_timeout(Duration::from_secs(2)).unwrap();
    /// assert!(requests.set_queue_timeout(Duration::ZERO).is_err());
    /// assert_eq!(requests.queue_timeout(), Some(Duration::from_secs(2)));
    /// ```
    pub fn set_queue_timeout(
        &self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<(), BuildError> {
        enable_wrapping();
        // Before the lock: it may be the user's code.
        let timeout = timeout.into();
        self.change(|terms| {
            terms.queue_timeout = timeout;
            self.inner().may_expire.set(timeout.is_some());
        })
    }
}

impl Deref for View {
    type Target = ThreadPool;

    fn deref(&self) -> &ThreadPool {
        &self.0
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.inner();
        let Terms { priority, weight, limit, reserve, is_paused, queue_timeout } = self.terms();
        f.debug_struct("View")
            .field("name", &view.name)
            .field("pool", &self.0.name())
            .field("priority", &priority)
            .field("weight", &weight)
            .field("limit", &(limit < usize::MAX).then_some(limit))
            .field("reserve", &reserve)
            .field("queue_timeout", &queue_timeout)
            .field("queued", &self.queued_count())
            .field("is_paused", &is_paused)
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

/// # Views
impl ThreadPool {
    /// Begins to build a [`View`] of the pool: a handle whose tasks have a priority, a limit or a
    /// reserve of their own.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let imports = pool.view().name("imports").limit(1).build();
    /// for i in 0..3 {
    ///     imports.execute(move || println!("import {i}, one at a time"));
    /// }
    /// imports.join();
    /// assert_eq!(imports.stats().completed, 3);
    /// ```
    pub fn view(&self) -> ViewBuilder {
        ViewBuilder {
            pool: ThreadPool { handle: Arc::clone(&self.handle), view: None },
            name: None,
            terms: Terms::default(),
        }
    }
}

/// Configures and builds a [`View`]. Returned by [`ThreadPool::view`]. Each setting is optional.
///
/// | setting | default |
/// |---|---|
/// | [`name`](Self::name) | `{pool}/1`, `{pool}/2`, ... |
/// | [`priority`](Self::priority) | [`Priority::Normal`] |
/// | [`weight`](Self::weight) | 1 |
/// | [`limit`](Self::limit) | no limit |
/// | [`reserve`](Self::reserve) | 0 |
/// | [`queue_timeout`](Self::queue_timeout) | no timeout |
///
/// ```
/// use elastipool::{Priority, ThreadPool};
///
/// let pool = ThreadPool::default();
/// let reports = pool.view().name("reports").priority(Priority::Low).limit(2).build();
/// reports.execute(|| println!("a report"));
/// reports.join();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a view exists only once it is built"]
pub struct ViewBuilder {
    pool: ThreadPool,
    name: Option<String>,
    terms: Terms,
}

impl ViewBuilder {
    /// Sets the view's name, for [`View::name`] and `Debug`.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().name("main").build();
    /// assert_eq!(pool.view().name("reports").build().name(), "reports");
    /// assert_eq!(pool.view().build().name(), "main/2");
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how urgent the view's tasks are. Workers take tasks of a higher priority first. Of a
    /// lower priority with tasks that may run, they still take at least one task in 20.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use elastipool::{Priority, ThreadPool};
    ///
    /// let pool = ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let urgent = pool.view().priority(Priority::High).build();
    /// let (open, gate) = mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the only worker
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let (sender, order) = mpsc::channel();
    /// let second = sender.clone();
    /// pool.execute(move || second.send("second").unwrap());
    /// urgent.execute(move || sender.send("first").unwrap());
    /// open.send(()).unwrap();
    /// assert_eq!(order.iter().collect::<Vec<_>>(), ["first", "second"]);
    /// ```
    pub fn priority(mut self, priority: Priority) -> Self {
        self.terms.priority = priority;
        self
    }

    /// Sets the view's share among views of its priority. While several of them have queued tasks,
    /// they share the takes in proportion to their weights, however many tasks each has queued. A
    /// view gets nothing in return for times in which it had no task that could be taken.
    ///
    /// The shares are numbers of takes, not times: a view with longer tasks gets more time.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let paying = pool.view().name("paying").weight(3).build();
    /// let free = pool.view().name("free").build();
    /// for _ in 0..100 {
    ///     free.execute(|| println!("one take in four, while both have tasks"));
    ///     paying.execute(|| println!("three takes in four"));
    /// }
    /// pool.join();
    /// ```
    pub fn weight(mut self, weight: usize) -> Self {
        self.terms.weight = weight;
        self
    }

    /// Sets how many workers may run the view's closures and poll its futures at the same time. The
    /// tasks above stay queued. [Blocked](crate::blocking()) workers do not count.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// static RUNNING: AtomicUsize = AtomicUsize::new(0);
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let imports = pool.view().limit(1).build();
    /// for _ in 0..100 {
    ///     imports.execute(|| {
    ///         assert_eq!(RUNNING.fetch_add(1, Ordering::Relaxed), 0);
    ///         RUNNING.fetch_sub(1, Ordering::Relaxed);
    ///     });
    /// }
    /// imports.join();
    /// assert_eq!(imports.stats().panicked, 0);
    /// ```
    pub fn limit(mut self, limit: usize) -> Self {
        self.terms.limit = limit;
        self
    }

    /// Reserves capacity: tasks of other views never occupy more than `max_size - reserve` workers.
    /// So up to `reserve` tasks of this view always find a worker. Under
    /// [`Growth::Measured`](crate::Growth::Measured) the reserve comes on top of the number of
    /// workers that measurements allow.
    ///
    /// A [bounded queue](crate::Builder::queue_capacity) is the pool's: tasks of other views that
    /// wait there may leave no capacity to this view's.
    ///
    /// It reserves capacity, not threads: the worker is woken or started when there is a task for
    /// it, and ends after `keep_alive`. When a view is built, tasks that run already are not
    /// interrupted.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(0, 2, Duration::from_secs(1));
    /// let requests = pool.view().reserve(1).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // on the one worker that others may occupy
    /// pool.execute(|| println!("waits for the first one"));
    /// assert_eq!(requests.evaluate(|| 6 * 7).await_complete(), 42);
    /// open.send(()).unwrap();
    /// ```
    pub fn reserve(mut self, reserve: usize) -> Self {
        self.terms.reserve = reserve;
        self
    }

    /// Sets for how long a task may wait for its start. A task that no worker has started in time
    /// is never run: its closure or future is dropped, its handle resolves to an error that [is
    /// expired](crate::JoinError::is_expired), and [`Stats::expired`](crate::Stats::expired) counts
    /// it.
    ///
    /// - The time counts from the submission. In a bounded queue, it counts from the acceptance.
    ///   For a task that waits for a slot of its [group](crate::TaskGroup) it includes that wait.
    /// - Of a future, only the first poll must come in time.
    /// - A blocking wait for the handle returns at the deadline, and drops the task, as does
    ///   [`cancel`](crate::JoinHandle::cancel). An awaited handle, and one in a
    ///   [`JoinSet`](crate::JoinSet), resolves when a worker reaches the task, which drops it. Until
    ///   then the task is queued and counts as accepted work.
    /// - A task of a [group](crate::TaskGroup) that expires counts as dropped. Without a handle it
    ///   cancels the group.
    /// - A [scope](ThreadPool::scope) panics if one of its tasks without a handle expires.
    ///
    /// A timeout too long for the clock never ends.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let requests = pool.view().queue_timeout(Duration::from_millis(1)).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the only worker
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let late = requests.evaluate(|| println!("never printed"));
    /// assert!(late.try_await_complete().unwrap_err().is_expired());
    /// open.send(()).unwrap();
    /// pool.join();
    /// assert_eq!(requests.stats().expired, 1);
    /// ```
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        enable_wrapping();
        self.terms.queue_timeout = Some(timeout);
        self
    }

    /// Builds the view. Does not block.
    ///
    /// # Panics
    /// If a setting is invalid, with the text of the error that [`try_build`](Self::try_build)
    /// returns.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let requests = pool.view().name("requests").build();
    /// assert_eq!(requests.evaluate(|| 6 * 7).await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn build(self) -> View {
        built(self.try_build())
    }

    /// Builds the view. Does not block. A view of a closed pool can be built, and accepts no task.
    ///
    /// # Errors
    /// If the limit, the weight or the queue timeout is zero, if the limit is below the reserve, or
    /// if the reserves of all views would not leave at least one worker of
    /// [`max_size`](ThreadPool::max_size) to tasks without a reserve. The error names the values.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(1, 2, std::time::Duration::from_secs(1));
    /// let error = pool.view().limit(1).reserve(2).try_build().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the limit of the view is 1; it must be at least its reserve, which is 2"
    /// );
    /// assert!(pool.view().reserve(2).try_build().is_err());
    /// assert!(pool.view().reserve(1).try_build().is_ok());
    /// ```
    pub fn try_build(self) -> Result<View, BuildError> {
        let ViewBuilder { mut pool, name, terms } = self;
        let id = pool.shared().add_view(terms)?;
        let name = name.unwrap_or_else(|| format!("{}/{}", pool.name(), id.0));
        let core = ViewCore::new(id, name, pool.shared());
        core.may_expire.set(terms.queue_timeout.is_some());
        pool.view = Some(ViewHandle::new(Arc::new(core)));
        Ok(View(pool))
    }
}
