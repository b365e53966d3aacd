//! A server that greets: hyper on the engines that run futures, each with the I/O that belongs to it.

use std::convert::Infallible;
use std::io::{self, Error, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use async_io::Async;
use hyper::Response;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use smol_hyper::rt::FuturesIo;

use crate::Result;
use crate::engines::{Executor, Tokio};

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

/// Nanoseconds per request, of an engine without I/O of its own.
pub(crate) fn on_async_io<E: Executor>(executor: &'static E, requests: u64) -> Result<f64> {
    let (listener, address) = listen()?;
    let listener = Async::new(listener)?;
    executor.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            executor.spawn(greet(FuturesIo::new(stream)));
        }
    });
    measure(address, requests)
}

/// Nanoseconds per request, with tokio's own I/O.
pub(crate) fn on_tokio(runtime: &'static Tokio, requests: u64) -> Result<f64> {
    let (listener, address) = listen()?;
    listener.set_nonblocking(true)?;
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime has I/O");
        while let Ok((stream, _)) = listener.accept().await {
            runtime.spawn(greet(TokioIo::new(stream)));
        }
    });
    measure(address, requests)
}

fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Answers every request of a connection.
async fn greet<S: Read + Write + Unpin>(stream: S) {
    let service = service_fn(|_| async { Ok::<_, Infallible>(Response::new(GREETING.to_owned())) });
    // If a connection fails, its client reports it.
    let _ = http1::Builder::new().serve_connection(stream, service).await;
}

fn measure(server: SocketAddr, requests: u64) -> Result<f64> {
    let mut clients =
        (0..CLIENTS).map(|_| Client::connect(server)).collect::<io::Result<Vec<_>>>()?;
    run(&mut clients, requests / 10)?;
    let (time, requests) = run(&mut clients, requests)?;
    Ok(time.as_nanos() as f64 / requests as f64)
}

/// The time, and the number of requests: at least that many, the same for each connection.
fn run(clients: &mut [Client], requests: u64) -> Result<(Duration, u64)> {
    let connections = (CLIENTS * CONNECTIONS) as u64;
    let each = requests.div_ceil(connections).max(1);
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(move || client.run(each))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })?;
    Ok((start.elapsed(), each * connections))
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

    /// Each connection always has one request on its way. The client reads the responses in turn, and sends the next
    /// request after each.
    fn run(&mut self, requests: u64) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|connection| connection.write_all(REQUEST))?;
        for left in (0..requests).rev() {
            for connection in &mut self.0 {
                receive(connection)?;
                if left > 0 {
                    connection.write_all(REQUEST)?;
                }
            }
        }
        Ok(())
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
