use std::time::Duration;

use elastipool::ThreadPool;

fn main() {
    let pool = ThreadPool::new_named("square", 4, 4, Duration::MAX);
    let mut squares = Vec::new();
    for i in 0..8 {
        squares.push(pool.evaluate(move || i * i));
    }
    let sum: u32 = squares.into_iter().map(|square| square.await_complete()).sum();
    assert_eq!(sum, 140);
    pool.join();
    assert_eq!((pool.max_size(), pool.stats().panicked), (4, 0));
    pool.shutdown_join();
}
