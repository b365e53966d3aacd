//! The ring buffer of a local queue.

use super::By::{Model, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "ring: the buffer of a worker that has left is kept", "src/queue/ring.rs",
        "self.is_empty() && (self.capacity.get() == 0 || self.resize(0))"
        => "self.is_empty()", Unit("ring::tests::a_new_or_released");
    "ring: a buffer with items is freed", "src/queue/ring.rs",
        "self.is_empty() && (self.capacity.get() == 0 || self.resize(0))"
        => "self.capacity.get() == 0 || self.resize(0)", Unit("ring::tests::a_new_or_released");
    "ring: a push does not release", "src/queue/ring.rs",
        "self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Release);"
        => "self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Relaxed);", Model("ring::growth_versus");
    "ring: a push moves the tail before it writes the slot", "src/queue/ring.rs",
        "        // SAFETY: only the owner replaces the slots. This one is free"
        => "        self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Release);\n        // SAFETY: only the owner replaces the slots. This one is free", Model("ring::growth_versus");
    "ring: wanted may push", "src/queue/ring.rs",
        "        debug_assert!(!self.is_examining.get(), \"no push while an item is examined\");\n"
        => "", Unit("ring::tests::wanted_may_not_push");
    "ring: a length does not acquire what the owner released", "src/queue/ring.rs",
        "        let head = self.head.load(Ordering::Acquire);\n        between"
        => "        let head = self.head.load(Ordering::Relaxed);\n        between", Model("ring::never_empty");
    "ring: a length does not acquire what a stealer released", "src/queue/ring.rs",
        "        let head = self.head.load(Ordering::Acquire);\n        between"
        => "        let head = self.head.load(Ordering::Relaxed);\n        between", Model("ring::a_thread_that_finds_nothing");
    "ring: a length loads the tail first", "src/queue/ring.rs",
        "        let head = self.head.load(Ordering::Acquire);\n        between(head, self.tail.load(Ordering::Relaxed))"
        => "        let tail = self.tail.load(Ordering::Acquire);\n        let head = self.head.load(Ordering::Acquire);\n        tail.wrapping_sub(head & !LOCKED) / ONE", Model("ring::never_empty");
    "ring: the owner does not acquire that slots were read", "src/queue/ring.rs",
        "        let head = self.shared.head.load(Ordering::Acquire);\n        if head & LOCKED == 0 {"
        => "        let head = self.shared.head.load(Ordering::Relaxed);\n        if head & LOCKED == 0 {", Model("ring::a_slot_again");
    "ring: slots count as free while a stealer holds the bit", "src/queue/ring.rs",
        "        if head & LOCKED == 0 {\n            self.free.set(head);\n        }"
        => "        self.free.set(head & !LOCKED);", Model("ring::a_slot_again");
    "ring: the owner never looks for free slots", "src/queue/ring.rs",
        "        if head & LOCKED == 0 {\n            self.free.set(head);\n        }"
        => "        let _ = head;", Unit("ring::tests::slots_of_taken");
    "ring: a pop does not release", "src/queue/ring.rs",
        "                next,\n                Ordering::Release,"
        => "                next,\n                Ordering::Relaxed,", Model("ring::never_empty");
    "ring: a pop stores the head without a comparison", "src/queue/ring.rs",
        "            let taken = self.shared.head.compare_exchange_weak(\n                head,\n                next,\n                Ordering::Release,\n                Ordering::Relaxed,\n            );\n"
        => "            let taken = Ok::<usize, usize>(head);\n            self.shared.head.store(next, Ordering::Release);\n", Model("ring::add_and_take");
    "ring: a pop clears the bit of a stealer", "src/queue/ring.rs",
        "                head,\n                next,\n                Ordering::Release,"
        => "                head,\n                next & !LOCKED,\n                Ordering::Release,", Model("ring::a_slot_again");
    "ring: a pop takes the bit for an item", "src/queue/ring.rs",
        "while head & !LOCKED != tail {"
        => "while head != tail {", Model("ring::add_and_take");
    "ring: the lock bit does not acquire: slots", "src/queue/ring.rs",
        "                head | LOCKED,\n                Ordering::Acquire,"
        => "                head | LOCKED,\n                Ordering::Relaxed,", Model("ring::growth_versus");
    "ring: the slots are replaced while a stealer holds the bit", "src/queue/ring.rs",
        "        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };\n"
        => "        let head = self.shared.head.fetch_or(LOCKED, Ordering::Acquire) & !LOCKED;\n        let _ = seen;\n        let lock_bit = LockBit(&self.shared.head);\n", Model("ring::growth_versus");
    "ring: the slots are replaced without the bit", "src/queue/ring.rs",
        "        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };\n"
        => "        if seen & LOCKED != 0 {\n            return false;\n        }\n        let (head, lock_bit) = (seen, LockBit(&self.shared.head));\n", Model("ring::growth_versus");
    "ring: new slots are not released", "src/queue/ring.rs",
        "        drop(lock_bit);\n        true"
        => "        std::mem::forget(lock_bit);\n        self.shared.head.fetch_and(!LOCKED, Ordering::Relaxed);\n        true", Model("ring::growth_versus");
    "ring: a resize does not clear the bit", "src/queue/ring.rs",
        "        drop(lock_bit);\n        true"
        => "        std::mem::forget(lock_bit);\n        true", Unit("ring::tests::growth_keeps");
    "ring: a resize keeps the old position of free slots", "src/queue/ring.rs",
        "        self.free.set(head);\n        self.capacity"
        => "        self.capacity", Model("ring::shrink_versus");
    "ring: shrinks to fewer slots than items", "src/queue/ring.rs",
        "(4 * len).next_power_of_two().max(INITIAL_CAPACITY)"
        => "INITIAL_CAPACITY", Unit("ring::tests::memory_is_freed");
    "ring: never shrinks", "src/queue/ring.rs",
        "            self.resize((4 * len).next_power_of_two().max(INITIAL_CAPACITY));\n"
        => "", Unit("ring::tests::memory_is_freed");
    "ring: a stealer's first load of the head does not acquire what the owner released", "src/queue/ring.rs",
        "        let seen = self.head.load(Ordering::Acquire);\n"
        => "        let seen = self.head.load(Ordering::Relaxed);\n", Model("ring::never_nothing");
    "ring: a stealer's first load of the head does not acquire what another stealer released", "src/queue/ring.rs",
        "        let seen = self.head.load(Ordering::Acquire);\n"
        => "        let seen = self.head.load(Ordering::Relaxed);\n", Model("ring::a_thread_that_can_steal");
    "ring: a stealer does not acquire the items", "src/queue/ring.rs",
        "            let tail = self.tail.load(Ordering::Acquire);\n            let count"
        => "            let tail = self.tail.load(Ordering::Relaxed);\n            let count", Model("ring::growth_versus");
    "ring: a stealer loads the tail first", "src/queue/ring.rs",
        "        let seen = self.head.load(Ordering::Acquire);\n        if limit == 0 || between(seen, self.tail.load(Ordering::Relaxed)) == 0 {"
        => "        let tail = self.tail.load(Ordering::Acquire);\n        let seen = self.head.load(Ordering::Acquire);\n        if limit == 0 || tail == seen & !LOCKED {", Model("ring::never_nothing");
    "ring: a stealer ignores its limit", "src/queue/ring.rs",
        "between(head, tail).div_ceil(2).min(limit);"
        => "between(head, tail).div_ceil(2).min(limit.max(usize::MAX));", Unit("ring::tests::half_is_stolen");
    "ring: a stealer takes all", "src/queue/ring.rs",
        "between(head, tail).div_ceil(2).min(limit);"
        => "between(head, tail).min(limit);", Unit("ring::tests::half_is_stolen");
    "ring: two stealers at once", "src/queue/ring.rs",
        "        let Some((mut head, lock_bit)) = self.lock(seen) else { return Steal::Retry };\n"
        => "        let mut head = self.head.fetch_or(LOCKED, Ordering::Acquire) & !LOCKED;\n        let lock_bit = LockBit(&self.head);\n", Model("ring::two_thieves_versus_growth");
    "ring: a stealer clears the bit when it moves the head", "src/queue/ring.rs",
        "                after | LOCKED,"
        => "                after,", Model("ring::a_slot_again");
    "ring: a stealer does not release what it did before", "src/queue/ring.rs",
        "                Ordering::Release,\n                Ordering::Acquire,"
        => "                Ordering::Relaxed,\n                Ordering::Acquire,", Model("ring::a_thread_that_finds_nothing");
    "ring: a stealer takes items although the head has changed", "src/queue/ring.rs",
        "                Err(now) => head = now & !LOCKED,"
        => "                Err(_) => break count,", Model("ring::add_and_take");
    "ring: a stealer does not release its reads", "src/queue/ring.rs",
        "        self.0.fetch_and(!LOCKED, Ordering::Release);"
        => "        self.0.fetch_and(!LOCKED, Ordering::Relaxed);", Model("ring::a_slot_again");
    "ring: a stealer clears the bit before it reads", "src/queue/ring.rs",
        "        let mut position = head;\n        let mut next"
        => "        drop(lock_bit);\n        let lock_bit = ();\n        let mut position = head;\n        let mut next", Model("ring::a_slot_again");
    "ring: the lock bit does not acquire: the tail", "src/queue/ring.rs",
        "                head | LOCKED,\n                Ordering::Acquire,"
        => "                head | LOCKED,\n                Ordering::Relaxed,", Model("ring::take_newest");
    "ring: the lock bit does not acquire: an earlier steal", "src/queue/ring.rs",
        "                head | LOCKED,\n                Ordering::Acquire,"
        => "                head | LOCKED,\n                Ordering::Relaxed,", Model("ring::a_stealer_that_finds_nothing");
    "ring: a stealer counts the items before it has the bit", "src/queue/ring.rs",
        "        let Some((mut head, lock_bit)) = self.lock(seen) else { return Steal::Retry };\n        let count = loop {\n"
        => "        let early = self.tail.load(Ordering::Acquire);\n        let Some((mut head, lock_bit)) = self.lock(seen) else { return Steal::Retry };\n        let count = loop {\n            if head == seen {\n                let count = between(head, early).div_ceil(2).min(limit);\n                let after = head.wrapping_add(count * ONE);\n                if self.head.compare_exchange(head | LOCKED, after | LOCKED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {\n                    break count;\n                }\n            }\n", Model("ring::take_newest");
    "ring: a stealer that counts again does not acquire", "src/queue/ring.rs",
        "                Ordering::Release,\n                Ordering::Acquire,"
        => "                Ordering::Release,\n                Ordering::Relaxed,", Model("ring::never_nothing");
    "ring: the newest is taken without the bit", "src/queue/ring.rs",
        "        let (head, lock_bit) = self.shared.lock(seen).filter(|(head, _)| *head != tail)?;\n        let newest"
        => "        let head = self.shared.head.load(Ordering::Acquire);\n        if head & LOCKED != 0 || head == tail {\n            return None;\n        }\n        let lock_bit = LockBit(&self.shared.head);\n        let newest", Model("ring::take_newest");
    "ring: the newest is examined while a stealer holds the bit", "src/queue/ring.rs",
        "        let (head, lock_bit) = self.shared.lock(seen).filter(|(head, _)| *head != tail)?;\n        let newest"
        => "        let head = self.shared.head.fetch_or(LOCKED, Ordering::Acquire) & !LOCKED;\n        if head == tail {\n            return None;\n        }\n        let lock_bit = LockBit(&self.shared.head);\n        let newest", Unit("ring::tests::no_item_is_examined");
    "ring: the bit stays after an item was examined", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position | LOCKED, Ordering::Release);", Unit("ring::tests::an_unwanted_item");
    "ring: the bit stays after a panic in wanted", "src/queue/ring.rs",
        "        let item = unsafe { self.shared.with_slots(read_if_wanted) };\n"
        => "        mem::forget(lock_bit);\n        let item = unsafe { self.shared.with_slots(read_if_wanted) };\n        let lock_bit = LockBit(&self.shared.head);\n", Unit("ring::tests::a_panic_in_wanted");
    "ring: the owner clears the bit and does not release the tail", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position, Ordering::Relaxed);", Model("ring::take_newest");
    "ring: the owner clears the bit and does not release an earlier steal", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position, Ordering::Relaxed);", Model("ring::a_stealer_that_finds_nothing");
    "ring: the bit is clear before the tail is lower", "src/queue/ring.rs",
        "        if item.is_some() {\n            self.shared.tail.store(newest, Ordering::Relaxed);\n        }\n        lock_bit.clear_at(head);\n"
        => "        lock_bit.clear_at(head);\n        if item.is_some() {\n            self.shared.tail.store(newest, Ordering::Relaxed);\n        }\n", Model("ring::newest_again");
    "ring: the newest is taken, and still counted", "src/queue/ring.rs",
        "        if item.is_some() {\n            self.shared.tail.store(newest, Ordering::Relaxed);\n        }\n        lock_bit.clear_at(head);\n"
        => "        let _ = newest;\n        lock_bit.clear_at(head);\n", Unit("ring::tests::an_unwanted_item");
    "ring: the newest is examined in a ring that has become empty", "src/queue/ring.rs",
        ".filter(|(head, _)| *head != tail)"
        => "", Model("ring::newest_again");
    "ring: wanted may pop", "src/queue/ring.rs",
        "debug_assert!(!self.is_examining.get(), \"the item is borrowed\");"
        => "", Unit("ring::tests::wanted_may_not_pop");
    "ring: an unwanted item is taken", "src/queue/ring.rs",
        "is_wanted.then("
        => "(is_wanted || true).then(", Unit("ring::tests::an_unwanted_item");
    "ring: the items that are left are not dropped", "src/queue/ring.rs",
        "            while head != tail {"
        => "            while false {", Unit("ring::tests::each_item_is_dropped");
    "ring: memory is allocated before the lock bit is set", "src/queue/ring.rs",
        "        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };\n        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();\n"
        => "        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();\n        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };\n", Unit("ring::tests::a_resize_during_a_steal");
};
