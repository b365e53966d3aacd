use elastipool::ThreadPool;
use futures::channel::oneshot;

fn main() {
    let pool = ThreadPool::builder().core_size(2).max_size(2).name("io").build();
    let (sender, receiver) = oneshot::channel();
    pool.spawn(async move { sender.send(20).unwrap() });
    let sum = async move { receiver.await.unwrap() + 22 };
    let answer = pool.spawn_await(sum);
    assert_eq!(answer.await_complete(), 42);
}
