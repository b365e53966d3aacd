//! Spans and events of the crate `tracing` (feature `tracing`).

use std::sync::Arc;

use tracing::Span;

use crate::builder::Builder;
use crate::sync::unwind::Contained;
use crate::task::Submission;

impl Builder {
    /// Makes the submitter's span follow each task, and reports what happens to workers and tasks
    /// as events of the crate [`tracing`](https://docs.rs/tracing) (feature `tracing`).
    ///
    /// A task runs in the span that was current when it was submitted, a future in each of its
    /// polls. That costs some six allocations for each task. A task that was submitted outside of
    /// spans, or in one that no subscriber is interested in, costs only one look at the current
    /// span. If a task that waits for it runs it on its own stack, it sees the span of that task.
    ///
    /// Workers use the global subscriber: that of `tracing::subscriber::with_default` belongs to
    /// one thread.
    ///
    /// The events have the target `elastipool` and a field `pool` with the pool's name:
    ///
    /// | level | message | more fields |
    /// |---|---|---|
    /// | DEBUG | the pool grows | `worker`, `workers`: the number of workers now |
    /// | DEBUG | the number of workers follows the load ([`Growth::Measured`](crate::Growth::Measured)) | `allowed`: how many may run; `running`, `asleep`, `asleep_on_threads`, `asleep_on_disks`: as [measured](crate::Stats::asleep) |
    /// | DEBUG | worker starts; worker stops | `worker` |
    /// | DEBUG | worker retires | `worker`, `why`: surplus, excess, recycled or closed |
    /// | WARN | the system refused a thread | `error` |
    /// | WARN | a task expired in the queue | |
    /// | ERROR | a task panicked | `panic`: its text; missing if a handle has received the panic |
    ///
    /// The subscriber is called on the thread that causes the event, also by submissions that start
    /// a thread. Its panics are contained. It must neither submit tasks to the same pool nor wait
    /// for it. The event of a panic is outside the task's span.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().tracing().build();
    /// let span = tracing::info_span!("request", number = 42);
    /// let work = || tracing::info!("this event is in the span of the request");
    /// span.in_scope(|| pool.execute(work));
    /// pool.shutdown_join();
    /// ```
    pub fn tracing(mut self) -> Self {
        self.hooks.traces = true;
        let capture = |_: Submission<'_>| {
            let span = Span::current();
            (!span.is_disabled()).then_some(move || span.clone().entered())
        };
        self.observe(Arc::new(Contained::new(capture)))
    }
}
