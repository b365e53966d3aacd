//! The controller under arbitrary measurements, and in a simulation of workers, CPUs and tasks.

use std::collections::VecDeque;

use super::{Controller, Measurement, SLACK};

const MAX: usize = 512;

fn measured(running: usize, awake: f64) -> Measurement {
    Measurement { running, awake, used: awake, has_work: true, is_short: true }
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
            };
            let next = controller.next(allowed, n, measured);
            assert!(next >= n, "{measured:?}");
            assert!(next <= (2 * allowed).max(allowed + 1), "{allowed} to {next}: {measured:?}");
            assert!(next <= allowed || (measured.is_short && measured.used < n as f64));
            assert!(next >= allowed || measured.awake > n as f64 + SLACK);
            allowed = next;
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
                    allowed = controller.next(allowed, n, measured).min(MAX);
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
        allowed = controller.next(allowed, 2, measured(allowed, 0.0));
        assert_eq!(allowed, expected);
    }
}

#[test]
fn a_number_that_is_too_high_is_lowered_at_the_second_measurement() {
    let mut controller = Controller::default();
    assert_eq!(controller.next(512, 2, measured(512, 512.0)), 512, "it may be a moment");
    assert!(controller.is_undecided(true));
    assert_eq!(controller.next(512, 2, measured(512, 512.0)), 3);
    // The workers above it still run their tasks.
    for running in [512, 100, 10, 3] {
        let next = controller.next(3, 2, measured(running, running as f64));
        assert!((2..=3).contains(&next), "{next} of {running}");
    }
}

/// Tasks that wait shortly and often: at the moment of a measurement they may all sleep.
#[test]
fn tasks_that_use_the_cpus_are_no_reason_for_more_though_none_is_awake_just_now() {
    let mut controller = Controller::default();
    for _ in 0..10 {
        let measured = Measurement { used: 2.0, ..measured(40, 0.0) };
        assert_eq!(controller.next(40, 2, measured), 40);
    }
    let measured = Measurement { used: 1.6, ..measured(40, 0.0) };
    assert_eq!(controller.next(40, 2, measured), 50, "as many more as use the other 0.4 CPUs");
}

/// Nothing has run while the process was stopped, or its group had used its quota: then its threads wait for a CPU, or sleep as
/// before. Busy processes beside it take CPUs, and its threads wait for them.
#[test]
fn threads_without_a_cpu_are_no_reason_for_more() {
    let mut controller = Controller::default();
    for _ in 0..100 {
        assert_eq!(controller.next(2, 2, measured(2, 2.0)), 2);
    }
    assert!(!controller.is_undecided(true));
}

#[test]
fn nothing_is_raised_while_no_task_waits_or_workers_are_still_starting() {
    let mut controller = Controller::default();
    let calm = Measurement { running: 2, awake: 0.0, used: 0.0, has_work: false, is_short: false };
    assert_eq!(controller.next(2, 2, calm), 2);
    assert!(!controller.is_undecided(true));
    let starting =
        Measurement { running: 5, awake: 0.0, used: 0.0, has_work: true, is_short: false };
    assert_eq!(controller.next(8, 2, starting), 8);
    assert!(controller.is_undecided(true), "asked again soon");
}

/// A task: how long it computes and sleeps, in turn, in steps.
type Task = Vec<usize>;

/// Steps in a millisecond.
const MILLI: usize = 20;

struct Outcome {
    millis: f64,
    peak: usize,
    /// The numbers at each measurement.
    numbers: Vec<usize>,
}

/// Runs the tasks on as many CPUs as `cpus`, of which others use `stolen` shares. `fixed`: on that many workers, without measurements.
fn simulate(tasks: &[Task], cpus: usize, stolen: f64, fixed: Option<usize>) -> Outcome {
    struct Worker {
        left: VecDeque<usize>,
        is_awake: bool,
    }
    impl Worker {
        fn take(&mut self, task: &Task) {
            self.left = task.iter().copied().collect();
            self.is_awake = true;
            self.skip();
        }
        fn skip(&mut self) {
            while self.left.front() == Some(&0) {
                self.left.pop_front();
                self.is_awake = !self.is_awake;
            }
        }
    }
    let mut queue: VecDeque<&Task> = tasks.iter().collect();
    let mut workers: Vec<Worker> = Vec::new();
    let (mut controller, mut allowed) = (Controller::default(), fixed.unwrap_or(cpus));
    let (mut step, mut next_at, mut peak) = (0, MILLI, 0);
    // The steps of CPU time since the last measurement, and what that found.
    let (mut used, mut measured_at, mut ran) = (0, 0, 0);
    let mut numbers = Vec::new();
    while !(queue.is_empty() && workers.is_empty()) {
        while workers.len() < allowed && !queue.is_empty() {
            let mut worker = Worker { left: VecDeque::new(), is_awake: true };
            worker.take(queue.pop_front().unwrap());
            workers.push(worker);
        }
        peak = peak.max(workers.len());
        // The first ones compute; the others wait for a CPU. They take turns.
        let mut free = (0..cpus).filter(|_| fastrand::f64() >= stolen).count();
        for worker in &mut workers {
            if !worker.is_awake {
                worker.left[0] -= 1;
            } else if free > 0 {
                free -= 1;
                used += 1;
                worker.left[0] -= 1;
            }
        }
        if step % (3 * MILLI) == 0 && !workers.is_empty() {
            workers.rotate_left(1);
        }
        step += 1;
        workers.iter_mut().for_each(Worker::skip);
        // A worker takes its next task, unless more run than may.
        let mut ended = 0;
        let count = workers.len();
        workers.retain_mut(|worker| {
            if worker.left.is_empty() && count - ended <= allowed {
                if let Some(task) = queue.pop_front() {
                    worker.take(task);
                }
            }
            ended += usize::from(worker.left.is_empty());
            !worker.left.is_empty()
        });
        if step >= next_at && fixed.is_none() {
            let awake = workers.iter().filter(|worker| worker.is_awake).count() as f64;
            let (running, has_work) = (workers.len(), !queue.is_empty());
            let is_short = has_work && running >= allowed;
            let cpus_used =
                if running > ran { awake } else { f64::from(used) / (step - measured_at) as f64 };
            (used, measured_at, ran) = (0, step, running);
            let measured = Measurement { running, awake, used: cpus_used, has_work, is_short };
            allowed = controller.next(allowed, cpus, measured).clamp(cpus, MAX);
            numbers.push(allowed);
            // Not in step with the tasks.
            let pause = if controller.is_undecided(true) { MILLI } else { 4 * MILLI };
            next_at = step + pause + fastrand::usize(..MILLI);
        }
    }
    Outcome { millis: step as f64 / MILLI as f64, peak, numbers }
}

fn tasks(count: usize, task: &[usize]) -> Vec<Task> {
    vec![task.to_vec(); count]
}

/// The best time of the fixed numbers.
fn best(tasks: &[Task], cpus: usize) -> f64 {
    let sizes = [2, 8, 32, 128, 512].into_iter();
    sizes.map(|size| simulate(tasks, cpus, 0.0, Some(size)).millis).fold(f64::INFINITY, f64::min)
}

#[test]
fn a_load_takes_about_as_long_as_with_the_best_fixed_number() {
    let half = |_| [[MILLI, 0], [0, 20 * MILLI]].map(Vec::from);
    let half: Vec<Task> = (0..1_000).flat_map(half).collect();
    let mut shuffled = half.clone();
    fastrand::shuffle(&mut shuffled);
    for (name, tasks, bound, most) in [
        ("compute", tasks(1_000, &[2 * MILLI]), 1.02, 4),
        ("sleep", tasks(5_000, &[0, 10 * MILLI]), 1.2, MAX),
        ("half in turn", half, 1.1, 200),
        ("half at random", shuffled, 1.1, 200),
        ("a wait in between", tasks(1_000, &[MILLI / 2, 5 * MILLI, MILLI / 2]), 1.1, 100),
    ] {
        for cpus in [2, 8] {
            // As long on each machine.
            let tasks = vec![tasks.clone(); cpus / 2].concat();
            let run = simulate(&tasks, cpus, 0.0, None);
            let ratio = run.millis / best(&tasks, cpus);
            assert!(ratio < bound, "{name} on {cpus}: {ratio:.2}, {:?}", run.numbers);
            let most = most * cpus / 2;
            assert!(run.peak <= most.min(MAX), "{name} on {cpus}: {}, {:?}", run.peak, run.numbers);
        }
    }
}

#[test]
fn tasks_that_compute_beside_busy_processes_get_no_more_workers() {
    for stolen in [0.3, 0.5, 0.8] {
        let run = simulate(&tasks(500, &[2 * MILLI]), 2, stolen, None);
        assert!(run.peak <= 4, "{stolen}: {:?}", run.numbers);
    }
}

#[test]
fn phases_take_about_as_long_as_each_of_them_with_its_best_number() {
    let (compute, sleep) = (tasks(250, &[2 * MILLI]), tasks(10_000, &[0, 10 * MILLI]));
    let best = 2.0 * (best(&compute, 2) + best(&sleep, 2));
    let run = simulate(&[compute.clone(), sleep.clone(), compute, sleep].concat(), 2, 0.0, None);
    let ratio = run.millis / best;
    assert!(ratio < 1.1, "{ratio:.2}, {:?}", run.numbers);
}
