// All mutants: the file, the text that is replaced, its replacement, and the check that must fail. In one file, because it is a
// table.

mutants! {
    "race 1: no fence between push and counts", "src/runtime/submit.rs",
        "        fence(Ordering::SeqCst);\n        let now = self.counts.load();\n        if now.total() < self.sizes.core() || now.has_spare"
        => "        let now = self.counts.load();\n        if now.total() < self.sizes.core() || now.has_spare", Model("notify::submit_versus_idle");
    "race 1: no fence between a change of the counts and the look", "src/runtime/look.rs",
        "    pub(super) fn fence_and_admit(&self) -> Snapshot {\n        fence(Ordering::SeqCst);\n"
        => "    pub(super) fn fence_and_admit(&self) -> Snapshot {\n", Model("notify::submit_versus_idle");
    "race 1: no look at the queue when idle", "src/runtime/worker/rest.rs",
        "            if shared.has_work() {\n                let max_size"
        => "            if false {\n                let max_size", Model("notify::submit_versus_idle");
    "race 1: no worker is notified of what a look finds", "src/runtime/look.rs",
        "if self.fence_and_admit().has_spare_capacity(self.sizes.max()) && self.has_work() {"
        => "if self.fence_and_admit().has_spare_capacity(self.sizes.max()) && false {", Model("regions::region_versus_submit");
    "race 3: the last worker leaves without a look", "src/runtime/retire.rs",
        "        if now.total() == 0 && !self.in_flight.status().is_quiet() {"
        => "        if false {", Model("retire::retire_versus_submit_without");
    "race 3: the last worker's look is a plain load", "src/runtime/in_flight.rs",
        "Status(self.word.fetch_or(0, Ordering::AcqRel))"
        => "Status(self.word.load(Ordering::Acquire))", Model("retire::retire_versus_submit_without");
    "race 4: the last worker is not rechecked", "src/runtime/caller.rs",
        "        if status.is_quiet() {"
        => "        if status.is_over() {", Model("futures::an_abandoned_future");
    "law 4: two workers leave at once", "src/runtime/retire.rs",
        "            Retire::Surplus => now.total() > self.sizes.core(),"
        => "            Retire::Surplus => true,", Model("retire::two_workers_retire");
    "race 4: a close does not recheck idle workers", "src/runtime/shared.rs",
        "            self.idle.recheck_all();\n            // There may be"
        => "            // There may be", Model("closing::drop_versus_rest");
    "race 4: an idle worker does not look whether the pool is over", "src/runtime/worker/rest.rs",
        "let is_over = shared.in_flight.is_over();"
        => "let is_over = false;", Model("closing::drop_versus_rest");
    "race 12: a joiner accepts a moment of quiet before its call", "src/runtime/in_flight.rs",
        "        if self.status().is_quiet() {\n            moments.passed += 1;"
        => "        {\n            moments.passed += 1;", Model("notify::submit_versus_idle");
    "race 12: a joiner does not look after it has registered", "src/runtime/in_flight.rs",
        "        let mut quiet = self.status().is_quiet();\n        if !quiet && "
        => "        let mut quiet = false;\n        if false && ", Model("notify::submit_versus_idle");
    "race 12: a joiner misses a moment that passed while it spun", "src/runtime/in_flight.rs",
        "            quiet = moments.passed != before;\n        }\n        let"
        => "        }\n        let", Model("closing::a_joiner_versus_the_next_task");
    "race 12: a joiner that blocks is not notified", "src/runtime/in_flight.rs",
        "        moments.parked += 1;\n"
        => "", Model("notify::submit_versus_idle");
    "race 12: the end of a task does not release", "src/runtime/in_flight.rs",
        "let before = self.word.fetch_sub(change, Ordering::AcqRel);"
        => "let before = self.word.fetch_sub(change, Ordering::Relaxed);", Model("notify::submit_versus_idle");
    "start hook: a search lasts until after the start hook", "src/runtime/worker.rs",
        "            let search = self.search.take();\n            self.shared.enter_start_hook(search);"
        => "            self.shared.enter_start_hook(None);", Model("hooks::a_slow_start_hook");
    "start hook: a worker in its start hook does not look at the queue", "src/runtime/notify.rs",
        "        if self.work_len() > in_hooks + self.counts.starting() {"
        => "        if in_hooks == usize::MAX {", Model("hooks::a_slow_start_hook");
    "start hook: a blocked worker in its start hook counts as one that will look", "src/runtime/notify.rs",
        "self.in_start_hook.load(Ordering::Relaxed) > now.blocked()"
        => "self.in_start_hook.load(Ordering::Relaxed) > now.blocked() * 0", Model("stalled::a_wait_in_a_start_hook");
    "race 8: a future that is cancelled in the queue has ended", "src/waker.rs",
        "        discard(promise);\n"
        => "        if promise.is_some() {\n            discard(promise);\n            self.cell.shared().route().cancelled_on_caller();\n        }\n", Test("shutdown", "futures_now");
    "race 28: no worker takes over the share of a declared region that has ended", "src/runtime/compensate.rs",
        "let counted = (declared > max_blocked).then(|| "
        => "let counted = (declared > usize::MAX).then(|| ", Model("waits::regions_take_turns");
    "race 28: a share is taken over before it is counted", "src/runtime/compensate.rs",
        "            let counted = (declared > max_blocked).then(|| self.counts.add_blocked());\n            let changed = self.declared.compare_exchange(\n                declared,\n                declared - 1,\n                Ordering::AcqRel,\n                Ordering::Relaxed,\n            );\n"
        => "            let changed = self.declared.compare_exchange(\n                declared,\n                declared - 1,\n                Ordering::AcqRel,\n                Ordering::Relaxed,\n            );\n            let counted = (declared > max_blocked).then(|| self.counts.add_blocked());\n", Model("waits::regions_end_at_once");
    "law 6: a panic of the pool's own code ends its thread silently", "src/sync/mod.rs",
        ".spawn(|| unwind::abort_on_panic(body))\n}\n\n/// Starts a thread, unless"
        => ".spawn(body)\n}\n\n/// Starts a thread, unless", Unit("unwind::tests::a_panic_of_the_pools_own");
    "a recheck replaces the signal", "src/sync/parker.rs",
        "if mailbox.signal != Some(Signal::Unparked) {"
        => "{", Model("notify::parker_does_not_lose");
    "a parker forgets that its owner waits", "src/sync/parker.rs",
        "            mailbox.waiting = true;\n"
        => "", Model("notify::parker_does_not_lose");
    "a wake during a poll is lost", "src/task/state.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        if before == IDLE {"
        => "            other => other,\n        });\n        if before == IDLE {", Model("futures::wake_versus_poll");
    "the poll that a wake leads to does not see what the waker wrote", "src/task/state.rs",
        "match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {\n            Ok(before) | Err(before) =>"
        => "match self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change) {\n            Ok(before) | Err(before) =>", Model("futures::two_wakers");
    "race 46: no worker is told that the last waker of a future is gone", "src/task/state.rs",
        "Some(if is_abandoned(rest) { rest + (SCHEDULED | CANCELLED) } else { rest })"
        => "Some(rest + (SCHEDULED & 0))", Model("futures::the_last_wakers_versus_a_poll");
    "race 46: the drop of the last waker cancels a future in a second step", "src/task/state.rs",
        "        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {\n            Ok(before) if is_abandoned(before - WAKER) => WakerDropped::Submit,"
        => "        let before = self.word.fetch_sub(WAKER, Ordering::AcqRel);\n        if is_abandoned(before - WAKER) {\n            self.word.fetch_or(SCHEDULED | CANCELLED, Ordering::AcqRel);\n        }\n        let _ = change;\n        match Ok::<_, u32>(before) {\n            Ok(before) if is_abandoned(before - WAKER) => WakerDropped::Submit,", Model("futures::the_last_waker_versus_cancel");
    "race 46: the drop of the last waker keeps a shutdown from settling the handle", "src/task/state.rs",
        "SCHEDULED | CANCELLED_IN_QUEUE | RUNNING"
        => "SCHEDULED | RUNNING", Test("law_02_settled", "a_future_whose_last_waker_is_gone");
    "race 46: a poll that keeps no waker leaves the future pending", "src/task/state.rs",
        "RUNNING if now >= WAKER => Some("
        => "RUNNING => Some(", Unit("future_cell::tests::a_poll_that_keeps_no_waker");
    "race 46: a waker frees a task that its owner still uses", "src/task/state.rs",
        "Ok(before) if before & LEFT != 0 && before"
        => "Ok(before) if before & DONE != 0 && before", Unit("future_cell::tests::the_last_waker_of_an_ended");
    "race 46: an owner frees a task that has a waker", "src/task/state.rs",
        "self.word.load(Ordering::Acquire) >= WAKER"
        => "self.word.load(Ordering::Acquire) == WAKER - 1", Unit("future_cell::tests::the_last_waker_of_an_ended");
    "waker: a count that is full goes on", "src/task/state.rs",
        "            self.word.fetch_sub(WAKER, Ordering::Relaxed);\n"
        => "", Unit("future_cell::tests::more_wakers_than");
    "shutdown_now: the caller drops the futures", "src/control.rs",
        "Err(job) if job.is_shared() =>"
        => "Err(job) if job.is_shared() && false =>", Test("law_02_settled", "shutdown_now_is_called_under");
    "context: that of an ended future stays until its last waker is dropped", "src/task/attachment.rs",
        "        let context = self.0.lock().take();\n"
        => "        let context = self.0.lock().as_ref().filter(|_| false).cloned();\n", Test("task_context", "is_dropped_when_its_future_ends");
    "race 22: a poll that waits for a future which it has woken is not watched", "src/runtime/context.rs",
        "        self.shared.watch_deferred();\n"
        => "", Model("local_queues::futures::a_poll_waits_for_another");
    "a future is dropped while a canceller touches it", "src/task/future_cell.rs",
        "                self.await_canceller();\n                TakenFuture::ToDrop(FutureOwner(self), Moment::Taken)"
        => "                TakenFuture::ToDrop(FutureOwner(self), Moment::Taken)", Model("futures::cancel_versus_a_task");
    "an owner reaches the future of another cell", "src/task/future_cell.rs",
        "        assert!(ptr::eq(self.0, header), \"the owner of another future\");\n"
        => "        _ = header;\n", Unit("future_cell::tests::an_owner_reaches_no_other_future");
    "context: a future that is not polled enters it", "src/waker.rs",
        "    if future.is_cancelled(&mut owner) || !route.may_poll() {\n"
        => "    if false {\n", Test("task_context", "a_future_that_is_not_polled_does_not_enter");
    "context: a future ends inside of it", "src/waker.rs",
        "    if let Some(entered) = entered {\n        drop(entered.take());\n    }\n"
        => "    _ = entered;\n", Test("task_context", "a_future_ends_outside_of_its_context");
    "a canceller touches a future that has an owner", "src/task/future_cell.rs",
        "if self.state.is_cancelled_in_queue() {"
        => "if true {", Model("futures::cancel_versus_a_task");
    "a future that is run on the caller does not check for a cancellation after it listens", "src/task/future_cell.rs",
        "        drop(listeners);\n        self.state.is_cancelled()"
        => "        drop(listeners);\n        false", Model("futures::cancel_versus_a_task");
    "one thread starts at a time", "src/runtime/notify.rs",
        "queued.saturating_sub(in_hooks).clamp(1, cpus())"
        => "{ let _ = (queued, in_hooks); 1 }", Model("notify::no_more_threads");
    "more threads start than there are CPUs", "src/runtime/notify.rs",
        "queued.saturating_sub(in_hooks).clamp(1, cpus())"
        => "queued.saturating_sub(in_hooks).max(1)", Unit("pool::tests::no_more_threads_are_starting");
    "wake: submitters wake one worker only", "src/runtime/counts.rs",
        "if self.has_stream() { 1 } else { now.search_limit(cpus) }" => "{ let _ = (now, cpus); 1 }", Unit("pool::tests::two_tasks_at_once");
    "wake: submitters wake two without a free CPU", "src/runtime/counts.rs",
        "if self.has_stream() { 1 } else { now.search_limit(cpus) }" => "{ let _ = (now, cpus); 2 }", Unit("pool::tests::no_second_worker");
    "wake: a woken worker wakes two in a stream", "src/runtime/notify.rs",
        "        if !self.counts.has_stream() && self.work_len() > 1 {" => "        if self.work_len() > 1 {", Unit("pool::tests::a_woken_worker_wakes_two");
    "wake: submitters wake two in a stream", "src/runtime/counts.rs",
        "if self.has_stream() { 1 } else { now.search_limit(cpus) }" => "now.search_limit(cpus)", Unit("counts::tests::two_search_while");
    "wake: a task wakes a worker beside one that wakes up", "src/runtime/notify.rs",
        "            searching => self.work_len() <= searching,\n" => "            _ => false,\n", Unit("pool::tests::one_task_is_left");
    "wake: a woken worker wakes one other", "src/runtime/notify.rs",
        "        if !self.counts.has_stream() && self.work_len() > 1 {" => "        if false {", Unit("pool::tests::a_woken_worker_wakes_two");
    "wake: a woken worker wakes two for one task", "src/runtime/notify.rs",
        "        if !self.counts.has_stream() && self.work_len() > 1 {" => "        if !self.counts.has_stream() {", Unit("pool::tests::a_woken_worker_wakes_two");
    "wake: a woken worker leaves the rest to any other", "src/runtime/notify.rs",
        "            Notifier::Woken | Notifier::Keeper => MAX_SEARCHING," => "            Notifier::Woken | Notifier::Keeper => 1,", Unit("pool::tests::a_woken_worker_wakes_two");
    "wake: more search than can be counted", "src/runtime/counts.rs",
        "let begins = |now: Snapshot| now.searching() < MAX_SEARCHING;" => "let begins = |_: Snapshot| true;", Unit("counts::tests::no_more_search");
    "wake: a thread is started for a task that was taken", "src/runtime/notify.rs",
        "let is_needed = starting <= self.work_len();"
        => "let is_needed = starting < usize::MAX;", Model("notify::no_more_threads");
    "wake: a worker that resumes by itself holds no search", "src/runtime/counts.rs",
        "Some(begins(Snapshot(before)).then_some(Search::Awake))"
        => "{ let _ = before; Some(None) }", Unit("counts::tests::a_spare_worker");
    "wait: a worker with a deadline spins first", "src/runtime/region.rs",
        "!is_worker || (dependency != Dependency::Other && !has_deadline)"
        => "{ let _ = has_deadline; !is_worker || dependency != Dependency::Other }", Unit("region::tests::a_worker_with_a_deadline");
    "scope: a thread outside leaves the task of a handle that it waits for", "src/runtime/awaited.rs",
        "if worker.is_some() || is_caller_of(route.shared) {"
        => "if worker.is_some() {", Test("scope", "scopes_opener_waits_for");
    "keeper: it does not ask for a refused thread", "src/runtime/keeper.rs",
        "            KeeperJob::Threads => shared.ask_for_threads(),"
        => "            KeeperJob::Threads => {}", Model("notify::a_refused_thread_is_asked_for_again");
    "keeper: it asks once", "src/runtime/keeper.rs",
        "            let is_asked = state.due[KeeperJob::Threads as usize].is_some();"
        => "            let is_asked = state.pause > FIRST_PAUSE;", Model("notify::a_refused_thread_is_asked_for_again");
    "keeper: its pauses grow without a limit", "src/runtime/keeper.rs",
        "cmp::min(2 * state.pause, LONGEST_PAUSE)"
        => "{ let _ = LONGEST_PAUSE; 2 * state.pause }", Unit("keeper::tests::the_pauses_grow");
    "keeper: its pauses stay long", "src/runtime/keeper.rs",
        "            self.keeper.state.lock().pause = FIRST_PAUSE;\n"
        => "", Unit("keeper::tests::the_pauses_grow");
    "keeper: a worker starts without one", "src/runtime/spawn.rs",
        "            .ensure_keeper(&mut registry)\n            .and_then(|()| start_thread(name, stack_size, move || body(start)));"
        => "            .ensure_keeper(&mut registry)\n            .or(Ok(()))\n            .and_then(|()| start_thread(name, stack_size, move || body(start)));", Test("law_07_refusal_proof", "if_the_keeper_is_refused");
    "keeper: it stays without a worker", "src/runtime/keeper.rs",
        "        while !shared.may_keeper_leave() {"
        => "        while !shared.in_flight.is_over() || !shared.may_keeper_leave() {", Test("law_07_refusal_proof", "comes_and_goes");
    "keeper: its pauses do not grow", "src/runtime/keeper.rs",
        "mem::replace(&mut state.pause, longer)"
        => "{ let _ = mem::replace(&mut state.pause, longer); FIRST_PAUSE }", Test("law_07_refusal_proof", "uses_no_cpu");
    "race 27: a refusal rechecks no waiting submitter", "src/runtime/keeper.rs",
        "            capacity.recheck_submitters();\n"
        => "            let _ = capacity;\n", Test("law_07_refusal_proof", "full_queue");
    "capacity: a granted submitter is not woken", "src/runtime/capacity.rs",
        "        if let Some(submitter) = granted {\n            submitter.parker.unpark();\n"
        => "        if let Some(submitter) = granted {\n            drop(submitter);\n", Model("capacity::submit_versus_a_full_queue");
    "race 29: a submitter that has woken up grants no permit", "src/runtime/capacity.rs",
        "            self.grant_locked(submitters, sizes);\n            return Some(Ok(()));\n"
        => "            return Some(Ok(()));\n", Model("capacity::each_free_permit_is_granted");
    "race 29: a submitter looks for a permit for the next one before it clears the flag", "src/runtime/capacity.rs",
        "            self.word.fetch_and(!WAKING, Ordering::AcqRel);\n            self.grant_locked(submitters, sizes);\n"
        => "            self.grant_locked(submitters, sizes);\n            self.word.fetch_and(!WAKING, Ordering::AcqRel);\n",
        Model("capacity::each_free_permit_is_granted");
    "capacity: a release grants its permit while a submitter wakes up", "src/runtime/capacity.rs",
        "before & AWAITED != 0 && (before & WAKING == 0 || self.last_grant.is_old())"
        => "before & AWAITED != 0", Unit("capacity::tests::a_free_permit_is_for_anyone");
    "capacity: a slow wake-up holds up the other submitters", "src/runtime/capacity.rs",
        "(before & WAKING == 0 || self.last_grant.is_old())"
        => "before & WAKING == 0", Unit("capacity::tests::a_slow_wake_up");
    "capacity: the time of a grant is that of the start", "src/runtime/capacity.rs",
        "        self.last_grant.set_now();\n" => "", Unit("capacity::tests::a_free_permit_is_for_anyone");
    "capacity: a worker that rests leaves a permit free", "src/runtime/worker/rest.rs",
        "        self.shared.grant_before_rest();\n" => "", Unit("capacity::tests::a_worker_that_rests");
    "capacity: a submitter that gives up takes no free permit", "src/runtime/capacity.rs",
        "Err(NoPermit::Full) => return Some(self.acquire_in_order(is_first, sizes)),"
        => "Err(NoPermit::Full) => {}", Unit("capacity::tests::a_submitter_that_gives_up");
    "capacity: the first submitter that gives up takes no permit that is about to be granted", "src/runtime/capacity.rs",
        "return Some(self.acquire_in_order(is_first, sizes)),"
        => "return Some(self.acquire_in_order(false, sizes)),", Unit("capacity::tests::the_first_submitter");
    "capacity: a submitter that gives up overtakes another one", "src/runtime/capacity.rs",
        "return Some(self.acquire_in_order(is_first, sizes)),"
        => "return Some(self.acquire_in_order(true, sizes)),", Unit("capacity::tests::the_first_submitter");
    "race 29: a submission overtakes a waiting submitter", "src/runtime/capacity.rs",
        "match self.acquire_unless(is_reserved, sizes) {"
        => "match self.acquire_unless(|_| false, sizes) {", Unit("capacity::tests::a_submission_overtakes_no_submitter");
    "capacity: a submitter that spins overtakes one that waits", "src/runtime/capacity.rs",
        "&& self.acquire_unless(is_reserved, sizes).is_ok()"
        => "&& self.acquire_unless(|_| false, sizes).is_ok()", Unit("capacity::tests::a_submission_overtakes_no_submitter");
    "capacity: a permit acquired by a spin is lost", "src/runtime/submit.rs",
        "        if spins && capacity.spin_to_acquire(&shared.sizes) {\n            return Ok(());\n        }\n"
        => "        let _ = spins && capacity.spin_to_acquire(&shared.sizes);\n", Model("capacity::submit_versus_a_full_queue");
    "race 15: a raised max_size grants no permit", "src/runtime/resize.rs",
        "            capacity.grant(&self.sizes);\n"
        => "            let _ = capacity;\n", Model("capacity::a_raised_max_size_versus_a_full_queue");
    "race 29: a waiting submitter sets no flag", "src/runtime/capacity.rs",
        "        self.word.fetch_or(AWAITED, Ordering::AcqRel);\n"
        => "", Model("capacity::submit_versus_a_full_queue");
    "race 29: a submitter waits without a look after it has set the flag", "src/runtime/capacity.rs",
        "        let acquired = self.acquire_in_order(first_eligible(&submitters).is_none(), sizes);\n"
        => "        let acquired = Err(NoPermit::Full);\n", Model("capacity::submit_versus_a_full_queue");
    "race 29: a released permit is not granted", "src/runtime/capacity.rs",
        "self.last_grant.is_old()) {\n            self.grant(sizes);\n"
        => "self.last_grant.is_old()) {\n            let _ = sizes;\n", Unit("capacity::tests::waiting_submitters");
    "capacity: the flag stays when no submitter waits", "src/runtime/capacity.rs",
        "        if submitters.is_empty() {\n"
        => "        if submitters.is_empty() && false {\n", Unit("capacity::tests::the_flag_is_set_while_submitters_wait");
    "capacity: an unlimited capacity wraps around", "src/runtime/capacity.rs",
        ".saturating_add(sizes.max())"
        => ".wrapping_add(sizes.max())", Unit("capacity::tests::there_is_a_permit_for_each_unit");
    "capacity: a close does not wake the waiting submitters", "src/runtime/capacity.rs",
        "        for submitter in &*submitters {\n            submitter.parker.unpark();\n        }"
        => "", Model("capacity::close_versus_a_full_queue");
    "capacity: a blocked worker keeps its permit", "src/runtime/compensate.rs",
        "            if phase == Phase::Tasks {\n                self.release_permit();\n            }\n"
        => "", Model("capacity::a_worker_waits_for_room");
    "race 15: max_size is raised without a look at the queue", "src/runtime/resize.rs",
        "        self.look();\n        Ok(())"
        => "        Ok(())", Model("retire::a_higher_limit");
    "race 15: max_size is lowered without a recheck", "src/runtime/resize.rs",
        "        self.idle.recheck_all();\n        self.admit"
        => "        self.admit", Model("retire::a_lower_limit");
    "race 15: a new worker does not know that max_size was lowered before it ran", "src/runtime/worker.rs",
        "search, shrinks } = start;\n"
        => "search, shrinks } = start;\n        let shrinks = shrinks.max(shared.shrinks.get());\n", Model("retire::a_lower_limit_versus_start");
    "race 15: core_size is changed without a recheck", "src/runtime/resize.rs",
        "        self.idle.recheck_all();\n        self.admit"
        => "        self.admit", Model("retire::another_core_size");
    "recycling: a worker leaves although its successor is refused", "src/runtime/retire.rs",
        "                        self.emit(Event::Refused(&error));\n                        return None;\n"
        => "                        self.emit(Event::Refused(&error));\n                        let (_, relied) = self.counts.remove_worker();\n                        self.registry.lock().deregister(key);\n                        return Some(relied);\n", Model("retire::recycle_versus_a_refused");
    "recycling: a worker whose quota is used gets another for a task that comes just then", "src/runtime/retire.rs",
        "                if why == Retire::Recycled {\n                    // The quota"
        => "                if false {\n                    // The quota", Model("retire::recycle_versus_submit");
    "recycling: no successor is started", "src/runtime/retire.rs",
        "            if why == Retire::Recycled {\n                match"
        => "            if false {\n                match", Test("recycling", "");
    "recycling: the index is free before the stop hook has returned", "src/runtime/retire.rs",
        "let keeps_index = self.config.hooks.has_stop_hook();"
        => "let keeps_index = false;", Model("hooks::recycle_with_hooks");
    "shutdown_now: futures are registered as pending after it", "src/task/pending.rs",
        "            state.is_shut = true;\n"
        => "", Model("futures::shutdown_now_versus_poll");
    "race 42: the keeper does not look after it has ended a request", "src/runtime/stall.rs",
        "        if !self.keeper.is_starved() {"
        => "        if false {", Model("stalled::the_last_look_of_the_keeper");
    "race 42: a submitter relies on a look that is not asked for", "src/runtime/stall.rs",
        "            self.keeper.ask(KeeperJob::Growth, Instant::now() + delay);\n"
        => "            let _ = (KeeperJob::Growth, Instant::now() + delay);\n", Model("stalled::a_task_gets_a_worker");
    "growth: a task waits for the delay although all workers are blocked", "src/runtime/stall.rs",
        "if now.running() > 0 && !self.is_below_core(now) =>"
        => "if !self.is_below_core(now) =>", Model("stalled::a_region_versus");
    "growth: a task waits for the delay below core_size", "src/runtime/stall.rs",
        "if now.running() > 0 && !self.is_below_core(now) =>"
        => "if now.running() > 0 =>", Test("growth", "a_raised_core_size");
    "growth: a thread is started without a delay", "src/runtime/notify.rs",
        "                return self.leave_to_keeper(delay);\n"
        => "                self.leave_to_keeper(delay);\n", Test("growth", "a_burst_of_tiny_tasks");
    "growth: a refused thread is asked for after the delay", "src/runtime/stall.rs",
        "        if !self.keeper.is_starved() {"
        => "        {", Test("growth", "with_growing_pauses");
    "growth: each look starts one worker", "src/runtime/stall.rs",
        "        self.step = self.step.saturating_mul(2);\n"
        => "", Unit("stall::tests::the_starts_double");
    "growth: a worker that was started is progress", "src/runtime/stall.rs",
        "        self.expected = expected / 2 + starts;\n"
        => "        self.expected = expected / 2;\n", Unit("stall::tests::the_starts_double");
    "growth: a worker that takes nothing hides progress", "src/runtime/stall.rs",
        "        self.expected = expected / 2 + starts;\n"
        => "        self.expected = expected + starts;\n", Unit("stall::tests::a_worker_that_takes_nothing");
    "law 1: no worker beyond the first", "src/runtime/counts.rs",
        "self.idle() == 0 && self.running() < max && self.total() < MAX_WORKERS"
        => "self.idle() == 0 && self.running() < max.min(1) && self.total() < MAX_WORKERS", Test("law_01_prompt", "");
    "law 2: a cancelled task does not drop its promise", "src/task/evaluation.rs",
        "            discard(promise);\n            return Outcome::Skipped;"
        => "            std::mem::forget(promise);\n            return Outcome::Skipped;", Test("law_02_settled", "");
    "law 3: pending futures are not in flight", "src/waker.rs",
        "return Outcome::Pending;"
        => "return Outcome::Completed;", Test("law_03_quiet", "");
    "law 4: an excess of runnable workers is ignored", "src/runtime/retire.rs",
        "now.runnable() > self.sizes.max()"
        => "now.runnable() > usize::MAX", Model("retire::a_lower_limit_versus_rest");
    "law 4: a worker takes a task although too many are running", "src/runtime/retire.rs",
        "now.running() > self.sizes.max()"
        => "now.running() > usize::MAX", Model("regions::the_end_of_a_region");
    "law 9: a thread is started in a pool that is over", "src/runtime/spawn.rs",
        "            if self.in_flight.is_over() {\n                return Err(StartError::Over);"
        => "            if false {\n                return Err(StartError::Over);", Model("futures::a_slow_wake_versus_shutdown");
    "law 5: the oldest idle worker is woken", "src/runtime/idle.rs",
        "if counts.claim_idle(max, enough) { parkers.pop() } else { None }"
        => "if counts.claim_idle(max, enough) { Some(parkers.remove(0)) } else { None }", Test("law_05_cold", "");
    "law 6: a panic in a task is not contained", "src/task/closure.rs",
        "contained(contain(|| unsafe { call(space) }))"
        => "contained(Ok(unsafe { call(space) }))", Test("law_06_panic_proof", "");
    "law 6: a panic in a scope's task is not contained", "src/task/job.rs",
        "    Outcome::of(contain(closure))\n"
        => "    Outcome::of(Ok(closure()))\n", Test("scope", "panic");
    "law 7: a refused worker is counted", "src/runtime/spawn.rs",
        "        registry.refused += usize::from(started.is_err());"
        => "        if started.is_err() {\n            self.counts.add_worker();\n        }", Test("law_07_refusal_proof", "");
    "law 8: a close is not decided with the acceptance", "src/runtime/in_flight.rs",
        "(word & CLOSED == 0).then_some(word + count * ONE_TASK)"
        => "Some(word + count * ONE_TASK)", Test("law_08_closed", "");
    "law 9: threads are not waited for", "src/runtime/registry.rs",
        "let gone = state.unjoined <= if leaving.is_some() { state.waiting.len() } else { 0 };"
        => "let gone = true;", Test("law_09_gone", "");
    "law 9: a thread that ends the process is joined", "src/sync/mod.rs",
        "if !HAS_RETURNED.get()"
        => "if false", Test("destructors", "at_exit");
    "law 9: the last thread that exits wakes no joiner", "src/runtime/registry.rs",
        "let may_end_wait = state.may_end_wait();"
        => "let may_end_wait = false;", Test("law_09_gone", "slow_thread_locals");
    "law 9: stop hooks that wait do not learn of each other", "src/runtime/registry.rs",
        "state.waiting.insert(key);\n            if state.may_end_wait()"
        => "state.waiting.insert(key);\n            if false", Test("law_09_gone", "two_stop_hooks");
    "law 9: a joiner does not learn that another one has joined the threads", "src/runtime/registry.rs",
        "state.unjoined -= joined;\n            if state.may_end_wait()"
        => "state.unjoined -= joined;\n            if false", Test("law_09_gone", "two_clones");
    "law 10: a join from inside is not refused", "src/control.rs",
        "            Caller::Busy => true,\n"
        => "            Caller::Busy => false,\n", Test("law_10_no_self_made_deadlock", "waits_for_its_pool");
    "law 10: a join from inside returns without a word", "src/control.rs",
        "            thread::panicking(),\n            \"`{what}` was called by one of the tasks"
        => "            true,\n            \"`{what}` was called by one of the tasks", Test("law_10_no_self_made_deadlock", "waits_for_its_pool");
    "law 10: a stop hook waits for what may wait for it", "src/control.rs",
        "!stop_hook_may && worker_index().is_some()"
        => "false", Test("destructors", "stop_hook");
    "law 10: a wait for the own group does not panic", "src/group/state.rs",
        "!is_own || thread::panicking()"
        => "true", Test("group", "a_task_that_waits_for_its_own_group");
    "destructors: a join panics while its thread unwinds", "src/control.rs",
        "            thread::panicking(),\n            \"`{what}` was called by one of the tasks"
        => "            false,\n            \"`{what}` was called by one of the tasks", Test("destructors", "");
    "destructors: a join panics in that of a thread-local", "src/control.rs",
        "!stop_hook_may && worker_index().is_some()"
        => "!stop_hook_may", Test("destructors", "thread_local");
    "destructors: no wait while the thread unwinds", "src/control.rs",
        "            Caller::Outside => false,\n"
        => "            Caller::Outside => thread::panicking(),\n", Test("destructors", "wait_for_others");
    "destructors: a task's wait for its own group panics while it unwinds", "src/group/state.rs",
        "!is_own || thread::panicking()"
        => "!is_own", Test("destructors", "group");
    "destructors: an unwinding thread does not wait for other groups", "src/group/state.rs",
        "        is_own\n    }"
        => "        is_own || thread::panicking()\n    }", Test("destructors", "another_group");
    "destructors: a limited wait for the own group waits", "src/group/wait.rs",
        "        if is_inside(self.inner.id()) {\n            return None;"
        => "        if false {\n            return None;", Test("group", "with_a_limit");
    "law 11: a wake during a poll submits at once", "src/task/state.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        if before == IDLE {"
        => "            RUNNING => SCHEDULED,\n            other => other,\n        });\n        if matches!(before, IDLE | RUNNING) {", Test("law_11_one_entry", "");
    "law 12: a worker takes the second task", "src/queue/mod.rs",
        "self.receiver.try_recv().ok()"
        => "{ let first = self.receiver.try_recv().ok()?; match self.receiver.try_recv() { Ok(second) => { self.push(first); Some(second) } Err(_) => Some(first) } }", Test("law_12_in_order", "");
    "scope: a waiting scope is not woken", "src/task/unstarted.rs",
        "        state.waiter = Some(waker.clone());\n"
        => "", Model("groups::the_end_of_a_scope_whose");
    "scope: a task that another thread runs has ended", "src/task/unstarted.rs",
        "TakenTask { task, list: self, is_counted: T::IS_TOLD }"
        => "{\n            state.running = 0;\n            TakenTask { task, list: self, is_counted: false }\n        }", Model("groups::the_end_of_a_scope_whose");
    "scope: the last task on another thread does not wake the scope", "src/task/unstarted.rs",
        "        let waiter = if state.unfinished() == 0 {"
        => "        let waiter = if state.running == usize::MAX {", Model("groups::the_end_of_a_scope_whose");
    "scope: a task is given up before it is run", "src/task/unstarted.rs",
        "            None => job.run(),\n        };\n        // The scope's own"
        => "            None if T::IS_TOLD => {\n                return self.list.end_one(self.is_counted, |_| job).run();\n            }\n            None => job.run(),\n        };\n        // The scope's own", Model("groups::the_end_of_a_scope_whose");
    "surplus: a task relies on an entry that a worker has taken", "src/task/unstarted.rs",
        "                state.surplus -= 1;\n                None"
        => "                None", Model("groups::two_tasks_rely_on_one_entry");
    "surplus: beside a busy worker scopes leave ever more entries", "src/task/unstarted.rs",
        "state.surplus.checked_sub(1) {"
        => "state.surplus.checked_sub(1).filter(|_| false) {", Unit("scope::tests::scopes_outside_leave_few");
    "surplus: a list with entries is not kept", "src/scope.rs",
        "            if !tasks.0.has_surplus() {\n                return;\n            }\n"
        => "            return;\n", Unit("scope::tests::a_list_with_entries");
    "surplus: a list with entries of another pool is used", "src/scope.rs",
        "Some((of, _)) if *of == queue => lists.pop(),"
        => "Some(_) if !lists.is_empty() => lists.pop(),", Test("scope", "opened_in::after_a_scope_of_another_pool");
    "surplus: an entry that a task relies on counts as stale", "src/runtime/submit.rs",
        "                self.drop_entries(context.as_deref(), 1);\n"
        => "", Unit("scope::tests::scopes_outside_leave_few");
    "surplus: no worker is notified of a task that relies on an entry", "src/runtime/submit.rs",
        "                self.shared.notify_queued(fills_core);\n            }\n            (Accepted::ByCaller"
        => "                _ = fills_core;\n            }\n            (Accepted::ByCaller", Unit("pool::tests::a_task_that_relies_on_an_entry");
    "wait: stale entries of a view stay until a worker takes them", "src/runtime/awaited.rs",
        "            self.route.drop_entries(self.worker, shared.skip_in_view(view));\n"
        => "", Test("memory", "memory_is_given_back");
    "wait: stale entries stay under one that is taken back", "src/runtime/context.rs",
        "            if len() < self.covered.get() {"
        => "            if false {", Test("memory", "memory_is_given_back");
    "view: its queue keeps the memory of a burst", "src/runtime/policy.rs",
        "if queue.capacity() > KEPT_CAPACITY {"
        => "if queue.capacity() == usize::MAX {", Test("memory", "memory_is_given_back");
    "scope: a list keeps its memory however large it is", "src/task/unstarted.rs",
        "        self.tasks.shrink_to(KEPT_TASKS);\n"
        => "", Unit("unstarted::tests::a_large_list");
    "scope: a list that is dropped keeps itself by its entries", "src/scope.rs",
        "        self.0.drop_spare();\n"
        => "", Unit("scope::tests::a_list_is_used_again");
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
        "                Some(errors) => RoundOutcome::Errors(errors),"
        => "                Some(_) => RoundOutcome::Errors(Vec::new()),", Model("groups::two_wait_for_an_error");
    "group: a cancel does not refuse the waiting submitters", "src/group/state.rs",
        "Queued::Submitter(submitter) => after.refuse.push(submitter),"
        => "Queued::Submitter(submitter) => mem::forget(submitter),", Model("groups::a_full_group_versus_cancel");
    "group: a cancel does not drop the deferred tasks", "src/group/state.rs",
        "                    self.slots += 1;\n                    after.drop.push(job);"
        => "                    mem::forget(job);", Model("groups::a_task_in_line_versus_cancel");
    "group: a future is registered without a check of the token", "src/group/state.rs",
        "(!self.token.is_cancelled()).then(|| self.pending.insert(future))"
        => "Some(self.pending.insert(future))", Model("groups::cancel_versus_a_future_of_a_group");
    "group: a cancel does not reach pending futures", "src/group/state.rs",
        "        after.cancel.extend(self.pending.drain());\n"
        => "", Model("groups::a_failure_versus_a_future");
    "token: no look under the lock", "src/token.rs",
        "        if self.token.is_cancelled() {\n            self.place = None;"
        => "        if false {\n            self.place = None;", Model("groups::cancelled_versus_cancel");
    "context: no worker is notified of a task that a task has submitted", "src/runtime/submit.rs",
        "            FastAcceptance::Refused => return self.submit_job_slow(job, Permit::NotNeeded),\n        }\n        self.shared.notify_queued(true);\n"
        => "            FastAcceptance::Refused => return self.submit_job_slow(job, Permit::NotNeeded),\n        }\n", Model("local_queues::a_task_submits_another_versus_idle");
    "local queues: not checked before a rest", "src/queue/mod.rs",
        "            && self.nodes().all(|node| node.new.is_empty())\n"
        => "", Unit("local::tests::a_walk_visits_only_queues");
    "race 22: woken futures are checked before new tasks", "src/queue/mod.rs",
        "        self.new.receiver.is_empty()\n            && self.nodes().all(|node| node.new.is_empty())\n            && (!self.may_have_woken()\n                || (self.woken.receiver.is_empty()\n                    && self.nodes().all(|node| node.woken.is_empty())))\n"
        => "        let is_woken_empty = self.nodes().all(|node| node.woken.is_empty());\n        self.new.receiver.is_empty()\n            && self.nodes().all(|node| node.new.is_empty())\n            && self.woken.receiver.is_empty()\n            && is_woken_empty\n", Model("local_queues::a_look_versus_a_yield");
    "woken first: a wake by a task stays on its worker", "src/runtime/submit.rs",
        "        self.shared.queue.push_woken(task);\n"
        => "        match context::current(self.shared) {\n            Some(context) => context.push_woken(&self.shared.queue, task),\n            None => self.shared.queue.push_woken(task),\n        }\n", Test("woken_first", "a_busy_one_has_woken");
    "woken first: a worker that takes a new task keeps its woken futures", "src/runtime/context.rs",
        "            self.share_woken(SHARED);\n"
        => "", Test("woken_first", "a_long_task");
    "woken first: no worker is notified of futures that a worker has shared", "src/runtime/context.rs",
        "local.share_woken(&self.shared.queue, limit)) {\n            self.needs_notify.set(true);\n"
        => "local.share_woken(&self.shared.queue, limit)) {\n", Model("local_queues::futures::a_poll_wakes_another_versus");
    "woken first: a worker that blocks keeps its woken futures", "src/runtime/context.rs",
        "            self.share_woken(usize::MAX);\n        }\n        let was_deferring"
        => "        }\n        let was_deferring", Test("woken_first", "a_blocked_one_has_woken");
    "woken first: a worker that rests keeps its woken futures", "src/runtime/context.rs",
        "        #[cfg(feature = \"async\")]\n        self.share_woken(usize::MAX);\n        self.covered"
        => "        self.covered", Test("woken_first", "a_spare_one_has_woken");
    "woken first: new tasks have no turn", "src/queue/local.rs",
        "        if is_turn_of_new(request) {\n"
        => "        if is_turn_of_new(request) && false {\n", Unit("local::tests::woken::neither_woken");
    "woken first: a yield gives way to no new task", "src/runtime/context.rs",
        "            self.yielded.begin();\n"
        => "", Test("woken_first", "gives_way_to_new_tasks");
    "woken first: a yield gives way to local new tasks only", "src/queue/local.rs",
        "                false => local().or_else(injected),"
        => "                false => local(),", Unit("local::tests::woken::new_tasks_of_both");
    "turn: it begins anew", "src/queue/turn.rs",
        "        if !self.is_on() {" => "        if true {", Unit("turn::tests::a_turn_is_a_few");
    "woken first: a new task after a yield uses up a turn", "src/queue/local.rs",
        "        if item.is_none() {\n            // The injector's tasks"
        => "        if item.is_some() {\n            self.node.requests.add_alone(1);\n        } else {\n            // The injector's tasks",
        Unit("local::tests::woken::a_future_that_yields");
    "turn: it has no end", "src/queue/turn.rs",
        "        self.left.set(Some(if are_coarse { 0 } else { rest }));\n" => "        let _ = (rest, are_coarse);\n", Unit("turn::tests::a_turn_is_a_few");
    "woken first: the injector of woken futures has no turn", "src/queue/local.rs",
        "        if request % WOKEN_INTERVAL == 0 {\n"
        => "        if request % WOKEN_INTERVAL == WOKEN_INTERVAL {\n", Test("woken_first", "share_the_worker");
    "woken first: a poll defers while a scope of another pool runs on top of it", "src/runtime/awaited.rs",
        "        None => notify_deferred(),\n"
        => "        None => (),\n", Test("woken_first", "scope_of_another_pool");
    "woken first: without local queues new tasks have no turn", "src/queue/mod.rs",
        "let is_woken_first = !local::is_turn_of_new(self.turns.increment());"
        => "let is_woken_first = self.turns.increment() < usize::MAX;", Unit("local::tests::woken::without_local_queues");
    "context: a worker never steals", "src/runtime/context.rs",
        "self.steal(|| local.steal(queue))"
        => "None", Model("local_queues::a_task_submits_another_versus_idle");
    "context: no worker is notified of a stolen batch", "src/runtime/context.rs",
        "            self.owe(MustLook::owed());\n        }\n        stolen"
        => "        }\n        stolen", Model("local_queues::a_stolen_batch");
    "context: no worker is notified of a future that a poll has woken", "src/runtime/context.rs",
        "        self.push_woken(&self.shared.queue, task);\n        self.needs_notify.set(true);\n"
        => "        self.push_woken(&self.shared.queue, task);\n", Model("local_queues::futures::a_poll_wakes_two");
    "race 22: a region does not end the deferral of a poll", "src/runtime/compensate.rs",
        "            let _ = context.stop_deferring();\n"
        => "            let _ = context;\n", Model("local_queues::futures::a_poll_wakes_another_in_a_region");
    "race 20: credit is not reported", "src/runtime/worker.rs",
        "let finished = self.context.take_credit();"
        => "let finished = 0;", Model("local_queues::join_versus");
    "context: a worker takes more credit than it has accepted", "src/runtime/context.rs",
        "shared.in_flight.accept(CREDIT_BATCH)"
        => "shared.in_flight.accept(1)", Model("local_queues::join_versus");
    "context: the end of a task is not counted", "src/runtime/context.rs",
        "                self.credit.set(self.credit.get() + 1);\n            }\n            #[cfg(feature = \"async\")]"
        => "            }\n            #[cfg(feature = \"async\")]", Model("local_queues::join_versus");
    "submit: a task that was refused while it waited for its permit runs", "src/runtime/submit.rs",
        "            Permit::Closed => Err(Refusal::Closed),"
        => "            Permit::Closed => self.accept_with_permit(WithoutThread::RunOnCaller),", Test("bounded_queue", "");
    "submit: the time in the queue begins before the wait for capacity", "src/runtime/submit.rs",
        "        let permit = self.await_permit();\n        let (job, mut handle) = make_job(task, prepare);\n"
        => "        let (job, mut handle) = make_job(task, prepare);\n        let permit = self.await_permit();\n", Test("views", "a_wait_for_capacity_does_not_count");
    "submit: the time of a closure in the queue begins before the wait for capacity", "src/runtime/submit.rs",
        "        let permit = self.await_permit();\n        let job = self.wrap_expiring(job, self.expiry(), line);"
        => "        let job = self.wrap_expiring(job, self.expiry(), line);\n        let permit = self.await_permit();", Test("views", "a_wait_for_capacity_does_not_count");
    "submit: the permit of a task that is refused is lost", "src/runtime/submit.rs",
        "            self.shared.release_permit();\n            self.count_rejection();\n            return Err(refusal);"
        => "            self.count_rejection();\n            return Err(refusal);", Test("views", "a_task_that_is_refused_with_a_permit");
    "submit: the first task of an idle pool starts no worker", "src/runtime/submit.rs",
        "            None if self.shared.counts.load().total() < self.shared.sizes.core().max(1) => {"
        => "            None if false => {", Test("law_07_refusal_proof", "first_worker");
    "submit: a closure bypasses a bounded queue", "src/runtime/submit.rs",
        "        if self.shared.capacity.is_some() || !self.is_default_without_attachers() {"
        => "        if !self.is_default_without_attachers() {", Test("bounded_queue", "closing::closing_rejects_waiting");
    "submit: a closure bypasses its view", "src/runtime/submit.rs",
        "        if self.shared.capacity.is_some() || !self.is_default_without_attachers() {"
        => "        if self.shared.capacity.is_some() {", Test("views", "counts_are_those");
    "race 35: no worker is notified of what a worker leaves in the views' queues", "src/runtime/worker.rs",
        "            self.notice = Notice::More;\n"
        => "", Test("views", "a_worker_that_takes_another_task_notifies");
    "pending: a future forgets that it is registered", "src/task/future_cell.rs",
        "        self.pending_key.store(key.to_bits(), atomic::Ordering::Relaxed);"
        => "        let _ = key;", Test("memory", "");
    "cancel: a future that is not cancelled takes the lock as it ends", "src/task/future_cell.rs",
        "was_cancelled.then(||"
        => "Some(()).map(|()|", Unit("future_cell::tests::the_end_of_a_future_that_was_not_cancelled");
    "context: a worker with credit submits to a closed pool", "src/runtime/context.rs",
        "        if shared.in_flight.is_closed() {\n            return false;"
        => "        if false {\n            return false;", Model("local_queues::close_versus");
    "race 19: a worker that leaves keeps its context open", "src/runtime/worker/rest.rs",
        "        self.context.shut();\n        // Race 1:"
        => "        // Race 1:", Model("local_queues::leave_versus_a_hook");
    "race 19: a recycled worker keeps its context open", "src/runtime/worker.rs",
        "        self.context.shut();\n        let left"
        => "        let left", Test("local_queues", "leaves");
    "local queues: not popped by an immediate shutdown", "src/queue/mod.rs",
        "self.nodes().find_map(|node| {"
        => "self.nodes().take(0).find_map(|node| {", Test("local_queues", "shutdown_now");
    "group: a panic that a handle has received does not cancel", "src/group/state.rs",
        "            TaskEnd::PanickedForHandle => {\n                self.is_incomplete = true;\n                self.cancel_unless_it_keeps_going(after);\n"
        => "            TaskEnd::PanickedForHandle => {\n                self.is_incomplete = true;\n", Test("group_handles", "a_panic_cancels");
    "group: a panic that a handle has received is not reported", "src/group/state.rs",
        "            TaskEnd::PanickedForHandle => {\n                self.is_incomplete = true;\n"
        => "            TaskEnd::PanickedForHandle => {\n", Test("group_handles", "a_panic_cancels");
    "group: a task that its handle has cancelled fails the group", "src/group/state.rs",
        "                if !has_handle {\n"
        => "                if has_handle || !has_handle {\n", Test("group_handles", "cancelling_a_handle");
    "group: a panic is lost with its handle", "src/group/member.rs",
        "                (Outcome::Panicked(None), TaskEnd::panicked(payload))\n            }\n            Outcome"
        => "                drop(payload);\n                (Outcome::Panicked(None), TaskEnd::PanickedForHandle)\n            }\n            Outcome", Test("group_handles", "handle_is_gone");
    "group: the waiter runs a task that has no slot", "src/group/submit.rs",
        "        let (Ok(job) | Err(job)) = job.withdraw();\n"
        => "", Test("group_handles", "in_line");
    "group: an immediate shutdown drops a claimed task", "src/task/unstarted.rs",
        "            Err(job) => return job.run(),"
        => "            Err(job) => job.abandon(),", Test("group_handles", "an_immediate_shutdown");
    "group: a cancelled group runs closures with handles", "src/group/member.rs",
        "self.task.take_if(|_| !self.member.is_cancelled())?;"
        => "self.task.take()?;", Test("group_handles", "a_panic_cancels");
    "prefer_idle: a core worker is started while another is idle", "src/runtime/notify.rs",
        "if fills_core && !leaves_to_free && self"
        => "if fills_core && self", Test("law_01_prompt", "idle_workers_come_before");
    "prefer_idle: the idle worker is not woken", "src/runtime/notify.rs",
        "            self.notify(true);\n        }\n    }\n\n    /// Begins the search of a worker"
        => "            if !leaves_to_free {\n                self.notify(true);\n            }\n        }\n    }\n\n    /// Begins the search of a worker", Test("law_01_prompt", "idle_workers_come_before");
    "cancel: a future is gone before it is dropped", "src/task/state.rs",
        "self.word.load(Ordering::Relaxed) & (CANCELLED | GONE) == CANCELLED"
        => "false", Model("futures::cancel_and_wait_versus_poll");
    "cancel: the drop of a future wakes no waiter", "src/task/future_cell.rs",
        "let waker = listeners.as_mut().and_then(|wakers| wakers.gone.take());"
        => "let waker = listeners.as_mut().and_then(|wakers| wakers.gone.take()).filter(|_| false);", Model("futures::cancel_and_wait_versus_poll");
    "cancel: a waiter looks before it registers", "src/task/future_cell.rs",
        "        let mut listeners = self.lock.lock();\n        // Checked under the lock, under which the bit is set and the waker taken: neither comes in between.\n        if !self.state.awaits_drop() {\n            drop(listeners);\n            return Poll::Ready(());\n        }\n"
        => "        if !self.state.awaits_drop() {\n            return Poll::Ready(());\n        }\n        let mut listeners = self.lock.lock();\n", Model("futures::cancel_and_wait_versus_poll");
    "cancel: a closure is gone before it is dropped", "src/task/evaluation.rs",
        "(Stage::Dropping(waker), (before, Poll::Pending))"
        => "(Stage::Dropping(waker), (before, Poll::Ready(())))", Test("cancelling", "is_being_dropped");
    "cancel: a closure that was handed back counts as gone", "src/task/evaluation.rs",
        "(Stage::Cancelled(waker), (before, Poll::Pending))"
        => "(Stage::Cancelled(waker), (before, Poll::Ready(())))", Test("cancelling", "handed_back");
    "cancel: a canceller drops a task that is in line for a slot", "src/task/evaluation.rs",
        "            Stage::Queued => (Stage::Dropping(None), Step::Cancel),"
        => "            Stage::Queued | Stage::Withdrawn => (Stage::Dropping(None), Step::Cancel),", Test("group_handles", "leaves_the_line");
    "race 8: a canceller leaves a closure to a worker", "src/task/evaluation.rs",
        "            Action::Cancel => self.cancel_queued(begin),"
        => "            Action::Cancel => Outcome::Skipped,", Test("cancelling", "a_canceller_drops");
    "tasks: a stale entry is the end of a task", "src/task/job.rs",
        "            Outcome::Skipped => false,\n"
        => "            Outcome::Skipped => true,\n", Model("waits::an_awaited_task_versus_its_entry");
    "tasks: a claimed task does not end", "src/runtime/context.rs",
        "        self.metrics.record(outcome);\n        if outcome.is_end() {\n            self.credit.set(self.credit.get() + 1);\n        }\n"
        => "        self.metrics.record(outcome);\n", Model("waits::an_awaited_task_versus_its_entry");
    "tasks: a task that a thread outside has claimed does not end", "src/runtime/awaited.rs",
        "            self.ended += 1;\n"
        => "", Model("waits::a_scope_from_outside_versus");
    "tasks: a task that a thread outside claims ends before it runs", "src/runtime/awaited.rs",
        "        self.begin(entry);\n        self.end(run());\n"
        => "        self.begin(entry);\n        let outcome = if self.worker.is_none() {\n            self.route.report_on_caller(1);\n            let outcome = run();\n            self.ended -= 1;\n            outcome\n        } else {\n            run()\n        };\n        self.end(outcome);\n", Model("waits::join_versus_a_scopes_task_outside");
    "tasks: a claimed task keeps its permit", "src/runtime/awaited.rs",
        "        shared.release_permit();\n        if let Some(view) = view {\n            view"
        => "        if let Some(view) = view {\n            view", Test("awaited", "releases_its_permit_when");
    "tasks: nested tasks that wait keep a permit each", "src/runtime/awaited.rs",
        "        self.begin(entry);\n        self.end(run());\n"
        => "        self.begin(entry);\n        self.route.shared.acquire_over_limit();\n        self.end(run());\n        self.route.shared.release_permit();\n", Test("awaited", "nested_waits_in_a_bounded");
    "tasks: a claim that finds nothing to run loses a permit", "src/runtime/awaited.rs",
        "        if let Outcome::Skipped = outcome {\n            shared.acquire_over_limit();\n        }\n"
        => "", Test("awaited", "that_was_awaited_before");
    "race 8: a worker releases the permit of a stale entry", "src/runtime/context.rs",
        "        if !self.in_poll.get() {\n"
        => "        if false {\n", Test("cancelling", "gives_its_permit_back");
    "race 8: a canceller keeps the permit", "src/runtime/caller.rs",
        "        if moment == (Moment::TakenFromQueue { is_new: true }) {\n"
        => "        if false {\n", Test("cancelling", "gives_its_permit_back");
    "race 8: an immediate shutdown releases the permit of a stale entry", "src/runtime/caller.rs",
        "        if outcome.is_end() {\n            if is_new {"
        => "        if is_new && !outcome.is_end() {\n            self.shared.release_permit();\n        }\n        if outcome.is_end() {\n            if is_new {", Test("cancelling", "an_immediate_shutdown_skips");
    "race 48: a submitter does not look for a cancellation again", "src/group/submit.rs",
        "                if token.is_cancelled() {\n                    self.inner.cancel_late(id);\n                }\n"
        => "                let _ = (&token, id);\n", Model("groups::cancel_versus_a_late_task");
    "race 48: a round ends while its canceller takes its tasks", "src/group/state.rs",
        "self.slots == 0 && self.cancellers == 0"
        => "self.slots == 0", Model("groups::the_next_round_versus_cancel");
    "group: a canceller leaves the unstarted tasks to workers", "src/group/state.rs",
        "            if Route::may_drop_cancelled() {\n"
        => "            if false {\n", Model("groups::cancel_versus_its_worker");
    "cancel: drops nest without bound", "src/runtime/caller.rs",
        "        caller_depth() < MAX_DEPTH\n"
        => "        caller_depth() < usize::MAX\n", Test("cancelling", "does_not_nest");
    "cancel: a task stays in line for a slot", "src/group/state.rs",
        "if !self.update(|state, after| state.leave_queue(task, after)) {"
        => "if true {", Test("group_handles", "that_wait_in_line");
    "cancel: a task that leaves its line gives back a slot that it never had", "src/group/state.rs",
        "        // As in `cancel`, a slot over the limit.\n        self.slots += 1;\n"
        => "", Test("group_handles", "that_wait_in_line");
    "cancel: a task that has waited for a slot stays until a worker comes", "src/group/state.rs",
        "            self.route().cancel_all(job.into_iter());\n        }"
        => "            let _ = job;\n        }", Test("group_handles", "that_wait_in_line");
    "cancel: a future that has waited for a slot keeps its permit", "src/runtime/caller.rs",
        "job.run_telling(begin),"
        => "job.run(),", Test("group_handles", "releases_the_permits");
    "errors: a handle does not say that the pool was closed", "src/runtime/submit.rs",
        "            handle.refuse(&rejected.into_refusal());\n"
        => "            let _ = rejected;\n", Test("law_02_settled", "what_a_closed_pool");
    "timeout: a late task stays until a worker comes", "src/join_handle/waiting.rs",
        "                self.cancel();\n"
        => "", Test("views", "a_blocking_wait_returns");
    "group: an immediate shutdown settles a task that has waited in line before it drops it", "src/task/evaluation.rs",
        "            Stage::Queued | Stage::Withdrawn => (Stage::Withdrawn, Withdrawal::HandBack),"
        => "            Stage::Queued => (Stage::Withdrawn, Withdrawal::HandBack),", Test("group_handles", "has_waited_in_line");
    "group: an unclaimed value is dropped outside the group's code", "src/group/member.rs",
        "        let outcome = self.call(|| match promise {"
        => "        let outcome = off_trampoline(|| match promise {", Test("group_handles", "unclaimed_value");
    "cancel: the drop of a closure wakes no waiter", "src/task/evaluation.rs",
        "            Stage::Dropping(waker) => (Stage::Begun, waker),"
        => "            Stage::Dropping(waker) => (Stage::Begun, waker.filter(|_| false)),", Test("cancelling", "is_being_dropped");
    "cancel: a future is settled before it is dropped", "src/waker.rs",
        "    let Ended { future, rest: sink, pending_key } = cell.end(owner);\n"
        => "    let Ended { future, rest: mut sink, pending_key } = cell.end(owner);\n    if result.is_none() {\n        discard(sink.take_promise());\n    }\n", Test("cancelling", "with_its_last_waker");
    "cancel: a closure that was handed back is settled before it is dropped", "src/task/evaluation.rs",
        "        discard(self);\n        discard(promise);\n"
        => "        discard(promise);\n        discard(self);\n", Test("cancelling", "handed_back");
    "group: the slot of a dropped task is free before its handle resolves", "src/group/member.rs",
        "        off_trampoline(|| discard(promise));\n        discard(self);\n"
        => "        discard(self);\n        off_trampoline(|| discard(promise));\n", Test("group_handles", "the_handle_of_a_dropped_task");
    "group: a dropped task calls its handle's waker on the trampoline", "src/group/member.rs",
        "        off_trampoline(|| discard(promise));\n"
        => "        discard(promise);\n", Test("group_destructors", "a_waker_that_a_dropped_task_calls");
    "local queues: the queue of a worker that has left is visited", "src/queue/mod.rs",
        "        node.clear_bit();\n        // A stealer that still"
        => "        // A stealer that still", Unit("local::tests::what_a_closed_queue_holds");
    "race 19: no worker is notified of what a worker that leaves has moved", "src/runtime/worker.rs",
        "            moved.look(&shared);\n"
        => "            _ = moved;\n", Model("local_queues::recycle_versus_submit");
    "local queues: the queue of a worker that rests is visited", "src/queue/local.rs",
        "            self.node.clear_bit();\n"
        => "", Unit("local::tests::a_walk_visits");
    "local queues: a queue with items is not visited after a rest", "src/queue/local.rs",
        "if self.is_bit_set.get() && is_empty() {"
        => "let _ = is_empty;\n        if self.is_bit_set.get() {", Unit("local::tests::a_walk_visits");
    "local queues: a push after a rest does not set the bit", "src/queue/local.rs",
        "            self.node.clear_bit();\n            self.is_bit_set.set(false);\n"
        => "            self.node.clear_bit();\n", Unit("local::tests::a_walk_visits");
    "race 24: a clear bit does not pass on that the steal has begun", "src/queue/mod.rs",
        "self.occupied.fetch_and(!self.bit(), Ordering::Release);"
        => "self.occupied.fetch_and(!self.bit(), Ordering::Relaxed);", Model("local_queues::a_drain_versus_a_steal_and_a_rest");
    "local queues: a push does not set the bit", "src/queue/local.rs",
        "            self.node.set_bit(queue);\n"
        => "", Unit("local::tests::a_walk_visits");
    "local queues: a walk ends before a block in use", "src/queue/mod.rs",
        "            queue.used_blocks.fetch_max(used_blocks, atomic::Ordering::Release);\n"
        => "", Unit("local::tests::a_walk_visits");
    "local queues: a walk visits blocks that no worker has used", "src/queue/mod.rs",
        ".take(used)"
        => ".take(used | usize::MAX)", Unit("local::tests::a_walk_visits");
    "local queues: the table is dropped recursively", "src/queue/mod.rs",
        "let mut next = self.next.take();"
        => "let mut next = None::<Box<Block<T, W>>>;", Unit("local::tests::many_local_queues");
    "ring: the buffer of a worker that has left is kept", "src/queue/ring.rs",
        "self.is_empty() && (self.capacity.get() == 0 || self.resize(0))"
        => "self.is_empty()", Unit("ring::tests::a_new_or_released");
    "ring: a buffer with items is freed", "src/queue/ring.rs",
        "self.is_empty() && (self.capacity.get() == 0 || self.resize(0))"
        => "self.capacity.get() == 0 || self.resize(0)", Unit("ring::tests::a_new_or_released");
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
    "local queues: the buffers of workers that have left stay", "src/queue/mod.rs",
        "            if rings.new.release() && rings.woken.release() {"
        => "            if true {", Test("memory", "");
    "local queues: the buffer of a worker that has left stays because a stealer reads it", "src/queue/mod.rs",
        "        for _ in 0..MAX_RELEASES {"
        => "        for _ in 0..1 {", Unit("local::tests::a_worker_that_leaves_frees");
    "memory: a pool that is over keeps memory for pending futures", "src/runtime/shared.rs",
        "        #[cfg(feature = \"async\")]\n        drop(self.pending.shut());\n"
        => "", Test("memory", "");
    "local queues: a worker with local tasks does not check the injector", "src/queue/local.rs",
        "        if self.injector_turn.is_on() {"
        => "        if false {", Test("local_queues", "feeds_itself");
    "local queues: a worker with local tasks does not check for stalled workers", "src/queue/local.rs",
        "Some(Check::Stalled) => true,"
        => "Some(Check::Stalled) => false,", Test("local_queues", "a_busy_one_has_left");
    "local queues: the interval of the checks stays as it is", "src/queue/pacing.rs",
        "self.interval();\n        self.left"
        => "8;\n        self.left", Unit("pacing::tests::long_tasks_shorten");
    "local queues: a worker that has rested takes many tasks before a check", "src/queue/pacing.rs",
        "        self.left.set(self.left.get().min(self.interval()));\n"
        => "", Unit("pacing::tests::a_rest_is");
    "coarse: a task of a task overtakes others", "src/runtime/context.rs",
        "        if self.prefers_injector(local) {\n" => "        if false {\n", Test("local_queues", "a_coarse_task_of_a_task");
    "coarse: a future overtakes those that were woken before", "src/runtime/context.rs",
        "let is_local = if self.prefers_injector(local) {" => "let is_local = if false {", Test("local_queues", "a_future_that_yields_in_coarse");
    "coarse: no worker is notified of the future", "src/queue/local.rs",
        "        self.overflow(&queue.woken, item.into());\n" => "        queue.woken.push(item.into());\n", Unit("local::tests::woken::a_woken_future_goes");
    "race 22: a worker does not notify of a future that has yielded in a coarse poll", "src/runtime/context.rs",
        "        if !is_local {\n" => "        if false {\n", Model("local_queues::futures::a_coarse_yield_versus_a_look");
    "coarse: each task that another one waits for leaves an entry", "src/runtime/context.rs",
        "            local.forget_task_time();\n        }\n        self.skip" => "        }\n        self.skip", Unit("pool::tests::a_coarse_task_leaves");
    "coarse: tasks wait in line although a worker is idle", "src/runtime/context.rs",
        "!may_wake && task_nanos" => "(!may_wake || true) && task_nanos", Unit("context::tests::coarse_tasks");
    "coarse: an idle worker that may not run counts", "src/runtime/context.rs",
        "now.idle() > 0 && now.has_spare_capacity(max_size)" => "{ let _ = max_size; now.idle() > 0 }", Unit("context::tests::coarse_tasks");
    "coarse: many workers share an injector without a limit", "src/runtime/context.rs",
        "COARSE_NANOS_PER_WORKER.saturating_mul(running)" => "COARSE_NANOS_PER_WORKER.saturating_mul(running.min(1))", Unit("context::tests::coarse_tasks");
    "coarse: the last tasks decide", "src/queue/pacing.rs",
        "(self.task_nanos.get() + now) / 2" => "now", Unit("pacing::tests::the_time_of_a_task");
    "coarse: tasks inside of others do not count", "src/queue/pacing.rs",
        "checked_div(run as u128)" => "checked_div(run.min(1) as u128)", Unit("pacing::tests::the_time_of_a_task");
    "coarse: one task counts for seconds", "src/queue/pacing.rs",
        "map_or(MAX_TASK_NANOS, |mean| mean.min(MAX_TASK_NANOS))" => "unwrap_or(u32::MAX / 2)", Unit("pacing::tests::the_time_of_a_task");
    "coarse: a worker that has rested knows of its tasks", "src/queue/pacing.rs",
        "        self.forget_task_time();\n        self.left"
        => "        self.since.set(None);\n        self.left", Unit("pacing::tests::a_rest_is");
    "coarse: a wait counts as the time of tasks", "src/queue/pacing.rs",
        "        self.task_nanos.set(FIRST_NANOS);\n        self.since.set(None);\n"
        => "        self.task_nanos.set(FIRST_NANOS);\n", Unit("pacing::tests::what_says_nothing");
    "local queues: the time of a rest counts as that of tasks", "src/queue/pacing.rs",
        "        self.forget_task_time();\n        self.left"
        => "        self.task_nanos.set(FIRST_NANOS);\n        self.left", Unit("pacing::tests::a_rest_is");
    "local queues: a worker that makes requests counts as stalled", "src/queue/local.rs",
        "other.requests.get() == *requests);"
        => "other.requests.get() >= *requests);", Unit("local::tests::only_a_stalled");
    "local queues: the stalled checks always compare the same worker", "src/queue/local.rs",
        "let last = last.map_or(&self.node, |(other, _)| other);"
        => "let last = &self.node;", Unit("local::tests::stalled_checks_reach");
    "local queues: no worker is notified of an overflow", "src/queue/local.rs",
        "        self.has_overflowed.set(true);\n"
        => "", Unit("local::tests::an_overflow");
    "local queues: the flag of an overflow is not set", "src/queue/local.rs",
        "        self.has_overflowed.set(true);\n"
        => "", Model("local_queues::an_overflow_out_of");
    "race 22: a worker does not notify of a future that overflowed", "src/runtime/context.rs",
        "        if !local.push(queue, job) {\n            // It went to the injector, and this worker takes from its local queue first.\n            self.needs_notify.set(true);\n"
        => "        if !local.push(queue, job) {\n", Model("local_queues::an_overflow_versus_a_stealer");
    "local queues: an immediate shutdown misses a steal in transit", "src/queue/mod.rs",
        "if before.is_some() && self.steals_in_transit.settled() == before {"
        => "if before.is_some() || before.is_none() {", Model("local_queues::a_drain_versus_a_steal");
    "context: notifying of a deferred task of a group waits for the end of a poll", "src/runtime/submit.rs",
        "            Some(context) => context.push(&shared.queue, job),\n            None =>"
        => "            Some(context) if context.is_in_poll() => return context.push(&shared.queue, job),\n            Some(context) => context.push(&shared.queue, job),\n            None =>", Test("local_queues", "lets_into_its_group");
    "local queues: the oldest task goes to the end", "src/queue/local.rs",
        "        }\n        if let Some(item) = self.rings.new.pop() {\n"
        => "        }\n        if let Some(first) = self.rings.new.pop() {\n            self.push(queue, first);\n        }\n        if let Some(item) = self.rings.new.pop() {\n", Test("local_queues", "in_order");
    "spin: a spinning worker does not hold its search", "src/runtime/worker/rest.rs",
        "        if begins {\n            self.search = Some(Search::Awake);\n        }\n"
        => "", Model("local_queues::a_task_submits_another_versus_spin");
    "spin: a worker spins beside any number of others", "src/runtime/worker/rest.rs",
        "now.running() > cpus() || !self.begin_search(now)"
        => "!self.begin_search(now)", Unit("worker::tests::a_worker_spins_as_one");
    "spin: any number of workers spin", "src/runtime/worker/rest.rs",
        "self.shared.counts.begin_search(self.search, now.search_limit(cpus()))"
        => "self.shared.counts.begin_search(self.search, 7)", Unit("worker::tests::a_worker_spins_as_one");
    "spin: a spin does not give way", "src/sync/spin.rs",
        "|| Cpu::current().is_some_and(Waking::is_any)" => "|| false", Unit("spin::tests::a_spin_gives_way");
    "spin: the spin of a submitter gives way", "src/sync/spin.rs",
        "    spin(limit, condition, || false)\n" => "    spin(limit, condition, || Cpu::current().is_some_and(Waking::is_any))\n",
        Unit("spin::tests::a_spin_gives_way");
    "CPUs: a pinned main thread decides", "src/sync/cpu.rs",
        "is_none_or(|(_, own)| own >= count)" => "is_none_or(|(_, own)| own == count)", Test("default_size", "a_pinned_main_thread");
    "CPUs: a pinned thread decides", "src/sync/cpu.rs",
        "count_as_main_thread().unwrap_or_else(num_cpus::get)" => "num_cpus::get()", Test("default_size", "a_pinned_thread_does_not");
    "spin: the system does not tell the CPU", "src/sync/cpu.rs",
        "Some(Cpu(usize::try_from(number).ok()? % Self::COUNT))" => "_ = number;\n        None", Unit("cpu::tests::some_systems");
    "spin: each thread runs on the first CPU", "src/sync/cpu.rs",
        "Some(Cpu(usize::try_from(number).ok()? % Self::COUNT))" => "_ = number;\n        Some(Cpu(0))", Unit("cpu::tests::a_pinned_thread");
    "spin: threads of all CPUs are counted together", "src/sync/cpu.rs",
        "        &self.0[cpu.0]\n" => "        &self.0[cpu.0 % 2]\n", Unit("cpu::tests::a_cpu_is_noted");
    "spin: a thread is noted on the CPU before", "src/sync/cpu.rs",
        "cpu.map_or(0, |cpu| cpu.0 + 1)" => "cpu.map_or(0, |cpu| cpu.0)", Unit("cpu::tests::a_cpu_is_noted");
    "spin: a woken thread is counted for ever", "src/sync/waking.rs",
        "        COUNTS.of(self.0).decrement();\n" => "", Unit("waking::tests::a_thread_counts");
    "spin: a woken thread is not counted", "src/sync/waking.rs",
        "        COUNTS.of(cpu).increment();\n" => "", Unit("waking::tests::a_thread_counts");
    "spin: a thread that wakes another is not counted", "src/sync/waking.rs",
        "        let _waking = Cpu::current().map(Self::begin);\n" => "", Unit("waking::tests::a_thread_that_wakes");
    "spin: a thread is not counted when it is woken", "src/sync/parker.rs",
        "            mailbox.waking = self.cpu.get().map(Waking::begin);\n" => "", Unit("parker::tests::an_owner_counts");
    "spin: a rechecked thread is counted", "src/sync/parker.rs",
        "if waiting && signal == Signal::Unparked {" => "if waiting {", Unit("parker::tests::an_owner_counts");
    "spin: a woken thread stays counted", "src/sync/parker.rs",
        "        mailbox.waking = None;\n" => "", Unit("parker::tests::an_owner_counts");
    "spin: where a thread parks is not known", "src/sync/parker.rs",
        "            self.cpu.note();\n" => "", Unit("parker::tests::an_owner_that_waits");
    "spin: a joiner is not counted when it is woken", "src/runtime/in_flight.rs",
        "                moments.waking = moments.cpu.map(Waking::begin);\n" => "", Unit("in_flight::tests::a_joiner_counts");
    "spin: a woken joiner stays counted", "src/runtime/in_flight.rs",
        "            moments.waking = None;\n" => "", Unit("in_flight::tests::a_joiner_counts");
    "spin: where a joiner waits is not known", "src/runtime/in_flight.rs",
        "            moments.cpu = Cpu::current();\n" => "", Unit("in_flight::tests::a_joiner_counts");
    "spin: a worker that finds a task does not notify", "src/runtime/worker.rs",
        "                if self.spin_for_work() {\n                    self.notice = Notice::First;\n"
        => "                if self.spin_for_work() {\n", Model("local_queues::a_task_submits_another_versus_spin");
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
        => "        let head = self.head.load(Ordering::Relaxed);\n        between", Model("ring::whoever_finds_nothing");
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
        "self.resize(enough);"
        => "self.resize(enough.min(KEPT_CAPACITY));", Unit("ring::tests::memory_is_freed");
    "ring: never shrinks", "src/queue/ring.rs",
        "            self.shrink_now();\n"
        => "            let _ = Self::shrink_now;\n", Unit("ring::tests::memory_is_freed");
    "ring: a stealer's first load of the head does not acquire what the owner released", "src/queue/ring.rs",
        "        let seen = self.shared.head.load(Ordering::Acquire);\n"
        => "        let seen = self.shared.head.load(Ordering::Relaxed);\n", Model("ring::never_nothing");
    "ring: a stealer's first load of the head does not acquire what another stealer released", "src/queue/ring.rs",
        "        let seen = self.shared.head.load(Ordering::Acquire);\n"
        => "        let seen = self.shared.head.load(Ordering::Relaxed);\n", Model("ring::whoever_can_steal");
    "ring: a stealer does not acquire the items", "src/queue/ring.rs",
        "            let tail = self.shared.tail.load(Ordering::Acquire);\n            let count"
        => "            let tail = self.shared.tail.load(Ordering::Relaxed);\n            let count", Model("ring::growth_versus");
    "ring: a stealer loads the tail first", "src/queue/ring.rs",
        "        let seen = self.shared.head.load(Ordering::Acquire);\n        if limit == 0 || between(seen, self.shared.tail.load(Ordering::Relaxed)) == 0 {"
        => "        let tail = self.shared.tail.load(Ordering::Acquire);\n        let seen = self.shared.head.load(Ordering::Acquire);\n        if limit == 0 || tail == seen & !LOCKED {", Model("ring::never_nothing");
    "ring: a stealer ignores its limit", "src/queue/ring.rs",
        "between(head, tail).div_ceil(2).min(limit);"
        => "between(head, tail).div_ceil(2).min(limit.max(usize::MAX));", Unit("ring::tests::half_is_stolen");
    "ring: a stealer takes all", "src/queue/ring.rs",
        "between(head, tail).div_ceil(2).min(limit);"
        => "between(head, tail).min(limit);", Unit("ring::tests::half_is_stolen");
    "ring: two stealers at once", "src/queue/ring.rs",
        "        let Some((mut head, lock_bit)) = self.shared.lock(seen) else { return Steal::Retry };\n"
        => "        let mut head = self.shared.head.fetch_or(LOCKED, Ordering::Acquire) & !LOCKED;\n        let lock_bit = LockBit(&self.shared.head);\n", Model("ring::two_thieves_versus_growth");
    "ring: a stealer clears the bit when it moves the head", "src/queue/ring.rs",
        "                after | LOCKED,"
        => "                after,", Model("ring::a_slot_again");
    "ring: a stealer does not release what it did before", "src/queue/ring.rs",
        "                Ordering::Release,\n                Ordering::Acquire,"
        => "                Ordering::Relaxed,\n                Ordering::Acquire,", Model("ring::whoever_finds_nothing");
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
        "        let Some((mut head, lock_bit)) = self.shared.lock(seen) else { return Steal::Retry };\n        let count = loop {\n"
        => "        let early = self.shared.tail.load(Ordering::Acquire);\n        let Some((mut head, lock_bit)) = self.shared.lock(seen) else { return Steal::Retry };\n        let count = loop {\n            if head == seen {\n                let count = between(head, early).div_ceil(2).min(limit);\n                let after = head.wrapping_add(count * ONE);\n                if self.shared.head.compare_exchange(head | LOCKED, after | LOCKED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {\n                    break count;\n                }\n            }\n", Model("ring::take_newest");
    "ring: a stealer that counts again does not acquire", "src/queue/ring.rs",
        "                Ordering::Release,\n                Ordering::Acquire,"
        => "                Ordering::Release,\n                Ordering::Relaxed,", Model("ring::never_nothing");
    "ring: the newest is taken without the bit", "src/queue/ring.rs",
        "        let (head, lock_bit) = self.lock_unless_empty(tail)?;\n        let newest"
        => "        let head = self.shared.head.load(Ordering::Acquire);\n        if head & LOCKED != 0 || head == tail {\n            return None;\n        }\n        let lock_bit = LockBit(&self.shared.head);\n        let newest", Model("ring::take_newest");
    "ring: the newest is examined while a stealer holds the bit", "src/queue/ring.rs",
        "        let (head, lock_bit) = self.lock_unless_empty(tail)?;\n        let newest"
        => "        let head = self.shared.head.fetch_or(LOCKED, Ordering::Acquire) & !LOCKED;\n        if head == tail {\n            return None;\n        }\n        let lock_bit = LockBit(&self.shared.head);\n        let newest", Unit("ring::tests::no_item_is_examined");
    "ring: the bit stays after an item was examined", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position | LOCKED, Ordering::Release);", Unit("ring::tests::an_unwanted_item");
    "ring: the bit stays after a panic in wanted", "src/queue/ring.rs",
        "        let item = unsafe { self.read_if(newest, wanted) };\n"
        => "        mem::forget(lock_bit);\n        let item = unsafe { self.read_if(newest, wanted) };\n        let lock_bit = LockBit(&self.shared.head);\n", Unit("ring::tests::a_panic_in_wanted");
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
    "wait: a withdrawn task can still be claimed", "src/task/evaluation.rs",
        "(Stage::Withdrawn, Withdrawal::HandBack)"
        => "(Stage::Queued, Withdrawal::HandBack)", Test("awaited", "given_back");
    "wait: a task that was handed back can be claimed", "src/task/evaluation.rs",
        "            Stage::Queued => (Stage::Begun, Step::Run),\n"
        => "            Stage::Queued | Stage::Withdrawn => (Stage::Begun, Step::Run),\n", Model("waits::an_awaited_task_versus_shutdown_now");
    "wait: a future that was handed back can be claimed", "src/task/state.rs",
        "let (fresh, withdrawn) = (SCHEDULED | FRESH, SCHEDULED | WITHDRAWN);"
        => "let (fresh, withdrawn) = (SCHEDULED | FRESH, SCHEDULED | FRESH);", Model("waits::an_awaited_future_versus_shutdown_now");
    "wait: a claimed future's entry is not stale", "src/task/state.rs",
        "(SCHEDULED | FRESH, RUNNING)"
        => "(SCHEDULED | FRESH, RUNNING | FRESH)", Unit("state::tests::the_entry_of_a_claimed");
    "scope: no worker is notified of what a worker's scope submits", "src/runtime/submit.rs",
        "                context.push(&self.shared.queue, entry);\n                self.shared.notify_queued(fills_core);\n"
        => "                context.push(&self.shared.queue, entry);\n                _ = fills_core;\n", Model("waits::tasks_of_a_workers_scope_need");
    "start: a worker starts a thread for the task of one that is starting", "src/runtime/notify.rs",
        "fills_core.then(|| self.counts.begin_starting())"
        => "{ let _ = fills_core; None }", Test("law_04_bounded", "below_core_size_a_task_starts_one_thread");
    "start: a refused start below core_size is not tried again", "src/runtime/notify.rs",
        "            self.counts.end_search(search).look(self);\n        }\n        self.report_start"
        => "            _ = self.counts.end_search(search);\n        }\n        self.report_start", Model("notify::a_refused_start_below_core_is");
    "start: an idle worker is still starting", "src/runtime/counts.rs",
        "        self.end_starting(search);\n        MustLook::owed()"
        => "        MustLook::owed()", Unit("counts::tests::any_number_may_be_starting");
    "start: a spinning worker is still starting", "src/runtime/counts.rs",
        "            self.end_starting(held);\n"
        => "            let _ = held;\n", Unit("counts::tests::any_number_may_be_starting");
    "wait: an entry is skipped that has a task", "src/task/unstarted.rs",
        "let is_surplus = state.surplus > 0;"
        => "let is_surplus = true;", Unit("unstarted::tests::each_task");
    "wait: an entry that was taken back is still counted", "src/task/unstarted.rs",
        "                if T::IS_TOLD {\n                    state.spare"
        => "                state.surplus += 1;\n                if T::IS_TOLD {\n                    state.spare", Unit("unstarted::tests::an_entry_that_was_taken_back");
    "wait: a worker takes an entry of another list back", "src/task/job.rs",
        "ptr::addr_eq(Arc::as_ptr(own), task)"
        => "ptr::addr_eq(Arc::as_ptr(own), task) || true", Unit("unstarted::tests::an_entry_that_was_taken_back");
    "wait: an entry that was taken back counts as stale", "src/runtime/metrics.rs",
        "        if entry == Entry::Stale {\n            self.leave_entry();\n        }\n"
        => "        let _ = entry;\n        self.leave_entry();\n", Test("memory", "memory_is_given_back");
    "race 47: polls of a closure begin no region", "src/runtime/poll_wait.rs",
        "if driver() == Driver::Closure { may_begin_region(pool) } else { None }"
        => "None::<WorkerRole>", Model("waits::a_closure_blocks_on_a_handle");
    "race 47: the region of polls does not end with its closure", "src/runtime/worker.rs",
        "        self.context.end(outcome);\n        end_waits();\n"
        => "        self.context.end(outcome);\n", Test("polled_by_closures", "the_end_of_the_closure");
    "race 47: the region of polls ends with the first of its handles", "src/runtime/poll_wait.rs",
        "waits.get() == 0"
        => "waits.get() == 0 || true", Test("polled_by_closures", "while_one_of_several");
    "race 47: a worker does not notice that another thread has ended its waits", "src/runtime/poll_wait.rs",
        "pub(super) fn is_waiting() -> bool {\n    end_region_if_over();\n"
        => "pub(super) fn is_waiting() -> bool {\n", Test("polled_by_closures", "another_thread_may_poll_or_drop");
    "race 47: a poll that the pool makes begins a region", "src/waker.rs",
        "in_poll(|| poll_and_register(header, route, owner, context, future, outcome))"
        => "poll_and_register(header, route, owner, context, future, outcome)", Test("polled_by_closures", "what_the_pool_polls");
    "race 47: a blocking wait polls like a closure", "src/runtime/poll_wait.rs",
        "        Meanwhile::begin(Driver::Pool, waits)"
        => "        Meanwhile::begin(Driver::Closure, waits)", Test("awaited", "chains::a_chain_of_nested");
    "race 47: a region around that of polls ends before it", "src/runtime/region.rs",
        "            // Polls inside of it may have begun another one.\n            end_waits();\n"
        => "", Test("polled_by_closures", "a_region_may_block_on");
    "race 47: a view's place is not taken back after polls", "src/runtime/compensate.rs",
        "        self.take_place_at_once();\n"
        => "", Test("polled_by_closures", "a_closure_of_a_view");
    "wait: an awaited task runs inside an executor that waits", "src/runtime/nesting.rs",
        " && !is_waiting()"
        => "", Test("polled_by_closures", "beside_a_pending_handle");
    "wait: a waiting worker claims no task", "src/runtime/awaited.rs",
        "context::of_worker(pool).filter(|_| may_nest())"
        => "context::of_worker(pool).filter(|_| false)", Model("waits::an_awaited_task_needs_no_thread");
    "wait: awaited tasks nest to the end of the stack", "src/runtime/nesting.rs",
        "here().abs_diff(self.base) < self.len"
        => "here().abs_diff(self.base) < self.len + (1 << 30)", Test("awaited", "a_chain_on_small_stacks_ends");
    "wait: a chain of waits needs a thread that is refused", "src/runtime/nesting.rs",
        "self.size.is_some_and(|size| has_room(size) && is_thread_refused(size))"
        => "self.size.is_some_and(|size| has_room(size) && is_thread_refused(size) && false)", Test("law_07_refusal_proof", "a_chain_of_waits");
    "wait: a chain of waits uses up a stack although threads can be had", "src/runtime/nesting.rs",
        "            let _ = thread.join();\n            false\n"
        => "            let _ = thread.join();\n            true\n", Test("awaited", "a_long_chain_leaves_half_of_the_stack");
    "wait: a thread outside nests scopes to the end of its stack", "src/runtime/nesting.rs",
        "        if is_outermost {"
        => "        if false {", Test("awaited", "a_chain_of_scopes_outside_ends");
    "wait: an awaited task runs inside the executor of its waiter", "src/runtime/block_on.rs",
        "enter().is_err() && !is_own()"
        => "enter().is_err() && !is_own() && false", Test("awaited", "may_enter_it");
    "wait: a wait with a limit begins a task after it", "src/group/wait.rs",
        "!quiet.is_over() && !has_passed(deadline)"
        => "!quiet.is_over()", Test("awaited", "a_wait_with_a_limit_begins_no_task_after_it");
    "wait: a wait with a limit runs no task", "src/join_handle/waiting.rs",
        "filter(|_| !has_passed(deadline))"
        => "filter(|_| deadline.is_none())", Test("awaited", "recursion_by_waits_with_a_limit");
    "wait: a completion that waits for a handle stays runnable", "src/runtime/region.rs",
        "is_some_and(|pending| pending.get() > 0)"
        => "is_some_and(|_| false)", Model("waits::a_completion_waits_for_a_handle");
    "spare worker: a worker withdraws for work above the limit", "src/runtime/counts.rs",
        "let may = now.idle() > 0 && now.running() < max;"
        => "let may = now.idle() > 0;", Unit("counts::tests::a_spare_worker_stays");
    "race 7: a returning worker does not look again", "src/runtime/compensate.rs",
        "        fence(Ordering::SeqCst);\n        self.admit_returning();\n        self.returning.wait"
        => "        self.returning.wait", Model("waits::a_return_versus_a_worker");
    "race 7: a worker that stops running admits none", "src/runtime/look.rs",
        "if now.blocked() > 0 && !self.returning.is_empty() {"
        => "if false {", Model("waits::workers_come_back_one_by_one");
    "returning: all workers return at once", "src/runtime/counts.rs",
        "(now.running() <= max).then_some(word.wrapping_sub(ONE_BLOCKED))"
        => "(now.running() <= usize::MAX).then_some(word.wrapping_sub(ONE_BLOCKED))", Model("waits::workers_come_back_one_by_one");
    "region: own waits are bounded as well", "src/runtime/compensate.rs",
        "let is_replaced = kind == RegionKind::Own\n            ||"
        => "let is_replaced =", Model("waits::a_wait_for_a_future_is_beyond_the_bound");
    "region: more than max_blocked are replaced", "src/runtime/compensate.rs",
        "self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked"
        => "self.declared.fetch_add(1, Ordering::AcqRel) < usize::MAX", Test("max_blocked", "");
    "race 35: the end of a task keeps its place", "src/runtime/policy.rs",
        "        if let Some(held) = held {\n            state.release(held, sizes.max());\n        }\n        let taken"
        => "        let _ = held;\n        let taken", Model("views::the_end_of_a_limited_task");
    "reserve: others take the reserved place", "src/runtime/policy.rs",
        "(max_size - self.reserved).saturating_sub(self.shared)"
        => "max_size.saturating_sub(self.shared)", Model("views::the_end_of_a_task_versus_submit_beside");
    "race 7: a place that is free is not given to a returning worker", "src/runtime/policy.rs",
        "        self.admit_returning(max_size);\n    }\n\n    fn try_acquire"
        => "    }\n\n    fn try_acquire", Model("views::a_worker_of_a_limited_view");
    "limit: a returning worker does not wait for a place", "src/runtime/place.rs",
        "            if !self.policy.exchange(None, lent, &self.sizes, &parker) {\n                self.policy.wait(lent, &parker);\n            }\n"
        => "            let _ = self.policy.exchange(None, lent, &self.sizes, &parker);\n", Model("views::a_worker_of_a_limited_view");
    "limit: a blocked worker keeps its place", "src/runtime/compensate.rs",
        "            relied = relied.and(self.lend_place(&context));\n"
        => "            _ = context;\n", Model("views::a_worker_of_a_limited_view");
    "limit: a claimed task runs without a place of its view", "src/runtime/place.rs",
        "        self.exchange_place(context, to);\n        Below"
        => "        Below", Test("views", "a_claimed_task_holds");
    "reserve: tasks that may not run wake workers", "src/runtime/notify.rs",
        "if self.queue.may_have_views() && !self.has_work() {"
        => "if false {", Test("views", "tasks_that_may_not_run_wake_no_worker");
    "race 10: a submitter waits for a permit of a view that is closed", "src/runtime/capacity.rs",
        "        if is_view_closed() {\n"
        => "        if is_view_closed() && false {\n", Model("views::close_of_a_view_versus_a_full_queue");
    "race 10: a close of a view does not wake its submitters", "src/runtime/shared.rs",
        "            capacity.close_view(view.id);\n"
        => "            let _ = capacity;\n", Model("views::close_of_a_view_versus_a_full_queue");
    "race 15: max_size is changed without a look at the reserves", "src/runtime/resize.rs",
        "self.sizes.change(change, reserved)"
        => "self.sizes.change(change, reserved * 0)", Model("views::resize_versus_a_reserve");
    "race 15: no worker is notified of a reserve that has ended", "src/runtime/place.rs",
        "        self.policy.remove(id, &self.sizes).look(&self);\n"
        => "        _ = self.policy.remove(id, &self.sizes);\n", Model("views::the_end_of_a_reserve");
    "race 8: a start does not compete with an expiry", "src/task/expiry.rs",
        "            self.state.compare_exchange(WAITING, next, Ordering::Relaxed, Ordering::Relaxed);\n"
        => "            Ok::<usize, usize>(self.state.swap(next, Ordering::Relaxed));\n", Model("views::the_deadline_of_a_started_task");
    "capacity: any number of workers waits for it", "src/runtime/capacity.rs",
        "(others < sizes.max()).then_some(wait)"
        => "(others < usize::MAX).then_some(wait)", Test("bounded_queue", "own_queue");
    "capacity: a worker has waited for it for good", "src/runtime/capacity.rs",
        "        self.0.0.decrement();\n"
        => "", Test("bounded_queue", "own_queue");
    "limit of a group: any number of workers waits for a slot", "src/group/submit.rs",
        "route.begin_own_wait().map(|wait| own_wait = wait).is_err()"
        => "(route.begin_own_wait().map(|wait| own_wait = wait).is_err() && false)", Test("group_limit", "a_bounded_number_of_threads");
    "capacity: a refused submitter holds up the next ones", "src/runtime/capacity.rs",
        "position(|submitter| !submitter.is_refused)"
        => "position(|_| true)", Unit("capacity::tests::a_submitter_to_a_closed_view");
    "limit: a worker that is not replaced keeps its place", "src/runtime/compensate.rs",
        "            relied = relied.and(self.lend_place(&context));\n        }\n        self.track_blocked(true);\n        let is_replaced = kind == RegionKind::Own\n            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked;\n        if is_replaced {\n"
        => "        }\n        self.track_blocked(true);\n        let is_replaced = kind == RegionKind::Own\n            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked;\n        if is_replaced {\n            if let Some(context) = context::current(self) {\n                relied = relied.and(self.lend_place(&context));\n            }\n", Test("views", "a_worker_that_takes_over");
    "expiry: a future is polled although it has expired", "src/waker.rs",
        "!sink.is_cancelled() && self.cell.shared().may_poll();"
        => "!sink.is_cancelled();", Test("views", "a_future_that_was_handed_back");
    "a full queue hides that the view is closed", "src/runtime/submit.rs",
        "NoPermit::Full if !is_view_closed => "
        => "NoPermit::Full => ", Test("views", "a_closed_view_of_a_full_pool");
    "views: the index of a view that has moved in the list of busy ones is not updated", "src/runtime/policy.rs",
        "            self.views[moved].busy_at = at;\n"
        => "            _ = moved;\n", Unit("policy::tests::items_of_each_view");
    "views: a removed view is mistaken for the one that has its key", "src/runtime/policy.rs",
        "self.views.get_mut(id.key).filter(|view| view.id == id)"
        => "self.views.get_mut(id.key)", Unit("policy::tests::a_view_with_the_key");
    "views: the younger of two comes first", "src/runtime/policy.rs",
        "(view.pass, view.id.number) < (pass, id.number)"
        => "view.pass < pass", Unit("policy::tests::of_two_views");
    "views: a limited view counts as more work", "src/runtime/policy.rs",
        "self.busy.iter().any(|&key| self.views[key].has_place(has_shared))"
        => "!self.busy.is_empty()", Unit("policy::tests::items_of_each_view");
    "priority: a lower one starves", "src/runtime/policy.rs",
        "const MAX_PASSED: usize = 18;"
        => "const MAX_PASSED: usize = usize::MAX;", Test("views", "lower_priorities_do_not_starve");
    "weight: all views have the same", "src/runtime/policy.rs",
        "FULL_STEP / view.terms.weight as u128"
        => "FULL_STEP", Test("views", "weights_are_shares");
    "weight: idle times give credit", "src/runtime/policy.rs",
        "if view.eligible_at.is_none_or(|at| at + 1 < level.served) {"
        => "if false {", Test("views", "idle_times_give_no_credit");
    "view: a join does not wait for the task's end", "src/runtime/view.rs",
        "        if is_end {\n            self.in_flight.finish(1);\n        }"
        => "        let _ = is_end;", Test("views", "a_join_waits_for_the_view_alone");
    "timeout: an expired task counts as cancelled", "src/runtime/metrics.rs",
        "Outcome::Expired => &self.counters.expired,"
        => "Outcome::Expired => &self.counters.cancelled,", Test("views", "a_task_that_is_late_is_dropped");
    "timeout: a blocking wait goes on after the deadline", "src/join_handle/waiting.rs",
        "            if expiry.expire() {"
        => "            if false {", Test("views", "a_blocking_wait_returns_at_the_deadline");
    "race 8: a context is entered before the task is won", "src/task/attachment.rs",
        "        let (mut attachment, mut entered) = (None, None);\n"
        => "        let mut attachment = self.attachment.lock().take();\n        let mut entered = attachment.as_ref().map(Attachment::enter);\n", Model("hooks::the_context_of_an_awaited_task");
    "race 42: the last worker does not recheck the keeper", "src/runtime/retire.rs",
        "                self.keeper.recheck();\n"
        => "", Model("hooks::the_keeper_versus_the_end");
    "keeper: the pool does not wait for its exit", "src/runtime/registry.rs",
        "handle);\n        self.unjoined += 1;\n        self.keepers_started"
        => "handle);\n        self.keepers_started", Test("report", "the_watcher_is_gone");
    "keeper: a refused one leaves the registry locked", "src/runtime/keeper.rs",
        "        let started = start_thread(name, None, move || {\n            // Made here: if the system refuses the thread, this closure is dropped under the registry's lock, which the\n            // drop of an `Exit` takes.\n            let exit = Exit { registry: Arc::clone(&shared.registry), key };\n"
        => "        let exit = Exit { registry: Arc::clone(&shared.registry), key };\n        let started = start_thread(name, None, move || {\n", Test("law_07_refusal_proof", "if_the_keeper_is_refused");
    "watcher: a task after an idle time does not wake it", "src/runtime/tracker.rs",
        "        state.is_watched = state.is_busy();\n        if state.is_watched {\n"
        => "        if state.is_busy() {\n", Test("report", "a_stall_after_an_idle_time");
    "watcher: a stall is reported again and again", "src/runtime/tracker.rs",
        "is_stalled |= !mem::replace(&mut self.has_reported_queue, true);"
        => "is_stalled |= !mem::replace(&mut self.has_reported_queue, false);", Test("report", "queued_tasks_that_no_worker_starts");
    "report: a future that has ended stays in it", "src/runtime/tracker.rs",
        "    fn end(&self) {\n        self.tracker.remove(self.number);\n"
        => "    fn end(&self) {\n", Test("report", "a_pending_future_is_in_the_report");
    "report: a region is not seen", "src/runtime/compensate.rs",
        "        self.track_blocked(true);\n"
        => "", Test("report", "a_task_that_waits_for_another");
    "context: a future's later polls are outside of it", "src/waker.rs",
        "poll_in_attachment(route, owner, context, future, outcome)?;"
        => "if header.pending_key().is_none() { poll_in_attachment(route, owner, context, future, outcome)? } else { future.poll(owner, context, None, outcome)? };", Test("task_context", "each_poll_is_in_the_context");
    "context: hooks are left in the order of their entry", "src/task/attachment.rs",
        "        while let Some(part) = self.0.pop() {\n            discard(part);\n        }\n    }\n}\n\n/// Contains panics of the parts"
        => "        self.0.drain(..).for_each(discard);\n    }\n}\n\n/// Contains panics of the parts", Test("task_context", "hooks_are_entered_in_order");
    "watcher: a woken future does not wake it", "src/runtime/tracker.rs",
        "        self.tracker.begin_watch(state);\n"
        => "        drop(state);\n", Test("report", "a_stalled_poll_of_a_woken_future");
    "watcher: a poll counts as a start", "src/runtime/tracker.rs",
        "state.pending.remove(&self.number) {\n            record"
        => "state.pending.remove(&self.number) {\n            (state.last_start, state.has_reported_queue) = (Some(now), false);\n            record", Test("report", "polls_do_not_hide");
    "report: a task that was handed back stays in it", "src/control.rs",
        "            tracker.forget_queued();\n"
        => "            let _ = tracker;\n", Test("report", "a_task_that_was_handed_back");
    "context: an expired task enters it", "src/task/attachment.rs",
        "if moment == Moment::Runs {"
        => "if moment == Moment::Taken {", Test("task_context", "a_closure_that_is_not_run");
    "token: its wakers run on the trampoline", "src/token.rs",
        "            off_trampoline(|| quietly(|| waker.wake()));\n"
        => "            quietly(|| waker.wake());\n", Test("group_destructors", "a_waker_that_a_dropped_task_calls");
    "thread_name: it is called again inside of its own call", "src/runtime/hooks.rs",
        "(!naming.contains(&address)).then(|| naming.push(address))"
        => "Some(naming.push(address))", Test("panic_handler", "a_panic_handler_may_submit");
    "handle: one whose result was taken answers instead of panicking", "src/join_handle.rs",
        "else { panic!(\"{HAS_RESOLVED}\") };"
        => "else { return Poll::Ready(Err(JoinError::cancelled())) };", Test("polled_handles", "polling_or_waiting");
    "handle: the panic of a result's destructor comes out of the handle's drop", "src/join_handle.rs",
        "        discard((self.receiver.take(), self.delivered.take()));\n"
        => "", Test("law_06_panic_proof", "results_whose_drop_panics_are_contained_in");
    "handle: the panic of a result's destructor comes out of the drop of a scope's handle", "src/join_handle.rs",
        "                discard(value);\n"
        => "                drop(value);\n", Test("law_06_panic_proof", "results_whose_drop_panics_are_contained_in");
    "region: the panic of a poll leaves its counter behind", "src/runtime/region.rs",
        "            let _polls = Meanwhile::polls(pending.clone());\n"
        => "            std::mem::forget(Meanwhile::polls(pending.clone()));\n", Unit("region::tests::a_poll_that_panics");
    "large task: it is moved without a box, which overflows a stack in an unoptimised build", "src/runtime/submit.rs",
        "    size_of::<F>() > MAX_MOVED_SIZE\n"
        => "    size_of::<F>() > usize::MAX\n", Test("large_tasks", "");
    "large task: the limit is another one", "src/runtime/submit.rs",
        "const MAX_MOVED_SIZE: usize = 2048;"
        => "const MAX_MOVED_SIZE: usize = 4096;", Test("allocations", "");
    "ring: memory is allocated before the lock bit is set", "src/queue/ring.rs",
        "        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };\n        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();\n"
        => "        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();\n        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };\n", Unit("ring::tests::a_resize_during_a_steal");
    "race 8: a task that a canceller has ended ends again on the caller", "src/runtime/submit.rs",
        "        if is_ended {\n            self.cancelled_on_caller();"
        => "        if is_ended || true {\n            self.cancelled_on_caller();", Test("law_07_refusal_proof", "a_future_that_is_cancelled_during");
    "recycling: a stale entry in a pool that is over needs a successor", "src/runtime/retire.rs",
        "        !status.is_over()\n            && !self" => "        !self", Test("recycling", "the_entry_of_a_cancelled_task");
    "cancel: the drop of an expired closure wakes no waiter", "src/task/evaluation.rs",
        "if matches!(outcome, Outcome::Cancelled | Outcome::Expired) {"
        => "if matches!(outcome, Outcome::Cancelled) {", Test("views", "a_wait_for_a_cancelled_task");
}
