use futures::channel::oneshot;
use futures::executor::{ThreadPool, block_on};
use futures::task::SpawnExt;

fn main() {
    let pool = ThreadPool::builder().pool_size(2).name_prefix("io-").create().unwrap();
    let (sender, receiver) = oneshot::channel();
    pool.spawn_ok(async move { sender.send(20).unwrap() });
    let sum = async move { receiver.await.unwrap() + 22 };
    let answer = pool.spawn_with_handle(sum).unwrap();
    assert_eq!(block_on(answer), 42);
}
