//! Building views: settings, errors, handles.

use std::time::Duration;

use elastipool::{BuildError, Priority};

use crate::pool;

#[test]
fn errors_name_both_values() {
    let pool = pool(1, 4);
    let error = |builder: elastipool::ViewBuilder| builder.try_build().unwrap_err();
    assert_eq!(error(pool.view().limit(0)), BuildError::ViewLimitZero);
    assert_eq!(error(pool.view().weight(0)), BuildError::ViewWeightZero);
    assert_eq!(error(pool.view().queue_timeout(Duration::ZERO)), BuildError::QueueTimeoutZero);
    let below = error(pool.view().limit(1).reserve(2));
    assert_eq!(below, BuildError::ViewLimitBelowReserve { limit: 1, reserve: 2 });
    assert!(below.to_string().contains('1') && below.to_string().contains('2'));
    let first = pool.view().reserve(2).build();
    let too_large = error(pool.view().reserve(2));
    assert_eq!(too_large, BuildError::ReservesTooLarge { reserved: 4, max_size: 4 });
    assert!(too_large.to_string().matches('4').count() >= 2);
    let whole = error(pool.view().reserve(usize::MAX));
    assert_eq!(whole, BuildError::ReservesTooLarge { reserved: usize::MAX, max_size: 4 });
    // The refused ones reserve nothing.
    let second = pool.view().reserve(1).build();
    drop((first, second));
    pool.shutdown_join();
}

#[test]
#[should_panic(expected = "the limit of the view is 0")]
fn build_panics_with_the_text_of_the_error() {
    let _view = pool(1, 1).view().limit(0).build();
}

#[test]
fn the_sizes_cannot_fall_to_the_reserves() {
    let pool = pool(0, 4);
    let view = pool.view().reserve(2).build();
    let error = pool.set_max_size(2).unwrap_err();
    assert_eq!(error, BuildError::ReservesTooLarge { reserved: 2, max_size: 2 });
    assert!(pool.set_sizes(0, 1).is_err());
    assert_eq!(pool.max_size(), 4);
    pool.set_max_size(3).unwrap();
    drop(view);
    pool.set_max_size(1).unwrap();
}

/// The reserve of a view is free when its last handle, task and future are gone.
#[test]
fn a_reserve_ends_with_its_view() {
    let pool = pool(0, 2);
    let view = pool.view().reserve(1).build();
    let clone = view.clone();
    let plain: elastipool::ThreadPool = (*view).clone();
    drop(view);
    drop(clone);
    assert!(pool.view().reserve(1).try_build().is_err(), "a handle is left");
    drop(plain);
    assert!(pool.view().reserve(1).try_build().is_ok());
}

#[test]
fn handles_are_equal_if_their_views_are() {
    let pool = pool(0, 2);
    let [one, other] = ["one", "other"].map(|name| pool.view().name(name).build());
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_ne!(*one, pool);
    assert_eq!(one.downgrade().upgrade().as_ref(), Some(&*one));
    assert_ne!(one.downgrade(), pool.downgrade());
    assert_eq!((one.name(), (*one).name()), ("one", pool.name()));
    // A view of a view is a view of the pool.
    let inner = one.view().build();
    assert_ne!(*inner, *one);
    assert_eq!(inner.name(), format!("{}/3", pool.name()));
}

#[test]
fn debug_shows_the_settings() {
    let pool = pool(0, 4);
    let view = pool.view().name("reports").priority(Priority::Low).limit(3).reserve(1).build();
    let text = format!("{view:?}");
    for part in ["\"reports\"", "Low", "limit: Some(3)", "reserve: 1", "weight: 1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// A weak handle upgrades to the view, and does not keep the pool open.
#[test]
fn a_weak_handle_keeps_its_view() {
    let pool = pool(0, 2);
    let view = pool.view().build();
    let weak = view.downgrade();
    drop(view);
    let again = weak.upgrade().unwrap();
    again.evaluate(|| ()).await_complete();
    again.join();
    assert_eq!(again.stats().completed, 1);
    assert_ne!(again, pool);
    drop((again, pool));
    assert!(weak.upgrade().is_none());
}
