//! A hyper server on one pool: it runs the accept loop, the connections and the work of the
//! requests. No other runtime.
//!
//! ```text
//! cargo run --release -p demos --bin server
//! curl --data-binary @Cargo.toml http://127.0.0.1:8080/      # the SHA-256 of the file
//! ```
//!
//! It shows
//! - futures and closures on the same workers: connections are futures, and a request awaits the
//!   handle of a closure,
//! - I/O by a reactor crate: a thread of async-io waits for sockets and wakes the futures,
//! - `hyper::rt::Executor`: with `--http2`, hyper spawns a future for each request on the pool,
//! - an orderly end: after SIGTERM or SIGINT each request that was sent gets its answer, and all
//!   threads are joined.
//!
//! `docs/servers.md` in the repository describes the shutdown step by step.

use std::error::Error;
use std::future::{self, Future};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use async_io::{Async, Timer};
use clap::Parser;
use elastipool::ThreadPool;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Either, Shared, select};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use smol_hyper::rt::FuturesIo;

/// Answers each request with the SHA-256 of its body, until it gets SIGTERM or SIGINT.
#[derive(Parser)]
#[command(name = "server", version)]
struct Args {
    /// Where it listens; port 0 is any free one
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: SocketAddr,
    /// Speaks HTTP/2 (without TLS) instead of HTTP/1
    #[arg(long)]
    http2: bool,
    /// Milliseconds for which it goes on after the signal: requests that clients send before they
    /// can know of it arrive in this time
    #[arg(long, default_value_t = 250)]
    grace: u64,
    /// Seconds that requests may take after that: a client may never send the rest of one
    #[arg(long, default_value_t = 30)]
    patience: u64,
}

/// How often the main thread looks whether a signal has arrived.
const TICK: Duration = Duration::from_millis(50);

/// The pause after a failed `accept`: there may be no file descriptor left until a connection ends.
const RETRY: Duration = Duration::from_millis(10);

/// The largest body in bytes. It is kept in memory.
const MAX_BODY: usize = 16 << 20;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let is_stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register(signal, Arc::clone(&is_stopping))?;
    }
    let pool = ThreadPool::builder().name("server").build();
    let listener = Async::<TcpListener>::bind(args.address)?;
    println!("listening on http://{}/", listener.get_ref().local_addr()?);

    let (end, ended) = oneshot::channel();
    let server = Server {
        pool: pool.clone(),
        is_http2: args.http2,
        is_stopping: Arc::clone(&is_stopping),
        ended: ended.shared(),
    };
    pool.spawn(server.accept(listener));

    while !is_stopping.load(Ordering::Relaxed) {
        thread::sleep(TICK);
    }
    thread::sleep(Duration::from_millis(args.grace));
    drop(end);
    // The accept loop and the connections have handles of the pool, so it stays open for their
    // requests until all have ended. Then no handle is left, and the threads exit.
    let patience = Duration::from_secs(args.patience);
    if !pool.shutdown_join_timeout(patience) {
        eprintln!("some requests have not ended within {patience:?}");
        return Ok(ExitCode::FAILURE);
    }
    println!("all requests are answered");
    Ok(ExitCode::SUCCESS)
}

/// What the accept loop and each connection need.
#[derive(Clone)]
struct Server {
    pool: ThreadPool,
    is_http2: bool,
    /// Set by the signal: clients are told to send no more requests.
    is_stopping: Arc<AtomicBool>,
    /// Resolves when nothing new is accepted any more.
    ended: Shared<oneshot::Receiver<()>>,
}

impl Server {
    /// The accept loop: a future for each connection.
    async fn accept(self, listener: Async<TcpListener>) {
        let accept = async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => self.pool.spawn(self.clone().serve(stream)),
                    Err(error) => {
                        eprintln!("no connection: {error}");
                        Timer::after(RETRY).await;
                    }
                }
            }
        };
        select(pin!(accept), self.ended.clone()).await;
    }

    /// Serves a connection until its client closes it, or the server ends.
    async fn serve(self, stream: Async<TcpStream>) {
        let (pool, is_http2, ended) = (self.pool.clone(), self.is_http2, self.ended.clone());
        let service = service_fn(move |request| self.clone().answer(request));
        let io = FuturesIo::new(stream);
        let result = if is_http2 {
            // The pool is hyper's executor: it polls the requests of one connection at the same
            // time.
            let connection = http2::Builder::new(pool).serve_connection(io, service);
            run(connection, |connection| connection.graceful_shutdown(), ended).await
        } else {
            let connection = http1::Builder::new().serve_connection(io, service);
            run(connection, |connection| connection.graceful_shutdown(), ended).await
        };
        // Such as a client that vanished.
        if let Err(error) = result {
            eprintln!("a connection failed: {error}");
        }
    }

    /// Reads the body, and lets a closure hash it. Meanwhile no worker waits.
    async fn answer(self, request: Request<Incoming>) -> hyper::Result<Response<String>> {
        let version = request.version();
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
        // HTTP/2 has a message of its own for this, which `graceful_shutdown` sends.
        if version < Version::HTTP_2 && self.is_stopping.load(Ordering::Relaxed) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}

/// Runs a connection to its end. Once the server ends, the connection finishes its requests and
/// closes.
async fn run<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    graceful_shutdown: fn(Pin<&mut C>),
    ended: Shared<oneshot::Receiver<()>>,
) -> hyper::Result<()> {
    let mut connection = pin!(connection);
    match select(connection.as_mut(), ended).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => {
            graceful_shutdown(connection.as_mut());
            connection.await
        }
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

/// Stands for whatever takes long or blocks: a computation, a file, a database.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
