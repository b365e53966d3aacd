//! [`Priority`]: which view's tasks workers take first.

/// How urgent the tasks of a view are. Set by
/// [`ViewBuilder::priority`](crate::ViewBuilder::priority).
///
/// Workers take tasks of a higher priority first. A lower priority with queued tasks still gets at
/// least one take in 20.
///
/// ```
/// use elastipool::{Priority, ThreadPool};
///
/// let pool = ThreadPool::default();
/// let reports = pool.view().priority(Priority::Low).build();
/// reports.execute(|| println!("when nothing else is queued"));
/// pool.join();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Before all others.
    High,
    /// As tasks that are submitted to the pool itself.
    #[default]
    Normal,
    /// Only while nothing else is queued, except for one take in 20.
    Low,
}
