use std::sync::mpsc::channel;

use threadpool::ThreadPool;

fn main() {
    let pool = ThreadPool::with_name("square".into(), 4);
    let (sender, receiver) = channel();
    for i in 0..8 {
        let sender = sender.clone();
        pool.execute(move || sender.send(i * i).unwrap());
    }
    drop(sender);
    let sum: u32 = receiver.iter().sum();
    assert_eq!(sum, 140);
    pool.join();
    assert_eq!((pool.max_count(), pool.panic_count()), (4, 0));
}
