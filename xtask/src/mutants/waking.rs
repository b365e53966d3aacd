//! How workers are woken and started, search and rest.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "race 1: no fence between a change of the counts and the look", "src/sched/notify.rs",
        "    fn fence_and_admit(&self) -> Snapshot {\n        fence(Ordering::SeqCst);\n"
        => "    fn fence_and_admit(&self) -> Snapshot {\n", Model("notify::submit_versus_idle");
    "race 1: no look at the queue when idle", "src/sched/worker/rest.rs",
        "        owed.look(&self.shared);\n"
        => "        _ = owed.fence(&self.shared);\n", Model("notify::submit_versus_idle");
    "extra: no worker is woken for a future beside closures", "src/sizing/measured.rs",
        "now.extra() == 0 && now.searching() == 0 && self.has_ready_future()" => "false", Model("extra::a_spawned_future_versus");
    "extra: one more worker comes beside a search", "src/sizing/measured.rs",
        "now.searching() == 0 && self.has_ready_future()" => "self.has_ready_future()",
        Unit("measured::tests::no_worker_comes");
    "extra: each ready future starts a thread", "src/sched/notify.rs",
        "now.running() >= self.own_limit(now)" => "false",
        Test("law_04_bounded", "ready_futures_start_one");
    "extra: it is none before it is idle", "src/sched/worker/rest.rs",
        "let was_extra = self.context.metrics.end_extra();"
        => "let was_extra = self.shared.end_extra(&self.context.metrics).is_none() && false;", Model("extra::a_rest_of_the_extra_worker_versus_a_start");
    "extra: a thread starts beside one in its start hook", "src/sched/notify.rs",
        "                    && !self.should_wait_for_hooks(now)\n" => "", Model("extra::a_start_hook_of");
    "extra: a worker that leaves its start hook does not search", "src/sched/worker.rs",
        "self.search = Some(self.shared.exit_start_hook());"
        => "let search = self.shared.exit_start_hook();\n            self.shared.counts.end_search(search).fence(&self.shared);", Model("extra::a_start_hook_of");
    "extra: a worker in a region stays the extra one", "src/sched/compensate.rs",
        "            owed = owed.and(shared.end_extra(&self.metrics));\n" => "", Model("extra::a_poll_that_enters");
    "extra: the keeper does not watch it", "src/sizing/measured.rs",
        "        if now.extra() > 0 {" => "        if now.extra() > 1 {", Test("law_01_prompt", "a_poll_that_sleeps");
    "extra: futures that polls have woken wait for closures", "src/sched/context.rs",
        " || self.shared.sizes.follows_measurements() {" => " {", Model("extra::a_future_that_yields");
    "extra: a spawned future waits in line with closures", "src/submit/mod.rs",
        "shared.queue.push(Kind::Woken, job)" => "shared.queue.push(Kind::New, job)",
        Model("extra::a_spawned_future_versus");
    "extra: a worker rests for it", "src/sizing/measured.rs",
        "self.sizes.max().min(self.sizes.limit() + beyond)" => "self.sizes.limit() + 0 * beyond",
        Model("extra::a_poll_that_waits");
    "extra: it passes a pause", "src/sched/worker/extra.rs",
        "            if shared.policy.is_used() {" => "            if false {", Model("extra::a_future_behind");
    "extra: a yielded future in the injector is not looked for", "src/sched/context.rs",
        "None => self.shared.has_ready_future()," => "None => false,", Model("extra::a_future_that_yields");
    "extra: a worker that runs a claimed closure stays the extra one", "src/sched/place.rs",
        "        if let Some(owed) = self.end_extra(&context.metrics) {\n            owed.look(self);\n        }\n" => "",
        Test("growth", "a_closure_that_a_poll_runs_itself");
    "race 1: no worker is notified of what a look finds", "src/sched/notify.rs",
        "self.may_run_another(now) && self.has_work();"
        => "self.may_run_another(now) && false;", Model("regions::region_versus_submit");
    "race 4: an idle worker does not look whether the pool is over", "src/sched/worker/rest.rs",
        "if shared.in_flight.is_over() {"
        => "if false {", Model("closing::drop_versus_rest");
    "start hook: a worker in its start hook does not look at the queue", "src/sched/notify.rs",
        "        if self.work_len() > in_hooks + self.counts.starting() {"
        => "        if in_hooks == usize::MAX {", Model("hooks::a_slow_start_hook");
    "start hook: a blocked worker in its start hook counts as one that will look", "src/sched/notify.rs",
        "self.in_start_hook.load(Ordering::Acquire) > now.blocked()"
        => "self.in_start_hook.load(Ordering::Acquire) > now.blocked() * 0", Model("stalled::a_wait_in_a_start_hook");
    "one thread starts at a time", "src/sched/notify.rs",
        "queued.saturating_sub(in_hooks).clamp(1, cpus())"
        => "{ let _ = (queued, in_hooks); 1 }", Model("notify::no_more_threads");
    "more threads start than there are CPUs", "src/sched/notify.rs",
        "queued.saturating_sub(in_hooks).clamp(1, cpus())"
        => "queued.saturating_sub(in_hooks).max(1)", Unit("pool::tests::no_more_threads_are_starting");
    "wake: a submitter wakes a second worker before the first one has its task", "src/sched/notify.rs",
        "            Notifier::Submitter | Notifier::BeforeStart | Notifier::KeeperLook => 1,"
        => "            Notifier::Submitter | Notifier::BeforeStart | Notifier::KeeperLook => 2,", Unit("pool::tests::submissions_wake_one");
    "race 1: a woken worker wakes no other", "src/sched/notify.rs",
        "let is_notified = shared.look_as(Notifier::Woken);"
        => "let is_notified = false;", Model("notify::a_submitter_relies_on_a_woken_worker");
    "wake: a task wakes a worker beside one that wakes up", "src/sched/notify.rs",
        "searching >= notifier.enough_searchers() || self.work_len() <= searching"
        => "searching >= notifier.enough_searchers()", Unit("pool::tests::submissions_wake_one");
    "wake: a woken worker wakes one other", "src/sched/notify.rs",
        "if is_notified && shared.work_len() > 1 {" => "if false && is_notified {", Unit("pool::tests::a_woken_worker_wakes_two");
    "wake: a woken worker leaves the rest to any other", "src/sched/notify.rs",
        "            Notifier::Woken | Notifier::Keeper => MAX_SEARCHING," => "            Notifier::Woken | Notifier::Keeper => 1,", Unit("pool::tests::a_woken_worker_wakes_two");
    "wake: a thread is started for a task that was taken", "src/sched/notify.rs",
        "starting <= self.work_len()\n"
        => "starting < usize::MAX\n", Model("notify::no_more_threads");
    "keeper: a worker starts without one", "src/sched/spawn.rs",
        "            .ensure_keeper(&mut registry)\n            .and_then(|()| start_thread(name, stack_size, Box::new(move || worker::run(start))));"
        => "            .ensure_keeper(&mut registry)\n            .or(Ok(()))\n            .and_then(|()| start_thread(name, stack_size, Box::new(move || worker::run(start))));", Test("law_07_refusal_proof", "if_the_keeper_is_refused");
    "capacity: a worker that rests leaves a permit free", "src/sched/worker/rest.rs",
        "            capacity.grant_before_rest(&self.shared.sizes);\n" => "            let _ = capacity;\n", Unit("capacity::tests::a_worker_that_rests");
    "race 42: the keeper does not look after it has ended a request", "src/sizing/stall.rs",
        "        MustLook::owed().look(self);\n        let mut progress"
        => "        let mut progress", Model("stalled::the_last_look_of_the_keeper");
    "race 42: a submitter relies on a look that is not asked for", "src/sizing/stall.rs",
        "                self.keeper.ask(KeeperJob::Growth, at);\n"
        => "                let _ = (KeeperJob::Growth, at);\n", Model("stalled::a_task_gets_a_worker");
    "growth: a task waits for the delay although all workers are blocked", "src/sizing/stall.rs",
        "|_| now.running() > 0 && !self.is_below_core(now)"
        => "|_| !self.is_below_core(now)", Model("stalled::a_region_versus");
    "growth: a task waits for the delay below core_size", "src/sizing/stall.rs",
        "|_| now.running() > 0 && !self.is_below_core(now)"
        => "|_| now.running() > 0", Test("growth", "a_raised_core_size");
    "growth: a thread is started without a delay", "src/sched/notify.rs",
        "                return (self.config.growing.ask)(self, delay);\n"
        => "                (self.config.growing.ask)(self, delay);\n", Test("growth", "a_burst_of_tiny_tasks");
    "growth: each look starts one worker", "src/keeper/due.rs",
        "        self.step = self.step.saturating_mul(2);\n"
        => "", Unit("due::tests::the_starts_double");
    "growth: a worker that was started is progress", "src/keeper/due.rs",
        "        self.expected = expected / 2 + starts;\n"
        => "        self.expected = expected / 2;\n", Unit("due::tests::the_starts_double");
    "growth: progress of new workers alone begins anew", "src/keeper/due.rs",
        "            if mem::replace(&mut self.had_progress, true) {"
        => "            {", Unit("due::tests::the_starts_double");
    "growth: a worker that takes nothing hides progress", "src/keeper/due.rs",
        "        self.expected = expected / 2 + starts;\n"
        => "        self.expected = expected + starts;\n", Unit("due::tests::a_worker_that_takes_nothing");
    "law 1: no worker beyond the first", "src/crew/counts.rs",
        "self.idle() == 0 && self.running() < max && self.total() < MAX_WORKERS"
        => "self.idle() == 0 && self.running() < max.min(1) && self.total() < MAX_WORKERS", Test("law_01_prompt", "");
    "law 9: a thread is started in a pool that is over", "src/sched/spawn.rs",
        "            if self.in_flight.is_over() {\n                return None;"
        => "            if false {\n                return None;", Model("futures::a_slow_wake_versus_shutdown");
    "law 5: the highest index is woken first", "src/crew/idle.rs",
        "if counts.claim_idle(max, enough) { workers.pop() } else { None }"
        => "if counts.claim_idle(max, enough) { Some(workers.remove(0)) } else { None }", Test("law_05_cold", "lowest_index");
    "law 5: the worker that went idle last is woken first", "src/crew/idle.rs",
        "workers.insert(place, worker);"
        => "workers.push((worker, place).0);", Test("law_05_cold", "lowest_index");
    "law 7: a refused worker is counted", "src/sched/spawn.rs",
        "                registry.stats.threads_refused += 1;\n"
        => "                self.counts.add_worker();\n", Test("law_07_refusal_proof", "");
    "race 19: a worker that leaves keeps its context open", "src/sched/worker/rest.rs",
        "        set_worker(None);\n"
        => "        let _ = set_worker;\n", Test("queues", "leaves");
    "prefer_idle: a core worker is started while another is idle", "src/sched/notify.rs",
        "if fills_core && !leaves_to_free && self"
        => "if fills_core && self", Test("law_01_prompt", "idle_workers_come_before");
    "prefer_idle: the idle worker is not woken", "src/sched/notify.rs",
        "            self.notify(Notifier::Submitter);\n        }\n    }\n\n    /// Makes a worker look for the queued work"
        => "            if !leaves_to_free {\n                self.notify(Notifier::Submitter);\n            }\n        }\n    }\n\n    /// Makes a worker look for the queued work", Test("law_01_prompt", "idle_workers_come_before");
    "spin: a spinning worker is still starting", "src/sched/worker/rest.rs",
        "let _ = self.shared.counts.end_search(self.search.replace(Search::Searching));"
        => "self.search = Some(Search::Searching);", Unit("worker::tests::a_worker_spins_while");
    "spin: a worker spins beside any number of others", "src/sched/worker/rest.rs",
        "now.running() > cpus() || !self.begin_search()"
        => "{ let _ = now; !self.begin_search() }", Unit("worker::tests::a_worker_spins_while");
    "spin: any number of workers spin", "src/crew/counts.rs",
        "(now.searching() == 0).then(|| now.0 + ONE_SEARCHING)"
        => "(now.searching() < 7).then(|| now.0 + ONE_SEARCHING)", Unit("worker::tests::a_worker_spins_while");
    "start: a refused start below core_size is not tried again", "src/sched/spawn.rs",
        "            self.counts.end_search(Search::Starting).look(self);\n"
        => "            _ = self.counts.end_search(Search::Starting);\n", Model("notify::a_refused_start_below_core_is");
    "race 1: a worker rests with its search", "src/sched/worker/rest.rs",
        "owed.and(self.end_search()).and(freed);"
        => "owed.and(freed);", Model("notify::a_woken_worker_finds_nothing");
    "spare worker: a worker withdraws for work above the limit", "src/crew/counts.rs",
        "let may = now.idle() > 0 && now.running() < max && now.searching() < enough;"
        => "let may = now.idle() > 0 && now.searching() < enough;", Unit("counts::tests::a_spare_worker_stays");
    "race 7: a worker that stops running admits none", "src/sched/notify.rs",
        "if now.blocked() > 0 && !self.returning.is_empty() {"
        => "if false {", Model("waits::workers_come_back_one_by_one");
    "returning: all workers return at once", "src/crew/counts.rs",
        "(now.running() <= max).then(|| now.0.wrapping_sub(ONE_BLOCKED))"
        => "(now.running() <= usize::MAX).then(|| now.0.wrapping_sub(ONE_BLOCKED))", Model("waits::workers_come_back_one_by_one");
    "reserve: tasks that may not run wake workers", "src/sched/notify.rs",
        "if self.policy.is_used() && !self.has_work() {"
        => "if false {", Test("views", "tasks_that_may_not_run_wake_no_worker");
    "thread_name: it is called again inside of its own call", "src/sched/spawn.rs",
        "thread_name.is_some() && !is_outside_of_worker()"
        => "thread_name.is_some() && { let _ = is_outside_of_worker; true }", Test("workers", "a_panic_handler_may_submit");
};
