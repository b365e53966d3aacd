use std::{iter, mem};

use super::{Local, Queue};
use crate::queue::BLOCK_SLOTS;
use crate::queue::pacing::MAX_INTERVAL;
use crate::queue::ring::Steal;
use crate::queue::turn::Turn;

fn fill(local: &Local<u32>, queue: &Queue<u32>, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        assert!(local.push(queue, number));
    }
}

/// Takes an item as a worker does, but checks no stalled worker.
fn request(local: &Local<u32>, queue: &Queue<u32>) -> Option<u32> {
    let _is_check_due = local.begin_request(0);
    local.pop(queue)
}

#[test]
fn only_a_stalled_worker_is_stolen_from_by_the_check() {
    let queue = Queue::new();
    let (mine, other) = (Local::open(&queue), Local::open(&queue));
    fill(&other, &queue, 0..10);
    assert_eq!(mine.steal_from_stalled(&queue), None, "first observed now");
    for number in 0..3 {
        assert_eq!(request(&other, &queue), Some(number));
        assert_eq!(mine.steal_from_stalled(&queue), None, "it has made a request since");
    }
    assert_eq!(mine.steal_from_stalled(&queue), Some(3));
    // The check took half of the seven, and returned one of them.
    assert!(iter::from_fn(|| mine.pop(&queue)).eq(4..7));
    assert_eq!(mine.steal_from_stalled(&queue), Some(7), "it is still stalled");
}

#[test]
fn stalled_checks_reach_every_other_worker() {
    let queue = Queue::new();
    let locals: [_; 20] = std::array::from_fn(|_| Local::open(&queue));
    let (mine, busy, stalled) = (&locals[0], &locals[1], &locals[19]);
    fill(stalled, &queue, [1]);
    // The first one that is looked at always has a task and makes no requests.
    let found = (0..10).any(|_| {
        fill(busy, &queue, [0]);
        mine.steal_from_stalled(&queue) == Some(1)
    });
    assert!(found);
}

#[test]
fn a_lone_worker_is_not_stolen_from() {
    let queue = Queue::new();
    let mine = Local::open(&queue);
    fill(&mine, &queue, [1]);
    for _ in 0..3 {
        assert_eq!(mine.steal_from_stalled(&queue), None);
    }
}

#[test]
fn an_overflow_goes_to_the_injector() {
    let queue = Queue::new();
    let local = Local::open(&queue);
    fill(&local, &queue, [0; 64]);
    assert_eq!(queue.len(), 64, "it is full");
    // The ring does not grow during a steal.
    let stolen = local.node.new.steal(2, |_| assert!(!local.push(&queue, 1)));
    assert_eq!(stolen, Steal::Success(0));
    assert_eq!(queue.new.receiver.len(), 1);
    assert!(iter::from_fn(|| local.rings.new.pop()).eq([0; 62]));
    assert!(local.take_needs_notify(), "a task is in the injector");
    assert!(!local.take_needs_notify(), "the flag is cleared");
    assert_eq!(local.pop(&queue), Some(1));
    assert!(local.push(&queue, 2));
}

/// How many local queues a walk visits.
fn visited(queue: &Queue<u32>) -> usize {
    queue.nodes().count()
}

/// How many slots wait for a new worker.
fn free_slots(queue: &Queue<u32>) -> usize {
    queue.locals.lock().free.len()
}

#[test]
fn a_walk_visits_only_queues_with_items_since_their_owners_rested() {
    let queue = Queue::new();
    let locals: Vec<_> = (0..3 * BLOCK_SLOTS).map(|_| Local::open(&queue)).collect();
    assert_eq!((visited(&queue), queue.blocks().count()), (0, 0));
    for (number, local) in locals.iter().enumerate() {
        fill(local, &queue, [1, 2]);
        assert_eq!(local.pop(&queue), Some(1));
        assert_eq!(queue.blocks().count(), number / BLOCK_SLOTS + 1);
    }
    assert_eq!(visited(&queue), 3 * BLOCK_SLOTS);
    for (rested, local) in locals.iter().enumerate() {
        // One above the limit rests with items.
        local.rest();
        assert_eq!(visited(&queue), 3 * BLOCK_SLOTS - rested);
        assert_eq!(local.pop(&queue), Some(2));
        local.rest();
    }
    assert_eq!(visited(&queue), 0);
    let (low, high) = (&locals[5], &locals[2 * BLOCK_SLOTS - 1]);
    fill(high, &queue, [1]);
    assert_eq!(low.steal(&queue), Some(1), "in another block");
    fill(low, &queue, [2]);
    assert_eq!(high.steal(&queue), Some(2));
    fill(high, &queue, [3, 4]);
    assert_eq!((queue.is_empty(), queue.len(), queue.pop()), (false, 2, Some(3)));
    high.rest();
    assert_eq!(queue.pop(), Some(4));
}

#[test]
fn new_workers_take_the_lowest_free_slots_and_start_with_an_empty_queue() {
    let queue = Queue::new();
    let mut locals: Vec<_> = (0..3 * BLOCK_SLOTS).map(|_| Local::open(&queue)).collect();
    let high = locals.remove(2 * BLOCK_SLOTS - 1);
    for local in locals {
        fill(&local, &queue, [1]);
        assert_eq!(local.pop(&queue), Some(1));
        local.close(&queue);
    }
    assert_eq!((visited(&queue), free_slots(&queue)), (0, 3 * BLOCK_SLOTS - 1));
    let new: [_; 5] = std::array::from_fn(|_| Local::open(&queue));
    assert_eq!(new.each_ref().map(|local| local.node.slot), [0, 1, 2, 3, 4]);
    fill(&new[4], &queue, 0..100);
    assert_eq!(high.steal(&queue), Some(0));
    new.into_iter().chain([high]).for_each(|local| local.close(&queue));
    assert_eq!(iter::from_fn(|| queue.pop()).count(), 99, "what they held is still found");
}

#[test]
fn a_queue_that_is_closed_with_items_is_inherited_or_freed_later() {
    let queue = Queue::new();
    let [first, second, third] = [(); 3].map(|()| Local::open(&queue));
    fill(&first, &queue, [1, 2]);
    first.close(&queue);
    assert_eq!((visited(&queue), queue.len(), free_slots(&queue)), (1, 2, 0));
    let heir = Local::open(&queue);
    assert_eq!(heir.node.slot, 0);
    assert_eq!(heir.pop(&queue), Some(1));
    heir.close(&queue);
    assert_eq!(second.steal(&queue), Some(2));
    assert_eq!((visited(&queue), free_slots(&queue)), (1, 0), "empty now, and not closed again");
    third.close(&queue);
    assert_eq!(
        (visited(&queue), free_slots(&queue)),
        (0, 2),
        "the next worker that leaves frees both"
    );
}

#[test]
fn an_inherited_queue_is_visited_until_its_heir_rests() {
    let queue = Queue::new();
    let first = Local::open(&queue);
    fill(&first, &queue, [1]);
    first.close(&queue);
    let heir = Local::open(&queue);
    assert_eq!((heir.pop(&queue), visited(&queue)), (Some(1), 1));
    heir.rest();
    assert_eq!(visited(&queue), 0);
    fill(&heir, &queue, [2]);
    assert_eq!(queue.pop(), Some(2));
    heir.rest();
    assert_eq!(visited(&queue), 0);
}

#[test]
fn a_queue_that_is_closed_during_a_steal_keeps_its_slot() {
    let queue = Queue::new();
    let [mine, other] = [(); 2].map(|()| Local::open(&queue));
    fill(&mine, &queue, [1, 2, 3]);
    let stealer = mine.rings.new.stealer();
    let mut mine = Some(mine);
    // The ring is empty, and the stealer still reads from its buffer.
    let close = |item| {
        let mine = mine.take().unwrap();
        assert_eq!((item, mine.pop(&queue)), (2, Some(3)));
        mine.close(&queue);
    };
    assert_eq!(stealer.steal(2, close), Steal::Success(1));
    assert_eq!((visited(&queue), free_slots(&queue)), (1, 0));
    other.close(&queue);
    assert_eq!((visited(&queue), free_slots(&queue)), (0, 2));
}

#[test]
fn the_turn_of_the_injector_goes_on_for_a_moment() {
    let queue = Queue::new();
    let local = Local::open(&queue);
    let mut before = None;
    // Not if this thread loses its CPU in each turn.
    let are_two_in_a_row = (0..100 * MAX_INTERVAL).any(|_| {
        queue.push(0);
        fill(&local, &queue, [1]);
        let item = request(&local, &queue);
        mem::replace(&mut before, item) == Some(0) && item == Some(0)
    });
    assert!(are_two_in_a_row);
}

#[test]
fn the_tasks_of_a_turn_bring_the_next_one_no_nearer() {
    // Not if this thread loses its CPU in the turn.
    let was_seen = (0..1_000).any(|_| {
        let queue = Queue::new();
        let local = Local::open(&queue);
        fill(&local, &queue, [1]);
        local.injector_turn.begin();
        let left = local.pacing.left();
        let requests = (0..3).map(|_| {
            queue.push(0);
            request(&local, &queue)
        });
        let is_one_turn = requests.eq([Some(0); 3]);
        // The first one counts.
        assert!(!is_one_turn || local.pacing.left() == left - 1);
        // In a turn after a yield none is a request, so none is taken back.
        let (yielded, left) = (Turn::default(), local.pacing.left());
        yielded.begin();
        queue.push(0);
        assert_eq!(local.pop_after_yield(&queue, &yielded), Some(0));
        assert_eq!(local.pacing.left(), left);
        is_one_turn
    });
    assert!(was_seen);
}

#[test]
fn many_local_queues_are_dropped_on_a_small_stack() {
    let queue = Queue::<u32>::new();
    let locals: Vec<_> = (0..500 * BLOCK_SLOTS).map(|_| Local::open(&queue)).collect();
    locals.into_iter().for_each(|local| local.close(&queue));
    let thread = std::thread::Builder::new().stack_size(64 << 10);
    thread.spawn(move || drop(queue)).unwrap().join().unwrap();
}

#[cfg(feature = "async")]
mod woken {
    use std::thread;

    use super::*;
    use crate::queue::local::{NEW_INTERVAL, WOKEN_INTERVAL};
    use crate::queue::turn;

    /// As in a pool: there a woken future takes less space than a new task.
    #[test]
    fn a_woken_future_of_another_type_is_found_everywhere() {
        let queue = Queue::<u32, u8>::new();
        let (mine, other) = (Local::open(&queue), Local::open(&queue));
        queue.push_woken(0);
        assert!((1..=5).all(|number| other.push_woken(&queue, number)));
        assert_eq!(queue.pop(), Some(0), "in the injector");
        assert_eq!(queue.pop(), Some(1), "in a local queue");
        assert_eq!(mine.steal(&queue), Some(2));
        assert_eq!(mine.pop(&queue), Some(3), "stolen with it");
        assert!(other.share_woken(&queue, 1));
        assert_eq!(mine.pop(&queue), Some(4), "shared");
        assert_eq!(other.pop(&queue), Some(5));
        assert!(queue.is_empty());
    }

    #[test]
    fn woken_futures_come_before_new_tasks() {
        let queue = Queue::new();
        let local = Local::open(&queue);
        queue.push(1);
        fill(&local, &queue, [2]);
        queue.push_woken(3);
        assert!(local.push_woken(&queue, 4));
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
            queue.push(0);
            fill(&local, &queue, [1]);
            queue.push_woken(2);
            assert!(local.push_woken(&queue, 3));
            counts[request(&local, &queue).unwrap() as usize] += 1;
        }
        let [of_injector, of_local, of_woken, of_local_woken] = counts;
        assert!(of_injector >= 7, "{counts:?}");
        assert!(of_injector + of_local >= 8 * MAX_INTERVAL / NEW_INTERVAL, "{counts:?}");
        assert!(of_woken >= 8 * MAX_INTERVAL / WOKEN_INTERVAL - 8, "{counts:?}");
        assert!(of_local_woken >= 4 * MAX_INTERVAL, "{counts:?}");
    }

    #[test]
    fn a_future_that_yields_keeps_no_worker_from_those_of_the_injector() {
        // Whether its polls begin with even or odd requests. Each submits a new task.
        for offset in 0..2 {
            let queue = Queue::new();
            let local = Local::open(&queue);
            let mut of_injector = 0;
            let (yielded, mut has_yielded) = (Turn::default(), false);
            for _ in 0..offset {
                let _is_check_due = local.begin_request(0);
            }
            for _ in 0..8 * NEW_INTERVAL {
                queue.push_woken(1);
                assert!(local.push_woken(&queue, 2));
                if has_yielded {
                    queue.push(0);
                    yielded.begin();
                }
                let new = local.pop_after_yield(&queue, &yielded);
                let item = new.or_else(|| request(&local, &queue));
                has_yielded = item == Some(2);
                of_injector += usize::from(item == Some(1));
            }
            assert!(of_injector >= 7, "{of_injector} with offset {offset}");
        }
    }

    /// A worker that polls for 5 us and then runs new tasks for 10 us must not take its polls for long ones. But it must learn of
    /// new tasks that are long.
    #[test]
    fn the_time_of_a_turn_is_left_out_but_not_that_of_a_long_task() {
        let queue = Queue::<u32>::new();
        let local = Local::open(&queue);
        while local.pacing.since().is_none() {
            let _is_check_due = local.begin_request(0);
        }
        let before = local.pacing.since().unwrap();
        let yielded = Turn::default();
        for tasks in 1..=3 {
            queue.push(0);
            yielded.begin();
            assert_eq!(local.pop_after_yield(&queue, &yielded), Some(0));
            // Stands for a long task: its time is the subject.
            thread::sleep(2 * turn::LIMIT);
            assert_eq!(local.pop_after_yield(&queue, &yielded), None);
            assert_eq!(local.pacing.since().unwrap() - before, tasks * turn::LIMIT);
        }
    }

    #[test]
    fn without_local_queues_new_tasks_come_first_at_intervals() {
        let queue = Queue::new();
        let mut new = 0;
        for _ in 0..4 * NEW_INTERVAL {
            queue.push(0);
            queue.push_woken(1);
            new += usize::from(queue.pop() == Some(0));
        }
        assert_eq!(new, 4);
    }

    #[test]
    fn a_woken_future_goes_to_its_injector_and_needs_a_notification() {
        let queue = Queue::new();
        let (mine, other) = (Local::open(&queue), Local::open(&queue));
        assert!(!mine.take_needs_notify());
        mine.inject_woken(&queue, 1);
        assert!(queue.may_have_woken() && mine.take_needs_notify());
        assert_eq!(other.pop(&queue), Some(1));
    }

    #[test]
    fn shared_futures_are_found_by_workers_that_do_not_steal() {
        let queue = Queue::new();
        let (mine, other) = (Local::open(&queue), Local::open(&queue));
        assert!(!mine.share_woken(&queue, 2), "there are none");
        assert!((0..3).all(|number| mine.push_woken(&queue, number)));
        assert!(mine.share_woken(&queue, 2));
        assert!(mine.take_needs_notify());
        assert!(iter::from_fn(|| request(&other, &queue)).eq([0, 1]));
        assert_eq!(other.steal(&queue), Some(2));
    }
}
