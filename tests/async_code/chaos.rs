//! Futures that wait for permits, slots and quiet, at random, while the pool is resized, paused,
//! cancelled and closed. All of them resolve, and no task is lost.
#![cfg(feature = "async")]

use crate::common;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{LIMIT, joined, millis, wait_until};
use elastipool::{GroupPermit, Growth, Permit, TaskGroup, ThreadPool};

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct Unparks(thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits with a limit. Each poll has a waker of its own.
#[track_caller]
fn wait<T>(what: &str, mut future: impl Future<Output = T> + Unpin) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        let waker = Waker::from(Arc::new(Unparks(thread::current())));
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        // Only a wake ends it.
        thread::park_timeout(LIMIT);
        assert!(Instant::now() < until, "{what} hangs");
    }
}

/// An executor that polls inside of the wake.
struct Inline(Mutex<(Option<Waiting<()>>, bool)>, Mutex<bool>);

impl Inline {
    fn run(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let inline =
            Arc::new(Inline(Mutex::new((Some(Box::pin(future)), false)), Mutex::new(false)));
        Arc::clone(&inline).wake();
        inline
    }

    fn is_over(&self) -> bool {
        self.0.lock().unwrap().1
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        *self.1.lock().unwrap() = true;
        let waker = Waker::from(Arc::clone(&self));
        loop {
            let Ok(mut own) = self.0.try_lock() else { return };
            if !std::mem::take(&mut *self.1.lock().unwrap()) {
                return;
            }
            let polled =
                own.0.as_mut().map(|own| own.as_mut().poll(&mut Context::from_waker(&waker)));
            if polled.is_some_and(|polled| polled.is_ready()) {
                *own = (None, true);
            }
            drop(own);
            if !*self.1.lock().unwrap() {
                return;
            }
        }
    }
}

/// What the submitters share.
#[derive(Clone)]
struct All {
    pool: ThreadPool,
    view: ThreadPool,
    group: TaskGroup<()>,
    /// Cloned for each task.
    alive: Arc<()>,
    inlines: Arc<Mutex<Vec<Arc<Inline>>>>,
}

impl All {
    fn task(&self) -> impl FnOnce() + Send + 'static + use<> {
        let alive = Arc::clone(&self.alive);
        move || drop(alive)
    }

    fn future(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let (alive, mut yielded) = (Arc::clone(&self.alive), false);
        poll_fn(move |context| {
            let _ = &alive;
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn use_permit(&self, random: u64, permit: Permit) {
        match random % 5 {
            0 => drop(permit),
            1 => _ = permit.execute(self.task()),
            2 => drop(permit.evaluate(self.task())),
            3 => _ = permit.spawn(self.future()),
            _ => drop(permit.spawn_await(self.future())),
        }
    }

    fn use_slot(&self, random: u64, permit: GroupPermit<()>) {
        let task = self.task();
        let fails = random % 16 == 5;
        match random % 5 {
            0 => drop(permit),
            1 => {
                _ = permit.execute(move || {
                    task();
                    if fails { Err(()) } else { Ok(()) }
                });
            }
            2 => drop(permit.evaluate(task)),
            3 => {
                let future = self.future();
                _ = permit.spawn(async move {
                    future.await;
                    Ok(())
                });
            }
            _ => drop(permit.spawn_await(self.future())),
        }
    }

    fn any(&self, random: &mut fastrand::Rng) -> ThreadPool {
        if random.u64(..3) == 0 { self.view.clone() } else { self.pool.clone() }
    }

    /// Waits, and submits.
    fn submission(&self, random: &mut fastrand::Rng) -> Waiting<()> {
        let (all, number, pool) = (self.clone(), random.u64(..1 << 20), self.any(random));
        match random.u64(..2) {
            0 => Box::pin(async move {
                if let Ok(permit) = pool.ready().await {
                    all.use_permit(number, permit);
                }
            }),
            _ => Box::pin(async move {
                if let Ok(permit) = all.group.ready().await {
                    all.use_slot(number, permit);
                }
            }),
        }
    }

    fn act(&self, random: &mut fastrand::Rng) {
        let pool = self.any(random);
        let mut submission = self.submission(random);
        match random.u64(..12) {
            0 | 1 => wait("a submission", submission),
            2 => {
                // Gives up.
                for _ in 0..random.u64(..3) {
                    let waker = Waker::from(Arc::new(Unparks(thread::current())));
                    if submission.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                        break;
                    }
                }
                (0..random.u64(..3)).for_each(|_| thread::yield_now());
            }
            3 | 4 => {
                // Begins here, goes on in a task.
                let mut context = Context::from_waker(Waker::noop());
                if random.u64(..2) == 0 && submission.as_mut().poll(&mut context).is_ready() {
                    return;
                }
                let moved = move || {
                    // Another crate's executor: the pool does not know what the closure waits for.
                    elastipool::blocking(|| wait("in a task", submission));
                    Ok(())
                };
                match random.u64(..3) {
                    0 => _ = pool.try_evaluate::<_, Result<(), ()>>(moved),
                    1 => _ = self.group.try_execute(moved),
                    _ => _ = self.group.execute(moved),
                }
            }
            5 => _ = pool.try_spawn(submission),
            6 => {
                let _ = self.group.try_spawn(async move {
                    submission.await;
                    Ok(())
                });
            }
            7 => {
                if !pool.is_closed() {
                    drop(pool.complete(submission));
                }
            }
            8 => self.inlines.lock().unwrap().push(Inline::run(submission)),
            9 => {
                let mut quiet = std::pin::pin!(pool.quiet());
                if random.u64(..2) == 0 {
                    let _ = quiet.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                } else {
                    wait("quiet", quiet);
                }
            }
            10 => {
                let mut terminated = std::pin::pin!(pool.terminated());
                let _ = terminated.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            _ => {
                // Holds two for a while.
                let first = wait("a permit", Box::pin(pool.ready()));
                let mut second = Box::pin(self.group.ready());
                let polled = second.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                (0..random.u64(..3)).for_each(|_| thread::yield_now());
                if let Ok(first) = first {
                    self.use_permit(random.u64(..1 << 20), first);
                }
                if let Poll::Ready(Ok(second)) = polled {
                    self.use_slot(random.u64(..1 << 20), second);
                }
            }
        }
    }
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (core, max) = (random.u64(..2) as usize, 1 + random.u64(..3) as usize);
    let alive_for = if random.u64(..2) == 0 { Duration::ZERO } else { millis(1) };
    let builder =
        ThreadPool::builder().core_size(core).max_size(max.max(core)).keep_alive(alive_for);
    let builder = if random.u64(..3) == 0 {
        builder.max_tasks_per_worker(1 + random.u64(..3) as usize)
    } else {
        builder
    };
    let growth = match random.u64(..3) {
        0 => Growth::Stalled(Duration::from_micros(200)),
        1 => Growth::measured(1),
        _ => Growth::Eager,
    };
    let builder = builder.growth(growth).panic_handler(|_| ());
    let builder = if random.u64(..5) > 0 {
        builder.queue_capacity(random.u64(..3) as usize)
    } else {
        builder
    };
    let pool = builder.build();
    let view = pool.view().limit(1 + random.u64(..2) as usize).build();
    let group = pool.group::<()>().limit(1 + random.u64(..2) as usize);
    let group = if random.u64(..2) == 0 { group.keep_going() } else { group };
    let alive = Arc::new(());
    let inlines = Arc::new(Mutex::new(Vec::new()));
    let all = All {
        pool: pool.clone(),
        view: (*view).clone(),
        group,
        alive: Arc::clone(&alive),
        inlines,
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let submitters: Vec<_> = (0..4)
        .map(|number| {
            let all = all.clone();
            let mut random = fastrand::Rng::with_seed(seed * 1_000 + number + 1);
            let submit = move || {
                for _ in 0..40 {
                    all.act(&mut random);
                }
            };
            thread::Builder::new().name(format!("submitter {number}")).spawn(submit).unwrap()
        })
        .collect();
    let disturber = {
        let (all, is_over) = (all.clone(), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                match random.u64(..12) {
                    0 | 1 => all.pool.set_max_size(1 + random.u64(..3) as usize).unwrap_or(()),
                    2 => all.view.pause(),
                    3 => all.pool.pause(),
                    4 => all.group.cancel(),
                    5 => all
                        .group
                        .set_deadline(Instant::now() + Duration::from_micros(random.u64(..500))),
                    6 if random.u64(..20) == 0 => all.view.close(),
                    7 if random.u64(..60) == 0 => all.pool.close(),
                    8 if random.u64(..60) == 0 => drop(all.pool.shutdown_now()),
                    9 => _ = all.group.wait_timeout(Duration::from_micros(100)),
                    _ => {}
                }
                // So that the submitters come in between.
                thread::sleep(Duration::from_micros(random.u64(..300)));
                all.view.resume();
                all.pool.resume();
                let _ = all.group.wait_timeout(Duration::ZERO);
            }
            random
        })
    };
    submitters.into_iter().for_each(joined);
    is_over.store(true, Ordering::SeqCst);
    let mut random = joined(disturber);
    let until = Instant::now() + LIMIT;
    while !all.inlines.lock().unwrap().iter().all(|inline| inline.is_over()) {
        assert!(Instant::now() < until, "{seed}: an inline executor hangs");
        // A poll: the next round of a cancelled group begins with a wait.
        let _ = all.group.wait_timeout(millis(1));
    }
    if !pool.is_closed() {
        wait("quiet at the end", Box::pin(pool.quiet()));
    }
    match random.u64(..3) {
        0 => drop(pool.shutdown_now()),
        _ => pool.close(),
    }
    wait("terminated", Box::pin(pool.terminated()));
    assert_eq!(pool.stats().pending, 0, "{seed}: {pool:?}");
    drop((all, view, pool));
    wait_until("no task is lost", || Arc::strong_count(&alive) == 1);
}

#[test]
fn random_futures_resolve_whatever_happens_to_the_pool() {
    let seeds: u64 = std::env::var("SEEDS").map_or(20, |seeds| seeds.parse().unwrap());
    let first: u64 = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
    for seed in first..first + seeds {
        std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed}"));
    }
}
