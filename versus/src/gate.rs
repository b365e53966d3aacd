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
}

/// Closed at first. Each task that comes is blocked until it opens.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Submits so many tasks that block, and waits until all of them have started.
    pub(crate) fn occupy<P: Pool>(pool: &'static P, tasks: usize) -> Result<&'static Self> {
        let gate = leak(Gate::default());
        for _ in 0..tasks {
            pool.execute(move || gate.pass());
        }
        gate.wait_until_inside(tasks)?;
        Ok(gate)
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.inside += 1;
        self.changed.notify_all();
        while !state.open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_until_inside(&self, tasks: usize) -> Result<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, _) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.inside < tasks)
            .unwrap_or_else(PoisonError::into_inner);
        if state.inside < tasks {
            return Err(format!("only {} of {tasks} tasks run at once", state.inside).into());
        }
        Ok(())
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open = true;
        self.changed.notify_all();
    }
}
