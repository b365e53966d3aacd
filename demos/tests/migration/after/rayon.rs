use std::sync::mpsc::channel;

use elastipool::ThreadPool;

fn main() {
    let pool = ThreadPool::builder()
        .core_size(4)
        .max_size(4)
        .thread_name(|index| format!("compute-{index}"))
        .panic_handler(|_| eprintln!("a task panicked"))
        .build();

    let (sender, receiver) = channel();
    pool.execute(move || sender.send(6 * 7).unwrap());
    assert_eq!(receiver.recv(), Ok(42));

    let mut numbers = [1, 2, 3, 4];
    let (left, right) = numbers.split_at_mut(2);
    pool.scope(|scope| {
        scope.execute(|| left.reverse());
        scope.execute(|| right.reverse());
    });
    assert_eq!(numbers, [2, 1, 4, 3]);
}
