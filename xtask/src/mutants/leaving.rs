//! A worker's end, the pool's end, and what the keeper does at its time.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "around_worker: a hook that does not call the worker loses it", "src/observe/hooks.rs",
        "        }\n        live_once();\n"
        => "        } else {\n            live_once();\n        }\n", Test("workers", "a_hook_that_panics");
    "around_worker: a worker in the hook counts as one that looks at the queue", "src/observe/hooks.rs",
        "self.on_worker_start.is_some() || self.around_worker.is_some()"
        => "self.on_worker_start.is_some()", Test("workers", "a_slow_hook");
    "race 3: the last worker leaves without a look", "src/sched/retire.rs",
        "        if now.total() == 0 && !self.in_flight.status().is_quiet() {"
        => "        if false {", Model("retire::retire_versus_submit_without");
    "race 3: the last worker's look is a plain load", "src/flight/in_flight.rs",
        "Status(self.word.fetch_or(0, Ordering::AcqRel))"
        => "Status(self.word.load(Ordering::Acquire))", Model("retire::retire_versus_submit_without");
    "law 4: two workers leave at once", "src/sched/retire.rs",
        "            Retire::Surplus => now.total() > self.sizes.core(),"
        => "            Retire::Surplus => true,", Model("retire::two_workers_retire");
    "race 4: a close does not recheck idle workers", "src/sched/shared.rs",
        "            self.idle.recheck_all();\n            self.keeper.recheck();\n"
        => "            self.keeper.recheck();\n", Model("closing::drop_versus_rest");
    "race 4: the end of the last task does not recheck idle workers", "src/sched/shared.rs",
        "            self.idle.recheck_all();\n            // There may be"
        => "            // There may be", Model("futures::an_abandoned_future_ends");
    "race 12: a joiner accepts a moment of quiet before its call", "src/flight/in_flight.rs",
        "        if self.status().is_quiet() {\n            let quiet"
        => "        {\n            let quiet", Model("notify::submit_versus_idle");
    "race 12: a joiner does not look after it has registered", "src/flight/in_flight.rs",
        "        (!self.status().is_quiet()).then_some(quiet)\n"
        => "        Some(quiet)\n", Model("notify::submit_versus_idle"), Model("closing::quiet_versus_the_last_task");
    "race 12: a joiner misses a moment that is over", "src/flight/in_flight.rs",
        "        is_quiet || Pin::new(&mut quiet).poll(context).is_ready()\n"
        => "        is_quiet || self.status().is_quiet()\n", Model("closing::a_joiner_versus_the_next_task");
    "race 12: a joiner is not notified", "src/flight/in_flight.rs",
        "                let _ = joiner.send(());\n"
        => "                mem::forget(joiner);\n", Model("notify::submit_versus_idle"), Model("closing::quiet_versus_the_last_task");
    "race 12: the end of a task does not release", "src/flight/in_flight.rs",
        "let before = self.word.fetch_sub(change, Ordering::AcqRel);"
        => "let before = self.word.fetch_sub(change, Ordering::Relaxed);", Model("notify::submit_versus_idle");
    "start hook: a search lasts until after the start hook", "src/sched/worker.rs",
        "            let search = self.search.take();\n            self.shared.enter_start_hook(search);"
        => "            self.shared.enter_start_hook(None);", Model("hooks::a_slow_start_hook");
    "keeper: it does not ask for a refused thread", "src/sched/keeper.rs",
        "            KeeperJob::Threads => self.ask_for_threads(),"
        => "            KeeperJob::Threads => {}", Model("notify::a_refused_thread_is_asked_for_again");
    "keeper: it asks once", "src/sched/keeper.rs",
        "            let is_asked = state.due[job as usize].is_some();"
        => "            let is_asked = state.pauses[job as usize] > PAUSE;", Model("notify::a_refused_thread_is_asked_for_again");
    "keeper: each look asks for a refused thread", "src/sched/notify.rs",
        "            if is_keeper && self.keeper.is_starved() {"
        => "            if is_keeper && false {",
        Test("law_07_refusal_proof", "no_other_look");
    "keeper: it relies on a look that is not asked for", "src/sched/notify.rs",
        "            if is_keeper && self.keeper.is_starved() {"
        => "            if is_keeper {",
        Model("measured::a_refused_thread_is_asked_for_again"), Model("notify::a_refused_thread_is_asked_for_again");
    "keeper: its pauses grow without a limit", "src/sched/keeper.rs",
        "cmp::min(2 * cmp::max(*pause, PAUSE), LONGEST_PAUSE)"
        => "{ let _ = LONGEST_PAUSE; 2 * cmp::max(*pause, PAUSE) }", Unit("keeper::tests::the_pauses_grow");
    "keeper: its pauses stay long", "src/sched/keeper.rs",
        "            self.keeper.state.lock().pauses[KeeperJob::Threads as usize] = PAUSE;\n"
        => "", Unit("keeper::tests::the_pauses_grow");
    "keeper: it stays without a worker", "src/sched/keeper.rs",
        "            if let Some(ends) = self.try_leave(false) {"
        => "            if let (true, Some(ends)) = (self.in_flight.is_over(), self.try_leave(false)) {", Test("law_07_refusal_proof", "comes_and_goes");
    "keeper: its pauses do not grow", "src/sched/keeper.rs",
        "mem::replace(pause, longer)"
        => "{ let _ = mem::replace(pause, longer); PAUSE }", Test("law_07_refusal_proof", "uses_no_cpu");
    "race 27: a refusal grants a blocked worker no permit", "src/sched/keeper.rs",
        "                capacity.grant_over_limit(&self.sizes);\n"
        => "                let _ = capacity;\n", Test("law_07_refusal_proof", "submits_to_its_full_queue_is_admitted");
    "race 15: a raised max_size grants no permit", "src/sched/shared.rs",
        "        self.grant_permits();\n" => "", Model("capacity::a_raised_max_size_versus_a_full_queue");
    "race 15: max_size is raised without a look at the queue", "src/sched/shared.rs",
        "        MustLook::owed().look(self);\n        Ok(())"
        => "        Ok(())", Model("retire::a_higher_limit");
    "race 15: max_size is lowered without a recheck", "src/sched/shared.rs",
        "        self.idle.recheck_all();\n        self.admit"
        => "        self.admit", Model("retire::a_lower_limit");
    "race 15: a new worker does not know that max_size was lowered before it ran", "src/sched/worker.rs",
        "search, shrinks, .. } = start;\n"
        => "search, shrinks, .. } = start;\n        let shrinks = shrinks.max(shared.shrinks.get());\n", Model("retire::a_lower_limit_versus_start");
    "race 15: core_size is changed without a recheck", "src/sched/shared.rs",
        "        self.idle.recheck_all();\n        self.admit"
        => "        self.admit", Model("retire::another_core_size");
    "recycling: a worker leaves although its successor is refused", "src/sched/retire.rs",
        "                        return None;\n"
        => "                        let (_, owed) = self.counts.remove_worker();\n                        self.registry.lock().deregister(key);\n                        return Some(owed);\n", Model("retire::recycle_versus_a_refused");
    "recycling: a worker whose quota is used gets another for a task that comes just then", "src/sched/retire.rs",
        "                if why == Retire::Recycled {\n                    // The quota"
        => "                if false {\n                    // The quota", Model("retire::recycle_versus_submit");
    "recycling: no successor is started", "src/sched/retire.rs",
        "            if why == Retire::Recycled && self.needs_successor(now) {"
        => "            if false {", Test("workers", "recycling::");
    "recycling: the index is free before the stop hook has returned", "src/sched/spawn.rs",
        "predecessor.filter(|_| self.config.hooks.on_worker_stop.is_none())"
        => "predecessor", Model("hooks::recycle_with_hooks");
    "law 4: an excess of runnable workers is ignored", "src/sched/retire.rs",
        "now.runnable() > self.sizes.max()"
        => "now.runnable() > usize::MAX", Model("retire::a_lower_limit_versus_rest");
    "law 4: a worker takes a task although too many are running", "src/sched/retire.rs",
        "now.running() > self.own_limit(now)"
        => "now.running() > usize::MAX", Model("regions::the_end_of_a_region");
    "law 8: a close is not decided with the acceptance", "src/flight/in_flight.rs",
        "(word & CLOSED == 0).then_some(word + count * ONE_TASK)"
        => "Some(word + count * ONE_TASK)", Test("law_08_closed", "");
    "law 9: threads are not waited for", "src/crew/registry.rs",
        "let gone = state.unjoined <= if leaving.is_some() { state.waiting.len() } else { 0 };"
        => "let gone = true;", Test("law_09_gone", "");
    "law 9: the last thread that exits wakes no joiner", "src/crew/registry.rs",
        "        self.registry.exited.notify_all();\n"
        => "", Test("law_09_gone", "slow_thread_locals");
    "law 9: stop hooks that wait do not learn of each other", "src/crew/registry.rs",
        "state.waiting.push(key);\n            self.exited.notify_all();"
        => "state.waiting.push(key);", Test("law_09_gone", "two_stop_hooks");
    "law 9: a stop hook whose wait has timed out is not waited for", "src/crew/registry.rs",
        "        if let (Some(key), false) = (leaving, gone) {"
        => "        if let (Some(key), true) = (leaving, false) {", Test("law_09_gone", "one_whose_wait_has_timed_out");
    "law 9: a joiner does not learn that another one has joined the threads", "src/crew/registry.rs",
        "state.unjoined -= joined;\n            self.exited.notify_all();"
        => "state.unjoined -= joined;", Test("law_09_gone", "two_clones");
    "race 20: credit is not reported", "src/sched/worker.rs",
        "let finished = self.context.take_credit();"
        => "let finished = 0;", Model("local_queues::join_versus");
    "race 35: no worker is notified of what a worker leaves in the views' queues", "src/sched/worker.rs",
        "            MustLook::owed().look(shared);\n"
        => "", Test("views", "a_worker_that_takes_another_task_notifies");
    "race 19: no worker is notified of what a worker that leaves has moved", "src/sched/worker.rs",
        "            moved.look(&shared);\n"
        => "            _ = moved;\n", Model("local_queues::recycle_versus_submit");
    "memory: a pool that is over keeps memory for pending futures", "src/sched/shared.rs",
        "        self.pending.shut().for_each(drop);\n"
        => "", Test("memory", "");
    "spin: a worker that finds a task does not notify", "src/sched/worker.rs",
        "                if self.spin_for_work() {\n                    self.is_woken = true;\n"
        => "                if self.spin_for_work() {\n", Model("local_queues::a_task_submits_another_versus_spin");
    "race 10: a close of a view does not wake its submitters", "src/sched/shared.rs",
        "            capacity.close(Some(view.id));\n"
        => "            let _ = capacity;\n", Model("views::close_of_a_view_versus_a_full_queue");
    "race 15: max_size is changed without a look at the reserves", "src/views/policy.rs",
        "sizes.change(change, reserved)"
        => "sizes.change(change, 0)", Model("views::resize_versus_a_reserve");
    "race 42: the last worker does not recheck the keeper", "src/sched/retire.rs",
        "                self.keeper.recheck();\n"
        => "", Model("hooks::the_keeper_versus_the_end");
    "keeper: the pool does not wait for its exit", "src/crew/registry.rs",
        "        self.threads.push((key, handle));\n        self.unjoined += 1;\n"
        => "        self.unjoined += usize::from(!self.threads.is_empty());\n        self.threads.push((key, handle));\n", Test("interface", "the_watcher_is_gone");
    "keeper: a refused one leaves the registry locked", "src/sched/spawn.rs",
        "        let body = move || {\n            // Made here: if the system refuses the thread, this closure is dropped under the\n            // registry's lock, which the drop of an `Exit` takes.\n            let exit = Exit { registry: Arc::clone(&shared.registry), key };\n"
        => "        let exit = Exit { registry: Arc::clone(&shared.registry), key };\n        let body = move || {\n", Test("law_07_refusal_proof", "if_the_keeper_is_refused");
    "recycling: a start in a pool that is over leaves the stale entries", "src/sched/spawn.rs",
        "            self.clear_if_over(self.in_flight.is_over());\n"
        => "", Test("workers", "the_entry_of_a_cancelled_task");
    "terminated: wakes beside a stop hook that waits for the other threads", "src/sched/helper.rs",
        "            self.registry.wait_last(key);\n"
        => "            self.registry.wait_gone(Some(key), None);\n", Test("law_09_gone", "a_stop_hook_that_shuts_down");
    "terminated: of two threads that wait for the end each waits for the other", "src/crew/registry.rs",
        "state.unjoined > state.last.len()"
        => "state.unjoined > 1", Test("async_code", "chaos");
    "law 7: without a worker a chain of wakes nests", "src/wait/future_task.rs",
        "        if Route::may_drop_cancelled() {"
        => "        if true {", Test("law_07_refusal_proof", "a_chain_of_wakes");
};
