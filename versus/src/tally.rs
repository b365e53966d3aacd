//! Counts the tasks that have run, at no one's expense.
//!
//! Every thread counts in a cache line of its own, which only the waiting thread reads. A shared
//! counter, or a reference count in each closure, would go from core to core with every task: with
//! tasks that do nothing, that would be what is measured.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::Result;

/// More threads than most rows ever start in one process. All later ones share one more slot.
const SLOTS: usize = 8192;

/// How long the waiting thread sleeps between two looks: next to nothing of the hundred
/// milliseconds that a row takes, and its looks take next to nothing from the cores.
const PAUSE: Duration = Duration::from_micros(200);

/// One slow look must not make the end less exact than this.
const MAX_PAUSE: Duration = Duration::from_millis(1);

/// Without any task in this time, an engine has lost one.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pause is at least this many times as long as a look, which takes the longer the more threads
/// there are.
const PAUSE_PER_LOOK: u32 = 10;

static COUNTS: [CachePadded<AtomicU64>; SLOTS] =
    [const { CachePadded::new(AtomicU64::new(0)) }; SLOTS];
static SHARED: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
static CLAIMED: AtomicUsize = AtomicUsize::new(0);

static WAITER: OnceLock<Thread> = OnceLock::new();
static END_IS_NEAR: AtomicBool = AtomicBool::new(false);

thread_local! {
    static COUNT: Option<&'static AtomicU64> =
        COUNTS.get(CLAIMED.fetch_add(1, Ordering::AcqRel)).map(|count| &**count);
}

/// Notes that a task has run, on this thread.
pub(crate) fn count() {
    COUNT.with(|count| match count {
        // No other thread writes it, so it need not be one atomic step.
        Some(count) => count.store(count.load(Ordering::Relaxed) + 1, Ordering::Release),
        None => _ = SHARED.fetch_add(1, Ordering::Release),
    });
}

/// For rows of some milliseconds, once in a process, from the task that was submitted last: the
/// waiting thread sleeps no more.
pub(crate) fn end_is_near() {
    END_IS_NEAR.store(true, Ordering::SeqCst);
    // If it does not wait yet, it will see it before it does.
    if let Some(waiter) = WAITER.get() {
        waiter.unpark();
    }
}

/// How many tasks have run in this process.
pub(crate) fn total() -> u64 {
    let claimed = CLAIMED.load(Ordering::Acquire).min(SLOTS);
    let own: u64 = COUNTS[..claimed].iter().map(|count| count.load(Ordering::Acquire)).sum();
    own + SHARED.load(Ordering::Acquire)
}

/// Waits until so many have run, in the same way for all engines. Only for the thread that
/// measures.
pub(crate) fn wait_for(expected: u64) -> Result<()> {
    WAITER.get_or_init(thread::current);
    let look = Instant::now();
    total();
    let pause = PAUSE.max(look.elapsed() * PAUSE_PER_LOOK).min(MAX_PAUSE);
    look_until(expected, || {
        if END_IS_NEAR.load(Ordering::SeqCst) {
            thread::yield_now();
        } else {
            thread::park_timeout(pause);
        }
    })
}

/// Waits until that many tasks have run, and calls `pause` between two looks.
pub(crate) fn look_until(expected: u64, pause: impl Fn()) -> Result<()> {
    let (mut seen, mut since) = (total(), Instant::now());
    while seen < expected {
        pause();
        let now = total();
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() > PATIENCE {
            return Err(format!("{} tasks of {expected} have not run", expected - seen).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::{SLOTS, count, total, wait_for};

    #[test]
    fn counts_of_all_threads_add_up() {
        let before = total();
        let threads: Vec<_> =
            (0..4).map(|_| thread::spawn(|| (0..1_000).for_each(|_| count()))).collect();
        wait_for(before + 4_000).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(total(), before + 4_000);

        let more = SLOTS as u64 + 10;
        for _ in 0..more {
            thread::spawn(count).join().unwrap();
        }
        assert_eq!(total(), before + 4_000 + more);
    }
}
