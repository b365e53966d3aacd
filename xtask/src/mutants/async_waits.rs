//! Waiting for the pool in async code.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "capacity: a future that was granted a permit holds up the others until it is polled", "src/flight/capacity.rs",
        "if waits == Waits::Future { 0 } else { WAKING }"
        => "if waits == Waits::Future { WAKING } else { WAKING }", Model("capacity::a_future_that_is_not_polled");
    "capacity: only the first of the futures is granted a free permit", "src/flight/capacity.rs",
        "== Some(Waits::Future) {"
        => "== Some(Waits::Future) && false {", Unit("capacity::tests::futures_are_granted");
    "capacity: a future that gives up keeps the permit that it was granted", "src/flight/capacity.rs",
        "            self.release(sizes);\n        } else {"
        => "            let _ = sizes;\n        } else {", Test("async_code", "loses_no_permit"), Model("capacity::a_future_that_gives_up");
    "capacity: a future that gives up keeps its place", "src/submit/reserve.rs",
        "            (self.give_up)(granted);\n"
        => "            std::mem::forget(granted);\n", Test("async_code", "loses_no_permit"), Model("capacity::a_future_that_gives_up");
    "permit: one that is dropped is lost", "src/submit/reserve.rs",
        "            route.shared.release_permit();\n"
        => "            let _ = route;\n", Test("async_code", "that_is_dropped_goes_to"), Test("async_code", "a_slot_is_given_back");
    "permit: one that is dropped stays in flight", "src/submit/reserve.rs",
        "        route.finish_on_caller(1);\n"
        => "", Test("async_code", "without_a_bound");
    "permit: an immediate shutdown does not stop it", "src/submit/reserve.rs",
        "if route.shared.is_stopped() {"
        => "if route.shared.is_stopped() && false {", Test("async_code", "an_immediate_shutdown_refuses");
    "permit: a wait blocks a worker whose permit it waits for", "src/submit/reserve.rs",
        "let must_not_wait = || may_block_own(route.id());"
        => "let must_not_wait = || false;", Test("async_code", "of_its_own_full_queue");
    "permit: a wait in a hook blocks its thread", "src/sched/poll_wait.rs",
        "_ => is_hook_of(pool),"
        => "_ => is_hook_of(pool) && false,", Test("async_code", "a_hook_that_blocks_on_capacity");
    "capacity: a hook that submits waits for it", "src/submit/mod.rs",
        "        if is_hook_of(shared.id()) {\n"
        => "        if false {\n", Test("async_code", "a_hook_on_a_submitter_exceeds");
    "permit: a hook counts as the waker below it", "src/sched/poll_wait.rs",
        "Poller::Waker if !is_outside_of_worker()"
        => "Poller::Waker", Test("async_code", "a_hook_below_a_waker");
    "quiet: a future that gives up stays among the joiners", "src/flight/in_flight.rs",
        "Context::from_waker(Waker::noop())).is_pending() {"
        => "Context::from_waker(Waker::noop())).is_pending() && false {", Model("closing::quiet_versus_the_last_task");
    "quiet: a task awaits its own pool", "src/control.rs",
        "            return self.panic_unless_unwinding(\"quiet\");\n"
        => "", Test("async_code", "must_not_await_its_own");
    "terminated: a task awaits its own pool", "src/control.rs",
        "            return self.panic_unless_unwinding(\"terminated\");\n"
        => "", Test("async_code", "must_not_await");
    "terminated: a close is not noticed", "src/sched/shared.rs",
        "            self.keeper.recheck();\n            // There may be no worker that does so when it leaves.\n            self.free_pending();\n"
        => "            self.free_pending();\n", Model("closing::terminated_versus_close");
    "terminated: the end of a task without a worker is not noticed", "src/sched/shared.rs",
        "            // There may be no worker that does so when it leaves.\n            self.keeper.recheck();\n"
        => "", Test("async_code", "the_end_waits_for_a_task");
    "terminated: it does not wait for the close", "src/sched/helper.rs",
        "(ends.is_empty() || self.in_flight.is_over())"
        => "(ends.is_empty() || is_helper || self.in_flight.is_over())", Model("closing::terminated_versus_close");
    "terminated: it does not wait for the threads", "src/sched/helper.rs",
        "            self.registry.wait_last(key);\n"
        => "            let _ = key;\n", Test("async_code", "a_slow_stop_hook_blocks_no");
    "law 9: a future is ready before the thread that wakes it is gone", "src/control.rs",
        "            shared.registry.wait_gone(Caller::of(shared).leaving(), None);\n"
        => "", Model("closing::two_waits_for_the_end"), Test("law_09_gone", "each_wait_for_the_end");
    "terminated: a future that is polled in its wake waits for that thread", "src/control.rs",
        "            shared.registry.wait_gone(Caller::of(shared).leaving(), None);\n"
        => "            shared.registry.wait_gone(None, None);\n", Test("async_code", "a_waker_that_polls_ends");
    "law 9: the thread that wakes them keeps the pool", "src/sched/spawn.rs",
        "            discard(shared);\n            for end in ends {\n                quietly(|| _ = end.send(()));\n            }\n"
        => "            for end in ends {\n                quietly(|| _ = end.send(()));\n            }\n            std::mem::forget(shared);\n", Model("closing::a_wait_for_the_end_that_was_dropped");
    "law 9: a thread is started for a wait in a pool whose threads are gone", "src/sched/helper.rs",
        "        if self.in_flight.is_over() && registry.is_gone() {\n            return Ok(None);\n        }\n"
        => "", Unit("helper::tests::a_pool_that_is_gone");
    "terminated: without a helper nothing wakes it", "src/sched/helper.rs",
        "if runs_code { mem::take(ends) }"
        => "if is_helper { mem::take(ends) }", Model("closing::terminated_without_a_helper");
    "terminated: the keeper leaves a future that waits", "src/sched/helper.rs",
        "(ends.is_empty() || self.in_flight.is_over())"
        => "(ends.is_empty() || !is_helper || self.in_flight.is_over())", Test("law_07_refusal_proof", "is_ready_although_the_helper_is_refused");
    "terminated: a refused helper is not asked for again", "src/sched/helper.rs",
        "            Some(error) => self.ask_for_helper_again(&error),\n"
        => "            Some(_) => {}\n", Test("law_07_refusal_proof", "a_refused_wait_for_the_end_gets_its_helper");
    "terminated: without a keeper it spins", "src/sched/helper.rs",
        "                thread::sleep(PAUSE);\n"
        => "                let _ = PAUSE;\n", Test("law_07_refusal_proof", "does_not_spin");
    "race 42: the helper does not look after it has been told of", "src/sched/helper.rs",
        "        self.keeper.helper.recheck();\n        started\n"
        => "        started\n", Model("closing::quiet_versus_the_start_of_the_helper");
    "helper: the pause for a refused one stays long", "src/sched/helper.rs",
        "            state.pauses[KeeperJob::Helper as usize] = PAUSE;\n"
        => "            let _ = PAUSE;\n", Unit("helper::tests::the_pause_begins_anew");
    "keeper: its stack is the default one", "src/sched/keeper.rs",
        "cmp::max(self.config.stack_size, default_stack_size())"
        => "default_stack_size()", Test("workers", "hooks_are_dropped_on_a_large_stack");
    "terminated: waits that were given up pile up", "src/sched/helper.rs",
        "partition(End::is_canceled);"
        => "partition(|_| false);", Unit("helper::tests::a_wait_that_is_dropped");
    "wakers: the panic of one ends the helper", "src/sched/helper.rs",
        "    off_trampoline(|| quietly(code));"
        => "    off_trampoline(code);", Test("async_code", "harms_no_worker");
    "wakers: a thread of the pool calls it in the middle of a change", "src/sched/helper.rs",
        "        if !state.is_there && !state.has_helper {"
        => "        if !state.is_there || true {", Test("async_code", "that_blocks_delays_no_task");
    "helper: the keeper leaves with code to run", "src/sched/helper.rs",
        "let is_done = user_code.is_empty() &&"
        => "let is_done = (user_code.is_empty() || !is_helper) &&", Model("closing::quiet_versus_the_end_of_the_keeper");
    "helper: it leaves with code to run", "src/sched/helper.rs",
        "let is_done = user_code.is_empty() &&"
        => "let is_done = (user_code.is_empty() || is_helper) &&", Unit("helper::tests::the_helper_leaves_no_code");
    "helper: it is not told of code", "src/sched/helper.rs",
        "        parker.recheck();\n"
        => "        let _ = parker;\n", Test("async_code", "that_blocks_delays_no_task");
    "helper: the keeper runs the code", "src/sched/keeper.rs",
        "        if is_asked || !self.try_start_helper() {"
        => "        let _ = is_asked;\n        {", Model("stalled::a_waker_that_waits_for_a_task"), Test("async_code", "takes_long");
    "helper: a deadline drops tasks on the keeper", "src/sched/keeper.rs",
        "            self.run_later(Box::new(move || {"
        => "            helper::run(Box::new(move || {", Test("groups", "a_destructor_may_wait"), Test("groups", "takes_long");
    "helper: the keeper calls the hook for stalls", "src/sched/keeper.rs",
        "                self.run_later(code);\n            }\n        }\n    }\n}"
        => "                helper::run(code);\n            }\n        }\n    }\n}", Test("interface", "takes_long");
    "helper: its stack is not that of a worker", "src/sched/helper.rs",
        "self.config.stack_size, Self::help);"
        => "crate::sync::default_stack_size(), Self::help);", Test("async_code", "the_stack_of_a_worker"), Test("groups", "the_stack_of_a_worker");
    "helper: code that the keeper runs goes before its jobs", "src/sched/keeper.rs",
        "            let due = KeeperJob::ALL.into_iter().find(|job| state.take_if_due(*job, is_late));\n            let lacks_helper = state.lacks_helper();\n"
        => "            let lacks_helper = state.lacks_helper();\n            let due = KeeperJob::ALL.into_iter().find(|job| !lacks_helper && state.take_if_due(*job, is_late));\n", Test("async_code", "wakers_of_a_refused_helper");
    "helper: a refused one is asked for at each wake", "src/sched/keeper.rs",
        "        if is_asked || !self.try_start_helper() {"
        => "        if !(is_asked && false) && !self.try_start_helper() {", Test("async_code", "wakers_of_a_refused_helper");
    "helper: a refused one is not asked for again", "src/sched/keeper.rs",
        "            KeeperJob::Helper => _ = self.try_start_helper(),"
        => "            KeeperJob::Helper => {}", Test("law_07_refusal_proof", "a_refused_wait_for_the_end_gets");
    "wakers: what one polls blocks the helper", "src/sched/helper.rs",
        "            let _polls = PollScope::begin(Poller::Waker);\n"
        => "", Test("async_code", "submits_no_more_than_fit");
    "group: a slot of a future that gives up is lost", "src/group/permit.rs",
        "            return self.update(GroupState::release_slot);\n"
        => "            return;\n", Test("async_code", "a_slot_whose_permit_or_wait");
    "group: a future that gives up keeps its place in the line", "src/group/permit.rs",
        "        let own = self.state.lock().forget(&slot);\n"
        => "        let own = ();\n", Test("async_code", "a_slot_whose_permit_or_wait");
    "group: a slot of a permit that is dropped is lost", "src/group/permit.rs",
        "            self.inner.update(GroupState::release_slot);\n"
        => "            let _ = GroupState::<E>::release_slot;\n", Test("async_code", "a_slot_whose_permit_or_wait"), Test("async_code", "a_slot_is_given_back");
    "group: a task that waits for a permit of its own group waits for itself", "src/group/permit.rs",
        "is_inside(self.id()) || may_block_own(self.route().id())"
        => "may_block_own(self.route().id()) && !is_inside(self.id())", Test("async_code", "a_task_of_a_group_does_not_wait");
    "group: a worker that blocks on a permit waits for it", "src/group/permit.rs",
        "is_inside(self.id()) || may_block_own(self.route().id())"
        => "is_inside(self.id())", Test("async_code", "that_wait_for_a_slot");
    "group: a permit of a task of the group has no permit of a bounded queue to release", "src/group/permit.rs",
        "                    reservation.exceed_capacity();\n"
        => "", Test("async_code", "a_task_of_a_group_does_not_wait");
    "group: a permit is for a group that was cancelled since", "src/group/permit.rs",
        "        slot.check().inspect_err(|_| _ = inner.refuse())?;\n        let accepted"
        => "        let accepted", Test("async_code", "a_cancelled_group");
};
