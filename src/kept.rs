//! A task that its submitter keeps until it is accepted, so that a refused one is still there.

use crate::error::{Refusal, Rejected};
use crate::runtime::submit::is_boxed;
use crate::sync::unwind::quietly;

/// See the [module's documentation](self). A large task lies in a box: unoptimised code copies it in each function that it passes
/// through, and would overflow a small stack.
pub(crate) enum Kept<F> {
    Here(Option<F>),
    InBox(Option<Box<F>>),
}

impl<F> Kept<F> {
    pub(crate) fn new(task: F) -> Self {
        if const { is_boxed::<F>() } {
            Kept::InBox(Some(Box::new(task)))
        } else {
            Kept::Here(Some(task))
        }
    }

    /// # Panics
    /// If it is large, or was taken.
    pub(crate) fn take(&mut self) -> F {
        match self {
            Kept::Here(task) => task.take().expect("a task is taken once"),
            Kept::InBox(_) => unreachable!("it is large"),
        }
    }

    /// # Panics
    /// If it is not large, or was taken.
    pub(crate) fn take_box(&mut self) -> Box<F> {
        match self {
            Kept::InBox(task) => task.take().expect("a task is taken once"),
            Kept::Here(_) => unreachable!("it is not large"),
        }
    }

    /// Hands the task back to the user.
    pub(crate) fn reject(&mut self, refusal: Refusal) -> Rejected<F> {
        let task = if const { is_boxed::<F>() } { *self.take_box() } else { self.take() };
        Rejected { task, refusal }
    }

    /// Drops the task. Contains panics.
    pub(crate) fn discard(&mut self) {
        quietly(|| *self = Kept::InBox(None));
    }
}

/// Makes something of a [`Kept`] task, in its box if it is large. `$in_box` is what a box must become.
macro_rules! take_kept {
    ($kept:ident: $F:ty, $in_box:path, |$task:ident| $make:expr) => {
        if const { $crate::runtime::submit::is_boxed::<$F>() } {
            let $task = $in_box($kept.take_box());
            $make
        } else {
            let $task = $kept.take();
            $make
        }
    };
}

pub(crate) use take_kept;
