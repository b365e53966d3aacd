//! Controlling a pool: waiting, closing, resizing, inspecting. Two thirds of the file are
//! documentation.

use std::future::poll_fn;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::crew::MAX_WORKERS;
use crate::error::BuildError;
use crate::handed_back::Task;
use crate::pool::ThreadPool;
use crate::report::Report;
use crate::sched::{Caller, Route, relayed};
use crate::stats::Stats;
use crate::sync::unwind::quietly;
use crate::task::{Action, Withdrawal};
use crate::views::ViewJob;
use crate::worker_index::worker_index;

/// # Waiting
impl ThreadPool {
    /// Blocks until the pool is quiet: until, at some moment after the call, no accepted task is
    /// queued or running, no spawned future is pending, and no [permit](crate::Permit) is held.
    /// What those tasks wrote is then visible to the caller.
    ///
    /// Tasks submitted meanwhile count too. The pool stays open. On a [`View`](crate::View), or on
    /// a clone of its handle, this waits for the tasks of that view only.
    ///
    /// The destructors of a worker's thread-locals may call this: the worker has left the pool by
    /// then. Not on Windows: there no thread starts or exits while such a destructor runs, so a
    /// wait in it [may never end](std::thread::LocalKey#platform-specific-behavior).
    ///
    /// # Panics
    /// If one of the pool's own tasks or worker hooks calls it: it would wait for itself. While the
    /// thread unwinds, a second panic would abort the process. So in a destructor that runs while
    /// such a task or hook unwinds, `join` returns at once, without waiting.
    ///
    /// The same holds if it is called while queued tasks that it would wait for are
    /// [paused](Self::pause): it would wait until another thread calls `resume`. To wait for the
    /// end of what runs, use [`join_running`](Self::join_running). A `join` that was called before
    /// the pause goes on to wait.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let count = Arc::new(AtomicUsize::new(0));
    /// for _ in 0..100 {
    ///     let count = Arc::clone(&count);
    ///     pool.execute(move || { count.fetch_add(1, Ordering::Relaxed); });
    /// }
    /// pool.join();
    /// assert_eq!(count.load(Ordering::Relaxed), 100);
    /// ```
    #[track_caller]
    pub fn join(&self) {
        if self.would_wait_for_caller(false) {
            return self.panic_unless_unwinding("join");
        }
        if self.shared().has_paused_work(self.view.as_deref()) {
            return self.panic_if_paused();
        }
        self.route().in_flight().wait_quiet(None);
    }

    /// Like [`join`](Self::join), but blocks for at most `timeout`. Returns whether the pool was
    /// quiet in time.
    ///
    /// Does not panic. If one of the pool's own tasks or worker hooks calls it, it returns `false`
    /// at once.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// assert!(!pool.join_timeout(Duration::from_millis(1)));
    /// open.send(()).unwrap();
    /// assert!(pool.join_timeout(Duration::from_secs(60)));
    /// ```
    #[must_use = "`false` says that the tasks have not ended"]
    pub fn join_timeout(&self, timeout: Duration) -> bool {
        !self.would_wait_for_caller(false)
            && self.route().in_flight().wait_quiet(Instant::now().checked_add(timeout))
    }

    /// Waits as [`join`](Self::join) does, without blocking the thread. Works on any executor. On a
    /// [`View`](crate::View), this waits for the tasks of that view only.
    ///
    /// The wait begins with the first poll. Dropping the future ends it, and has no effect on the
    /// tasks. The future borrows the handle: for a spawned task, move a clone into it, as in
    /// `async move { pool.quiet().await }`. While queued tasks are [paused](Self::pause), it waits
    /// until they have been resumed, and have ended. Its waker [should return soon](Self::ready).
    ///
    /// # Panics
    /// If one of the pool's own tasks or worker hooks awaits it: it would wait for itself. Also if
    /// an executor first polls it inside of a wake, on a thread of the pool.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let pool = elastipool::ThreadPool::default();
    /// futures::executor::block_on(async {
    ///     pool.execute(|| std::thread::sleep(Duration::from_millis(1)));
    ///     pool.quiet().await;
    ///     assert_eq!(pool.stats().completed, 1);
    /// });
    /// ```
    pub async fn quiet(&self) {
        if self.would_wait_for_caller(false) {
            return self.panic_unless_unwinding("quiet");
        }
        if let Some(quiet) = self.route().in_flight().begin_wait() {
            relayed(self.shared(), quiet).await;
        }
    }
}

/// # Closing
impl ThreadPool {
    /// Closes the pool, for all handles: it accepts no more tasks. It still runs everything
    /// accepted before, including futures that wait to be woken and tasks that are
    /// [paused](Self::pause); then the workers end. Blocks only while it starts a thread for paused
    /// tasks. On a [`View`](crate::View), or on a clone of its handle, this closes that view only,
    /// and the workers stay.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.evaluate(|| 1);
    /// pool.close();
    /// assert!(pool.try_execute(|| ()).is_err());
    /// assert_eq!(handle.await_complete(), 1);
    /// ```
    pub fn close(&self) {
        match &self.view {
            Some(view) => self.shared().close_view(view),
            None => self.shared().close(),
        }
    }

    /// Returns whether the pool has been closed.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert!(!pool.is_closed());
    /// pool.close();
    /// assert!(pool.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared().in_flight.is_closed()
            || self.view.as_ref().is_some_and(|view| view.in_flight.is_closed())
    }

    /// Drops this handle. If it is the last one, the pool closes and ends in the background. Blocks
    /// only while it starts a thread for [paused](Self::pause) tasks.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.evaluate(|| 6 * 7);
    /// pool.shutdown();
    /// assert_eq!(handle.await_complete(), 42); // was accepted before
    /// ```
    pub fn shutdown(self) {
        drop(self);
    }

    /// Drops this handle and blocks until the pool is quiet. If no other handle is left by then, or
    /// the pool was closed, it also blocks until all threads of the pool have exited. Their stop
    /// hooks and the destructors of their thread-locals have run then.
    ///
    /// The last handle resumes what is [paused](Self::pause). While other handles exist, paused
    /// tasks keep this call waiting until another thread resumes them; unlike [`join`](Self::join),
    /// it does not panic. If such a task holds the only other handle, call `resume` before.
    ///
    /// Several threads may call this at the same time, each with its own handle.
    ///
    /// A worker may call this in its stop hook, also while the hook unwinds, and in the destructors
    /// of its thread-locals. There it blocks until every other thread of the pool has exited or
    /// waits in such a call too. On Windows no thread exits while the destructor of a thread-local
    /// runs, so [call it elsewhere](std::thread::LocalKey#platform-specific-behavior).
    ///
    /// # Panics
    /// If one of the pool's own tasks or start hooks calls it: it would wait for itself. The handle
    /// is dropped nevertheless: if it is the last one, the pool closes and ends in the background.
    /// While the thread unwinds, a second panic would abort the process. So in a destructor that
    /// runs while such a task or hook unwinds, `shutdown_join` drops the handle and returns at
    /// once.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| println!("the last task"));
    /// pool.shutdown_join();
    /// // No thread of the pool exists any more.
    /// ```
    #[track_caller]
    pub fn shutdown_join(self) {
        if self.would_wait_for_caller(true) {
            return self.panic_unless_unwinding("shutdown_join");
        }
        self.shut_down(None);
    }

    /// Like [`shutdown_join`](Self::shutdown_join), but blocks for at most `timeout`. Returns
    /// whether the shutdown was complete in time; otherwise it continues in the background.
    ///
    /// Does not panic. If one of the pool's own tasks or start hooks calls it, it drops the handle
    /// and returns `false` at once. So a destructor may call it on any thread:
    ///
    /// ```
    /// use std::time::Duration;
    /// use elastipool::ThreadPool;
    ///
    /// struct Service {
    ///     pool: Option<ThreadPool>,
    /// }
    ///
    /// impl Drop for Service {
    ///     fn drop(&mut self) {
    ///         let pool = self.pool.take().expect("it is taken once");
    ///         if !pool.shutdown_join_timeout(Duration::from_secs(5)) {
    ///             eprintln!("the service ends in the background");
    ///         }
    ///     }
    /// }
    /// # drop(Service { pool: Some(ThreadPool::default()) });
    /// ```
    #[must_use = "`false` says that the threads have not exited"]
    pub fn shutdown_join_timeout(self, timeout: Duration) -> bool {
        !self.would_wait_for_caller(true) && self.shut_down(Instant::now().checked_add(timeout))
    }

    /// Waits until the pool has been closed, all of its tasks have ended and all of its threads
    /// have exited, without blocking the calling thread. Works on any executor. It is the form of
    /// [`shutdown_join`](Self::shutdown_join) for async code, but does not close the pool: call
    /// [`close`](Self::close) or [`shutdown_now`](Self::shutdown_now). Dropping the future ends the
    /// wait. It borrows the handle.
    ///
    /// The first poll starts the pool's helper, a thread named `{name}-helper`, unless it runs
    /// already. When all other threads have exited, it wakes all such futures and exits. Each of
    /// them joins it, which may block for the few microseconds that the others' wakers and the end
    /// of a thread take. `shutdown_join` waits for it too, also if no such future is left. If the
    /// system refuses that thread, the keeper wakes the futures in its place. In a pool without a
    /// worker, which has no keeper, such a poll blocks for a millisecond, and the future wakes
    /// itself and tries again. A future that is polled inside of that wake does not wait for the
    /// thread that wakes it.
    ///
    /// # Panics
    /// If one of the pool's own tasks or hooks awaits it: it would wait for itself. In a stop hook,
    /// and in the destructor of a worker's thread-local, where a panic aborts the process, call
    /// `shutdown_join`. Also if an executor first polls it inside of a wake, on a thread of
    /// the pool.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| println!("the last task"));
    /// pool.close();
    /// futures::executor::block_on(pool.terminated());
    /// // Every thread of the pool has exited.
    /// ```
    pub async fn terminated(&self) {
        let shared = self.shared();
        if Caller::of(shared) != Caller::Outside {
            return self.panic_unless_unwinding("terminated");
        }
        if let Some(end) = poll_fn(|context| shared.poll_begin_end_wait(context)).await {
            // It is sent before the sender is dropped.
            let _ = end.await;
            shared.registry.wait_gone(Caller::of(shared).leaving(), None);
        }
    }

    /// Closes the pool and returns the queued tasks instead of running them. Does not block. The
    /// first tasks returned are those from outside the pool, in the order of their submission; in a
    /// pool that [measures](crate::Growth::Measured) the spawned futures come before the closures.
    /// Most of the tasks that tasks submitted follow. (Behind these come tasks that workers have
    /// put back, since the pool was paused or a view's task came first.)
    ///
    /// - Running tasks are not interrupted. [`shutdown_join`](Self::shutdown_join) waits for them.
    /// - Spawned futures that were polled before are cancelled. A worker drops them, not the
    ///   caller, which may hold a lock that their destructors take. So they wait until a worker is
    ///   free or one enters a [blocking region](crate::blocking()), and those of a view also until
    ///   fewer of its tasks run than its [limit](crate::ViewBuilder::limit). A future that is being
    ///   polled is dropped at the end of that poll. The handles resolve after that drop.
    /// - Spawned futures that were never polled are among the returned tasks.
    /// - Queued tasks of a [`scope`](Self::scope) or a [`group`](Self::group) are dropped, not
    ///   returned. The wait for the scope or group reports it.
    /// - A task that another thread submits at the same time is handed back, returned, or run.
    /// - Tasks of all [views](crate::View) are returned, those of each view in the order of their
    ///   submission; in a pool that measures its spawned futures follow its closures. A task that
    ///   [expires](crate::ViewBuilder::queue_timeout) does so also after it was handed back.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let queued = pool.evaluate(|| println!("never printed"));
    /// let tasks = pool.shutdown_now();
    /// assert_eq!(tasks.len(), 1);
    /// drop(tasks);
    /// assert!(queued.try_await_complete().unwrap_err().is_cancelled());
    /// open.send(()).unwrap();
    /// pool.shutdown_join();
    /// ```
    #[must_use = "dropping the tasks cancels them"]
    pub fn shutdown_now(&self) -> Vec<Task> {
        let shared = self.shared();
        shared.refuse_tasks();
        // First the pending futures: they enter the queue as cancelled, for a worker to drop them.
        for future in shared.pending.shut().flat_map(|mut futures| futures.drain()) {
            if let Some(future) = future.upgrade() {
                // Contained: this wakes what awaits the future's handle.
                quietly(|| future.cancel());
            }
        }
        shared.stops.increment();
        for observer in &shared.observers {
            observer.forget_queued();
        }
        let (mut tasks, mut started) = (Vec::new(), Vec::new());
        shared.drain(|ViewJob { job, view }| {
            let route = Route { shared, view: view.as_ref() };
            match job.withdraw() {
                Withdrawal::HandBack => {
                    tasks.push(Task::new(job, Arc::clone(shared)));
                    route.hand_back();
                }
                Withdrawal::Cancel => started.push(ViewJob { job, view }),
                Withdrawal::Abandon => route.advance_on_caller(job, Action::Abandon),
            }
        });
        // A worker drops them: the caller may hold a lock that their destructors take.
        for ViewJob { job, view } in started {
            let route = Route { shared, view: view.as_ref() };
            if let Err(job) = route.requeue(job) {
                route.run_on_caller(job);
            }
        }
        // Last: no worker was to start a task of a paused view before it was handed back.
        shared.resume_all();
        tasks
    }

    fn shut_down(self, deadline: Option<Instant>) -> bool {
        let shared = Arc::clone(self.shared());
        let leaving = Caller::of(&shared).leaving();
        drop(self);
        // A worker in its stop hook waits for the other threads only. They end when no work is
        // left, so it need not wait for quiet.
        let wait_quiet = || leaving.is_some() || shared.in_flight.wait_quiet(deadline);
        if !wait_quiet() {
            return false;
        }
        // Read after the pool was quiet: a task may have dropped the last handle.
        if !shared.in_flight.is_closed() {
            return true;
        }
        // The pool may have accepted a task between that quiet moment and the close.
        wait_quiet() && shared.registry.wait_gone(leaving, deadline)
    }

    /// Whether the caller belongs to the pool, so that its wait for the pool would wait for itself.
    fn would_wait_for_caller(&self, stop_hook_may: bool) -> bool {
        match Caller::of(self.shared()) {
            Caller::Outside => false,
            Caller::Busy => true,
            // Without an index the worker is past its stop hook, in the destructor of a
            // thread-local. Nothing waits for that code except the exit of its thread.
            Caller::Leaving(_) => !stop_hook_may && worker_index().is_some(),
        }
    }

    /// Panics, because `what` would wait for its own caller. Returns if the thread unwinds: a
    /// second panic would abort the process.
    #[track_caller]
    fn panic_unless_unwinding(&self, what: &str) {
        assert!(
            thread::panicking(),
            "`{what}` was called by one of the tasks or hooks of the pool `{}` itself: it would \
             wait for its own end. \
             Call it from a thread outside the pool, or wait for the handles of the tasks you depend on",
            self.name()
        );
    }

    /// Panics, because a join would wait for tasks of a paused view. Returns if the thread unwinds.
    #[track_caller]
    fn panic_if_paused(&self) {
        let (what, name) = match &self.view {
            Some(view) => ("the view", &*view.name),
            None if self.is_paused() => ("the pool", self.name()),
            None => ("a view of the pool", self.name()),
        };
        assert!(
            thread::panicking(),
            "`join` was called while queued tasks of {what} `{name}` are paused: it would wait \
             until another thread calls its \
             `resume`. Call `resume` first, or wait for the end of what runs with `join_running` or `running_ended`"
        );
    }
}

/// # Pausing
impl ThreadPool {
    /// Pauses the handle's view: workers start no queued task of it and poll none of its futures
    /// until it is [resumed](Self::resume). On a handle of the pool, that is the default view: the
    /// tasks that were submitted through the pool itself, and not those of its
    /// [views](crate::View). Does not block. What runs goes on to its end, also after a [blocking
    /// region](crate::blocking()). Submissions are accepted as before. In a [bounded
    /// queue](crate::Builder::queue_capacity) they may have to wait for capacity until the view is
    /// resumed.
    ///
    /// - **A task that is submitted after `pause` has returned does not start** on a worker before
    ///   `resume` is called. Of those that were queued before, the ones that workers are just
    ///   taking may start, or change places with each other.
    /// - **Not paused** is a task whose starter is not a free worker: a waiting task runs the task
    ///   that it [waits for](crate::guide::blocking#tasks-that-wait-for-tasks) itself (if the view is
    ///   at its limit, not in a wait with a timeout or deadline, nor for any of several), the thread
    ///   that waits at the end of a [scope](Self::scope) runs tasks of that scope, and a submitter
    ///   runs its task if the system refuses the pool's first thread.
    /// - **A closed pool or view cannot be paused**: everything that it has accepted must run. So a
    ///   call of `pause` on it does nothing, and [`close`](Self::close), as well as dropping the
    ///   last handle of the pool, resumes what is paused. [`shutdown_now`](Self::shutdown_now)
    ///   returns the queued tasks first.
    /// - **A wait from outside the pool** for a paused task's handle, for its group, or for its
    ///   result of [`map`](Self::map) or [`JoinSet`](crate::JoinSet) waits until the view is
    ///   resumed, without a message. Only `join` panics.
    /// - [`queue_timeout`](crate::ViewBuilder::queue_timeout) goes on: tasks expire while they are
    ///   paused. So does [`stall_report`](crate::Builder::stall_report).
    /// - Keep a handle of a paused view. Without one only closing the pool lets its tasks run.
    ///
    /// From the first call on, takes cost as much as in a pool [with
    /// views](crate::View#how-tasks-are-chosen).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.pause();
    /// let answer = pool.evaluate(|| 6 * 7);
    /// assert!(!answer.is_finished());
    /// pool.resume();
    /// assert_eq!(answer.await_complete(), 42);
    /// ```
    ///
    /// To wait until what runs has ended, call [`join_running`](Self::join_running) next.
    #[doc(alias("suspend", "halt"))]
    pub fn pause(&self) {
        let route = self.route();
        route.shared.expect_views();
        // Race 10: looked at under the lock, which a closer takes to resume after it has closed.
        // All that was accepted must run. Every view can be paused, so this is no error.
        _ = route.shared.change_view(route.view_id(), &|terms| terms.is_paused = !self.is_closed());
    }

    /// Resumes the handle's view after a [`pause`](Self::pause): its queued tasks start at once.
    /// Does nothing if it is not paused. Blocks only while it starts a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let imports = pool.view().build();
    /// imports.pause();
    /// imports.execute(|| println!("after the others"));
    /// assert_eq!(pool.evaluate(|| 6 * 7).await_complete(), 42); // other views go on
    /// imports.resume();
    /// imports.join();
    /// ```
    #[doc(alias = "unpause")]
    pub fn resume(&self) {
        _ = self.shared().change_view(self.route().view_id(), &|terms| terms.is_paused = false);
    }

    /// Returns whether the handle's view is [paused](Self::pause).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.pause();
    /// assert!(pool.is_paused() && !pool.view().build().is_paused());
    /// pool.close();
    /// assert!(!pool.is_paused()); // all accepted tasks run
    /// ```
    pub fn is_paused(&self) -> bool {
        self.shared().policy.terms(self.route().view_id()).is_paused
    }

    /// Blocks until none of the tasks of the handle's view runs: until, at some moment after the
    /// call, each task that was started has ended. What they wrote is then visible to the caller.
    /// Unlike [`join`](Self::join), it does not wait for queued tasks and pending futures. After a
    /// [`pause`](Self::pause) no worker starts a task before `resume`, so from then on nothing of
    /// the view runs:
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// for i in 0..10 {
    ///     pool.execute(move || println!("{i} reads the file"));
    /// }
    /// pool.pause();
    /// pool.join_running();
    /// assert_eq!(pool.stats().active, 0); // no task reads the file now: replace it
    /// pool.resume();
    /// pool.join();
    /// ```
    ///
    /// As with `pause`, a handle of the pool stands for the default view: for the tasks that were
    /// submitted through the pool itself. If the pool has views, pause each of them and wait for
    /// each.
    ///
    /// - **A task runs** from its start to its end, also while it is in a [blocking
    ///   region](crate::blocking()), and on whichever thread. A future runs while it is polled, and
    ///   while it is dropped. One that is pending, such as a future that waits for a timer, does
    ///   not.
    /// - **What a pause does not hold** may start later: the [list](Self::pause) says what. It
    ///   counts while it runs.
    /// - **Without a pause** the call waits for a moment at which nothing runs, which may not come
    ///   while tasks are queued.
    /// - **A running task that submits** to a [bounded queue](crate::Builder::queue_capacity) full of
    ///   paused tasks waits until the view is resumed, and this call waits for it. So does a task
    ///   that waits for a slot of a [group](crate::TaskGroup) whose tasks are paused, or for a future
    ///   that is. Where tasks do that, call [`join_running_timeout`](Self::join_running_timeout).
    ///
    /// From the first call on, takes cost as much as in a pool [with
    /// views](crate::View#how-tasks-are-chosen).
    ///
    /// # Panics
    /// If a task of the pool, of any view, or one of its worker hooks calls it: it might wait for
    /// itself. While the thread unwinds, it returns at once, without waiting.
    #[track_caller]
    #[doc(alias("drain", "quiesce"))]
    pub fn join_running(&self) {
        if self.would_wait_for_caller(false) {
            return self.panic_unless_unwinding("join_running");
        }
        self.route().running().wait_quiet(None);
    }

    /// Like [`join_running`](Self::join_running), but blocks for at most `timeout`. Returns whether
    /// nothing ran at some moment in that time.
    ///
    /// Does not panic. If a task of the pool or one of its worker hooks calls it, it returns
    /// `false` at once. Soon after the first pause or call in a pool without views it may return
    /// `false` although nothing runs: idle workers count until they have looked at the pause, which
    /// takes microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// let running = pool.evaluate(move || gate.recv().unwrap());
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// pool.pause();
    /// assert!(!pool.join_running_timeout(Duration::from_millis(1)));
    /// open.send(()).unwrap();
    /// assert!(pool.join_running_timeout(Duration::from_secs(60)));
    /// assert!(running.is_finished());
    /// ```
    #[must_use = "`false` says that tasks may run"]
    pub fn join_running_timeout(&self, timeout: Duration) -> bool {
        !self.would_wait_for_caller(false)
            && self.route().running().wait_quiet(Instant::now().checked_add(timeout))
    }

    /// Waits as [`join_running`](Self::join_running) does, without blocking the thread. Works on
    /// any executor.
    ///
    /// The wait begins with the first poll. Dropping the future ends it. It borrows the handle. Its
    /// waker [should return soon](Self::ready).
    ///
    /// # Panics
    /// If a task of the pool, of any view, or one of its worker hooks awaits it: it might wait for
    /// itself. Also if an executor first polls it inside of a wake, on a thread of the pool.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let imports = pool.view().name("imports").build();
    /// imports.execute(|| println!("before the maintenance, or after it"));
    /// futures::executor::block_on(async {
    ///     imports.pause();
    ///     imports.running_ended().await;
    ///     assert_eq!(imports.stats().active, 0);
    ///     imports.resume();
    /// });
    /// ```
    pub async fn running_ended(&self) {
        if self.would_wait_for_caller(false) {
            return self.panic_unless_unwinding("running_ended");
        }
        if let Some(ended) = self.route().running().begin_wait() {
            relayed(self.shared(), ended).await;
        }
    }
}

/// # Resizing
impl ThreadPool {
    /// The largest `core_size` and `max_size`: 1,048,575 (2²⁰ − 1) on a 64-bit machine, 511 on a
    /// 32-bit one. A larger size is a [`BuildError`]. Clamp sizes that users configure:
    ///
    /// ```
    /// use elastipool::ThreadPool;
    ///
    /// let configured = usize::MAX;
    /// let pool = ThreadPool::builder().max_size(configured.min(ThreadPool::MAX_SIZE)).build();
    /// assert_eq!(pool.max_size(), ThreadPool::MAX_SIZE);
    /// ```
    pub const MAX_SIZE: usize = MAX_WORKERS;

    /// Starts workers until there are [`core_size`](Self::core_size), and returns how many it
    /// started. Blocks while it starts threads.
    ///
    /// It stops at the first thread that the system refuses; later submissions start the missing
    /// workers. On a closed pool it starts none and returns 0. The call does not wait until the
    /// workers are [idle](Self::idle_worker_count).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(2, 4, std::time::Duration::from_secs(60));
    /// assert_eq!(pool.start_core_threads(), 2);
    /// assert_eq!(pool.current_worker_count(), 2);
    /// ```
    pub fn start_core_threads(&self) -> usize {
        self.shared().start_core()
    }

    /// Changes [`core_size`](Self::core_size) and [`max_size`](Self::max_size) together, for all
    /// handles and at once. The pool starts and ends workers as after
    /// [`set_core_size`](Self::set_core_size) and [`set_max_size`](Self::set_max_size). No thread
    /// sees one of the new sizes with one of the old.
    ///
    /// # Errors
    /// If `max_size` is zero, below `core_size`, or above [`MAX_SIZE`](Self::MAX_SIZE), or if the
    /// [reserves](crate::ViewBuilder::reserve) of the pool's views are not below it. The error
    /// names the values, and nothing changes.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(2, 4, std::time::Duration::from_secs(60));
    /// pool.set_sizes(8, 16).unwrap();
    /// pool.set_sizes(1, 1).unwrap();
    /// assert_eq!((pool.core_size(), pool.max_size()), (1, 1));
    /// ```
    #[doc(alias = "set_num_threads")]
    pub fn set_sizes(&self, core_size: usize, max_size: usize) -> Result<(), BuildError> {
        self.shared().resize(&|_, _| (core_size, max_size))
    }

    /// Changes [`core_size`](Self::core_size), for all handles and at once. If it grows, workers
    /// start for queued tasks. If it shrinks, surplus workers that have been idle for `keep_alive`
    /// end.
    ///
    /// To change `max_size` as well, use [`set_sizes`](Self::set_sizes).
    ///
    /// # Errors
    /// If it would be above `max_size`. The error names both values, and nothing changes.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(2, 4, std::time::Duration::from_secs(60));
    /// pool.set_core_size(3).unwrap();
    /// let error = pool.set_core_size(8).unwrap_err();
    /// assert_eq!(error.to_string(), "max_size is 4; it must be at least core_size, which is 8");
    /// ```
    pub fn set_core_size(&self, core_size: usize) -> Result<(), BuildError> {
        self.shared().resize(&|_, max_size| (core_size, max_size))
    }

    /// Changes [`max_size`](Self::max_size), for all handles and at once. If it grows, workers
    /// start for queued tasks. If it shrinks, idle workers above it end now, and busy ones after
    /// their current task.
    ///
    /// To change `core_size` as well, use [`set_sizes`](Self::set_sizes).
    ///
    /// # Errors
    /// If it would be zero, below `core_size`, or above [`MAX_SIZE`](Self::MAX_SIZE), or if the
    /// [reserves](crate::ViewBuilder::reserve) of the pool's views are not below it. The error
    /// names the values, and nothing changes.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(1, 4, std::time::Duration::from_secs(60));
    /// pool.set_max_size(64).unwrap();
    /// assert_eq!(pool.max_size(), 64);
    /// assert!(pool.set_max_size(0).is_err());
    /// ```
    pub fn set_max_size(&self, max_size: usize) -> Result<(), BuildError> {
        self.shared().resize(&|core_size, _| (core_size, max_size))
    }

    /// Changes [`keep_alive`](Self::keep_alive), for all handles and at once, also for workers that
    /// are idle now. Any duration is valid: `Duration::MAX` means forever, and zero means that a
    /// surplus worker ends as soon as it finds no task.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// pool.set_keep_alive(Duration::from_secs(1));
    /// assert_eq!(pool.keep_alive(), Duration::from_secs(1));
    /// ```
    pub fn set_keep_alive(&self, keep_alive: Duration) {
        self.shared().set_keep_alive(keep_alive);
    }
}

/// # Inspecting
impl ThreadPool {
    /// Returns the pool's name. Its threads are named `{name}-{index}`, unless
    /// [`thread_name`](crate::Builder::thread_name) is set.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().name("resolver").build();
    /// assert_eq!(pool.name(), "resolver");
    /// ```
    #[doc(alias = "get_name")]
    pub fn name(&self) -> &str {
        &self.shared().config.name
    }

    /// Returns the number of workers below which each submission starts one (with
    /// [`prefer_idle`](crate::Builder::prefer_idle): if none is idle), and to which the pool
    /// shrinks.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().core_size(2).max_size(8).build();
    /// assert_eq!(pool.core_size(), 2);
    /// ```
    #[doc(alias = "get_core_size")]
    pub fn core_size(&self) -> usize {
        self.shared().sizes.core()
    }

    /// Returns the number of workers that may run at once. Under
    /// [`Growth::Measured`](crate::Growth::Measured) it is a bound, and
    /// [`stats().allowed`](crate::Stats::allowed) says how many may run now.
    ///
    /// More workers exist only while some are in [blocking regions](crate::blocking()), and idle
    /// ones for [`keep_alive`](Self::keep_alive) after that, as spares for the next regions. A
    /// worker that drives a future of [`complete`](Self::complete) counts as running while the
    /// future waits for something outside the pool.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.max_size(), 512); // fewer run, if these keep the CPUs busy
    /// ```
    #[doc(alias("max_count", "get_max_size"))]
    pub fn max_size(&self) -> usize {
        self.shared().sizes.max()
    }

    /// Returns how long a surplus worker stays idle before it ends.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.keep_alive(), Duration::from_secs(60));
    /// ```
    pub fn keep_alive(&self) -> Duration {
        self.shared().sizes.keep_alive()
    }

    /// Returns the number of workers, including idle and blocked ones. A worker that has run its
    /// last task does not count. Like all counts, the number may be out of date when the call
    /// returns.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.current_worker_count(), 0);
    /// pool.execute(|| ());
    /// assert_eq!(pool.current_worker_count(), 1);
    /// ```
    #[doc(alias = "get_current_worker_count")]
    pub fn current_worker_count(&self) -> usize {
        self.shared().counts.load().total()
    }

    /// Returns the number of workers that wait for work. A worker that has just been started, or
    /// has just ended a task, first looks for work, and counts as idle a moment later.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| ());
    /// pool.join();
    /// while pool.idle_worker_count() < pool.current_worker_count() {
    ///     std::thread::yield_now();
    /// }
    /// assert_eq!(pool.idle_worker_count(), 1);
    /// ```
    #[doc(alias = "get_idle_worker_count")]
    pub fn idle_worker_count(&self) -> usize {
        self.shared().counts.load().idle()
    }

    /// Returns the number of tasks that wait for a worker, including woken futures. On a
    /// [`View`](crate::View), or on a clone of its handle, only tasks of that view count. Takes a
    /// lock, as [`stats`](Self::stats) does.
    ///
    /// The pool has several queues and counts them one after another. A future that moves from one
    /// to another meanwhile may count twice.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// pool.execute(|| ());
    /// assert_eq!(pool.queued_count(), 1);
    /// open.send(()).unwrap();
    /// ```
    pub fn queued_count(&self) -> usize {
        self.stats().queued
    }

    /// Returns what the pool has done and is doing. Takes a lock that submissions take only to
    /// start a thread. On a [`View`](crate::View), or on a clone of its handle, the counts of tasks
    /// are those of that view only.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| ());
    /// pool.join();
    /// assert_eq!(pool.stats().completed, 1);
    /// ```
    #[doc(alias("active_count", "panic_count"))]
    pub fn stats(&self) -> Stats {
        let mut stats = self.shared().stats();
        if let Some(view) = &self.view {
            view.describe(&mut stats, || self.shared().policy.len(Some(view.id)));
        }
        stats
    }

    /// Returns what each running task does, since when, and which line submitted it, and what has
    /// waited longest. `None` unless the pool's builder sets
    /// [`track_tasks`](crate::Builder::track_tasks) or
    /// [`stall_report`](crate::Builder::stall_report).
    ///
    /// The report of a [`View`](crate::View)'s handle is that of the whole pool.
    ///
    /// Takes a lock that every tracked task takes, and holds it while it reads the records of the
    /// running and the pending tasks. [`Report`] has an example.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().track_tasks(true).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// println!("{}", pool.report().expect("the pool tracks its tasks"));
    /// open.send(()).unwrap();
    /// ```
    pub fn report(&self) -> Option<Report> {
        let shared = self.shared();
        shared
            .observers
            .iter()
            .find_map(|observer| observer.report(&shared.config.name, shared.stats()))
    }
}
