//! Feature `metrics`: histograms of all tasks, and the statistics as gauges and counters.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::HOUR;
use elastipool::Builder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

const LONG: Duration = Duration::from_micros(50);

/// One test, since the recorder is one for the process, and a snapshot takes what the histograms
/// have.
#[test]
fn histograms_count_tasks_and_the_statistics_are_published() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let build = |name: &str| Builder::new().name(name).core_size(1).max_size(1).keep_alive(HOUR);
    let snapshot = || -> BTreeMap<String, DebugValue> {
        let all = snapshotter.snapshot().into_vec();
        all.into_iter().map(|(key, _, _, value)| (key.key().to_string(), value)).collect()
    };

    let samples = |values: &BTreeMap<String, DebugValue>, name: &str, pool: &str| {
        let key = values.keys().find(|key| key.contains(name) && key.contains(pool));
        match &values[key.expect("it is recorded")] {
            DebugValue::Histogram(samples) => samples.len(),
            _ => panic!("{name} is a histogram"),
        }
    };
    let long = build("long").metrics().build();
    let compute = || {
        let begin = Instant::now();
        while begin.elapsed() < LONG {}
    };
    for _ in 0..100 {
        long.execute(compute);
    }
    long.join();
    let values = snapshot();
    for name in ["elastipool_queue_seconds", "elastipool_run_seconds"] {
        assert_eq!(samples(&values, name, "long"), 100, "{name}");
    }
    let handles: Vec<_> = (0..100).map(|_| long.evaluate(compute)).collect();
    handles.into_iter().for_each(|handle| handle.await_complete());
    long.join();
    assert_eq!(samples(&snapshot(), "elastipool_run_seconds", "long"), 100);

    let pool = build("timed").metrics().build();
    for _ in 0..6400 {
        pool.execute(|| ());
    }
    pool.join();
    let silent = build("silent").build();
    silent.execute(|| ());
    silent.join();
    let values = snapshot();
    for name in ["elastipool_queue_seconds", "elastipool_run_seconds"] {
        let own = values.keys().find(|key| key.contains(name) && key.contains("pool = timed"));
        let key = own.expect("it is recorded");
        let DebugValue::Histogram(samples) = &values[key] else { panic!("{name} is a histogram") };
        assert_eq!(samples.len(), 6400, "{name}");
        assert!(samples.iter().all(|seconds| (0.0..10.0).contains(&seconds.into_inner())));
    }
    assert!(!values.keys().any(|key| key.contains("silent")));

    // Polls of a future count one by one, its wait once.
    {
        let three_polls = |duration: Duration| {
            let mut polls = 0;
            std::future::poll_fn(move |context| {
                let begin = Instant::now();
                while begin.elapsed() < duration {}
                polls += 1;
                context.waker().wake_by_ref();
                if polls < 3 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
            })
        };
        for _ in 0..100 {
            long.spawn(three_polls(LONG));
        }
        long.join();
        let values = snapshot();
        assert_eq!(samples(&values, "elastipool_queue_seconds", "long"), 100);
        assert_eq!(samples(&values, "elastipool_run_seconds", "long"), 300);

        for _ in 0..6400 {
            pool.spawn(three_polls(Duration::ZERO));
        }
        pool.join();
        let values = snapshot();
        assert_eq!(samples(&values, "elastipool_queue_seconds", "timed"), 6400);
        assert_eq!(samples(&values, "elastipool_run_seconds", "timed"), 3 * 6400);
    }

    let view = silent.view().name("reports").build();
    view.evaluate(|| ()).await_complete();
    view.join();
    silent.join();
    silent.publish_metrics();
    view.publish_metrics();
    let values = snapshot();
    let value = |name: &str, is_view: bool| {
        let mut own = values.iter().filter(|(key, _)| key.contains(name) && key.contains("silent"));
        let (_, value) =
            own.find(|(key, _)| key.contains("reports") == is_view).expect("published");
        match value {
            DebugValue::Counter(count) => *count as f64,
            DebugValue::Gauge(gauge) => gauge.into_inner(),
            DebugValue::Histogram(_) => panic!("{name} is no histogram"),
        }
    };
    assert_eq!(value("elastipool_completed_total", false), 2.0);
    assert_eq!(value("elastipool_completed_total", true), 1.0);
    assert_eq!(value("elastipool_workers", false), 1.0);
    assert_eq!(value("elastipool_threads_started_total", false), 1.0);
    assert_eq!(value("elastipool_queued", false), 0.0);
    // Prometheus's conventions: counters, and only these, end with `_total`.
    for (key, value) in &values {
        let is_total = key.contains("_total,");
        assert_eq!(is_total, matches!(value, DebugValue::Counter(_)), "{key}");
    }
    let published = values.keys().filter(|key| !key.contains("seconds")).count();
    assert_eq!(published, 2 * 22, "of the pool and of the view");
}
