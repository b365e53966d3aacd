//! Blocking regions, and tasks that run on the thread that waits for them.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "region: no worker takes over the count of a declared region that has ended", "src/sched/compensate.rs",
        "self.declared.fetch_sub(1, Ordering::AcqRel) <= self.config.max_blocked"
        => "self.declared.fetch_sub(1, Ordering::AcqRel) <= usize::MAX", Model("waits::regions_take_turns"), Model("waits::regions_end_at_once");
    "region: a worker that waits to return is in its declared region already", "src/sched/compensate.rs",
        "(declared < self.config.max_blocked).then_some(declared + 1)"
        => "Some(declared + 1).filter(|_| declared < usize::MAX)", Unit("compensate::tests::a_worker_that_waits_to_be");
    "region: the end of a wait for the own pool leaves a count behind", "src/sched/compensate.rs",
        "            if is_counted {\n                // Before it enters"
        => "            if is_counted && to.is_none() {\n                // Before it enters", Model("waits::regions_end_at_once");
    "wait: a worker with a deadline spins first", "src/sched/region.rs",
        "!is_worker || (dependency != Dependency::Other && !has_deadline)"
        => "{ let _ = has_deadline; !is_worker || dependency != Dependency::Other }", Unit("region::tests::a_worker_with_a_deadline");
    "scope: a thread outside leaves the task of a handle that it waits for", "src/wait/awaited.rs",
        "if worker.is_some() || is_caller_of(route.shared) {"
        => "if worker.is_some() {", Test("scope", "scopes_opener_waits_for");
    "capacity: a blocked worker keeps its permit", "src/sched/compensate.rs",
        "                if self.runs_tasks.get() {\n                    shared.release_permit();\n                }\n"
        => "", Model("capacity::a_worker_waits_for_room");
    "wait: stale entries of a view stay until a worker takes them", "src/wait/awaited.rs",
        "            self.route.skip_stale(self.worker);\n"
        => "", Test("memory", "memory_is_given_back");
    "race 22: a region does not end the deferral of a poll", "src/sched/compensate.rs",
        "            self.stop_deferring();\n"
        => "", Model("local_queues::futures::a_poll_wakes_another_in_a_region");
    "tasks: a task that a thread outside has claimed does not end", "src/wait/awaited.rs",
        "            self.ended += usize::from(outcome.is_end());\n"
        => "", Model("waits::a_scope_from_outside_versus");
    "tasks: a future that a thread outside has polled has ended", "src/wait/awaited.rs",
        "            self.ended += usize::from(outcome.is_end());\n"
        => "            self.ended += 1;\n", Test("scope", "futures::a_future_that_its_scope_outside");
    "tasks: a task that a thread outside claims ends before it runs", "src/wait/awaited.rs",
        "        self.begin(entry);\n        self.end(run());\n"
        => "        self.begin(entry);\n        let outcome = if self.worker.is_none() {\n            self.route.report_on_caller(1);\n            let outcome = run();\n            self.ended -= 1;\n            outcome\n        } else {\n            run()\n        };\n        self.end(outcome);\n", Model("waits::join_versus_a_scopes_task_outside");
    "tasks: a claimed task keeps its permit", "src/wait/awaited.rs",
        "        match entry {\n            Entry::TakenBack => shared.release_permit(),\n            Entry::Stale => shared.leave_entry(false),\n        }\n"
        => "", Test("handles", "releases_its_permit_when");
    "tasks: nested tasks that wait keep a permit each", "src/wait/awaited.rs",
        "        self.begin(entry);\n        self.end(run());\n"
        => "        self.begin(entry);\n        self.route.shared.acquire_over_limit();\n        self.end(run());\n        self.route.shared.release_permit();\n", Test("handles", "nested_waits_in_a_bounded");
    "tasks: a claim that finds nothing to run loses a permit", "src/wait/awaited.rs",
        "            Outcome::Skipped => {\n                shared.acquire_over_limit();\n"
        => "            Outcome::Skipped => {\n", Test("handles", "that_is_being_cancelled_releases");
    "wait: a waiting worker claims no task", "src/wait/awaited.rs",
        "WorkerContext::of_pool(origin.pool).filter(|_| may_nest())"
        => "WorkerContext::of_pool(origin.pool).filter(|_| false)", Model("waits::an_awaited_task_needs_no_thread");
    "wait: awaited tasks nest to the end of the stack", "src/thread/mod.rs",
        "here().abs_diff(self.base) < self.len"
        => "here().abs_diff(self.base) < self.len + (1 << 30)", Test("handles", "a_chain_on_small_stacks_ends");
    "wait: a chain of waits needs a thread that is refused", "src/thread/mod.rs",
        "self.size.is_some_and(|size| has_room(size) && is_thread_refused(size))"
        => "self.size.is_some_and(|size| has_room(size) && is_thread_refused(size) && false)", Test("law_07_refusal_proof", "a_chain_of_waits");
    "wait: a chain of waits uses up a stack although threads can be had", "src/thread/mod.rs",
        "            let _ = thread.join();\n            false\n"
        => "            let _ = thread.join();\n            true\n", Test("handles", "a_long_chain_leaves_half_of_the_stack");
    "wait: a thread outside nests scopes to the end of its stack", "src/thread/mod.rs",
        "        if is_outermost {"
        => "        if false {", Test("handles", "a_chain_of_scopes_outside_ends");
    "wait: an awaited task runs inside the executor of its waiter", "src/thread/mod.rs",
        "enter().is_err() && !is_own()"
        => "enter().is_err() && !is_own() && false", Test("handles", "may_enter_it");
    "wait: a completion that waits for a handle stays runnable", "src/sched/region.rs",
        "Poller::Wait(pending) if pending.get() > 0"
        => "Poller::Wait(pending) if pending.get() > usize::MAX - 1", Model("waits::a_completion_waits_for_a_handle");
    "race 7: a returning worker does not look again", "src/sched/compensate.rs",
        "        fence(Ordering::SeqCst);\n        self.admit_returning();\n        self.returning.wait"
        => "        self.returning.wait", Model("waits::a_return_versus_a_worker");
    "region: own waits are bounded as well", "src/sched/compensate.rs",
        "        kind == RegionKind::Own\n            || self.declared.fetch_add"
        => "        self.declared.fetch_add", Model("waits::a_wait_for_a_future_is_beyond_the_bound");
    "region: more than max_blocked are replaced", "src/sched/compensate.rs",
        "self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked"
        => "self.declared.fetch_add(1, Ordering::AcqRel) < usize::MAX", Test("workers", "max_blocked::");
    "limit: a blocked worker keeps its place", "src/sched/compensate.rs",
        "            owed = owed.and(shared.lend_place(self));\n"
        => "", Model("views::a_worker_of_a_limited_view");
    "limit: a worker that is not replaced keeps its place", "src/sched/compensate.rs",
        "            owed = owed.and(shared.lend_place(self));\n"
        => "            if shared.declared.load(Ordering::Relaxed) < shared.config.max_blocked {\n                owed = owed.and(shared.lend_place(self));\n            }\n", Test("views", "a_worker_that_takes_over");
    "report: a region is not seen", "src/sched/compensate.rs",
        "            observer.set_blocked(to.is_some());\n"
        => "            let _ = observer;\n", Test("interface", "a_task_that_waits_for_another");
    "region: the panic of a poll leaves its counter behind", "src/sched/region.rs",
        "            let _polls = PollScope::begin(poller.clone());\n"
        => "            std::mem::forget(PollScope::begin(poller.clone()));\n", Unit("region::tests::a_poll_that_panics");
    "join set: a second wait does not count for the worker's pool", "src/join_handle/set.rs",
        "        self.poll_wait.note_any(polled.is_pending(), pools, context.waker());\n"
        => "        _ = pools;\n", Test("handles", "a_worker_that_waits_again");
    "join set: a wait with a limit begins futures after it", "src/join_handle/set.rs",
        "            has_passed(deadline) || handle.run_if_unstarted()\n"
        => "            handle.run_if_unstarted()\n", Test("handles", "begins_no_future_after_the_limit");
    "join set: a handle that has returned its result stays", "src/join_handle/set.rs",
        "                drop(handles.remove(number));\n"
        => "", Test("handles", "is_removed_by_the_panic");
    "law 10: another poller of a shared handle ends the count", "src/sched/poll_wait.rs",
        "!known.will_wake(waker)"
        => "true | known.will_wake(waker)", Test("law_10_no_self_made_deadlock", "a_shared_handle");
    "law 10: a shared handle keeps all waits that were", "src/sched/poll_wait.rs",
        "            self.waits.retain(|known| known.strong_count() > 0);\n"
        => "", Unit("poll_wait::tests::waits_that_are_over");
    "law 10: a set that another thread polls again counts no more", "src/sched/poll_wait.rs",
        "        self.count(is_pending, || pools.any(works_for), waker);\n"
        => "        if !has_waits() {\n            self.end();\n        }\n        self.count(is_pending, || pools.any(works_for), waker);\n", Test("law_10_no_self_made_deadlock", "a_shared_set");
    "law 10: a scope's task may wait for its own handle", "src/scope.rs",
        "if self.tasks.is_own(id) {"
        => "if false && self.tasks.is_own(id) {", Test("scope", "waits_for_its_own_handle");
    "law 10: a wait with a limit for one's own end takes the time", "src/join_handle/waiting.rs",
        "        if self.task.as_ref().is_some_and(is_own_task) {"
        => "        if deadline.is_none() && self.task.as_ref().is_some_and(is_own_task) {", Test("handles", "a_task_that_waits_for_its_own_handle");
    "capacity: a start hook waits for it", "src/sched/context.rs",
        "worker().is_some_and(|worker| worker.runs_tasks.get());\n    !runs_tasks"
        => "worker().is_some();\n    !runs_tasks", Test("async_code", "a_start_hook_exceeds");
};
