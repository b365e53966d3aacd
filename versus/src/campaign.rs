//! Which measurements, in which order.

use std::env;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::engines::Engine;
use crate::measure::{Measurement, Sample};
use crate::rows::{Figure, Row, Setting};
use crate::selection::{Case, Selection};
use crate::{LIMIT, Result};

#[derive(Args, Serialize)]
pub(crate) struct Plan {
    #[command(flatten)]
    #[serde(flatten)]
    selection: Selection,

    /// Whom to compare with; elastipool itself is always measured [default: all]
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    peers: Vec<Engine>,

    /// How many times
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
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
        let Record { row, workers, setting, engine, .. } = *self;
        format!("{}: {engine}", Case { row, workers, setting })
    }
}

impl Plan {
    /// Measures everything, and returns what could not be measured. `report` is called with the
    /// records after each round, so that a campaign that is interrupted keeps its finished rounds.
    ///
    /// All engines take their turn before any has its next: what else the machine does, and how
    /// warm it is, is spread over all of them. In each round another one is first.
    pub(crate) fn run(
        &self,
        mut report: impl FnMut(&[Record]) -> Result<()>,
    ) -> Result<Vec<String>> {
        let program = env::current_exe()?;
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
                    match self.measurement(record).run_undisturbed(&program, LIMIT) {
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
        let wanted = |engine: &Engine| {
            engine.is_ours() || self.peers.is_empty() || self.peers.contains(engine)
        };
        let mut records = Vec::new();
        for Case { row, workers, setting } in self.selection.cases() {
            // What finds its size is measured once, beside the others of the row's first size.
            let is_first = records
                .last()
                .is_none_or(|last: &Record| last.row != row || last.setting != setting);
            let able = |engine: &Engine| {
                engine.most_workers().is_none_or(|most| workers <= most)
                    && (is_first || *engine != Engine::ElastipoolMeasured)
            };
            let engines = row.engines().iter();
            for &engine in engines.filter(|&engine| wanted(engine) && able(engine)) {
                records.push(Record { row, workers, setting, engine, samples: Vec::new() });
            }
        }
        records
    }

    fn measurement(&self, record: &Record) -> Measurement {
        let Record { row, workers, setting, engine, .. } = *record;
        Measurement { row, peer: engine, workers, scale: self.selection.scale, setting }
    }
}
