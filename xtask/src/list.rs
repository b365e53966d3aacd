mutants! {
    "race 1: no fence between push and counts", "src/runtime/submit.rs",
        "        // Race 1: pushed first, then looked for idle workers; they look the other way round.\n        fence(Ordering::SeqCst);\n"
        => "", Model("submit_versus_idle");
    "race 1: no fence between idle and queue", "src/runtime/compensate.rs",
        "    pub(crate) fn fence_and_admit(&self, now: Snapshot) {\n        fence(Ordering::SeqCst);\n"
        => "    pub(crate) fn fence_and_admit(&self, now: Snapshot) {\n", Model("submit_versus_idle");
    "race 1: no look at the queue when idle", "src/runtime/worker.rs",
        "            if !shared.queue.is_empty() {\n                let max_size"
        => "            if false {\n                let max_size", Model("submit_versus_idle");
    "race 2: no notify after a search", "src/runtime/notify.rs",
        "self.queue.is_empty() || self.notify(true)"
        => "true", Model("interdependent_tasks");
    "race 2: no fence after the search", "src/runtime/notify.rs",
        "        fence(Ordering::SeqCst);\n        self.counts.load().has_spare_capacity"
        => "        self.counts.load().has_spare_capacity", Model("interdependent_tasks");
    "race 3: the last worker leaves without a look", "src/runtime/retire.rs",
        "        if now.total() == 0 && !self.in_flight.status().is_quiet() {"
        => "        if false {", Model("retire_versus_submit_without");
    "race 3: the last worker's look is a plain load", "src/runtime/in_flight.rs",
        "Status(self.word.fetch_or(0, Ordering::AcqRel))"
        => "Status(self.word.load(Ordering::Acquire))", Model("retire_versus_submit_without");
    "race 4: the last worker is not told", "src/runtime/caller.rs",
        "        if self.in_flight.finish(1).is_quiet() {"
        => "        if self.in_flight.finish(1).is_over() {", Model("an_abandoned_future");
    "race 5: no look at the queue when leaving", "src/runtime/worker.rs",
        "        self.shared.notify_next(None);\n        Rest::Left"
        => "        Rest::Left", Model("local_queues::leave_versus_a_hook");
    "race 9: two workers leave at once", "src/runtime/retire.rs",
        "            Retire::Surplus => now.total() > self.sizes.core(),"
        => "            Retire::Surplus => true,", Model("two_workers_retire");
    "race 11: a close does not recheck idle workers", "src/runtime/shared.rs",
        "        if status.is_over() {\n            self.recheck_all();\n        }"
        => "", Model("drop_versus_rest");
    "race 11: an idle worker does not look whether the pool is over", "src/runtime/worker.rs",
        "let is_over = shared.in_flight.is_over();"
        => "let is_over = false;", Model("drop_versus_rest");
    "race 12: a joiner accepts a moment of quiet before its call", "src/runtime/in_flight.rs",
        "        if self.status().is_quiet() {\n            *moments += 1;"
        => "        {\n            *moments += 1;", Model("submit_versus_idle");
    "race 12: a joiner does not look after it has registered", "src/runtime/in_flight.rs",
        "let mut quiet = self.status().is_quiet();"
        => "let mut quiet = false;", Model("submit_versus_idle");
    "race 12: the end of a task does not release", "src/runtime/in_flight.rs",
        "let before = self.word.fetch_sub(change, Ordering::AcqRel);"
        => "let before = self.word.fetch_sub(change, Ordering::Relaxed);", Model("submit_versus_idle");
    "a recheck replaces the signal", "src/sync/parker.rs",
        "if mailbox.signal != Some(Signal::Unparked) {"
        => "{", Model("parker_does_not_lose");
    "a parker forgets that its owner waits", "src/sync/parker.rs",
        "            mailbox.waiting = true;\n"
        => "", Model("parker_does_not_lose");
    "a wake during a poll is lost", "src/task/future_cell.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        before == IDLE"
        => "            other => other,\n        });\n        before == IDLE", Model("wake_versus_poll");
    "a wake is not seen by the poll it leads to", "src/task/future_cell.rs",
        "match self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {"
        => "match self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change) {", Model("two_wakers");
    "a future is dropped while a canceller is at it", "src/task/future_cell.rs",
        "        // A canceller may be at it.\n        drop(self.lock.lock());\n"
        => "", Model("cancel_versus_poll");
    "a canceller touches what somebody owns", "src/task/future_cell.rs",
        "if self.state.load(Ordering::Relaxed) & STATE == SCHEDULED | CANCELLED {"
        => "if true {", Model("cancel_versus_poll");
    "a future that is run caller_metrics does not look after it can be woken", "src/task/future_cell.rs",
        "        drop(away);\n        self.cell.is_cancelled()"
        => "        drop(away);\n        false", Model("cancel_versus_a_task");
    "race 13: a refused first start does not notify", "src/runtime/notify.rs",
        "            self.notify_next(search);\n        }\n        match started {"
        => "            self.counts.end_search(Search::Starting);\n        }\n        match started {", Model("a_refused_first_start");
    "one thread starts at a time", "src/runtime/notify.rs",
        "Growth::Eager => queued.saturating_sub(self.in_start_hook.load(Ordering::Relaxed)),"
        => "Growth::Eager => 1,", Model("no_more_threads");
    "starting threads are not limited by the tasks", "src/runtime/counts.rs",
        "self.starting() < enough.min(STARTING_MASK)"
        => "self.starting() < STARTING_MASK", Unit("counts::tests::no_more_start");
    "more threads start than the field can count", "src/runtime/counts.rs",
        "self.starting() < enough.min(STARTING_MASK)"
        => "self.starting() < enough", Unit("counts::tests::no_more_start");
    "race 34: a thread is started for a task that was taken", "src/runtime/notify.rs",
        "let started = if starting > self.queue.len() {"
        => "let started = if false {", Model("no_more_threads");
    "race 34: a starter does not acquire what was taken", "src/runtime/counts.rs",
        "let before = self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, change);"
        => "let before = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);", Model("no_more_threads");
    "race 34: a withdrawal for work does not set the flag", "src/runtime/counts.rs",
        "(now.idle() > 0 && now.running() < max).then(|| (now.0 - ONE_IDLE) | SEARCHING)"
        => "(now.idle() > 0 && now.running() < max).then(|| now.0 - ONE_IDLE)", Model("no_more_threads");
    "race 26: a worker blocks without a look at the queue", "src/runtime/compensate.rs",
        "        self.notify_next(None)\n    }\n\n    pub(super) fn exit_region"
        => "        true\n    }\n\n    pub(super) fn exit_region", Model("region_versus_submit");
    "region: a refused thread is not asked for again", "src/runtime/region.rs",
        "                    self.retry();"
        => "                    self.is_starved = false;", Model("a_worker_waits_for_a_handle_and_a_thread");
    "race 27: a refusal rechecks no blocked worker", "src/runtime/notify.rs",
        "                    self.blocked.recheck_all();\n"
        => "", Model("a_refusal_versus");
    "capacity: nobody is told that there is some", "src/runtime/capacity.rs",
        "                submitter.unpark();\n            }\n        }\n    }"
        => "                drop(submitter);\n            }\n        }\n    }", Model("submit_versus_a_full_queue");
    "capacity: nobody is told that there will never be some", "src/runtime/capacity.rs",
        "        for submitter in &state.submitters {\n            submitter.unpark();\n        }"
        => "", Model("close_versus_a_full_queue");
    "capacity: a blocked worker still counts as working", "src/runtime/compensate.rs",
        "            if phase == Phase::Tasks {\n                self.end_work();\n            }\n"
        => "", Model("a_worker_waits_for_room");
    "race 15: max_size is raised without a look at the queue", "src/runtime/resize.rs",
        "        self.notify_next(None);\n        Ok(())"
        => "        Ok(())", Model("a_higher_limit");
    "race 15: max_size is lowered without a recheck", "src/runtime/resize.rs",
        "            self.shrinks.increment();\n        }\n        self.recheck_all();\n"
        => "            self.shrinks.increment();\n        }\n", Model("a_lower_limit");
    "race 15: core_size is changed without a recheck", "src/runtime/resize.rs",
        "        self.recheck_all();\n        fence(Ordering::SeqCst);"
        => "        fence(Ordering::SeqCst);", Model("another_core_size");
    "race 31: a worker leaves although its successor is refused", "src/runtime/retire.rs",
        "Err(StartError::Refused(_)) => return false,"
        => "Err(StartError::Refused(_)) => break self.registry.lock(),", Model("recycle_versus_a_refused");
    "recycling: no successor is started", "src/runtime/retire.rs",
        "            if why == Retire::Recycled {\n                match"
        => "            if false {\n                match", Test("recycling", "");
    "shutdown_now: futures may wait after it", "src/task/pending.rs",
        "            state.is_shut = true;\n"
        => "", Model("shutdown_now_versus_poll");
    "region: an inner wait does not ask for what the outer region was refused", "src/runtime/region.rs",
        "            region.retry();\n        }\n        region"
        => "        }\n        region", Test("law_07_refusal_proof", "");
    "capacity: a full queue keeps a refused thread from being asked for again", "src/runtime/submit.rs",
        "            self.notify_next(None);\n            if let Patience"
        => "            if let Patience", Test("law_07_refusal_proof", "");
    "race 30: an empty queue does not recheck the stall monitor", "src/runtime/worker.rs",
        "            shared.recheck_stall_monitor(now);\n        }\n        loop {"
        => "        }\n        loop {", Model("stall_monitor_versus_an_empty_queue");
    "law 1: no worker beyond the first", "src/runtime/counts.rs",
        "self.idle() == 0 && self.running() < max && self.total() < MAX_WORKERS"
        => "self.idle() == 0 && self.running() < max.min(1) && self.total() < MAX_WORKERS", Test("law_01_prompt", "");
    "law 2: a promise that is not kept is forgotten", "src/task/evaluation.rs",
        "        discard(promise);\n    }\n}"
        => "        std::mem::forget(promise);\n    }\n}", Test("law_02_settled", "");
    "law 3: pending futures do not count", "src/waker.rs",
        "AfterPoll::Wait => Outcome::Pending,"
        => "AfterPoll::Wait => Outcome::Completed,", Test("law_03_quiet", "");
    "law 4: an excess of runnable workers is ignored", "src/runtime/retire.rs",
        "now.runnable() > self.sizes.max()"
        => "now.runnable() > usize::MAX", Model("the_end_of_a_region");
    "law 9: a thread is started in a pool that is over", "src/runtime/spawn.rs",
        "            if self.in_flight.is_over() {\n                return Err(StartError::Over);"
        => "            if false {\n                return Err(StartError::Over);", Model("a_slow_wake_versus_shutdown");
    "law 5: the oldest idle worker is woken", "src/runtime/idle.rs",
        "if counts.claim_idle(max) { parkers.pop() } else { None }"
        => "if counts.claim_idle(max) { Some(parkers.remove(0)) } else { None }", Test("law_05_cold", "");
    "law 6: a panic in a task is not contained", "src/task/job.rs",
        "    match contain(closure) {\n        Ok(())"
        => "    match Ok::<(), Payload>(closure()) {\n        Ok(())", Test("law_06_panic_proof", "");
    "law 7: a refused worker is counted", "src/runtime/spawn.rs",
        "        registry.refused += usize::from(started.is_err());"
        => "        if started.is_err() {\n            self.counts.add_worker();\n        }", Test("law_07_refusal_proof", "");
    "law 8: a close is not decided with the acceptance", "src/runtime/in_flight.rs",
        "(word & CLOSED == 0).then_some(word + count * ONE_TASK)"
        => "Some(word + count * ONE_TASK)", Test("law_08_closed", "");
    "law 9: threads are not waited for", "src/runtime/registry.rs",
        "let gone = state.unjoined <= if leaving.is_some() { state.waiting.len() } else { 0 };"
        => "let gone = true;", Test("law_09_gone", "");
    "law 10: a join from inside is not refused", "src/pool.rs",
        "            Caller::Busy => true,\n"
        => "            Caller::Busy => false,\n", Test("law_10_no_self_made_deadlock", "waits_for_its_pool");
    "law 10: a join from inside returns without a word", "src/pool.rs",
        "            thread::panicking(),\n            \"`{what}` was called by one of the tasks"
        => "            true,\n            \"`{what}` was called by one of the tasks", Test("law_10_no_self_made_deadlock", "waits_for_its_pool");
    "law 10: a stop hook waits for what may wait for it", "src/pool.rs",
        "!stop_hook_may && context::worker_index().is_some()"
        => "false", Test("destructors", "stop_hook");
    "law 10: a group's task that waits for the group is not told", "src/group/state.rs",
        "!is_own || thread::panicking()"
        => "true", Test("group", "a_task_that_waits_for_its_own_group");
    "destructors: a join panics while its thread unwinds", "src/pool.rs",
        "            thread::panicking(),\n            \"`{what}` was called by one of the tasks"
        => "            false,\n            \"`{what}` was called by one of the tasks", Test("destructors", "");
    "destructors: a join panics in that of a thread-local", "src/pool.rs",
        "!stop_hook_may && context::worker_index().is_some()"
        => "!stop_hook_may", Test("destructors", "thread_local");
    "destructors: no wait while the thread unwinds", "src/pool.rs",
        "            Caller::Outside => false,\n"
        => "            Caller::Outside => thread::panicking(),\n", Test("destructors", "wait_for_others");
    "destructors: a wait for the own group panics while its thread unwinds", "src/group/state.rs",
        "!is_own || thread::panicking()"
        => "!is_own", Test("destructors", "group");
    "destructors: no wait for a group while the thread unwinds", "src/group/state.rs",
        "        is_own\n    }"
        => "        is_own || thread::panicking()\n    }", Test("destructors", "another_group");
    "destructors: a limited wait for the own group waits", "src/group.rs",
        "        if is_inside(self.inner.id()) {\n            return None;"
        => "        if false {\n            return None;", Test("group", "with_a_limit");
    "law 11: a wake during a poll submits at once", "src/task/future_cell.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        before == IDLE"
        => "            RUNNING => SCHEDULED,\n            other => other,\n        });\n        matches!(before, IDLE | RUNNING)", Test("law_11_one_entry", "");
    "law 12: a worker takes the second task", "src/queue/mod.rs",
        "self.receiver.try_recv().ok()"
        => "{ let first = self.receiver.try_recv().ok()?; match self.receiver.try_recv() { Ok(second) => { self.push(first); Some(second) } Err(_) => Some(first) } }", Test("law_12_in_order", "");
    "scope: the owner does not look after it has said that it waits", "src/scope.rs",
        "            if self.is_finished() { Poll::Ready(()) } else { Poll::Pending }"
        => "            Poll::<()>::Pending", Model("groups::the_end_of_a_scope");
    "scope: the end of a task does not release", "src/scope.rs",
        "fetch_sub(1, Ordering::AcqRel) == 1"
        => "fetch_sub(1, Ordering::Relaxed) == 1", Model("groups::the_end_of_a_scope");
    "scope: a task is given up before it is run", "src/task/unstarted.rs",
        "self.owner.ended(self.task.job.run())"
        => "{\n            let outcome = self.owner.ended(Outcome::Completed);\n            drop(self.task.job.run());\n            outcome\n        }", Model("groups::the_end_of_a_scope");
    "scope: a task is given away", "src/task/unstarted.rs",
        "        Err(Job::Closure(Closure::new(move || self.drop_oldest())))\n"
        => "        Ok(Job::Shared { task: self, is_new: true })\n", Model("groups::shutdown_now_versus_a_scope");
    "group: quiet is not told", "src/group/state.rs",
        "        self.grant(after);\n        self.settle(after);\n"
        => "        self.grant(after);\n", Model("groups::the_wait_for_a_group");
    "group: a place is not passed on", "src/group/state.rs",
        "        self.grant(after);\n        self.settle(after);\n"
        => "        self.settle(after);\n", Model("groups::a_full_group_versus_the_end");
    "group: there is always a place", "src/group/state.rs",
        "        self.slots >= self.limit\n"
        => "        false\n", Model("groups::a_full_group_versus_the_end");
    "group: an error is for all who wait, or for none", "src/group/state.rs",
        "                Some(errors) => Told::Errors(errors),"
        => "                Some(_) => Told::Errors(Vec::new()),", Model("groups::two_wait_for_an_error");
    "group: a cancel leaves the submitters in line", "src/group/state.rs",
        "InLine::Visitor(submitter) => after.dismiss.push(submitter),"
        => "InLine::Visitor(submitter) => mem::forget(submitter),", Model("groups::a_full_group_versus_cancel");
    "group: a cancel forgets the tasks in line", "src/group/state.rs",
        "                    self.slots += 1;\n                    after.drop.push(job);"
        => "                    mem::forget(job);", Model("groups::a_task_in_line_versus_cancel");
    "group: a future is entered without a look at the token", "src/group/state.rs",
        "(!self.token.is_cancelled()).then(|| self.pending.insert(future))"
        => "Some(self.pending.insert(future))", Model("groups::cancel_versus_a_future_of_a_group");
    "group: a cancel does not reach the futures that wait", "src/group/state.rs",
        "        after.cancel.extend(self.pending.drain());\n"
        => "", Model("groups::a_failure_versus_a_future");
    "token: no look under the lock", "src/token.rs",
        "        if self.token.is_cancelled() {\n            self.place = None;"
        => "        if false {\n            self.place = None;", Model("groups::cancelled_versus_cancel");
    "context: nobody is told of a task that a task has submitted", "src/runtime/submit.rs",
        "            Some(context) => context.push(&self.queue, job),\n"
        => "            Some(context) => return context.push(&self.queue, job),\n", Model("local_queues::a_task_submits_another_versus_idle");
    "context: the queues of others are not looked at before a rest", "src/queue/mod.rs",
        "self.receiver.is_empty() && self.nodes().all(|node| node.stealer.is_empty())"
        => "self.receiver.is_empty()", Model("local_queues::a_task_submits_another_versus_idle");
    "context: nothing is taken from others", "src/runtime/context.rs",
        "self.steal(|| local.steal(queue))"
        => "None", Model("local_queues::a_task_submits_another_versus_idle");
    "context: what was taken from others is not passed on", "src/runtime/context.rs",
        "            // What came with it was in nobody's reach for a moment.\n            self.needs_notify.set(true);\n"
        => "", Model("local_queues::a_stolen_batch");
    "context: nobody is told of a future that a poll has woken", "src/runtime/context.rs",
        "        self.push(queue, make);\n        self.needs_notify.set(true);\n"
        => "        self.push(queue, make);\n", Model("local_queues::futures::a_poll_wakes_two");
    "race 22: a region does not end the deferral of a poll", "src/runtime/compensate.rs",
        "            context.stop_deferring();\n"
        => "            let _ = context;\n", Model("local_queues::futures::a_poll_wakes_another_in_a_region");
    "race 20: credit is not reported", "src/runtime/worker.rs",
        "let finished = self.context.take_credit();"
        => "let finished = 0;", Model("local_queues::join_versus");
    "context: credit that was not given", "src/runtime/context.rs",
        "shared.in_flight.accept(CREDIT_BATCH)"
        => "shared.in_flight.accept(1)", Model("local_queues::join_versus");
    "context: the end of a task is not counted", "src/runtime/context.rs",
        "            self.credit.set(self.credit.get() + 1);\n        }\n        if let"
        => "        }\n        if let", Model("local_queues::join_versus");
    "context: a closed pool accepts what it has credit for", "src/runtime/context.rs",
        "        if shared.in_flight.is_closed() {\n            return false;"
        => "        if false {\n            return false;", Model("local_queues::close_versus");
    "race 19: a worker that leaves keeps its context open", "src/runtime/worker.rs",
        "        self.context.shut();\n        self.shared.fence_and_admit("
        => "        self.shared.fence_and_admit(", Model("local_queues::leave_versus_a_hook");
    "race 19: a recycled worker keeps its context open", "src/runtime/worker.rs",
        "        self.context.shut();\n        let leaves"
        => "        let leaves", Test("local_queues", "leaves");
    "context: an immediate shutdown does not look into it", "src/queue/mod.rs",
        "self.nodes().find_map(|node| {"
        => "self.nodes().take(0).find_map(|node| {", Test("local_queues", "shutdown_now");
    "context: a worker with tasks of its own does not look into the channel", "src/queue/mod.rs",
        "if asked.get() % INTERVAL == 0 {"
        => "if false {", Test("local_queues", "feeds_itself");
    "context: a worker with tasks of its own does not help others", "src/queue/mod.rs",
        "let is_turn = asked.get() % INTERVAL == INTERVAL / 2;"
        => "let is_turn = false;", Test("local_queues", "a_busy_one_has_left");
    "context: those who ask for tasks are relieved as well", "src/queue/mod.rs",
        "other.asked.get() == *asked);"
        => "other.asked.get() >= *asked);", Unit("queue::tests::only_one");
    "context: always the same one is relieved", "src/queue/mod.rs",
        "let last = last.map_or(&self.node, |(other, _)| other);"
        => "let last = &self.node;", Unit("queue::tests::each_of_the_others");
    "context: nobody hears of what does not fit", "src/queue/mod.rs",
        "            self.has_overflowed.set(true);\n"
        => "", Unit("queue::tests::what_does_not_fit");
    "context: an immediate shutdown misses what is moved", "src/queue/mod.rs",
        "if before.is_some() && self.steals_in_transit.settled() == before {"
        => "if before.is_some() || before.is_none() {", Model("local_queues::shutdown_now_versus_a_stolen");
    "context: a task in line for its group is kept secret in a poll", "src/runtime/submit.rs",
        "            Some(context) => context.push(&self.queue, job),\n"
        => "            Some(context) if context.is_in_poll() => return context.push_deferring_notify(&self.queue, job),\n            Some(context) => context.push(&self.queue, job),\n", Test("local_queues", "lets_into_its_group");
    "context: the first goes to the end", "src/queue/mod.rs",
        "if let Some(item) = self.own.pop() {"
        => "if let Some(first) = self.own.pop() {\n            self.push(queue, || first);\n        }\n        if let Some(item) = self.own.pop() {", Test("local_queues", "in_order");
    "spin: a spinning worker does not hold its search", "src/runtime/worker.rs",
        "        self.search.get_or_insert(Search::Awake);\n"
        => "", Model("local_queues::a_task_submits_another_versus_spin");
    "spin: a worker that finds a task does not notify", "src/runtime/worker.rs",
        "            } else if !is_above_limit && self.spin_for_work() {\n                self.is_fresh = true;\n"
        => "            } else if !is_above_limit && self.spin_for_work() {\n", Model("local_queues::a_task_submits_another_versus_spin");
    "ring: what is added is not released", "src/queue/ring.rs",
        "self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Release);"
        => "self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Relaxed);", Model("ring::growth_versus");
    "ring: it is added before it is there", "src/queue/ring.rs",
        "        let item = make();\n"
        => "        let item = make();\n        self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Release);\n", Model("ring::growth_versus");
    "ring: an item may add another", "src/queue/ring.rs",
        "assert!(!self.is_adding.replace(true), \"nothing else is added meanwhile\");"
        => "", Unit("ring::tests::an_item_may_not_add");
    "ring: a length does not see what the head's change releases", "src/queue/ring.rs",
        "        let head = self.head.load(Ordering::Acquire);\n        between"
        => "        let head = self.head.load(Ordering::Relaxed);\n        between", Model("ring::never_empty");
    "ring: a length does not see what a thief did", "src/queue/ring.rs",
        "        let head = self.head.load(Ordering::Acquire);\n        between"
        => "        let head = self.head.load(Ordering::Relaxed);\n        between", Model("ring::whoever_finds_nothing");
    "ring: a length: the tail is read first", "src/queue/ring.rs",
        "        let head = self.head.load(Ordering::Acquire);\n        between(head, self.tail.load(Ordering::Relaxed))"
        => "        let tail = self.tail.load(Ordering::Acquire);\n        let head = self.head.load(Ordering::Acquire);\n        tail.wrapping_sub(head & !BUSY) / ONE", Model("ring::never_empty");
    "ring: the owner does not see that slots were read", "src/queue/ring.rs",
        "        let head = self.shared.head.load(Ordering::Acquire);\n        if head & BUSY == 0 {"
        => "        let head = self.shared.head.load(Ordering::Relaxed);\n        if head & BUSY == 0 {", Model("ring::a_slot_again");
    "ring: slots are free although a thief is at it", "src/queue/ring.rs",
        "        if head & BUSY == 0 {\n            self.free.set(head);\n        }"
        => "        self.free.set(head & !BUSY);", Model("ring::a_slot_again");
    "ring: it never looks what is free", "src/queue/ring.rs",
        "        if head & BUSY == 0 {\n            self.free.set(head);\n        }"
        => "        let _ = head;", Unit("ring::tests::what_was_taken_makes_room");
    "ring: what the owner takes does not release", "src/queue/ring.rs",
        "                next,\n                Ordering::Release,"
        => "                next,\n                Ordering::Relaxed,", Model("ring::never_empty");
    "ring: the owner takes without a look at thieves", "src/queue/ring.rs",
        "            let taken = self.shared.head.compare_exchange_weak(\n                head,\n                next,\n                Ordering::Release,\n                Ordering::Relaxed,\n            );\n"
        => "            let taken = Ok::<usize, usize>(head);\n            self.shared.head.store(next, Ordering::Release);\n", Model("ring::add_and_take");
    "ring: the owner takes, and the bit is lost", "src/queue/ring.rs",
        "                head,\n                next,\n                Ordering::Release,"
        => "                head,\n                next & !BUSY,\n                Ordering::Release,", Model("ring::a_slot_again");
    "ring: the owner takes the bit for an item", "src/queue/ring.rs",
        "while head & !BUSY != tail {"
        => "while head != tail {", Model("ring::add_and_take");
    "ring: the lock bit does not acquire: slots", "src/queue/ring.rs",
        "                head | BUSY,\n                Ordering::Acquire,"
        => "                head | BUSY,\n                Ordering::Relaxed,", Model("ring::growth_versus");
    "ring: the slots are replaced while a thief is at it", "src/queue/ring.rs",
        "        let Some((head, at_it)) = self.shared.lock(seen) else { return false };\n"
        => "        let head = self.shared.head.fetch_or(BUSY, Ordering::Acquire) & !BUSY;\n        let _ = seen;\n        let at_it = AtIt(&self.shared.head);\n", Model("ring::growth_versus");
    "ring: the slots are replaced in secret", "src/queue/ring.rs",
        "        let Some((head, at_it)) = self.shared.lock(seen) else { return false };\n"
        => "        if seen & BUSY != 0 {\n            return false;\n        }\n        let (head, at_it) = (seen, AtIt(&self.shared.head));\n", Model("ring::growth_versus");
    "ring: new slots are not released", "src/queue/ring.rs",
        "        drop(at_it);\n        true"
        => "        std::mem::forget(at_it);\n        self.shared.head.fetch_and(!BUSY, Ordering::Relaxed);\n        true", Model("ring::growth_versus");
    "ring: the bit stays after the slots were replaced", "src/queue/ring.rs",
        "        drop(at_it);\n        true"
        => "        std::mem::forget(at_it);\n        true", Unit("ring::tests::the_order_is_kept");
    "ring: the new slots are as free as the old ones", "src/queue/ring.rs",
        "        self.free.set(head);\n        self.capacity"
        => "        self.capacity", Model("ring::shrink_versus");
    "ring: too many slots are given back", "src/queue/ring.rs",
        "self.resize(enough);"
        => "self.resize(enough.min(SMALL));", Unit("ring::tests::memory_is_given_back");
    "ring: nothing is given back", "src/queue/ring.rs",
        "            self.shrink_now();\n"
        => "            let _ = Self::shrink_now;\n", Unit("ring::tests::memory_is_given_back");
    "ring: a thief's look at the head does not acquire", "src/queue/ring.rs",
        "        let seen = self.shared.head.load(Ordering::Acquire);\n"
        => "        let seen = self.shared.head.load(Ordering::Relaxed);\n", Model("ring::never_nothing");
    "ring: a thief that finds nothing does not see what another did", "src/queue/ring.rs",
        "        let seen = self.shared.head.load(Ordering::Acquire);\n"
        => "        let seen = self.shared.head.load(Ordering::Relaxed);\n", Model("ring::whoever_can_steal");
    "ring: a thief does not see the items", "src/queue/ring.rs",
        "            let tail = self.shared.tail.load(Ordering::Acquire);\n            let count"
        => "            let tail = self.shared.tail.load(Ordering::Relaxed);\n            let count", Model("ring::growth_versus");
    "ring: a thief looks at the tail first", "src/queue/ring.rs",
        "        let seen = self.shared.head.load(Ordering::Acquire);\n        if limit == 0 || between(seen, self.shared.tail.load(Ordering::Relaxed)) == 0 {"
        => "        let tail = self.shared.tail.load(Ordering::Acquire);\n        let seen = self.shared.head.load(Ordering::Acquire);\n        if limit == 0 || tail == seen & !BUSY {", Model("ring::never_nothing");
    "ring: a thief takes more than it may", "src/queue/ring.rs",
        "between(head, tail).div_ceil(2).min(limit);"
        => "between(head, tail).div_ceil(2).min(limit.max(usize::MAX));", Unit("ring::tests::half_is_stolen");
    "ring: a thief takes all", "src/queue/ring.rs",
        "between(head, tail).div_ceil(2).min(limit);"
        => "between(head, tail).min(limit);", Unit("ring::tests::half_is_stolen");
    "ring: two thieves are at it", "src/queue/ring.rs",
        "        let Some((mut head, at_it)) = self.shared.lock(seen) else { return Steal::Retry };\n"
        => "        let mut head = self.shared.head.fetch_or(BUSY, Ordering::Acquire) & !BUSY;\n        let at_it = AtIt(&self.shared.head);\n", Model("ring::two_thieves_versus_growth");
    "ring: the bit is lost when a thief moves the head", "src/queue/ring.rs",
        "                after | BUSY,"
        => "                after,", Model("ring::a_slot_again");
    "ring: a thief does not release what it did", "src/queue/ring.rs",
        "                Ordering::Release,\n                Ordering::Acquire,"
        => "                Ordering::Relaxed,\n                Ordering::Acquire,", Model("ring::whoever_finds_nothing");
    "ring: a thief that was too late takes all the same", "src/queue/ring.rs",
        "                Err(now) => head = now & !BUSY,"
        => "                Err(_) => break count,", Model("ring::add_and_take");
    "ring: a thief does not release what it has read", "src/queue/ring.rs",
        "        self.0.fetch_and(!BUSY, Ordering::Release);"
        => "        self.0.fetch_and(!BUSY, Ordering::Relaxed);", Model("ring::a_slot_again");
    "ring: a thief is done before it has read", "src/queue/ring.rs",
        "        let mut position = head;\n        let mut next"
        => "        drop(at_it);\n        let at_it = ();\n        let mut position = head;\n        let mut next", Model("ring::a_slot_again");
    "ring: the lock bit does not acquire: the tail", "src/queue/ring.rs",
        "                head | BUSY,\n                Ordering::Acquire,"
        => "                head | BUSY,\n                Ordering::Relaxed,", Model("ring::take_newest");
    "ring: the lock bit does not acquire: an earlier theft", "src/queue/ring.rs",
        "                head | BUSY,\n                Ordering::Acquire,"
        => "                head | BUSY,\n                Ordering::Relaxed,", Model("ring::a_stealer_that_finds_nothing");
    "ring: a stealer counts the items before it has the bit", "src/queue/ring.rs",
        "        let Some((mut head, at_it)) = self.shared.lock(seen) else { return Steal::Retry };\n        let count = loop {\n"
        => "        let early = self.shared.tail.load(Ordering::Acquire);\n        let Some((mut head, at_it)) = self.shared.lock(seen) else { return Steal::Retry };\n        let count = loop {\n            if head == seen {\n                let count = between(head, early).div_ceil(2).min(limit);\n                let after = head.wrapping_add(count * ONE);\n                if self.shared.head.compare_exchange(head | BUSY, after | BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok() {\n                    break count;\n                }\n            }\n", Model("ring::take_newest");
    "ring: a stealer that counts again does not acquire", "src/queue/ring.rs",
        "                Ordering::Release,\n                Ordering::Acquire,"
        => "                Ordering::Release,\n                Ordering::Relaxed,", Model("ring::never_nothing");
    "ring: the newest is taken without the bit", "src/queue/ring.rs",
        "        let (head, at_it) = self.lock_unless_empty(tail)?;\n        let newest"
        => "        let head = self.shared.head.load(Ordering::Acquire);\n        if head & BUSY != 0 || head == tail {\n            return None;\n        }\n        let at_it = AtIt(&self.shared.head);\n        let newest", Model("ring::take_newest");
    "ring: the oldest is taken without the bit", "src/queue/ring.rs",
        "        let item = unsafe { self.read_if(head, wanted) };\n"
        => "        drop(at_it);\n        let at_it = AtIt(&self.shared.head);\n        let item = unsafe { self.read_if(head, wanted) };\n", Model("ring::take_oldest");
    "ring: a look at the newest ignores the bit", "src/queue/ring.rs",
        "        let (head, at_it) = self.lock_unless_empty(tail)?;\n        let newest"
        => "        let head = self.shared.head.fetch_or(BUSY, Ordering::Acquire) & !BUSY;\n        if head == tail {\n            return None;\n        }\n        let at_it = AtIt(&self.shared.head);\n        let newest", Unit("ring::tests::nothing_is_looked_at");
    "ring: the bit stays after a look", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position | BUSY, Ordering::Release);", Unit("ring::tests::what_is_not_wanted");
    "ring: the bit stays after a look that panics", "src/queue/ring.rs",
        "        let item = unsafe { self.read_if(head, wanted) };\n"
        => "        mem::forget(at_it);\n        let item = unsafe { self.read_if(head, wanted) };\n        let at_it = AtIt(&self.shared.head);\n", Unit("ring::tests::a_look_may_panic");
    "ring: the end of a look does not release the tail", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position, Ordering::Relaxed);", Model("ring::take_newest");
    "ring: the end of a look does not release an earlier theft", "src/queue/ring.rs",
        "        self.0.store(position, Ordering::Release);"
        => "        self.0.store(position, Ordering::Relaxed);", Model("ring::a_stealer_that_finds_nothing");
    "ring: the bit is clear before the tail is lower", "src/queue/ring.rs",
        "        if item.is_some() {\n            self.shared.tail.store(newest, Ordering::Relaxed);\n        }\n        at_it.end_at(head);\n"
        => "        at_it.end_at(head);\n        if item.is_some() {\n            self.shared.tail.store(newest, Ordering::Relaxed);\n        }\n", Model("ring::newest_again");
    "ring: the newest is taken, and still counted", "src/queue/ring.rs",
        "        if item.is_some() {\n            self.shared.tail.store(newest, Ordering::Relaxed);\n        }\n        at_it.end_at(head);\n"
        => "        let _ = newest;\n        at_it.end_at(head);\n", Unit("ring::tests::what_is_not_wanted");
    "ring: the newest is looked at in a ring that has become empty", "src/queue/ring.rs",
        ".filter(|(head, _)| *head != tail)"
        => "", Model("ring::newest_again");
    "ring: the newest is taken while an item is made", "src/queue/ring.rs",
        "assert!(!self.is_adding.replace(true), \"no item is made meanwhile\");"
        => "self.is_adding.set(true);", Unit("ring::tests::the_newest_stays");
    "ring: a look takes another", "src/queue/ring.rs",
        "debug_assert!(!self.is_looking.get(), \"the item is borrowed\");"
        => "", Unit("ring::tests::a_look_takes_nothing");
    "ring: the oldest is taken, and still counted", "src/queue/ring.rs",
        "        let next = if item.is_some() { head.wrapping_add(ONE) } else { head };\n"
        => "        let next = if item.is_some() { head } else { head };\n", Unit("ring::tests::what_is_not_wanted");
    "ring: the oldest is not wanted, and gone", "src/queue/ring.rs",
        "        let next = if item.is_some() { head.wrapping_add(ONE) } else { head };\n"
        => "        let next = if item.is_some() { head.wrapping_add(ONE) } else { head.wrapping_add(ONE) };\n", Unit("ring::tests::what_is_not_wanted");
    "ring: what is not wanted is taken", "src/queue/ring.rs",
        "is_wanted.then("
        => "(is_wanted || true).then(", Unit("ring::tests::what_is_not_wanted");
    "ring: what is left is not dropped", "src/queue/ring.rs",
        "            while head != tail {"
        => "            while false {", Unit("ring::tests::each_item_is_dropped");
    "wait: a claim does not leave word for the entry", "src/task/evaluation.rs",
        "(Stage::Claimed, Some((closure, promise)))"
        => "(Stage::Begun, Some((closure, promise)))", Model("waits::an_awaited_task_versus_its_entry");
    "wait: what was given back may still be claimed", "src/task/evaluation.rs",
        "(Stage::Withdrawn(closure, promise), true)"
        => "(Stage::Queued(closure, promise), true)", Test("awaited", "given_back");
    "wait: a claimed future's entry is not stale", "src/task/future_cell.rs",
        "            RUNNING | STALE,\n"
        => "            RUNNING,\n", Model("waits::an_awaited_future_versus_a_wake");
    "wait: a claimed future that waits is not counted", "src/runtime/context.rs",
        "                self.shared.in_flight.hold();\n"
        => "", Model("waits::an_awaited_future_versus_a_wake");
    "wait: a task that runs outside is not counted", "src/runtime/awaited.rs",
        "                shared.hold_on_caller();\n"
        => "", Model("waits::join_versus_a_scopes_task_outside");
    "wait: an entry is skipped that has a task", "src/task/unstarted.rs",
        "state.entries > state.len()"
        => "state.entries >= state.len()", Unit("unstarted::tests::each_task");
    "wait: no task is claimed", "src/runtime/awaited.rs",
        "context::of_pool(pool).filter(|_| is_worker_of(pool) && !thread::panicking())"
        => "context::of_pool(pool).filter(|_| false)", Model("waits::an_awaited_task_needs_no_thread");
    "wait: a completion that waits for a handle keeps its place", "src/runtime/region.rs",
        "is_some_and(|pending| pending.get() > 0)"
        => "is_some_and(|_| false)", Model("waits::a_completion_waits_for_a_handle");
    "standby: a worker withdraws for work above the limit", "src/runtime/counts.rs",
        "(now.idle() > 0 && now.running() < max).then(|| (now.0 - ONE_IDLE) | SEARCHING)"
        => "(now.idle() > 0).then(|| (now.0 - ONE_IDLE) | SEARCHING)", Model("waits::workers_come_back_one_by_one");
    "race 7: a returning worker does not look again", "src/runtime/compensate.rs",
        "        fence(Ordering::SeqCst);\n        self.admit_returning();\n        self.returning.wait"
        => "        self.returning.wait", Model("waits::workers_come_back_one_by_one");
    "race 7: a worker that stops running admits none", "src/runtime/compensate.rs",
        "if now.blocked() > 0 && !self.returning.is_empty() {"
        => "if false {", Model("waits::workers_come_back_one_by_one");
    "returning: all workers return at once", "src/runtime/counts.rs",
        "(Snapshot(word).running() <= max).then_some(word - ONE_BLOCKED)"
        => "(Snapshot(word).running() <= usize::MAX).then_some(word - ONE_BLOCKED)", Model("waits::workers_come_back_one_by_one");
    "region: own waits are bounded as well", "src/runtime/compensate.rs",
        "let is_replaced = kind == Kind::Own\n            ||"
        => "let is_replaced =", Model("waits::a_wait_for_a_future_is_beyond_the_bound");
    "region: more than max_blocked are replaced", "src/runtime/compensate.rs",
        "self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked"
        => "self.declared.fetch_add(1, Ordering::AcqRel) < usize::MAX", Test("law_04_bounded", "max_blocked");
}
