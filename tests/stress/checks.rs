//! Checking, when the pool is quiet.

use std::sync::{Arc, mpsc};

use elastipool::Stats;

use crate::common;
use crate::groups::Term;
use crate::nests::DEPTH;
use crate::oracle::{Case, Flag, get};
use crate::submit::Round;

/// What only grows has grown, and what one lock keeps consistent is.
pub(crate) fn check_progress(before: &Stats, now: &Stats) {
    let growing = |stats: &Stats| {
        [
            stats.completed,
            stats.panicked,
            stats.cancelled,
            stats.handed_back,
            stats.rejected,
            stats.peak_workers,
            stats.threads_started,
            stats.threads_refused,
            stats.threads_retired,
        ]
    };
    let shrunk = growing(before).iter().zip(growing(now)).any(|(&before, now)| now < before);
    assert!(!shrunk, "{before:?} {now:?}");
    assert_eq!(now.threads_started, now.workers + now.threads_retired, "{now:?}");
    assert!(now.workers >= now.idle + now.blocked, "{now:?}");
    assert!(now.workers <= now.peak_workers, "{now:?}");
}

/// The cases of a round, and what else there is to check when the pool is quiet.
pub(crate) struct Checker {
    round: Round,
    new_cases: mpsc::Receiver<Arc<Case>>,
    new_terms: mpsc::Receiver<Arc<Term>>,
    cases: Vec<Arc<Case>>,
    terms: Vec<Arc<Term>>,
}

impl Checker {
    pub(crate) fn new(
        round: Round,
        new_cases: mpsc::Receiver<Arc<Case>>,
        new_terms: mpsc::Receiver<Arc<Term>>,
    ) -> Self {
        Checker { round, new_cases, new_terms, cases: Vec::new(), terms: Vec::new() }
    }

    /// After a join: everything that was accepted has ended, and everybody agrees on how.
    pub(crate) fn check_quiet(&mut self) {
        self.cases.extend(self.new_cases.try_iter());
        self.terms.extend(self.new_terms.try_iter());
        let shut_down_now = self.round.oracle.shut_down_now.get();
        for case in &self.cases {
            case.judge(shut_down_now);
        }
        for term in &self.terms {
            term.judge(shut_down_now);
        }
        let stats = self.round.pool.stats();
        self.check_sums(&stats);
        self.check_workers(&stats);
    }

    fn count(&self, which: impl Fn(&Case) -> bool) -> usize {
        self.cases.iter().filter(|case| which(case)).count()
    }

    /// The statistics are the sums of the cases.
    fn check_sums(&self, stats: &Stats) {
        let accepted = self.count(|case| case.accepted.get());
        let unsure = self.count(Case::is_unsure);
        assert_eq!((stats.queued, stats.active, stats.pending), (0, 0, 0), "{stats:?}");
        assert_eq!(stats.accepted() + stats.rejected, self.cases.len(), "{stats:?}");
        assert!((accepted..=accepted + unsure).contains(&stats.accepted()), "{accepted} {stats:?}");
        let in_pool =
            |end: fn(&Case) -> &Flag| self.count(|case| case.ended_in_pool() && end(case).get());
        let ran = in_pool(|case| &case.ran);
        let panicked = in_pool(|case| &case.panicked);
        assert_eq!((stats.completed, stats.panicked), (ran, panicked), "{stats:?}");
        let handed_back = self.count(|case| !case.rejected.get() && case.handed_back.get());
        assert_eq!(stats.handed_back, handed_back, "{stats:?}");
        // Those among the unsure ones that were dropped may have been rejected.
        let rejected = self.count(|case| case.rejected.get());
        let dropped = in_pool(|case| &case.dropped);
        assert_eq!(stats.cancelled + stats.rejected, rejected + dropped, "{stats:?}");
    }

    fn check_workers(&self, stats: &Stats) {
        let oracle = &self.round.oracle;
        let most_runnable = oracle.most_runnable();
        assert!(get(&oracle.most_running) <= most_runnable, "{stats:?}");
        check_progress(stats, stats);
        if oracle.max_tasks.is_none() {
            let bound = self.most_threads().saturating_add(get(&oracle.run_outside));
            assert!(stats.peak_workers <= bound, "{bound} {stats:?}");
            // Those that are replaced are counted until they have gone.
            assert!(stats.peak_workers <= most_runnable, "{most_runnable} {stats:?}");
            assert_eq!(stats.blocked, 0, "{stats:?}");
        }
    }

    /// How many workers there may be at once if tasks wait for nothing but each other, and no
    /// thread outside runs any.
    ///
    /// For each task that one does run, of its own scope or handed back, there may be one worker
    /// more: a worker may wait for it and cannot run it.
    ///
    /// A worker that is blocked waits for a task that another one has begun, so it is above one
    /// that runs in a tree of waits that is [`DEPTH`] high at most; and a thread is started only
    /// while fewer than `max_size` run. On a pool of one, that is never: the worker runs all that
    /// it waits for. On others a worker may be on its way back from a wait that is over.
    fn most_threads(&self) -> usize {
        let oracle = &self.round.oracle;
        if self.round.regions || oracle.capacity.is_some() {
            return usize::MAX;
        }
        let running = get(&oracle.largest_max) - 1;
        1 + running * (DEPTH as usize + 2)
    }

    /// Without work the pool shrinks to what it may be. Compensating workers stay as long as
    /// others.
    pub(crate) fn check_shrinks(&self) {
        let pool = &self.round.pool;
        let is_shrunk = || {
            let stats = pool.stats();
            if pool.keep_alive() < common::HOUR {
                stats.workers <= pool.core_size()
            } else {
                stats.workers - stats.idle <= pool.max_size()
            }
        };
        common::wait_until("the pool shrinks", is_shrunk);
    }

    /// After a `shutdown_join`: nothing is left.
    pub(crate) fn check_over(&self, has_hooks: bool) {
        let stats = self.round.pool.stats();
        assert_eq!((stats.workers, stats.blocked), (0, 0), "{stats:?}");
        assert_eq!(stats.threads_started, stats.threads_retired, "{stats:?}");
        if has_hooks {
            let oracle = &self.round.oracle;
            assert_eq!(get(&oracle.starts), stats.threads_started, "{stats:?}");
            assert_eq!(get(&oracle.stops), stats.threads_started, "{stats:?}");
        }
    }
}
