use std::iter;

use super::{Local, Queue};
use crate::queue::ring::Steal;

fn fill(local: &Local<u32>, queue: &Queue<u32>, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        assert!(local.push(queue, || number));
    }
}

#[test]
fn only_a_stalled_worker_is_stolen_from_by_the_check() {
    let queue = Queue::new();
    let (mine, other) = (Local::open(&queue), Local::open(&queue));
    fill(&other, &queue, 0..10);
    assert_eq!(mine.steal_from_stalled(&queue), None, "first observed now");
    for number in 0..3 {
        assert_eq!(other.pop(&queue), Some(number));
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
    let (busy, mine, stalled) = (&locals[0], &locals[1], &locals[19]);
    fill(stalled, &queue, [1]);
    // The first one always has a task and makes no requests.
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
    let stolen = local.node.stealer.steal(2, |_| assert!(!local.push(&queue, || 1)));
    assert_eq!(stolen, Steal::Success(0));
    assert_eq!(queue.receiver.len(), 1);
    assert!(iter::from_fn(|| local.ring.pop()).eq([0; 62]));
    assert!(local.take_needs_notify(), "a task is in the injector");
    assert!(!local.take_needs_notify(), "the flag is cleared");
    assert_eq!(local.pop(&queue), Some(1));
    assert!(local.push(&queue, || 2));
}
