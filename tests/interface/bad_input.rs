//! A configuration that makes no sense is refused before there is a pool, with an error that names
//! the value and the limit; `build`, `new` and `new_named` panic with the same text.

use crate::common;

use std::error::Error;
use std::time::Duration;

use common::{HOUR, block, panic_text, submit_region, value};
use elastipool::{BuildError, Builder, Growth, ThreadPool};

const MINUTE: Duration = Duration::from_secs(60);

/// The most workers that a pool can count: 2^20 - 1 on a 64-bit machine, 2^9 - 1 on a 32-bit one.
const LIMIT: usize = (1 << ((usize::BITS - 4) / 3)) - 1;

fn sized(core_size: usize, max_size: usize) -> Builder {
    Builder::new().core_size(core_size).max_size(max_size).keep_alive(MINUTE)
}

/// Checks that the sizes are refused with `expected`, in whichever way they are given, and that the
/// text names all of `parts`.
fn refused(core_size: usize, max_size: usize, expected: &BuildError, parts: &[&str]) {
    let error = sized(core_size, max_size).try_build().expect_err("makes no sense");
    assert_eq!(error, *expected);
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
    assert_eq!(panic_text(|| sized(core_size, max_size).build()), text);
    assert_eq!(panic_text(|| ThreadPool::new(core_size, max_size, MINUTE)), text);
    assert_eq!(panic_text(|| ThreadPool::new_named("named", core_size, max_size, MINUTE)), text);
    if core_size == max_size {
        assert_eq!(panic_text(|| ThreadPool::fixed(max_size)), text);
    }
}

#[test]
fn a_max_size_of_zero_is_refused() {
    refused(0, 0, &BuildError::MaxSizeZero, &["max_size", "is 0", "at least 1"]);
    refused(3, 0, &BuildError::MaxSizeZero, &["max_size", "is 0", "at least 1"]);
    // Also if nothing else was said.
    let error = Builder::new().max_size(0).try_build().unwrap_err();
    assert_eq!(error, BuildError::MaxSizeZero);
}

#[test]
fn a_max_size_below_core_size_is_refused() {
    let error = BuildError::MaxBelowCore { max_size: 2, core_size: 4 };
    refused(4, 2, &error, &["max_size is 2", "core_size", "4"]);
    let error = BuildError::MaxBelowCore { max_size: LIMIT - 1, core_size: LIMIT };
    refused(LIMIT, LIMIT - 1, &error, &[&(LIMIT - 1).to_string(), &LIMIT.to_string()]);
}

#[test]
fn a_size_that_cannot_be_counted_is_refused() {
    assert_eq!(ThreadPool::MAX_SIZE, LIMIT);
    let limit = LIMIT.to_string();
    for size in [LIMIT + 1, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        let error = BuildError::SizeTooLarge { size, limit: LIMIT };
        let parts = [&*size.to_string(), &*limit, "ThreadPool::MAX_SIZE"];
        refused(1, size, &error, &parts);
        refused(size, size, &error, &parts);
        refused(size, 1, &error, &parts);
        let only_core = Builder::new().core_size(size).try_build().unwrap_err();
        assert_eq!(only_core, error);
        let only_max = Builder::new().max_size(size).try_build().unwrap_err();
        assert_eq!(only_max, error);
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn a_size_beyond_32_bits_is_not_cut_down() {
    let size = 1 << 40;
    let error = BuildError::SizeTooLarge { size, limit: LIMIT };
    refused(0, size, &error, &["1099511627776", "1048575"]);
}

#[test]
fn the_largest_sizes_are_allowed() {
    let pool = sized(0, ThreadPool::MAX_SIZE).build();
    assert_eq!((pool.core_size(), pool.max_size()), (0, LIMIT));
    // It starts what it needs, not what it may.
    assert_eq!(pool.evaluate(|| 6 * 7).await_complete(), 42);
    assert_eq!(pool.current_worker_count(), 1);
    pool.shutdown_join();

    let pool = Builder::new().core_size(LIMIT).build();
    assert_eq!((pool.core_size(), pool.max_size()), (LIMIT, LIMIT), "twice the core is too many");
    assert_eq!(pool.current_worker_count(), 0);
}

#[test]
fn a_core_size_of_zero_is_allowed() {
    let pool = ThreadPool::new(0, 1, MINUTE);
    assert_eq!((pool.core_size(), pool.max_size()), (0, 1));
    assert_eq!(pool.start_core_threads(), 0);
    assert_eq!(pool.evaluate(|| "runs").await_complete(), "runs");
    pool.shutdown_join();

    let pool = Builder::new().core_size(0).build();
    assert_eq!((pool.core_size(), pool.max_size()), (0, 1), "twice nothing is not enough");
    assert_eq!(pool.evaluate(|| "runs").await_complete(), "runs");
    pool.shutdown_join();
}

#[test]
fn every_keep_alive_is_allowed() {
    let beyond_clocks = Duration::from_secs(1 << 40);
    for keep_alive in [Duration::ZERO, Duration::from_nanos(1), HOUR, beyond_clocks, Duration::MAX]
    {
        for growth in [Growth::Eager, Growth::Stalled(HOUR), Growth::Stalled(Duration::MAX)] {
            let pool = Builder::new()
                .core_size(0)
                .max_size(3)
                .keep_alive(keep_alive)
                .growth(growth)
                .build();
            assert_eq!(pool.keep_alive(), keep_alive);
            for round in 0..20 {
                assert_eq!(value(pool.evaluate(move || round)), round);
            }
            // Two at a time: the second one waits for the first, or for a second worker.
            let gate = block(&pool);
            let task = pool.evaluate(|| 42);
            gate.open();
            assert_eq!(value(task), 42);
            assert!(pool.shutdown_join_timeout(common::LIMIT));
        }
    }
}

#[test]
fn every_max_blocked_is_allowed() {
    for max_blocked in [0, 1, LIMIT, usize::MAX] {
        let pool = sized(1, 1).max_blocked(max_blocked).build();
        let (region, gate) = submit_region(&pool);
        let other = pool.evaluate(|| 42);
        if max_blocked > 0 {
            assert_eq!(value(other), 42, "another worker runs");
        }
        gate.open();
        value(region);
        assert!(pool.shutdown_join_timeout(common::LIMIT));
    }
}

#[test]
fn a_growth_without_delay_is_refused() {
    let with = |delay| sized(1, 2).growth(Growth::Stalled(delay));
    let error = with(Duration::ZERO).try_build().unwrap_err();
    assert_eq!(error, BuildError::StallZero);
    let text = error.to_string();
    for part in ["growth is Stalled after 0 seconds", "at least 1 nanosecond", "Growth::Eager"] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
    assert_eq!(panic_text(|| with(Duration::ZERO).build()), text);

    let pool = with(Duration::from_nanos(1)).build();
    assert_eq!(pool.evaluate(|| 1).await_complete(), 1);
    pool.shutdown_join();
}

#[test]
fn workers_that_may_run_no_task_are_refused() {
    let with = |max_tasks| sized(1, 2).max_tasks_per_worker(max_tasks);
    let error = with(0).try_build().unwrap_err();
    assert_eq!(error, BuildError::MaxTasksZero);
    let text = error.to_string();
    for part in ["max_tasks_per_worker is 0", "at least 1", "no limit"] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
    assert_eq!(panic_text(|| with(0).build()), text);

    for max_tasks in [1, usize::MAX] {
        let pool = with(max_tasks).build();
        assert_eq!(pool.evaluate(|| 1).await_complete(), 1);
        pool.shutdown_join();
    }
}

#[test]
fn a_pool_name_with_a_nul_is_refused() {
    for (name, position) in [("\0", 0), ("ab\0cd\0", 2), ("grüße\0", 7)] {
        let with = || Builder::new().core_size(1).max_size(2).name(name);
        let error = with().try_build().unwrap_err();
        assert_eq!(error, BuildError::NameContainsNul { name: name.to_owned(), position });
        let text = error.to_string();
        let parts = [format!("{name:?}"), format!("position {position}"), "none".to_owned()];
        for part in parts {
            assert!(text.contains(&part), "{part:?} is missing in {text:?}");
        }
        assert!(!text.contains('\0'), "a log cannot show {text:?}");
        assert_eq!(panic_text(|| with().build()), text);
        assert_eq!(panic_text(|| ThreadPool::new_named(name, 1, 2, MINUTE)), text);
    }
}

#[test]
fn a_pool_name_without_a_nul_is_allowed() {
    for name in ["", "grüße", "a name\nof two lines", &"long".repeat(100)] {
        let pool = ThreadPool::new_named(name, 1, 2, MINUTE);
        assert_eq!(pool.name(), name);
        let thread = pool.evaluate(|| std::thread::current().name().map(str::to_owned));
        assert_eq!(thread.await_complete(), Some(format!("{name}-0")));
        pool.shutdown_join();
    }
}

#[test]
fn sizes_that_are_not_set_follow_from_those_that_are() {
    let cpus = num_cpus::get();

    // A 32-bit system has no more than 511.
    let default_max = 512.max(cpus).min(LIMIT);
    let pool = Builder::new().build();
    assert_eq!((pool.core_size(), pool.max_size()), (cpus, default_max));
    assert_eq!(pool.keep_alive(), MINUTE);
    let default = ThreadPool::default();
    assert_eq!((default.core_size(), default.max_size()), (cpus, default_max));
    assert_eq!(default.keep_alive(), MINUTE);

    // Only the maximum: the core follows, also on a machine with more CPUs than that.
    for max_size in [1, cpus, 2 * cpus, (1000 * cpus).min(LIMIT / 2)] {
        let pool = Builder::new().max_size(max_size).build();
        assert_eq!((pool.core_size(), pool.max_size()), (cpus.min(max_size), max_size));
    }
    // Only the core: the maximum follows.
    for core_size in [1, cpus, 2 * cpus, (1000 * cpus).min(LIMIT / 2)] {
        let pool = Builder::new().core_size(core_size).build();
        assert_eq!((pool.core_size(), pool.max_size()), (core_size, 2 * core_size));
    }
}

#[test]
fn pools_without_a_name_have_different_ones() {
    let names = [(); 3].map(|()| Builder::new().build().name().to_owned());
    for (place, name) in names.iter().enumerate() {
        let number = name.strip_prefix("elasti-").expect("says whose it is");
        assert!(number.parse::<usize>().is_ok(), "{name}");
        assert!(!names[..place].contains(name), "{names:?}");
    }
}

#[test]
fn the_last_setting_of_a_value_wins() {
    let pool = Builder::new()
        .max_size(0)
        .name("\0")
        .keep_alive(Duration::ZERO)
        .max_size(3)
        .core_size(1)
        .name("fine")
        .keep_alive(MINUTE)
        .build();
    assert_eq!((pool.name(), pool.core_size(), pool.max_size()), ("fine", 1, 3));
}

#[test]
fn a_build_error_implements_error() {
    fn an_error<E: Error + Clone + PartialEq + Send + Sync + 'static>(_: &E) {}

    let error = Builder::new().max_size(0).try_build().unwrap_err();
    an_error(&error);
    assert!(error.source().is_none());
    assert!(format!("{error:?}").contains("max_size is 0; it must be at least 1"));
}
