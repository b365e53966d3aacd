//! Containing panics of user code (law 6): it is caught where it is called, so that no thread, lock or
//! count of the pool ever sees it.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs user code and hands a panic back as its payload.
///
/// Unwind safety is the caller's affair: what `f` captured must not be used after a panic, except to
/// drop it.
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Runs user code of which nobody wants to hear.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = contain(f) {
        // The payload may have a panicking destructor in turn. It is given its chance; what comes out
        // of that is leaked, or this would have no end.
        if let Err(payload) = contain(move || drop(payload)) {
            mem::forget(payload);
        }
    }
}

/// Drops a user's value, whatever its destructor does.
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
