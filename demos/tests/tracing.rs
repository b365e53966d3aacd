//! Feature `tracing`: the submitter's span follows the task, and what happens to workers and tasks
//! are events.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{HOUR, block, settled, wait_until};
use elastipool::{Builder, Growth, ThreadPool};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Level and text of each event with the target `elastipool`.
static EVENTS: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// Calls of the subscriber on the thread that others rely on.
static KEEPER_CALLS: AtomicUsize = AtomicUsize::new(0);

struct Collector;

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.0 = format!("{value:?}{}", self.0),
            name => self.0 += &format!(" {name}={value:?}"),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "elastipool" {
            let mut text = Text::default();
            event.record(&mut text);
            if std::thread::current().name().is_some_and(|name| name.ends_with("-keeper")) {
                KEEPER_CALLS.fetch_add(1, Ordering::Relaxed);
            }
            EVENTS.lock().unwrap().push((*event.metadata().level(), text.0));
        }
    }
}

/// Installs the collector for all threads, once.
fn builder(name: &str) -> Builder {
    let _ = tracing::subscriber::set_global_default(Registry::default().with(Collector));
    Builder::new().name(name).core_size(0).max_size(1).keep_alive(HOUR).tracing()
}

/// The events of the pool of this name, without its name.
fn events(pool: &str) -> Vec<(Level, String)> {
    let of_pool = format!(" pool=\"{pool}\"");
    let events = EVENTS.lock().unwrap();
    let own = events.iter().filter(|(_, text)| text.contains(&of_pool));
    own.map(|(level, text)| (*level, text.replace(&of_pool, ""))).collect()
}

fn span_name() -> Option<&'static str> {
    tracing::Span::current().metadata().map(|metadata| metadata.name())
}

#[test]
fn tasks_run_in_the_span_of_their_submitter() {
    let pool = builder("spans").build();
    let request = info_span!("request");
    let closure = request.in_scope(|| pool.evaluate(span_name));
    assert_eq!(settled(closure).unwrap(), Some("request"));
    assert_eq!(settled(pool.evaluate(span_name)).unwrap(), None);
    let nested = pool.clone();
    let closure = request.in_scope(|| pool.evaluate(move || nested.evaluate(span_name)));
    assert_eq!(settled(settled(closure).unwrap()).unwrap(), Some("request"));
    {
        let (sender, receiver) = futures::channel::oneshot::channel();
        let future = request.in_scope(|| {
            pool.spawn_await(async {
                let first = span_name();
                receiver.await.unwrap();
                (first, span_name())
            })
        });
        sender.send(()).unwrap();
        assert_eq!(settled(future).unwrap(), (Some("request"), Some("request")));
    }
    pool.shutdown_join();
}

#[test]
fn a_worker_is_reported_from_its_start_to_its_end() {
    let pool = builder("life").build();
    pool.execute(|| ());
    pool.shutdown_join();
    let texts = [
        "the pool grows worker=0 workers=1",
        "worker starts worker=0",
        "worker retires worker=0 why=\"closed\"",
        "worker stops worker=0",
    ];
    // The starter and the new worker run side by side.
    let mut seen = events("life");
    seen.sort_by_key(|(_, text)| texts.iter().position(|expected| expected == text));
    assert_eq!(seen, texts.map(|text| (Level::DEBUG, text.to_owned())));
}

#[test]
fn a_changed_number_of_workers_is_reported() {
    let pool = builder("sized").max_size(4).growth(Growth::measured(1)).build();
    // The second one needs another worker, since the first one waits for it.
    let (open, gate) = std::sync::mpsc::channel();
    pool.execute(move || gate.recv().unwrap());
    pool.execute(move || open.send(()).unwrap());
    let text = "the number of workers follows the load allowed=2 running=1";
    wait_until("it is reported", || events("sized").iter().any(|(_, seen)| seen.starts_with(text)));
    pool.shutdown_join();
    assert_eq!(KEEPER_CALLS.load(Ordering::Relaxed), 0);
}

#[test]
fn the_reason_of_a_retirement_is_reported() {
    let retires = |pool: &ThreadPool, why: &str| {
        let text = format!("worker retires worker=0 why={why:?}");
        wait_until(&text, || events(pool.name()).contains(&(Level::DEBUG, text.clone())));
    };
    let pool = builder("surplus").keep_alive(Duration::from_millis(1)).build();
    pool.execute(|| ());
    retires(&pool, "surplus");
    let pool = builder("recycled").max_tasks_per_worker(1).build();
    pool.execute(|| ());
    retires(&pool, "recycled");
}

#[test]
fn panics_and_expired_tasks_are_reported() {
    let pool = builder("failures").build();
    pool.execute(|| panic!("lost my keys"));
    pool.execute(|| panic!("lost {} keys", 2));
    let _ = settled(pool.evaluate(|| panic!("for the handle")));
    let gate = block(&pool);
    let view = pool.view().queue_timeout(Duration::from_nanos(1)).build();
    view.execute(|| ());
    gate.open();
    pool.join();
    let failures: Vec<_> =
        events("failures").into_iter().filter(|(level, _)| *level < Level::INFO).collect();
    let expected = [
        (Level::ERROR, "a task panicked panic=\"lost my keys\""),
        (Level::ERROR, "a task panicked panic=\"lost 2 keys\""),
        (Level::ERROR, "a task panicked"),
        (Level::WARN, "a task expired in the queue"),
    ];
    assert_eq!(failures, expected.map(|(level, text)| (level, text.to_owned())));
}

#[test]
fn a_pool_without_the_setting_reports_nothing() {
    let pool = Builder::new().name("silent").build();
    pool.execute(|| panic!("a panic of the task"));
    let span = info_span!("request");
    let name = span.in_scope(|| pool.evaluate(span_name));
    assert_eq!(settled(name).unwrap(), None);
    pool.shutdown_join();
    assert!(events("silent").is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_refused_thread_is_reported() {
    common::refusal::in_a_child("a_refused_thread_is_reported", || {
        let refusal = common::refusal::Refusal::begin();
        let pool = builder("refused").build();
        assert!(pool.try_execute(|| ()).is_err());
        refusal.end();
        let (level, text) = events("refused").pop().expect("there is an event");
        assert_eq!(level, Level::WARN);
        assert!(text.starts_with("the system refused a thread error="), "{text}");
    });
}
