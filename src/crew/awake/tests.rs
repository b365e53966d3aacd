//! The controller under arbitrary measurements, and in a simulation of workers, CPUs and tasks.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Controller, Measurement, SLACK};

const MAX: usize = 512;

/// The sizes of the pool.
const SIZES: (usize, usize) = (0, MAX);

fn measured(running: usize, awake: f64) -> Measurement {
    Measurement {
        running,
        awake,
        used: awake,
        ended: running,
        elapsed: Duration::from_millis(10),
        has_work: true,
        is_short: true,
        ..Measurement::default()
    }
}

#[test]
fn the_number_stays_within_its_bounds_and_doubles_at_most() {
    for _ in 0..2_000 {
        let n = fastrand::usize(1..100);
        let mut controller = Controller::default();
        let mut allowed = n + fastrand::usize(..MAX);
        for _ in 0..50 {
            let running = fastrand::usize(..=2 * allowed);
            let measured = Measurement {
                running,
                awake: running as f64 * fastrand::f64(),
                used: n as f64 * fastrand::f64(),
                has_work: fastrand::bool(),
                is_short: fastrand::bool(),
                ..Measurement::default()
            };
            let next = controller.next(allowed, n, SIZES, measured);
            assert!(next >= n, "{measured:?}");
            assert!(next <= (2 * allowed).max(allowed + 1), "{allowed} to {next}: {measured:?}");
            assert!(next <= allowed || (measured.is_short && measured.used < n as f64));
            assert!(next >= allowed || measured.awake > n as f64 + SLACK);
            allowed = next;
        }
    }
}

#[test]
fn the_number_stays_within_its_bounds_whatever_contends() {
    for _ in 0..2_000 {
        let n = fastrand::usize(1..100);
        let mut controller = Controller::default();
        let mut allowed = n + fastrand::usize(..MAX);
        let (mut highest, max_size) = (allowed, MAX.max(2 * allowed));
        for _ in 0..200 {
            let running = fastrand::usize(..=allowed + 1);
            let measured = Measurement {
                running,
                awake: n as f64 * fastrand::f64(),
                on: [running as f64, 0.0],
                used: n as f64 * fastrand::f64(),
                ended: fastrand::usize(..2 * running + 2) * fastrand::usize(..2),
                elapsed: Duration::from_micros(fastrand::u64(1..10_000)),
                has_work: fastrand::f64() < 0.95,
                is_short: running >= allowed,
            };
            let next = controller.next(allowed, n, (0, max_size), measured);
            assert!((n..=max_size).contains(&next), "{measured:?}");
            assert!(next <= (2 * allowed).max(allowed + 1).max(highest), "{allowed} to {next}");
            (allowed, highest) = (next, highest.max(next));
        }
    }
}

/// Of each number of workers the same share is awake.
#[test]
fn a_constant_share_leads_to_the_right_number_without_oscillation() {
    for n in [1, 2, 3, 8, 64] {
        for share in [1.0, 0.9, 0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.0] {
            for begin in [n, 3 * n, MAX] {
                let (mut controller, mut allowed) = (Controller::default(), begin);
                let mut numbers = Vec::new();
                for _ in 0..80 {
                    let measured = measured(allowed, share * allowed as f64);
                    allowed = controller.next(allowed, n, SIZES, measured).min(MAX);
                    numbers.push(allowed);
                }
                let turns = numbers
                    .windows(3)
                    .filter(|w| (w[0] < w[1]) != (w[1] < w[2]) && w[0] != w[1] && w[1] != w[2]);
                assert_eq!(turns.count(), 0, "{n}, {share}, {begin}: {numbers:?}");
                assert!(
                    numbers[60..].iter().all(|&number| number == allowed),
                    "{n}, {share}: {numbers:?}"
                );
                let right = (n as f64 / share).min(MAX as f64);
                let awake = share * allowed as f64;
                assert!(allowed as f64 >= 0.9 * right, "{n}, {share}: {numbers:?}");
                let slack = SLACK + (allowed as f64 - awake) / 2.0;
                assert!(awake <= n as f64 + slack, "{n}, {share}: {numbers:?}");
            }
        }
    }
}

#[test]
fn all_sleepers_double_the_number_each_time() {
    let (mut controller, mut allowed) = (Controller::default(), 2);
    for expected in [4, 8, 16, 32, 64, 128, 256, 512] {
        allowed =
            controller.next(allowed, 2, SIZES, Measurement { ended: 0, ..measured(allowed, 0.0) });
        assert_eq!(allowed, expected);
    }
}

#[test]
fn a_number_that_is_too_high_is_lowered_after_a_turn() {
    let mut controller = Controller::default();
    for _ in 0..8 {
        let moment = Measurement { ended: 60, ..measured(512, 512.0) };
        assert_eq!(controller.next(512, 2, SIZES, moment), 512, "it may be a moment");
    }
    assert_eq!(controller.next(512, 2, SIZES, measured(512, 512.0)), 3);
    // The workers above it still run their tasks.
    for running in [512, 100, 10, 3] {
        let next = controller.next(3, 2, SIZES, measured(running, running as f64));
        assert!((2..=3).contains(&next), "{next} of {running}");
    }
}

/// Fewer end in each burst than run, and each burst comes long after the one before.
#[test]
fn a_number_that_is_too_high_is_lowered_in_short_bursts() {
    let mut controller = Controller::default();
    let numbers = (0..200).map(|moment| {
        if moment % 20 == 0 {
            controller.begin();
        }
        controller.next(512, 2, SIZES, Measurement { ended: 4, ..measured(512, 512.0) })
    });
    assert_eq!(numbers.min(), Some(3));
}

/// One moment in which a few tasks wait for a lock.
#[test]
fn a_lock_does_not_hold_up_a_number_that_is_too_high_for_tasks_that_compute() {
    let mut controller = Controller::default();
    let waits = Measurement { on: [1.0, 0.0], ended: 1, ..measured(512, 511.0) };
    assert_eq!(controller.next(512, 2, SIZES, waits), 512);
    let compute = Measurement { ended: 1, ..measured(512, 512.0) };
    let least = (0..60).map(|_| controller.next(512, 2, SIZES, compute)).min();
    assert!(least <= Some(4), "{least:?}");
}

/// Tasks that wait shortly and often: at the moment of a measurement they may all sleep.
#[test]
fn tasks_that_use_the_cpus_are_no_reason_for_more_though_none_is_awake_just_now() {
    let mut controller = Controller::default();
    for _ in 0..10 {
        let measured = Measurement { used: 2.0, ..measured(40, 0.0) };
        assert_eq!(controller.next(40, 2, SIZES, measured), 40);
    }
    let measured = Measurement { used: 1.6, ..measured(40, 0.0) };
    let next = (0..100).map(|_| controller.next(40, 2, SIZES, measured)).max();
    assert_eq!(next, Some(64), "as the sleepers and the slack, after a turn");
}

/// Tasks that sleep and then compute: after the number was lowered all of them may sleep at a time.
#[test]
fn a_moment_in_which_a_herd_sleeps_is_no_reason_for_many_more() {
    let mut controller = Controller::default();
    let herd = Measurement { ended: 32, ..measured(64, 40.0) };
    assert_eq!(controller.next(64, 2, SIZES, herd), 64);
    assert_eq!(controller.next(64, 2, SIZES, herd), 33);
    // For less time than twice that of one that has slept.
    let elapsed = Duration::from_micros(400);
    for _ in 0..30 {
        let asleep = Measurement { ended: 1, used: 0.0, elapsed, ..measured(33, 0.0) };
        assert_eq!(controller.next(33, 2, SIZES, asleep), 33, "as many tasks have not ended yet");
    }
}

/// They may never end.
#[test]
fn workers_with_long_tasks_above_a_lowered_number_do_not_hold_it_up() {
    let (mut controller, mut allowed) = (Controller::default(), 20);
    let asleep = Measurement { ended: 0, is_short: false, ..measured(20, 0.0) };
    assert_eq!(controller.next(allowed, 1, SIZES, asleep), 20);
    for _ in 0..300 {
        let awake = Measurement { ended: 0, ..measured(20, 20.0) };
        allowed = controller.next(allowed, 1, SIZES, awake);
    }
    assert_eq!(allowed, 2);
}

/// The idle time of other tasks is longer than these have taken.
#[test]
fn other_tasks_that_sleep_get_many_workers_soon() {
    let (mut controller, mut allowed) = (Controller::default(), 3);
    for _ in 0..100 {
        assert_eq!(controller.next(3, 2, SIZES, measured(3, 2.0)), 3);
    }
    for _ in 0..10 {
        let asleep = Measurement { ended: 0, ..measured(allowed, 0.0) };
        allowed = controller.next(allowed, 2, SIZES, asleep);
    }
    assert!(allowed > 256, "{allowed}");
}

/// Of many tasks that compute together each gets a small part of a CPU, and they are fewer than may
/// run: how long they took says nothing of how long a herd may sleep.
#[test]
fn tasks_that_sleep_get_many_workers_soon_after_many_that_computed_together() {
    let (mut controller, mut allowed) = (Controller::default(), MAX);
    for _ in 0..5 {
        assert_eq!(controller.next(MAX, 2, SIZES, measured(MAX, 0.0)), MAX);
    }
    for ended in [5, 0].repeat(50) {
        let computing = Measurement { ended, is_short: allowed < 60, ..measured(60, 60.0) };
        allowed = controller.next(allowed, 2, SIZES, computing);
    }
    assert!(allowed <= 3, "{allowed}");
    for _ in 0..20 {
        let asleep = Measurement { ended: 0, ..measured(allowed, 0.0) };
        allowed = controller.next(allowed, 2, SIZES, asleep);
    }
    assert!(allowed > 256, "{allowed}");
}

/// Nothing has run while the process was stopped, or its group had used its quota: then its threads
/// wait for a CPU, or sleep as before. Busy processes beside it take CPUs, and its threads wait for
/// them.
#[test]
fn threads_without_a_cpu_are_no_reason_for_more() {
    let mut controller = Controller::default();
    for _ in 0..100 {
        assert_eq!(controller.next(2, 2, SIZES, measured(2, 2.0)), 2);
    }
    assert!(!controller.is_undecided(true));
}

#[test]
fn nothing_is_raised_while_no_task_waits_or_workers_are_still_starting() {
    let mut controller = Controller::default();
    let calm = Measurement { running: 2, ..Measurement::default() };
    assert_eq!(controller.next(2, 2, SIZES, calm), 2);
    assert!(!controller.is_undecided(true));
    let starting = Measurement { running: 5, has_work: true, ..Measurement::default() };
    assert_eq!(controller.next(8, 2, SIZES, starting), 8);
    assert!(controller.is_undecided(true), "asked again soon");
}

#[test]
fn nothing_is_searched_while_no_task_is_queued() {
    let (mut controller, mut allowed) = (Controller::default(), 2);
    let blocked = |running, has_work| Measurement {
        on: [running as f64, 0.0],
        ended: 0,
        elapsed: Duration::from_millis(1),
        has_work,
        is_short: has_work,
        ..measured(running, 0.0)
    };
    while allowed < 64 {
        allowed = controller.next(allowed, 2, (0, 64), blocked(allowed, true));
    }
    assert!(controller.is_undecided(false), "a task may end");
    assert_eq!(controller.next(64, 2, (0, 64), blocked(64, false)), 64);
    assert!(!controller.is_undecided(false), "the keeper may sleep");
}

/// What a task does, in steps. What contends is asleep until another task, or a disk, lets it go
/// on.
#[derive(Clone, Copy)]
enum Do {
    Compute(usize),
    /// Asleep in a timer, a socket, a pipe.
    Sleep(usize),
    /// Asleep until a thread outside the pool replies.
    Reply(usize),
    /// One of the permits of a semaphore, or a lock.
    Take(usize),
    Give(usize),
    /// Until the first resource, a disk, has served it.
    Disk(usize),
    /// Waits for an event, or makes it happen.
    Wait(usize),
    Signal(usize),
}
use Do::{Compute, Disk, Give, Reply, Signal, Sleep, Take, Wait};

type Task = Vec<Do>;

/// Steps in a millisecond.
const MILLI: usize = 20;

/// Where the number changes.
fn changes(numbers: &[(f64, usize)]) -> Vec<(f64, usize)> {
    let mut changes = numbers.to_vec();
    changes.dedup_by_key(|change| change.1);
    changes
}

#[derive(Default)]
struct Outcome {
    millis: f64,
    peak: usize,
    /// The numbers at each measurement, and when in milliseconds.
    numbers: Vec<(f64, usize)>,
    /// When tasks ended.
    ends: Vec<f64>,
}

struct Worker {
    left: VecDeque<Do>,
    is_served: bool,
    /// The steps of CPU time since the last measurement.
    used: usize,
}

/// The machine that runs the tasks.
struct Simulation {
    cpus: usize,
    /// The share of the CPUs that others use.
    stolen: f64,
    /// How many may have each resource. The first is the disk.
    resources: Vec<usize>,
    /// How many steps one takes from hand to hand if several wait: they wait for CPUs, too.
    handover: usize,
    /// On that many workers, without measurements.
    fixed: Option<usize>,
    /// Ends after that many milliseconds.
    limit: usize,
    /// When the first tasks come, in milliseconds. The others are there at the beginning.
    comes_at: Vec<usize>,
}

const SEED: u64 = 1;

impl Simulation {
    fn new(cpus: usize) -> Self {
        // Chance leads some runs astray, so each test sees the same one each time.
        fastrand::seed(SEED);
        Simulation {
            cpus,
            stolen: 0.0,
            resources: vec![1; 4],
            handover: 0,
            fixed: None,
            limit: usize::MAX / MILLI,
            comes_at: Vec::new(),
        }
    }

    fn run(&self, tasks: &[Task]) -> Outcome {
        let (late, now) = tasks.split_at(self.comes_at.len());
        let mut late: VecDeque<_> = self.comes_at.iter().zip(late).collect();
        let mut queue: VecDeque<&Task> = now.iter().collect();
        let mut workers: Vec<Worker> = Vec::new();
        let mut free = self.resources.clone();
        let mut events = std::collections::HashSet::new();
        let (mut controller, mut allowed) =
            (Controller::default(), self.fixed.unwrap_or(self.cpus));
        let (mut step, mut next_at) = (0, MILLI);
        // The steps of CPU time and the tasks ended since the last measurement, and what that
        // found.
        let (mut used, mut ended, mut measured_at, mut ran) = (0, 0, 0, 0);
        let mut outcome = Outcome::default();
        // Whether the queue was empty at the last measurement: the pool is not measured then.
        let mut was_idle = true;
        let mut calm = 0;
        while !(late.is_empty() && queue.is_empty() && workers.is_empty())
            && step < self.limit * MILLI
        {
            while late.front().is_some_and(|(at, _)| **at * MILLI <= step) {
                queue.extend(late.pop_front().map(|(_, task)| task));
            }
            // Two threads start in a step.
            for _ in 0..2 {
                if workers.len() < allowed {
                    if let Some(task) = queue.pop_front() {
                        workers.push(Worker {
                            left: task.iter().copied().collect(),
                            is_served: false,
                            used: 0,
                        });
                    }
                }
            }
            outcome.peak = outcome.peak.max(workers.len());
            // The first ones compute; the others wait for a CPU. They take turns.
            let mut idle = (0..self.cpus).filter(|_| fastrand::f64() >= self.stolen).count();
            let waits = |worker: &&Worker| matches!(worker.left.front(), Some(Take(_)));
            let waiting = workers.iter().filter(waits).count();
            for worker in &mut workers {
                // Until something takes time.
                loop {
                    match worker.left.front_mut() {
                        Some(Compute(0) | Sleep(0) | Reply(0)) => {}
                        Some(Compute(left)) => {
                            if idle > 0 {
                                (idle, used, *left) = (idle - 1, used + 1, *left - 1);
                                worker.used += 1;
                            }
                            break;
                        }
                        Some(Sleep(left) | Reply(left)) => {
                            *left -= 1;
                            break;
                        }
                        Some(Disk(0)) => {
                            free[0] += 1;
                            worker.is_served = false;
                        }
                        Some(Disk(left)) => {
                            if !worker.is_served && free[0] > 0 {
                                (worker.is_served, free[0]) = (true, free[0] - 1);
                            }
                            *left -= usize::from(worker.is_served);
                            break;
                        }
                        Some(Take(resource)) => match &mut free[*resource] {
                            0 => break,
                            free => {
                                *free -= 1;
                                if waiting > 1 {
                                    worker.left[0] = Sleep(self.handover);
                                    continue;
                                }
                            }
                        },
                        Some(Give(resource)) => free[*resource] += 1,
                        Some(Wait(event)) => {
                            if !events.contains(event) {
                                break;
                            }
                        }
                        Some(Signal(event)) => {
                            events.insert(*event);
                        }
                        None => break,
                    }
                    worker.left.pop_front();
                }
            }
            if step % (3 * MILLI) == 0 && !workers.is_empty() {
                workers.rotate_left(1);
            }
            step += 1;
            // A worker takes its next task, unless more run than may.
            let (count, mut gone) = (workers.len(), 0);
            workers.retain_mut(|worker| {
                if worker.left.iter().all(|left| matches!(left, Compute(0) | Sleep(0) | Reply(0))) {
                    ended += 1;
                    outcome.ends.push(step as f64 / MILLI as f64);
                    worker.left.clear();
                    if count - gone <= allowed {
                        if let Some(task) = queue.pop_front() {
                            worker.left = task.iter().copied().collect();
                        }
                    }
                    gone += usize::from(worker.left.is_empty());
                }
                !worker.left.is_empty()
            });
            if step >= next_at && self.fixed.is_none() && !(was_idle && queue.is_empty()) {
                // Those that have run since then and the others: of each kind a few are asked.
                let (mut awake, mut on) = (0.0, [0.0; 2]);
                let (has_run, others): (Vec<_>, Vec<_>) =
                    workers.iter().partition(|worker| worker.used > 0);
                let mut asked_count = 0;
                for kind in [has_run, others] {
                    let asked = fastrand::choose_multiple(kind.iter(), 4);
                    let weight = kind.len() as f64 / asked.len().max(1) as f64;
                    asked_count += asked.len();
                    for worker in asked {
                        match worker.left[0] {
                            Compute(_) => awake += weight,
                            Reply(_) | Take(_) | Wait(_) => on[0] += weight,
                            Disk(_) => on[1] += weight,
                            _ => {}
                        }
                    }
                }
                workers.iter_mut().for_each(|worker| worker.used = 0);
                let (running, has_work) = (workers.len(), !queue.is_empty());
                was_idle = !has_work;
                let elapsed = step - measured_at;
                let cpus_used = if running > ran { awake } else { used as f64 / elapsed as f64 };
                let is_short = has_work && running >= allowed;
                let measured = Measurement {
                    running,
                    awake,
                    on,
                    used: cpus_used,
                    ended,
                    elapsed: Duration::from_millis(1).mul_f64(elapsed as f64 / MILLI as f64),
                    has_work,
                    is_short,
                };
                let is_growing = has_work && running > ran;
                let before = allowed;
                (used, ended, measured_at, ran) = (0, 0, step, running);
                allowed =
                    controller.next(allowed, self.cpus, SIZES, measured).clamp(self.cpus, MAX);
                outcome.numbers.push((step as f64 / MILLI as f64, allowed));
                let is_undecided = is_growing || controller.is_undecided(allowed < MAX);
                calm = if is_undecided || allowed != before { 0 } else { calm + 1 };
                // The microseconds that it has taken.
                let took = 20 + 9 * asked_count + running / 2;
                let pause = took * (10 << calm.min(5)).min(200) * MILLI / 1_000;
                // Not in step with the tasks.
                next_at = step + pause.max(MILLI) + fastrand::usize(..MILLI / 4);
            }
        }
        outcome.millis = step as f64 / MILLI as f64;
        outcome
    }

    /// The milliseconds with that many workers.
    fn fixed(&self, tasks: &[Task], size: usize) -> f64 {
        let resources = self.resources.clone();
        let comes_at = self.comes_at.clone();
        Simulation { fixed: Some(size), resources, comes_at, ..*self }.run(tasks).millis
    }

    /// The best time of the fixed numbers.
    fn best(&self, tasks: &[Task]) -> f64 {
        [2, 8, 32, 128, 512]
            .map(|size| self.fixed(tasks, size))
            .into_iter()
            .fold(f64::INFINITY, f64::min)
    }
}

fn tasks(count: usize, task: &[Do]) -> Vec<Task> {
    vec![task.to_vec(); count]
}

#[test]
fn a_load_takes_about_as_long_as_with_the_best_fixed_number() {
    fastrand::seed(SEED);
    let half = |_| [vec![Compute(MILLI)], vec![Sleep(20 * MILLI)]];
    let half: Vec<Task> = (0..1_000).flat_map(half).collect();
    let mut shuffled = half.clone();
    fastrand::shuffle(&mut shuffled);
    let in_between = [Compute(MILLI / 2), Sleep(5 * MILLI), Compute(MILLI / 2)];
    for (name, tasks, bound, most) in [
        ("compute", tasks(1_000, &[Compute(2 * MILLI)]), 1.02, 4),
        ("sleep", tasks(5_000, &[Sleep(10 * MILLI)]), 1.2, MAX),
        ("half in turn", half, 1.1, 200),
        ("half at random", shuffled, 1.1, 200),
        ("a wait in between", tasks(1_000, &in_between), 1.1, 100),
    ] {
        for cpus in [2, 8] {
            // As long on each machine.
            let tasks = vec![tasks.clone(); cpus / 2].concat();
            let simulation = Simulation::new(cpus);
            let run = simulation.run(&tasks);
            let ratio = run.millis / simulation.best(&tasks);
            assert!(ratio < bound, "{name} on {cpus}: {ratio:.2}, {:?}", changes(&run.numbers));
            let most = most * cpus / 2;
            assert!(
                run.peak <= most.min(MAX),
                "{name} on {cpus}: {}, {:?}",
                run.peak,
                changes(&run.numbers)
            );
        }
    }
}

/// A task each that holds the lock for a millisecond, asleep.
fn locked(count: usize) -> Vec<Task> {
    tasks(count, &[Take(1), Sleep(MILLI), Give(1)])
}

#[test]
fn more_workers_that_contend_have_to_pay() {
    let working = [Compute(MILLI / 2), Take(1), Compute(MILLI / 2), Give(1)];
    let stages = [Disk(2 * MILLI), Compute(MILLI / 2), Sleep(5 * MILLI)];
    // The number of each resource, a size that is among the best, what is allowed of its time, and
    // of workers for each CPU.
    for (name, resources, tasks, best, bound, most) in [
        ("a lock, asleep", [1, 1], locked(2_000), 2, 1.05, 7),
        ("a lock, awake", [1, 1], tasks(2_000, &[Take(1), Compute(MILLI), Give(1)]), 2, 1.05, 7),
        ("half under a lock", [1, 1], tasks(2_000, &working), 8, 1.1, 7),
        (
            "ten connections",
            [1, 10],
            tasks(2_000, &[Take(1), Sleep(5 * MILLI), Give(1)]),
            16,
            1.1,
            32,
        ),
        (
            "ten, served elsewhere",
            [1, 10],
            tasks(2_000, &[Take(1), Reply(5 * MILLI), Give(1)]),
            16,
            1.2,
            32,
        ),
        ("a disk", [1, 1], tasks(2_000, &[Disk(MILLI)]), 4, 1.1, 20),
        ("a disk that serves four", [4, 1], tasks(2_000, &[Disk(4 * MILLI)]), 8, 1.1, 20),
        ("a disk that serves many", [24, 1], tasks(4_000, &[Disk(8 * MILLI)]), 32, 1.1, 20),
        ("a disk, a CPU, a socket", [2, 1], tasks(2_000, &stages), 16, 1.1, 64),
    ] {
        for cpus in [2, 8] {
            let simulation = Simulation { resources: resources.to_vec(), ..Simulation::new(cpus) };
            let run = simulation.run(&tasks);
            let ratio = run.millis / simulation.fixed(&tasks, best);
            assert!(ratio < bound, "{name} on {cpus}: {ratio:.2}, {:?}", changes(&run.numbers));
            assert!(
                run.peak <= most * cpus,
                "{name} on {cpus}: {}, {:?}",
                run.peak,
                changes(&run.numbers)
            );
        }
    }
}

/// Two workers take turns without waiting, and more of them wait.
#[test]
fn a_lock_that_is_handed_over_slowly_gets_no_more_workers_than_cpus() {
    let tasks = tasks(2_000, &[Compute(MILLI / 2), Take(1), Sleep(MILLI / 2), Give(1)]);
    for cpus in [2, 8] {
        let simulation = Simulation { handover: MILLI / 5, ..Simulation::new(cpus) };
        let run = simulation.run(&tasks);
        let ratio = run.millis / simulation.fixed(&tasks, cpus);
        assert!(ratio < 1.1, "{cpus}: {ratio:.2}, {:?}", changes(&run.numbers));
    }
}

/// They sleep as in a lock, and each waits for itself.
#[test]
fn more_workers_that_wait_for_replies_do_pay() {
    let half = |_| [vec![Reply(10 * MILLI)], vec![Sleep(10 * MILLI)]];
    for (name, tasks, bound) in [
        ("10 ms", tasks(2_000, &[Reply(10 * MILLI)]), 2.0),
        ("100 ms", tasks(2_000, &[Reply(100 * MILLI)]), 1.3),
        ("1 s", tasks(1_024, &[Reply(1_000 * MILLI)]), 1.1),
        ("and sleep", (0..1_000).flat_map(half).collect(), 2.0),
    ] {
        for cpus in [2, 8] {
            let simulation = Simulation::new(cpus);
            // By chance a trial does not pay.
            let best = simulation.fixed(&tasks, MAX);
            let mut ratios = [0, 1, 2].map(|seed| {
                fastrand::seed(seed);
                simulation.run(&tasks).millis / best
            });
            ratios.sort_by(f64::total_cmp);
            assert!(ratios[1] < bound, "{name} on {cpus}: {ratios:.2?}");
        }
    }
}

/// Tasks each of which waits for one that is queued behind all of them.
fn hidden_waits(count: usize) -> Vec<Task> {
    let wait = (0..count).map(|event| vec![Wait(event)]);
    wait.chain((0..count).map(|event| vec![Signal(event)])).collect()
}

#[test]
fn tasks_that_wait_for_queued_ones_end() {
    let simulation = Simulation { limit: 10_000, ..Simulation::new(2) };
    for (count, most) in [(64, 18.0), (500, 100.0)] {
        let run = simulation.run(&hidden_waits(count));
        assert!(run.millis < most, "{count}: {} ms, {:?}", run.millis, changes(&run.numbers));
    }
    // The other tasks have ended regularly before.
    let run = simulation.run(&[locked(1_000), hidden_waits(200)].concat());
    assert!(run.millis < 1_300.0, "{} ms, {:?}", run.millis, changes(&run.numbers));
    // Slowly.
    let simulation = Simulation { limit: 60_000, ..simulation };
    for (count, waits) in [(20, 200), (400, 500)] {
        let slowly = tasks(count, &[Take(1), Sleep(100 * MILLI), Give(1)]);
        let run = simulation.run(&[slowly, hidden_waits(waits)].concat());
        let took = run.millis - 100.0 * count as f64;
        assert!(took < 1_000.0, "{took} ms, {:?}", changes(&run.numbers));
    }
}

#[test]
fn the_time_of_an_idle_pool_is_none_without_an_end() {
    for waits in [64, 200, 500] {
        let comes_at = (0..360).map(|task| task / 30 * 180).chain(vec![2_160; 12 + 2 * waits]);
        let comes_at: Vec<_> = comes_at.collect();
        let simulation = Simulation { limit: 10_000, comes_at, ..Simulation::new(2) };
        let run = simulation.run(&[locked(372), hidden_waits(waits)].concat());
        let took = run.millis - 2_160.0;
        assert!(took < 200.0, "{waits}: {took} ms, {:?}", changes(&run.numbers));
    }
}

#[test]
fn bursts_are_no_evidence_for_a_larger_number() {
    for burst in [50, 60, 80] {
        let comes_at: Vec<_> = (0..40 * burst).map(|task| task / burst * 100).collect();
        let simulation = Simulation { comes_at, ..Simulation::new(2) };
        let run = simulation.run(&locked(40 * burst));
        let last = run.numbers.last().unwrap().1;
        assert!(last <= 8, "{burst}: {:?}", changes(&run.numbers));
    }
}

#[test]
fn a_number_that_is_too_small_does_not_stand_for_long() {
    let slowly = |count| tasks(count, &[Take(1), Sleep(20 * MILLI), Give(1)]);
    let replies = tasks(3_000, &[Reply(100 * MILLI)]);
    // After the first search among many workers, and without it.
    for locked in [slowly(1_500), [locked(500), slowly(700)].concat()] {
        let run = Simulation::new(2).run(&[locked.clone(), replies.clone()].concat());
        let took = run.millis - run.ends[locked.len() - 1];
        assert!(took < 7_000.0, "{took} ms, {:?}", changes(&run.numbers));
    }
}

#[test]
fn a_mixture_of_short_and_long_tasks_takes_about_as_long_as_with_many_workers() {
    fastrand::seed(SEED);
    let long = |is_long| if is_long { 100 * MILLI } else { MILLI };
    let replies = (0..20_000).map(|_| vec![Reply(long(fastrand::u8(..4) == 0))]);
    let run = Simulation::new(2).run(&replies.collect::<Vec<_>>());
    let millis = run.millis;
    let best = 20_000.0 * 25.75 / MAX as f64;
    assert!(millis < 1.5 * best, "{millis} of {best:.0}, {:?}", changes(&run.numbers));
}

/// They end after each other, so a round of as many tasks as workers takes ten seconds.
#[test]
fn many_workers_that_wait_for_one_slow_lock_become_few() {
    let slowly = tasks(1_500, &[Take(1), Sleep(20 * MILLI), Give(1)]);
    let run = Simulation { limit: 30_000, ..Simulation::new(2) }.run(&slowly);
    assert!(run.numbers.last().unwrap().1 <= 8, "{:?}", changes(&run.numbers));
}

/// The number is that of tasks that have slept.
#[test]
fn a_large_number_of_workers_that_contend_is_lowered_first() {
    let elapsed = Duration::from_millis(64);
    let measured = Measurement { on: [64.0, 0.0], elapsed, ..measured(64, 0.0) };
    let mut controller = Controller::default();
    let next = (0..10).map(|_| controller.next(64, 2, SIZES, measured));
    assert_eq!(next.into_iter().find(|next| *next != 64), Some(32));
}

#[test]
fn a_constant_load_comes_to_rest() {
    let naps = |sleep, compute| tasks(30_000, &[Sleep(sleep), Compute(compute)]);
    // By which factor the number may change: a trial of a number that contends doubles or halves
    // it, and by chance the next one, too.
    for (name, tasks, factor) in [
        ("5 ms asleep, 0.5 ms awake", naps(5 * MILLI, MILLI / 2), 2),
        ("5 ms asleep, 0.1 ms awake", naps(5 * MILLI, MILLI / 10), 2),
        ("2 ms asleep, 0.5 ms awake", naps(2 * MILLI, MILLI / 2), 2),
        ("20 ms asleep, 1 ms awake", naps(20 * MILLI, MILLI), 2),
        ("a lock", locked(30_000), 2),
        ("a disk", tasks(30_000, &[Disk(MILLI)]), 2),
        ("ten connections", tasks(30_000, &[Take(2), Sleep(5 * MILLI), Give(2)]), 16),
    ] {
        let simulation =
            Simulation { limit: 3_000, resources: vec![1, 1, 10], ..Simulation::new(2) };
        let numbers = simulation.run(&tasks).numbers;
        let ends = numbers.last().unwrap().0;
        let rest = || numbers.iter().filter(|(at, _)| (1_000.0..ends).contains(at));
        let (least, most) = (rest().min_by_key(|rest| rest.1), rest().max_by_key(|rest| rest.1));
        let (least, most) = (least.unwrap().1, most.unwrap().1);
        assert!(most <= factor * least, "{name}: {least} to {most}, {:?}", changes(&numbers));
    }
}

/// The states of a few workers are known at a moment each, and many of them wake up together.
#[test]
fn sleepers_that_wake_up_together_rest_for_a_minute() {
    for (sleep, compute, stolen, seconds) in [
        (5 * MILLI, MILLI / 2, 0.0, 60),
        (5 * MILLI, MILLI / 2, 0.3, 10),
        (5 * MILLI, MILLI / 10, 0.0, 10),
        (5 * MILLI, MILLI / 10, 0.3, 5),
        (20 * MILLI, MILLI, 0.0, 10),
        (20 * MILLI, MILLI, 0.3, 10),
        (MILLI, MILLI / 5, 0.0, 10),
        (MILLI, MILLI / 5, 0.3, 10),
    ] {
        let tasks = tasks(seconds * 2_000 * MILLI / compute, &[Sleep(sleep), Compute(compute)]);
        let simulation = Simulation { limit: seconds * 1_000, stolen, ..Simulation::new(2) };
        let numbers = simulation.run(&tasks).numbers;
        let rest = numbers.iter().filter(|(at, _)| *at > 1_000.0).map(|(_, number)| *number);
        let (least, most) = (rest.clone().min().unwrap(), rest.max().unwrap());
        let name = format!("{sleep}, {compute}, {stolen}");
        assert!(most <= 2 * least, "{name}: {least} to {most}, {:?}", changes(&numbers));
    }
}

#[test]
fn a_full_queue_of_a_disk_is_no_reason_to_measure_again_soon() {
    let (mut controller, mut allowed) = (Controller::default(), 2);
    for _ in 0..20 {
        let on = [0.0, allowed as f64];
        let measured = Measurement { on, used: 1.2, ..measured(allowed, 0.0) };
        allowed = controller.next(allowed, 2, SIZES, measured);
    }
    assert_eq!(allowed, 32);
    assert!(!controller.is_undecided(true));
}

#[test]
fn few_of_many_workers_wait_for_a_disk() {
    let sleep = tasks(10_000, &[Sleep(10 * MILLI)]);
    let run = Simulation::new(2).run(&[sleep, tasks(2_000, &[Disk(MILLI)])].concat());
    assert!(run.peak == MAX && run.numbers.last().unwrap().1 <= 40, "{:?}", changes(&run.numbers));
}

#[test]
fn tasks_that_compute_beside_busy_processes_get_no_more_workers() {
    for stolen in [0.3, 0.5, 0.8] {
        let simulation = Simulation { stolen, ..Simulation::new(2) };
        let run = simulation.run(&tasks(500, &[Compute(2 * MILLI)]));
        assert!(run.peak <= 4, "{stolen}: {:?}", changes(&run.numbers));
    }
}

#[test]
fn phases_take_about_as_long_as_each_of_them_with_its_best_number() {
    let (compute, sleep) = (tasks(250, &[Compute(2 * MILLI)]), tasks(10_000, &[Sleep(10 * MILLI)]));
    let simulation = Simulation::new(2);
    let best = 2.0 * (simulation.best(&compute) + simulation.best(&sleep));
    let run = simulation.run(&[compute.clone(), sleep.clone(), compute, sleep].concat());
    let ratio = run.millis / best;
    assert!(ratio < 1.1, "{ratio:.2}, {:?}", changes(&run.numbers));
}

#[test]
fn phases_may_change_what_the_tasks_wait_for() {
    let sleep = tasks(10_000, &[Sleep(10 * MILLI)]);
    let replies = tasks(10_000, &[Reply(10 * MILLI)]);
    let compute = tasks(250, &[Compute(2 * MILLI)]);
    let simulation = Simulation::new(2);
    let best = |tasks, size| simulation.fixed(tasks, size);
    let all = 4_000.0 + best(&sleep, MAX) + best(&replies, MAX) + best(&compute, 2);
    let run = simulation
        .run(&[locked(500), sleep, locked(500), compute, replies, locked(3_000)].concat());
    assert!(run.millis < 1.3 * all, "{:.0} of {all:.0}, {:?}", run.millis, changes(&run.numbers));
    assert!(run.numbers.last().unwrap().1 <= 64, "{:?}", changes(&run.numbers));
}

/// The number stands while the tasks are the same. By chance it stands beside other tasks, too, and
/// that for a second at most.
#[test]
fn other_tasks_are_found_soon_and_within_a_second_by_chance() {
    let simulation = Simulation::new(2);
    let tasks = [locked(3_000), tasks(2_000, &[Reply(10 * MILLI)])].concat();
    let mut all: Vec<f64> = (0..12)
        .map(|seed| {
            fastrand::seed(seed);
            simulation.run(&tasks).millis
        })
        .collect();
    all.sort_by(f64::total_cmp);
    assert!(all[5] < 3_700.0 && all[11] < 4_800.0, "{all:.0?}");
}
