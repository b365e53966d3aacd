//! Why a group failed.

use std::error::Error;
use std::fmt;

use crate::error::JoinError;

/// Why a [`TaskGroup`](crate::TaskGroup) failed.
#[derive(Debug)]
pub enum GroupError<E> {
    /// A task returned this error.
    Failed(E),
    /// A task panicked ([`JoinError::is_panic`]), or this wait has no error of a task to return
    /// ([`JoinError::is_cancelled`]).
    ///
    /// The latter happens in four cases: the group was [cancelled](crate::TaskGroup::cancel), one of its tasks was dropped
    /// before its end, another wait received the errors, or the caller is an
    /// [unwinding task of the group](crate::TaskGroup::wait).
    Join(JoinError),
}

impl<E> GroupError<E> {
    pub(super) fn cancelled() -> Self {
        GroupError::Join(JoinError::cancelled())
    }

    /// Returns whether a task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_panic())
    }

    /// Returns whether the group failed without an error or panic of a task that this wait could return.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_cancelled())
    }
}

impl<E: fmt::Display> fmt::Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Failed(error) => error.fmt(f),
            GroupError::Join(error) if error.is_cancelled() => {
                f.write_str("the group was cancelled")
            }
            GroupError::Join(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for GroupError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            GroupError::Failed(error) => error.source(),
            GroupError::Join(error) => error.source(),
        }
    }
}
