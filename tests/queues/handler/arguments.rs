//! Arguments of all sizes and alignments.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::handler::{Log, pool, writer, written};

#[test]
fn a_large_argument_arrives_whole() {
    let pool = pool();
    let (handler, log) = writer::<[u8; 1024]>(&pool);
    let argument = |number: u8| std::array::from_fn(|place| number ^ place as u8);
    (0..100).for_each(|number| handler.invoke(argument(number)));
    assert!(written(&pool, &log).into_iter().eq((0..100).map(argument)));
}

#[test]
fn an_argument_may_be_of_any_size_around_the_limit() {
    fn check<const WORDS: usize>() {
        let pool = pool();
        let (handler, log) = writer::<[usize; WORDS]>(&pool);
        let argument = |number: usize| std::array::from_fn(|place| 10 * number + place);
        (0..10).for_each(|number| handler.invoke(argument(number)));
        assert!(written(&pool, &log).into_iter().eq((0..10).map(argument)), "{WORDS} words");
    }

    check::<1>();
    check::<2>();
    check::<3>();
    check::<4>();
}

#[test]
fn an_argument_without_a_size_arrives() {
    static LEFT: AtomicUsize = AtomicUsize::new(0);

    struct Nothing;

    impl Drop for Nothing {
        fn drop(&mut self) {
            LEFT.fetch_sub(1, Ordering::SeqCst);
        }
    }

    let pool = pool();
    let (handler, log) = writer(&pool);
    LEFT.store(100, Ordering::SeqCst);
    (0..100).for_each(|_| handler.invoke(Nothing));
    let arrived = written(&pool, &log);
    assert_eq!((arrived.len(), LEFT.load(Ordering::SeqCst)), (100, 100));
    drop(arrived);
    assert_eq!(LEFT.load(Ordering::SeqCst), 0);
}

#[test]
fn an_argument_is_aligned_as_it_must_be() {
    #[repr(align(128))]
    struct Aligned(u8);

    let pool = pool();
    let log = Log::default();
    let logs = Arc::clone(&log);
    let handler = pool.handler(move |argument: Aligned| {
        // The address is looked at where it is used: a copy elsewhere would be aligned anyway.
        let address = std::hint::black_box(&raw const argument).addr();
        logs.lock().unwrap().push((address % 128, argument.0));
    });
    (0..50).for_each(|number| handler.invoke(Aligned(number)));
    assert!(written(&pool, &log).into_iter().eq((0..50).map(|number| (0, number))));
}

/// Small enough to lie in the queue, but for its alignment.
#[test]
fn an_argument_that_is_nothing_but_aligned_arrives() {
    #[repr(align(16))]
    struct Aligned;

    let pool = pool();
    let (handler, log) = writer(&pool);
    (0..50).for_each(|_| handler.invoke(Aligned));
    assert_eq!(written(&pool, &log).len(), 50);
}
