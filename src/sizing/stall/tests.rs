use std::sync::mpsc;
use std::time::Duration;

use crate::sync::Ordering;
use crate::{Growth, ThreadPool};

/// A task of a view that may not run now asks a pool that measures for a measurement. Here a look
/// would come too early for the default view's task.
#[test]
fn a_task_of_a_paused_view_asks_for_no_look() {
    let growth = Growth::Stalled(Duration::from_secs(3600));
    let pool = ThreadPool::builder().core_size(1).max_size(1).growth(growth).build();
    let view = pool.view().build();
    view.pause();
    let (open, gate) = mpsc::channel::<()>();
    pool.execute(move || gate.recv().unwrap());
    pool.execute(|| ());
    view.execute(|| ());
    assert!(!pool.shared().stall.is_asked.load(Ordering::Relaxed));
    view.resume();
    open.send(()).unwrap();
    pool.shutdown_join();
}
