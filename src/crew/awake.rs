//! The controller of [`Growth::Measured`](crate::Growth::Measured): how many workers may run, so that enough of them are awake.
//!
//! A function of measurements: it has no clock and asks no thread. Let `n` workers be wanted awake.
//!
//! - **Raised** while tasks wait for a worker, fewer than `n` are awake on average, and they have used fewer than `n` CPUs since the last
//!   measurement: by the ratio of `n` to the larger of these, and doubled at most. Of a load of which a constant share is awake, that is
//!   the right number, so it approaches this from below. A raise waits until the workers of the last one run, so it does not act twice on
//!   one measurement.
//! - **Lowered** if more are awake than `n` and a [slack], twice in a row: to those that sleep, `n`, and half of the slack.
//! - **Kept** otherwise. Between the two thresholds lies the slack, so under a constant load the number comes to rest.
//!
//! After a change from tasks that sleep to tasks that compute, too many run for two measurements, each with one task.
//!
//! Where the system tells only how much CPU time each worker has used, those that have used some since the last measurement are awake. Where it
//! does not tell that either, none is awake if no worker has taken a task since then, and all are otherwise: the number grows when the
//! tasks stall.

/// Tasks that compute keep a few workers more than `n` before the number is lowered: a worker that ends its task and one that
/// begins are both awake. Speed only.
const SLACK: f64 = 2.0;

/// The average of workers awake from which the CPUs count as used, as a share of `n`: a worker between two tasks sleeps at times.
const USED: f64 = 0.95;

/// What a measurement found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    /// Workers that run tasks, and are not in declared regions.
    pub(crate) running: usize,
    /// How many of these are awake, by estimation.
    pub(crate) awake: f64,
    /// How many CPUs they have used on average since the last measurement. While workers start, which takes a CPU too: as `awake`.
    pub(crate) used: f64,
    /// Whether a task is queued.
    pub(crate) has_work: bool,
    /// Whether one waits because as many workers run as may.
    pub(crate) is_short: bool,
}

impl Measurement {
    pub(crate) fn asleep(&self) -> f64 {
        (self.running as f64 - self.awake).max(0.0)
    }
}

/// What earlier measurements have found, as far as the next decision depends on it.
#[derive(Debug, Default)]
pub(crate) struct Controller {
    /// The average of workers awake, where more than `n` count as `n`. `None` before the first measurement.
    mean: Option<f64>,
    /// Whether too many were awake at the last measurement.
    was_over: bool,
    /// Whether too few were, while a task was queued.
    was_under: bool,
}

/// By how many more than `n` the workers awake may be without a change. The more of them sleep, the more wake up at the same time, and
/// the less a few more threads matter.
fn slack(measured: &Measurement) -> f64 {
    SLACK + measured.asleep() / 2.0
}

impl Controller {
    /// Forgets earlier measurements: they were long ago.
    pub(crate) fn begin(&mut self) {
        *self = Controller::default();
    }

    /// Returns how many workers may run, so that `n` are awake. So far `allowed` may.
    pub(crate) fn next(&mut self, allowed: usize, n: usize, measured: Measurement) -> usize {
        let wanted = n as f64;
        let awake = measured.awake.min(wanted);
        let mean = self.mean.map_or(awake, |mean| (mean + awake) / 2.0);
        self.mean = Some(mean);
        let slack = slack(&measured);
        let is_over = measured.awake > wanted + slack;
        if is_over && self.was_over {
            self.was_over = false;
            self.was_under = false;
            let fitting = (measured.asleep() + wanted + slack / 2.0) as usize;
            return allowed.min(fitting.max(n));
        }
        self.was_over = is_over;
        let level = mean.max(measured.used);
        self.was_under = measured.has_work && level < USED * wanted;
        if measured.is_short && self.was_under {
            let factor = (wanted / level).min(2.0);
            return ((allowed as f64 * factor) as usize).max(allowed + 1);
        }
        allowed
    }

    /// Whether the next measurement may change the number, if it finds the same. `may_rise`: the number is not the largest one.
    pub(crate) fn is_undecided(&self, may_rise: bool) -> bool {
        self.was_over || (may_rise && self.was_under)
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
