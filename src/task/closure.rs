//! A type-erased closure, stored in place if it is small.
//!
//! `Box<dyn FnOnce>` would cost an allocation for each task. Here a closure of up to [`WORDS`] words lies in the job
//! itself; a larger one lies in a box, and the box in the job. This is the small-buffer optimisation of C++'s
//! `std::function`.
#![allow(unsafe_code, reason = "saves an allocation for each task; see the SAFETY comments")]

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ptr;

/// Bounds the size of a closure that is stored in place, in words. A handler's call takes one word for the function,
/// which leaves two for the argument.
const WORDS: usize = 3;

type Space = MaybeUninit<[usize; WORDS]>;

/// See the [module's documentation](self).
///
/// # Invariant
/// `space` holds a value of one type `F: FnOnce() -> R + Send`, and `methods` are those of `F`. In a [`ClosureOr`] it may
/// hold a `V`, or nothing after a call.
pub(crate) struct Closure<R: 'static> {
    space: Space,
    methods: &'static Methods<R>,
}

/// The operations of a stored closure of one type.
struct Methods<R> {
    /// # Safety
    /// The argument points to a closure of that type, which is not used again.
    call: unsafe fn(*mut Space) -> R,
    /// # Safety
    /// As for `call`.
    drop: unsafe fn(*mut Space),
    /// `None` for a closure, and for nothing. Otherwise the space holds the value of a [`ClosureOr`], and this is its flag.
    flag: Option<bool>,
}

impl<R> Methods<R> {
    /// Returns the methods of a space that holds nothing.
    const fn of_nothing() -> Self {
        Methods { call: never::<R>, drop: leave, flag: None }
    }
}

impl<R: 'static> Closure<R> {
    pub(crate) fn new<F>(closure: F) -> Self
    where
        F: FnOnce() -> R + Send + 'static,
    {
        Closure::fitting(closure)
    }

    /// Stores a closure that borrows.
    ///
    /// # Safety
    /// The result is called or dropped before any borrow of `closure` ends.
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
        // SAFETY: the space is large enough and aligned for `F`, as just checked, and no other code has access to it.
        unsafe { space.as_mut_ptr().cast::<F>().write(closure) };
        let methods =
            &const { Methods { call: call::<F, R>, drop: drop_in_place::<F>, flag: None } };
        Closure { space, methods }
    }
}

impl<R: 'static> Drop for Closure<R> {
    fn drop(&mut self) {
        // SAFETY: the methods fit the space, which is not used again.
        unsafe { (self.methods.drop)(&raw mut self.space) }
    }
}

/// A closure, or a value of type `V` with a flag, in the space of a closure.
///
/// An enum of the two would have an `Option` of one word more. The copies between them would then read words across the
/// words that were just written: the CPU waits some 12 cycles for such a read.
///
/// # Invariant
/// If the `flag` of the methods is `None`, `closure` holds a closure, or nothing, and then `methods` touch no space. Otherwise
/// it holds a `V`, and is not called.
pub(crate) struct ClosureOr<R: 'static, V> {
    closure: Closure<R>,
    _value: PhantomData<V>,
}

impl<R: 'static, V: Send + 'static> ClosureOr<R, V> {
    #[inline]
    pub(crate) fn closure(closure: Closure<R>) -> Self {
        ClosureOr { closure, _value: PhantomData }
    }

    #[inline]
    pub(crate) fn value(value: V, flag: bool) -> Self {
        const {
            assert!(size_of::<V>() <= size_of::<Space>() && align_of::<V>() <= align_of::<Space>());
        }
        let mut space = Space::uninit();
        // SAFETY: the space is large enough and aligned for `V`, as just checked, and no other code has access to it.
        unsafe { space.as_mut_ptr().cast::<V>().write(value) };
        let methods = if flag {
            &const { Methods { call: never::<R>, drop: drop_in_place::<V>, flag: Some(true) } }
        } else {
            &const { Methods { call: never::<R>, drop: drop_in_place::<V>, flag: Some(false) } }
        };
        ClosureOr::closure(Closure { space, methods })
    }

    /// Returns the value and its flag, or `None` if this is a closure or nothing.
    #[inline]
    pub(crate) fn as_value(&self) -> Option<(&V, bool)> {
        let flag = self.closure.methods.flag?;
        // SAFETY: with a flag, the space holds a `V`.
        Some((unsafe { &*self.closure.space.as_ptr().cast::<V>() }, flag))
    }

    /// Returns the value and its flag, or this if it is a closure.
    pub(crate) fn into_value(self) -> Result<(V, bool), Self> {
        let Some(flag) = self.closure.methods.flag else { return Err(self) };
        let this = ManuallyDrop::new(self);
        // SAFETY: with a flag, the space holds a `V`. It is not used again: `ManuallyDrop` keeps this from being dropped.
        Ok((unsafe { this.closure.space.as_ptr().cast::<V>().read() }, flag))
    }

    /// Calls the closure, or passes the value and its flag to `with_value`.
    #[inline]
    pub(crate) fn call_or(self, with_value: impl FnOnce(V, bool) -> R) -> R {
        ManuallyDrop::new(self).call_in_place_or(with_value)
    }

    /// As [`call_or`](Self::call_or), without moving this. What is left does nothing when it is dropped.
    ///
    /// # Panics
    /// If called twice.
    #[inline]
    pub(crate) fn call_in_place_or(&mut self, with_value: impl FnOnce(V, bool) -> R) -> R {
        let Closure { space, methods } = &mut self.closure;
        let methods = mem::replace(methods, &const { Methods::of_nothing() });
        match methods.flag {
            // SAFETY: the methods fit the space. It is not used again: the methods of nothing do not touch it.
            None => unsafe { (methods.call)(space) },
            // SAFETY: with a flag, the space holds a `V`. It is not used again, as above.
            Some(flag) => with_value(unsafe { space.as_ptr().cast::<V>().read() }, flag),
        }
    }
}

/// The `call` of a value, and of nothing.
///
/// # Safety
/// None: it does not touch the space.
unsafe fn never<R>(_: *mut Space) -> R {
    unreachable!("a value is taken out, not called, and a closure is called once")
}

/// The `drop` of nothing.
///
/// # Safety
/// None: it does not touch the space.
unsafe fn leave(_: *mut Space) {}

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

    use super::{Closure, ClosureOr, WORDS};

    /// Calls a closure as a job does.
    fn call<R>(closure: Closure<R>) -> R {
        let stored = ClosureOr::<R, Arc<()>>::closure(closure);
        stored.call_or(|_, _| unreachable!("not a value"))
    }

    /// Runs `check` with closures of sizes around the limit. Each holds a reference to `witness`.
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
        assert_eq!(WORDS, 3, "the sizes above lie around it");
    }

    #[test]
    fn a_call_returns_the_result_and_drops_the_captures() {
        of_each_size(|closure, result, _| assert_eq!(call(closure), result));
    }

    #[test]
    fn a_drop_without_a_call_drops_the_captures() {
        of_each_size(|closure, _, witness| {
            drop(closure);
            assert_eq!(Arc::strong_count(witness), 1);
        });
    }

    #[test]
    fn a_call_in_place_leaves_nothing() {
        of_each_size(|closure, result, witness| {
            let mut stored = ClosureOr::<_, Arc<()>>::closure(closure);
            assert_eq!(stored.call_in_place_or(|_, _| unreachable!("not a value")), result);
            assert_eq!(Arc::strong_count(witness), 1);
            assert!(stored.as_value().is_none());
            let again = AssertUnwindSafe(|| stored.call_in_place_or(|_, _| unreachable!()));
            catch_unwind(again).unwrap_err();
        });
    }

    #[test]
    fn a_value_is_taken_out_in_place() {
        let witness = Arc::new(7);
        let mut stored = ClosureOr::value(Arc::clone(&witness), true);
        assert_eq!(stored.call_in_place_or(|value, flag| (*value, flag)), (7, true));
        assert_eq!(Arc::strong_count(&witness), 1);
        assert!(stored.as_value().is_none());
    }

    #[test]
    fn a_closure_can_move_to_another_thread() {
        of_each_size(|closure, result, _| {
            let moved = Box::new(closure);
            let called = std::thread::spawn(move || call(*moved)).join();
            assert_eq!(called.unwrap(), result);
        });
    }

    #[test]
    fn a_panic_drops_the_captures() {
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        let closure = Closure::<()>::new(move || {
            let _held = held;
            panic!("on purpose");
        });
        catch_unwind(AssertUnwindSafe(|| call(closure))).unwrap_err();
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_stricter_alignment_is_kept() {
        #[repr(align(128))]
        struct Aligned(u8);

        let aligned = Aligned(7);
        let closure = Closure::new(move || {
            let aligned = &aligned;
            (std::ptr::from_ref(aligned).addr() % 128, aligned.0)
        });
        let moved = (0_u8, closure).1;
        assert_eq!(call(moved), (0, 7));
    }

    #[test]
    fn a_closure_without_captures_can_be_called() {
        assert_eq!(call(Closure::new(|| 7)), 7);
    }

    #[test]
    fn a_value_is_taken_out_with_its_flag_or_dropped() {
        for flag in [false, true] {
            let witness = Arc::new(7);
            let stored = ClosureOr::<(), _>::value(Arc::clone(&witness), flag);
            assert_eq!(stored.as_value(), Some((&witness, flag)));
            let Ok((value, found)) = stored.into_value() else { panic!("not a closure") };
            assert_eq!((Arc::as_ptr(&value), found), (Arc::as_ptr(&witness), flag));
            let stored = ClosureOr::value(value, flag);
            assert_eq!(stored.call_or(|value, flag| (*value, flag)), (7, flag));
            assert_eq!(Arc::strong_count(&witness), 1);
            drop(ClosureOr::<(), _>::value(Arc::clone(&witness), flag));
            assert_eq!(Arc::strong_count(&witness), 1);
        }
    }

    #[test]
    fn a_closure_is_no_value() {
        of_each_size(|closure, result, _| {
            let stored = ClosureOr::<_, Arc<()>>::closure(closure);
            assert!(stored.as_value().is_none());
            let Err(stored) = stored.into_value() else { panic!("not a value") };
            assert_eq!(stored.call_or(|_, _| unreachable!("not a value")), result);
        });
    }
}
