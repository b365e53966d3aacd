//! How long a worker's tasks take: one estimate. From it follow how often a worker that always has
//! local tasks checks the injector and another worker, whether its tasks are *long* beside a look
//! at the queues, and whether they are *coarse* beside the injector's cost.
//!
//! A check costs little beside a few dozen short tasks. Beside long tasks the same number would
//! delay what it finds: 61 tasks of 10 ms take more than half a second. So a worker checks about
//! every [`PERIOD_NANOS`]. It reads the clock once in an interval. Tokio's workers tune their
//! interval like this, with twice that period.
//!
//! The estimate is an exponential moving average. A task that another one has waited for, and that
//! has run inside of it, counts as well: the tasks of a recursion are short.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The most requests between two checks. The number is tokio's and Go's. It is prime, so that it
/// does not fall into step with a pattern in the tasks.
pub(super) const MAX_INTERVAL: usize = 61;

/// The time between two checks, unless that is more than [`MAX_INTERVAL`] requests. A check that
/// finds nothing takes a few nanoseconds, and reading the clock about 30, so it could be shorter.
/// But a worker whose tasks fill an interval takes them for long ones, and shares woken futures
/// before each new task.
const PERIOD_NANOS: u32 = 100_000;

/// See the [module's documentation](self).
pub(crate) struct Pacing {
    /// Requests until the next check.
    left: Cell<usize>,
    /// When the interval began, and how many tasks the worker had run. `None` if the time since
    /// then is not that of tasks.
    since: Cell<Option<(Instant, usize)>>,
    /// How many nanoseconds a task takes, on average. A number, since each submission compares it.
    task_nanos: Cell<u32>,
}

impl Pacing {
    pub(super) fn new() -> Self {
        let (since, task_nanos) = (Cell::new(None), Cell::new(0));
        let pacing = Pacing { left: Cell::new(usize::MAX), since, task_nanos };
        pacing.forget();
        pacing
    }

    /// Counts a request, and returns whether it begins with a check. `run_count` is how many tasks
    /// the worker has run.
    #[inline]
    pub(super) fn is_check_due(&self, run_count: usize) -> bool {
        let left = self.left.get() - 1;
        self.left.set(left);
        left == 0 && self.begin_interval(run_count)
    }

    #[cold]
    fn begin_interval(&self, run_count: usize) -> bool {
        let now = (Instant::now(), run_count);
        if let Some((since, run_before)) = self.since.replace(Some(now)) {
            // The worker counts from zero again when its quota is renewed: no tasks then.
            self.record(now.0 - since, run_count.saturating_sub(run_before));
        }
        self.left.set(self.interval());
        true
    }

    /// Records that `run` tasks have taken this time.
    fn record(&self, taken: Duration, run: usize) {
        let Some(mean) = taken.as_nanos().checked_div(run as u128) else { return };
        // At most so much that two requests fill a period: then every other one takes from the
        // injector first, and the average is soon back at that of short tasks, however long one
        // took or a worker had no CPU.
        let longest = PERIOD_NANOS / 2;
        let now = u32::try_from(mean).map_or(longest, |mean| mean.min(longest));
        self.task_nanos.set((self.task_nanos.get() + now) / 2);
    }

    /// Returns the number of requests from one check to the next.
    fn interval(&self) -> usize {
        // In a model mostly no check comes: it would find the tasks that a lost notification leaves
        // behind.
        #[cfg(elastipool_loom)]
        return crate::sync::models::SHORT_INTERVAL.get().unwrap_or(usize::MAX);
        #[cfg(not(elastipool_loom))]
        return MAX_INTERVAL.min((PERIOD_NANOS / self.task_nanos.get().max(1)) as usize);
    }

    /// Whether a task may take longer than a look at the queues, by those that the worker has run
    /// since it rested.
    pub(crate) fn are_tasks_long(&self) -> bool {
        // Then fewer than the most requests fill a period.
        self.task_nanos() >= PERIOD_NANOS / MAX_INTERVAL as u32
    }

    /// Whether tasks take so long, 20 us and more on average, that the injector's cost is small
    /// beside it: some 50 ns more for each than a local queue.
    #[inline]
    pub(crate) fn are_tasks_coarse(&self) -> bool {
        self.task_nanos() >= PERIOD_NANOS / 5
    }

    #[inline]
    fn task_nanos(&self) -> u32 {
        // A model has no clock.
        #[cfg(elastipool_loom)]
        return crate::sync::models::TASK_NANOS.get();
        #[cfg(not(elastipool_loom))]
        return self.task_nanos.get();
    }

    /// Forgets how long the tasks take: the worker has rested, spun or waited. That time is not the
    /// time of tasks, and what comes then may be longer.
    ///
    /// The first interval is then 8 requests, or what is left of the one before. With 16, the
    /// workers learn later that their tasks block: the row stages has a p99 1.13 times as long.
    /// With 4, workers that often spin read the clock more often: a task that submits many short
    /// ones takes up to 1.05 times as long.
    pub(crate) fn forget(&self) {
        self.task_nanos.set(PERIOD_NANOS / 8);
        self.since.set(None);
        self.left.set(self.left.get().min(self.interval()));
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_interval_fits_the_time_that_tasks_take() {
        let pacing = Pacing::new();
        assert_eq!(pacing.interval(), 8);
        let of_nanos = |nanos| {
            pacing.task_nanos.set(nanos);
            pacing.interval()
        };
        assert_eq!([0, 50].map(of_nanos), [MAX_INTERVAL; 2]);
        assert_eq!([10_000, PERIOD_NANOS / 2].map(of_nanos), [10, 2]);
    }

    #[test]
    fn checks_come_at_the_interval() {
        for interval in [2, 7, MAX_INTERVAL] {
            let pacing = Pacing::new();
            pacing.task_nanos.set(PERIOD_NANOS / interval as u32);
            // No task has run, so the interval stays as it is. The first one is that of a worker
            // that knows nothing.
            let checks = (0..20 * MAX_INTERVAL).filter(|_| pacing.is_check_due(0)).count();
            assert!(checks.abs_diff(20 * MAX_INTERVAL / interval) <= 4, "{checks}");
        }
    }

    #[test]
    fn a_rest_is_no_long_task_and_forgets_the_short_ones() {
        let pacing = Pacing::new();
        (0..10 * MAX_INTERVAL).for_each(|run| _ = pacing.is_check_due(run));
        pacing.task_nanos.set(50);
        pacing.left.set(MAX_INTERVAL);
        pacing.forget();
        assert_eq!((pacing.left.get(), pacing.interval()), (8, 8));
        // As long as many tasks, if the rest counted as one.
        std::thread::sleep(Duration::from_millis(20));
        while !pacing.is_check_due(11 * MAX_INTERVAL) {}
        assert_eq!(pacing.interval(), 8);
    }

    #[test]
    fn long_tasks_shorten_the_interval_and_short_ones_lengthen_it() {
        let pacing = Pacing::new();
        let run = Cell::new(0);
        let checks = |requests: usize, pause: Duration| {
            let check = |_: &usize| {
                // Stands for a task: their time is the subject.
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                run.set(run.get() + 1);
                pacing.is_check_due(run.get())
            };
            (0..requests).filter(check).count()
        };
        // Of requests that take no time, a few come before the interval is known.
        let short = checks(50 * MAX_INTERVAL, Duration::ZERO);
        assert!((50..200).contains(&short), "{short}");
        // The interval in which they begin ends after at most as many.
        checks(MAX_INTERVAL, Duration::from_millis(1));
        assert!((3..=5).contains(&checks(10, Duration::from_millis(1))));
    }

    #[test]
    fn a_few_short_requests_do_not_make_the_interval_the_longest() {
        let pacing = Pacing::new();
        let intervals = [0; 4].map(|_| {
            pacing.record(Duration::ZERO, 1);
            pacing.interval()
        });
        assert_eq!(intervals, [16, 32, MAX_INTERVAL, MAX_INTERVAL]);
    }

    #[test]
    fn the_time_of_a_task_is_an_average() {
        let (pacing, micros) = (Pacing::new(), Duration::from_micros);
        assert_eq!(pacing.task_nanos(), PERIOD_NANOS / 8, "nothing is known");
        pacing.task_nanos.set(40_000);
        pacing.record(micros(60), 3);
        assert_eq!(pacing.task_nanos(), 30_000);
        assert!(pacing.are_tasks_coarse());
        // Of a request with 99 tasks inside of its own.
        pacing.record(micros(900), 100);
        assert_eq!(pacing.task_nanos(), 19_500);
        assert!(!pacing.are_tasks_coarse());
        pacing.record(Duration::from_secs(9), 1);
        assert!(pacing.task_nanos() < PERIOD_NANOS / 2, "a worker may lose its CPU");
        let before = pacing.task_nanos();
        pacing.record(micros(500), 0);
        assert_eq!(pacing.task_nanos(), before, "there is nothing to learn");
    }

    #[test]
    fn what_says_nothing_of_the_time_of_tasks_is_not_measured() {
        let pacing = Pacing::new();
        let first = pacing.task_nanos();
        let measure = |run_count| {
            // Stands for tasks: their time is the subject.
            std::thread::sleep(Duration::from_millis(1));
            pacing.begin_interval(run_count);
            pacing.task_nanos()
        };
        assert!([5, 7].map(measure)[1] > first);
        pacing.forget();
        assert_eq!(measure(8), first, "it has waited since the last check");
        assert!(measure(9) > first);
        pacing.task_nanos.set(1);
        assert_eq!(measure(3), 1, "its quota was renewed");
    }
}
