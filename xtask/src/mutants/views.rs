//! The scheduling of views.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "view: its queue keeps the memory of a burst", "src/runtime/policy.rs",
        "            view.new.shrink_to(KEPT_CAPACITY);\n"
        => "            view.new.shrink_to(usize::MAX);\n", Test("memory", "memory_is_given_back");
    "race 35: the end of a task keeps its place", "src/runtime/policy.rs",
        "        if let Some(held) = held {\n            state.release(held);\n        }\n        let taken"
        => "        let _ = held;\n        let taken", Model("views::the_end_of_a_limited_task");
    "reserve: others take the reserved place", "src/runtime/policy.rs",
        "(limit - self.reserved).saturating_sub(self.shared)"
        => "limit.saturating_sub(self.shared)", Model("views::the_end_of_a_task_versus_submit_beside");
    "race 7: a place that is free is not given to a returning worker", "src/runtime/policy.rs",
        "        self.admit_returning();\n    }\n\n    fn try_acquire"
        => "    }\n\n    fn try_acquire", Model("views::a_worker_of_a_limited_view");
    "limit: a returning worker does not wait for a place", "src/runtime/place.rs",
        "            self.policy.wait(lent, &parker);\n"
        => "            drop(parker);\n", Model("views::a_worker_of_a_limited_view");
    "limit: a claimed task runs without a place of its view", "src/runtime/place.rs",
        "            self.exchange_place(context, to);\n        }\n        Below"
        => "        }\n        Below", Test("views", "a_claimed_task_holds");
    "race 15: no worker is notified of a reserve that has ended", "src/runtime/place.rs",
        "        self.policy.remove(&self.sizes, id).look(&self);\n"
        => "        _ = self.policy.remove(&self.sizes, id);\n", Model("views::the_end_of_a_reserve");
    "views: the younger of two comes first", "src/runtime/policy.rs",
        "|(pass, _)| view.pass < pass"
        => "|(pass, _)| view.pass <= pass", Unit("policy::tests::of_two_views");
    "views: a limited view counts as more work", "src/runtime/policy.rs",
        "self.busy.iter().map(|id| &self.views[id]).filter(has_place);"
        => "self.busy.iter().map(|id| &self.views[id]);", Unit("policy::tests::items_of_each_view");
    "priority: a lower one starves", "src/runtime/policy.rs",
        "const MAX_PASSED: usize = 18;"
        => "const MAX_PASSED: usize = usize::MAX;", Test("views", "lower_priorities_do_not_starve");
    "weight: all views have the same", "src/runtime/policy.rs",
        "FULL_STEP / view.terms.weight as u128"
        => "FULL_STEP", Test("views", "weights_are_shares");
    "weight: idle times give credit", "src/runtime/policy.rs",
        "            view.pass = view.pass.max(self.levels[view.level()].pass);\n"
        => "", Test("views", "idle_times_give_no_credit");
    "view: a join does not wait for the task's end", "src/runtime/view.rs",
        "        if is_end {\n            self.in_flight.finish(1);\n        }"
        => "        let _ = is_end;", Test("views", "a_join_waits_for_the_view_alone");
};
