//! What the samples say: medians, ratios, targets; as tables and as JSON.

use std::fmt;
use std::num::NonZero;
use std::thread;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::campaign::{Plan, Record};
use crate::engines::Engine;
use crate::measure::Sample;
use crate::rows::{Row, Target};

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    plan: &'a Plan,
    cpus: usize,
    pub(crate) comparisons: Vec<Comparison>,
    summaries: Vec<Summary>,
    records: Vec<Record>,
}

/// What one engine did in one row.
#[derive(Clone, Serialize)]
pub(crate) struct Summary {
    row: Row,
    workers: usize,
    engine: Engine,
    unit: String,
    median: f64,
    /// The distance of the quartiles, as a part of the median.
    spread: f64,
    threads: Option<f64>,
    peak_memory: Option<f64>,
}

/// How one of ours compares in one row.
#[derive(Serialize)]
pub(crate) struct Comparison {
    pub(crate) row: Row,
    pub(crate) workers: usize,
    pub(crate) engine: Engine,
    median: f64,
    best: Option<Engine>,
    pub(crate) ratio_to_best: Option<f64>,
    ratio_to_rusty_pool: Option<f64>,
    target: String,
    /// Unknown if nothing was there to compare with.
    met: Option<bool>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(plan: &'a Plan, records: Vec<Record>) -> Self {
        let summaries: Vec<_> = records.iter().filter_map(Summary::new).collect();
        let ours = summaries.iter().filter(|summary| summary.engine.is_ours());
        let comparisons = ours.map(|ours| Comparison::new(ours, &summaries)).collect();
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Report { plan, cpus, comparisons, summaries, records }
    }
}

impl Summary {
    fn new(record: &Record) -> Option<Self> {
        let values = |of: fn(&Sample) -> Option<f64>| {
            let mut values: Vec<_> = record.samples.iter().filter_map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let measured = values(|sample| Some(sample.value));
        let median = quantile(&measured, 0.5)?;
        let quartiles = quantile(&measured, 0.75)? - quantile(&measured, 0.25)?;
        Some(Summary {
            row: record.row,
            workers: record.workers,
            engine: record.engine,
            unit: record.row.unit().to_string(),
            median,
            spread: if median > 0.0 { quartiles / median } else { 0.0 },
            threads: quantile(&values(|sample| sample.threads.map(|count| count as f64)), 0.5),
            peak_memory: quantile(
                &values(|sample| sample.peak_memory.map(|size| size as f64)),
                0.5,
            ),
        })
    }
}

/// Of sorted values; in between, in proportion.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let place = part * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

impl Comparison {
    fn new(ours: &Summary, all: &[Summary]) -> Self {
        let Summary { row, workers, engine, median, .. } = *ours;
        let same = |other: &&Summary| (other.row, other.workers) == (row, workers);
        let rivals = all
            .iter()
            .filter(same)
            .filter(|other| other.engine.is_peer() && row.rivals().contains(&other.engine));
        let best = rivals.min_by(|a, b| a.median.total_cmp(&b.median));
        let rusty_pool = all.iter().filter(same).find(|other| other.engine == Engine::RustyPool);
        // Nothing is a part of nothing.
        let ratio_to = |other: &Summary| (other.median > 0.0).then(|| median / other.median);
        let ratio_to_best = best.and_then(ratio_to);
        // As printed: nobody can tell apart what differs by less.
        let within =
            |limit: f64| ratio_to_best.map(|ratio| (ratio * 100.0).round() <= limit * 100.0);
        let target = row.target(engine);
        Comparison {
            row,
            workers,
            engine,
            median,
            best: best.map(|best| best.engine),
            ratio_to_best,
            ratio_to_rusty_pool: rusty_pool.and_then(ratio_to),
            target: target.to_string(),
            met: match target {
                Target::Value(limit) => Some(median <= limit),
                Target::Ratio(limit) => within(limit),
                Target::Threads(threads, limit) => {
                    let few = ours.threads.is_some_and(|had| had <= threads as f64);
                    within(limit).map(|fast| fast && few)
                }
            },
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", engines_table(&self.summaries))?;
        writeln!(f, "{}\n", comparisons_table(&self.comparisons))?;
        let (met, known) = (self.met(true), self.met(true) + self.met(false));
        writeln!(f, "{met} of {known} targets met, on {} CPUs", self.cpus)
    }
}

impl Report<'_> {
    fn met(&self, met: bool) -> usize {
        self.comparisons.iter().filter(|comparison| comparison.met == Some(met)).count()
    }
}

fn engines_table(summaries: &[Summary]) -> Table {
    let mut table =
        table(&["row", "workers", "engine", "median", "unit", "spread", "threads", "peak MiB"]);
    for one in summaries {
        table.add_row([
            one.row.to_string(),
            one.workers.to_string(),
            one.engine.to_string(),
            number(one.median),
            one.unit.clone(),
            format!("{:.0} %", 100.0 * one.spread),
            optional(one.threads, |count| format!("{count:.0}")),
            optional(one.peak_memory, |bytes| format!("{:.1}", bytes / f64::from(1 << 20))),
        ]);
    }
    align_right(&mut table, &[1, 3, 5, 6, 7]);
    table
}

fn comparisons_table(comparisons: &[Comparison]) -> Table {
    let mut table = table(&[
        "row",
        "workers",
        "ours",
        "median",
        "best peer",
        "x best",
        "x rusty_pool",
        "target",
        "met",
    ]);
    for one in comparisons {
        table.add_row([
            one.row.to_string(),
            one.workers.to_string(),
            one.engine.to_string(),
            number(one.median),
            optional(one.best, |best| best.to_string()),
            optional(one.ratio_to_best, |ratio| format!("{ratio:.2}")),
            optional(one.ratio_to_rusty_pool, |ratio| format!("{ratio:.2}")),
            one.target.clone(),
            optional(one.met, |met| if met { "yes" } else { "NO" }.to_owned()),
        ]);
    }
    align_right(&mut table, &[1, 3, 5, 6]);
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(header);
    table
}

fn align_right(table: &mut Table, columns: &[usize]) {
    for &index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn optional<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(String::new, text)
}

/// Three digits of it, whatever its size.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[3.0], 0.75), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 9.0], 0.5), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 9.0], 0.75), Some(4.0));
    }
}
