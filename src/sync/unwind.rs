//! Contains panics of user code (law 6). They are caught at the call, so that no thread, lock or count of the pool is
//! affected.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

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
    // The destructor of the payload may panic in turn. The payload of that panic is leaked: its destructor might panic as
    // well, without end.
    if let Err(payload) = contain(move || drop(payload)) {
        mem::forget(payload);
    }
}

/// Drops a user's value and discards a panic of its destructor.
pub(crate) fn discard<T>(value: T) {
    quietly(move || drop(value));
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::panic::panic_any;

    use super::{contain, discard};

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
}
