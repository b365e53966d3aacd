//! A closure without its type, in place if it is small.
//!
//! `Box<dyn FnOnce>` would do, at the price of an allocation for each task. Here a closure of up to [`WORDS`] words
//! lies in the job itself; a larger one lies in a box, and the box in the job. This is known as small-buffer
//! optimisation; `std::function` of C++ does the same.
#![allow(unsafe_code, reason = "an allocation less for each task; see the SAFETY comments")]

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

/// How large a closure may be that is stored in place. A handler's call is one word for the function, which leaves two
/// for the argument.
const WORDS: usize = 3;

type Space = MaybeUninit<[usize; WORDS]>;

/// See the [module's documentation](self).
///
/// # Invariant
/// `space` holds a value of one type `F: FnOnce() -> R + Send`, and `methods` are those for `F`.
pub(crate) struct Closure<R: 'static> {
    space: Space,
    methods: &'static Methods<R>,
}

/// What can be done with a stored closure of one type.
struct Methods<R> {
    /// # Safety
    /// The argument points to a closure of that type, which the call consumes.
    call: unsafe fn(*mut Space) -> R,
    /// # Safety
    /// As for `call`.
    drop: unsafe fn(*mut Space),
}

impl<R: 'static> Closure<R> {
    pub(crate) fn new<F>(closure: F) -> Self
    where
        F: FnOnce() -> R + Send + 'static,
    {
        Closure::fitting(closure)
    }

    /// A closure that borrows from others, who wait for it.
    ///
    /// # Safety
    /// The result is called or dropped before the end of whatever `closure` borrows.
    pub(crate) unsafe fn new_borrowing<F>(closure: F) -> Self
    where
        F: FnOnce() -> R + Send,
    {
        Closure::fitting(closure)
    }

    fn fitting<F>(closure: F) -> Self
    where
        F: FnOnce() -> R + Send,
    {
        if const { size_of::<F>() <= size_of::<Space>() && align_of::<F>() <= align_of::<Space>() }
        {
            Closure::in_place(closure)
        } else {
            Closure::in_place(Box::new(closure))
        }
    }

    fn in_place<F>(closure: F) -> Self
    where
        F: FnOnce() -> R + Send,
    {
        assert!(size_of::<F>() <= size_of::<Space>() && align_of::<F>() <= align_of::<Space>());
        let mut space = Space::uninit();
        // SAFETY: the space is large enough for it and aligned, and it is ours.
        unsafe { space.as_mut_ptr().cast::<F>().write(closure) };
        let methods = &const { Methods { call: call::<F, R>, drop: drop_in_place::<F> } };
        Closure { space, methods }
    }

    pub(crate) fn call(self) -> R {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the methods fit the space. It is not used again: this closure is not dropped.
        unsafe { (this.methods.call)(&raw mut this.space) }
    }
}

impl<R: 'static> Drop for Closure<R> {
    fn drop(&mut self) {
        // SAFETY: the methods fit the space, and it is not used again.
        unsafe { (self.methods.drop)(&raw mut self.space) }
    }
}

/// # Safety
/// `space` points to an `F`, which is not used again.
unsafe fn call<F: FnOnce() -> R, R>(space: *mut Space) -> R {
    // SAFETY: the caller's promise.
    let closure = unsafe { space.cast::<F>().read() };
    closure()
}

/// # Safety
/// As for [`call`].
unsafe fn drop_in_place<F>(space: *mut Space) {
    // SAFETY: the caller's promise.
    unsafe { ptr::drop_in_place(space.cast::<F>()) }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::{Closure, WORDS};

    /// Runs `check` with closures of all sizes around the limit; each holds a reference to `witness`.
    fn of_each_size(check: impl Fn(Closure<usize>, usize, &Arc<()>)) {
        let witness = Arc::new(());
        macro_rules! sizes {
            ($($words:literal)*) => {$({
                let (held, payload) = (Arc::clone(&witness), [7_usize; $words]);
                let closure = Closure::new(move || {
                    let _held = &held;
                    payload.iter().sum()
                });
                assert_eq!(Arc::strong_count(&witness), 2);
                check(closure, 7 * $words, &witness);
                assert_eq!(Arc::strong_count(&witness), 1, "{} words", $words);
            })*};
        }
        sizes!(0 1 2 3 4 5 100);
        assert_eq!(WORDS, 3, "the sizes above are around it");
    }

    #[test]
    fn a_call_returns_the_result_and_drops_what_was_captured() {
        of_each_size(|closure, result, _| assert_eq!(closure.call(), result));
    }

    #[test]
    fn a_drop_without_a_call_drops_what_was_captured() {
        of_each_size(|closure, _, witness| {
            drop(closure);
            assert_eq!(Arc::strong_count(witness), 1);
        });
    }

    #[test]
    fn it_can_be_moved_to_another_thread() {
        of_each_size(|closure, result, _| {
            let moved = Box::new(closure);
            let called = std::thread::spawn(move || moved.call()).join();
            assert_eq!(called.unwrap(), result);
        });
    }

    #[test]
    fn a_panic_drops_what_was_captured() {
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        let closure = Closure::<()>::new(move || {
            let _held = held;
            panic!("on purpose");
        });
        catch_unwind(AssertUnwindSafe(|| closure.call())).unwrap_err();
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn what_needs_a_stricter_alignment_gets_it() {
        #[repr(align(128))]
        struct Aligned(u8);

        let aligned = Aligned(7);
        let closure = Closure::new(move || {
            let aligned = &aligned;
            (std::ptr::from_ref(aligned).addr() % 128, aligned.0)
        });
        let moved = (0_u8, closure).1;
        assert_eq!(moved.call(), (0, 7));
    }

    #[test]
    fn nothing_is_stored_for_what_captures_nothing() {
        assert_eq!(Closure::new(|| 7).call(), 7);
    }
}
