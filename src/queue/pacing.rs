//! How long a worker's tasks take, and so how often a worker that always has local tasks checks the injector and one of the other
//! workers.
//!
//! A check of the injector costs little beside a few dozen short tasks. Beside long tasks the same number would delay what
//! it finds: 61 tasks of 10 ms take more than half a second. So a worker measures how long its tasks take, and checks about
//! every [`PERIOD_NANOS`]. It reads the clock once in an interval. Tokio's workers tune
//! their interval like this, with twice that period.
//!
//! The estimate is an exponential moving average. A task that another one has waited for, and that has run inside of it, counts as
//! well: the tasks of a recursion are short.
//!
//! The other workers are checked by number alone. A worker that has lost its CPU for a while takes its tasks for long ones,
//! and would soon find each other worker stalled.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The most requests between two checks of the injector, and the number between two checks for a stalled worker. The number
/// is tokio's and Go's. It is prime, so that it does not fall into step with a pattern in the tasks.
pub(super) const MAX_INTERVAL: usize = 61;

/// The fewest: every other request takes from the injector first.
const MIN_INTERVAL: usize = 2;

/// The longest time that counts as that of a task, in nanoseconds: so the average is back at a few microseconds after a hundred
/// short tasks, however long one took or a worker had no CPU.
const MAX_TASK_NANOS: u32 = 320_000;

/// The time between two checks of the injector, unless that is more than [`MAX_INTERVAL`] requests. A check that finds nothing
/// takes a few nanoseconds, and reading the clock about 30, so it could be shorter. But a worker whose tasks fill an interval
/// takes them for long ones, and shares woken futures before each new task.
const PERIOD_NANOS: u32 = 100_000;

/// The estimate of a worker that is new, or has rested, spun or waited: its tasks may be short or long, so its first interval is 8
/// requests. With 16, the workers learn later that their tasks block: the row stages has a p99 1.13 times as long. With 4, workers
/// that often spin read the clock more often: a task that submits many short ones takes up to 1.05 times as long.
const FIRST_NANOS: u32 = PERIOD_NANOS / 8;

/// What a worker does first at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// It looks for a stalled worker.
    Stalled,
    /// It begins a turn of the injector's tasks.
    Injector,
}

/// See the [module's documentation](self).
pub(super) struct Pacing {
    /// Requests until the next check.
    left: Cell<usize>,
    /// Requests until a check for a stalled worker is due. It comes with the next check of the injector, just before it.
    until_stalled: Cell<usize>,
    /// When the interval began, and how many tasks the worker had run. `None` if the time since tells nothing of that of tasks.
    since: Cell<Option<(Instant, usize)>>,
    /// How many nanoseconds a task takes, on average. A number, since each submission compares it.
    task_nanos: Cell<u32>,
}

impl Pacing {
    pub(super) fn new() -> Self {
        let pacing = Pacing {
            left: Cell::new(0),
            until_stalled: Cell::new(0),
            since: Cell::new(None),
            task_nanos: Cell::new(FIRST_NANOS),
        };
        pacing.left.set(pacing.interval() / 2);
        pacing
    }

    /// Counts a request, and returns the check that it begins with, if any. `run_count` is how many tasks the worker has run.
    #[inline]
    pub(super) fn next_check(&self, run_count: usize) -> Option<Check> {
        let left = self.left.get();
        if left > 1 {
            self.left.set(left - 1);
            return None;
        }
        Some(self.begin_check(run_count))
    }

    #[cold]
    fn begin_check(&self, run_count: usize) -> Check {
        if self.until_stalled.get() == 0 {
            self.until_stalled.set(in_model().unwrap_or(MAX_INTERVAL));
            self.left.set(1);
            return Check::Stalled;
        }
        if in_model().is_none() {
            self.measure(run_count);
        }
        let interval = self.interval();
        self.left.set(interval);
        self.until_stalled.set(self.until_stalled.get().saturating_sub(interval));
        Check::Injector
    }

    /// Measures the time since the last check.
    fn measure(&self, run_count: usize) {
        let now = Instant::now();
        if let Some((since, run_before)) = self.since.replace(Some((now, run_count))) {
            // No tasks after the quota was renewed, too.
            self.record(now - since, run_count.saturating_sub(run_before));
        }
    }

    /// The worker has run `run` tasks in that time.
    fn record(&self, taken: Duration, run: usize) {
        let Some(mean) = taken.as_nanos().checked_div(run as u128) else { return };
        let now = u32::try_from(mean).map_or(MAX_TASK_NANOS, |mean| mean.min(MAX_TASK_NANOS));
        self.task_nanos.set((self.task_nanos.get() + now) / 2);
    }

    /// Returns the number of requests from one check of the injector to the next.
    fn interval(&self) -> usize {
        let fitting = (PERIOD_NANOS / self.task_nanos.get().max(1)) as usize;
        in_model().unwrap_or(fitting.clamp(MIN_INTERVAL, MAX_INTERVAL))
    }

    /// Whether the worker's tasks may be long, by those that it has run since it rested.
    #[cfg(feature = "async")]
    pub(super) fn are_tasks_long(&self) -> bool {
        #[cfg(elastipool_loom)]
        return !crate::queue::model::SHORT_TASKS.get();
        #[cfg(not(elastipool_loom))]
        return self.interval() < MAX_INTERVAL;
    }

    /// Returns how many nanoseconds the worker's tasks take, on average.
    #[inline]
    pub(super) fn task_nanos(&self) -> u32 {
        #[cfg(elastipool_loom)]
        return if crate::queue::model::COARSE_TASKS.get() { u32::MAX } else { 0 };
        #[cfg(not(elastipool_loom))]
        return self.task_nanos.get();
    }

    /// Forgets how long the tasks take. The interval that the worker is in tells nothing of that either.
    pub(super) fn forget_task_time(&self) {
        self.task_nanos.set(FIRST_NANOS);
        self.since.set(None);
    }

    /// The worker rests or has spun: the time until the next request is not that of tasks, and what comes then may be longer.
    pub(super) fn rest(&self) {
        self.forget_task_time();
        self.left.set(self.left.get().min(self.interval()));
    }
}

/// Returns the interval in a model, which has no clock. Mostly no check comes: it would find the tasks that a lost notification
/// leaves behind.
fn in_model() -> Option<usize> {
    #[cfg(elastipool_loom)]
    return Some(crate::queue::model::SHORT_INTERVAL.get().unwrap_or(usize::MAX));
    #[cfg(not(elastipool_loom))]
    None
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
        assert_eq!(of_nanos(10_000), 10);
        assert_eq!(of_nanos(MAX_TASK_NANOS), MIN_INTERVAL);
    }

    #[test]
    fn both_checks_come_at_their_intervals() {
        for interval in [MIN_INTERVAL, 7, MAX_INTERVAL] {
            let pacing = Pacing::new();
            pacing.task_nanos.set(PERIOD_NANOS / interval as u32);
            let mut counts = [0_usize; 2];
            for _ in 0..20 * MAX_INTERVAL {
                // No task has run, so the interval stays as it is.
                if let Some(check) = pacing.next_check(0) {
                    counts[usize::from(check == Check::Stalled)] += 1;
                }
            }
            let [injector, stalled] = counts;
            assert!(injector.abs_diff(20 * MAX_INTERVAL / interval) <= 21, "{counts:?}");
            assert!((9..=20).contains(&stalled), "{counts:?}");
        }
    }

    #[test]
    fn a_rest_is_no_long_task_and_forgets_the_short_ones() {
        let pacing = Pacing::new();
        (0..10 * MAX_INTERVAL).for_each(|run| _ = pacing.next_check(run));
        pacing.task_nanos.set(50);
        pacing.left.set(MAX_INTERVAL);
        pacing.rest();
        assert_eq!((pacing.left.get(), pacing.interval()), (8, 8));
        // As long as many tasks, if the rest counted as one.
        std::thread::sleep(Duration::from_millis(20));
        while pacing.next_check(11 * MAX_INTERVAL) != Some(Check::Injector) {}
        assert_eq!(pacing.interval(), 8);
    }

    #[test]
    fn long_tasks_shorten_the_interval_and_short_ones_lengthen_it() {
        let pacing = Pacing::new();
        let run = Cell::new(0);
        let checks = |requests: usize, pause: Duration| {
            let check = |_| {
                // Stands for a task: their time is the subject.
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                run.set(run.get() + 1);
                pacing.next_check(run.get())
            };
            (0..requests).filter(|request| check(*request) == Some(Check::Injector)).count()
        };
        // Of requests that take no time, a few come before the interval is known.
        let short = checks(50 * MAX_INTERVAL, Duration::ZERO);
        assert!((50..200).contains(&short), "{short}");
        // The interval in which they begin ends after at most as many, and a check for a stalled worker.
        checks(MAX_INTERVAL + 1, Duration::from_millis(1));
        let long = checks(10, Duration::from_millis(1));
        // One of them may be such a check.
        assert!((4..=5).contains(&long), "{long}");
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
        assert_eq!(pacing.task_nanos(), FIRST_NANOS, "nothing is known");
        pacing.task_nanos.set(100_000);
        pacing.record(micros(60), 3);
        assert_eq!(pacing.task_nanos(), 60_000);
        // Of a request with 99 tasks inside of its own.
        pacing.record(micros(1_000), 100);
        assert_eq!(pacing.task_nanos(), 35_000);
        pacing.record(Duration::from_secs(9), 1);
        assert!(pacing.task_nanos() < MAX_TASK_NANOS, "a worker may lose its CPU");
        let before = pacing.task_nanos();
        pacing.record(micros(500), 0);
        assert_eq!(pacing.task_nanos(), before, "there is nothing to learn");
    }

    #[test]
    fn what_says_nothing_of_the_time_of_tasks_is_not_measured() {
        let pacing = Pacing::new();
        let measure = |run_count| {
            // Stands for tasks: their time is the subject.
            std::thread::sleep(Duration::from_millis(1));
            pacing.measure(run_count);
            pacing.task_nanos()
        };
        assert!([5, 7].map(measure)[1] > FIRST_NANOS);
        pacing.forget_task_time();
        assert_eq!(measure(8), FIRST_NANOS, "it has waited since the last check");
        assert!(measure(9) > FIRST_NANOS);
        pacing.task_nanos.set(1);
        assert_eq!(measure(3), 1, "its quota was renewed");
    }
}
