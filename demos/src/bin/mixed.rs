//! How late requests run beside a backlog of long closures: in one pool as it is, and with one
//! worker reserved for them.
//!
//! ```text
//! cargo run --release -p demos --bin mixed                             # tables only
//! cargo run --release -p demos --bin mixed -- --svg lateness.svg       # and a histogram
//! ```
//!
//! It shows
//! - futures beside closures: a request sleeps for a millisecond at a time, as if it waited for a
//!   socket. How late it runs each time is what a client notices,
//! - that a woken future waits for a running closure at most, however many closures are queued,
//! - [views](ThreadPool::view): with [`reserve`](elastipool::ViewBuilder::reserve) on the requests'
//!   view, the closures never occupy the last worker, so a request waits for none of them,
//! - that the closures run as before: as many at a time, in the same order.

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_io::Timer;
use clap::Parser;
use elastipool::{JoinHandle, ThreadPool};
use plotters::prelude::*;

/// Measures how late futures run beside a backlog of closures, without and with a reserved worker.
#[derive(Parser)]
#[command(name = "mixed", version)]
struct Args {
    /// Seconds for each of the two measurements
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Workers for the closures
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Closures that are queued or running at any moment
    #[arg(long, default_value_t = 40)]
    closures: usize,
    /// Milliseconds of CPU time that each closure takes, about
    #[arg(long, default_value_t = 10)]
    millis: u64,
    /// Draws a histogram into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// How long a request sleeps at a time.
const SLEEP: Duration = Duration::from_millis(1);

/// How many requests run at the same time.
const REQUESTS: usize = 4;

/// What one setting has measured.
struct Measured {
    name: &'static str,
    /// How late the requests ran, in milliseconds, sorted.
    lateness: Vec<f64>,
    /// Closures that have ended per second.
    closures: f64,
}

impl Measured {
    /// The smallest lateness that this share of the requests did not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.lateness.len() - 1;
        self.lateness[(last as f64 * share).round() as usize]
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mixed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if args.workers == 0 || !(0.01..=3600.0).contains(&args.seconds) {
        return Err("it takes at least one worker, and between 0.01 and 3600 seconds".into());
    }
    // The same workers for the closures in both. The reserved one has nothing else to do.
    let before = {
        let pool = ThreadPool::builder().core_size(args.workers).max_size(args.workers).build();
        measure("one pool", args, &pool, &pool)
    };
    let after = {
        let size = args.workers + 1;
        let pool = ThreadPool::builder().core_size(args.workers).max_size(size).build();
        let requests = pool.view().name("requests").reserve(1).try_build()?;
        measure("with reserve(1)", args, &pool, &requests)
    };
    let all = [before, after];
    println!(
        "{REQUESTS} futures that sleep for 1 ms at a time, beside {} closures of about {} ms on {} workers:\n",
        args.closures, args.millis, args.workers
    );
    println!("{:<17}{:>42}{:>14}", "", "how late a future ran, in ms", "closures");
    println!(
        "{:<17}{:>8}{:>8}{:>8}{:>8}{:>10}{:>14}",
        "", "p50", "p90", "p99", "max", "futures", "per second"
    );
    for measured in &all {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|share| measured.quantile(share));
        println!(
            "{:<17}{p50:>8.2}{p90:>8.2}{p99:>8.2}{max:>8.2}{:>10}{:>14.0}",
            measured.name,
            measured.lateness.len(),
            measured.closures
        );
    }
    if let Some(file) = &args.svg {
        draw(file, &all)?;
        println!("\nThe histogram is in {}.", file.display());
    }
    Ok(())
}

/// Measures the requests' lateness while the closures keep all workers busy that they may have.
fn measure(name: &'static str, args: &Args, pool: &ThreadPool, requests: &ThreadPool) -> Measured {
    let end = Arc::new(AtomicBool::new(false));
    let ended = Arc::new(AtomicU64::new(0));
    let time = Duration::from_secs_f64(args.seconds);
    let handles: Vec<JoinHandle<Vec<f64>>> =
        (0..REQUESTS).map(|_| requests.spawn_await(request(time))).collect();
    let start = Instant::now();
    for _ in 0..args.closures {
        feed(pool, args.millis, &end, &ended);
    }
    let mut lateness: Vec<f64> = handles.into_iter().flat_map(JoinHandle::await_complete).collect();
    let closures = ended.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    // The closures that are queued do not submit themselves again.
    end.store(true, Ordering::Relaxed);
    pool.join();
    lateness.sort_by(f64::total_cmp);
    Measured { name, lateness, closures }
}

/// Sleeps again and again, and returns how many milliseconds late it ran each time.
async fn request(time: Duration) -> Vec<f64> {
    let (start, mut lateness) = (Instant::now(), Vec::new());
    while lateness.is_empty() || start.elapsed() < time {
        let due = Instant::now() + SLEEP;
        Timer::at(due).await;
        lateness.push(due.elapsed().as_secs_f64() * 1e3);
    }
    lateness
}

/// A closure that computes, and submits another one like it.
fn feed(pool: &ThreadPool, millis: u64, end: &Arc<AtomicBool>, ended: &Arc<AtomicU64>) {
    let (inner, end, ended) = (pool.downgrade(), Arc::clone(end), Arc::clone(ended));
    pool.execute(move || {
        compute(millis);
        ended.fetch_add(1, Ordering::Relaxed);
        if let Some(pool) = inner.upgrade().filter(|_| !end.load(Ordering::Relaxed)) {
            feed(&pool, millis, &end, &ended);
        }
    });
}

/// Computes for about that many milliseconds. Not until a time: a closure that loses its CPU would
/// then do less.
fn compute(millis: u64) {
    let step = |x: u64, _| x.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17);
    black_box((0..millis * 850_000).fold(black_box(millis), step));
}

/// Draws how many of the futures ran how late, in steps that double.
fn draw(file: &Path, all: &[Measured]) -> Result<(), Box<dyn Error>> {
    /// The lower ends of the bars run from 2^-10 ms, a microsecond, to 2^10 ms, a second.
    const STEPS: std::ops::Range<i32> = -10..10;

    let root = SVGBackend::new(file, (900, 260 * all.len() as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    for (measured, area) in all.iter().zip(root.split_evenly((all.len(), 1))) {
        let mut bars = vec![0.0; STEPS.len()];
        for lateness in &measured.lateness {
            let step = lateness.log2().floor().clamp(STEPS.start.into(), (STEPS.end - 1).into());
            bars[(step as i32 - STEPS.start) as usize] += 100.0 / measured.lateness.len() as f64;
        }
        let caption = format!(
            "{}: p50 {:.2} ms, p99 {:.2} ms",
            measured.name,
            measured.quantile(0.5),
            measured.quantile(0.99)
        );
        let mut chart = ChartBuilder::on(&area)
            .caption(caption, ("sans-serif", 18))
            .margin(10)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(f64::from(STEPS.start)..f64::from(STEPS.end), 0.0..100.0)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(STEPS.len() / 2 + 1)
            .x_label_formatter(&|step| milliseconds(*step))
            .x_desc("how late")
            .y_desc("% of the futures")
            .y_label_formatter(&|share| format!("{share:.0}"))
            .draw()?;
        chart.draw_series(bars.iter().zip(STEPS).map(|(share, step)| {
            let (left, right) = (f64::from(step) + 0.05, f64::from(step) + 0.95);
            Rectangle::new([(left, 0.0), (right, *share)], BLUE.mix(0.6).filled())
        }))?;
    }
    root.present()?;
    Ok(())
}

/// Two to the power of `step`, in a unit that suits it.
fn milliseconds(step: f64) -> String {
    let value = step.exp2();
    if value < 1.0 { format!("{:.0} µs", value * 1e3) } else { format!("{value:.0} ms") }
}
