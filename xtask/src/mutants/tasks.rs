//! Closures, futures, handles, and what is kept beside a task.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "a wake during a poll is lost", "src/task/state.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        before == IDLE"
        => "            other => other,\n        });\n        before == IDLE", Model("futures::wake_versus_poll");
    "the poll that a wake leads to does not see what the waker wrote", "src/task/state.rs",
        "match self.change(|now| Some(next(now & STATE) | (now & !STATE))) {"
        => "match self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(next(now & STATE) | (now & !STATE))) {", Model("futures::two_wakers");
    "race 46: no worker is told that the last waker of a future is gone", "src/task/state.rs",
        "Some(if is_abandoned(rest) { rest + (SCHEDULED | CANCELLED) } else { rest })"
        => "Some(rest + (SCHEDULED & 0))", Model("futures::the_last_wakers_versus_a_poll");
    "race 46: the drop of the last waker cancels a future in a second step", "src/task/state.rs",
        "        match self.change(change).map(|before| before - ONE_WAKER) {"
        => "        let rest = self.word.fetch_sub(ONE_WAKER, Ordering::AcqRel) - ONE_WAKER;\n        if is_abandoned(rest) {\n            self.word.fetch_or(SCHEDULED | CANCELLED, Ordering::AcqRel);\n        }\n        let _ = change;\n        match Ok::<_, u32>(rest) {", Model("futures::the_last_waker_versus_cancel");
    "race 46: a poll that keeps no waker leaves the future pending", "src/task/state.rs",
        "RUNNING if now >= ONE_WAKER => Some("
        => "RUNNING => Some(", Unit("future_cell::tests::a_poll_that_keeps_no_waker");
    "race 46: a waker frees a task that its owner still uses", "src/task/state.rs",
        "Ok(rest) if rest & HAS_LEFT != 0 && rest"
        => "Ok(rest) if rest & DONE != 0 && rest", Unit("future_cell::tests::the_last_waker_of_an_ended");
    "race 46: an owner frees a task that has a waker", "src/task/state.rs",
        "self.word.load(Ordering::Acquire) >= ONE_WAKER"
        => "self.word.load(Ordering::Acquire) == ONE_WAKER - 1", Unit("future_cell::tests::the_last_waker_of_an_ended");
    "waker: the last reference does not see a waker", "src/task/state.rs",
        "        latest!(self.word) >= ONE_WAKER\n"
        => "        latest!(self.word) >= u32::MAX\n", Unit("future_cell::tests::the_last_waker_of_an_ended");
    "waker: a count that is full goes on", "src/task/state.rs",
        "            self.word.fetch_sub(ONE_WAKER, Ordering::Relaxed);\n"
        => "", Unit("future_cell::tests::more_wakers_than");
    "abort handle: it does not find a task that waits for a slot", "src/sched/route.rs",
        "(rare.view.clone(), rare.expiry.clone(), rare.line.clone());"
        => "(rare.view.clone(), rare.expiry.clone(), None);", Test("handles", "a_task_that_waits_for_a_slot");
    "abort handle: it does not know the view", "src/sched/route.rs",
        "            Box::new(Rare { view, expiry, line, ..Rare::default() })"
        => "            drop(view);\n            Box::new(Rare { expiry, line, ..Rare::default() })", Test("handles", "it_cancels_what_has_not_been_started");
    "cancel on drop: the handle only detaches", "src/join_handle/abort.rs",
        "OnDrop(move || abort.cancel())"
        => "OnDrop(move || _ = &abort)", Test("handles", "a_dropped_handle_cancels");
    "cancel on drop: a second call drops the first guard", "src/sched/route.rs",
        ".on_drop.get_or_insert_with(on_drop);"
        => ".on_drop = Some(on_drop());", Test("handles", "a_handle_may_be_asked_to_cancel_twice");
    "current: a claimed task sees the view of its waiter", "src/sched/place.rs",
        "marks: (enter_task(self, view), running)"
        => "marks: (enter_task(self, view).filter(|_| false), running)", Test("workers", "an_awaited_task_sees_its_own_view");
    "current: a claimed task of the default view sees that of a task below", "src/sched/context.rs",
        "if view.is_none() && !has_task && works_for"
        => "if view.is_none() && works_for", Test("workers", "an_awaited_task_sees_its_own_view");
    "current: a thread outside sees no pool", "src/sched/context.rs",
        "_task: enter_task(shared, view), _running"
        => "_task: enter_task(shared, view).filter(|_| false), _running", Test("workers", "a_thread_outside_sees_the_pool");
    "current: a task of a view sees the default view", "src/sched/worker.rs",
        "        replace_task(Some(task));\n        let mut outcome = job.run_in_place();\n        let ended = replace_task(None).and_then(|task| task.view);"
        => "        let mut outcome = job.run_in_place();\n        let ended = Some(task).and_then(|task| task.view);", Test("workers", "a_task_of_a_view_sees_the_view");
    "context: closures have none", "src/builder.rs",
        "        enable_wrapping();\n        self.hooks.observers" => "        self.hooks.observers", Test("workers", "task_context::");
    "expiry: a timeout that is set later ends the submitter", "src/view.rs",
        "        enable_wrapping();\n        // Before" => "        // Before", Test("views", "another_queue_timeout");
    "context: that of an ended future stays until its last waker is dropped", "src/observe/observer.rs",
        "        let context = self.0.lock().take();\n"
        => "        let context = self.0.lock().as_ref().filter(|_| false).cloned();\n", Test("workers", "is_dropped_when_its_future_ends");
    "an owner reaches the future of another cell", "src/task/future_cell.rs",
        "        assert!(ptr::eq(self.0, header), \"the owner of another future\");\n"
        => "        _ = header;\n", Unit("future_cell::tests::an_owner_reaches_no_other_future");
    "context: a future that is not polled enters it", "src/wait/future_task.rs",
        "            if sink.is_cancelled() || route.expiry().is_some_and(|expiry| expiry.is_late()) {\n"
        => "            let _early = route.attachment().map(Attachment::enter);\n            if sink.is_cancelled() || route.expiry().is_some_and(|expiry| expiry.is_late()) {\n", Test("workers", "a_future_that_is_not_polled_does_not_enter");
    "context: a future ends inside of it", "src/wait/future_task.rs",
        "        let polled = self.cell.with(&mut owner, |future, sink| {\n"
        => "        let _entered = route.attachment().map(Attachment::enter);\n        let polled = self.cell.with(&mut owner, |future, sink| {\n", Test("workers", "a_future_ends_outside_of_its_context"), Test("workers", "a_closure_that_is_not_run");
    "a future that is run on the caller does not check for a cancellation after it listens", "src/task/state.rs",
        "        drop(listener);\n        self.is_cancelled()"
        => "        drop(listener);\n        false", Model("futures::cancel_versus_a_task");
    "a canceller does not wake a future that is run on the caller", "src/task/state.rs",
        "            waker.wake_by_ref();\n"
        => "            let _ = waker;\n", Model("futures::cancel_versus_a_task");
    "shutdown_now: futures are registered as pending after it", "src/task/pending.rs",
        "            state.is_shut = true;\n"
        => "", Model("futures::shutdown_now_versus_poll");
    "law 3: pending futures are not in flight", "src/wait/future_task.rs",
        "return Outcome::Pending;"
        => "return Outcome::Completed;", Test("law_03_quiet", "");
    "law 6: a panic in a task is not contained", "src/task/closure.rs",
        "contained(contain(|| unsafe { call(space) }))"
        => "contained(Ok(unsafe { call(space) }))", Test("law_06_panic_proof", "");
    "law 6: a panic in a scope's task is not contained", "src/scope.rs",
        "    Outcome::of(contain(closure))\n"
        => "    Outcome::of(Ok(closure()))\n", Test("scope", "panic");
    "law 11: a wake during a poll submits at once", "src/task/state.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        before == IDLE"
        => "            RUNNING => SCHEDULED,\n            other => other,\n        });\n        matches!(before, IDLE | RUNNING)", Test("law_11_one_entry", "");
    "pending: a future forgets that it is registered", "src/task/state.rs",
        "        self.pending_key.store(key.get(), atomic::Ordering::Relaxed);"
        => "        let _ = key;", Test("memory", "");
    "cancel: a canceller drops a task that is in line for a slot", "src/task/state.rs",
        "            _ if now & (FRESH | HAS_ENTRY) == HAS_ENTRY => None,\n"
        => "", Test("groups", "leaves_the_line");
    "race 8: a canceller leaves a task to a worker", "src/task/state.rs",
        "Action::Cancel => self.transition_to_dropping(),"
        => "Action::Cancel => return Taken::Nothing,", Test("handles", "a_canceller_drops");
    "tasks: a stale entry is the end of a task", "src/task/job.rs",
        "            Outcome::Skipped | Outcome::Pending | Outcome::Yielded(_) => false,\n"
        => "            Outcome::Skipped => true,\n            Outcome::Pending | Outcome::Yielded(_) => false,\n", Model("waits::an_awaited_task_versus_its_entry");
    "timeout: a late task stays until a worker comes", "src/join_handle/waiting.rs",
        "                self.cancel();\n"
        => "", Test("views", "a_blocking_wait_returns");
    "cancel: a future is settled before it is dropped", "src/wait/future_task.rs",
        "    sink.call(|| discard(future));\n    settle(sink, route, result, outcome);"
        => "    if result.is_none() {\n        settle(sink, route, None::<Result<F::Output, Payload>>, outcome);\n        discard(future);\n        return;\n    }\n    sink.call(|| discard(future));\n    settle(sink, route, result, outcome);", Model("futures::cancel_and_wait_versus_poll"), Test("handles", "with_its_last_waker");
    "wait: a task waits for its own handle", "src/wait/future_task.rs",
        "own.get() == task.as_ptr().addr()"
        => "own.get() == task.as_ptr().addr() && false", Test("handles", "waits_for_its_own_handle");
    "wait: a task that has ended is still the thread's own", "src/wait/future_task.rs",
        "    OnDrop(move || _ = OWN.try_with(|own| own.set(below)))\n"
        => "    OnDrop(move || _ = below)\n", Test("handles", "a_task_that_another_worker_runs");
    "pending: empty pages are kept", "src/task/paged.rs",
        "                *page = Slab::new();\n"
        => "                let _ = page;\n", Test("memory", "");
    "pending: a page that is empty for a moment is freed", "src/task/paged.rs",
        ".filter(|&before| before != emptied);"
        => ";", Unit("paged::tests::values_that_come_and_go");
    "pending: the list of pages is kept", "src/task/paged.rs",
        "self.len == 0 && self.pages.len() > 1"
        => "false", Unit("paged::tests::memory_is_freed");
    "pending: a page that was full gets no value", "src/task/paged.rs",
        "            self.with_room.push(number);\n"
        => "", Unit("paged::tests::");
    "wait: a task that was handed back can be claimed", "src/task/state.rs",
        ".then_some(withdrawn)"
        => ".then_some(withdrawn | FRESH)", Model("waits::an_awaited_future_versus_shutdown_now"), Model("waits::an_awaited_task_versus_shutdown_now"), Test("handles", "given_back");
    "wait: a claimed future's entry is not stale", "src/task/state.rs",
        "compare_exchange(fresh, RUNNING,"
        => "compare_exchange(fresh, RUNNING | HAS_ENTRY,", Unit("state::tests::the_entry_of_a_claimed");
    "wait: a worker takes an entry of another list back", "src/task/job.rs",
        "ptr::addr_eq(Arc::as_ptr(own), task)"
        => "ptr::addr_eq(Arc::as_ptr(own), task) || true", Unit("unstarted::tests::an_entry_that_was_taken_back");
    "wait: a wait with a limit runs no task", "src/join_handle/waiting.rs",
        "filter(|_| !has_passed(deadline))"
        => "filter(|_| deadline.is_none())", Test("handles", "recursion_by_waits_with_a_limit");
    "race 8: a start does not compete with an expiry", "src/task/expiry.rs",
        "        *self.is_late.get_or_init(|| {"
        => "        let is_late = OnceLock::new();\n        *is_late.get_or_init(|| {", Model("views::the_deadline_of_a_started_task");
    "expiry: a future is polled although it has expired", "src/wait/future_task.rs",
        "if sink.is_cancelled() || route.expiry().is_some_and(|expiry| expiry.is_late()) {"
        => "if sink.is_cancelled() {", Test("views", "a_future_that_was_handed_back");
    "timeout: a blocking wait goes on after the deadline", "src/join_handle/waiting.rs",
        "            if it.is_late() {"
        => "            if false {", Test("views", "a_blocking_wait_returns_at_the_deadline");
    "race 8: a context is entered before the task is won", "src/wait/future_task.rs",
        "        let header = self.cell.header();\n        // `Skipped` unless"
        => "        let header = self.cell.header();\n        let _early = self.cell.shared().attachment().map(Attachment::enter);\n        // `Skipped` unless", Model("hooks::the_context_of_an_awaited_task");
    "watcher: a task after an idle time does not wake it", "src/observe/tracker.rs",
        "        state.is_watched = false;\n"
        => "", Test("interface", "a_stall_after_an_idle_time");
    "watcher: a stall is reported again and again", "src/observe/tracker.rs",
        "is_stalled |= !mem::replace(&mut state.has_reported_queue, true);"
        => "is_stalled |= !mem::replace(&mut state.has_reported_queue, false);", Test("interface", "queued_tasks_that_no_worker_starts");
    "report: a future that has ended stays in it", "src/observe/tracker.rs",
        "    fn end(&self) {\n        self.tracker.remove(self.number);\n"
        => "    fn end(&self) {\n", Test("interface", "a_pending_future_is_in_the_report");
    "context: a future's later polls are outside of it", "src/wait/future_task.rs",
        "route.attachment().map(Attachment::enter);"
        => "route.attachment().filter(|_| self.cell.header().pending_key().is_none()).map(Attachment::enter);", Test("workers", "each_poll_is_in_the_context");
    "context: hooks are left in the order of their entry", "src/task/attachment.rs",
        "        while let Some(part) = self.0.pop() {\n            discard(part);\n        }\n    }\n}\n\n/// Contains panics of the parts"
        => "        self.0.drain(..).for_each(discard);\n    }\n}\n\n/// Contains panics of the parts", Test("workers", "hooks_are_entered_in_order");
    "watcher: a woken future does not wake it", "src/observe/tracker.rs",
        "        self.tracker.begin_watch(state);\n"
        => "        drop(state);\n", Test("interface", "a_stalled_poll_of_a_woken_future");
    "watcher: a poll counts as a start", "src/observe/tracker.rs",
        "        if was_queued {\n            state.queued -= 1;\n"
        => "        state.queued -= usize::from(was_queued);\n        {\n", Test("interface", "polls_do_not_hide");
    "handle: one whose result was taken answers instead of panicking", "src/join_handle.rs",
        "else { panic!(\"{HAS_RESOLVED}\") };"
        => "else { return Poll::Ready(Err(JoinError::CANCELLED)) };", Test("handles", "polling_or_waiting");
    "handle: the panic of a result's destructor comes out of the handle's drop", "src/join_handle.rs",
        "        discard((self.receiver.take(), self.delivered.take()));\n"
        => "", Test("law_06_panic_proof", "results_whose_drop_panics_are_contained_in");
    "handle: the panic of a result's destructor comes out of the drop of a scope's handle", "src/join_handle.rs",
        "                discard(value);\n"
        => "                drop(value);\n", Test("law_06_panic_proof", "results_whose_drop_panics_are_contained_in");
    "numbered: the holes of removed values stay", "src/task/numbered.rs",
        "        if self.values.capacity() > 4 * kept {\n"
        => "        if false {\n", Unit("numbered::tests::values_are_found");
};
