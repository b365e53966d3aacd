//! Random views under random work, against an oracle: no limit is exceeded, no reserve invaded,
//! nothing is lost or run twice, what expires is not run, and what is run has not expired.
//!
//! The tasks wait for nothing, so that no worker returns from a region: then the limits hold
//! without exception.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use elastipool::{Priority, ThreadPool};

use crate::common::{HOUR, dawdle};

/// A view as the oracle sees it. The first one is the default view.
#[derive(Clone, Copy)]
struct Terms {
    limit: usize,
    reserve: usize,
}

/// How many tasks of each view run.
struct Running {
    counts: Mutex<Vec<usize>>,
    terms: Vec<Terms>,
    max_size: usize,
}

impl Running {
    fn enter(&self, view: usize) {
        let mut counts = self.counts.lock().unwrap();
        counts[view] += 1;
        let terms = &self.terms;
        assert!(counts[view] <= terms[view].limit, "view {view} exceeds its limit: {counts:?}");
        for (view, Terms { reserve, .. }) in terms.iter().enumerate() {
            let others: usize = counts.iter().sum::<usize>() - counts[view];
            assert!(others <= self.max_size - reserve, "reserve of {view} invaded: {counts:?}");
        }
    }

    fn exit(&self, view: usize) {
        self.counts.lock().unwrap()[view] -= 1;
    }
}

#[derive(Default)]
struct Fates {
    ran: AtomicUsize,
    finished: AtomicUsize,
    expired: AtomicUsize,
}

fn round(rng: &mut fastrand::Rng) {
    let max_size = rng.usize(1..6);
    let core_size = rng.usize(0..=max_size);
    let keep_alive = [HOUR, Duration::from_micros(50)][rng.usize(0..2)];
    let pool = ThreadPool::new(core_size, max_size, keep_alive);
    let mut terms = vec![Terms { limit: usize::MAX, reserve: 0 }];
    let mut views = vec![pool.clone()];
    let mut left = max_size - 1;
    for _ in 0..rng.usize(1..4) {
        let reserve = rng.usize(0..=left);
        left -= reserve;
        let limit = [usize::MAX, reserve.max(1), reserve + 1][rng.usize(0..3)];
        let priority = [Priority::High, Priority::Normal, Priority::Low][rng.usize(0..3)];
        let builder = pool.view().priority(priority).weight(rng.usize(1..5)).limit(limit);
        let timeout = [HOUR, Duration::from_micros(300)][rng.usize(0..2)];
        views.push((*builder.reserve(reserve).queue_timeout(timeout).build()).clone());
        terms.push(Terms { limit, reserve });
    }
    let counts = Mutex::new(vec![0; terms.len()]);
    let running = Arc::new(Running { counts, terms, max_size });
    let fates: Arc<Vec<Fates>> = Arc::new(views.iter().map(|_| Fates::default()).collect());
    let submitted: Vec<usize> = views.iter().map(|_| rng.usize(0..300)).collect();
    thread::scope(|scope| {
        for (number, view) in views.iter().enumerate() {
            let (running, fates, mut rng) = (&running, &fates, rng.fork());
            let count = submitted[number];
            scope.spawn(move || {
                let mut handles = Vec::new();
                for _ in 0..count {
                    let (running, fates) = (Arc::clone(running), Arc::clone(fates));
                    let turns = rng.u32(1..400);
                    let task = move || {
                        running.enter(number);
                        dawdle(turns);
                        running.exit(number);
                        fates[number].ran.fetch_add(1, Ordering::Relaxed);
                    };
                    match rng.u8(0..4) {
                        0 => handles.push(view.evaluate(task)),
                        #[cfg(feature = "async")]
                        1 => handles.push(view.spawn_await(async move { task() })),
                        _ => view.execute(task),
                    }
                    dawdle(50);
                }
                for handle in handles {
                    match handle.try_await_complete() {
                        Ok(()) => fates[number].finished.fetch_add(1, Ordering::Relaxed),
                        Err(error) if error.is_expired() => {
                            fates[number].expired.fetch_add(1, Ordering::Relaxed)
                        }
                        Err(error) => panic!("{error}"),
                    };
                }
            });
        }
    });
    for ((view, fates), submitted) in views.iter().zip(fates.iter()).zip(&submitted).skip(1) {
        view.join();
        let stats = view.stats();
        assert_eq!((stats.in_flight(), stats.panicked, stats.cancelled), (0, 0, 0));
        assert_eq!(stats.completed + stats.expired, *submitted);
        assert_eq!(stats.completed, fates.ran.load(Ordering::Relaxed));
        assert!(stats.completed >= fates.finished.load(Ordering::Relaxed));
        assert!(stats.expired >= fates.expired.load(Ordering::Relaxed));
    }
    pool.join();
    let ran: usize = fates.iter().map(|fates| fates.ran.load(Ordering::Relaxed)).sum();
    let stats = pool.stats();
    assert_eq!(stats.completed, ran);
    assert_eq!(stats.accepted(), submitted.iter().sum());
    drop(views);
    pool.shutdown_join();
}

#[test]
fn random_views_agree_with_the_oracle() {
    let seconds =
        std::env::var("ELASTIPOOL_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(2));
    let begin = Instant::now();
    while begin.elapsed() < limit {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        round(&mut fastrand::Rng::with_seed(seed));
    }
}
