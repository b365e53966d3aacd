//! Scopes, groups and cancellation tokens.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "law 10: a wait for the own group does not panic", "src/group/state.rs",
        "!is_own || thread::panicking()"
        => "true", Test("groups", "a_task_that_waits_for_its_own_group");
    "destructors: a task's wait for its own group panics while it unwinds", "src/group/state.rs",
        "!is_own || thread::panicking()"
        => "!is_own", Test("shutdown", "group");
    "destructors: an unwinding thread does not wait for other groups", "src/group/state.rs",
        "        is_own\n    }"
        => "        is_own || thread::panicking()\n    }", Test("shutdown", "another_group");
    "destructors: a limited wait for the own group waits", "src/group/wait.rs",
        "        if is_inside(self.inner.id()) {\n            return None;"
        => "        if false {\n            return None;", Test("groups", "with_a_limit");
    "scope: a waiting scope is not woken", "src/task/unstarted.rs",
        "        state.waiter = Some(waker.clone());\n"
        => "", Model("groups::the_end_of_a_scope_whose");
    "scope: a task that another thread runs has ended", "src/task/unstarted.rs",
        "        state.running += 1;\n        TakenTask { task, list: self, is_counted: true }"
        => "        state.running = 0;\n        TakenTask { task, list: self, is_counted: false }", Model("groups::the_end_of_a_scope_whose");
    "scope: the last task on another thread does not wake the scope", "src/task/unstarted.rs",
        "    let is_awaited = state.unfinished() == 0 || state.must_cancel();"
        => "    let is_awaited = state.must_cancel();", Model("groups::the_end_of_a_scope_whose");
    "scope: a task is given up before it is run", "src/task/unstarted.rs",
        "        let outcome = run(job);\n"
        => "        let _ = list.end_one(is_counted, reporter != Reporter::Scope, Outcome::Completed);\n        let outcome = run(job);\n        return outcome;\n", Model("groups::the_end_of_a_scope_whose");
    "scope: a future that waits to be woken has ended", "src/task/unstarted.rs",
        "        if reporter == Reporter::Future {\n            return outcome;"
        => "        if false {\n            return outcome;", Model("futures::the_end_of_a_scope_versus_a_wake");
    "scope: a future that the scope's own thread starts does not count", "src/task/unstarted.rs",
        "        state.running += usize::from(task.reporter == Reporter::Future);\n"
        => "        state.running += usize::from(task.reporter == Reporter::Future && state.waiter.is_some());\n", Model("futures::the_end_of_a_scope_versus_a_wake");
    "race 24: a future is pending in a scope that panics", "src/task/unstarted.rs",
        "(!state.is_cancelled).then(||"
        => "(!state.is_cancelled || self.key.is_none()).then(||", Model("futures::a_scope_that_panics_versus_a_poll");
    "scope: its futures are not cancelled if it panics", "src/task/unstarted.rs",
        "        if self.must_cancel() {\n"
        => "        if self.must_cancel() && self.waiter.is_some() {\n", Model("futures::a_scope_that_panics_versus_a_poll");
    "scope: a panic does not wake the thread that cancels the futures", "src/task/unstarted.rs",
        "state.unfinished() == 0 || state.must_cancel();"
        => "state.unfinished() == 0;", Test("scope", "hostile::a_panic_wakes_the_scopes_thread");
    "scope: a panic cancels no future while the scope's thread runs a task", "src/task/unstarted.rs",
        "    if waiter.is_none() && state.must_cancel() {"
        => "    if false {", Test("scope", "hostile::a_panic_of_a_task_cancels_a_future_for");
    "scope: its thread runs a task before it cancels the futures", "src/task/unstarted.rs",
        "        state.is_body_over = true;\n        if state.has_failed {"
        => "        if state.has_failed {", Test("scope", "hostile::a_panic_of_the_body_cancels_a_future_for");
    "scope: a lost task cancels no future", "src/task/unstarted.rs",
        "            state.has_failed = true;\n            state.record.lost"
        => "            state.record.lost", Test("scope", "hostile::a_lost_task");
    "scope: a future is dropped before the others are cancelled", "src/submit/caller.rs",
        "        mark_cancelled(futures);\n"
        => "", Test("scope", "hostile::a_destructor_waits");
    "scope: a closure's handle resolves before what is dropped with it", "src/scope.rs",
        "    let parts = (task, Contained::new(promise));\n    move || deliver(parts)"
        => "    let parts = (Contained::new(promise), task);\n    move || deliver((parts.1, parts.0))", Model("groups::shutdown_now_versus_a_scope");
    "scope: a waker panics while a destructor unwinds", "src/sync/unwind.rs",
        "        discard(self.0.take());"
        => "        drop(self.0.take());", Test("law_06_panic_proof", "a_destructor_and_a_waker");
    "scope: a future's handle resolves before the future is dropped", "src/scope.rs",
        "            quietly(|| future.set(None));\n"
        => "", Test("scope", "futures::a_handle_resolves_after");
    "surplus: a task relies on an entry that a worker has taken", "src/task/unstarted.rs",
        "                state.surplus -= 1;\n                None"
        => "                None", Model("groups::two_tasks_rely_on_one_entry");
    "surplus: beside a busy worker scopes leave ever more entries", "src/task/unstarted.rs",
        "state.surplus.checked_sub(1) {"
        => "state.surplus.checked_sub(1).filter(|_| false) {", Unit("scope::tests::scopes_outside_leave_few");
    "surplus: a list with entries is not kept", "src/scope.rs",
        "            if !tasks.has_surplus() {\n                return;\n            }\n"
        => "            return;\n", Unit("scope::tests::a_list_with_entries");
    "surplus: a list with entries of another pool is used", "src/scope.rs",
        "rposition(|(of, _)| *of == queue);"
        => "rposition(|(of, _)| *of == queue || true);", Test("scope", "opened_in::after_a_scope_of_another_pool");
    "for_each: no task is added when more workers may run", "src/scope.rs",
        "self.tasks < wanted && "
        => "self.tasks == 0 && self.tasks < wanted && ", Test("scope", "items_that_wait_are_divided");
    "for_each: a further task that is not accepted counts as rejected", "src/scope.rs",
        "self.route().accept_uncounted(" => "self.route().accept(", Test("scope", "further_tasks_that_are_not_accepted");
    "for_each: a task takes its share at once", "src/scope.rs",
        "if sizes.limit() < sizes.max() {"
        => "if false {", Test("scope", "items_that_wait_are_divided");
    "scope: a list keeps its memory however large it is", "src/task/unstarted.rs",
        "        self.tasks.shrink_to(KEPT_TASKS);\n"
        => "", Unit("unstarted::tests::a_large_list");
    "scope: a task is given away", "src/task/unstarted.rs",
        "        Withdrawal::Abandon\n"
        => "        Withdrawal::HandBack\n", Model("groups::shutdown_now_versus_a_scope");
    "group: the last task does not end the round", "src/group/state.rs",
        "        self.grant(after);\n        self.settle(after);\n"
        => "        self.grant(after);\n", Model("groups::the_wait_for_a_group");
    "group: a released slot is not granted to the queue", "src/group/state.rs",
        "        self.grant(after);\n        self.settle(after);\n"
        => "        self.settle(after);\n", Model("groups::a_full_group_versus_the_end");
    "group: the limit is ignored", "src/group/state.rs",
        "        self.slots >= self.limit\n"
        => "        false\n", Model("groups::a_full_group_versus_the_end");
    "group: no waiter receives the errors", "src/group/state.rs",
        "let own = errors.take().or_else(|| is_clean.then(Vec::new));"
        => "let own = errors.take().map(|_| Vec::new()).or_else(|| is_clean.then(Vec::new));", Model("groups::two_wait_for_an_error");
    "group: a cancel does not refuse the waiting submitters", "src/group/state.rs",
        "Effect::Refuse(Queued::Submitter(submitter)) => drop(submitter),"
        => "Effect::Refuse(Queued::Submitter(submitter)) => mem::forget(submitter),", Model("groups::a_full_group_versus_cancel");
    "group: a cancel does not drop the deferred tasks", "src/group/state.rs",
        "                    after.push(Effect::Unstarted(job));\n"
        => "                    mem::forget(job);\n", Model("groups::a_task_in_line_versus_cancel");
    "group: a canceller takes all unstarted tasks at once", "src/task/unstarted.rs",
        "        iter::from_fn(|| self.remove(|_| Some(0)))\n"
        => "        iter::from_fn(|| self.remove(|_| Some(0))).collect::<Vec<_>>().into_iter()\n",
        Test("groups", "a_destructor_may_wait_for_another_task");
    "group: a canceller cancels pending futures one after the other", "src/submit/caller.rs",
        "        mark_cancelled(futures);\n" => "", Test("groups", "a_destructor_may_wait_for_another_future");
    "group: a future is registered without a check of the token", "src/group/state.rs",
        "(!self.token.is_cancelled()).then(|| self.pending.insert(future))"
        => "Some(self.pending.insert(future))", Model("groups::cancel_versus_a_future_of_a_group");
    "group: a cancel does not reach pending futures", "src/group/state.rs",
        "        after.push(Effect::Cancel(self.pending.drain()));\n"
        => "", Model("groups::a_failure_versus_a_future");
    "token: no look under the lock", "src/token.rs",
        "        if self.token.is_cancelled() {\n            self.place = None;"
        => "        if false {\n            self.place = None;", Model("groups::cancelled_versus_cancel");
    "group: a panic that a handle has received does not cancel", "src/group/state.rs",
        "            TaskEnd::PanickedForHandle => {\n                self.is_incomplete = true;\n                true\n"
        => "            TaskEnd::PanickedForHandle => {\n                self.is_incomplete = true;\n                false\n", Test("groups", "a_panic_cancels");
    "group: a panic that a handle has received is not reported", "src/group/state.rs",
        "            TaskEnd::PanickedForHandle => {\n                self.is_incomplete = true;\n"
        => "            TaskEnd::PanickedForHandle => {\n", Test("groups", "a_panic_cancels");
    "group: a task that its handle has cancelled fails the group", "src/group/state.rs",
        "                !has_handle\n            }\n"
        => "                true\n            }\n", Test("groups", "cancelling_a_handle");
    "group: a panic is lost with its handle", "src/group/member.rs",
        "                    (Outcome::Panicked(None), TaskEnd::panicked(payload))\n                }\n"
        => "                    drop(payload);\n                    (Outcome::Panicked(None), TaskEnd::PanickedForHandle)\n                }\n", Test("groups", "handle_is_gone");
    "group: the waiter runs a task that has no slot", "src/group/submit.rs",
        "            let _ = job.withdraw();\n"
        => "", Test("groups", "in_line");
    "group: a cancelled group runs closures with handles", "src/group/member.rs",
        "        self.token.is_cancelled()\n"
        => "        self.token.is_cancelled() && false\n", Test("groups", "deep_inside_destructors");
    "race 48: a submitter does not look for a cancellation again", "src/group/submit.rs",
        "        inner.drop_if_late(id, &token);\n"
        => "        let _ = (&token, id);\n", Model("groups::cancel_versus_a_late_task");
    "race 48: a round ends while its canceller takes its tasks", "src/group/state.rs",
        "self.slots == 0 && !self.is_dropping"
        => "self.slots == 0", Model("groups::the_next_round_versus_cancel");
    "group: a canceller leaves the unstarted tasks to workers", "src/group/state.rs",
        "                if Route::may_drop_cancelled() {\n                    inner.route().cancel_all("
        => "                if false {\n                    inner.route().cancel_all(", Model("groups::cancel_versus_its_worker");
    "cancel: a task stays in line for a slot", "src/group/state.rs",
        "if !self.update(|state, after| state.leave_queue(task, after)) {"
        => "if true {", Test("groups", "that_wait_in_line");
    "cancel: a task that leaves its line gives back a slot that it never had", "src/group/state.rs",
        "        self.slots += usize::from(matches!(queued, Queued::Deferred(_)));\n"
        => "", Test("groups", "that_wait_in_line");
    "cancel: a task that has waited for a slot stays until a worker comes", "src/group/state.rs",
        "            self.route().cancel_all(job.into_iter());\n        }"
        => "            let _ = job;\n        }", Test("groups", "that_wait_in_line");
    "group: an unclaimed value is dropped outside the group's code", "src/group/member.rs",
        "match self.call(|| settle(promise, result)) {"
        => "match off_trampoline(|| settle(promise, result)) {", Test("groups", "unclaimed_value");
    "group: the slot of a dropped task is free before its handle resolves", "src/group/member.rs",
        "        off_trampoline(|| discard(promise));\n        self.inner.end_task(mem::replace(&mut self.end, TaskEnd::Delivered), self.entry.take());\n"
        => "        self.inner.end_task(mem::replace(&mut self.end, TaskEnd::Delivered), self.entry.take());\n        off_trampoline(|| discard(promise));\n", Test("groups", "the_handle_of_a_dropped_task");
    "group: a dropped task calls its handle's waker on the trampoline", "src/group/member.rs",
        "        off_trampoline(|| discard(promise));\n"
        => "        discard(promise);\n", Test("groups", "a_waker_that_a_dropped_task_calls");
    "wait: an entry is skipped that has a task", "src/task/unstarted.rs",
        "let is_surplus = state.surplus > 0;"
        => "let is_surplus = true;", Unit("unstarted::tests::each_task");
    "wait: an entry that was taken back is still counted", "src/task/unstarted.rs",
        "            return Entry::TakenBack;\n"
        => "            state.surplus += 1;\n            return Entry::TakenBack;\n", Unit("unstarted::tests::an_entry_that_was_taken_back");
    "wait: a wait with a limit begins a task after it", "src/group/wait.rs",
        "!quiet.is_over() && !has_passed(deadline)"
        => "!quiet.is_over()", Test("handles", "a_wait_with_a_limit_begins_no_task_after_it");
    "limit of a group: any number of workers waits for a slot", "src/group/submit.rs",
        "route.begin_own_wait().map(|wait| own_wait = wait).is_err()"
        => "(route.begin_own_wait().map(|wait| own_wait = wait).is_err() && false)", Test("groups", "a_bounded_number_of_threads");
    "race: a failure cancels it", "src/group.rs",
        "(state.races, state.keeps_going) = (true, true);"
        => "state.races = true;", Test("groups", "errors_and_panics_cancel_nothing");
    "race: a late success wins", "src/group/state.rs",
        "if self.races && !self.token.is_cancelled() {"
        => "if self.races {", Test("groups", "a_cancelled_race_is_not_won_later");
    "race: the losers' errors are returned", "src/group/state.rs",
        "let lost = if self.has_won { mem::take(&mut self.failures) } else { Vec::new() };"
        => "let lost = Vec::new();", Test("groups", "errors_and_panics_cancel_nothing");
    "deadline: it cancels nothing before a submission", "src/sched/keeper.rs",
        "            self.deadlines.add((at, of), what);\n            self.keeper.ask(KeeperJob::Deadlines, at);\n"
        => "            self.deadlines.add((at, of), what);\n", Test("groups", "it_cancels_the_group_beside_a_busy_worker");
    "deadline: only the first one comes", "src/sched/keeper.rs",
        "        if let Some(at) = next {\n            self.keeper.ask(KeeperJob::Deadlines, at);\n"
        => "        if let Some(at) = next {\n            let _ = at;\n", Test("groups", "each_group_has_its_own");
    "deadline: without a keeper a late task is accepted", "src/group/state.rs",
        "            state.expire(after);\n            if state"
        => "            let _ = &after;\n            if state", Test("groups", "a_deadline_that_has_passed");
    "deadline: that of a dropped group stays", "src/group/state.rs",
        "        self.route().shared.set_deadline(self.id(), deadline, None);\n"
        => "        let _ = deadline;\n", Unit("due::tests::a_group_that_is_dropped");
    "surplus: a task of a group that ran on its waiter stays in the list", "src/wait/awaited.rs",
        "    if let Some((group, Some(id))) = origin.line() {\n"
        => "    if let Some((group, Some(id))) = origin.line().filter(|_| false) {\n", Test("memory", "memory_is_given_back");
    "surplus: a task of a group that was cancelled stays in the list", "src/submit/caller.rs",
        "        Some((group, Some(id))) if is_dropped =>"
        => "        Some((group, Some(id))) if is_dropped && id.get() == 0 =>", Test("memory", "memory_is_given_back");
    "join set: its drop cancels nothing", "src/join_handle/set.rs",
        "    fn drop(&mut self) {\n        self.cancel_all();\n"
        => "    fn drop(&mut self) {\n", Test("handles", "dropping_it_cancels");
    "token: that of a group does not cancel the group", "src/group/wait.rs",
        "        token.set_owner(inner);\n"
        => "        drop(inner);\n", Test("groups", "the_token_of_a_group");
    "token: that of an earlier round cancels the group", "src/group/state.rs",
        "if state.token.is_same(token) {"
        => "if token.is_cancelled() || state.token.is_same(token) {", Test("groups", "the_token_of_a_group");
    "token: its wakers run on the trampoline", "src/token.rs",
        "            off_trampoline(|| quietly(|| waker.wake()));\n"
        => "            quietly(|| waker.wake());\n", Test("groups", "a_waker_that_a_dropped_task_calls");
};
