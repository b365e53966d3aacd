//! Waiting for the pool in async code.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "capacity: a future that was granted a permit holds up the others until it is polled", "src/runtime/capacity.rs",
        "if waits == Waits::Future { 0 } else { WAKING }"
        => "if waits == Waits::Future { WAKING } else { WAKING }", Model("capacity::a_future_that_is_not_polled");
    "capacity: only the first of the futures is granted a free permit", "src/runtime/capacity.rs",
        "== Some(Waits::Future) {"
        => "== Some(Waits::Future) && false {", Unit("capacity::tests::futures_are_granted");
    "capacity: a future that gives up keeps the permit that it was granted", "src/runtime/capacity.rs",
        "            self.release(sizes);\n        } else {"
        => "            let _ = sizes;\n        } else {", Test("async_code", "loses_no_permit"), Model("capacity::a_future_that_gives_up");
    "capacity: a future that gives up keeps its place", "src/runtime/reserve.rs",
        "    fn drop(&mut self) {\n        self.give_up();\n"
        => "    fn drop(&mut self) {\n        std::mem::forget(self.granted.take());\n", Test("async_code", "loses_no_permit"), Model("capacity::a_future_that_gives_up");
    "permit: one that is dropped is lost", "src/runtime/reserve.rs",
        "            route.shared.release_permit();\n"
        => "            let _ = route;\n", Test("async_code", "that_is_dropped_goes_to"), Test("async_code", "a_slot_is_given_back");
    "permit: one that is dropped stays in flight", "src/runtime/reserve.rs",
        "        route.finish_on_caller(1);\n"
        => "", Test("async_code", "without_a_bound");
    "permit: an immediate shutdown does not stop it", "src/runtime/reserve.rs",
        "if route.shared.is_stopped() {"
        => "if route.shared.is_stopped() && false {", Test("async_code", "an_immediate_shutdown_refuses");
    "permit: a wait blocks a worker whose permit it waits for", "src/runtime/reserve.rs",
        "} else if may_block_own(self.route.id()) {"
        => "} else if false {", Test("async_code", "of_its_own_full_queue");
    "permit: a wait in a hook blocks its thread", "src/runtime/poll_wait.rs",
        " || is_hook_of(pool))"
        => " || is_hook_of(pool) && false)", Test("async_code", "a_hook_that_blocks_on_capacity");
    "capacity: a hook that submits waits for it", "src/runtime/submit.rs",
        "        if context::is_hook_of(shared.id()) {\n"
        => "        if false {\n", Test("async_code", "on_the_keeper");
    "permit: a hook counts as the poll below it", "src/runtime/spawn.rs",
        "    let _polls = Meanwhile::begin(Driver::Closure, None);\n"
        => "", Test("async_code", "a_hook_below_a_poll");
    "quiet: a future is not woken", "src/runtime/in_flight.rs",
        "=> _ = sender.send(()),"
        => "=> std::mem::forget(sender),", Model("closing::quiet_versus_the_last_task");
    "quiet: a future that gives up stays among the joiners", "src/runtime/in_flight.rs",
        "            self.in_flight.remove(is_own);\n"
        => "            let _ = is_own;\n", Model("closing::quiet_versus_the_last_task");
    "quiet: a task awaits its own pool", "src/control.rs",
        "            return self.panic_unless_unwinding(\"quiet\");\n"
        => "", Test("async_code", "must_not_await_its_own");
    "terminated: a task awaits its own pool", "src/control.rs",
        "            return self.panic_unless_unwinding(\"terminated\");\n"
        => "", Test("async_code", "must_not_await");
    "terminated: a close is not noticed", "src/runtime/shared.rs",
        "        self.registry.notify_closed();\n"
        => "", Model("closing::terminated_versus_close");
    "terminated: it does not wait for the tasks", "src/runtime/terminated.rs",
        "        self.in_flight.wait_quiet(None);\n"
        => "", Test("async_code", "the_end_waits_for_a_task");
    "terminated: it does not wait for the threads", "src/runtime/terminated.rs",
        "        self.registry.wait_gone(None, None);\n"
        => "", Model("closing::terminated_versus_close");
    "terminated: the thread that has waited is not joined", "src/control.rs",
        "        shared.join_end_thread();\n"
        => "", Unit("terminated::tests::the_thread_that_has_waited");
    "terminated: a future joins the thread under a lock", "src/runtime/terminated.rs",
        "        let thread = self.ends.thread.lock().take_if(|thread| !is_current(thread));\n"
        => "        let mut locked = self.ends.thread.lock();\n        let thread = locked.take_if(|thread| !is_current(thread));\n", Test("async_code", "a_future_joins");
    "terminated: waits that were given up pile up", "src/runtime/terminated.rs",
        "partition(oneshot::Sender::is_canceled);"
        => "partition(|_| false);", Unit("terminated::tests::a_wait_that_is_dropped");
    "wakers: the panic of one ends the keeper", "src/runtime/relay.rs",
        "off_trampoline(|| quietly(|| waker.wake()));"
        => "off_trampoline(|| waker.wake());", Test("async_code", "harms_no_worker");
    "wakers: a thread of the pool calls it in the middle of a change", "src/runtime/relay.rs",
        "        if !state.is_there {"
        => "        if !state.is_there || true {", Test("async_code", "that_blocks_delays_no_task");
    "wakers: the keeper leaves with one to call", "src/runtime/keeper.rs",
        " && state.wakers.is_empty();"
        => ";", Model("closing::quiet_versus_the_end_of_the_keeper");
    "wakers: the keeper parks after it has called one", "src/runtime/keeper.rs",
        "                    continue;\n"
        => "                    is_late = self.keeper.parker.park(None) == Signal::Expired;\n                    continue;\n", Model("closing::quiet_versus_the_end_of_the_keeper");
    "wakers: the keeper is not told of one", "src/runtime/relay.rs",
        "        self.keeper.recheck();\n"
        => "", Test("async_code", "that_blocks_delays_no_task");
    "wakers: what one polls blocks the keeper", "src/runtime/relay.rs",
        "    let _polls = Meanwhile::begin(Driver::Pool, None);\n"
        => "", Test("async_code", "submits_no_more_than_fit");
    "group: a slot of a future that gives up is lost", "src/group/permit.rs",
        "            return Some(self.inner.slot(token));\n"
        => "            drop(token);\n            return None;\n", Test("async_code", "a_slot_whose_permit_or_wait");
    "group: a future that gives up keeps its place in the line", "src/group/permit.rs",
        "        let own = self.inner.state.lock().forget(&slot);\n"
        => "        let own = ();\n", Test("async_code", "a_slot_whose_permit_or_wait");
    "group: a slot of a permit that is dropped is lost", "src/group/permit.rs",
        "            self.inner.update(GroupState::release_slot);\n"
        => "            let _ = GroupState::<E>::release_slot;\n", Test("async_code", "a_slot_whose_permit_or_wait"), Test("async_code", "a_slot_is_given_back");
    "group: a task that waits for a permit of its own group waits for itself", "src/group/permit.rs",
        "is_inside(self.id()) || may_block_own(self.route().id())"
        => "may_block_own(self.route().id()) && !is_inside(self.id())", Test("async_code", "a_task_of_a_group_does_not_wait");
    "group: a worker that blocks on a permit waits for it", "src/group/permit.rs",
        "is_inside(self.id()) || may_block_own(self.route().id())"
        => "is_inside(self.id())", Test("async_code", "that_block_on_a_slot");
    "group: a permit of a task of the group has no permit of a bounded queue to release", "src/group/permit.rs",
        "                    reservation.exceed_capacity();\n"
        => "", Test("async_code", "a_task_of_a_group_does_not_wait");
    "group: a permit is for a group that was cancelled since", "src/group/permit.rs",
        "        slot.check().inspect_err(|_| _ = inner.refuse())?;\n"
        => "", Test("async_code", "a_cancelled_group");
};
