//! Contains panics of user code (law 6). They are caught at the call, so that no thread, lock or
//! count of the pool is affected. A panic of the crate's own code on a thread of a pool ends the
//! process.

use std::any::Any;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, process};

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Returns the text that `panic!` was called with.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Runs user code and returns a panic's payload as the error.
///
/// The caller ensures unwind safety: after a panic it only drops what `f` has captured.
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Runs user code and discards its panic.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = contain(f) {
        discard_payload(payload);
    }
}

/// Not part of [`quietly`], which is compiled for each type of closure.
#[cold]
fn discard_payload(payload: Payload) {
    // The destructor of the payload may panic in turn. The payload of that panic is leaked: its
    // destructor might panic as well, without end.
    if let Err(payload) = contain(move || drop(payload)) {
        mem::forget(payload);
    }
}

/// Drops a user's value and discards a panic of its destructor.
pub(crate) fn discard<T>(value: T) {
    quietly(move || drop(value));
}

/// A value of the user's, such as a hook. Contains panics of its destructor.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Contained(Some(value))
    }

    pub(crate) fn get(&self) -> &T {
        self.0.as_ref().expect("only the drop takes it")
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("only the drop takes it")
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

/// Calls a function when it is dropped, also while the thread unwinds.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs the body of a pool's thread. Aborts the process if it panics: all user code is
/// [contained](contain), so the panic is a defect of this crate. A thread that ended silently would
/// leave its task's handle unsettled and the counts wrong, and the pool would hang.
pub(crate) fn abort_on_panic(body: impl FnOnce()) {
    let unwinds = OnDrop(|| {
        let text = "elastipool: a thread of a pool has panicked outside of a task, which is a \
            defect of elastipool; aborting";
        let _ = writeln!(io::stderr(), "{text}");
        process::abort();
    });
    body();
    mem::forget(unwinds);
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::env;
    use std::panic::panic_any;
    use std::process::Command;

    use super::{contain, discard};
    use crate::sync::start_thread;

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn a_payload_comes_back() {
        let payload = contain(|| panic!("seven")).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"seven"));
    }

    #[test]
    fn destructors_that_panic_are_contained() {
        for depth in 0..5 {
            discard(Bomb(depth));
        }
    }

    /// A panic on a thread of a pool, outside of user code, in a process of its own.
    #[test]
    fn a_panic_of_the_pools_own_code_aborts_the_process() {
        const CHILD: &str = "ELASTIPOOL_TEST_CHILD";
        let name = "sync::unwind::tests::a_panic_of_the_pools_own_code_aborts_the_process";
        if env::var_os(CHILD).is_some() {
            let thread = start_thread("own".to_owned(), None, Box::new(|| panic!("on purpose")));
            let _ = thread.expect("the system has a thread").join();
            return;
        }
        let mut child = Command::new(env::current_exe().expect("a test knows its program"));
        child.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
        let output = child.output().expect("the test's program can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{text}");
        assert!(text.contains("on purpose") && text.contains("defect of elastipool"), "{text}");
    }
}
