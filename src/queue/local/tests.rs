use std::iter;
use std::sync::{Arc, Barrier};
use std::thread;

use super::{Local, Queue};
use crate::queue::Kind::{New, Woken};
use crate::queue::ring::Steal;

/// Some local queues.
const MANY: usize = 64;

fn fill(local: &Local<u32>, queue: &Queue<u32>, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        assert!(local.push_with(queue, New, || number));
    }
}

/// Takes an item as a worker does that steals from no other one.
fn request(local: &Local<u32>, queue: &Queue<u32>) -> Option<u32> {
    if local.begin_request(0) {
        assert_eq!(local.check(queue), None);
    }
    pop(local, queue)
}

fn pop(local: &Local<u32>, queue: &Queue<u32>) -> Option<u32> {
    local.pop(queue, false)
}

#[test]
fn only_a_stalled_worker_is_stolen_from_by_the_check() {
    let queue = Queue::new();
    let (mine, other) = (Local::open(&queue), Local::open(&queue));
    fill(&other, &queue, 0..10);
    assert_eq!(mine.check(&queue), None, "first observed now");
    for number in 0..3 {
        assert_eq!(request(&other, &queue), Some(number));
        assert_eq!(mine.check(&queue), None, "it has made a request since");
    }
    assert_eq!(mine.check(&queue), Some(3));
    // The check took half of the seven, and returned one of them.
    assert!(iter::from_fn(|| pop(&mine, &queue)).eq(4..7));
    assert_eq!(mine.check(&queue), Some(7), "it is still stalled");
}

#[test]
fn stalled_checks_reach_every_other_worker() {
    let queue = Queue::new();
    let locals: [_; 20] = std::array::from_fn(|_| Local::open(&queue));
    let (mine, busy, stalled) = (&locals[0], &locals[1], &locals[19]);
    // The first one that is looked at always has a task and makes no requests.
    fill(busy, &queue, [0]);
    fill(stalled, &queue, [1]);
    let found = (0..10).any(|_| {
        fill(busy, &queue, [0]);
        mine.check(&queue) == Some(1)
    });
    assert!(found);
}

#[test]
fn a_lone_worker_is_not_stolen_from() {
    let queue = Queue::new();
    let mine = Local::open(&queue);
    fill(&mine, &queue, [1]);
    for _ in 0..3 {
        assert_eq!(mine.check(&queue), None);
    }
}

#[test]
fn an_overflow_goes_to_the_injector() {
    let queue = Queue::new();
    let local = Local::open(&queue);
    fill(&local, &queue, [0; 64]);
    assert_eq!(queue.len(), 64, "it is full");
    // The ring does not grow during a steal.
    let stolen = local.node.stealers[New as usize]
        .steal(2, |_| assert!(!local.push_with(&queue, New, || 1)));
    assert_eq!(stolen, Steal::Success(0));
    assert_eq!(queue.injectors[New as usize].receiver.len(), 1);
    assert!(iter::from_fn(|| local.rings[New as usize].pop()).eq([0; 62]));
    assert!(local.leaves_items(&queue), "a task is in the injector");
    assert_eq!(pop(&local, &queue), Some(1));
    assert!(!local.leaves_items(&queue));
    assert!(local.push_with(&queue, New, || 2));
}

/// How many local queues a walk visits.
fn visited(queue: &Queue<u32>) -> usize {
    queue.nodes().count()
}

/// How many local queues wait for a new worker.
fn free(queue: &Queue<u32>) -> usize {
    queue.free.lock().len()
}

#[test]
fn a_walk_visits_the_queues_of_workers_that_have_submitted() {
    let queue = Queue::new();
    let locals: Vec<_> = (0..3 * MANY).map(|_| Local::open(&queue)).collect();
    assert_eq!(visited(&queue), 0);
    for (number, local) in locals.iter().enumerate() {
        fill(local, &queue, [1, 2]);
        assert_eq!(visited(&queue), number + 1);
        assert_eq!(pop(local, &queue), Some(1));
        // One above the limit rests with items.
        local.rest();
        assert!(!queue.is_empty());
        assert_eq!(pop(local, &queue), Some(2));
        assert!(queue.is_empty());
    }
    let (low, high) = (&locals[5], &locals[2 * MANY - 1]);
    fill(high, &queue, [1]);
    assert_eq!(low.steal(&queue), Some(1), "from far behind");
    fill(low, &queue, [2]);
    assert_eq!(high.steal(&queue), Some(2));
    fill(high, &queue, [3, 4]);
    assert_eq!((queue.is_empty(), queue.len(), queue.pop()), (false, 2, Some(3)));
    high.rest();
    assert_eq!(queue.pop(), Some(4));
    assert_eq!(visited(&queue), 3 * MANY);
}

#[test]
fn queues_are_listed_at_the_same_time() {
    let (queue, begin) = (Queue::new(), Barrier::new(4));
    thread::scope(|scope| {
        for number in 0..4 {
            let (queue, begin) = (&queue, &begin);
            scope.spawn(move || {
                let locals: Vec<_> = (0..MANY).map(|_| Local::open(queue)).collect();
                begin.wait();
                locals.iter().for_each(|local| fill(local, queue, [number]));
            });
        }
    });
    assert_eq!((visited(&queue), queue.len()), (4 * MANY, 4 * MANY));
}

#[test]
fn a_long_list_is_dropped_on_a_small_stack() {
    let small = thread::Builder::new().stack_size(64 << 10);
    let dropped = small.spawn(|| {
        let queue = Queue::new();
        let locals = Vec::from_iter((0..5000).map(|_| Local::open(&queue)));
        locals.iter().for_each(|local| assert!(local.push_with(&queue, New, || 1)));
        locals.into_iter().for_each(|local| _ = local.close(&queue));
    });
    dropped.unwrap().join().unwrap();
}

#[test]
fn a_worker_that_leaves_frees_a_buffer_that_a_stealer_still_reads() {
    for _ in 0..50 {
        let queue = Queue::new();
        let local = Local::open(&queue);
        fill(&local, &queue, 0..4);
        let (stealer, begin) = (Arc::clone(&local.node), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let stolen = stealer.stealers[New as usize].steal(2, |_| {
                    begin.wait();
                    // The worker moves what is left, then frees the buffer.
                    while queue.injectors[New as usize].receiver.len() < 2 {
                        thread::yield_now();
                    }
                });
                assert_eq!(stolen, Steal::Success(0));
            });
            begin.wait();
            assert!(local.close(&queue), "two items are left");
        });
        assert_eq!((visited(&queue), free(&queue)), (1, 1));
        let next = Local::open(&queue);
        assert!(!next.rings[New as usize].has_slots());
        fill(&next, &queue, 4..100);
        assert!(iter::from_fn(|| queue.pop()).eq(2..100));
    }
}

#[test]
fn new_workers_take_free_queues_and_start_with_an_empty_one() {
    let queue = Queue::new();
    let mut locals: Vec<_> = (0..3 * MANY).map(|_| Local::open(&queue)).collect();
    let high = locals.remove(2 * MANY - 1);
    for local in locals {
        fill(&local, &queue, [1]);
        assert_eq!(pop(&local, &queue), Some(1));
        assert!(!local.close(&queue));
    }
    assert_eq!((visited(&queue), free(&queue)), (3 * MANY - 1, 3 * MANY - 1));
    let new: [_; 5] = std::array::from_fn(|_| Local::open(&queue));
    assert_eq!(free(&queue), 3 * MANY - 6);
    fill(&new[4], &queue, 0..100);
    assert_eq!(high.steal(&queue), Some(0));
    assert!(new.into_iter().chain([high]).any(|local| local.close(&queue)));
    assert_eq!(iter::from_fn(|| queue.pop()).count(), 99, "what they held is still found");
    assert_eq!(visited(&queue), 3 * MANY);
}

#[test]
fn what_a_closed_queue_holds_goes_to_the_injectors() {
    let queue = Queue::new();
    let [first, second] = [(); 2].map(|()| Local::open(&queue));
    fill(&first, &queue, [1, 2]);
    assert!(first.close(&queue), "others must be notified");
    assert_eq!((queue.injectors[New as usize].receiver.len(), free(&queue)), (2, 1));
    let next = Local::open(&queue);
    assert_eq!((free(&queue), pop(&next, &queue)), (0, Some(1)));
    assert_eq!(pop(&second, &queue), Some(2));
    assert!(!second.close(&queue), "it is empty");
}

#[test]
fn a_check_puts_one_task_of_the_injector_first() {
    let queue = Queue::new();
    let local = Local::open(&queue);
    fill(&local, &queue, [1, 2]);
    (3..6).for_each(|number| queue.push(New, number));
    assert_eq!((local.check(&queue), pop(&local, &queue)), (None, Some(3)));
    assert!(iter::from_fn(|| pop(&local, &queue)).eq([1, 2, 4, 5]));
}

mod woken {
    use super::*;
    use crate::queue::local::TURN_INTERVAL;
    use crate::queue::pacing::MAX_INTERVAL;

    #[test]
    fn a_woken_future_is_found_everywhere() {
        let queue = Queue::new();
        let (mine, other) = (Local::open(&queue), Local::open(&queue));
        queue.push(Woken, 0);
        assert!((1..=5).all(|number| other.push_with(&queue, Woken, || number)));
        assert_eq!(queue.pop(), Some(0), "in the injector");
        assert_eq!(queue.pop(), Some(1), "in a local queue");
        assert_eq!(mine.steal(&queue), Some(2));
        assert_eq!(pop(&mine, &queue), Some(3), "stolen with it");
        assert_eq!(pop(&other, &queue), Some(4));
        assert!(other.share_woken(&queue));
        assert_eq!(pop(&mine, &queue), Some(5), "shared");
        assert!(queue.is_empty());
    }

    #[test]
    fn woken_futures_come_before_new_tasks() {
        let queue = Queue::new();
        let local = Local::open(&queue);
        queue.push(New, 1);
        fill(&local, &queue, [2]);
        queue.push(Woken, 3);
        assert!(local.push_with(&queue, Woken, || 4));
        assert_eq!(queue.len(), 4);
        assert!(iter::from_fn(|| request(&local, &queue)).eq([4, 3, 2, 1]));
        assert!(queue.is_empty());
    }

    #[test]
    fn neither_woken_futures_nor_new_tasks_starve_the_others() {
        let queue = Queue::new();
        let local = Local::open(&queue);
        let mut counts = [0; 4];
        for _ in 0..8 * MAX_INTERVAL {
            // All four queues hold something, always.
            queue.push(New, 0);
            fill(&local, &queue, [1]);
            queue.push(Woken, 2);
            assert!(local.push_with(&queue, Woken, || 3));
            counts[request(&local, &queue).unwrap() as usize] += 1;
        }
        let [of_injector, of_local, of_woken, of_local_woken] = counts;
        assert!(of_injector >= 7, "{counts:?}");
        assert!(of_injector + of_local >= 8 * MAX_INTERVAL / TURN_INTERVAL, "{counts:?}");
        assert!(of_woken >= 8 * MAX_INTERVAL / TURN_INTERVAL, "{counts:?}");
        assert!(of_local_woken >= 4 * MAX_INTERVAL, "{counts:?}");
    }

    #[test]
    fn a_future_that_yields_keeps_no_worker_from_those_of_the_injector() {
        // Whether its polls begin with even or odd requests. Each submits a new task.
        for offset in 0..2 {
            let queue = Queue::new();
            let local = Local::open(&queue);
            let (mut of_injector, mut has_yielded) = (0, false);
            for _ in 0..offset {
                let _is_check_due = local.begin_request(0);
            }
            for _ in 0..8 * TURN_INTERVAL {
                queue.push(Woken, 1);
                assert!(local.push_with(&queue, Woken, || 2));
                if has_yielded {
                    queue.push(New, 0);
                }
                let _is_check_due = local.begin_request(0);
                let item = local.pop(&queue, has_yielded);
                has_yielded = item == Some(2);
                of_injector += usize::from(item == Some(1));
            }
            assert!(of_injector >= 7, "{of_injector} with offset {offset}");
        }
    }

    #[test]
    fn a_new_task_of_either_queue_comes_first_after_a_yield() {
        let queue = Queue::<u32>::new();
        let local = Local::open(&queue);
        (0..3).for_each(|_| assert!(local.push_with(&queue, Woken, || 2)));
        queue.push(New, 0);
        fill(&local, &queue, [1]);
        let _is_check_due = local.begin_request(0);
        let pop = |has_yielded| local.pop(&queue, has_yielded);
        assert_eq!([true, true, true, false].map(pop), [Some(1), Some(0), Some(2), Some(2)]);
    }

    #[test]
    fn a_woken_future_of_the_injector_is_left_behind() {
        let queue = Queue::<u32>::new();
        let (mine, other) = (Local::open(&queue), Local::open(&queue));
        assert!(!mine.leaves_items(&queue));
        queue.push(Woken, 1);
        assert!(queue.may_have_woken() && mine.leaves_items(&queue));
        assert_eq!(pop(&other, &queue), Some(1));
    }

    #[test]
    fn shared_futures_are_found_by_workers_that_do_not_steal() {
        let queue = Queue::new();
        let (mine, other) = (Local::open(&queue), Local::open(&queue));
        assert!(!mine.share_woken(&queue), "there are none");
        assert!((0..3).all(|number| mine.push_with(&queue, Woken, || number)));
        assert!(mine.share_woken(&queue));
        assert!(mine.leaves_items(&queue));
        assert!(iter::from_fn(|| request(&other, &queue)).eq(0..3));
    }
}
