//! Destructors that panic change no result.

use std::panic::panic_any;
use std::task::Poll;

use crate::common::{block, settled};
use crate::{DropBomb, Typed, cancelled, panicked, pool};

/// A future that a worker blocks on has a destructor, too.
#[test]
fn a_destructor_that_panics_does_not_change_the_result_of_complete() {
    let pool = pool(1);
    let bomb = DropBomb;
    let handle = pool.complete(std::future::poll_fn(move |_| -> Poll<u8> {
        let _captured = &bomb;
        Poll::Ready(1)
    }));
    assert_eq!(settled(handle).unwrap(), 1);
    let bomb = DropBomb;
    let handle = pool.complete(std::future::poll_fn(move |_| -> Poll<u8> {
        let _captured = &bomb;
        panic_any(Typed(2))
    }));
    assert_eq!(panicked(handle).downcast_ref(), Some(&Typed(2)));
}

#[test]
fn a_captured_destructor_that_panics_does_not_change_a_cancellation() {
    let pool = pool(1);
    let gate = block(&pool);
    let bomb = DropBomb;
    let handle = pool.evaluate(move || std::mem::forget(bomb));
    handle.cancel();
    assert!(handle.is_finished());
    cancelled(handle);
    pool.close();
    let bomb = DropBomb;
    cancelled(pool.evaluate(move || std::mem::forget(bomb)));
    gate.open();
}
