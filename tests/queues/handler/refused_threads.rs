//! Calls in a pool whose threads the operating system refuses.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{Drops, LIMIT, refused};
use crate::handler::{heard, pool, writer, written};
use elastipool::RejectReason;

#[test]
fn without_a_thread_try_invoke_hands_the_argument_back() {
    in_a_child("refused_threads::without_a_thread_try_invoke_hands_the_argument_back", || {
        let pool = pool();
        let drops = Drops::default();
        let (handler, log) = writer(&pool);
        let refusal = Refusal::begin();
        let argument = Box::new((7, drops.issue()));
        let address = &raw const *argument;
        let rejected = refused(handler.try_invoke(argument), RejectReason::NoThread);
        let argument = rejected.into_task();
        assert_eq!((&raw const *argument, argument.0, drops.count()), (address, 7, 0));
        assert!(log.lock().unwrap().is_empty());
        let stats = pool.stats();
        assert_eq!((stats.rejected, stats.threads_refused), (1, 1));
        assert_eq!((stats.accepted(), stats.in_flight(), stats.workers), (0, 0, 0));
        assert!(pool.join_timeout(Duration::ZERO), "there is nothing to wait for");
        refusal.end();
        // The next one tries again.
        handler.try_invoke(argument).unwrap();
        assert_eq!(written(&pool, &log).len(), 1);
    });
}

#[test]
fn without_a_thread_invoke_calls_the_function_on_the_caller() {
    in_a_child("refused_threads::without_a_thread_invoke_calls_the_function_on_the_caller", || {
        let (builder, heard) = heard();
        let pool = builder.build();
        let (sender, receiver) = mpsc::channel();
        let handler = pool.handler(move |number: u8| {
            assert!(number > 0, "contained");
            sender.send((number, thread::current().id())).unwrap();
        });
        let here = thread::current().id();
        let refusal = Refusal::begin();
        handler.invoke(7);
        assert_eq!(receiver.try_recv(), Ok((7, here)), "before `invoke` returns");
        handler.invoke(0);
        assert_eq!(heard.load(Ordering::SeqCst), 1, "here, too, it is contained");
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.panicked, stats.rejected), (1, 1, 0));
        assert_eq!((stats.in_flight(), stats.workers, stats.threads_refused), (0, 0, 2));
        refusal.end();
        handler.invoke(8);
        let (number, there) = receiver.recv_timeout(LIMIT).unwrap();
        assert_eq!((number, there == here), (8, false));
    });
}
