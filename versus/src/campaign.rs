//! Which measurements, in which order.

use clap::Args;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::Result;
use crate::engines::Engine;
use crate::measure::{Measurement, Sample};
use crate::rows::{Figure, Row, Setting};

#[derive(Args, Serialize)]
pub(crate) struct Plan {
    /// What to measure [default: all rows]
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    rows: Vec<Row>,

    /// Whom to compare with; elastipool itself is always measured [default: all]
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    peers: Vec<Engine>,

    /// How many times
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// For how many workers; rows that are about the number of workers have their own
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 10], value_parser = at_least_one)]
    workers: Vec<usize>,

    /// Multiplies the number of tasks: less than 1 for a quick look, not for results
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    scale: f64,
}

fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("there must be a worker".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && f64::is_finite(factor) => Ok(factor),
        Ok(_) => Err("must be greater than 0".to_owned()),
        Err(error) => Err(format!("{error}")),
    }
}

/// All samples of one engine in one row, with one setting.
#[derive(Serialize)]
pub(crate) struct Record {
    pub(crate) row: Row,
    pub(crate) workers: usize,
    #[serde(skip_serializing_if = "Setting::is_none")]
    pub(crate) setting: Setting,
    pub(crate) engine: Engine,
    pub(crate) samples: Vec<Sample>,
}

impl Record {
    pub(crate) fn figures(&self) -> &'static [Figure] {
        self.row.figures()
    }

    /// Whether both are about the same work.
    fn is_beside(&self, other: &Record) -> bool {
        (self.row, self.workers, self.setting) == (other.row, other.workers, other.setting)
    }

    fn title(&self) -> String {
        let Record { row, workers, setting, engine, .. } = self;
        let setting = if setting.is_none() { String::new() } else { format!(", {setting}") };
        format!("{row}, {workers} workers{setting}: {engine}")
    }
}

impl Plan {
    /// Measures everything, and returns what could not be measured. `report` is called with the records after each round, so
    /// that a campaign that is interrupted keeps its finished rounds.
    ///
    /// All engines take their turn before any has its next: what else the machine does, and how warm it is, is spread
    /// over all of them. In each round another one is first.
    pub(crate) fn run(
        &self,
        mut report: impl FnMut(&[Record]) -> Result<()>,
    ) -> Result<Vec<String>> {
        let mut records = self.records();
        let mut failures = Vec::new();
        let bar = ProgressBar::new(u64::from(self.rounds) * records.len() as u64).with_style(
            ProgressStyle::with_template("{msg:60} {wide_bar} {pos}/{len} {elapsed} + {eta}")?,
        );
        for round in 0..self.rounds as usize {
            for same_row in records.chunk_by_mut(|a, b| a.is_beside(b)) {
                let engines = same_row.len();
                for turn in 0..engines {
                    let record = &mut same_row[(turn + round) % engines];
                    let what = record.title();
                    bar.set_message(what.clone());
                    match self.measurement(record).run_undisturbed() {
                        Ok(sample) => record.samples.push(sample),
                        Err(error) => failures.push(format!("{what}: {error}")),
                    }
                    bar.inc(1);
                }
            }
            bar.suspend(|| report(&records))?;
        }
        bar.finish_and_clear();
        Ok(failures)
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// A record for each measurement, without samples. Those of one row are side by side.
    fn records(&self) -> Vec<Record> {
        let rows = if self.rows.is_empty() { Row::value_variants() } else { &self.rows };
        let wanted = |engine: &Engine| {
            engine.is_ours() || self.peers.is_empty() || self.peers.contains(engine)
        };
        let mut records = Vec::new();
        for &row in rows {
            for workers in row.workers(&self.workers, self.scale) {
                for setting in row.settings() {
                    let able =
                        |engine: &Engine| engine.most_workers().is_none_or(|most| workers <= most);
                    let engines = row.engines().iter();
                    for &engine in engines.filter(|&engine| wanted(engine) && able(engine)) {
                        records.push(Record { row, workers, setting, engine, samples: Vec::new() });
                    }
                }
            }
        }
        records
    }

    fn measurement(&self, record: &Record) -> Measurement {
        let Record { row, workers, setting, engine, .. } = *record;
        Measurement { row, peer: engine, workers, scale: self.scale, setting }
    }
}
