//! How long it takes until all workers run a task each, by the rule that says who wakes whom. A
//! simulation: the machines that the rows are measured on have two CPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use clap::Args;

use crate::Result;
use crate::report::{align_right, table};

#[derive(Args)]
pub(crate) struct WakeUps {
    /// From the waker's call until the woken worker runs, in microseconds
    #[arg(long, value_name = "US", default_value_t = 20)]
    latency: u64,

    /// How long the call takes its caller, in microseconds
    #[arg(long, value_name = "US", default_value_t = 5)]
    call: u64,
}

/// How many others each thread wakes.
#[derive(Clone, Copy)]
struct Rule {
    submitter: usize,
    worker: usize,
}

/// The submitter and each worker wake one: tokio's rule.
const ONE_EACH: Rule = Rule { submitter: 1, worker: 1 };

/// The rule before: two tasks at once wake two workers.
const BEFORE: Rule = Rule { submitter: 2, worker: 2 };

/// The submitter wakes one worker, and each woken worker two others when it has taken its task.
const NOW: Rule = Rule { submitter: 1, worker: 2 };

/// Returns when the last of `workers` idle workers runs. A worker wakes others before it runs its
/// task.
fn time_until_all_run(workers: usize, rule: Rule, WakeUps { latency, call }: &WakeUps) -> u64 {
    // When threads that may wake others run, and how many they may wake. The earliest first.
    let mut running = BinaryHeap::from([Reverse((0, rule.submitter))]);
    let mut last = 0;
    for _ in 0..workers {
        let Some(Reverse((time, may_wake))) = running.pop() else { break };
        let woken = time + call + latency;
        let wakers = [(time + call, may_wake - 1), (woken, rule.worker)];
        running.extend(wakers.into_iter().filter(|(_, may_wake)| *may_wake > 0).map(Reverse));
        last = last.max(woken);
    }
    last
}

impl WakeUps {
    pub(crate) fn run(&self) -> Result<()> {
        let mut table = table(&["workers", "one each", "before", "now"]);
        align_right(&mut table, &[0, 1, 2, 3]);
        for workers in [2, 4, 8, 16, 64, 256] {
            let times = [ONE_EACH, BEFORE, NOW]
                .map(|rule| time_until_all_run(workers, rule, self).to_string());
            table.add_row([workers.to_string()].into_iter().chain(times));
        }
        println!("Microseconds until all workers run, in a burst of as many tasks:\n\n{table}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BEFORE, NOW, ONE_EACH, Rule, WakeUps, time_until_all_run};

    #[test]
    fn each_call_comes_before_the_next_one() {
        let times = WakeUps { latency: 20, call: 5 };
        let alone = Rule { submitter: 9, worker: 0 };
        assert_eq!(
            [1, 2, 9].map(|workers| time_until_all_run(workers, alone, &times)),
            [25, 30, 65]
        );
        // The submitter wakes two, and the first of these a third one.
        assert_eq!([2, 3].map(|workers| time_until_all_run(workers, BEFORE, &times)), [30, 50]);
        // The submitter wakes one, which wakes two.
        assert_eq!([2, 3].map(|workers| time_until_all_run(workers, NOW, &times)), [50, 55]);
        assert_eq!(time_until_all_run(4, ONE_EACH, &times), 100);
    }
}
