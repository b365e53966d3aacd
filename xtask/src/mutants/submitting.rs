//! Accepting a task, the bounded queue, and what is counted outside the workers.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "race 1: no fence between push and counts", "src/submit/mod.rs",
        "        fence(Ordering::SeqCst);\n        let now = shared.counts.load();\n        if now.total() < shared.sizes.core() || shared.may_run"
        => "        let now = shared.counts.load();\n        if now.total() < shared.sizes.core() || shared.may_run", Model("notify::submit_versus_idle");
    "race 4: the last worker is not rechecked", "src/submit/caller.rs",
        "if status.is_quiet() && self.shared.counts.load().total() == 1 {"
        => "if false {", Model("futures::an_abandoned_future");
    "shutdown_now: the caller drops the futures", "src/control.rs",
        "Withdrawal::Cancel => started.push(ViewJob { job, view }),"
        => "Withdrawal::Cancel => route.run_on_caller(job),", Test("law_02_settled", "shutdown_now_is_called_under");
    "capacity: a granted submitter is not woken", "src/flight/capacity.rs",
        "        if granted.send(()).is_err() {"
        => "        if (mem::forget(granted), false).1 {", Model("capacity::submit_versus_a_full_queue");
    "capacity: a permit for a submitter that has just given up is lost", "src/flight/capacity.rs",
        "            self.word.fetch_and(!waking, Ordering::AcqRel);\n            self.release(sizes);\n"
        => "            let _ = sizes;\n", Unit("capacity::tests::a_permit_for_a_submitter_that_has_just");
    "race 29: a submitter that has woken up grants no permit", "src/flight/capacity.rs",
        "            self.grant(sizes);\n            return true;\n"
        => "            return true;\n", Model("capacity::each_free_permit_is_granted");
    "race 29: a submitter looks for a permit for the next one before it clears the flag", "src/flight/capacity.rs",
        "            self.word.fetch_and(!WAKING, Ordering::AcqRel);\n            self.grant(sizes);\n"
        => "            self.grant(sizes);\n            self.word.fetch_and(!WAKING, Ordering::AcqRel);\n",
        Model("capacity::each_free_permit_is_granted");
    "capacity: a release grants its permit while a submitter wakes up", "src/flight/capacity.rs",
        "        if is_reserved(before) {"
        => "        if before & AWAITED != 0 {", Unit("capacity::tests::a_free_permit_is_for_anyone");
    "capacity: a submitter that gives up takes no free permit", "src/flight/capacity.rs",
        "        // One may be free: another submitter wakes up.\n        self.try_acquire(sizes)\n"
        => "        false\n", Unit("capacity::tests::a_submitter_that_gives_up");
    "capacity: a submitter that gives up overtakes another one", "src/flight/capacity.rs",
        "        // One may be free: another submitter wakes up.\n        self.try_acquire(sizes)\n"
        => "        self.acquire_unless(|_| false, sizes)\n", Unit("capacity::tests::the_first_submitter");
    "race 29: a submission overtakes a waiting submitter", "src/flight/capacity.rs",
        "self.acquire_unless(is_reserved, sizes)"
        => "self.acquire_unless(|_| false, sizes)", Unit("capacity::tests::a_submission_overtakes_no_submitter");
    "race 29: a waiting submitter sets no flag", "src/flight/capacity.rs",
        "        self.word.fetch_or(AWAITED, Ordering::AcqRel);\n"
        => "", Model("capacity::submit_versus_a_full_queue");
    "race 29: a submitter waits without a look after it has set the flag", "src/flight/capacity.rs",
        "        self.grant_locked(submitters, sizes);\n        granted\n"
        => "        let _ = sizes;\n        granted\n", Model("capacity::submit_versus_a_full_queue");
    "race 29: a released permit is not granted", "src/flight/capacity.rs",
        "        if is_reserved(before) {\n            self.grant(sizes);\n"
        => "        if is_reserved(before) {\n            let _ = sizes;\n", Unit("capacity::tests::waiting_submitters");
    "capacity: the flag stays when no submitter waits", "src/flight/capacity.rs",
        "        if submitters.is_empty() {\n"
        => "        if submitters.is_empty() && false {\n", Unit("capacity::tests::the_flag_is_set_while_submitters_wait");
    "capacity: an unlimited capacity wraps around", "src/flight/capacity.rs",
        ".saturating_add(sizes.limit())"
        => ".wrapping_add(sizes.limit())", Unit("capacity::tests::there_is_a_permit_for_each_unit");
    "capacity: a close does not wake the waiting submitters", "src/flight/capacity.rs",
        "        drop(refused);\n"
        => "        mem::forget(refused);\n", Model("capacity::close_versus_a_full_queue");
    "law 10: a join from inside is not refused", "src/control.rs",
        "            Caller::Busy => true,\n"
        => "            Caller::Busy => false,\n", Test("law_10_no_self_made_deadlock", "waits_for_its_pool");
    "law 10: a join from inside returns without a word", "src/control.rs",
        "            thread::panicking(),\n            \"`{what}` was called by one of the tasks"
        => "            true,\n            \"`{what}` was called by one of the tasks", Test("law_10_no_self_made_deadlock", "waits_for_its_pool");
    "law 10: a stop hook waits for what may wait for it", "src/control.rs",
        "!stop_hook_may && worker_index().is_some()"
        => "false", Test("shutdown", "stop_hook");
    "destructors: a join panics while its thread unwinds", "src/control.rs",
        "            thread::panicking(),\n            \"`{what}` was called by one of the tasks"
        => "            false,\n            \"`{what}` was called by one of the tasks", Test("shutdown", "destructors::");
    "destructors: a join panics in that of a thread-local", "src/control.rs",
        "!stop_hook_may && worker_index().is_some()"
        => "!stop_hook_may", Test("shutdown", "thread_local");
    "destructors: no wait while the thread unwinds", "src/control.rs",
        "            Caller::Outside => false,\n"
        => "            Caller::Outside => thread::panicking(),\n", Test("shutdown", "wait_for_others");
    "surplus: an entry that a task relies on counts as stale", "src/submit/mod.rs",
        "                self.route.drop_entries(context.as_deref(), 1);\n"
        => "", Unit("scope::tests::scopes_outside_leave_few");
    "surplus: no worker is notified of a task that relies on an entry", "src/submit/mod.rs",
        "                self.route.drop_entries(context.as_deref(), 1);\n                self.route.notify_queued(fills_core);\n"
        => "                _ = fills_core;\n", Unit("pool::tests::a_task_that_relies_on_an_entry");
    "context: no worker is notified of a task that a task has submitted", "src/submit/mod.rs",
        "        self.notify_queued(true);\n        Ok(())"
        => "        Ok(())", Model("local_queues::a_task_submits_another_versus_idle");
    "woken first: a wake by a task stays on its worker", "src/submit/mod.rs",
        "WorkerContext::current(self.shared).filter(|_| job.is_new())"
        => "WorkerContext::current(self.shared)", Test("async_code", "a_busy_one_has_woken");
    "submit: a task that was refused while it waited for its permit runs", "src/submit/mod.rs",
        "            self.acquire_permit(capacity, patience)?;\n"
        => "            _ = self.acquire_permit(capacity, patience);\n", Test("queues", "bounded_queue::");
    "submit: the time in the queue begins before the wait for capacity", "src/submit/mod.rs",
        "        match self.accept(Patience::Endless, line) {\n            Ok(accepted) => {\n"
        => "        let job = job.with_route(TaskRoute::own(self, line, false));\n        match self.accept(Patience::Endless, line) {\n            Ok(accepted) => {\n", Test("views", "a_wait_for_capacity_does_not_count");
    "submit: the permit of a task that is refused is lost", "src/submit/mod.rs",
        "                self.shared.release_permit();\n                Err(refusal)\n"
        => "                Err(refusal)\n", Model("views::close_of_a_view_versus_a_bounded_queue");
    "submit: the first task of an idle pool starts no worker", "src/submit/mod.rs",
        "                if shared.counts.load().total() < shared.sizes.core().max(1) {"
        => "                if false {", Test("law_07_refusal_proof", "first_worker");
    "submit: a closure bypasses a bounded queue", "src/submit/mod.rs",
        "        if shared.capacity.is_some() || self.view.is_some() || !shared.observers.is_empty() {"
        => "        if self.view.is_some() || !shared.observers.is_empty() {", Test("queues", "closing::closing_rejects_waiting");
    "submit: a closure bypasses its view", "src/submit/mod.rs",
        "        if shared.capacity.is_some() || self.view.is_some() || !shared.observers.is_empty() {"
        => "        if shared.capacity.is_some() {", Test("views", "counts_are_those");
    "race 8: a canceller keeps the permit", "src/submit/caller.rs",
        "        if moment == (Moment::TakenFromQueue { is_new: true }) {\n"
        => "        if false {\n", Test("handles", "gives_its_permit_back");
    "race 8: an immediate shutdown releases the permit of a stale entry", "src/submit/caller.rs",
        "                shared.release_permits_of_entries(1);\n            }\n            self.end_on_caller"
        => "                shared.release_permit();\n            }\n            self.end_on_caller", Test("handles", "an_immediate_shutdown_skips");
    "capacity: cancelled tasks leave any number of entries", "src/flight/capacity.rs",
        "        let is_kept = is_cancelled && is_full;\n"
        => "        let is_kept = is_cancelled && is_full && self.capacity == usize::MAX;\n", Test("queues", "entries_of_cancelled_tasks");
    "capacity: an entry keeps a permit for good", "src/sched/context.rs",
        "                self.shared.release_permits_of_entries(1);\n"
        => "", Model("capacity::a_cancelled_task_versus_its_entry");
    "capacity: an entry that is taken too early is not counted", "src/flight/capacity.rs",
        "        stale.entries -= count as isize;\n"
        => "        stale.entries = (stale.entries - count as isize).max(0);\n", Model("capacity::a_cancelled_task_versus_its_entry");
    "cancel: drops nest without bound", "src/submit/caller.rs",
        "        caller_depth() < MAX_DEPTH\n"
        => "        caller_depth() < usize::MAX\n", Test("handles", "does_not_nest");
    "cancel: a canceller of a group keeps the permits", "src/submit/caller.rs",
        "        let begin = &mut |_| self.begin_cancelled(Moment::TakenFromQueue { is_new: true });\n"
        => "        let begin = &mut |_| self.count_on_caller(&WorkerMetrics::count_begin);\n", Test("groups", "releases_the_permits");
    "errors: a handle does not say that the pool was closed", "src/join_handle.rs",
        "        mailbox.delivered = Some(Box::new(Err(error)));\n"
        => "        let _ = (mailbox, error);\n", Test("law_02_settled", "what_a_closed_pool");
    "context: notifying of a deferred task of a group waits for the end of a poll", "src/submit/mod.rs",
        "            Some(context) => context.push(&shared.queue, kind, job),\n            None =>"
        => "            Some(context) if context.is_in_poll() => return context.push(&shared.queue, kind, job),\n            Some(context) => context.push(&shared.queue, kind, job),\n            None =>", Test("queues", "lets_into_its_group");
    "scope: no worker is notified of what a worker's scope submits", "src/submit/mod.rs",
        "            None => shared.queue.push(kind, job),\n        }\n        self.notify_queued(fills_core);\n"
        => "            None => shared.queue.push(kind, job),\n        }\n        _ = fills_core;\n", Model("waits::tasks_of_a_workers_scope_need");
    "wait: an entry that was taken back counts as stale", "src/crew/metrics.rs",
        "        if entry == Entry::Stale {\n            self.add(Count::Stale, 1);\n        }\n"
        => "        let _ = entry;\n        self.add(Count::Stale, 1);\n", Test("memory", "memory_is_given_back");
    "race 10: a submitter waits for a permit of a view that is closed", "src/submit/mod.rs",
        "if shared.in_flight.is_closed() || self.is_view_closed() {"
        => "if false {", Model("views::close_of_a_view_versus_a_full_queue");
    "capacity: any number of workers waits for it", "src/flight/capacity.rs",
        "(others < sizes.max().min(sizes.wanted_awake())).then_some(wait)"
        => "(others < sizes.wanted_awake()).then_some(wait)", Test("queues", "own_queue");
    "capacity: in a pool that measures, as many workers wait for it as may ever run", "src/flight/capacity.rs",
        "(others < sizes.max().min(sizes.wanted_awake())).then_some(wait)"
        => "(others < sizes.max()).then_some(wait)", Model("measured::a_worker_does_not_wait"), Test("growth", "tasks_that_submit");
    "capacity: a worker has waited for it for good", "src/flight/capacity.rs",
        "OnDrop(|| _ = self.0.subtract(1))"
        => "OnDrop(|| ())", Test("queues", "own_queue");
    "capacity: a refused submitter stays in the queue", "src/flight/capacity.rs",
        "all.partition(is_refused);"
        => "all.partition(|submitter| !is_refused(submitter));", Unit("capacity::tests::a_submitter_to_a_closed_view");
    "a full queue hides that the view is closed", "src/submit/mod.rs",
        "        } else if self.is_view_closed() {\n"
        => "        } else if false {\n", Test("views", "a_closed_view_of_a_full_pool");
    "timeout: an expired task counts as cancelled", "src/crew/metrics.rs",
        "Outcome::Expired => Count::Expired,"
        => "Outcome::Expired => Count::Cancelled,", Test("views", "a_task_that_is_late_is_dropped");
    "report: a task that was handed back stays in it", "src/control.rs",
        "            observer.forget_queued();\n"
        => "            let _ = observer;\n", Test("interface", "a_task_that_was_handed_back");
    "large task: it is moved without a box, which overflows a stack in an unoptimised build", "src/submit/mod.rs",
        "    size_of::<F>() > MAX_MOVED_SIZE\n"
        => "    size_of::<F>() > usize::MAX\n", Test("queues", "large_tasks::");
    "large task: the limit is another one", "src/submit/mod.rs",
        "const MAX_MOVED_SIZE: usize = 2048;"
        => "const MAX_MOVED_SIZE: usize = 4096;", Test("allocations", "");
    "race 8: a task that a canceller has ended ends again on the caller", "src/submit/caller.rs",
        "drop_task().unless_skipped() else"
        => "drop_task().unless_skipped().or(Some(Outcome::Cancelled)) else", Test("law_07_refusal_proof", "a_future_that_is_cancelled_during");
};
