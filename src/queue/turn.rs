//! A turn: for a moment, a worker takes tasks first that otherwise come last.
//!
//! If a turn were one task, a thousand tasks of a microsecond would wait for a thousand of those that come first, however long
//! these are.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a turn goes on: time for dozens of short tasks, and short beside one long task. The last task may take longer.
pub(super) const LIMIT: Duration = Duration::from_micros(10);

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Turn(Cell<State>);

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Over,
    /// Its first task comes next.
    Begun,
    /// Its first task was taken at this time.
    Since(Instant),
}

impl Turn {
    /// A turn that is on stays as it is: it would never end if tasks of it could begin it anew.
    pub(crate) fn begin(&self) {
        if !self.is_on() {
            self.0.set(State::Begun);
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.0.get(), State::Over)
    }

    /// Whether its first task has not been taken yet.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.0.get(), State::Begun)
    }

    /// Returns what `pop` does, if the turn goes on. If this is `None`, the caller [ends](Self::end) the turn.
    pub(crate) fn next<T>(&self, pop: impl FnOnce() -> Option<T>) -> Option<T> {
        match self.0.get() {
            State::Begun => {
                let first = pop()?;
                self.0.set(State::Since(Instant::now()));
                Some(first)
            }
            State::Since(begin) if !is_over(begin) => pop(),
            State::Over | State::Since(_) => None,
        }
    }

    pub(crate) fn end(&self) {
        self.0.set(State::Over);
    }

    /// Returns how long it has gone on, without what its last task took beyond the [`LIMIT`].
    pub(crate) fn length(&self) -> Duration {
        match self.0.get() {
            State::Since(begin) => begin.elapsed().min(LIMIT),
            State::Over | State::Begun => Duration::ZERO,
        }
    }
}

#[cfg(not(elastipool_loom))]
fn is_over(begin: Instant) -> bool {
    begin.elapsed() >= LIMIT
}

/// A model has no time.
#[cfg(elastipool_loom)]
fn is_over(_begin: Instant) -> bool {
    !crate::queue::model::TURNS_GO_ON.get()
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::iter;
    use std::thread;
    use std::time::Duration;

    use super::{LIMIT, Turn};

    #[test]
    fn a_turn_is_one_task_at_least() {
        let turn = Turn::default();
        assert_eq!(turn.next(|| Some(1)), None, "it has not begun");
        turn.begin();
        // Time is the subject: it begins with the first task.
        thread::sleep(2 * LIMIT);
        assert_eq!(turn.next(|| Some(1)), Some(1));
        thread::sleep(2 * LIMIT);
        assert_eq!(turn.next(|| Some(2)), None);
        assert!(turn.is_on());
        turn.begin();
        assert_eq!(turn.next(|| Some(2)), None, "it does not begin anew before it was ended");
        assert_eq!(turn.length(), LIMIT);
        turn.end();
        assert!(!turn.is_on());
    }

    #[test]
    fn a_turn_goes_on_for_a_moment() {
        // Not if this thread loses its CPU just then.
        let is_several = (0..1_000).any(|_| {
            let turn = Turn::default();
            turn.begin();
            iter::from_fn(|| turn.next(|| Some(()))).take(3).count() == 3
        });
        assert!(is_several);
    }

    #[test]
    fn a_turn_may_have_no_task() {
        let turn = Turn::default();
        turn.begin();
        assert_eq!(turn.next(|| None::<()>), None);
        assert_eq!(turn.length(), Duration::ZERO);
    }
}
