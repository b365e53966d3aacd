//! A handle resolves to the value.

use crate::common::{LIMIT, settled};
use crate::pool;

#[test]
fn a_value_reaches_its_handle() {
    let pool = pool(2);
    assert_eq!(settled(pool.evaluate(|| 1)).unwrap(), 1);
    assert_eq!(settled(pool.try_evaluate(|| 2).unwrap()).unwrap(), 2);
    assert_eq!(settled(pool.complete(async { 3 })).unwrap(), 3);
    assert_eq!(settled(pool.try_complete(async { 4 }).unwrap()).unwrap(), 4);
    assert_eq!(pool.evaluate(|| 5).await_complete(), 5);
    assert_eq!(pool.evaluate(|| 6).try_await_complete().unwrap(), 6);
}

#[cfg(feature = "async")]
#[test]
fn a_value_of_a_spawned_future_reaches_its_handle() {
    let pool = pool(2);
    assert_eq!(settled(pool.spawn_await(async { 1 })).unwrap(), 1);
    assert_eq!(settled(pool.try_spawn_await(async { 2 }).unwrap()).unwrap(), 2);
    let (sender, receiver) = futures::channel::oneshot::channel();
    let handle = pool.spawn_await(receiver);
    sender.send(3).unwrap();
    assert_eq!(handle.await_complete().unwrap(), 3);
}

#[test]
fn a_value_outlives_the_pool() {
    let pool = pool(2);
    let handle = pool.evaluate(|| String::from("still here"));
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert!(handle.is_finished());
    assert_eq!(settled(handle).unwrap(), "still here");
}
