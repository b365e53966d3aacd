mutants! {
    "race 1: no fence between push and counts", "src/shared.rs",
        "        // Race 1: pushed first, then looked for idle workers; they look the other way round.\n        fence(Ordering::SeqCst);\n"
        => "", Model("submit_versus_idle");
    "race 1: no fence between idle and queue", "src/worker.rs",
        "        // Race 1: published first, then looked at the queue; submitters do it the other way round.\n        fence(Ordering::SeqCst);\n"
        => "", Model("submit_versus_idle");
    "race 1: no look at the queue when idle", "src/worker.rs",
        "            if !shared.queue.is_empty() {\n                self.search = self.withdraw();"
        => "            if false {\n                self.search = self.withdraw();", Model("submit_versus_idle");
    "race 2: the search is not passed on", "src/shared.rs",
        "        if !self.queue.is_empty() {\n            self.notify(true);\n        }"
        => "", Model("interdependent_tasks");
    "race 2: no fence after the search", "src/shared.rs",
        "        // Race 2: whoever saw the search and relied on it queued first; the look comes after its end.\n        fence(Ordering::SeqCst);\n"
        => "", Model("interdependent_tasks");
    "race 3: the last worker leaves without a look", "src/shared.rs",
        "if now.total() == 0 && !self.in_flight.status().is_quiet() {"
        => "if false {", Model("retire_versus_submit");
    "race 3: the last worker's look is a plain load", "src/in_flight.rs",
        "Status(self.word.fetch_or(0, Ordering::AcqRel))"
        => "Status(self.word.load(Ordering::Acquire))", Model("retire_versus_submit");
    "race 4: the last worker is not told", "src/shared.rs",
        "            self.idle.nudge_all();\n        }\n    }\n\n    // ----- waking and growing"
        => "        }\n    }\n\n    // ----- waking and growing", Model("an_abandoned_future");
    "race 5: no look at the queue when leaving", "src/shared.rs",
        "            self.pass_on(None);\n        }\n        true"
        => "        }\n        true", Model("leave_versus_submit");
    "two leave at once", "src/shared.rs",
        "self.counts.load().total() - roster.leaving"
        => "self.counts.load().total()", Model("two_workers_retire");
    "a closed pool does not tell its idle workers", "src/shared.rs",
        "        if self.in_flight.close().is_over() {\n            self.idle.nudge_all();\n        }"
        => "        self.in_flight.close();", Model("drop_versus_rest");
    "a resting worker does not look whether it is over", "src/worker.rs",
        "if shared.in_flight.is_over() {"
        => "if false {", Model("drop_versus_rest");
    "join is told of a moment before it came", "src/in_flight.rs",
        "        if self.status().is_quiet() {\n            *moments += 1;"
        => "        {\n            *moments += 1;", Model("submit_versus_idle");
    "join does not look after it has registered", "src/in_flight.rs",
        "let mut quiet = self.status().is_quiet();"
        => "let mut quiet = false;", Model("submit_versus_idle");
    "the end of a task does not release", "src/in_flight.rs",
        "let before = self.word.fetch_sub(change, Ordering::AcqRel);"
        => "let before = self.word.fetch_sub(change, Ordering::Relaxed);", Model("submit_versus_idle");
    "a nudge replaces the signal", "src/parker.rs",
        "if mailbox.signal != Some(Signal::Unparked) {"
        => "{", Model("parker_does_not_lose");
    "a parker forgets that its owner waits", "src/parker.rs",
        "            mailbox.waiting = true;\n"
        => "", Model("parker_does_not_lose");
    "a wake during a poll is lost", "src/waker.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        before == IDLE"
        => "            other => other,\n        });\n        before == IDLE", Model("wake_versus_poll");
    "a wake is not seen by the poll it leads to", "src/waker.rs",
        "match self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {"
        => "match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change) {", Model("two_wakers");
    "a refused first start does not pass its search on", "src/shared.rs",
        "            // Others may have relied on it, with tasks for a worker that somebody else has started.\n            self.pass_on(search);"
        => "            self.counts.end_search(Search::Starting);", Model("a_refused_first_start");
    "law 1: no worker beyond the first", "src/shared.rs",
        "now.total() >= self.config.max_size"
        => "now.total() >= 1", Test("law_01_prompt", "");
    "law 2: a promise that is not kept is forgotten", "src/job.rs",
        "                drop(stage);\n                discard(promise);"
        => "                drop(stage);\n                std::mem::forget(promise);", Test("law_02_settled", "");
    "law 3: pending futures do not count", "src/waker.rs",
        "AfterPoll::Wait => Outcome::Pending,"
        => "AfterPoll::Wait => Outcome::Completed,", Test("law_03_quiet", "");
    "law 4: a start is not checked under the lock", "src/shared.rs",
        "if self.in_flight.is_over() || !room(self.counts.load()) {"
        => "if self.in_flight.is_over() {", Test("law_04_bounded", "");
    "law 9: a thread is started in a pool that is over", "src/shared.rs",
        "if self.in_flight.is_over() || !room(self.counts.load()) {"
        => "if !room(self.counts.load()) {", Model("a_slow_wake_versus_shutdown");
    "law 5: the idle worker that is woken is the oldest", "src/idle.rs",
        "if counts.claim_idle() { parkers.pop() } else { None }"
        => "if counts.claim_idle() { Some(parkers.remove(0)) } else { None }", Test("law_05_cold", "");
    "law 6: a panic in a task is not contained", "src/job.rs",
        "Job::Closure(closure) => match contain(closure) {"
        => "Job::Closure(closure) => match Ok::<(), crate::unwind::Payload>(closure()) {", Test("law_06_panic_proof", "");
    "law 7: a refused worker is counted", "src/shared.rs",
        "                roster.refused += 1;"
        => "                roster.refused += 1;\n                self.counts.add_worker();", Test("law_07_refusal_proof", "");
    "law 8: a close is not decided with the acceptance", "src/in_flight.rs",
        "(word & CLOSED == 0).then_some(word + ONE_TASK)"
        => "Some(word + ONE_TASK)", Test("law_08_closed", "");
    "law 9: threads are not waited for", "src/roster.rs",
        "let gone = state.unjoined <= if is_own { state.waiting } else { 0 };"
        => "let gone = true;", Test("law_09_gone", "");
    "law 10: a join from inside is not refused", "src/pool.rs",
        "        match worker::caller(self.shared()) {\n            Caller::Outside => {}"
        => "        match Caller::Outside {\n            Caller::Outside => {}", Test("law_10_no_self_made_deadlock", "join");
    "law 11: a wake during a poll submits at once", "src/waker.rs",
        "            RUNNING => NOTIFIED,\n            other => other,\n        });\n        before == IDLE"
        => "            RUNNING => SCHEDULED,\n            other => other,\n        });\n        matches!(before, IDLE | RUNNING)", Test("law_11_one_entry", "");
    "law 12: a worker takes the second task", "src/queue.rs",
        "self.receiver.try_recv().ok()"
        => "{ let first = self.receiver.try_recv().ok()?; match self.receiver.try_recv() { Ok(second) => { self.push(first); Some(second) } Err(_) => Some(first) } }", Test("law_12_in_order", "");
}
