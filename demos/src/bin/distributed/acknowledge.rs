//! The thread that tells Redis what has become of the jobs, many of them in one transaction.

use std::collections::HashSet;
use std::iter;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::RedisResult;

use crate::store::{Outcome, Store};

/// The most outcomes of one transaction.
const MAX_BATCH: usize = 256;

/// The ids of the jobs that this process has taken and not settled.
#[derive(Default)]
pub(crate) struct Held {
    ids: Mutex<HashSet<String>>,
    settled: Condvar,
}

impl Held {
    /// Returns `false` if the job is held already.
    pub(crate) fn insert(&self, id: &str) -> bool {
        self.lock().insert(id.to_owned())
    }

    /// Waits until all jobs are settled, at most for `wait`. Returns whether they are.
    pub(crate) fn wait_until_empty(&self, wait: Duration) -> bool {
        let waited = self.settled.wait_timeout_while(self.lock(), wait, |ids| !ids.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_empty()
    }

    fn remove(&self, outcomes: &[Outcome]) {
        let mut held = self.lock();
        outcomes.iter().for_each(|outcome| _ = held.remove(&outcome.id));
        self.settled.notify_all();
    }

    fn ids(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Settles outcomes until all of their senders are gone. Tells Redis every `interval` that the held
/// jobs are being worked on. Returns how many jobs were done, and how many failed.
pub(crate) fn acknowledge(
    mut store: Store,
    consumer: &str,
    outcomes: &Receiver<Outcome>,
    held: &Held,
    interval: Duration,
) -> RedisResult<(usize, usize)> {
    let (mut done, mut failed) = (0, 0);
    let mut next = Instant::now() + interval;
    loop {
        match outcomes.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(first) => {
                let batch: Vec<Outcome> =
                    iter::once(first).chain(outcomes.try_iter()).take(MAX_BATCH).collect();
                store.settle(&batch)?;
                held.remove(&batch);
                let successes = batch.iter().filter(|outcome| outcome.result.is_ok()).count();
                done += successes;
                failed += batch.len() - successes;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                store.leave(consumer)?;
                return Ok((done, failed));
            }
        }
        if Instant::now() >= next {
            store.keep(consumer, &held.ids())?;
            next = Instant::now() + interval;
        }
    }
}
