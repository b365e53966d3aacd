use std::fs;

use elastipool::{JoinError, ThreadPool};
use tokio::runtime::Builder;

async fn count_lines(pool: &ThreadPool, path: &'static str) -> Result<usize, JoinError> {
    let text = pool.evaluate(move || fs::read_to_string(path).unwrap()).await?;
    Ok(text.lines().count())
}

fn main() {
    let runtime = Builder::new_multi_thread().build().unwrap();
    let pool = ThreadPool::builder().core_size(0).max_size(8).build();
    let lines = runtime.block_on(count_lines(&pool, "Cargo.toml"));
    assert!(lines.unwrap() > 0);
    let error = runtime.block_on(count_lines(&pool, "no such file")).unwrap_err();
    assert!(error.is_panic());
    pool.shutdown_join();
}
