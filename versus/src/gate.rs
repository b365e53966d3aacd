//! Holds tasks, and with them the workers that run them.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::Result;
use crate::engines::{Pool, leak};

/// An engine that has not started the tasks by then will not.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    inside: usize,
    open: bool,
    /// The number of tasks that the submitter waits for.
    awaited: usize,
}

/// Closed at first. Each task that comes is blocked until it opens.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    /// All awaited tasks are inside. Only the submitter waits for this: with thousands of tasks
    /// inside, a wake-up of all of them at each arrival would be what is measured.
    complete: Condvar,
    opened: Condvar,
}

impl Gate {
    /// Submits so many tasks that block, and waits until all of them have started.
    pub(crate) fn occupy<P: Pool>(pool: &'static P, tasks: usize) -> Result<&'static Self> {
        Gate::occupy_with(pool, tasks, || ())
    }

    /// The same, and each task calls a function before it blocks.
    pub(crate) fn occupy_with<P: Pool>(
        pool: &'static P,
        tasks: usize,
        begin: impl Fn() + Copy + Send + 'static,
    ) -> Result<&'static Self> {
        let state = Mutex::new(State { awaited: tasks, ..State::default() });
        let gate = leak(Gate { state, ..Gate::default() });
        for _ in 0..tasks {
            pool.execute(move || {
                begin();
                gate.pass();
            });
        }
        gate.wait_until_complete()?;
        Ok(gate)
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.inside += 1;
        if state.inside == state.awaited {
            self.complete.notify_one();
        }
        while !state.open {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_until_complete(&self) -> Result<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, _) = self
            .complete
            .wait_timeout_while(state, PATIENCE, |state| state.inside < state.awaited)
            .unwrap_or_else(PoisonError::into_inner);
        match *state {
            State { inside, awaited, .. } if inside < awaited => {
                Err(format!("only {inside} of {awaited} tasks run at once").into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open = true;
        self.opened.notify_all();
    }
}
