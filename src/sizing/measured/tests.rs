use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "async")]
use crate::crew::Search;
#[cfg(feature = "async")]
use crate::queue::Kind;
#[cfg(feature = "async")]
use crate::task::Job;
use crate::{Growth, ThreadPool};

#[cfg(feature = "async")]
#[test]
fn no_worker_comes_beyond_the_limit_beside_a_search() {
    let pool = ThreadPool::builder().core_size(0).growth(Growth::measured(1)).build();
    let shared = pool.shared();
    shared.counts.add_worker();
    shared.queue.push(Kind::Woken, Job::closure(|| ()));
    let limit = || shared.run_limit(shared.counts.load());
    assert_eq!(limit(), 2, "one more than run");
    assert!(shared.counts.begin_search());
    assert_eq!(limit(), 1, "the worker that searches looks");
    _ = shared.counts.end_search(Search::Searching);
    assert!(shared.queue.pop().is_some_and(|job| job.run().is_end()));
    _ = shared.counts.remove_worker();
}

#[test]
fn the_number_rises_from_core_size() {
    let pool = ThreadPool::builder().core_size(8).growth(Growth::measured(1)).build();
    let shared = pool.shared();
    // The keeper measures later.
    *shared.sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
    let [begin, end] = [(); 2].map(|()| Arc::new(Barrier::new(9)));
    for _ in 0..8 {
        let (begin, end) = (Arc::clone(&begin), Arc::clone(&end));
        pool.execute(move || {
            begin.wait();
            end.wait();
        });
    }
    begin.wait();
    pool.execute(|| ());
    thread::sleep(Duration::from_millis(100));
    // They wait for another thread, so the first one only finds that no task ends.
    shared.measure();
    thread::sleep(Duration::from_millis(1));
    shared.measure();
    let allowed = pool.stats().allowed;
    end.wait();
    assert!(allowed >= 12, "twice as many may run as have slept: {allowed}");
}

#[test]
fn measurements_become_rare_as_long_as_the_number_stands() {
    let pool = ThreadPool::builder().growth(Growth::measured(1)).build();
    let shared = pool.shared();
    // The keeper measures later.
    *shared.sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
    let calm = || {
        shared.measure();
        // As long as it was before.
        *shared.sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
        shared.sizing.state.lock().calm
    };
    assert_eq!([calm(), calm(), calm()], [1, 2, 3]);
    // Long after: the first one of other tasks.
    *shared.sizing.earliest.lock() = Some(Instant::now() - Duration::from_secs(1));
    assert_eq!(calm(), 1);
}

#[cfg(feature = "async")]
#[test]
fn a_poll_that_returns_pending_is_no_end() {
    let pool = ThreadPool::builder().core_size(1).build();
    let shared = pool.shared();
    *shared.sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
    let mut state = shared.sizing.state.lock();
    let mut ended = || shared.measure_workers(&mut state, Instant::now(), true, true).ended;
    ended();
    let mut polls = 0;
    pool.spawn(std::future::poll_fn(move |context| {
        polls += 1;
        context.waker().wake_by_ref();
        if polls < 100 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    }));
    pool.join();
    assert_eq!(ended(), 1);
}

/// Neither that one runs nor that its future ends: what closures may have does not change by it.
#[cfg(feature = "async")]
#[test]
fn a_worker_beyond_the_limit_is_not_measured() {
    for has_view in [false, true] {
        let pool = ThreadPool::builder().core_size(0).growth(Growth::measured(1)).build();
        let _view = has_view.then(|| pool.view().build());
        let shared = pool.shared();
        *shared.sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
        let mut state = shared.sizing.state.lock();
        let mut measure = || {
            let measured = shared.measure_workers(&mut state, Instant::now(), true, true);
            (measured.running, measured.ended, measured.awake > 1.5)
        };
        let [busy, polled] = [(); 2].map(|()| Arc::new([Barrier::new(2), Barrier::new(2)]));
        let wait = |barriers: &Arc<[Barrier; 2]>| {
            let barriers = Arc::clone(barriers);
            move || barriers.iter().for_each(|barrier| _ = barrier.wait())
        };
        pool.execute(wait(&busy));
        busy[0].wait();
        measure();
        let waits = wait(&polled);
        let poll = pool.spawn_await(async move { waits() });
        polled[0].wait();
        assert_eq!(measure(), (1, 0, false), "{has_view}");
        polled[1].wait();
        poll.await_complete();
        while shared.counts.load().idle() == 0 {
            thread::yield_now();
        }
        assert_eq!(measure(), (1, 0, false), "{has_view}");
        busy[1].wait();
    }
}

/// No measurement has to come first.
#[cfg(feature = "async")]
#[test]
fn a_future_of_a_view_notifies_a_worker() {
    let pool = ThreadPool::builder().core_size(0).growth(Growth::measured(1)).build();
    let view = pool.view().build();
    *pool.shared().sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
    let [begin, end] = [(); 2].map(|()| Arc::new(Barrier::new(2)));
    let (begins, ends) = (Arc::clone(&begin), Arc::clone(&end));
    pool.execute(move || {
        begins.wait();
        ends.wait();
    });
    begin.wait();
    let polled = view.spawn_await(async {}).await_complete_timeout(Duration::from_secs(30));
    end.wait();
    assert!(polled.is_ok(), "the future has waited for the closure");
}

/// The region gives the place for ready futures back.
#[cfg(feature = "async")]
#[test]
fn a_future_is_polled_beside_a_view_and_a_poll_in_a_region() {
    let pool = ThreadPool::builder().core_size(0).growth(Growth::measured(1)).build();
    let _view = pool.view().build();
    *pool.shared().sizing.earliest.lock() = Some(Instant::now() + Duration::from_secs(3600));
    let [busy, inside] = [(); 2].map(|()| Arc::new([Barrier::new(2), Barrier::new(2)]));
    let wait = |barriers: &Arc<[Barrier; 2]>| {
        let barriers = Arc::clone(barriers);
        move || barriers.iter().for_each(|barrier| _ = barrier.wait())
    };
    pool.execute(wait(&busy));
    busy[0].wait();
    let waits = wait(&inside);
    let poll = pool.spawn_await(async move { crate::blocking(waits) });
    inside[0].wait();
    let polled = pool.spawn_await(async {}).await_complete_timeout(Duration::from_secs(30));
    inside[1].wait();
    busy[1].wait();
    poll.await_complete();
    assert!(polled.is_ok(), "the future has waited for the closure");
}
