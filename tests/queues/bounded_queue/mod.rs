//! A bounded queue: which tasks it accepts, which submitters wait for capacity and in which order,
//! which tasks it hands back, and that no worker waits for itself. (With threads refused:
//! `law_07_refusal_proof`.)

use crate::common;

mod acceptance;
mod closing;
mod freeing;
#[cfg(feature = "async")]
mod futures;
mod own_queue;
mod scopes;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, refused, wait_until};
use elastipool::{RejectReason, ThreadPool};

fn pool(max_size: usize, capacity: usize) -> ThreadPool {
    let builder = ThreadPool::builder().core_size(1).max_size(max_size).keep_alive(HOUR);
    builder.queue_capacity(capacity).build()
}

/// A thread that submits a task. Tests can see whether it waits.
struct Submitter<T> {
    name: String,
    has_begun: Arc<AtomicBool>,
    thread: thread::JoinHandle<T>,
}

impl<T: Send + 'static> Submitter<T> {
    fn start(
        pool: &ThreadPool,
        submission: impl FnOnce(&ThreadPool) -> T + Send + 'static,
    ) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("submitter-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let has_begun = Arc::new(AtomicBool::new(false));
        let (pool, begins) = (pool.clone(), Arc::clone(&has_begun));
        let body = move || {
            begins.store(true, Ordering::SeqCst);
            submission(&pool)
        };
        let thread = thread::Builder::new().name(name.clone()).spawn(body).unwrap();
        Submitter { name, has_begun, thread }
    }

    /// Whether the thread sleeps in its submission, as far as one look shows.
    #[cfg(target_os = "linux")]
    fn sleeps(&self) -> bool {
        let stat = self.proc_file("stat").unwrap_or_default();
        self.has_begun.load(Ordering::SeqCst)
            && stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
    }

    /// A file of the system's about this thread.
    #[cfg(target_os = "linux")]
    fn proc_file(&self, file: &str) -> Option<String> {
        std::fs::read_dir("/proc/self/task").ok()?.find_map(|task| {
            let path = task.ok()?.path();
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            (name.trim_end() == self.name)
                .then(|| std::fs::read_to_string(path.join(file)).ok())
                .flatten()
        })
    }

    /// Blocks until the submitter waits. It sleeps, and not for a moment, as for a lock.
    #[track_caller]
    fn wait_until_it_waits(&self) {
        #[cfg(target_os = "linux")]
        {
            let mut looks = 0;
            wait_until(&format!("{} waits", self.name), || {
                assert!(!self.thread.is_finished(), "{} does not wait", self.name);
                looks = if self.sleeps() { looks + 1 } else { 0 };
                thread::sleep(Duration::from_micros(200));
                looks >= 10
            });
        }
        #[cfg(not(target_os = "linux"))]
        {
            wait_until(&self.name, || self.has_begun.load(Ordering::SeqCst));
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!self.thread.is_finished(), "{} does not wait", self.name);
    }

    /// A submitter that waits.
    #[track_caller]
    fn waiting(
        pool: &ThreadPool,
        submission: impl FnOnce(&ThreadPool) -> T + Send + 'static,
    ) -> Self {
        let submitter = Submitter::start(pool, submission);
        submitter.wait_until_it_waits();
        submitter
    }

    /// What the submission returns, which must not take for ever.
    #[track_caller]
    fn finish(self) -> T {
        wait_until(&format!("{} is admitted or rejected", self.name), || self.thread.is_finished());
        self.thread.join().unwrap()
    }
}

/// Checks that the pool accepts `max_size` tasks that run and `capacity` tasks that wait, no more
/// and no less.
#[track_caller]
fn assert_capacity(pool: &ThreadPool, capacity: usize) {
    assert!(pool.join_timeout(LIMIT));
    // A future may have ended while the worker that polled it is still on its way out of it.
    wait_until("the workers are free", || pool.stats().idle == pool.stats().workers);
    let gate = Gate::new();
    for running in 1..=pool.max_size() {
        let passes = Arc::clone(&gate);
        pool.try_execute(move || passes.pass()).expect("a worker is free");
        gate.wait_for(running);
    }
    for _ in 0..capacity {
        pool.try_execute(|| ()).expect("the queue has capacity");
    }
    refused(pool.try_execute(|| ()), RejectReason::Full);
    assert_eq!(pool.queued_count(), capacity);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}
