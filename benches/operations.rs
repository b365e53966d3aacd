//! What single operations of the pool cost: for finding regressions, not for comparisons.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use elastipool::ThreadPool;

const BATCH: u64 = 1_000;

fn pool() -> ThreadPool {
    let pool = ThreadPool::new(2, 2, Duration::from_secs(60));
    pool.start_core_threads();
    pool
}

fn closures(criterion: &mut Criterion) {
    let pool = pool();
    let mut group = criterion.benchmark_group("closures");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("execute_and_join", |bencher| {
        bencher.iter(|| {
            for i in 0..BATCH {
                pool.execute(move || {
                    black_box(i);
                });
            }
            pool.join();
        });
    });
    group.bench_function("execute_from_a_task_and_join", |bencher| {
        bencher.iter(|| {
            let inner = pool.clone();
            pool.execute(move || {
                for i in 0..BATCH {
                    inner.execute(move || {
                        black_box(i);
                    });
                }
            });
            pool.join();
        });
    });
    let handler = pool.handler(|i: u64| {
        black_box(i);
    });
    group.bench_function("invoke_and_join", |bencher| {
        bencher.iter(|| {
            (0..BATCH).for_each(|i| handler.invoke(i));
            pool.join();
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("evaluate_and_await", |bencher| {
        bencher.iter(|| pool.evaluate(|| black_box(1)).await_complete());
    });
    group.finish();
}

fn life_cycle(criterion: &mut Criterion) {
    criterion.bench_function("start_and_shutdown", |bencher| {
        bencher.iter_batched(pool, ThreadPool::shutdown_join, BatchSize::PerIteration);
    });
}

#[cfg(feature = "async")]
fn futures(criterion: &mut Criterion) {
    use std::future::poll_fn;
    use std::task::Poll;

    let pool = pool();
    let mut group = criterion.benchmark_group("futures");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("spawn_and_join", |bencher| {
        bencher.iter(|| {
            for i in 0..BATCH {
                pool.spawn(async move {
                    black_box(i);
                });
            }
            pool.join();
        });
    });
    group.bench_function("yield", |bencher| {
        bencher.iter(|| {
            let handle = pool.spawn_await(async {
                for _ in 0..BATCH {
                    let mut has_yielded = false;
                    poll_fn(|context| {
                        if std::mem::replace(&mut has_yielded, true) {
                            return Poll::Ready(());
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                }
            });
            handle.await_complete();
        });
    });
    group.finish();
}

#[cfg(not(feature = "async"))]
fn futures(_: &mut Criterion) {}

criterion_group!(benches, closures, life_cycle, futures);
criterion_main!(benches);
