//! What runs on the pools: bursts, whose times are fixed, or phases, each of which begins when the
//! one before has ended.

use std::hint::black_box;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{mem, thread};

use elastipool::blocking;

use crate::engines::{Counts, Engine, Task};

// ----- the record -----

/// What one pool did. All times are in seconds since the begin.
pub(crate) struct Recording {
    pub(crate) name: String,
    /// The counts whenever they had changed.
    pub(crate) counts: Vec<(f64, Counts)>,
    /// When each phase began.
    pub(crate) phases: Vec<(f64, &'static str)>,
    pub(crate) end: f64,
}

impl Recording {
    /// The counts at a time.
    pub(crate) fn at(&self, time: f64) -> Counts {
        let later = self.counts.partition_point(|(other, _)| *other <= time);
        self.counts[later.saturating_sub(1)].1
    }

    pub(crate) fn peak(&self, count: impl Fn(Counts) -> usize) -> usize {
        self.counts.iter().map(|(_, counts)| count(*counts)).max().unwrap_or_default()
    }

    /// The most workers of a kind in phases of this name.
    pub(crate) fn most_in(&self, name: &str, kind: impl Fn(Counts) -> usize) -> usize {
        let is_inside = |time: f64| {
            let later = self.phases.partition_point(|(start, _)| *start <= time);
            self.phases[later.saturating_sub(1)].1 == name
        };
        let counts = self.counts.iter().filter(|(time, _)| is_inside(*time));
        counts.map(|(_, counts)| kind(*counts)).max().unwrap_or_default()
    }

    /// When the pool had no task any more.
    pub(crate) fn last_task(&self) -> f64 {
        let has_tasks = |counts: &Counts| counts.queued + counts.running + counts.waiting > 0;
        let last = self.counts.iter().rposition(|(_, counts)| has_tasks(counts));
        last.and_then(|last| self.counts.get(last + 1)).map_or(self.end, |end| end.0)
    }

    /// Where each phase ends.
    pub(crate) fn phase_ends(&self) -> impl Iterator<Item = f64> {
        self.phases.iter().skip(1).map(|(start, _)| *start).chain([self.end])
    }
}

/// How many times the counts are read in the time that a task takes.
const LOOKS: u32 = 25;

/// A pool that a load runs on.
pub(crate) struct Stage<'a> {
    engine: &'a dyn Engine,
    /// How long a task of a burst takes, and how long a task sleeps.
    unit: Duration,
    start: Instant,
    told: Arc<Mutex<Told>>,
    phases: Vec<(f64, &'static str)>,
}

/// Puts a load on a pool, and reads its counts meanwhile.
pub(crate) fn record(
    engine: &dyn Engine,
    unit: Duration,
    load: impl FnOnce(&mut Stage<'_>) + Send,
) -> Recording {
    let start = Instant::now();
    let told = Arc::new(Mutex::new(Told::default()));
    let look = || (start.elapsed().as_secs_f64(), engine.counts());
    let mut stage = Stage { engine, unit, start, told: Arc::clone(&told), phases: Vec::new() };
    let mut counts = vec![(0.0, Counts::default())];
    let (phases, end) = thread::scope(|scope| {
        let load = scope.spawn(move || {
            load(&mut stage);
            (stage.phases, start.elapsed())
        });
        while !load.is_finished() {
            let now = look();
            if counts.last().is_none_or(|(_, last)| *last != now.1) {
                counts.push(now);
            }
            thread::sleep(unit / LOOKS);
        }
        load.join().expect("the load does not panic")
    });
    let end = end.as_secs_f64();
    counts.push((end, look().1));
    let log = mem::take(&mut told.lock().expect("no task panics").log);
    if !log.is_empty() {
        counts = merge(&counts, &log, start, unit / LOOKS / 20);
    }
    Recording { name: engine.name().to_owned(), counts, phases, end }
}

/// What the tasks say themselves. Beside hundreds of threads that compute, a look from outside may
/// come late.
#[derive(Default)]
struct Told {
    now: Counts,
    log: Vec<(Instant, Counts)>,
}

impl Told {
    fn change(told: &Mutex<Told>, change: impl FnOnce(&mut Counts)) {
        let mut told = told.lock().expect("no task panics");
        change(&mut told.now);
        let now = told.now;
        told.log.push((Instant::now(), now));
    }
}

/// What the tasks said, and what the looks found about the workers. What was over in a moment is
/// left out.
fn merge(
    looks: &[(f64, Counts)],
    log: &[(Instant, Counts)],
    start: Instant,
    moment: Duration,
) -> Vec<(f64, Counts)> {
    let mut merged = vec![looks[0]];
    for (index, (at, told)) in log.iter().enumerate() {
        if log.get(index + 1).is_some_and(|(next, _)| *next - *at < moment) {
            continue;
        }
        let time = (*at - start).as_secs_f64();
        let before = looks.partition_point(|(other, _)| *other <= time).max(1) - 1;
        let idle = looks[before].1.workers().saturating_sub(told.running + told.waiting);
        merged.push((time, Counts { idle, ..*told }));
    }
    merged.push(looks[looks.len() - 1]);
    merged
}

impl Stage<'_> {
    fn begin(&mut self, phase: &'static str) {
        self.phases.push((self.start.elapsed().as_secs_f64(), phase));
    }

    fn wait_until(&self, time: Duration) {
        thread::sleep((self.start + time).saturating_duration_since(Instant::now()));
    }
}

// ----- bursts -----

/// Tasks of a burst.
pub(crate) const BURST: usize = 20;

/// Times in units of the time that a task takes.
pub(crate) const SECOND_BURST: u32 = 14;
pub(crate) const THIRD_BURST: u32 = 34;
const END: u32 = 48;

/// The tasks of the trickle come this many times in the time that a task of a burst takes, and take
/// a tenth of their interval.
const TRICKLE: u32 = 4;

/// Submits a burst, a burst with a trickle behind it, and a burst that waits in blocking regions.
pub(crate) fn bursts(stage: &mut Stage<'_>) {
    let (engine, unit) = (stage.engine, stage.unit);
    let burst = || (0..BURST).for_each(|_| engine.execute(Box::new(move || thread::sleep(unit))));
    stage.begin("burst");
    burst();
    stage.wait_until(unit * SECOND_BURST);
    stage.begin("burst, then a trickle of short tasks");
    burst();
    let interval = unit / TRICKLE;
    for i in 1..(THIRD_BURST - SECOND_BURST) * TRICKLE {
        stage.wait_until(unit * SECOND_BURST + interval * i);
        engine.execute(Box::new(move || thread::sleep(interval / 10)));
    }
    stage.wait_until(unit * THIRD_BURST);
    stage.begin("burst of blocking regions");
    for _ in 0..BURST {
        engine.execute(Box::new(move || blocking(|| thread::sleep(unit))));
    }
    stage.wait_until(unit * END);
}

// ----- phases -----

/// A task computes for this part of the time for which another one sleeps.
pub(crate) const SHORTER: u32 = 50;

/// Tasks of a phase, for each CPU.
const COMPUTING: usize = 200;
const SLEEPING: usize = 30;

enum Kind {
    Computes,
    Sleeps,
    /// Sleeps for the time that another one computes, under a lock that all of them want.
    Locks,
}

/// What the tasks of a phase do, by their index.
type Phase = (&'static str, usize, fn(usize) -> Kind);

const PHASES: [Phase; 6] = [
    ("compute", COMPUTING, |_| Kind::Computes),
    ("sleep", SLEEPING, |_| Kind::Sleeps),
    ("compute", COMPUTING, |_| Kind::Computes),
    ("sleep", SLEEPING, |_| Kind::Sleeps),
    ("both", 2 * SLEEPING, |index| match index % 2 {
        0 => Kind::Computes,
        _ => Kind::Sleeps,
    }),
    ("lock", COMPUTING, |_| Kind::Locks),
];

/// Runs phases of tasks that compute, that sleep, of both, which are not marked as blocking, and of
/// tasks that wait for one lock.
pub(crate) fn phases(stage: &mut Stage<'_>, cpus: usize, work: Work) {
    let lock = Arc::new(Mutex::new(()));
    for (name, tasks, kind) in PHASES {
        stage.begin(name);
        let (end, ended) = mpsc::channel::<()>();
        for index in 0..tasks * cpus {
            let (unit, told, end) = (stage.unit, Arc::clone(&stage.told), end.clone());
            Told::change(&told, |now| now.queued += 1);
            let lock = Arc::clone(&lock);
            let task: Task = match kind(index) {
                Kind::Computes => Box::new(move || {
                    Told::change(&told, |now| {
                        now.queued -= 1;
                        now.running += 1;
                    });
                    work.compute();
                    Told::change(&told, |now| now.running -= 1);
                    drop(end);
                }),
                kind => Box::new(move || {
                    Told::change(&told, |now| {
                        now.queued -= 1;
                        now.waiting += 1;
                    });
                    if let Kind::Locks = kind {
                        let _held = lock.lock();
                        thread::sleep(unit / SHORTER);
                    } else {
                        thread::sleep(unit);
                    }
                    Told::change(&told, |now| now.waiting -= 1);
                    drop(end);
                }),
            };
            stage.engine.execute(task);
        }
        drop(end);
        // An error, when the last task is gone.
        let _ = ended.recv();
    }
}

/// So much to compute, however long that takes beside other threads.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    rounds: u64,
}

impl Work {
    /// What takes that long on a CPU of its own.
    pub(crate) fn of(time: Duration) -> Self {
        const ROUNDS: u64 = 100_000;
        let fastest = (0..50).map(|_| {
            let begin = Instant::now();
            Work { rounds: ROUNDS }.compute();
            begin.elapsed()
        });
        let fastest = fastest.min().expect("there are some").as_secs_f64().max(1e-9);
        Work { rounds: (ROUNDS as f64 * time.as_secs_f64() / fastest) as u64 }
    }

    fn compute(self) {
        let mut number = 1_u64;
        for round in 0..self.rounds {
            number = black_box(number ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}
