//! Feature `metrics`: histograms of sampled tasks, and the statistics as gauges and counters.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use common::HOUR;
use elastipool::Builder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

/// One test, since the recorder is one for the process, and a snapshot takes what the histograms have.
#[test]
fn histograms_sample_tasks_and_the_statistics_are_published() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let build = |name: &str| Builder::new().name(name).core_size(1).max_size(1).keep_alive(HOUR);
    let snapshot = || -> BTreeMap<String, DebugValue> {
        let all = snapshotter.snapshot().into_vec();
        all.into_iter().map(|(key, _, _, value)| (key.key().to_string(), value)).collect()
    };

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
        let key = values.keys().find(|key| key.contains(name)).expect("it is recorded");
        assert!(key.contains("timed"), "{key}");
        let DebugValue::Histogram(samples) = &values[key] else { panic!("{name} is a histogram") };
        // One in 64, give or take six standard deviations.
        assert!((40..=160).contains(&samples.len()), "{name}: {}", samples.len());
        assert!(samples.iter().all(|seconds| (0.0..10.0).contains(&seconds.into_inner())));
    }
    assert!(!values.keys().any(|key| key.contains("silent")));

    // Polls of a sampled future count one by one, its wait once.
    {
        let three_polls = || {
            let mut polls = 0;
            std::future::poll_fn(move |context| {
                polls += 1;
                context.waker().wake_by_ref();
                if polls < 3 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
            })
        };
        for _ in 0..6400 {
            pool.spawn(three_polls());
        }
        pool.join();
        let values = snapshot();
        let samples = |name: &str| {
            let key = values.keys().find(|key| key.contains(name)).expect("it is recorded");
            let DebugValue::Histogram(samples) = &values[key] else { panic!("no histogram") };
            samples.len()
        };
        let waits = samples("elastipool_queue_seconds");
        assert!((40..=160).contains(&waits), "{waits}");
        assert_eq!(samples("elastipool_run_seconds"), 3 * waits);
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
    assert_eq!(value("elastipool_completed", false), 2.0);
    assert_eq!(value("elastipool_completed", true), 1.0);
    assert_eq!(value("elastipool_workers", false), 1.0);
    assert_eq!(value("elastipool_threads_started", false), 1.0);
    assert_eq!(value("elastipool_queued", false), 0.0);
    let published = values.keys().filter(|key| !key.contains("seconds")).count();
    assert_eq!(published, 2 * 17, "of the pool and of the view");
}
