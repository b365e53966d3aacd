//! Waiting for tasks that the waiter submitted: recursive algorithms, whose first call is made by a
//! worker unless the row says otherwise, and a loop outside the pool.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::Row;
use super::closures::{compute, empty, submit_all, until_run};
use crate::Result;
use crate::engines::{Fork, Joins, Pool, Scopes};

/// Below this, fib is computed by calls.
const FIB_CUT_OFF: u32 = 10;

/// Fewer integers are sorted by the standard library.
const SORT_CUT_OFF: usize = 1_000;

/// The chunks of a parallel step, and about how long each one takes.
const CHUNKS: usize = 16;
const CHUNK_MICROS: u64 = 5;

/// A measurement repeats the row this often, or for `BUDGET`: the fast engines take 2 ms, others
/// some thousand times that.
const RUNS: u32 = 50;
const BUDGET: Duration = Duration::from_secs(1);

/// Milliseconds per run, with an engine that can wait for one half of the work.
pub(crate) fn by_forks<F: Fork>(pool: &'static F, size: u64) -> Result<f64> {
    per_run(size, |size| fib(pool, size, fib_by_forks))
}

/// Milliseconds per run, with an engine that has scopes.
pub(crate) fn by_scopes<S: Scopes>(row: Row, pool: &'static S, size: u64) -> Result<f64> {
    per_run(size, |size| match row {
        Row::FibScopes | Row::FibHandles => fib(pool, size, fib_by_scopes),
        Row::Quicksort => sort(pool, size),
        Row::ScopeTree => Ok(tree(pool, size)),
        Row::Chunks => chunks(pool, size),
        Row::Scope300k => many(size, |size| pool.scope((0..size).map(|i| empty(i, size)), || ())),
        _ => Err(format!("{row} is no row of scopes").into()),
    })
}

/// Milliseconds per run of `scope-300k`, with an engine that has no scopes: it executes the tasks
/// and joins.
pub(crate) fn by_join<J: Joins>(pool: &'static J, size: u64) -> Result<f64> {
    per_run(size, |size| {
        many(size, |size| {
            submit_all(pool, size, empty);
            pool.join();
        })
    })
}

/// The mean, after a smaller run to warm up. Each run tells its own time.
fn per_run(size: u64, run: impl Fn(u64) -> Result<Duration>) -> Result<f64> {
    run((size / 10).max(1))?;
    let (mut runs, mut time) = (0, Duration::ZERO);
    while runs < RUNS && time < BUDGET {
        time += run(size)?;
        runs += 1;
    }
    Ok(time.as_secs_f64() * 1e3 / f64::from(runs))
}

/// The smallest Fibonacci number that is not below `size`, which takes about `size` calls.
fn fib<P: Pool>(
    pool: &'static P,
    size: u64,
    compute: fn(&'static P, u32) -> u64,
) -> Result<Duration> {
    let n = (1..).find(|&n| sequential_fib(n) >= size).ok_or("a larger number exists")?;
    let (result, time) = pool.evaluate(move || {
        let start = Instant::now();
        (compute(pool, black_box(n)), start.elapsed())
    });
    if result != sequential_fib(n) {
        return Err(format!("fib({n}) is not {result}").into());
    }
    Ok(time)
}

fn sequential_fib(n: u32) -> u64 {
    if n < 2 { u64::from(n) } else { sequential_fib(n - 1) + sequential_fib(n - 2) }
}

fn fib_by_forks<F: Fork>(pool: &'static F, n: u32) -> u64 {
    if n < FIB_CUT_OFF {
        return sequential_fib(n);
    }
    let (a, b) = pool.fork(move || fib_by_forks(pool, n - 1), move || fib_by_forks(pool, n - 2));
    a + b
}

fn fib_by_scopes<S: Scopes>(pool: &'static S, n: u32) -> u64 {
    if n < FIB_CUT_OFF {
        return sequential_fib(n);
    }
    let (mut a, mut b) = (0, 0);
    pool.scope([|| a = fib_by_scopes(pool, n - 1)], || b = fib_by_scopes(pool, n - 2));
    a + b
}

fn sort<S: Scopes>(pool: &'static S, size: u64) -> Result<Duration> {
    let mut random = Rng::with_seed(size);
    let mut numbers: Vec<u64> = (0..size).map(|_| random.u64(..)).collect();
    let (numbers, time) = pool.evaluate(move || {
        let start = Instant::now();
        quicksort(pool, &mut numbers);
        let time = start.elapsed();
        (numbers, time)
    });
    if numbers.is_sorted() { Ok(time) } else { Err("they are not sorted".into()) }
}

fn quicksort<S: Scopes>(pool: &'static S, numbers: &mut [u64]) {
    if numbers.len() < SORT_CUT_OFF {
        return numbers.sort_unstable();
    }
    let pivot = partition(numbers);
    let (left, right) = numbers.split_at_mut(pivot);
    pool.scope([|| quicksort(pool, left)], || quicksort(pool, &mut right[1..]));
}

/// Moves what is smaller than the pivot before it, the rest behind it, and returns its place.
fn partition(numbers: &mut [u64]) -> usize {
    let last = numbers.len() - 1;
    let mut candidates = [0, last / 2, last];
    candidates.sort_unstable_by_key(|&place| numbers[place]);
    numbers.swap(candidates[1], last);
    let mut smaller = 0;
    for place in 0..last {
        if numbers[place] < numbers[last] {
            numbers.swap(place, smaller);
            smaller += 1;
        }
    }
    numbers.swap(smaller, last);
    smaller
}

/// From outside the pool.
fn tree<S: Scopes>(pool: &'static S, leaves: u64) -> Duration {
    let start = Instant::now();
    node(pool, leaves.ilog2());
    start.elapsed()
}

fn node<S: Scopes>(pool: &'static S, depth: u32) {
    if depth > 0 {
        pool.scope([(); 2].map(|()| move || node(pool, depth - 1)), || ());
    }
}

/// A loop outside the pool, each step of which is computed in parallel.
fn chunks<S: Scopes>(pool: &'static S, steps: u64) -> Result<Duration> {
    let mut sums = [0_u64; CHUNKS];
    let start = Instant::now();
    for step in 1..=steps {
        let chunks = sums.iter_mut().map(|sum| {
            move || {
                *sum = sum.wrapping_add(compute(CHUNK_MICROS, step));
            }
        });
        pool.scope(chunks, || ());
    }
    let time = start.elapsed();
    let expected =
        (1..=steps).fold(0_u64, |sum, step| sum.wrapping_add(compute(CHUNK_MICROS, step)));
    if sums == [expected; CHUNKS] { Ok(time) } else { Err("a chunk was not computed".into()) }
}

/// Submits empty tasks and waits for them, by `run`. If `run` returns early, the time still ends
/// when all tasks have run.
fn many(size: u64, run: impl FnOnce(u64)) -> Result<Duration> {
    until_run(size, || run(size))
}

#[cfg(test)]
mod tests {
    use super::partition;

    #[test]
    fn partition_puts_the_pivot_in_its_place() {
        let mut numbers = [5, 1, 4, 9, 3, 8, 7];
        let pivot = partition(&mut numbers);
        let (left, right) = numbers.split_at(pivot);
        assert!(left.iter().all(|&number| number < right[0]));
        assert!(right.iter().all(|&number| number >= right[0]));
        assert_eq!(right[0], 7);
    }
}
