//! Why a group has not succeeded.

use std::error::Error;
use std::fmt;

use crate::error::JoinError;

/// Why a [`TaskGroup`](crate::TaskGroup) has not succeeded.
#[derive(Debug)]
pub enum GroupError<E> {
    /// A task returned this error.
    Failed(E),
    /// A task panicked: [`JoinError::is_panic`]. Or no task has failed that this waiter could hear of, but the group was
    /// [cancelled](crate::TaskGroup::cancel), or one of its tasks was dropped without having run to its end, or another waiter
    /// has received the errors, or the waiter is a [task of the group that unwinds](crate::TaskGroup::wait):
    /// [`JoinError::is_cancelled`].
    Join(JoinError),
}

impl<E> GroupError<E> {
    pub(super) fn cancelled() -> Self {
        GroupError::Join(JoinError::cancelled())
    }

    /// Whether a task has panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_panic())
    }

    /// Whether the group has not succeeded for another reason than an error or a panic of a task.
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
