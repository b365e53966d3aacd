//! A type-erased closure, stored in place if it is small.
//!
//! `Box<dyn FnOnce>` would cost an allocation for each task. Here a closure of up to [`WORDS`]
//! words lies in the job itself; a larger one lies in a box, and the box in the job. This is the
//! small-buffer optimisation of C++'s `std::function`.
#![allow(unsafe_code, reason = "saves an allocation for each task; see the SAFETY comments")]

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ptr;

use crate::sync::unwind::{Payload, contain};

/// Bounds the size of a closure that is stored in place, in words. A handler's call takes one word
/// for the function, which leaves two for the argument.
const WORDS: usize = 3;

type Space = MaybeUninit<[usize; WORDS]>;

/// See the [module's documentation](self).
///
/// # Invariant
/// `space` holds what `methods` are for: a closure that is `Send`, the value of a [`ClosureOr`], or
/// nothing.
pub(crate) struct Closure<R: 'static> {
    space: Space,
    methods: &'static Methods<R>,
}

/// The operations of what a space holds. They depend on its type.
struct Methods<R> {
    kind: Content<R>,
    /// # Safety
    /// The argument points to a value of that type, which is not used again.
    drop: unsafe fn(*mut Space),
}

/// What a space holds, and how a closure is called.
///
/// # Safety
/// As for [`Methods::drop`].
enum Content<R> {
    /// A closure that returns a result. Its caller knows that it does not panic, or contains that.
    Closure(unsafe fn(*mut Space) -> R),
    /// A closure that may panic: the caller contains that.
    Contained(unsafe fn(*mut Space)),
    /// The value of a [`ClosureOr`] with its flag.
    Value(bool),
    /// Nothing: a closure was called, or a value taken out.
    Nothing,
}

impl<R> Methods<R> {
    const fn of_closure<F: FnOnce() -> R>() -> Self {
        Methods { kind: Content::Closure(call::<F, R>), drop: drop_in_place::<F> }
    }

    const fn of_contained<F: FnOnce()>() -> Self {
        Methods { kind: Content::Contained(call::<F, ()>), drop: drop_in_place::<F> }
    }

    const fn of_value<V>(flag: bool) -> Self {
        Methods { kind: Content::Value(flag), drop: drop_in_place::<V> }
    }

    const fn of_nothing() -> Self {
        Methods { kind: Content::Nothing, drop: leave }
    }
}

/// Stores a closure, in a box if it is large. A macro: an unoptimised build copies the closure in
/// each function that it passes through.
macro_rules! stored {
    ($closure:ident as $type:ty, $methods:ident) => {
        if const { fits::<$type>() } {
            Closure { space: store($closure), methods: &const { Methods::$methods::<$type>() } }
        } else {
            let methods = &const { Methods::$methods::<Box<$type>>() };
            Closure { space: store(Box::new($closure)), methods }
        }
    };
}

impl<R: 'static> Closure<R> {
    /// Stores a closure.
    pub(crate) fn new<F: FnOnce() -> R + Send + 'static>(closure: F) -> Self {
        stored!(closure as F, of_closure)
    }

    /// Stores a closure that borrows.
    ///
    /// # Safety
    /// The result is called or dropped before any borrow of `closure` ends.
    pub(crate) unsafe fn new_borrowing<F: FnOnce() -> R + Send>(closure: F) -> Self {
        stored!(closure as F, of_closure)
    }

    /// Stores a closure that may panic. What contains the panic is compiled once, not for each type
    /// of closure.
    pub(super) fn contained<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        stored!(closure as F, of_contained)
    }

    /// Calls the closure. This is not moved, and what is left does nothing when it is dropped.
    ///
    /// # Panics
    /// If called twice.
    pub(crate) fn call_in_place(&mut self) -> R {
        let methods = mem::replace(&mut self.methods, &const { Methods::of_nothing() });
        let Content::Closure(call) = methods.kind else { unreachable!("it is called once") };
        // SAFETY: this is the call of the closure in the space, which is not used again: there is
        // nothing in it now.
        unsafe { call(&mut self.space) }
    }
}

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<Space>() && align_of::<T>() <= align_of::<Space>()
}

/// Stores a value. The caller reads it as one of the same type.
#[inline]
fn store<T>(value: T) -> Space {
    // Not a constant: the compiler evaluates those of a branch that is never taken, too.
    assert!(fits::<T>());
    let mut space = Space::uninit();
    // SAFETY: the space is large enough and aligned for `T`, as just checked, and no other code has
    // access to it.
    unsafe { space.as_mut_ptr().cast::<T>().write(value) };
    space
}

impl<R: 'static> Drop for Closure<R> {
    fn drop(&mut self) {
        // SAFETY: the methods fit the space, which is not used again.
        unsafe { (self.methods.drop)(&raw mut self.space) }
    }
}

/// A closure, or a value of type `V` with a flag, in the space of a closure.
///
/// An enum of the two would have an `Option` of one word more. The copies between them would then
/// read words across the words that were just written: the CPU waits some 12 cycles for such a
/// read.
///
/// # Invariant
/// If the methods are of a value, that is a `V`.
pub(super) struct ClosureOr<R: 'static, V> {
    closure: Closure<R>,
    _value: PhantomData<V>,
}

impl<R: 'static, V: Send + 'static> ClosureOr<R, V> {
    #[inline]
    pub(super) fn closure(closure: Closure<R>) -> Self {
        ClosureOr { closure, _value: PhantomData }
    }

    #[inline]
    pub(super) fn value(value: V, flag: bool) -> Self {
        const { assert!(fits::<V>()) };
        let methods = if flag {
            &const { Methods::of_value::<V>(true) }
        } else {
            &const { Methods::of_value::<V>(false) }
        };
        ClosureOr::closure(Closure { space: store(value), methods })
    }

    /// Returns the value and its flag, or `None` if this is a closure or nothing.
    #[inline]
    pub(super) fn as_value(&self) -> Option<(&V, bool)> {
        let Content::Value(flag) = self.closure.methods.kind else { return None };
        // SAFETY: the space holds a `V`.
        Some((unsafe { &*self.closure.space.as_ptr().cast::<V>() }, flag))
    }

    /// Returns the value and its flag, or this if it is a closure.
    pub(super) fn into_value(self) -> Result<(V, bool), Self> {
        let Content::Value(flag) = self.closure.methods.kind else { return Err(self) };
        let this = ManuallyDrop::new(self);
        // SAFETY: the space holds a `V`. It is not used again: `ManuallyDrop` keeps this from being
        // dropped.
        Ok((unsafe { this.closure.space.as_ptr().cast::<V>().read() }, flag))
    }

    /// Calls the closure, or passes the value and its flag to `with_value`. `contained` makes the
    /// result of a [contained](Closure::contained) closure. This is not moved, and what is left
    /// does nothing when it is dropped.
    ///
    /// # Panics
    /// If called twice.
    #[inline]
    pub(super) fn call_in_place_or(
        &mut self,
        contained: impl FnOnce(Result<(), Payload>) -> R,
        with_value: impl FnOnce(V, bool) -> R,
    ) -> R {
        let Closure { space, methods } = &mut self.closure;
        let methods = mem::replace(methods, &const { Methods::of_nothing() });
        match methods.kind {
            // SAFETY: this is the call of the closure in the space, which is not used again: there
            // is nothing in it now.
            Content::Closure(call) => unsafe { call(space) },
            // SAFETY: as above.
            Content::Contained(call) => contained(contain(|| unsafe { call(space) })),
            // SAFETY: the space holds a `V`, which is not used again, as above.
            Content::Value(flag) => with_value(unsafe { space.as_ptr().cast::<V>().read() }, flag),
            Content::Nothing => {
                unreachable!("a closure is called once, and a value taken out once")
            }
        }
    }
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
    use crate::sync::unwind::Payload;

    fn none_contained<R>(_: Result<(), Payload>) -> R {
        unreachable!("the closure is not a contained one")
    }

    fn no_value<R>(_: Arc<()>, _: bool) -> R {
        unreachable!("not a value")
    }

    /// Calls a closure that returns a result, as a job does.
    fn call<R: 'static>(closure: Closure<R>) -> R {
        ClosureOr::closure(closure).call_in_place_or(none_contained, no_value)
    }

    /// Calls a contained closure, as a job does. Returns whether it has panicked.
    fn panics(closure: Closure<bool>) -> bool {
        ClosureOr::closure(closure).call_in_place_or(|result| result.is_err(), no_value)
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
            assert_eq!(stored.call_in_place_or(none_contained, no_value), result);
            assert_eq!(Arc::strong_count(witness), 1);
            assert!(stored.as_value().is_none());
            let again = AssertUnwindSafe(|| stored.call_in_place_or(none_contained, no_value));
            catch_unwind(again).unwrap_err();
        });
    }

    #[test]
    fn a_value_is_taken_out_in_place() {
        let witness = Arc::new(7);
        let mut stored = ClosureOr::value(Arc::clone(&witness), true);
        let taken = stored.call_in_place_or(none_contained, |value, flag| (*value, flag));
        assert_eq!(taken, (7, true));
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
    fn a_contained_closure_drops_its_captures_at_its_end_its_panic_or_its_drop() {
        let witness = Arc::new(());
        macro_rules! sizes {
            ($($words:literal)*) => {$({
                let closure = |fails: bool| {
                    let (held, payload) = (Arc::clone(&witness), [7_usize; $words]);
                    Closure::contained(move || {
                        let _held = &held;
                        assert_eq!(payload.iter().sum::<usize>(), 7 * $words);
                        assert!(!fails, "on purpose");
                    })
                };
                for fails in [false, true] {
                    assert_eq!(panics(closure(fails)), fails, "{} words", $words);
                }
                drop(closure(false));
                assert_eq!(Arc::strong_count(&witness), 1, "{} words", $words);
            })*};
        }
        sizes!(0 1 2 3 100);
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
            let mut stored = ClosureOr::value(value, flag);
            let taken = stored.call_in_place_or(none_contained, |value, flag| (*value, flag));
            assert_eq!(taken, (7, flag));
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
            let Err(mut stored) = stored.into_value() else { panic!("not a value") };
            assert_eq!(stored.call_in_place_or(none_contained, no_value), result);
        });
    }
}
