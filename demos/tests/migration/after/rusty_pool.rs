use std::time::Duration;

use elastipool::{Builder, ThreadPool};

fn main() {
    let pool: ThreadPool = Builder::new()
        .name(String::from("worker"))
        .core_size(2)
        .max_size(8)
        .on_worker_start(|index| println!("worker {index} starts"))
        .build();
    let length = pool.evaluate(|| "hello".len());
    if let Err(rejected) = pool.try_execute(|| println!("a task")) {
        eprintln!("{rejected}");
        rejected.into_task()();
    }
    if !pool.join_timeout(Duration::from_secs(5)) {
        eprintln!("still busy");
    }
    println!("{} workers", pool.current_worker_count());
    assert_eq!(length.await_complete(), 5);
    pool.shutdown_join();
}
