use std::fs;

use tokio::runtime::Builder;
use tokio::task::{JoinError, spawn_blocking};

async fn count_lines(path: &'static str) -> Result<usize, JoinError> {
    let text = spawn_blocking(move || fs::read_to_string(path).unwrap()).await?;
    Ok(text.lines().count())
}

fn main() {
    let runtime = Builder::new_multi_thread().max_blocking_threads(8).build().unwrap();
    let lines = runtime.block_on(count_lines("Cargo.toml"));
    assert!(lines.unwrap() > 0);
    let error = runtime.block_on(count_lines("no such file")).unwrap_err();
    assert!(error.is_panic());
}
