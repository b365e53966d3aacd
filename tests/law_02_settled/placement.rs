//! A spawned future stays where it is.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crate::common::{LIMIT, settled};
use crate::{cancelled, panicked, pool};
use elastipool::ThreadPool;

/// Whatever its size and however it ends, it is not moved after its first poll.
#[test]
fn a_spawned_future_of_any_size_and_alignment_stays_where_it_is() {
    #[repr(align(16))]
    struct Loose;
    #[repr(align(4096))]
    struct Strict;

    type End = fn(usize) -> Poll<usize>;

    /// Is woken once, and ends at its second poll.
    struct Placed<A, const BYTES: usize> {
        _alignment: [A; 0],
        bytes: [u8; BYTES],
        place: Option<usize>,
        end: End,
        /// Counts the futures that were not moved.
        in_place: Arc<AtomicUsize>,
    }

    impl<A, const BYTES: usize> Placed<A, BYTES> {
        fn address(&self) -> usize {
            std::ptr::from_ref(self).addr()
        }
    }

    impl<A, const BYTES: usize> Future for Placed<A, BYTES>
    where
        A: Unpin,
    {
        type Output = usize;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
            if self.place.is_none() {
                assert_eq!(self.address() % align_of::<A>(), 0);
                self.place = Some(self.address());
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            (self.end)(self.bytes.iter().copied().map(usize::from).sum())
        }
    }

    impl<A, const BYTES: usize> Drop for Placed<A, BYTES> {
        fn drop(&mut self) {
            let is_in_place = self.place == Some(self.address());
            self.in_place.fetch_add(usize::from(is_in_place), Ordering::Relaxed);
        }
    }

    fn check<A: Send + Unpin + 'static, const BYTES: usize>(pool: &ThreadPool) {
        let in_place = Arc::new(AtomicUsize::new(0));
        let placed = |end| Placed::<A, BYTES> {
            _alignment: [],
            bytes: [1; BYTES],
            place: None,
            end,
            in_place: Arc::clone(&in_place),
        };
        assert_eq!(settled(pool.spawn_await(placed(Poll::Ready))).unwrap(), BYTES);
        let panics = pool.spawn_await(placed(|sum| panic_any(sum)));
        assert_eq!(panicked(panics).downcast_ref(), Some(&BYTES));
        cancelled(pool.spawn_await(placed(|_| Poll::Pending)));
        let ready = placed(Poll::Ready);
        pool.spawn(async move { assert_eq!(ready.await, BYTES) });
        let group = pool.group::<()>();
        let ready = placed(Poll::Ready);
        let task = async move {
            assert_eq!(ready.await, BYTES);
            Ok(())
        };
        group.spawn(task).unwrap();
        assert!(group.wait().is_ok());
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(in_place.load(Ordering::Relaxed), 5, "{BYTES} bytes");
    }

    let pool = pool(1);
    check::<Loose, 0>(&pool);
    check::<Strict, 0>(&pool);
    check::<Loose, 1_900>(&pool);
    check::<Loose, 2_100>(&pool);
    check::<Strict, 2_100>(&pool);
    check::<Loose, 10_000>(&pool);
    assert_eq!(pool.stats().panicked, 6, "the ones that were to panic");
}
