//! Local queues, and what is accepted through a worker context.

#[cfg(feature = "async")]
mod futures;

use super::{
    Arc, AtomicBool, Configuration, Gate, Mutex, Ordering, Relaxed, counting, explore, explore_as,
    long, pair, thread, with_local_queues,
};
use crate::queue::{Kind, Local, Queue};
use crate::sched::WorkerContext;
use crate::sync::{REFUSE_NEXT, TASK_NANOS};
use crate::task::Job;
use crate::{ThreadPool, worker_index};

fn pool(core_size: usize, max_size: usize) -> ThreadPool {
    with_local_queues(core_size, max_size).build()
}

/// Race 1, a push to a local queue: a task submits another one, and they need each other. The other
/// worker rests or is about to, or has to be started.
#[test]
fn a_task_submits_another_versus_idle() {
    // Coarse tasks go to the injector if no worker rests.
    let before = TASK_NANOS.get();
    for (core_size, nanos) in [(1, before), (2, before), (1, u32::MAX), (2, u32::MAX)] {
        TASK_NANOS.set(nanos);
        explore(1, move || {
            let pool = pool(core_size, 2);
            assert_eq!(pool.start_core_threads(), core_size);
            let (inner, [outer, other]) = (pool.clone(), pair());
            pool.execute(move || {
                inner.execute(other);
                outer();
            });
            pool.shutdown_join();
        });
    }
    TASK_NANOS.set(before);
}

/// As above, but the other worker spins before it rests.
#[test]
fn a_task_submits_another_versus_spin() {
    explore(1, || {
        let mut builder = with_local_queues(2, 2);
        builder.spins = true;
        let pool = builder.build();
        assert_eq!(pool.start_core_threads(), 2);
        // The worker that ran this task may be the spinning one, without having rested. To wait for
        // it here takes 45 times as many executions.
        pool.execute(|| ());
        let (inner, [outer, other]) = (pool.clone(), pair());
        pool.execute(move || {
            inner.execute(other);
            outer();
        });
        pool.shutdown_join();
    });
}

/// Race 1, a steal: while a worker moves a stolen task, another one finds nothing and becomes idle.
/// The owner has taken the third task. (shuttle's threads take only what is `Send`.)
#[cfg(not(elastipool_shuttle))]
#[test]
fn a_stolen_batch_is_passed_on() {
    explore(2, || {
        let pool = pool(0, 3);
        let shared = Arc::clone(pool.shared());
        let [stealer, owner, other] = [(); 3].map(|()| WorkerContext::new(&shared, Arc::default()));
        let pop = |worker: &WorkerContext| {
            let queue = &worker.shared.queue;
            worker.pop(queue).map(|job| drop(job.run())).is_some()
        };
        (0..3).for_each(|_| owner.push(&shared.queue, Kind::New, Job::closure(|| ())));
        let steals = thread::spawn(move || {
            pop(&stealer);
            let needs_notify = stealer.take_owed().is_some();
            _ = stealer.close();
            needs_notify
        });
        let rests = thread::spawn(move || {
            // As a worker that has just become idle.
            let has_found = pop(&other) || other.shared.has_work();
            _ = other.close();
            !has_found
        });
        pop(&owner);
        let (needs_notify, is_idle) = (steals.join().unwrap(), rests.join().unwrap());
        if is_idle && shared.has_work() {
            assert!(needs_notify);
        }
        _ = owner.close();
        while shared.queue.pop().is_some_and(|job| job.run().is_end()) {}
        pool.shutdown_join();
    });
}

/// Race 22: a worker pushes a future that has yielded, and then takes the only task of the
/// injector. Another worker that looks at the queues meanwhile finds one of the two.
#[test]
fn a_look_versus_a_yield() {
    explore_as(Configuration::Shipped, 3, || {
        let queue = Arc::new(Queue::new());
        let local = Local::open(&queue);
        let request = || {
            let _is_check_due = local.begin_request(0);
            local.pop(&queue, false)
        };
        // The third request prefers new tasks, that of the injector first.
        assert!(request().is_none());
        assert!(request().is_none());
        queue.push(Kind::New, "task");
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || assert!(!queue.is_empty()))
        };
        assert!(local.push_with(&queue, Kind::Woken, || "future"));
        assert_eq!(request(), Some("task"));
        other.join().unwrap();
        let _ = local.close(&queue);
    });
}

/// A future that yields overflows to the injector, because a stealer is in the worker's full local
/// queue. The worker takes from that queue next, so it must notify another one.
#[test]
fn an_overflow_versus_a_stealer() {
    explore(3, || {
        let pool = pool(0, 1);
        let shared = Arc::clone(pool.shared());
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let job = |number| {
            let order = Arc::clone(&order);
            Job::closure(move || order.lock().unwrap().push(number))
        };
        let worker = WorkerContext::new(&shared, Arc::default());
        worker.push(&shared.queue, Kind::New, job(1));
        worker.push(&shared.queue, Kind::New, job(2));
        let stealer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || drop(shared.queue.pop()))
        };
        worker.push(&shared.queue, Kind::New, job(3));
        let needs_notify = worker.take_owed().is_some();
        stealer.join().unwrap();
        // From outside, the injector comes first.
        while let Some(job) = shared.queue.pop() {
            drop(job.run());
        }
        if order.lock().unwrap().starts_with(&[3, 2]) {
            assert!(needs_notify);
        }
        _ = worker.close();
        pool.shutdown_join();
    });
}

/// As above. The local queue is empty by then.
#[test]
fn an_overflow_out_of_an_empty_queue() {
    explore(3, || {
        let queue = Arc::new(Queue::<i32>::new());
        let local = Local::open(&queue);
        assert!(local.push_with(&queue, Kind::New, || 1));
        assert!(local.push_with(&queue, Kind::New, || 2));
        let stealer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let local = Local::open(&queue);
                local.steal(&queue);
                let _ = local.close(&queue);
            })
        };
        let has_overflowed = !local.push_with(&queue, Kind::New, || 3);
        local.pop(&queue, false);
        if has_overflowed {
            assert!(local.leaves_items(&queue));
        }
        stealer.join().unwrap();
        let _ = local.close(&queue);
    });
}

/// Join versus tasks that submit tasks: all have ended, and what they wrote is visible.
#[test]
fn join_versus_submit_from_inside() {
    // Two rounds with one worker, so that it has credit in the second.
    for (max_size, rounds, preemptions) in [(1, 2, 2), (2, 1, 1)] {
        explore(preemptions, move || {
            let pool = pool(1, max_size);
            let ran = Relaxed::new();
            for round in 1..=rounds {
                let (inner, task, own) = (pool.clone(), counting(&ran), counting(&ran));
                pool.execute(move || {
                    inner.execute(task);
                    own();
                });
                pool.join();
                assert_eq!(ran.get(), 2 * round);
            }
            pool.shutdown_join();
        });
    }
}

/// Race 20: accepted tasks run, and nothing is accepted after the close.
#[test]
fn close_versus_submit_from_inside() {
    explore(3, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        let closed = Arc::new(AtomicBool::new(false));
        let (inner, tasks, flag) =
            (pool.clone(), [(); 3].map(|()| counting(&ran)), Arc::clone(&closed));
        let handle = pool.evaluate(move || {
            let submit = |task| {
                let is_closed = flag.load(Ordering::Acquire);
                let accepted = inner.try_execute(task).is_ok();
                assert!(!(accepted && is_closed));
                accepted
            };
            tasks.map(submit).iter().filter(|&&accepted| accepted).count()
        });
        pool.close();
        closed.store(true, Ordering::Release);
        let accepted = handle.await_complete();
        pool.shutdown_join();
        assert_eq!(ran.get(), accepted);
    });
}

/// The only worker submits a task to its own local queue and waits for it.
#[test]
fn a_worker_waits_for_a_handle() {
    explore(2, || {
        let pool = pool(1, 1);
        let inner = pool.clone();
        let handle = pool.evaluate(move || inner.evaluate(|| 7).await_complete());
        assert_eq!(handle.await_complete(), 7);
        pool.shutdown_join();
    });
}

/// Each task uses up its worker's quota; the worker leaves queued tasks behind.
#[test]
fn recycle_versus_submit_from_inside() {
    explore(long(2), || {
        let pool = with_local_queues(0, 1).max_tasks_per_worker(1).build();
        let ran = Relaxed::new();
        let (inner, tasks) = (pool.clone(), [(); 2].map(|()| counting(&ran)));
        pool.execute(move || tasks.into_iter().for_each(|task| inner.execute(task)));
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// The successor is refused, so the worker stays: the tasks that it stole run.
#[test]
fn recycle_versus_a_refused_thread() {
    explore(1, || {
        let pool = with_local_queues(1, 2).max_tasks_per_worker(1).build();
        let (inner, tasks) = (pool.clone(), pair());
        pool.execute(move || {
            REFUSE_NEXT.set(true);
            tasks.into_iter().for_each(|task| inner.execute(task));
        });
        pool.join();
        REFUSE_NEXT.set(false);
        pool.shutdown_join();
    });
}

/// The limit is lowered while a worker's local queue is not empty: its tasks run, whichever worker
/// leaves.
#[test]
fn a_lower_limit_versus_submit_from_inside() {
    explore(1, || {
        let pool = pool(1, 2);
        let ran = Relaxed::new();
        let (inner, tasks) = (pool.clone(), [(); 2].map(|()| counting(&ran)));
        pool.execute(move || tasks.into_iter().for_each(|task| inner.execute(task)));
        pool.set_max_size(1).unwrap();
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// Race 19: a worker leaves at the limit while a task is pushed, and starts another worker. User
/// code that this calls submits a task, which must not enter the context of the worker that leaves.
#[test]
fn leave_versus_a_hook_that_submits() {
    explore(long(1), || {
        let ran = Relaxed::new();
        let slot = Arc::new(Mutex::new(None::<ThreadPool>));
        let (address, task) = (Arc::clone(&slot), ran.clone());
        let pool = with_local_queues(0, 2)
            .thread_name(move |index| {
                if worker_index().is_some() {
                    let pool = address.lock().unwrap().take();
                    if let Some(pool) = pool {
                        pool.execute(counting(&task));
                    }
                }
                index.to_string()
            })
            .build();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.evaluate(|| ()).await_complete();
        *slot.lock().unwrap() = Some(pool.clone());
        pool.shared().idle.expire_all();
        thread::yield_now();
        pool.execute(move || gate.open());
        pool.join();
        let submitted = usize::from(slot.lock().unwrap().take().is_none());
        assert_eq!(ran.get(), submitted);
        pool.shutdown_join();
    });
}

/// An immediate shutdown versus tasks in a local queue: each runs or is handed back.
#[test]
fn shutdown_now_versus_submit_from_inside() {
    for (workers, preemptions) in [(1, 2), (2, 1)] {
        explore(preemptions, move || {
            let pool = pool(workers, workers);
            assert_eq!(pool.start_core_threads(), workers);
            let ran = Relaxed::new();
            let accepted = Relaxed::new();
            let (inner, tasks) = (pool.clone(), [(); 3].map(|()| counting(&ran)));
            let (own, counted) = (counting(&ran), accepted.clone());
            counted.increment();
            pool.execute(move || {
                for task in tasks {
                    if inner.try_execute(task).is_ok() {
                        counted.increment();
                    }
                }
                own();
            });
            let given_back = pool.shutdown_now().len();
            pool.shutdown_join();
            assert_eq!(ran.get() + given_back, accepted.get());
        });
    }
}

/// Race 24: a stealer moves an item to a local queue that the drain has passed, and the owner takes
/// the last one of the queue that it was in. Only what the two took for themselves is left to them.
#[test]
fn a_drain_versus_a_steal() {
    explore(2, || {
        let queue = Arc::new(Queue::new());
        let (stealer, owner) = (Local::open(&queue), Local::open(&queue));
        (0..3).for_each(|item| assert!(owner.push_with(&queue, Kind::New, || item)));
        let steals = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let stolen = stealer.steal(&queue);
                let _ = stealer.close(&queue);
                usize::from(stolen.is_some())
            })
        };
        let drains = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.drain().len())
        };
        let taken = usize::from(owner.pop(&queue, false).is_some());
        assert_eq!(taken + steals.join().unwrap() + drains.join().unwrap(), 3);
        let _ = owner.close(&queue);
    });
}
