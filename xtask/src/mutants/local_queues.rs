//! Local queues, and how often a worker looks beyond its own.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "race 22: a poll that waits for a future which it has woken is not watched", "src/sched/context.rs",
        "        self.shared.watch_deferred();\n"
        => "", Model("local_queues::futures::a_poll_waits_for_another");
    "race 22: what a stalled poll has woken stays where closures come first", "src/sched/deferred.rs",
        "            stalled.iter().for_each(|&(place, _)| self.queue.share_woken_of(place));\n"
        => "", Test("law_01_prompt", "a_poll_before_closures");
    "race 22: what a coarse poll has woken is not watched", "src/sched/deferred.rs",
        "if !stalled.is_empty() || self.queue.has_future() {" => "if !stalled.is_empty() {",
        Test("law_01_prompt", "a_coarse_poll");
    "law 12: a worker takes the second task", "src/queue/mod.rs",
        "self.receiver.try_recv().ok()"
        => "{ let first = self.receiver.try_recv().ok()?; match self.receiver.try_recv() { Ok(second) => { self.push(first); Some(second) } Err(_) => Some(first) } }", Test("law_12_in_order", "");
    "wait: stale entries stay under one that is taken back", "src/sched/context.rs",
        " && self.local_len() < self.covered.get()"
        => " && false", Test("memory", "memory_is_given_back");
    "local queues: not checked before a rest", "src/queue/mod.rs",
        "                && self.nodes().all(|node| node.stealers[kind as usize].is_empty())\n"
        => "", Unit("local::tests::a_walk_visits");
    "race 22: woken futures are checked before new tasks", "src/queue/mod.rs",
        "has_none(Kind::New) && (!self.may_have_woken() || has_none(Kind::Woken))"
        => "has_none(Kind::Woken) && has_none(Kind::New)", Model("local_queues::a_look_versus_a_yield");
    "woken first: a worker that takes a new task keeps its woken futures", "src/sched/context.rs",
        "            self.share_woken();\n        }\n    }\n"
        => "        }\n    }\n", Test("async_code", "a_long_task");
    "woken first: no worker is notified of futures that a worker has shared", "src/sched/context.rs",
        "local.share_woken(&self.shared.queue)) {\n            self.needs_notify.set(true);\n"
        => "local.share_woken(&self.shared.queue)) {\n", Model("local_queues::futures::a_poll_wakes_another_versus");
    "woken first: a worker that blocks keeps its woken futures", "src/sched/context.rs",
        "        self.share_woken();\n        self.in_poll"
        => "        self.in_poll", Test("async_code", "a_blocked_one_has_woken");
    "woken first: a worker that rests keeps its woken futures", "src/sched/context.rs",
        "        self.share_woken();\n        self.covered"
        => "        self.covered", Test("async_code", "a_spare_one_has_woken");
    "woken first: new tasks have no turn", "src/queue/local.rs",
        "has_yielded || is_turn_of_new(request)"
        => "has_yielded || is_turn_of_new(request) && false", Unit("local::tests::woken::neither_woken");
    "woken first: a yield gives way to no new task", "src/sched/context.rs",
        "            self.has_yielded.set(true);\n"
        => "", Test("async_code", "gives_way_to_new_tasks");
    "woken first: a yield gives way to local new tasks only", "src/queue/local.rs",
        "is_turn_of_new(request) {\n                self.pop_new(queue)"
        => "is_turn_of_new(request) {\n                self.rings[Kind::New as usize].pop()", Unit("local::tests::woken::a_new_task_of_either");
    "woken first: the injector of woken futures has no turn", "src/queue/local.rs",
        "if request % TURN_INTERVAL == 0 {"
        => "if request % TURN_INTERVAL == TURN_INTERVAL {", Test("async_code", "share_the_worker");
    "context: a worker never steals", "src/sched/context.rs",
        "self.steal(|| local.steal(queue))"
        => "None", Model("local_queues::a_task_submits_another_versus_idle");
    "context: no worker is notified of a stolen batch", "src/sched/context.rs",
        "            self.owe(MustLook::owed());\n        }\n        stolen"
        => "        }\n        stolen", Model("local_queues::a_stolen_batch");
    "context: no worker is notified of a future that a poll has woken", "src/sched/context.rs",
        "        self.push_with(&self.shared.queue, Kind::Woken, || Job::woken(task));\n        self.needs_notify.set(true);\n"
        => "        self.push_with(&self.shared.queue, Kind::Woken, || Job::woken(task));\n", Model("local_queues::futures::a_poll_wakes_two");
    "context: a worker takes more credit than it has accepted", "src/sched/context.rs",
        "shared.in_flight.accept(CREDIT_BATCH)"
        => "shared.in_flight.accept(1)", Model("local_queues::join_versus");
    "context: a worker with credit submits to a closed pool", "src/sched/context.rs",
        "        if shared.in_flight.is_closed() {\n            return false;"
        => "        if false {\n            return false;", Model("local_queues::close_versus");
    "local queues: the list is dropped by recursion", "src/queue/mod.rs",
        "        let mut next = self.list.take();"
        => "        let mut next = None::<Arc<Node<T>>>;", Unit("local::tests::a_long_list");
    "local queues: not popped by an immediate shutdown", "src/queue/mod.rs",
        "self.nodes().find_map(local)"
        => "self.nodes().take(0).find_map(local)", Test("queues", "local_queues::shutdown_now");
    "tasks: the end of a task is not counted", "src/sched/context.rs",
        "        self.metrics.record(outcome);\n        if outcome.is_end() {\n            self.credit.set(self.credit.get() + 1);\n        }\n"
        => "        self.metrics.record(outcome);\n", Model("local_queues::join_versus"), Model("waits::an_awaited_task_versus_its_entry");
    "race 8: a worker releases the permit of a stale entry", "src/sched/context.rs",
        "        if !self.in_poll.get() {\n"
        => "        if false {\n", Test("handles", "gives_its_permit_back");
    "local queues: a push does not list the queue", "src/queue/local.rs",
        "            queue.list(Arc::clone(&self.node));\n"
        => "", Unit("local::tests::a_walk_visits");
    "local queues: the buffers of workers that have left stay", "src/queue/local.rs",
        "        while !self.rings.iter().all(Ring::release) {\n            yield_now();\n        }\n"
        => "", Test("memory", "");
    "local queues: the buffer of a worker that has left stays because a stealer reads it", "src/queue/local.rs",
        "        while !self.rings.iter().all(Ring::release) {\n            yield_now();\n        }\n"
        => "        let _ = self.rings.iter().all(Ring::release);\n", Unit("local::tests::a_worker_that_leaves_frees");
    "local queues: a worker with local tasks does not check the injector", "src/queue/local.rs",
        "        if self.is_injector_due.get() {"
        => "        if false {", Test("queues", "feeds_itself");
    "local queues: a worker with local tasks does not check for stalled workers", "src/queue/local.rs",
        "self.steal_from(observed?, queue)"
        => "self.steal_from(observed.filter(|_| false)?, queue)", Test("queues", "a_busy_one_has_left");
    "local queues: the interval of the checks stays as it is", "src/queue/pacing.rs",
        "        self.left.set(self.interval());\n"
        => "        self.left.set(8);\n", Unit("pacing::tests::long_tasks_shorten");
    "local queues: a worker that has rested takes many tasks before a check", "src/queue/pacing.rs",
        "        self.left.set(self.left.get().min(self.interval()));\n"
        => "", Unit("pacing::tests::a_rest_is");
    "coarse: a task of a task overtakes others", "src/sched/context.rs",
        ".filter(|local| !self.prefers_injector(local))" => ".filter(|local| kind == Kind::Woken && !self.prefers_injector(local) || kind == Kind::New)", Test("queues", "a_coarse_task_of_a_task");
    "coarse: a future overtakes those that were woken before", "src/sched/context.rs",
        ".filter(|local| !self.prefers_injector(local))" => ".filter(|local| kind == Kind::New && !self.prefers_injector(local) || kind == Kind::Woken)", Test("queues", "a_future_that_yields_in_coarse");
    "race 22: a worker does not notify of a future that has yielded in a coarse poll", "src/sched/context.rs",
        "        if !is_local {\n" => "        if false {\n", Model("local_queues::futures::a_coarse_yield_versus_a_look");
    "coarse: each task that another one waits for leaves an entry", "src/sched/context.rs",
        "        self.forget_task_time();\n        self.skip" => "        self.skip", Unit("pool::tests::a_coarse_task_leaves");
    "coarse: tasks wait in line although a worker is idle", "src/sched/context.rs",
        "now.idle() > 0 && now" => "now.idle() > usize::MAX - 1 && now", Unit("context::tests::an_idle_worker");
    "coarse: an idle worker that may not run counts", "src/sched/context.rs",
        "now.idle() > 0 && now.has_spare_capacity(limit)" => "{ let _ = limit; now.idle() > 0 }", Unit("context::tests::an_idle_worker");
    "coarse: the last tasks decide", "src/queue/pacing.rs",
        "(self.task_nanos.get() + now) / 2" => "now", Unit("pacing::tests::the_time_of_a_task");
    "coarse: tasks inside of others do not count", "src/queue/pacing.rs",
        "checked_div(run as u128)" => "checked_div(run.min(1) as u128)", Unit("pacing::tests::the_time_of_a_task");
    "coarse: one task counts for seconds", "src/queue/pacing.rs",
        "map_or(longest, |mean| mean.min(longest))" => "unwrap_or(u32::MAX / 2).max(longest.min(1))", Unit("pacing::tests::the_time_of_a_task");
    "coarse: a worker that has rested knows of its tasks", "src/queue/pacing.rs",
        "        self.task_nanos.set(PERIOD_NANOS / 8);\n"
        => "        self.task_nanos.set(self.task_nanos.get().max(1));\n", Unit("pacing::tests::a_rest_is");
    "coarse: a wait counts as the time of tasks", "src/queue/pacing.rs",
        "        self.since.set(None);\n"
        => "", Unit("pacing::tests::what_says_nothing");
    "local queues: a worker that makes requests counts as stalled", "src/queue/local.rs",
        "other.requests.get() == requests)"
        => "other.requests.get() != usize::MAX || requests == 0)", Unit("local::tests::only_a_stalled");
    "local queues: the stalled checks always compare the same worker", "src/queue/local.rs",
        "(next, place + 1)"
        => "(next, 0)", Unit("local::tests::stalled_checks_reach");
    "local queues: what went to an injector is not left behind", "src/queue/local.rs",
        " || is_injected()\n"
        => " || is_injected() && false\n", Model("local_queues::an_overflow_out_of");
    "race 22: a worker does not notify of a future that overflowed", "src/sched/context.rs",
        "        if !is_local {\n"
        => "        if false {\n", Model("local_queues::an_overflow_versus_a_stealer");
    "local queues: an immediate shutdown misses a steal in transit", "src/queue/mod.rs",
        "        let _no_moves = self.moves.write();\n"
        => "", Model("local_queues::a_drain_versus_a_steal");
    "local queues: the oldest task goes to the end", "src/queue/local.rs",
        "        let local = self.rings[Kind::New as usize].pop();\n        local.or_else"
        => "        if let Some(first) = self.rings[Kind::New as usize].pop() {\n            self.push_with(queue, Kind::New, || first);\n        }\n        let local = self.rings[Kind::New as usize].pop();\n        local.or_else", Test("queues", "start_in_order");
};
