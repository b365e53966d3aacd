//! Closures of all sizes and alignments.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{in_time, pool};

#[test]
fn scoped_closures_may_be_of_any_size() {
    in_time(|| {
        let (pool, total) = (pool(2), AtomicUsize::new(0));
        let sum = &total;
        macro_rules! words {
            ($($words:literal)*) => {
                pool.scope(|scope| {$(
                    let numbers = [1_usize; $words];
                    scope.execute(move || {
                        sum.fetch_add(black_box(numbers).iter().sum(), Ordering::Relaxed);
                    });
                    assert_eq!(scope.evaluate(move || numbers).await_complete(), numbers);
                )*})
            };
        }
        words!(0 1 2 3 4 5 6 7 8 1000);
        assert_eq!(total.into_inner(), 1036);
    });
}

#[test]
fn scoped_closures_may_be_of_no_size() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    in_time(|| {
        pool(1).scope(|scope| {
            for _ in 0..10 {
                scope.execute(|| {
                    COUNT.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 10);
    });
}

/// So small that they lie in the job itself, but for that.
#[test]
fn scoped_closures_without_a_size_may_be_strictly_aligned() {
    #[repr(align(16))]
    struct Aligned;

    in_time(|| {
        let misplaced = pool(1).scope(|scope| {
            let aligned = Aligned;
            let place = move || std::ptr::from_ref(black_box(&aligned)).addr() % 16;
            scope.evaluate(place).await_complete()
        });
        assert_eq!(misplaced, 0);
        pool(1).scope(|scope| {
            let aligned = Aligned;
            scope.execute(move || {
                assert_eq!(std::ptr::from_ref(black_box(&aligned)).addr() % 16, 0);
            });
        });
    });
}

#[test]
fn scoped_closures_may_be_strictly_aligned() {
    #[repr(align(256))]
    struct Aligned(u8);

    in_time(|| {
        let mut places = [0; 3];
        pool(1).scope(|scope| {
            for (index, place) in places.iter_mut().enumerate() {
                let aligned = Aligned(7);
                scope.execute(move || {
                    let aligned = black_box(&aligned);
                    let misplaced = std::ptr::from_ref(aligned).addr() % 256;
                    *place = misplaced + usize::from(aligned.0) + index;
                });
            }
        });
        assert_eq!(places, [7, 8, 9]);
    });
}
