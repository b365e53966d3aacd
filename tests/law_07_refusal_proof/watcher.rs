//! Threads are refused in a pool that watches for stalls: tasks run, and it reports the stall that
//! comes afterwards.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{Gate, LIMIT, value};
use elastipool::Builder;

#[test]
fn tasks_run_and_stalls_are_reported() {
    in_a_child("watcher::tasks_run_and_stalls_are_reported", || {
        let (sender, reports) = mpsc::channel();
        let after = Duration::from_millis(1);
        let builder = Builder::new().core_size(1).max_size(1);
        let pool = builder.stall_report(after, move |_| _ = sender.send(())).build();
        assert_eq!(pool.start_core_threads(), 1);
        let refusal = Refusal::begin();
        assert_eq!(value(pool.evaluate(|| 1)), 1);
        assert_eq!(value(pool.evaluate(|| 2)), 2);
        assert_eq!(pool.stats().workers, 1);
        refusal.end();
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        assert_eq!(reports.recv_timeout(LIMIT), Ok(()), "it reports the task that waits");
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}
