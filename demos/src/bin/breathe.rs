//! How a pool grows and shrinks: the same load on elastipool, on rusty_pool and on tokio's `spawn_blocking`, drawn over time.
//!
//! ```text
//! cargo run --release -p demos --bin breathe                        # a table only
//! cargo run --release -p demos --bin breathe -- --svg breathe.svg   # and a chart
//! ```
//!
//! It shows
//! - what `core_size`, `max_size` and `keep_alive` do: workers start for a burst, and end when they were idle for long enough,
//! - that a trickle of short tasks does not keep surplus workers alive, because the worker that went idle last is woken first,
//! - that workers in [`blocking`] regions do not count against `max_size`,
//! - [`ThreadPool::stats`], which is read once in a while from outside.
//!
//! The pools have the same sizes and the same keep-alive, and run one after the other.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use elastipool::{ThreadPool, blocking};
use plotters::prelude::*;

/// Draws how many workers three pools have under the same load.
#[derive(Parser)]
#[command(name = "breathe", version)]
struct Args {
    /// Milliseconds that a task of a burst takes; all other times are multiples of it
    #[arg(long, default_value_t = 50)]
    millis: u64,
    /// Draws a chart into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const CORE_SIZE: usize = 2;
const MAX_SIZE: usize = 8;

/// Tasks of a burst.
const BURST: usize = 20;

/// Times in units of the time that a task takes.
const KEEP_ALIVE: u32 = 6;
const SECOND_BURST: u32 = 14;
const THIRD_BURST: u32 = 34;
const END: u32 = 48;

/// The tasks of the trickle come this many times in the time that a task of a burst takes, and take a tenth of their interval.
const TRICKLE: u32 = 4;

/// How many times the counts are read in the time that a task takes.
const LOOKS: u32 = 25;

/// The workers and the queue at one moment.
#[derive(Clone, Copy, Default, PartialEq)]
struct Counts {
    running: usize,
    blocked: usize,
    idle: usize,
    queued: usize,
}

impl Counts {
    fn workers(self) -> usize {
        self.running + self.blocked + self.idle
    }
}

/// Which of the counts.
type Count = fn(Counts) -> usize;

type Task = Box<dyn FnOnce() + Send>;

/// A pool under measurement.
trait Engine: Sync {
    fn name(&self) -> &'static str;
    /// Workers that stay.
    fn core_size(&self) -> usize {
        CORE_SIZE
    }
    fn execute(&self, task: Task);
    fn counts(&self) -> Counts;
}

impl Engine for ThreadPool {
    fn name(&self) -> &'static str {
        "elastipool"
    }

    fn execute(&self, task: Task) {
        ThreadPool::execute(self, task);
    }

    fn counts(&self) -> Counts {
        let stats = self.stats();
        Counts {
            running: stats.active.saturating_sub(stats.blocked),
            blocked: stats.blocked,
            idle: stats.workers.saturating_sub(stats.active),
            queued: stats.queued,
        }
    }
}

/// Counts the tasks and the threads of a pool that does not.
#[derive(Default)]
struct Counter {
    submitted: AtomicUsize,
    started: AtomicUsize,
    ended: AtomicUsize,
    threads: AtomicUsize,
}

impl Counter {
    fn count(self: &Arc<Self>, task: Task) -> impl FnOnce() + Send + 'static {
        self.submitted.fetch_add(1, Ordering::Relaxed);
        let counter = Arc::clone(self);
        move || {
            counter.started.fetch_add(1, Ordering::Relaxed);
            task();
            counter.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self, workers: usize) -> Counts {
        // In this order a task that moves meanwhile counts twice or not at all, but no difference is negative.
        let ended = self.ended.load(Ordering::Relaxed);
        let started = self.started.load(Ordering::Relaxed);
        let submitted = self.submitted.load(Ordering::Relaxed);
        let running = started.saturating_sub(ended);
        Counts {
            running,
            blocked: 0,
            idle: workers.saturating_sub(running),
            queued: submitted.saturating_sub(started),
        }
    }
}

struct RustyPool {
    pool: rusty_pool::ThreadPool,
    counter: Arc<Counter>,
}

impl Engine for RustyPool {
    fn name(&self) -> &'static str {
        "rusty_pool"
    }

    fn execute(&self, task: Task) {
        self.pool.execute(self.counter.count(task));
    }

    fn counts(&self) -> Counts {
        self.counter.counts(self.pool.get_current_worker_count())
    }
}

struct Tokio {
    runtime: tokio::runtime::Runtime,
    counter: Arc<Counter>,
}

impl Tokio {
    fn new(keep_alive: Duration) -> std::io::Result<Self> {
        let counter = Arc::new(Counter::default());
        let (starts, stops) = (Arc::clone(&counter), Arc::clone(&counter));
        // A runtime of this kind has no threads but those of `spawn_blocking`.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(MAX_SIZE)
            .thread_keep_alive(keep_alive)
            .on_thread_start(move || _ = starts.threads.fetch_add(1, Ordering::Relaxed))
            .on_thread_stop(move || _ = stops.threads.fetch_sub(1, Ordering::Relaxed))
            .build()?;
        Ok(Tokio { runtime, counter })
    }
}

impl Engine for Tokio {
    fn name(&self) -> &'static str {
        "tokio spawn_blocking"
    }

    fn core_size(&self) -> usize {
        0
    }

    fn execute(&self, task: Task) {
        drop(self.runtime.spawn_blocking(self.counter.count(task)));
    }

    fn counts(&self) -> Counts {
        self.counter.counts(self.counter.threads.load(Ordering::Relaxed))
    }
}

/// What one pool did: its counts whenever they had changed, with the time in units.
struct Measured {
    name: &'static str,
    core_size: usize,
    counts: Vec<(f64, Counts)>,
}

impl Measured {
    /// The counts at a time.
    fn at(&self, time: u32) -> Counts {
        let later = self.counts.partition_point(|(other, _)| *other <= f64::from(time));
        self.counts[later.saturating_sub(1)].1
    }

    fn peak(&self, count: impl Fn(Counts) -> usize) -> usize {
        self.counts.iter().map(|(_, counts)| count(*counts)).max().unwrap_or_default()
    }

    /// How long the pool had tasks, from the third burst on.
    fn third_burst(&self) -> f64 {
        let has_tasks = |counts: &Counts| counts.queued + counts.running + counts.blocked > 0;
        let last = self.counts.iter().rposition(|(_, counts)| has_tasks(counts));
        let end =
            last.and_then(|last| self.counts.get(last + 1)).map_or(f64::from(END), |end| end.0);
        // On a busy machine no look at the counts may have seen the burst.
        (end - f64::from(THIRD_BURST)).max(0.0)
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("breathe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if !(1..=10_000).contains(&args.millis) {
        return Err("a task takes between 1 and 10000 milliseconds".into());
    }
    let unit = Duration::from_millis(args.millis);
    let keep_alive = unit * KEEP_ALIVE;
    let all = [
        measure(&ThreadPool::new(CORE_SIZE, MAX_SIZE, keep_alive), unit),
        {
            let pool = rusty_pool::ThreadPool::new(CORE_SIZE, MAX_SIZE, keep_alive);
            measure(&RustyPool { pool, counter: Arc::default() }, unit)
        },
        measure(&Tokio::new(keep_alive)?, unit),
    ];
    println!(
        "core_size {CORE_SIZE}, max_size {MAX_SIZE}, keep_alive {keep_alive:?}. Three bursts of {BURST} tasks of {unit:?}.\n\
         The third one waits in blocking regions, which only elastipool has.\n"
    );
    println!("{:<22}{:^45}{:>15}", "", "workers", "third burst");
    println!(
        "{:<22}{:>9}{:>12}{:>12}{:>12}{:>15}",
        "", "1st burst", "before 2nd", "trickle end", "3rd burst", "takes, in ms"
    );
    for measured in &all {
        println!(
            "{:<22}{:>9}{:>12}{:>12}{:>12}{:>15.0}",
            measured.name,
            measured.at(1).workers(),
            measured.at(SECOND_BURST - 1).workers(),
            measured.at(THIRD_BURST - 1).workers(),
            measured.peak(Counts::workers),
            measured.third_burst() * args.millis as f64
        );
    }
    if let Some(file) = &args.svg {
        draw(file, args, &all)?;
        println!("\nThe chart is in {}.", file.display());
    }
    Ok(())
}

/// Puts the load on a pool, and reads its counts meanwhile.
fn measure(engine: &dyn Engine, unit: Duration) -> Measured {
    let start = Instant::now();
    let end = unit * END;
    let counts = thread::scope(|scope| {
        scope.spawn(|| load(engine, unit, start));
        let mut counts = vec![(0.0, Counts::default())];
        while start.elapsed() < end {
            let now = engine.counts();
            if counts.last().is_none_or(|(_, last)| *last != now) {
                counts.push((start.elapsed().as_secs_f64() / unit.as_secs_f64(), now));
            }
            thread::sleep(unit / LOOKS);
        }
        counts
    });
    Measured { name: engine.name(), core_size: engine.core_size(), counts }
}

/// Submits a burst, a burst with a trickle behind it, and a burst that waits in blocking regions.
fn load(engine: &dyn Engine, unit: Duration, start: Instant) {
    let wait_until =
        |time: Duration| thread::sleep((start + time).saturating_duration_since(Instant::now()));
    let burst = || (0..BURST).for_each(|_| engine.execute(Box::new(move || thread::sleep(unit))));
    burst();
    wait_until(unit * SECOND_BURST);
    burst();
    let interval = unit / TRICKLE;
    for i in 1..(THIRD_BURST - SECOND_BURST) * TRICKLE {
        wait_until(unit * SECOND_BURST + interval * i);
        engine.execute(Box::new(move || thread::sleep(interval / 10)));
    }
    wait_until(unit * THIRD_BURST);
    for _ in 0..BURST {
        engine.execute(Box::new(move || blocking(|| thread::sleep(unit))));
    }
}

// ----- the chart -----

const RUNNING: RGBColor = RGBColor(66, 133, 200);
const BLOCKED: RGBColor = RGBColor(150, 100, 180);
const IDLE: RGBColor = RGBColor(205, 214, 222);
const QUEUED: RGBColor = RGBColor(217, 95, 2);
/// The panels' left end, in pixels.
const LEFT: i32 = 52;

const TEXT: RGBColor = RGBColor(60, 60, 60);

/// Draws a panel for each pool, one below the other on the same scales.
fn draw(file: &Path, args: &Args, all: &[Measured]) -> Result<(), Box<dyn Error>> {
    const WIDTH: u32 = 960;
    const HEADER: u32 = 76;
    const PANEL: u32 = 230;

    let root =
        SVGBackend::new(file, (WIDTH, HEADER + PANEL * all.len() as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let (header, panels) = root.split_vertically(HEADER);
    draw_header(&header, args)?;
    let highest = |measured: &Measured| {
        measured.peak(Counts::workers).max(measured.peak(|counts| counts.queued))
    };
    // Space for the text above the curves.
    let top = all.iter().map(highest).max().unwrap_or_default() as f64 * 1.2;
    for (measured, area) in all.iter().zip(panels.split_evenly((all.len(), 1))) {
        draw_panel(&area, args, measured, top)?;
    }
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws what the colours mean.
fn draw_header(area: &Area<'_>, args: &Args) -> Result<(), Box<dyn Error>> {
    let small = ("sans-serif", 15).into_font().color(&TEXT);
    let keep_alive = args.millis * u64::from(KEEP_ALIVE);
    area.draw(&Text::new(
        format!("core_size {CORE_SIZE}, max_size {MAX_SIZE}, keep_alive {keep_alive} ms, tasks of {} ms", args.millis),
        (LEFT, 14),
        ("sans-serif", 17).into_font().color(&TEXT),
    ))?;
    area.draw(&Text::new("workers:", (LEFT, 46), small.clone()))?;
    let legend = [
        (LEFT + 72, "running", RUNNING),
        (LEFT + 172, "in a blocking region", BLOCKED),
        (LEFT + 352, "idle", IDLE),
    ];
    for (x, name, color) in legend {
        area.draw(&Rectangle::new([(x, 45), (x + 16, 61)], color.filled()))?;
        area.draw(&Text::new(name, (x + 23, 46), small.clone()))?;
    }
    area.draw(&PathElement::new(vec![(LEFT + 452, 53), (LEFT + 480, 53)], QUEUED.stroke_width(2)))?;
    area.draw(&Text::new("tasks in the queue", (LEFT + 488, 46), small))?;
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    args: &Args,
    measured: &Measured,
    top: f64,
) -> Result<(), Box<dyn Error>> {
    let end = f64::from(END);
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .margin_right(24)
        .caption(measured.name, ("sans-serif", 17).into_font().color(&TEXT))
        .x_label_area_size(34)
        .y_label_area_size(46)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.08))
        .axis_style(BLACK.mix(0.4))
        .label_style(("sans-serif", 13).into_font().color(&TEXT))
        .x_labels(12)
        .x_label_formatter(&|time| format!("{:.0} ms", time * args.millis as f64))
        .y_labels(6)
        .y_label_formatter(&|count| format!("{count:.0}"))
        .draw()?;
    // The areas are stacked: the largest is drawn first.
    let stacked: [(RGBColor, Count); 3] = [
        (IDLE, Counts::workers),
        (BLOCKED, |counts| counts.running + counts.blocked),
        (RUNNING, |counts| counts.running),
    ];
    for (color, count) in stacked {
        let steps = steps(measured, count);
        chart.draw_series(AreaSeries::new(steps, 0.0, color.filled()))?;
    }
    let queued = steps(measured, |counts| counts.queued);
    chart.draw_series(LineSeries::new(queued, QUEUED.stroke_width(2)))?;
    for (name, size) in [("core_size", measured.core_size), ("max_size", MAX_SIZE)] {
        if size == 0 {
            continue;
        }
        let line = [(0.0, size as f64), (end, size as f64)];
        chart.draw_series(DashedLineSeries::new(line, 4, 4, BLACK.mix(0.5).into()))?;
        let small = ("sans-serif", 12).into_font().color(&TEXT);
        chart.draw_series([Text::new(name, (end - 3.2, size as f64 + top * 0.08), small)])?;
    }
    let phases = [
        (0, "burst"),
        (SECOND_BURST, "burst, then a trickle of short tasks"),
        (THIRD_BURST, "burst of blocking regions"),
    ];
    for (start, name) in phases {
        let small = ("sans-serif", 13).into_font().color(&TEXT);
        chart.draw_series([Text::new(name, (f64::from(start) + 1.0, top * 0.98), small)])?;
    }
    Ok(())
}

/// The corners of a curve that changes in steps.
fn steps(measured: &Measured, count: Count) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for (time, counts) in &measured.counts {
        let value = count(*counts) as f64;
        match corners.last() {
            Some((_, last)) if *last == value => {}
            Some((_, last)) => corners.extend([(*time, *last), (*time, value)]),
            None => corners.push((*time, value)),
        }
    }
    corners.extend(corners.last().map(|(_, last)| (f64::from(END), *last)));
    corners
}
