//! Why a group failed.

use std::error::Error;
use std::fmt;

use crate::error::JoinError;

/// Why a [`TaskGroup`](crate::TaskGroup) failed.
///
/// It is an [`Error`] with the text of the task's error, for each `E` that implements `Display` and
/// `Debug`: also for `anyhow::Error` and `Box<dyn Error + Send + Sync>`, which are no `Error`
/// themselves. So `group.wait()?` works with all of them. Its [`source`](Error::source) is always
/// `None`, since such an `E` has no sources that this type could ask for. To keep the sources of
/// the task's error, and to downcast it, use [`into_error`](Self::into_error), or match on
/// `Failed`.
///
/// ```
/// use std::error::Error;
/// use elastipool::{Rejected, ThreadPool};
///
/// type BoxError = Box<dyn Error + Send + Sync>;
///
/// fn parse(pool: &ThreadPool, texts: [&'static str; 2]) -> Result<(), BoxError> {
///     let group = pool.group::<BoxError>();
///     for text in texts {
///         let prints = move || Ok(println!("{}", text.parse::<u32>()?));
///         group.execute(prints).map_err(Rejected::into_reason)?;
///     }
///     group.wait()?;
///     Ok(())
/// }
///
/// let pool = ThreadPool::default();
/// assert!(parse(&pool, ["1", "2"]).is_ok());
/// let error = parse(&pool, ["1", "two"]).unwrap_err();
/// assert_eq!(error.to_string(), "invalid digit found in string");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GroupError<E> {
    /// A task returned this error.
    Failed(E),
    /// A task panicked ([`JoinError::is_panic`]), the group's
    /// [deadline](crate::TaskGroup::deadline) has passed ([`JoinError::is_expired`]), or this wait
    /// has no error of a task to return ([`JoinError::is_cancelled`]).
    ///
    /// The latter happens in five cases: the group was [cancelled](crate::TaskGroup::cancel), one
    /// of its tasks was dropped before its end, the panic of one has gone to its handle, another
    /// wait received the errors, or the caller is an [unwinding task of the
    /// group](crate::TaskGroup::wait).
    Join(JoinError),
}

impl<E> GroupError<E> {
    pub(super) const CANCELLED: Self = GroupError::Join(JoinError::CANCELLED);

    /// Returns whether a task panicked.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// group.execute(|| panic!("lost my keys")).unwrap();
    /// assert!(group.wait().unwrap_err().is_panic());
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_panic())
    }

    /// Returns whether the group failed without an error or panic of a task that this wait could
    /// return.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// group.cancel();
    /// assert!(group.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_cancelled())
    }
}

impl<E> GroupError<E> {
    /// Returns whether the group's [deadline](crate::TaskGroup::deadline) has cancelled it, and no
    /// task has returned an error.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().deadline(Instant::now());
    /// assert!(group.execute(|| Ok(())).is_err()); // it comes too late
    /// assert!(group.wait().unwrap_err().is_expired());
    /// ```
    pub fn is_expired(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_expired())
    }
}

impl<E: From<JoinError>> GroupError<E> {
    /// Converts into the error type of the tasks: the task's own error, or one made of the
    /// [`JoinError`].
    ///
    /// ```
    /// use std::io::{Error, ErrorKind};
    /// use elastipool::{GroupError, ThreadPool};
    ///
    /// fn read(pool: &ThreadPool) -> Result<(), Error> {
    ///     let group = pool.group();
    ///     let reads = group.execute(|| std::fs::read("no such file").map(drop));
    ///     assert!(reads.is_ok());
    ///     group.wait().map_err(GroupError::into_error)
    /// }
    ///
    /// assert_eq!(read(&ThreadPool::default()).unwrap_err().kind(), ErrorKind::NotFound);
    /// ```
    pub fn into_error(self) -> E {
        match self {
            GroupError::Failed(error) => error,
            GroupError::Join(error) => E::from(error),
        }
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

/// Without `E: Error`, so that `E` may be a boxed error.
impl<E: fmt::Debug + fmt::Display> Error for GroupError<E> {}
