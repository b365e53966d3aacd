//! A tokio application that gives its blocking work to a pool, and awaits the handles.
//!
//! ```text
//! cargo run --release -p demos --bin tokio_app
//! curl --data-binary @Cargo.toml http://127.0.0.1:8080/      # the SHA-256 of the file
//! ```
//!
//! It shows
//! - `pool.evaluate(..).await` in place of `tokio::task::spawn_blocking(..).await`: the handle is a
//!   plain future,
//! - what the pool has in addition: a size of its own for this kind of work, threads that end when
//!   they are idle,
//! - an orderly end: after SIGTERM or SIGINT each request that was sent gets its answer. Then the
//!   runtime ends, and then the pool is joined.
//!
//! `docs/servers.md` in the repository describes the shutdown step by step.

use std::error::Error;
use std::future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use elastipool::ThreadPool;
use futures::future::select;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// Answers each request with the SHA-256 of its body, until it gets SIGTERM or SIGINT.
#[derive(Parser)]
#[command(name = "tokio_app", version)]
struct Args {
    /// Where it listens; port 0 is any free one
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: SocketAddr,
    /// Closures that run at the same time
    #[arg(long, default_value_t = 64)]
    workers: usize,
    /// Milliseconds for which it goes on after the signal: requests that clients send before they
    /// can know of it arrive in this time
    #[arg(long, default_value_t = 250)]
    grace: u64,
    /// Seconds that requests may take after that: a client may never send the rest of one
    #[arg(long, default_value_t = 30)]
    patience: u64,
}

/// The pause after a failed `accept`: there may be no file descriptor left until a connection ends.
const RETRY: Duration = Duration::from_millis(10);

/// The largest body in bytes. It is kept in memory.
const MAX_BODY: usize = 16 << 20;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let pool = ThreadPool::builder().name("blocking").core_size(1).max_size(args.workers);
    let pool = pool.try_build()?;
    let runtime = Runtime::new()?;
    let is_answered = runtime.block_on(serve(&args, pool.clone()))?;
    // Its tasks have handles of the pool, so it goes first. Both calls block: neither belongs in a
    // task.
    let patience = Duration::from_secs(args.patience);
    runtime.shutdown_timeout(patience);
    if !is_answered || !pool.shutdown_join_timeout(patience) {
        eprintln!("some requests have not ended within {patience:?}");
        return Ok(ExitCode::FAILURE);
    }
    println!("all requests are answered");
    Ok(ExitCode::SUCCESS)
}

/// Serves until a signal arrives. Returns whether all connections have ended in time.
async fn serve(args: &Args, pool: ThreadPool) -> io::Result<bool> {
    let stop = stop_signal()?;
    let listener = TcpListener::bind(args.address).await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let connections = GracefulShutdown::new();
    let app = App { pool, is_stopping: Arc::default() };
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => app.clone().serve(stream, &connections),
                Err(error) => {
                    eprintln!("no connection: {error}");
                    sleep(RETRY).await;
                }
            }
        }
    };
    let grace = async {
        stop.await;
        app.is_stopping.store(true, Ordering::Relaxed);
        sleep(Duration::from_millis(args.grace)).await;
    };
    select(pin!(accept), pin!(grace)).await;
    drop(listener);
    let patience = Duration::from_secs(args.patience);
    Ok(timeout(patience, connections.shutdown()).await.is_ok())
}

/// Returns a future that resolves at the first SIGTERM or SIGINT.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        select(pin!(terminate.recv()), pin!(interrupt.recv())).await;
    })
}

/// Returns a future that resolves at Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("no signals: {error}");
        }
    })
}

/// What each connection needs.
#[derive(Clone)]
struct App {
    pool: ThreadPool,
    /// Set by the signal: clients are told to send no more requests.
    is_stopping: Arc<AtomicBool>,
}

impl App {
    /// Serves a connection in a task of the runtime.
    fn serve(self, stream: TcpStream, connections: &GracefulShutdown) {
        let service = service_fn(move |request| self.clone().answer(request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async {
            // Such as a client that vanished.
            if let Err(error) = connection.await {
                eprintln!("a connection failed: {error}");
            }
        });
    }

    /// Reads the body, and lets a closure hash it. Meanwhile no thread of the runtime waits.
    async fn answer(self, request: Request<Incoming>) -> hyper::Result<Response<String>> {
        let (status, text) = match read(request.into_body()).await? {
            None => (StatusCode::PAYLOAD_TOO_LARGE, format!("the limit is {MAX_BODY} bytes\n")),
            Some(body) => match self.pool.evaluate(move || sha256(&body)).await {
                Ok(digest) => (StatusCode::OK, digest + "\n"),
                // It panicked. The text of a panic is for the log, not for the client.
                Err(error) => {
                    eprintln!("a request failed: {error}");
                    (StatusCode::INTERNAL_SERVER_ERROR, "internal error\n".to_owned())
                }
            },
        };
        let mut response = Response::new(text);
        *response.status_mut() = status;
        if self.is_stopping.load(Ordering::Relaxed) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}

/// Returns the whole body, or `None` if it is too large. Reads that one to its end too: many
/// clients look at the response only then.
async fn read(mut body: Incoming) -> hyper::Result<Option<Vec<u8>>> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(frame) = future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let Ok(data) = frame?.into_data() else { continue };
        length += data.len();
        if length <= MAX_BODY {
            bytes.extend_from_slice(&data);
        }
    }
    Ok((length <= MAX_BODY).then_some(bytes))
}

/// Stands for whatever blocks: a file, a database, a computation.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
