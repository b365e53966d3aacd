//! A turn: a worker takes a few tasks first that otherwise come last.
//!
//! If a turn were one task, a thousand tasks of a microsecond would wait for a thousand of those that come first, however long
//! these are.

use std::cell::Cell;

/// The tasks of a turn, at most. Enough for short ones to catch up; with more, others would wait longer than for a coarse one.
pub(super) const TURN: u8 = 8;

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Turn {
    /// How many tasks are left of it. `None`: it is over.
    left: Cell<Option<u8>>,
}

impl Turn {
    /// A turn that is on stays as it is: it would never end if tasks of it could begin it anew.
    pub(crate) fn begin(&self) {
        if !self.is_on() {
            self.left.set(Some(TURN));
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.left.get().is_some()
    }

    /// Returns what `pop` does, if the turn goes on. If this is `None`, the caller [ends](Self::end) the turn. Of coarse tasks it is
    /// one.
    pub(crate) fn next<T>(&self, are_coarse: bool, pop: impl FnOnce() -> Option<T>) -> Option<T> {
        let rest = self.left.get()?.checked_sub(1)?;
        let item = pop()?;
        self.left.set(Some(if are_coarse { 0 } else { rest }));
        Some(item)
    }

    pub(crate) fn end(&self) {
        self.left.set(None);
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{TURN, Turn};

    #[test]
    fn a_turn_is_a_few_tasks() {
        let turn = Turn::default();
        assert_eq!(turn.next(false, || Some(1)), None, "it has not begun");
        for _ in 0..2 {
            turn.begin();
            assert_eq!(turn.next(false, || None::<u32>), None);
            assert!((0..TURN).all(|_| turn.next(false, || Some(1)) == Some(1)));
            assert_eq!(turn.next(false, || Some(2)), None);
            assert!(turn.is_on());
            turn.begin();
            assert_eq!(
                turn.next(false, || Some(2)),
                None,
                "it does not begin anew before it was ended"
            );
            turn.end();
            assert!(!turn.is_on());
        }
        turn.begin();
        assert_eq!([(); 2].map(|()| turn.next(true, || Some(1))), [Some(1), None]);
    }
}
