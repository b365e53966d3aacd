//! One function over many inputs: the results, as an iterator or a stream.
//!
//! Each input is a task with a handle. The handles are kept by the number of their input. In the
//! order of the inputs, the next result is that of the first handle. In the order of completion,
//! they are polled as those of a [`JoinSet`](crate::JoinSet).

use std::fmt;
use std::iter::{FusedIterator, Peekable};
use std::mem;
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::FusedStream;

use crate::error::{JoinError, Refusal};
use crate::handler::Function;
use crate::join_handle::JoinHandle;
use crate::join_handle::set::{Handles, ToPoll};
use crate::pool::ThreadPool;
use crate::sched::{Dependency, NO_LIMIT, WorkerContext};
use crate::submit::Patience;
use crate::sync::cpu::cpus;
use crate::task::{Closure, Line};

/// The results of one function for many inputs, which the workers of a pool compute. Created by
/// [`ThreadPool::map`] and [`ThreadPool::try_map`].
///
/// It is lazy: it takes no input and queues no task before its first result is asked for. Then it
/// takes inputs as long as fewer than [`in_flight`](Self::in_flight) of them are without a result
/// that was returned, and waits for the next result. So its memory is bounded, also if the inputs
/// have no end.
///
/// - **Order:** that of the inputs, or that of completion ([`unordered`](Self::unordered)).
/// - **A panic** of the function resumes in the call that would return its result. The other inputs
///   are not affected: the next call continues with them.
/// - **Dropping it**, such as by `break` or `?` in a loop over it, takes no further input, and
///   cancels the tasks that are queued. It does not wait: the calls that run go on, and their
///   results are dropped.
/// - **Waiting** blocks the calling thread, also while the inputs' iterator blocks, and while the
///   pool's queue is [bounded](crate::Builder::queue_capacity) and full. A worker of the pool calls
///   the function itself for an input that no worker has started, and otherwise waits in a
///   [blocking region](crate::blocking()). In async code, use [`into_stream`](Self::into_stream).
///
/// It keeps the pool open, as any clone of the [`ThreadPool`] does.
///
/// # Panics
/// Asking for a result panics if its call was not accepted or was dropped: because the pool is
/// closed, because of [`shutdown_now`](ThreadPool::shutdown_now), or because it has
/// [expired](crate::ViewBuilder::queue_timeout). Where a program goes on after that, it uses the
/// handles of [`evaluate`](ThreadPool::evaluate).
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// for (name, length) in pool.map(["a", "bb", "ccc"], |name| (name, name.len())) {
///     println!("{name}: {length}");
/// }
/// let squares: Vec<u64> = pool.map(1..=4, |n| n * n).collect();
/// assert_eq!(squares, [1, 4, 9, 16]);
/// ```
#[must_use = "it is lazy: no task is queued before its first result is asked for"]
pub struct Map<I: Iterator, R> {
    pool: ThreadPool,
    /// The line of the user's program that has created it.
    line: Line,
    /// `None` once no further input is taken.
    inputs: Option<Peekable<I>>,
    function: Function<I::Item, R>,
    /// How many inputs may be in flight, if the user has set it.
    in_flight: Option<usize>,
    /// Whether the result is the last one. `None` unless the function can fail.
    is_last: Option<fn(&R) -> bool>,
    /// The tasks whose results have not been returned, by the numbers of their inputs.
    handles: Handles<R>,
    /// How many inputs were taken.
    taken: u64,
    /// `None` for results in the order of the inputs.
    to_poll: Option<ToPoll>,
}

/// # Many inputs
impl ThreadPool {
    /// Calls a function with each input, on the workers. Returns an iterator over the results, in
    /// the order of the inputs.
    ///
    /// [`Map`] says when inputs are taken, what a panic does, and how it waits.
    /// [`in_flight`](Map::in_flight) says how many inputs are taken ahead.
    ///
    /// ```
    /// use std::fs;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let paths = ["Cargo.toml", "README.md"];
    /// let lengths: Vec<usize> = pool.map(paths, |path| fs::read(path).unwrap().len()).collect();
    /// assert!(lengths[0] > 0);
    ///
    /// // A view has its own limit and priority.
    /// let reports = pool.view().limit(1).build();
    /// assert_eq!(reports.map(0..100, |n| n % 7).sum::<u32>(), 295);
    /// ```
    #[doc(alias = "imap")]
    #[doc(alias = "par_map")]
    #[track_caller]
    pub fn map<I, F, R>(&self, inputs: I, function: F) -> Map<I::IntoIter, R>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        F: Fn(I::Item) -> R + Send + Sync + 'static,
        R: Send + 'static,
    {
        Map {
            pool: self.clone(),
            line: Location::caller(),
            inputs: Some(inputs.into_iter().peekable()),
            function: Arc::new(Box::new(function)),
            in_flight: None,
            is_last: None,
            handles: Handles::default(),
            taken: 0,
            to_poll: None,
        }
    }

    /// Like [`map`](Self::map), for a function that can fail: the first error that the iterator
    /// returns is its last item. Then it has taken no further input, and has cancelled the tasks
    /// that are queued.
    ///
    /// "Try" is meant as in [`Iterator::try_for_each`]: it is the function that can fail. What is
    /// said of waiting and panics for [`Map`] holds here too.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let parsed = pool.try_map(["1", "2", "three", "4"], |text| text.parse::<u32>());
    /// let error = parsed.collect::<Result<Vec<_>, _>>().unwrap_err();
    /// assert_eq!(error.to_string(), "invalid digit found in string");
    /// ```
    #[track_caller]
    pub fn try_map<I, F, R, E>(&self, inputs: I, function: F) -> Map<I::IntoIter, Result<R, E>>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        F: Fn(I::Item) -> Result<R, E> + Send + Sync + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        let mut map = self.map(inputs, function);
        map.is_last = Some(Result::is_err);
        map
    }
}

/// # Settings
impl<I: Iterator, R> Map<I, R> {
    /// Sets how many inputs may be in flight: taken, and without a result that was returned.
    ///
    /// By default, in a pool that finds its size ([`Growth::Measured`](crate::Growth::Measured)) as
    /// many as workers may run, and one for each CPU. So the pool grows if the calls sleep, and the
    /// memory is bounded by `max_size`. In other pools, two for each CPU: that keeps the CPUs busy
    /// with calls that compute. For calls that wait, such as for the network, set a number there.
    ///
    /// # Panics
    /// If `count` is 0: no input could be taken.
    ///
    /// ```
    /// use std::thread::sleep;
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let waits = pool.map(0..64, |n| (sleep(Duration::from_millis(1)), n).1).in_flight(32);
    /// assert_eq!(waits.max(), Some(63));
    /// ```
    #[doc(alias = "buffersize")]
    #[track_caller]
    pub fn in_flight(mut self, count: usize) -> Self {
        assert!(
            count > 0,
            "the number of inputs in flight is 0; it must be at least 1, or no input could be taken"
        );
        self.in_flight = Some(count);
        self
    }

    /// Returns the results in the order of completion: a slow call delays no other result. Which
    /// input a result belongs to is then for the function to say.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let squares = pool.map(1..=4, |n: u32| (n, n * n)).unordered();
    /// squares.for_each(|(n, square)| assert_eq!(n * n, square));
    /// ```
    #[doc(alias = "as_completed")]
    #[doc(alias = "imap_unordered")]
    pub fn unordered(mut self) -> Self {
        let to_poll = ToPoll::new();
        self.handles.iter().for_each(|(number, _)| to_poll.send(number));
        self.to_poll = Some(to_poll);
        self
    }

    /// Returns the results as a [`Stream`], for async code: `next` of `futures::StreamExt` awaits
    /// them, in any executor.
    ///
    /// The stream blocks its thread only while the inputs' iterator does, and while none of its
    /// inputs is in flight and the pool's queue is [bounded](crate::Builder::queue_capacity) and
    /// full.
    ///
    /// To run futures for many inputs instead, use [`spawn_await`](ThreadPool#method.spawn_await)
    /// and `buffered` of `futures::StreamExt`.
    ///
    /// ```
    /// use futures::StreamExt;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// # let block_on = async_io::block_on::<()>;
    /// block_on(async {
    ///     let mut squares = pool.map(1..=4, |n: u32| n * n).into_stream();
    ///     while let Some(square) = squares.next().await {
    ///         println!("{square}");
    ///     }
    /// });
    /// ```
    pub fn into_stream(self) -> MapStream<I, R> {
        MapStream(self)
    }
}

impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> Map<I, R> {
    /// Submits inputs while fewer are in flight than may be. Unless it `waits` for capacity, leaves
    /// off if there is none and an input is in flight.
    fn fill(&mut self, waits: bool) {
        while self.handles.len() < self.limit() {
            let Some(inputs) = &mut self.inputs else { return };
            if inputs.peek().is_none() {
                self.inputs = None;
                return;
            }
            let waits = waits || self.handles.len() == 0;
            let patience = if waits { Patience::Endless } else { Patience::None };
            let handle = match self.pool.route().accept_uncounted(patience, self.line) {
                Ok(accepted) => {
                    let Some(input) = inputs.next() else { unreachable!("it was peeked at") };
                    let function = Arc::clone(&self.function);
                    JoinHandle::of_closure(accepted, Closure::new(move || function(input)))
                }
                // Tries again with the next result: each refusal that may be over then.
                Err(Refusal::Full | Refusal::NoThread(_)) if !waits => return,
                Err(refusal) => {
                    self.inputs = None;
                    self.pool.route().count_rejection();
                    JoinHandle::refused(self.pool.route(), &refusal, Box::new(()))
                }
            };
            let number = self.handles.push(handle);
            if let Some(to_poll) = &self.to_poll {
                to_poll.send(number);
            }
            self.taken += 1;
        }
    }

    /// Returns how many inputs may be in flight now.
    ///
    /// A worker that runs the oldest call itself leaves the entry of that call in its local queue,
    /// behind those of newer calls. If no other worker takes entries, it submits nothing until it
    /// has run the newest call: then it drops them.
    fn limit(&self) -> usize {
        let most = self.most_in_flight();
        let worker = WorkerContext::current(self.pool.shared());
        let is_behind = worker.is_some_and(|worker| worker.local_len() / 2 >= most);
        if is_behind { 1 } else { most }
    }

    /// Blocks for the next result. `None` if no input is in flight.
    fn wait(&mut self) -> Option<Result<R, JoinError>> {
        let Some(to_poll) = &mut self.to_poll else {
            let (number, _) = self.handles.iter().next()?;
            return self.handles.remove(number)?.wait(None);
        };
        let pool = Dependency::Pool(self.pool.route().id());
        to_poll.wait(&mut self.handles, None, pool).expect(NO_LIMIT)
    }

    fn poll_result(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<R, JoinError>>> {
        let Some(to_poll) = &mut self.to_poll else {
            let first = self.handles.iter_mut().next();
            let Some((number, first)) = first else { return Poll::Ready(None) };
            let result = ready!(Pin::new(first).poll(context));
            drop(self.handles.remove(number));
            return Poll::Ready(Some(result));
        };
        to_poll.poll(&mut self.handles, context)
    }

    /// Returns the value, or resumes the panic of the function.
    #[track_caller]
    fn open(&mut self, result: Result<R, JoinError>) -> R {
        let error = match result {
            Ok(value) => {
                if self.is_last.is_some_and(|is_last| is_last(&value)) {
                    self.stop();
                }
                return value;
            }
            Err(error) => error,
        };
        match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(error) => panic!(
                "`map` has no result for an input: {error}; to go on without it, use the handles \
                 of `evaluate`"
            ),
        }
    }
}

impl<I: Iterator, R> Map<I, R> {
    fn most_in_flight(&self) -> usize {
        let sizes = &self.pool.shared().sizes;
        self.in_flight.unwrap_or_else(|| match sizes.follows_measurements() {
            // More than may run: a pool grows only while tasks are queued.
            true => sizes.limit() + cpus(),
            false => 2 * cpus(),
        })
    }

    /// Takes no further input, and cancels the tasks that are queued.
    fn stop(&mut self) {
        let handles = mem::take(&mut self.handles);
        handles.iter().for_each(|(_, handle)| handle.cancel());
        self.inputs = None;
    }
}

impl<I: Iterator, R> Drop for Map<I, R> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// See [`Map`].
impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> Iterator for Map<I, R> {
    type Item = R;

    #[track_caller]
    fn next(&mut self) -> Option<R> {
        self.fill(true);
        let result = self.wait()?;
        Some(self.open(result))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let inputs = self.inputs.as_ref().map_or((0, Some(0)), Iterator::size_hint);
        let queued = self.handles.len();
        let least = if self.is_last.is_some() { 0 } else { inputs.0.saturating_add(queued) };
        (least, inputs.1.and_then(|most| most.checked_add(queued)))
    }
}

/// An input that comes after the inputs' end is not taken.
impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> FusedIterator for Map<I, R> {}

/// The results of a [`Map`] as a [`Stream`]. Returned by [`Map::into_stream`].
///
/// ```
/// use futures::StreamExt;
///
/// let pool = elastipool::ThreadPool::default();
/// let lengths = pool.map(["a", "bb", "ccc"], str::len).unordered().into_stream();
/// let sum = pool.complete(lengths.fold(0, |sum, length| async move { sum + length }));
/// assert_eq!(sum.await_complete(), 6);
/// ```
#[must_use = "it is lazy: no task is queued before its first result is asked for"]
pub struct MapStream<I: Iterator, R>(Map<I, R>);

/// Neither inputs nor results are pinned.
impl<I: Iterator, R> Unpin for MapStream<I, R> {}

/// See [`Map`].
impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> Stream for MapStream<I, R> {
    type Item = R;

    #[track_caller]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<R>> {
        let map = &mut self.get_mut().0;
        map.fill(false);
        let result = ready!(map.poll_result(context));
        Poll::Ready(result.map(|result| map.open(result)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Terminated once no input is left and each result was returned.
impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> FusedStream for MapStream<I, R> {
    fn is_terminated(&self) -> bool {
        self.0.inputs.is_none() && self.0.handles.len() == 0
    }
}

impl<I: Iterator, R> fmt::Debug for Map<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("pool", &self.pool.name())
            .field(
                "in_flight",
                &format_args!("{} of {}", self.handles.len(), self.most_in_flight()),
            )
            .field("taken", &self.taken)
            .field("is_ordered", &self.to_poll.is_none())
            .finish()
    }
}

impl<I: Iterator, R> fmt::Debug for MapStream<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MapStream").field(&self.0).finish()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::Duration;

    use crate::pool::ThreadPool;

    #[test]
    fn the_only_worker_leaves_few_entries_of_the_calls_that_it_runs_itself() {
        let pool = ThreadPool::new(1, 1, Duration::MAX);
        for is_ordered in [true, false] {
            let inner = pool.clone();
            let most = pool.evaluate(move || {
                let results = inner.map(0..10_000, |n| n).in_flight(8);
                let results = if is_ordered { results } else { results.unordered() };
                results.map(|_| inner.shared().queue_len()).max()
            });
            let most = most.await_complete();
            assert!(most <= Some(2 * 8), "{most:?} entries");
        }
        pool.shutdown_join();
    }
}
