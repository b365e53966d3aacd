use std::sync::mpsc::channel;

use rayon::ThreadPoolBuilder;

fn main() {
    let pool = ThreadPoolBuilder::new()
        .num_threads(4)
        .thread_name(|index| format!("compute-{index}"))
        .panic_handler(|_| eprintln!("a task panicked"))
        .build()
        .unwrap();

    let (sender, receiver) = channel();
    pool.spawn(move || sender.send(6 * 7).unwrap());
    assert_eq!(receiver.recv(), Ok(42));

    let mut numbers = [1, 2, 3, 4];
    let (left, right) = numbers.split_at_mut(2);
    pool.scope(|scope| {
        scope.spawn(|_| left.reverse());
        scope.spawn(|_| right.reverse());
    });
    assert_eq!(numbers, [2, 1, 4, 3]);
}
