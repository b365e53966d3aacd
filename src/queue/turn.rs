//! A turn of tasks that others mostly come before.
//!
//! One task a turn would be too few where the others take longer: tasks of a microsecond would wait for as many of a millisecond.
//! So a turn goes on for a moment.

use std::cell::Cell;
#[cfg(not(elastipool_loom))]
use std::time::Duration;
use std::time::Instant;

/// How long a turn goes on: time for dozens of short tasks, and little beside the others' own tasks if these are long. The last
/// task may take longer.
#[cfg(not(elastipool_loom))]
const LIMIT: Duration = Duration::from_micros(10);

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
    pub(crate) fn begin(&self) {
        self.0.set(State::Begun);
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.0.get(), State::Over)
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

    /// Returns when its first task was taken.
    pub(crate) fn end(&self) -> Option<Instant> {
        match self.0.take() {
            State::Since(begin) => Some(begin),
            State::Over | State::Begun => None,
        }
    }
}

#[cfg(not(elastipool_loom))]
fn is_over(begin: Instant) -> bool {
    begin.elapsed() >= LIMIT
}

/// A model has no time: a turn is one task.
#[cfg(elastipool_loom)]
fn is_over(_begin: Instant) -> bool {
    true
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::iter;
    use std::thread;

    use super::{LIMIT, Turn};

    #[test]
    fn a_turn_is_one_task_at_least() {
        let turn = Turn::default();
        assert_eq!(turn.next(|| Some(1)), None, "it has not begun");
        turn.begin();
        // Its time begins with its first task.
        thread::sleep(2 * LIMIT);
        assert_eq!(turn.next(|| Some(1)), Some(1));
        thread::sleep(2 * LIMIT);
        assert_eq!(turn.next(|| Some(2)), None);
        assert!(turn.is_on());
        assert!(turn.end().is_some_and(|begin| begin.elapsed() >= 2 * LIMIT));
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
        assert_eq!(turn.end(), None);
    }
}
