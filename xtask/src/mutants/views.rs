//! The scheduling of views.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "view: its queue keeps the memory of a burst", "src/views/policy.rs",
        "queue.shrink_to(KEPT_TASKS)"
        => "queue.shrink_to(usize::MAX)", Test("memory", "memory_is_given_back");
    "race 35: the end of a task keeps its place", "src/views/policy.rs",
        "            if let Some(held) = held {\n                state.release(held);\n            }\n            let (len"
        => "            let _ = held;\n            let (len", Model("views::the_end_of_a_limited_task");
    "reserve: others take the reserved place", "src/views/policy.rs",
        "limit.saturating_sub(self.reserved + self.shared)"
        => "limit.saturating_sub(self.shared)", Model("views::the_end_of_a_task_versus_submit_beside");
    "race 7: a place that is free is not given to a returning worker", "src/views/policy.rs",
        "        self.give_back(place);\n        self.admit_returning();\n"
        => "        self.give_back(place);\n", Model("views::a_worker_of_a_limited_view");
    "limit: a returning worker does not wait for a place", "src/sched/place.rs",
        "            self.policy.wait(&wait);\n        }\n    }\n"
        => "            drop(wait);\n        }\n    }\n", Model("views::a_worker_of_a_limited_view");
    "limit: a claimed task runs without a place of its view", "src/sched/place.rs",
        "            self.exchange_place(context, to, claims);\n        }\n"
        => "        }\n", Test("views", "a_claimed_task_keeps_others");
    "limit: a worker that has claimed a task is let in after a while", "src/views/policy.rs",
        "let queue = if claims {"
        => "let queue = if false && claims {", Test("views", "a_claimed_task_waits_for_a_place"), Test("views", "a_claimed_task_leaves_the_reserve_free");
    "limit: a worker that has claimed a task never gets a place", "src/views/policy.rs",
        "[&mut self.returning, &mut self.claiming].into_iter()"
        => "[&mut self.returning].into_iter()", Test("views", "a_larger_limit_begins"), Test("views", "a_claimed_task_waits_for_a_place");
    "expiry: drops of late tasks of a scope nest without bound", "src/submit/caller.rs",
        "let claimed = Self::may_drop_cancelled().then(|| tasks.claim(id, |_| None));"
        => "let claimed = Some(tasks.claim(id, |_| None));", Test("views", "a_chain_of_late_tasks");
    "expiry: a scope waits until a worker has dropped a late task", "src/scope.rs",
        "            if error.is_expired() {"
        => "            if error.is_expired() && false {", Test("views", "an_awaited_task_of_a_scope");
    "limit: the wait for a group outlasts its deadline", "src/group/wait.rs",
        "deadline.is_some() || self.inner.state.lock().deadline.is_some();"
        => "deadline.is_some();", Test("views", "a_group_with_a_deadline_expires");
    "limit: a scoped handle's wait outlasts the time in the queue", "src/scope.rs",
        "let at_once = deadline.is_some() || self.handle.may_expire();"
        => "let at_once = deadline.is_some();", Test("views", "an_awaited_task_of_a_scope");
    "limit: a wait with a limit waits for a place", "src/wait/awaited.rs",
        "worker.is_some_and(|worker| !route.shared.may_begin_on_top(worker, route.view, at_once))"
        => "worker.is_some_and(|worker| at_once && false && !route.shared.may_begin_on_top(worker, route.view, at_once))", Test("views", "a_wait_that_may_end_before"), Test("views", "a_wait_for_one_of_several");
    "limit: a worker that claims a task loses its capacity to one that waits", "src/views/policy.rs",
        "            self.give_back(held);\n        }\n        let waits"
        => "            self.release(held);\n        }\n        let waits", Unit("policy::tests::a_worker_that_exchanges");
    "race 15: no worker is notified of a reserve that has ended", "src/sched/place.rs",
        "        _ = self.change_view(id, &|terms| terms.reserve = 0);"
        => "        _ = self.policy.change(&self.sizes, id, |terms| terms.reserve = 0);", Model("views::the_end_of_a_reserve_versus_the_last");
    "reserve: a waker of an ended future keeps it", "src/views/view.rs",
        "        self.in_flight.finish(count);\n        self.release(count);\n"
        => "        self.in_flight.finish(count);\n", Test("views", "an_ended_task_keeps_no_reserve");
    "reserve: a group does not keep it", "src/group.rs",
        "_view: self.view.clone(),"
        => "_view: None,", Test("views", "a_handle_of_any_kind");
    "view: entries of cancelled tasks stay in its queue", "src/submit/caller.rs",
        "            self.skip_stale(None);\n"
        => "", Test("queues", "a_view_keeps_no_entries");
    "views: the younger of two comes first", "src/views/policy.rs",
        "|(pass, _)| view.pass < pass"
        => "|(pass, _)| view.pass <= pass", Unit("policy::tests::of_two_views");
    "views: a limited view counts as more work", "src/views/policy.rs",
        "if view.may_start(shared_left > 0) {"
        => "if view.terms.limit >= view.places {", Unit("policy::tests::items_of_each_view");
    "priority: a lower one starves", "src/views/policy.rs",
        "const MAX_PASSED: usize = 18;"
        => "const MAX_PASSED: usize = usize::MAX;", Test("views", "lower_priorities_do_not_starve");
    "weight: all views have the same", "src/views/policy.rs",
        "FULL_STEP / view.terms.weight as u128"
        => "FULL_STEP", Test("views", "weights_are_shares");
    "weight: idle times give credit", "src/views/policy.rs",
        "            view.pass = view.pass.max(self.levels[view.level()].pass);\n"
        => "", Test("views", "idle_times_give_no_credit");
    "race 15: no worker is notified of a larger limit of a view", "src/sched/place.rs",
        "            owed.look(self);\n        }\n        Ok(())"
        => "            _ = owed;\n        }\n        Ok(())", Model("views::a_larger_limit_of_a_view"), Model("views::resume_versus_submit");
    "race 15: a larger limit of a view gives no place to a returning worker", "src/views/policy.rs",
        "            state.admit_returning();\n            Ok(Some("
        => "            Ok(Some(", Model("views::a_larger_limit_versus_a_return");
    "still: a worker that takes without a place is not waited for", "src/sched/worker.rs",
        "            self.shared.running.add();\n            self.passes = Gate::Unused;\n"
        => "            self.passes = Gate::Unused;\n", Model("views::the_first_pause_versus_a_take");
    "still: an idle worker counts as running until it takes a task", "src/sched/place.rs",
        "            self.idle.recheck_all();\n        }\n    }\n\n    /// Adds a view"
        => "        }\n    }\n\n    /// Adds a view", Model("views::the_first_pause_versus_a_take"), Test("views", "idle_workers_do_not_run");
    "still: a worker counts its task after the take", "src/views/policy.rs",
        "        self.change_state(|state| {\n            if let Some(held) = held {\n                state.release(held);\n            }\n            let (len, has_injected) = queued();\n            let mut taken = state.take(false, len > 0, &mut pop_default);\n            if taken.is_none() && state.has_futures_place() {\n                taken = state.take(true, has_injected, &mut pop_default);\n            }\n            if let Some((taken, _)) = &taken {\n                begin(taken);\n            }\n            let (len, has_injected) = queued();\n            (taken, state.eligible_now(len, has_injected) > 0)\n        })\n"
        => "        let (taken, has_more) = self.change_state(|state| {\n            if let Some(held) = held {\n                state.release(held);\n            }\n            let (len, has_injected) = queued();\n            let mut taken = state.take(false, len > 0, &mut pop_default);\n            if taken.is_none() && state.has_futures_place() {\n                taken = state.take(true, has_injected, &mut pop_default);\n            }\n            let (len, has_injected) = queued();\n            (taken, state.eligible_now(len, has_injected) > 0)\n        });\n        if let Some((taken, _)) = &taken {\n            begin(taken);\n        }\n        (taken, has_more)\n", Model("views::a_pause_of_a_view_versus_a_take"), Model("views::a_kept_place_versus_join_running");
    "still: a claimed task is not waited for", "src/sched/place.rs",
        "is_used().then(|| RunningMark::begin(self.running_of(view)));"
        => "is_used().then(|| RunningMark::begin(Box::leak(Box::default())));", Test("views", "what_runs_is_waited_for");
    "still: a task on its caller's thread is not waited for", "src/sched/context.rs",
        "let running = RunningMark::begin(shared.running_of(view));"
        => "let running = RunningMark::begin(Box::leak(Box::default()));", Test("views", "what_runs_is_waited_for");
    "still: a task on its caller's thread is recorded after its mark is gone", "src/submit/caller.rs",
        "        self.count_on_caller(&|metrics| metrics.record(outcome));\n        drop(mark);\n"
        => "        drop(mark);\n        self.count_on_caller(&|metrics| metrics.record(outcome));\n", Model("views::a_cancelled_task_versus_join_running");
    "still: a worker that leaves counts as running", "src/sched/worker/rest.rs",
        "        let passed = self.stop_running();\n"
        => "        let passed = crate::views::Gate::None;\n", Test("views", "workers_without_a_task_do_not_run");
    "pause: a worker runs a task that it has taken without a place", "src/sched/worker.rs",
        "                if !passes || !self.may_pass() {"
        => "                if !passes || (next.is_none() && !self.may_pass()) {", Model("views::a_kept_place_versus_the_first_task");
    "gate: open beside a view's task", "src/views/policy.rs",
        "!self.awaited.is_empty() || has_work();"
        => "!self.awaited.is_empty() || (false && has_work());", Model("views::a_kept_place_versus_the_first_task");
    "gate: open although its view is paused", "src/views/policy.rs",
        "= is_over || is_paused"
        => "= is_over || (false && is_paused)", Unit("policy::tests::the_gate_is_shut");
    "gate: a worker sees a resume without what preceded it", "src/views/policy.rs",
        "self.gate.store(gate as usize, Ordering::Release);"
        => "self.gate.store(gate as usize, Ordering::Relaxed);", Model("views::a_kept_place_versus_a_pause");
    "gate: open although others occupy a reserve", "src/views/policy.rs",
        "= is_over || is_paused"
        => "= (false && is_over) || is_paused", Unit("policy::tests::the_gate_is_shut");
    "gate: open while a worker waits for a place", "src/views/policy.rs",
        "|| !self.awaited.is_empty() ||"
        => "|| (false && self.awaited.is_empty()) ||", Unit("policy::tests::the_gate_is_shut");
    "pause: it relies on another thread that begins to expect views", "src/views/policy.rs",
        "        self.change_views(|views| {\n            self.is_used.store(true, Ordering::Release);\n"
        => "        self.is_used.store(true, Ordering::Release);\n        self.change_views(|views| {\n", Model("views::a_pause_versus_the_first_view");
    "pause: workers take tasks of a paused view", "src/views/policy.rs",
        "!self.terms.is_paused && self.has_place(has_shared)"
        => "self.has_place(has_shared)", Test("views", "queued_tasks_wait");
    "pause: started tasks of a paused view get no place", "src/views/policy.rs",
        "is_none_or(|view| view.has_place(has_shared));"
        => "is_none_or(|view| view.may_start(has_shared));", Unit("policy::tests::a_started_task");
    "race 10: what is closed is paused", "src/control.rs",
        "terms.is_paused = !self.is_closed()"
        => "terms.is_paused = true", Model("views::pause_versus_close");
    "race 10: a close takes no lock in a pool without views", "src/sched/place.rs",
        "        if let Some(owed) = self.policy.resume_all() {"
        => "        if self.policy.is_used() && let Some(owed) = self.policy.resume_all() {", Model("views::pause_versus_close");
    "law 8: a close does not resume", "src/sched/shared.rs",
        "        self.refuse_tasks();\n        self.resume_all();\n"
        => "        self.refuse_tasks();\n", Model("views::pause_versus_close");
    "law 8: paused tasks start before an immediate shutdown hands them back", "src/control.rs",
        "        shared.refuse_tasks();\n"
        => "        shared.close();\n", Test("views", "pausing::an_immediate_shutdown");
    "law 10: a join waits for paused tasks without a word", "src/control.rs",
        "            thread::panicking(),\n            \"`join` was called while queued"
        => "            true,\n            \"`join` was called while queued", Test("views", "a_join_that_would_wait");
    "law 10: a stale entry counts as a paused task", "src/sched/place.rs",
        "sums.stale(), stale)"
        => "0 * sums.stale(), stale)", Test("views", "pausing::a_cancelled_task");
    "weight: a view waits for what it got at its old one", "src/views/policy.rs",
        "            view.pass = state.levels[view.level()].pass\n                + ahead * before.weight as u128 / terms.weight as u128;\n"
        => "            let _ = ahead;\n", Unit("policy::tests::a_new_weight"), Unit("policy::tests::a_view_of_another_priority");
    "reserve: places are counted as before a change", "src/views/policy.rs",
        "            state.shared = state.shared - shared(before) + shared(terms);\n"
        => "            let _ = shared;\n", Unit("policy::tests::items_of_each_view");
    "view: a join does not wait for the task's end", "src/views/view.rs",
        "            self.metrics.lock().count_returned(1);\n            self.finish(1);\n"
        => "            self.metrics.lock().count_returned(1);\n", Test("views", "a_join_waits_for_the_view_alone");
    "extra: a pool with views has no place for futures", "src/views/policy.rs",
        "serves_futures: cfg!(feature = \"async\") && sizes.follows_measurements()" => "serves_futures: false",
        Model("extra::a_future_versus_a_closure_beside");
    "extra: a poll takes a worker from a reserve", "src/views/policy.rs",
        "self.serves_futures && !self.is_polling && self.shared_left(self.max_size) > 0"
        => "self.serves_futures && !self.is_polling", Unit("policy::tests::items_of_each_view"), Model("extra::a_future_beside_a_reserve");
    "extra: several workers have the place for futures", "src/views/policy.rs",
        "self.serves_futures && !self.is_polling &&" => "self.serves_futures &&", Unit("policy::tests::items_of_each_view");
    "extra: the place for futures is not given back", "src/views/policy.rs",
        "        self.is_polling &= !place.is_for_futures;\n" => "", Unit("policy::tests::items_of_each_view"),
        Model("extra::the_end_of_a_poll_beside_a_view");
    "extra: a poll takes a place from closures", "src/views/policy.rs",
        "self.max_size.min(self.limit + usize::from(self.is_polling))" => "self.limit", Model("extra::a_poll_beside_a_view_that_waits");
    "extra: a worker rests for the poll of another one in a pool with views", "src/views/policy.rs",
        "0 => usize::from(self.is_polling)," => "0 => 0,", Model("extra::a_poll_beside_a_view_that_waits");
    "extra: the future of a view notifies no worker", "src/views/policy.rs",
        " || has_futures_place && view.may_poll(false)" => " || false && has_futures_place",
        Unit("measured::tests::a_future_of_a_view_notifies");
    "extra: a ready future is no eligible work", "src/views/policy.rs",
        "with_others.max(usize::from(self.may_poll(has_injected)))" => "with_others.max(usize::from(false && has_injected))",
        Unit("policy::tests::items_of_each_view"), Model("extra::a_future_versus_a_closure_beside");
    "extra: a poll passes the limit and the pause of its view", "src/views/policy.rs",
        "(has_injected || !self.queues[0].is_empty()) && self.may_start(true)"
        => "has_injected || !self.queues[0].is_empty()", Unit("policy::tests::items_of_each_view"), Test("views", "ready_futures::it_serves_no_paused");
    "extra: the worker that comes for a future of a pool with views rests", "src/sched/retire.rs",
        "                && self.has_ready_future())\n" => "                && false)\n", Model("extra::a_future_versus_a_closure_beside");
    "extra: above max_size a worker takes futures all the same", "src/sched/retire.rs",
        "                && now.running() <= self.sizes.max()\n" => "", Unit("worker::tests::above_max_size_no_worker");
    "extra: a poll beyond the limit takes a turn from closures", "src/views/policy.rs",
        "            if polls {\n                self.polls += 1;" => "            if polls && false {\n                self.polls += 1;",
        Unit("policy::tests::a_poll_beyond_the_limit");
    "extra: after its poll in a region it has the place still", "src/sched/place.rs",
        "        context.replace_place(Some(Place::of(held.view)));\n" => "", Test("views", "ready_futures::it_takes_no_worker");
    "extra: a poll in a region keeps the place for futures", "src/sched/place.rs",
        "        Some(self.policy.release(held))\n" => "        (!held.is_for_futures).then(|| self.policy.release(held))\n",
        Unit("measured::tests::a_future_is_polled_beside");
    "extra: a future that is put back waits in line with closures", "src/sched/place.rs",
        "job.is_new() && !(self.sizes.follows_measurements() && job.is_future())" => "job.is_new()",
        Model("extra::a_future_that_is_put_back");
    "extra: a closure with a handle is polled beyond the limit", "src/wait/future_task.rs",
        "TypeId::of::<F>() != TypeId::of::<Call<F::Output>>()" => "true", Test("views", "ready_futures::it_takes_no_closure");
    "extra: with the place for futures it goes on with closures", "src/sched/worker.rs",
        "        if place == Place::of(DEFAULT_VIEW) {" => "        if place.view == DEFAULT_VIEW {",
        Test("views", "ready_futures::it_takes_no_closure");
    "extra: a poll in a pool with views runs for ever", "src/sched/worker.rs",
        "                self.shared.running.finish(1);\n" => "                let _ = &self.shared.running;\n", Test("views", "ready_futures::a_poll_there_runs");
    "measured: the end of a poll beyond the limit counts", "src/sched/worker.rs",
        "                metrics.add(Count::OfExtra, metrics.ended() - ended);\n" => "                let _ = (Count::OfExtra, ended);\n",
        Unit("measured::tests::a_worker_beyond_the_limit");
    "measured: a poll with the place for futures counts as running", "src/crew/metrics.rs",
        " || self.has_futures_place.get()" => "", Unit("measured::tests::a_worker_beyond_the_limit");
};
