//! What a row measures besides the row itself: its settings, its figures, their units and targets.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};

/// One of the numbers that a measurement gives.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    /// The only one, or the main one, of the row
    Value,
    /// The most futures that ran at the same time
    AtOnce,
    P50,
    P90,
    P99,
    P999,
}

impl Figure {
    /// The part of all latencies that are at most this one, if it is a percentile.
    pub(crate) fn percentile(self) -> Option<f64> {
        match self {
            Figure::Value | Figure::AtOnce => None,
            Figure::P50 => Some(0.5),
            Figure::P90 => Some(0.9),
            Figure::P99 => Some(0.99),
            Figure::P999 => Some(0.999),
        }
    }
}

/// What a row varies besides the engine and the number of workers. Most rows vary nothing.
#[derive(Args, Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Setting {
    /// Microseconds between two submissions
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pause: Option<u64>,
    /// Per cent of the workers' time that the tasks take
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<u64>,
    /// Threads that submit
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) producers: Option<u64>,
    /// The weight of the tenant that has more tasks queued
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<u64>,
    /// Processes beside this one that compute all the time
    #[arg(long, default_value_t = 0)]
    pub(crate) busy: usize,
}

impl Setting {
    pub(crate) fn pauses(pauses: &[u64], busy: &[usize]) -> Vec<Self> {
        let setting = |&pause, &busy| Setting { pause: Some(pause), busy, ..Setting::default() };
        pauses.iter().flat_map(|pause| busy.iter().map(move |busy| setting(pause, busy))).collect()
    }

    pub(crate) fn loads(loads: &[u64], busy: &[usize]) -> Vec<Self> {
        let setting = |&load, &busy| Setting { load: Some(load), busy, ..Setting::default() };
        loads.iter().flat_map(|load| busy.iter().map(move |busy| setting(load, busy))).collect()
    }

    pub(crate) fn busy(busy: &[usize]) -> Vec<Self> {
        busy.iter().map(|&busy| Setting { busy, ..Setting::default() }).collect()
    }

    pub(crate) fn producers(producers: &[u64]) -> Vec<Self> {
        let setting = |&producers| Setting { producers: Some(producers), ..Setting::default() };
        producers.iter().map(setting).collect()
    }

    pub(crate) fn weights(weights: &[u64]) -> Vec<Self> {
        let setting = |&weight| Setting { weight: Some(weight), ..Setting::default() };
        weights.iter().map(setting).collect()
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Setting::default()
    }

    /// As they are given to the child process.
    pub(crate) fn args(&self) -> Vec<String> {
        let mut args = vec!["--busy".to_owned(), self.busy.to_string()];
        let given = [
            ("--pause", self.pause),
            ("--load", self.load),
            ("--producers", self.producers),
            ("--weight", self.weight),
        ];
        for (name, value) in given {
            args.extend(
                value.map(|value| [name.to_owned(), value.to_string()]).into_iter().flatten(),
            );
        }
        args
    }
}

/// What is measured, per unit of work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    NanosPerTask,
    NanosPerPoll,
    NanosPerMessage,
    NanosPerCall,
    NanosPerRequest,
    BytesPerTask,
    BytesPerFuture,
    MicrosPerSecond,
    Micros,
    Millis,
    Threads,
    Futures,
    Takes,
    PerCent,
}

/// What ours must reach: all that is given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Target {
    /// At most this, times the best of those that it is compared with.
    pub(crate) ratio: Option<f64>,
    /// At most this.
    pub(crate) value: Option<f64>,
    /// At most this many threads.
    pub(crate) threads: Option<u64>,
    /// At most this, times the floor.
    pub(crate) floor: Option<f64>,
    /// At most this many megabytes of memory.
    pub(crate) memory: Option<u64>,
}

/// What ours did in a row, as a target sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) value: f64,
    /// To the best peer. Unknown if none was measured.
    pub(crate) ratio: Option<f64>,
    pub(crate) ratio_to_floor: Option<f64>,
    pub(crate) threads: Option<f64>,
    /// In bytes, at its peak.
    pub(crate) memory: Option<f64>,
}

impl Target {
    /// For figures that are printed for information.
    pub(crate) const NONE: Self =
        Target { ratio: None, value: None, threads: None, floor: None, memory: None };

    pub(crate) const fn ratio(ratio: f64) -> Self {
        Target { ratio: Some(ratio), ..Target::NONE }
    }

    pub(crate) const fn value(value: f64) -> Self {
        Target { value: Some(value), ..Target::NONE }
    }

    pub(crate) const fn threads(threads: u64) -> Self {
        Target { threads: Some(threads), ..Target::NONE }
    }

    pub(crate) const fn floor(floor: f64) -> Self {
        Target { floor: Some(floor), ..Target::NONE }
    }

    pub(crate) const fn and_floor(self, floor: f64) -> Self {
        Target { floor: Some(floor), ..self }
    }

    pub(crate) const fn and_value(self, value: f64) -> Self {
        Target { value: Some(value), ..self }
    }

    pub(crate) const fn and_threads(self, threads: u64) -> Self {
        Target { threads: Some(threads), ..self }
    }

    pub(crate) const fn and_memory(self, memory: u64) -> Self {
        Target { memory: Some(memory), ..self }
    }

    /// Whether it is reached. Unknown without a target, and where a part of it cannot be told.
    pub(crate) fn is_met(self, outcome: Outcome) -> Option<bool> {
        // As printed: what differs by less is the same.
        let rounded = |ratio: f64| (ratio * 100.0).round() / 100.0;
        let within = |limit, ratio: Option<f64>| ratio.map(|ratio| rounded(ratio) <= limit);
        let parts = [
            self.ratio.map(|limit| within(limit, outcome.ratio)),
            self.floor.map(|limit| within(limit, outcome.ratio_to_floor)),
            self.value.map(|limit| Some(outcome.value <= limit)),
            self.threads.map(|limit| outcome.threads.map(|threads| threads <= limit as f64)),
            self.memory.map(|limit| outcome.memory.map(|memory| memory <= limit as f64 * 1e6)),
        ];
        let mut given = parts.into_iter().flatten().peekable();
        given.peek()?;
        given.try_fold(true, |met, part| part.map(|part| met && part))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Figure::Value => "",
            Figure::AtOnce => "at once",
            Figure::P50 => "p50",
            Figure::P90 => "p90",
            Figure::P99 => "p99",
            Figure::P999 => "p99.9",
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Setting { pause: Some(pause), busy, .. } => write!(f, "pause {pause} us, {busy} busy"),
            Setting { load: Some(load), busy, .. } => write!(f, "load {load} %, {busy} busy"),
            Setting { producers: Some(1), .. } => write!(f, "1 producer"),
            Setting { producers: Some(producers), .. } => write!(f, "{producers} producers"),
            Setting { weight: Some(weight), .. } => write!(f, "weights {weight}:1"),
            Setting { busy: 0, .. } => Ok(()),
            Setting { busy, .. } => write!(f, "{busy} busy"),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::NanosPerTask => "ns/task",
            Unit::NanosPerPoll => "ns/poll",
            Unit::NanosPerMessage => "ns/message",
            Unit::NanosPerCall => "ns/call",
            Unit::NanosPerRequest => "ns/request",
            Unit::BytesPerTask => "bytes/task",
            Unit::BytesPerFuture => "bytes/future",
            Unit::MicrosPerSecond => "us CPU/s",
            Unit::Micros => "us",
            Unit::Millis => "ms",
            Unit::Threads => "threads",
            Unit::Futures => "futures",
            Unit::Takes => "takes",
            Unit::PerCent => "per cent",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = self.ratio.map(|ratio| format!("x {ratio:.2}"));
        let floor = self.floor.map(|floor| format!("floor x {floor:.2}"));
        let value = self.value.map(|value| format!("{value:.0}"));
        let threads = self.threads.map(|threads| format!("{threads} threads"));
        let memory = self.memory.map(|memory| format!("{memory} MB"));
        let parts: Vec<_> = [ratio, floor, value, threads, memory].into_iter().flatten().collect();
        f.pad(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Target};

    #[test]
    fn a_target_is_met_if_all_its_parts_are() {
        let target = Target::ratio(1.1).and_threads(4);
        let outcome = |ratio, threads| Outcome {
            value: 7.0,
            ratio,
            ratio_to_floor: Some(1.2),
            threads: Some(threads),
            memory: Some(2e6),
        };
        assert_eq!(target.to_string(), "x 1.10, 4 threads");
        assert_eq!(target.is_met(outcome(Some(1.104), 4.0)), Some(true));
        assert_eq!(target.is_met(outcome(Some(1.106), 4.0)), Some(false));
        assert_eq!(target.is_met(outcome(Some(1.1), 5.0)), Some(false));
        assert_eq!(target.is_met(outcome(None, 4.0)), None);
        assert_eq!(Target::value(7.0).is_met(outcome(None, 4.0)), Some(true));
        assert_eq!(Target::ratio(0.9).and_floor(1.0).is_met(outcome(Some(0.5), 4.0)), Some(false));
        assert_eq!(Target::floor(1.2).is_met(outcome(None, 4.0)), Some(true));
        let target = target.and_memory(2);
        assert_eq!(target.to_string(), "x 1.10, 4 threads, 2 MB");
        assert_eq!(target.is_met(outcome(Some(1.1), 4.0)), Some(true));
        assert_eq!(Target::NONE.and_memory(1).is_met(outcome(None, 4.0)), Some(false));
        assert_eq!(Target::NONE.is_met(outcome(Some(0.5), 4.0)), None);
    }
}
