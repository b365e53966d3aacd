//! Submitting: which idle worker is woken, and which thread is started.

use super::{
    Arc, Gate, REFUSE_NEXT, Relaxed, STARTS_KEEPER, counting, explore, explore_both, keep_busy,
    long, pair, pool, thread, with_spins,
};
use crate::ThreadPool;
use crate::sync::parker::{Parker, Signal};

#[test]
fn parker_does_not_lose_a_signal() {
    explore(3, || {
        let parker = Arc::new(Parker::default());
        let others: Vec<_> = [Parker::recheck as fn(&Parker), Parker::unpark]
            .map(|signal| {
                let parker = Arc::clone(&parker);
                thread::spawn(move || signal(&parker))
            })
            .into_iter()
            .collect();
        while parker.park(None) != Signal::Unparked {}
        for other in others {
            other.join().unwrap();
        }
    });
}

/// Race 1, a worker becomes idle: submit versus idle, one producer; join versus the last task: its
/// writes are visible.
#[test]
fn submit_versus_idle() {
    explore_both(3, 2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 3);
        pool.shutdown_join();
    });
}

/// As above, but the worker spins before it rests.
#[test]
fn submit_versus_spin() {
    explore(3, || {
        let pool = with_spins(1, 1).build();
        let ran = Relaxed::new();
        for _ in 0..2 {
            pool.execute(counting(&ran));
        }
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// Two tasks that need each other, and a worker that spins: it takes one and notifies for the
/// other.
#[test]
fn a_spinning_worker_wakes_the_next() {
    explore(1, || {
        let pool = with_spins(2, 2).build();
        assert_eq!(pool.start_core_threads(), 2);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// Submit versus idle, two producers, each of which may find the idle worker.
#[test]
fn two_submitters_versus_idle() {
    explore_both(2, 1, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.execute(task))
        };
        pool.execute(counting(&ran));
        other.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Race 1, the end of a search. Two tasks that need each other: the second must not wait behind the
/// first.
#[test]
fn interdependent_tasks_get_a_worker_each() {
    explore_both(long(2), 1, || {
        let pool = pool(1, 2);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// Two threads are starting at once. Each of two tasks that need each other gets one of them, and
/// no third thread is started. Only reduced: with local queues the model would take minutes, and
/// the race is about tasks in the injector.
#[test]
fn no_more_threads_come_than_tasks() {
    /// Whether two were starting at once, in any execution.
    static BOTH: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

    explore(1, || {
        let pool = pool(0, 3);
        pair().into_iter().for_each(|task| pool.execute(task));
        if pool.shared().counts.starting() == 2 {
            BOTH.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        pool.join();
        assert_eq!(pool.stats().threads_started, 2);
        pool.shutdown_join();
    });
    assert!(BOTH.load(std::sync::atomic::Ordering::Relaxed));
}

/// Two tasks that need each other, and two idle workers. The submitter of the second one relies on
/// the worker that was woken for the first one, and has not taken it yet. That worker wakes the
/// other one, and no thread is started for the task that the other one is about to take.
#[test]
fn a_submitter_relies_on_a_woken_worker() {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether a submission has woken no worker for that reason, in any execution.
    static HAS_RELIED: AtomicBool = AtomicBool::new(false);
    /// Whether the first task ran before the worker for the second one had taken it, in any
    /// execution.
    static IS_ALONE: AtomicBool = AtomicBool::new(false);

    explore_both(1, 0, || {
        let pool = pool(2, 3);
        assert_eq!(pool.start_core_threads(), 2);
        while pool.idle_worker_count() < 2 {
            thread::yield_now();
        }
        for task in pair() {
            let shared = Arc::clone(pool.shared());
            pool.execute(move || {
                if shared.counts.load().searching() == 1 {
                    IS_ALONE.store(true, Ordering::Relaxed);
                }
                task();
            });
        }
        let now = pool.shared().counts.load();
        if now.searching() == 1 && now.idle() == 1 {
            HAS_RELIED.store(true, Ordering::Relaxed);
        }
        pool.join();
        assert_eq!(pool.stats().threads_started, 2);
        pool.shutdown_join();
    });
    assert!(HAS_RELIED.load(Ordering::Relaxed) && IS_ALONE.load(Ordering::Relaxed));
}

/// Race 1, a worker that was woken rests again: the other worker has taken the task that it was
/// woken for, and waits for the next one. The submitter of that one may still rely on the woken
/// worker.
#[test]
fn a_woken_worker_finds_nothing() {
    explore_both(1, 0, || {
        let pool = pool(2, 2);
        assert_eq!(pool.start_core_threads(), 2);
        let [begun, ends, taken, last] = [(); 4].map(|()| Gate::new());
        let (begins, waiting) = (begun.clone(), ends.clone());
        pool.execute(move || {
            begins.open();
            waiting.pass();
        });
        begun.pass();
        let (takes, waiting) = (taken.clone(), last.clone());
        pool.execute(move || {
            takes.open();
            waiting.pass();
        });
        ends.open();
        taken.pass();
        pool.execute(move || last.open());
        pool.shutdown_join();
    });
}

/// Race 1, a refused start: the second thread is refused while the first, which takes both tasks,
/// is starting.
#[test]
fn a_refused_thread_while_another_comes() {
    explore(1, || {
        let pool = pool(0, 2);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        REFUSE_NEXT.set(true);
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        REFUSE_NEXT.set(false);
        pool.shutdown_join();
    });
}

/// Two tasks that need each other. The second one's worker is started by its submission, or by the
/// first worker if that one finds the task first.
#[test]
fn a_start_below_core_versus_the_first_worker() {
    explore_both(1, 1, || {
        let pool = pool(2, 3);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// While a submission starts the second worker, another submitter's task relies on that worker, or
/// starts one too. The first worker waits for that task.
#[test]
fn a_task_relies_on_a_start_below_core() {
    explore_both(0, 0, || {
        let pool = pool(2, 2);
        let ran = Relaxed::new();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.execute(task))
        };
        pool.execute(move || gate.open());
        other.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), 1);
    });
}

/// The thread that a submission starts is refused once. The first worker waits for its task.
#[test]
fn a_refused_start_below_core_is_tried_again() {
    explore(1, || {
        let pool = pool(2, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        REFUSE_NEXT.set(true);
        pool.execute(move || gate.open());
        pool.shutdown_join();
        REFUSE_NEXT.set(false);
    });
}

/// The thread that a submission starts is refused once. Its task gets another one, and so does the
/// task after it: nothing relies on the refused one any more.
#[test]
fn a_refused_start_below_core_leaves_nothing_behind() {
    explore(0, || {
        let pool = pool(2, 3);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        REFUSE_NEXT.set(true);
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        // There was no start to refuse if the first task had started two threads: a worker that
        // goes idle before that task is pushed still takes it. No keeper would ask again for the
        // third one.
        REFUSE_NEXT.set(false);
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// Two tasks that need each other, and two idle workers: one of them wakes the other.
#[test]
fn a_woken_worker_wakes_the_next() {
    explore_both(1, 1, || {
        let pool = pool(2, 2);
        assert_eq!(pool.start_core_threads(), 2);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// Race 1, a refused start: the first one is refused while another submitter's succeeds. The tasks
/// that relied on the refused one get a worker each.
#[test]
fn a_refused_first_start_versus_submit() {
    explore(1, || {
        REFUSE_NEXT.set(true);
        let pool = pool(0, 2);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || drop(pool.try_execute(|| ())))
        };
        let gate = Gate::new();
        let waiting = gate.clone();
        if pool.try_execute(move || waiting.pass()).is_ok() {
            let opening = gate.clone();
            if pool.try_execute(move || opening.open()).is_err() {
                gate.open();
            }
        }
        pool.join();
        other.join().unwrap();
        pool.shutdown_join();
        REFUSE_NEXT.set(false);
    });
}

/// As above. The other submitter's first task needs its second one, which relied on the refused
/// start.
#[test]
fn a_refused_first_start_versus_two_submissions() {
    explore_both(1, 1, || {
        REFUSE_NEXT.set(true);
        let pool = pool(0, 2);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || drop(pool.try_execute(|| ())))
        };
        let [begun, gate] = [Gate::new(), Gate::new()];
        let (opening, waiting) = (begun.clone(), gate.clone());
        let first = pool.try_execute(move || {
            opening.open();
            waiting.pass();
        });
        if first.is_ok() {
            begun.pass();
            let opening = gate.clone();
            if pool.try_execute(move || opening.open()).is_err() {
                gate.open();
            }
        }
        other.join().unwrap();
        pool.shutdown_join();
        REFUSE_NEXT.set(false);
    });
}

/// The keeper asks again for a thread that was refused, and once more when that was refused too.
/// All workers wait for the queued task, unseen by the pool, and nothing is submitted.
#[test]
fn a_refused_thread_is_asked_for_again() {
    the_keeper_asks_again(long(1), || pool(0, 2));
}

pub(super) fn the_keeper_asks_again(preemptions: usize, pool: fn() -> ThreadPool) {
    explore(preemptions, move || {
        STARTS_KEEPER.set(true);
        let pool = pool();
        let (gate, ran) = (keep_busy(&pool), Relaxed::new());
        REFUSE_NEXT.set(true);
        let count = ran.clone();
        pool.execute(move || {
            count.increment();
            gate.open();
        });
        REFUSE_NEXT.set(true);
        while ran.get() == 0 {
            pool.shared().keeper.expire();
            thread::yield_now();
        }
        pool.shutdown_join();
        REFUSE_NEXT.set(false);
    });
}
