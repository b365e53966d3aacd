//! Arguments that are handed back.

use crate::common::{Drops, LIMIT, refused};
use crate::handler::{busy, one, pool, writer, written};
use elastipool::RejectReason;

#[test]
fn a_closed_pool_hands_the_argument_back_untouched() {
    let pool = pool();
    let drops = Drops::default();
    let (handler, log) = writer(&pool);
    pool.close();
    let argument = Box::new((7, drops.issue()));
    let address = &raw const *argument;
    let rejected = refused(handler.try_invoke(argument), RejectReason::Closed);
    assert_eq!(rejected.to_string(), "the task was not accepted: the pool is closed");
    let argument = rejected.into_task();
    assert_eq!((&raw const *argument, argument.0, drops.count()), (address, 7, 0));
    assert!(written(&pool, &log).is_empty());
    assert_eq!((pool.stats().rejected, pool.stats().accepted()), (1, 0));
}

#[test]
fn a_full_queue_hands_the_argument_back_untouched() {
    let (pool, gate) = busy(one().queue_capacity(2));
    let drops = Drops::default();
    let (handler, log) = writer(&pool);
    for number in [1, 2] {
        handler.try_invoke(Box::new((number, drops.issue()))).unwrap();
    }
    let argument = Box::new((3, drops.issue()));
    let address = &raw const *argument;
    let rejected = refused(handler.try_invoke(argument), RejectReason::Full);
    let argument = rejected.into_task();
    assert_eq!((&raw const *argument, argument.0, drops.count()), (address, 3, 0));
    assert_eq!((pool.stats().rejected, pool.queued_count()), (1, 2));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    handler.try_invoke(argument).unwrap();
    let numbers: Vec<_> = written(&pool, &log).iter().map(|argument| argument.0).collect();
    assert_eq!(numbers, [1, 2, 3]);
}
