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
use crate::quantile::quantile;
use crate::rows::{Figure, Kind, Outcome, Row, Setting};

pub(crate) struct Report<'a> {
    plan: &'a Plan,
    cpus: usize,
    pub(crate) comparisons: Vec<Comparison>,
    summaries: Vec<Summary>,
    records: &'a [Record],
}

/// What one engine did in one row, by one of its figures.
#[derive(Clone, Serialize)]
pub(crate) struct Summary {
    row: Row,
    workers: usize,
    #[serde(skip_serializing_if = "Setting::is_none")]
    setting: Setting,
    figure: Figure,
    engine: Engine,
    unit: String,
    median: f64,
    /// The distance of the quartiles, as a part of the median.
    spread: f64,
    threads: Option<f64>,
    peak_memory: Option<f64>,
}

/// How one of ours compares in one row, by one of its figures.
#[derive(Serialize)]
pub(crate) struct Comparison {
    pub(crate) row: Row,
    pub(crate) workers: usize,
    #[serde(skip_serializing_if = "Setting::is_none")]
    pub(crate) setting: Setting,
    pub(crate) figure: Figure,
    pub(crate) engine: Engine,
    median: f64,
    pub(crate) best: Option<Engine>,
    /// The size of the best one, if the row compares sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best_size: Option<usize>,
    pub(crate) ratio_to_best: Option<f64>,
    ratio_to_rusty_pool: Option<f64>,
    ratio_to_floor: Option<f64>,
    target: String,
    /// Unknown if nothing was there to compare with.
    met: Option<bool>,
}

impl<'a> Report<'a> {
    /// As JSON, with a line for each comparison, summary and record.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        Ok(format!(
            "{{\n\"plan\": {},\n\"cpus\": {},\n\"comparisons\": {},\n\"summaries\": {},\n\"records\": {}\n}}\n",
            serde_json::to_string(self.plan)?,
            self.cpus,
            lines(&self.comparisons)?,
            lines(&self.summaries)?,
            lines(self.records)?,
        ))
    }

    pub(crate) fn new(plan: &'a Plan, records: &'a [Record]) -> Self {
        let of_record = |record| {
            let figures = Record::figures(record).iter();
            figures.filter_map(move |&figure| Summary::new(record, figure))
        };
        let summaries: Vec<_> = records.iter().flat_map(of_record).collect();
        let ours = summaries.iter().filter(|summary| summary.engine.is_ours());
        let comparisons = ours.map(|ours| Comparison::new(ours, &summaries)).collect();
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Report { plan, cpus, comparisons, summaries, records }
    }
}

impl Summary {
    fn new(record: &Record, figure: Figure) -> Option<Self> {
        let values = |of: &dyn Fn(&Sample) -> Option<f64>| {
            let mut values: Vec<_> = record.samples.iter().filter_map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let measured = values(&|sample| sample.figures.get(&figure).copied());
        let median = quantile(&measured, 0.5)?;
        let quartiles = quantile(&measured, 0.75)? - quantile(&measured, 0.25)?;
        Some(Summary {
            row: record.row,
            workers: record.workers,
            setting: record.setting,
            figure,
            engine: record.engine,
            unit: record.row.unit(figure).to_string(),
            median,
            spread: if median > 0.0 { quartiles / median } else { 0.0 },
            threads: quantile(&values(&|sample| sample.threads.map(|count| count as f64)), 0.5),
            peak_memory: quantile(
                &values(&|sample| sample.peak_memory.map(|size| size as f64)),
                0.5,
            ),
        })
    }
}

impl Comparison {
    fn new(ours: &Summary, all: &[Summary]) -> Self {
        let Summary { row, workers, setting, figure, engine, median, .. } = *ours;
        // The pool that finds its size is compared with those that its user might have set.
        let finds_size = row.kind() == Kind::Loads && engine == Engine::ElastipoolMeasured;
        let same = |other: &&Summary| {
            (other.row, other.setting, other.figure) == (row, setting, figure)
                && (finds_size || other.workers == workers)
        };
        let is_rival = |other: &Engine| match finds_size {
            true => *other == Engine::Elastipool,
            false => other.is_peer() && row.rivals().contains(other),
        };
        let rivals = all.iter().filter(same).filter(|other| is_rival(&other.engine));
        let best = rivals.min_by(|a, b| a.median.total_cmp(&b.median));
        // Nothing is a part of nothing.
        let ratio_to = |other: &Summary| (other.median > 0.0).then(|| median / other.median);
        let ratio_to_engine = |engine| {
            let one = all.iter().filter(same).find(|other| other.engine == engine);
            one.and_then(ratio_to)
        };
        let ratio_to_floor = ratio_to_engine(Engine::Floor);
        let ratio_to_best = best.and_then(ratio_to);
        let target = row.target(setting, figure, engine, workers);
        Comparison {
            row,
            workers,
            setting,
            figure,
            engine,
            median,
            best: best.map(|best| best.engine),
            best_size: best.filter(|_| finds_size).map(|best| best.workers),
            ratio_to_best,
            ratio_to_rusty_pool: ratio_to_engine(Engine::RustyPool),
            ratio_to_floor,
            target: target.to_string(),
            met: target.is_met(Outcome {
                value: median,
                ratio: ratio_to_best,
                ratio_to_floor,
                threads: ours.threads,
                memory: ours.peak_memory,
            }),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", engines_table(&self.summaries))?;
        writeln!(f, "{}\n", comparisons_table(&self.comparisons))?;
        let (met, known) = (self.met(true), self.met(true) + self.met(false));
        writeln!(f, "{met} of {known} targets met, on {} CPUs", self.cpus)?;
        let samples = || self.records.iter().flat_map(|record| &record.samples);
        let rounds = self.records.iter().map(|record| record.samples.len()).max().unwrap_or(0);
        writeln!(f, "{rounds} of {} rounds", self.plan.rounds())?;
        let disturbed = samples().filter(|sample| sample.is_disturbed()).count();
        writeln!(f, "{disturbed} of {} samples disturbed by other guests", samples().count())
    }
}

impl Report<'_> {
    fn met(&self, met: bool) -> usize {
        self.comparisons.iter().filter(|comparison| comparison.met == Some(met)).count()
    }
}

fn engines_table(summaries: &[Summary]) -> Table {
    let mut table = table(&[
        "row", "workers", "figure", "engine", "median", "unit", "spread", "threads", "peak MiB",
    ]);
    for one in summaries {
        table.add_row([
            one.row.to_string(),
            one.workers.to_string(),
            label(one.setting, one.figure),
            one.engine.to_string(),
            number(one.median),
            one.unit.clone(),
            format!("{:.0} %", 100.0 * one.spread),
            optional(one.threads, |count| format!("{count:.0}")),
            optional(one.peak_memory, |bytes| format!("{:.1}", bytes / f64::from(1 << 20))),
        ]);
    }
    align_right(&mut table, &[1, 4, 6, 7, 8]);
    table
}

fn comparisons_table(comparisons: &[Comparison]) -> Table {
    let mut table = table(&[
        "row",
        "workers",
        "figure",
        "ours",
        "median",
        "best peer",
        "x best",
        "x rusty_pool",
        "x floor",
        "target",
        "met",
    ]);
    for one in comparisons {
        table.add_row([
            one.row.to_string(),
            one.workers.to_string(),
            label(one.setting, one.figure),
            one.engine.to_string(),
            number(one.median),
            optional(one.best, |best| match one.best_size {
                Some(size) => format!("{best} ({size})"),
                None => best.to_string(),
            }),
            optional(one.ratio_to_best, |ratio| format!("{ratio:.2}")),
            optional(one.ratio_to_rusty_pool, |ratio| format!("{ratio:.2}")),
            optional(one.ratio_to_floor, |ratio| format!("{ratio:.2}")),
            one.target.clone(),
            optional(one.met, |met| if met { "yes" } else { "NO" }.to_owned()),
        ]);
    }
    align_right(&mut table, &[1, 4, 6, 7, 8]);
    table
}

/// Empty for most rows: they have one figure and no setting.
pub(crate) fn label(setting: Setting, figure: Figure) -> String {
    let parts = [figure.to_string(), setting.to_string()];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(header);
    table
}

pub(crate) fn align_right(table: &mut Table, columns: &[usize]) {
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
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A list, with a line for each element.
fn lines<T: Serialize>(list: &[T]) -> serde_json::Result<String> {
    let lines = list.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
    Ok(format!("[\n{}\n]", lines.join(",\n")))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_list_has_a_line_for_each_element() {
        for list in [vec![], vec![vec![1, 2], vec![], vec![3]]] {
            let text = lines(&list).unwrap();
            assert_eq!(serde_json::from_str::<Vec<Vec<i32>>>(&text).unwrap(), list);
            assert_eq!(text.lines().count(), 2 + list.len().max(1));
        }
    }
}
