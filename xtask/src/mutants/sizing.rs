//! How many workers may run under `Growth::Measured`.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "race 42: a submitter asks for no measurement", "src/sizing/measured.rs",
        "            self.keeper.ask(KeeperJob::Growth, cmp::max(at, earliest).expect(\"one is set\"));\n"
        => "            let _ = (KeeperJob::Growth, cmp::max(at, earliest));\n",
        Model("measured::a_task_gets_a_worker"), Test("growth", "tasks_that_wait_for_each_other");
    "race 42: a request for a measurement never ends", "src/keeper/due.rs",
        "        self.is_asked.store(false, Ordering::Relaxed);\n"
        => "", Test("growth", "a_limit_of_a_view_bounds_its_workers");
    "race 42: the keeper does not look after a measurement", "src/sizing/measured.rs",
        "        self.look_as(Notifier::KeeperLook);\n        // The next one"
        => "        // The next one", Model("measured::the_last_measurement_versus_submit");
    "measured: a task of a view that may not run asks for no measurement", "src/submit/mod.rs",
        "                shared.ask_to_measure();\n" => "", Test("growth", "a_task_of_a_view_gets");
    "measured: tasks of a view that could run with more workers are no work", "src/views/policy.rs",
        "self.eligible(self.max_size, queued)" => "self.eligible(self.limit(), queued)",
        Test("growth", "a_view_gets_workers");
    "measured: the permits of a bounded queue are those of max_size", "src/flight/capacity.rs",
        ".saturating_add(sizes.limit())" => ".saturating_add(sizes.max())", Test("growth", "a_bounded_queue_holds");
    "measured: what slept is known for ever once the number may not change", "src/sizing/measured.rs",
        "        if !is_next_asked {\n" => "        if !is_next_asked && false {\n", Test("growth", "what_slept_is_forgotten_once_the_number");
    "measured: a submitter that waits asks for no measurement", "src/submit/mod.rs",
        "        shared.ask_if_all_run(shared.counts.load());\n" => "",
        Test("growth", "a_submitter_that_comes_late");
    "measured: a rejection asks for no measurement", "src/submit/mod.rs",
        "            self.shared.ask_if_all_run(self.shared.counts.load());\n" => "", Test("growth", "rejections_for_capacity");
    "measured: a rejection is work also if its view may have no more workers", "src/submit/mod.rs",
        "self.shared.policy.may_start_another(self.view_id())" => "true", Test("growth", "views_that_may_have_no_more_workers");
    "measured: a submitter that waits is work also if its view may have no more workers", "src/sizing/measured.rs",
        "capacity.awaiting_views().into_iter().any(may_start)" => "capacity.awaiting_views().into_iter().any(|view| may_start(view) || true)",
        Test("growth", "views_that_may_have_no_more_workers");
    "stalled: a task of a view asks for a look as if the pool measured", "src/sizing/measured.rs",
        "self.sizes.follows_measurements() && !self" => "!self", Unit("stall::tests::a_task_of_a_paused_view");
    "measured: a rejection is no work", "src/sizing/measured.rs",
        "            || self.sizing.has_rejected.get()\n" => "", Test("growth", "rejections_for_capacity"), Test("growth", "a_stream_of_results");
    "measured: a rejection is work for ever", "src/sizing/measured.rs",
        "        self.sizing.has_rejected.set(false);\n" => "", Test("growth", "the_keeper_sleeps_after_a_rejection");
    "measured: a raised number grants no permit", "src/sizing/measured.rs",
        "        self.grant_permits();\n" => "", Test("growth", "a_submitter_to_a_full_pool");
    "measured: a worker in a region counts as awake", "src/sched/compensate.rs",
        "        self.metrics.is_in_region.set(to.is_some());\n" => "", Test("growth", "a_region_that_computes");
    "measured: max_size does not bound the number", "src/crew/sizes.rs",
        "let limit = (number + reserved).max(core_size).min(max_size);" => "let limit = (number + reserved).max(core_size);",
        Test("growth", "a_reserve_comes_on_top");
    "measured: the number does not follow a changed max_size", "src/crew/sizes.rs",
        "        self.set_number(self.number(), reserved);\n" => "",
        Model("measured::a_raised_number_versus_resize"), Test("growth", "the_number_of_workers_has_bounds");
    "measured: a reserve does not come on top", "src/crew/sizes.rs",
        "(number + reserved)" => "number.max(self.wanted_awake.saturating_add(reserved))",
        Test("growth", "a_reserve_comes_on_top");
    "measured: a reserve changes the number", "src/views/policy.rs",
        "sizes.set_number(sizes.number(), reserved)" => "sizes.set_number(sizes.limit(), reserved)",
        Test("growth", "a_reserve_comes_on_top");
    "measured: no more than the limit run beside a reserved place", "src/views/policy.rs",
        "            _ => self.max_size,\n" => "            _ => 0,\n",
        Model("measured::a_reserved_place"), Test("growth", "a_reserved_worker_runs_beside");
    "measured: workers with reserved places count in the number", "src/sizing/measured.rs",
        "self.policy.set_number(&self.sizes, next.saturating_sub(reserved))" => "self.policy.set_number(&self.sizes, next)",
        Test("growth", "reserved_workers_do_not_count");
    "measured: a default pool is eager", "src/builder.rs",
        "if has_no_size { Growth::Measured }" => "if has_no_size && false { Growth::Measured }",
        Test("growth", "a_pool_without_sizes");
    "measured: a large core_size is no start", "src/sizing/measured.rs",
        "(self.sizes.number() + reserved).max(self.sizes.core())" => "self.sizes.number() + reserved",
        Unit("measured::tests::the_number_rises_from_core_size");
    "measured: a thread that waits for a CPU sleeps", "src/sync/probe.rs",
        "Some((_, None)) => return Some(ThreadState::Awake)," => "Some((_, None)) => return Some(ThreadState::Asleep(Some(Wait::Outside))),",
        Unit("probe::tests::a_thread_that_waits"), Test("growth", "tasks_that_compute_get_few_workers_beside");
    "measured: no thread sleeps", "src/sync/probe.rs",
        "return Some(ThreadState::Asleep(Some(Wait::Thread)));" => "return Some(ThreadState::Awake);",
        Unit("probe::tests::a_thread_that_waits"), Test("growth", "tasks_that_wait_for_each_other");
    "measured: a lock is as a socket", "src/sync/probe.rs",
        "&[libc::SYS_futex, 422, 449]" => "&[422, 449]",
        Unit("probe::tests::the_kinds_of_waits"), Test("growth", "tasks_that_wait_for_one_lock_get_few");
    "measured: a worker of which only the clock is known sleeps", "src/sizing/measured.rs",
        "None if has_run =>" => "None if has_run && false =>", Test("growth", "tasks_that_compute_get_few_workers_while_no_file");
    "controller: the number is raised without a bound", "src/crew/awake.rs",
        "(wanted / level).min(2.0)" => "wanted / level", Unit("awake::tests::the_number_stays_within");
    "controller: the number is not raised", "src/crew/awake.rs",
        "(wanted / level).min(2.0)" => "{ let _ = level; 1.0 }", Unit("awake::tests::a_load_takes_about");
    "controller: a raise does not wait for the workers of the last one", "src/crew/awake.rs",
        "if measured.is_short && is_under {" => "if is_under {", Unit("awake::tests::nothing_is_raised");
    "controller: one measurement lowers the number", "src/crew/awake.rs",
        "let is_whole = self.ended >= measured.running.max(1) && self" => "let is_whole = self",
        Unit("awake::tests::a_number_that_is_too_high");
    "controller: the number is never lowered", "src/crew/awake.rs",
        "if is_over {" => "if is_over && false {", Unit("awake::tests::a_number_that_is_too_high");
    "controller: there is no slack", "src/crew/awake.rs",
        "    SLACK + asleep / 2.0\n" => "    0.0 * SLACK * asleep\n", Unit("awake::tests::a_load_takes_about");
    "controller turn: one that waits beside many awake begins it anew", "src/crew/awake.rs",
        "asleep / 8.0 && !is_over" => "asleep / 8.0 && (!is_over || true)", Unit("awake::tests::a_lock_does_not_hold_up");
    "controller turn: a pause ends it", "src/crew/awake.rs",
        "*self = Controller { turn, ..Controller::default() };"
        => "let _ = turn; *self = Controller::default();", Unit("awake::tests::a_number_that_is_too_high_is_lowered_in_short_bursts");
    "controller turn: the CPUs used in it do not count", "src/crew/awake.rs",
        "(level, asleep) = (capped.max(used), sleepers);" => "(level, asleep) = (capped + 0.0 * used, sleepers);",
        Unit("awake::tests::tasks_that_use_the_cpus");
    "controller turn: the number changes in the middle of it", "src/crew/awake.rs",
        "} else if turn.settled.is_some() {" => "} else if turn.settled.is_some() && false {",
        Unit("awake::tests::a_moment_in_which_a_herd");
    "controller turn: a number is never settled", "src/crew/awake.rs",
        "let settled = Some(2.0 * self" => "let settled = None.or(Some(0.0).filter(|_: &f64| false)); let _ = (2.0 * self",
        Unit("awake::tests::sleepers_that_wake_up");
    "controller turn: it does not become longer", "src/crew/awake.rs",
        "Turn { least: self.seconds, settled, ..Turn::default() }" => "Turn { settled, ..Turn::default() }", Unit("awake::tests::sleepers_that_wake_up");
    "controller turn: a number stays settled while other tasks sleep", "src/crew/awake.rs",
        "filter(|time| turn.idle <= *time)" => "filter(|time| turn.idle <= *time || true)",
        Unit("awake::tests::other_tasks_that_sleep");
    "controller turn: a herd that sleeps is other tasks", "src/crew/awake.rs",
        "filter(|time| turn.idle <= *time)" => "filter(|time| turn.idle <= 0.0 * *time)",
        Unit("awake::tests::a_moment_in_which_a_herd");
    "controller turn: a herd sleeps for as long as a task runs", "src/crew/awake.rs",
        "2.0 * self.sums[3]" => "(self.sums[2] + self.sums[3])",
        Unit("awake::tests::tasks_that_sleep_get_many_workers_soon");
    "controller turn: workers above a lowered number count", "src/crew/awake.rs",
        "} else if is_lowered && turn.lowered <= LONGEST {" => "} else if is_lowered && false {", Unit("awake::tests::sleepers_that_wake_up");
    "controller turn: workers with long tasks above a lowered number hold it up", "src/crew/awake.rs",
        "is_lowered && turn.lowered <= LONGEST" => "is_lowered",
        Unit("awake::tests::workers_with_long_tasks");
    "controller: the queue of a disk has no bound", "src/crew/awake.rs",
        "raised = raised.min(allowed + room as usize);" => "let _ = room;", Unit("awake::tests::more_workers_that_contend");
    "controller: the number is not lowered for a disk", "src/crew/awake.rs",
        "if queued > 2.0 * disk {" => "if queued > f64::MAX + disk {", Unit("awake::tests::few_of_many_workers");
    "controller: workers that contend need not pay", "src/crew/awake.rs",
        "if !contends {" => "if !contends || true {",
        Unit("awake::tests::more_workers_that_contend"), Test("growth", "tasks_that_wait_for_one_lock_get_few");
    "controller: no gain is enough", "src/crew/awake.rs",
        "if rate < needed {" => "if rate < 0.0 * needed {", Unit("awake::tests::more_workers_that_contend");
    "controller: workers of which no task ends get no others", "src/crew/awake.rs",
        "BLIND * allowed as f64) && raised > allowed {" => "BLIND * allowed as f64) && raised > allowed && false {",
        Unit("awake::tests::tasks_that_wait_for_queued"), Test("growth", "tasks_that_wait_for_each_other");
    "controller: each blind raise waits for the usual time", "src/crew/awake.rs",
        "let usual = if self.is_blind { 0.0 }" => "let usual = if self.is_blind && false { 0.0 }",
        Unit("awake::tests::tasks_that_wait_for_queued");
    "controller: the time of an idle pool is one without an end", "src/crew/awake.rs",
        "let seconds = if was_idle { 0.0 }" => "let seconds = if was_idle && false { 0.0 }",
        Unit("awake::tests::the_time_of_an_idle_pool");
    "controller: a trial that the queue does not outlast pays", "src/crew/awake.rs",
        "self.before.filter(|_| !self.was_blind)" => "self.before.filter(|_| false)",
        Unit("awake::tests::bursts_are_no_evidence");
    "controller: a number stands however long the rounds are", "src/crew/awake.rs",
        "self.stood < 2.0 * LONGEST" => "self.stood < f64::MAX",
        Unit("awake::tests::a_number_that_is_too_small");
    "controller: a round is short for a mixture, too", "src/crew/awake.rs",
        "const TURNS: usize = 4;" => "const TURNS: usize = 1;", Unit("awake::tests::a_mixture_of_short");
    "controller: a round lasts as long as its tasks", "src/crew/awake.rs",
        "let is_long = self.seconds >= 2.0 * LONGEST;" => "let is_long = false;",
        Unit("awake::tests::many_workers_that_wait");
    "controller: a large number is raised first", "src/crew/awake.rs",
        "let is_down = allowed > 4 * floor;" => "let is_down = allowed > usize::MAX - floor;",
        Unit("awake::tests::a_large_number_of_workers");
    "measured: a poll that returns pending is an end", "src/sizing/measured.rs",
        "registry.sums().ended_within_limit())" => "registry.taken())", Unit("measured::tests::a_poll_that_returns_pending");
    "controller: a smaller number is never tried", "src/crew/awake.rs",
        "(allowed / 2).max(floor)" => "allowed.max(floor)", Unit("awake::tests::phases_may_change");
    "controller: no smaller number is tried after a larger one", "src/crew/awake.rs",
        "if !self.is_down && !was_blind" => "if false && !self.is_down && !was_blind",
        Unit("awake::tests::a_lock_that_is_handed_over");
    "controller: as few workers as are wanted awake do not contend", "src/crew/awake.rs",
        "true => allowed == self.climb.number," => "true => false,", Unit("awake::tests::a_lock_that_is_handed_over");
    "controller: a full queue of a disk is undecided", "src/crew/awake.rs",
        "is_under && (raised > allowed || !measured.is_short)" => "is_under",
        Unit("awake::tests::a_full_queue_of_a_disk");
    "measured: the first measurement of a load stands for long", "src/sizing/measured.rs",
        "            state.calm = 0;\n" => "", Unit("measured::tests::measurements_become_rare");
    "controller: a number stands however the tasks change", "src/crew/awake.rs",
        "(needed..=4.0 * needed).contains(&rate)" => "(0.0..=f64::INFINITY).contains(&rate)", Unit("awake::tests::other_tasks_are_found");
};
