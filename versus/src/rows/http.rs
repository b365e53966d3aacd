//! Servers: hyper on the engines that run futures, each with the I/O that belongs to it; and hyper
//! on tokio, with requests that block, on the engines that run closures.

use std::convert::Infallible;
use std::future;
use std::io::{self, Error, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use async_io::Async;
use hyper::Response;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use smol_hyper::rt::FuturesIo;

use crate::Result;
use crate::engines::{Calls, Executor, Tokio};

/// Client threads. Few, since they share the CPUs with the server.
const CLIENTS: usize = 4;

/// Connections of each client.
const CONNECTIONS: usize = 16;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GREETING: &str = "Hello, World!";

/// More bytes than a response has.
const MAX_RESPONSE: usize = 512;

/// Without a response in this time, an engine has lost a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the closure of a request blocks, as for a database.
const BLOCKING: Duration = Duration::from_millis(1);

/// What the clients saw.
pub(crate) struct Served {
    pub(crate) nanos_per_request: f64,
    /// From the sending of each request to the end of its response, in microseconds.
    pub(crate) latencies: Vec<f64>,
}

/// A server that greets, on an engine without I/O of its own.
pub(crate) fn on_async_io<E: Executor>(executor: &'static E, requests: u64) -> Result<Served> {
    let (listener, address) = listen()?;
    let listener = Async::new(listener)?;
    executor.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            executor.spawn(answer(FuturesIo::new(stream), || future::ready(())));
        }
    });
    measure(address, requests)
}

/// A server that greets, on an engine whose threads have entered a runtime of tokio with I/O.
pub(crate) fn on_tokio_io<E: Executor>(executor: &'static E, requests: u64) -> Result<Served> {
    serve_on_tokio_io(executor, || future::ready(()), requests)
}

/// A server on tokio that gives a closure that blocks to `pool`, for each request, and awaits it.
pub(crate) fn blocking_on_tokio<C: Calls>(
    runtime: &'static Tokio,
    pool: &'static C,
    requests: u64,
) -> Result<Served> {
    serve_on_tokio_io(runtime, move || pool.call(|| thread::sleep(BLOCKING)), requests)
}

fn serve_on_tokio_io<E, W, F>(executor: &'static E, work: W, requests: u64) -> Result<Served>
where
    E: Executor,
    W: Fn() -> F + Copy + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, address) = listen()?;
    listener.set_nonblocking(true)?;
    executor.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime has I/O");
        while let Ok((stream, _)) = listener.accept().await {
            executor.spawn(answer(TokioIo::new(stream), work));
        }
    });
    measure(address, requests)
}

fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Answers every request of a connection, after some work.
async fn answer<S, W, F>(stream: S, work: W)
where
    S: Read + Write + Unpin,
    W: Fn() -> F,
    F: Future<Output = ()>,
{
    let service = service_fn(|_| {
        let work = work();
        async move {
            work.await;
            Ok::<_, Infallible>(Response::new(GREETING.to_owned()))
        }
    });
    // If a connection fails, its client reports it.
    let _ = http1::Builder::new().serve_connection(stream, service).await;
}

fn measure(server: SocketAddr, requests: u64) -> Result<Served> {
    let mut clients =
        (0..CLIENTS).map(|_| Client::connect(server)).collect::<io::Result<Vec<_>>>()?;
    run(&mut clients, requests / 10)?;
    run(&mut clients, requests)
}

/// At least that many requests, the same for each connection.
fn run(clients: &mut [Client], requests: u64) -> Result<Served> {
    let each = requests.div_ceil((CLIENTS * CONNECTIONS) as u64).max(1);
    let start = Instant::now();
    let latencies: Vec<Vec<f64>> = thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(move || client.run(each))).collect();
        let join =
            |thread: ScopedJoinHandle<'_, _>| thread.join().expect("a client does not panic");
        threads.into_iter().map(join).collect::<io::Result<_>>()
    })?;
    let (time, latencies) = (start.elapsed(), latencies.concat());
    Ok(Served { nanos_per_request: time.as_nanos() as f64 / latencies.len() as f64, latencies })
}

/// The connections of one client thread. They stay open from the warm-up to the end.
struct Client(Vec<TcpStream>);

impl Client {
    fn connect(server: SocketAddr) -> io::Result<Self> {
        let connect = |_| {
            let connection = TcpStream::connect(server)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            Ok(connection)
        };
        (0..CONNECTIONS).map(connect).collect::<io::Result<_>>().map(Client)
    }

    /// Each connection always has one request on its way. The client reads the responses in turn,
    /// and sends the next request after each. Returns how many microseconds each request took.
    fn run(&mut self, requests: u64) -> io::Result<Vec<f64>> {
        let mut latencies = Vec::with_capacity(requests as usize * CONNECTIONS);
        let mut sent = [Instant::now(); CONNECTIONS];
        for (connection, sent) in self.0.iter_mut().zip(&mut sent) {
            *sent = Instant::now();
            connection.write_all(REQUEST)?;
        }
        for left in (0..requests).rev() {
            for (connection, sent) in self.0.iter_mut().zip(&mut sent) {
                receive(connection)?;
                let now = Instant::now();
                latencies.push((now - *sent).as_secs_f64() * 1e6);
                if left > 0 {
                    *sent = now;
                    connection.write_all(REQUEST)?;
                }
            }
        }
        Ok(latencies)
    }
}

/// Reads one response, and checks it.
fn receive(connection: &mut TcpStream) -> io::Result<()> {
    let mut response = [0; MAX_RESPONSE];
    let mut length = 0;
    // Nothing can follow it: the next request has not been sent.
    while !response[..length].ends_with(GREETING.as_bytes()) {
        let read = connection.read(&mut response[length..]);
        length += match read {
            Ok(0) => Err(Error::new(ErrorKind::UnexpectedEof, "the server closed a connection")),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(Error::new(error.kind(), format!("no response: {error}"))),
        }?;
    }
    if !response.starts_with(b"HTTP/1.1 200 ") {
        return Err(Error::new(ErrorKind::InvalidData, "a response that is no greeting"));
    }
    Ok(())
}
