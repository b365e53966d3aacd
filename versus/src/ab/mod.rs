//! Compares the crate with another commit of itself: `versus ab BASE`.
//!
//! It builds the other commit, the *base*, and measures both programs in turn, in interleaved
//! processes. The base is measured twice as often, so that the same run shows how much it differs
//! from itself: the noise.

mod base;
mod statistics;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use self::base::Base;
use self::statistics::Comparison;
use self::table::Line;
use crate::child::Misunderstood;
use crate::counter::Counter;
use crate::engines::Engine;
use crate::measure::Measurement;
use crate::rows::{Figure, Kind, Row};
use crate::selection::{Case, Selection};
use crate::{Result, beside_the_program};

/// A measurement that takes longer than this is reported as failed. The longest one takes some
/// seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Under valgrind.
const INSTRUCTIONS_LIMIT: Duration = Duration::from_secs(240);

/// A line is given up after this many failures of one program: one that hangs takes a minute each
/// time.
const MOST_FAILURES: usize = 2;

#[derive(Args)]
pub(crate) struct Ab {
    /// The commit to compare with, by any name that git knows; or the path of a versus program that
    /// was built before
    base: String,

    #[command(flatten)]
    selection: Selection,

    /// How often both programs are measured; the base twice as often
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,

    /// A quick look: three repetitions of a third of the work, for the first number of workers only
    #[arg(long, conflicts_with = "repetitions")]
    quick: bool,

    /// Count instructions instead of time, by `perf` or else by `valgrind`, in the rows that are
    /// bound by them
    #[arg(long)]
    instructions: bool,

    /// Name the lines whose ratio is above this, and beyond the noise
    #[arg(long, value_name = "RATIO", default_value_t = 1.1)]
    limit: f64,
}

/// Which program is measured. The base counts twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Base,
    Now,
}

/// In which order the programs are measured in a repetition: each place is taken by each of them in
/// turn.
const ORDERS: [[Side; 3]; 3] = [
    [Side::Base, Side::Now, Side::Base],
    [Side::Now, Side::Base, Side::Base],
    [Side::Base, Side::Base, Side::Now],
];

/// One engine of ours in one case, with all that was measured.
struct Track {
    case: Case,
    engine: Engine,
    /// A figure's values, of the base and now.
    figures: Vec<(Figure, [Vec<f64>; 2])>,
    failures: [Vec<String>; 2],
    /// One of the programs does not know the row.
    is_unknown: bool,
}

/// How a value is obtained.
enum Method {
    Time,
    Instructions(Counter),
}

impl Ab {
    pub(crate) fn run(mut self) -> Result<()> {
        if self.quick {
            (self.repetitions, self.selection.scale) = (3, self.selection.scale / 3.0);
            self.selection.workers.truncate(1);
        }
        let method = match self.instructions {
            true => Method::Instructions(Counter::find(&[Counter::Perf, Counter::Valgrind])?),
            false => Method::Time,
        };
        let folder = folder()?;
        // A copy: the program may be built anew meanwhile.
        let (program, now) = (env::current_exe()?, folder.join("now"));
        if program != now {
            fs::copy(program, &now)?;
        }
        let base = Base::prepare(&self.base, &folder)?;
        println!("base: {base}");
        if let Method::Instructions(counter) = &method {
            println!("instructions are counted by {counter}");
        }
        let mut tracks = self.tracks();
        let written = folder.join("ab.md");
        self.measure_all(&mut tracks, &method, [&base.program, &now], |table| {
            Ok(fs::write(&written, table)?)
        })?;
        println!("{}", self.report(&tracks));
        println!("written: {}", written.display());
        match tracks.iter().all(|track| track.failures.iter().all(Vec::is_empty)) {
            true => Ok(()),
            false => Err("some measurements failed".into()),
        }
    }

    fn tracks(&self) -> Vec<Track> {
        let mut tracks = Vec::new();
        for case in self.cases() {
            for &engine in case.row.engines().iter().filter(|engine| engine.is_ours()) {
                tracks.push(Track::new(case, engine));
            }
        }
        // Once for each load: its pools of fixed sizes are only what the default pool is compared
        // with, and that one has no number of workers.
        let is_load = |track: &Track| track.case.row.kind() == Kind::Loads;
        tracks.retain(|track| !is_load(track) || track.engine == Engine::ElastipoolMeasured);
        tracks.dedup_by(|next, track| is_load(next) && next.case.row == track.case.row);
        tracks
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = self.selection.cases();
        if self.instructions {
            // Once for each row, on one worker: others would add what they do while they find
            // nothing.
            cases.retain(|case| case.row.is_bound_by_instructions() && case.setting.busy == 0);
            cases.dedup_by_key(|case| case.row);
            cases.iter_mut().for_each(|case| case.workers = 1);
        }
        cases
    }

    /// All lines take their turn before any has its next. After each repetition `save` gets the
    /// table so far.
    fn measure_all(
        &self,
        tracks: &mut [Track],
        method: &Method,
        programs: [&Path; 2],
        save: impl Fn(String) -> Result<()>,
    ) -> Result<()> {
        let bar = ProgressBar::new(u64::from(self.repetitions) * tracks.len() as u64).with_style(
            ProgressStyle::with_template("{msg:60} {wide_bar} {pos}/{len} {elapsed} + {eta}")?,
        );
        for repetition in 0..self.repetitions as usize {
            for track in tracks.iter_mut() {
                let title = format!("{}: {}", track.case, track.engine);
                bar.set_message(title.clone());
                if bar.is_hidden() && bar.position().is_multiple_of(10) {
                    let (done, all, passed) = (bar.position(), bar.length(), bar.elapsed());
                    eprintln!("{done}/{} after {passed:.0?}: {title}", all.unwrap_or(0));
                }
                for side in ORDERS[repetition % ORDERS.len()] {
                    let measured = self.measurement(track);
                    track.measure(side, || match method {
                        Method::Time => {
                            let sample =
                                measured.run_undisturbed(programs[side as usize], LIMIT)?;
                            Ok(sample.figures.into_iter().collect())
                        }
                        Method::Instructions(counter) => {
                            let program = programs[side as usize];
                            let count = counter.count(measured, program, INSTRUCTIONS_LIMIT)?;
                            Ok(vec![(Figure::Value, count)])
                        }
                    });
                }
                bar.inc(1);
            }
            save(self.report(tracks))?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn measurement(&self, track: &Track) -> Measurement {
        let Case { row, workers, setting } = track.case;
        let part = if self.instructions { 1.0 } else { part(row) };
        Measurement {
            row,
            peer: track.engine,
            workers,
            scale: self.selection.scale * part,
            setting,
        }
    }

    fn report(&self, tracks: &[Track]) -> String {
        let mut lines = Vec::new();
        let mut notes = Vec::new();
        for track in tracks {
            let title = || format!("{}: {}", track.case, track.engine);
            if track.is_unknown {
                notes.push(format!(
                    "{}: skipped, since one of the programs does not know it",
                    title()
                ));
            }
            for (side, failures) in ["base", "now"].iter().zip(&track.failures) {
                notes.extend(
                    failures.iter().map(|why| format!("{}: {side} failed: {why}", title())),
                );
            }
            for (figure, [base, now]) in &track.figures {
                let Some(comparison) = Comparison::new(base, now) else { continue };
                let unit = match self.instructions {
                    true => "instructions".to_owned(),
                    false => track.case.row.unit(*figure).to_string(),
                };
                lines.push(Line {
                    case: track.case,
                    engine: track.engine,
                    figure: *figure,
                    unit,
                    comparison,
                });
            }
        }
        table::report(&lines, &notes, self.limit, if self.instructions { 3 } else { 2 })
    }
}

impl Track {
    fn new(case: Case, engine: Engine) -> Self {
        let figures = case.row.figures().iter().map(|&figure| (figure, [vec![], vec![]])).collect();
        Track { case, engine, figures, failures: [vec![], vec![]], is_unknown: false }
    }

    /// Adds what one program has measured. What it cannot measure is no reason to stop.
    fn measure(&mut self, side: Side, values: impl FnOnce() -> Result<Vec<(Figure, f64)>>) {
        if self.is_unknown || self.failures[side as usize].len() >= MOST_FAILURES {
            return;
        }
        match values() {
            Ok(values) => {
                for (figure, value) in values {
                    if let Some((_, sides)) =
                        self.figures.iter_mut().find(|(own, _)| *own == figure)
                    {
                        sides[side as usize].push(value);
                    }
                }
            }
            Err(error) if error.is::<Misunderstood>() => self.is_unknown = true,
            Err(error) => self.failures[side as usize].push(error.to_string()),
        }
    }
}

/// Rows that take seconds by definition are measured for a part of them, so that all user rows take
/// about twenty minutes.
fn part(row: Row) -> f64 {
    match row {
        Row::Backlog | Row::Ticks | Row::Ticks64 => 0.3,
        Row::Urgent | Row::Tenants | Row::Flood | Row::Sleepers | Row::Http => 0.5,
        _ => 1.0,
    }
}

/// In the target folder.
fn folder() -> Result<PathBuf> {
    let program = beside_the_program()?;
    let target =
        program.parent().and_then(Path::parent).ok_or("the program is in a target folder")?;
    let folder = target.join("ab");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Ab, MOST_FAILURES, ORDERS, Side, Track};
    use crate::child::Misunderstood;
    use crate::engines::Engine;
    use crate::rows::{Figure, Row, Setting};
    use crate::selection::Case;

    #[test]
    fn a_load_is_measured_once() {
        #[derive(Parser)]
        struct Program {
            #[command(flatten)]
            ab: Ab,
        }
        let arguments =
            ["versus", "main", "--rows", "load-sleep,load-half,tree", "--workers", "2,4"];
        let names = |track: &Track| format!("{} {}", track.case.row, track.engine);
        let names: Vec<_> = Program::parse_from(arguments).ab.tracks().iter().map(names).collect();
        let sleep = "load-sleep elastipool-measured";
        let half = "load-half elastipool-measured";
        assert_eq!(names, [sleep, half, "tree elastipool", "tree elastipool"]);
    }

    fn track() -> Track {
        let case = Case { row: Row::Sporadic, workers: 2, setting: Setting::default() };
        Track::new(case, Engine::Elastipool)
    }

    #[test]
    fn each_program_takes_each_place() {
        for place in 0..3 {
            let now = ORDERS.iter().filter(|order| order[place] == Side::Now).count();
            assert_eq!(now, 1, "{place}");
        }
    }

    #[test]
    fn values_are_kept_by_figure_and_program() {
        let mut track = track();
        track.measure(Side::Base, || Ok(vec![(Figure::P50, 1.0), (Figure::P99, 2.0)]));
        track.measure(Side::Now, || Ok(vec![(Figure::P50, 3.0), (Figure::Value, 4.0)]));
        assert_eq!(track.figures[0], (Figure::P50, [vec![1.0], vec![3.0]]));
        assert_eq!(track.figures[1], (Figure::P99, [vec![2.0], vec![]]));
    }

    #[test]
    fn a_program_that_fails_twice_is_given_up() {
        let mut track = track();
        for _ in 0..MOST_FAILURES {
            track.measure(Side::Now, || Err("a reason".into()));
        }
        track.measure(Side::Now, || panic!("it was given up"));
        assert_eq!(track.failures, [vec![], vec!["a reason".to_owned(); MOST_FAILURES]]);
        track.measure(Side::Base, || Ok(vec![(Figure::P50, 1.0)]));
        assert_eq!(track.figures[0].1[0].len(), 1);
    }

    #[test]
    fn a_row_that_a_program_does_not_know_is_skipped() {
        let mut track = track();
        track.measure(Side::Base, || Err(Misunderstood.into()));
        track.measure(Side::Now, || panic!("there is nothing to compare with"));
        assert!(track.is_unknown);
        assert_eq!(track.failures, [Vec::<String>::new(), Vec::new()]);
    }
}
