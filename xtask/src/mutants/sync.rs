//! Parking, spinning, the CPU of a thread, panics.

use super::By::{Model, Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "inherit: a worker has what its starter has", "src/sched/worker.rs",
        "    start.shared.inherited.apply();\n"
        => "", Test("workers", "a_pinned_submitter"), Test("workers", "a_submitter_that_blocks");
    "inherit: the keeper has what its starter has", "src/sched/spawn.rs",
        "            shared.inherited.apply();\n"
        => "", Test("workers", "a_pinned_submitter"), Test("workers", "a_submitter_that_blocks");
    "name: the system cuts the index", "src/sync/inherit.rs",
        "        system::set_name(&format!(\"{}{index}\", &pool[..end]));\n"
        => "        let _ = (end, system::set_name);\n", Test("workers", "the_index_is_visible");
    "name: the user's name is replaced", "src/sched/worker.rs",
        "    if start.has_default_name {"
        => "    if start.has_default_name || true {", Test("workers", "the_users_names");
    "law 6: a panic of the pool's own code ends its thread silently", "src/sync/mod.rs",
        "builder.spawn(|| unwind::abort_on_panic(body))"
        => "builder.spawn(body)", Unit("unwind::tests::a_panic_of_the_pools_own");
    "a recheck replaces the signal", "src/sync/parker.rs",
        "if mailbox.signal != Some(Signal::Unparked) {"
        => "{", Model("notify::parker_does_not_lose");
    "a parker forgets that its owner waits", "src/sync/parker.rs",
        "            mailbox.waiting = true;\n"
        => "", Model("notify::parker_does_not_lose");
    "law 9: a thread that ends the process is joined", "src/sync/mod.rs",
        "if !HAS_RETURNED.get()"
        => "if false", Test("shutdown", "at_exit");
    "spin: a spin does not give way", "src/sync/spin.rs",
        " && !Waking::is_any_here()" => "", Unit("spin::tests::a_spin_gives_way");
    "CPUs: a pinned main thread decides", "src/sync/cpu.rs",
        "is_none_or(|own| number_of(&own) >= count)" => "is_none_or(|own| number_of(&own) == count)", Test("workers", "a_pinned_main_thread");
    "CPUs: a pinned thread decides", "src/sync/cpu.rs",
        "count_as_main_thread().unwrap_or_else(num_cpus::get)" => "num_cpus::get()", Test("workers", "a_pinned_thread_does_not");
    "spin: the system does not tell the CPU", "src/sync/cpu.rs",
        "    usize::try_from(number).ok()\n" => "    _ = number;\n    None\n", Unit("cpu::tests::some_systems");
    "spin: each thread runs on the first CPU", "src/sync/cpu.rs",
        "    usize::try_from(number).ok()\n" => "    _ = number;\n    Some(0)\n", Unit("cpu::tests::a_pinned_thread");
    "spin: threads of all CPUs are counted together", "src/sync/waking.rs",
        "    &COUNTS[cpu % COUNTS.len()]\n" => "    &COUNTS[cpu % 1]\n", Unit("waking::tests::a_thread_counts");
    "spin: a woken thread is counted for ever", "src/sync/waking.rs",
        "        count_of(self.0).subtract(1);\n" => "", Unit("waking::tests::a_thread_counts");
    "spin: a woken thread is not counted", "src/sync/waking.rs",
        "        count_of(cpu).increment();\n" => "", Unit("waking::tests::a_thread_counts");
    "spin: a thread that wakes another is not counted", "src/sync/waking.rs",
        "        let _waking = current_cpu().map(Self::begin);\n" => "", Unit("waking::tests::a_thread_that_wakes");
    "spin: a thread is not counted when it is woken", "src/sync/parker.rs",
        "            mailbox.waking = mailbox.cpu.map(Waking::begin);\n" => "", Unit("parker::tests::an_owner_counts");
    "spin: a rechecked thread is counted", "src/sync/parker.rs",
        "if waiting && signal == Signal::Unparked {" => "if waiting {", Unit("parker::tests::an_owner_counts");
    "spin: a woken thread stays counted", "src/sync/parker.rs",
        "        mailbox.waking = None;\n" => "", Unit("parker::tests::an_owner_counts");
    "spin: where a thread parks is not known", "src/sync/parker.rs",
        "            mailbox.cpu = current_cpu();\n" => "", Unit("parker::tests::an_owner_that_waits");
};
