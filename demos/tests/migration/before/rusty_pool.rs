use std::time::Duration;

use rusty_pool::{Builder, ThreadPool};

fn main() {
    let pool: ThreadPool = Builder::new()
        .name(String::from("worker"))
        .core_size(2)
        .max_size(8)
        .on_worker_start(|| println!("a worker starts"))
        .build();
    let length = pool.evaluate(|| "hello".len());
    if pool.try_execute(|| println!("a task")).is_err() {
        eprintln!("the pool is closed");
    }
    pool.join_timeout(Duration::from_secs(5));
    println!("{} workers", pool.get_current_worker_count());
    assert_eq!(length.await_complete(), 5);
    pool.shutdown_join();
}
