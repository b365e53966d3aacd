//! Runs the programs `server` and `tokio_app`: many clients on loopback, and a SIGTERM in the
//! middle of their requests.

#![cfg(unix)]

#[path = "../../tests/common/mod.rs"]
mod common;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::child::capture_stderr;
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};

const SERVER: &str = env!("CARGO_BIN_EXE_server");
const TOKIO_APP: &str = env!("CARGO_BIN_EXE_tokio_app");

/// How long a test waits for what must happen: longer than a server waits for its last requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Threads that send one request after another.
const CLIENTS: usize = 32;

/// Answers before the signal, of all clients together: each connection was used several times by
/// then.
const WARM: usize = 1_000;

/// The most requests that a client sends on one connection. New connections are a part of the load.
const MOST_REQUESTS: usize = 20;

/// The most bytes of a request's body: more than a socket passes at once.
const MOST_BYTES: usize = 100_000;

/// Connections of each of these kinds when the signal arrives: the server is in the middle of a
/// request, or has not read it, or has not accepted the connection; or the connection is idle.
const EACH: usize = 8;

/// The grace time of a server whose test needs one: far longer than what the test does meanwhile.
const GRACE: Duration = Duration::from_secs(5);

/// A server, which is killed if the test ends before it.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Server {
    fn start(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--address", "127.0.0.1:0"]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        capture_stderr(&mut child);
        let mut stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it is a pipe");
        let address = line.strip_prefix("listening on http://");
        let address = address.and_then(|address| address.strip_suffix("/\n")).expect("an address");
        let address = address.parse().expect("an address");
        Server { child, stdout, address }
    }

    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it exists");
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it was started here").is_none()
    }

    /// Waits for the end of the process, which must be a success.
    #[track_caller]
    fn ended(self) {
        assert_eq!(self.end(), (Some(0), "all requests are answered\n".to_owned()));
    }

    /// Waits for the end of the process. Returns its status, and what it has printed.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        while self.is_running() {
            assert!(start.elapsed() < PATIENCE, "the server has not ended within {PATIENCE:?}");
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().expect("it was started here");
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("it is a pipe");
        (status.code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client's end of a connection.
struct Connection(BufReader<TcpStream>);

/// What became of a request.
#[derive(Debug, PartialEq)]
enum Reply {
    /// A complete response.
    Answer { text: String, is_last: bool },
    /// The server closed the connection, and sent nothing.
    Closed,
}

impl Connection {
    fn new(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection(BufReader::new(stream)))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Sends a request. Fails if the server has closed the connection.
    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut request = head(body.len(), "").into_bytes();
        request.extend_from_slice(body);
        self.write(&request)
    }

    /// Sends a request, and checks the answer.
    #[track_caller]
    fn ask(&mut self, is_last: bool) {
        self.send(b"").expect("the server is connected");
        assert_eq!(self.reply(), Reply::Answer { text: sha256(b""), is_last });
    }

    /// Sends the head of a request, and returns when the server waits for the body.
    fn begin(&mut self, length: usize) {
        let head = head(length, "expect: 100-continue\r\n");
        self.write(head.as_bytes()).expect("the server is connected");
        assert_eq!(self.line(), "HTTP/1.1 100 Continue");
        assert_eq!(self.line(), "");
    }

    /// Reads a response. Panics if it is incomplete, or no response at all.
    fn reply(&mut self) -> Reply {
        match self.0.fill_buf() {
            Ok([]) => return Reply::Closed,
            // The server closed the connection before it read the whole request.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Reply::Closed,
            bytes => assert!(bytes.is_ok(), "no response: {bytes:?}"),
        }
        assert_eq!(self.line(), "HTTP/1.1 200 OK");
        let (mut length, mut is_last) = (None, false);
        loop {
            let line = self.line().to_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => {
                    length = Some(value.parse().expect("a number"));
                }
                Some(("connection", value)) => is_last = value == "close",
                Some(_) => {}
                None if line.is_empty() => break,
                None => panic!("{line:?} is no header"),
            }
        }
        let mut text = vec![0; length.expect("a length")];
        self.0.read_exact(&mut text).expect("a complete body");
        Reply::Answer { text: String::from_utf8(text).expect("text"), is_last }
    }

    /// Reads a line of a response's head.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a complete head");
        line.strip_suffix("\r\n").expect("a complete line").to_owned()
    }
}

fn head(length: usize, more: &str) -> String {
    format!("POST / HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {length}\r\n\r\n")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n"
}

/// What all clients share.
#[derive(Default)]
struct Load {
    answered: AtomicUsize,
    /// Set before the signal is sent. A request that was sent before it was set must be answered.
    is_stopping: AtomicBool,
    /// Set when the server has ended: another program may have its port by then.
    is_over: AtomicBool,
}

impl Load {
    /// Sends requests until the server accepts no more connections.
    fn run(&self, address: SocketAddr, client: usize) {
        let mut random = fastrand::Rng::with_seed(client as u64);
        while !self.is_over.load(Ordering::SeqCst) {
            match Connection::new(address) {
                Ok(connection) => self.use_up(connection, &mut random),
                Err(error) => {
                    assert!(self.is_stopping.load(Ordering::SeqCst), "no connection: {error}");
                    return;
                }
            }
        }
    }

    /// Sends some requests on a connection, or fewer if the server closes it.
    fn use_up(&self, mut connection: Connection, random: &mut fastrand::Rng) {
        for _ in 0..random.usize(1..=MOST_REQUESTS) {
            let length = random.usize(0..=MOST_BYTES) >> random.u32(0..10);
            let body: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
            let sent = connection.send(&body);
            // Read after the last byte was sent: if it is not set, the signal comes later.
            let may_be_closed = self.is_stopping.load(Ordering::SeqCst);
            if let Err(error) = sent {
                assert!(may_be_closed, "the server closed a connection that it served: {error}");
                return;
            }
            match connection.reply() {
                Reply::Answer { text, is_last } => {
                    assert_eq!(text, sha256(&body));
                    self.answered.fetch_add(1, Ordering::SeqCst);
                    if is_last {
                        assert!(self.is_stopping.load(Ordering::SeqCst), "closed too early");
                        assert_eq!(connection.reply(), Reply::Closed);
                        return;
                    }
                }
                Reply::Closed => {
                    assert!(may_be_closed, "a request was lost");
                    return;
                }
            }
        }
    }
}

/// Puts a server under load, ends it meanwhile, and looks for requests that are lost.
fn loses_nothing(program: &str) {
    let mut server = Server::start(program, &[]);
    let address = server.address;
    let connect = || Connection::new(address).expect("the server listens");
    let bodies: Vec<Vec<u8>> = (0..EACH).map(|held| vec![held as u8; MOST_BYTES]).collect();
    let mut held: Vec<_> = (0..EACH).map(|_| connect()).collect();
    held.iter_mut().for_each(|connection| connection.begin(MOST_BYTES));
    let mut used: Vec<_> = (0..2 * EACH).map(|_| connect()).collect();
    used.iter_mut().for_each(|connection| connection.ask(false));
    let mut idle = used.split_off(EACH);
    let mut unread = used;

    let load = Load::default();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let load = &load;
                scope.spawn(move || load.run(address, client))
            })
            .collect();
        let start = Instant::now();
        while load.answered.load(Ordering::SeqCst) < WARM
            && !clients.iter().any(|client| client.is_finished())
        {
            assert!(start.elapsed() < PATIENCE, "the server is too slow");
            thread::sleep(Duration::from_millis(1));
        }
        // The server finds all of this at the same time: requests, connections and the signal.
        server.signal(Signal::STOP);
        unread.extend((0..EACH).map(|_| connect()));
        unread.iter_mut().for_each(|connection| connection.send(b"unread").expect("a connection"));
        load.is_stopping.store(true, Ordering::SeqCst);
        server.terminate();
        server.signal(Signal::CONT);
        // Each client ends when it gets no connection.
        while clients.iter().any(|client| !client.is_finished()) {
            if !server.is_running() {
                load.is_over.store(true, Ordering::SeqCst);
            }
            thread::sleep(Duration::from_millis(1));
        }
    });

    for connection in &mut unread {
        let reply = connection.reply();
        assert!(matches!(reply, Reply::Answer { text, .. } if text == sha256(b"unread")));
    }
    // Now nothing new is accepted, and the server waits for these.
    idle.iter_mut().for_each(|connection| assert_eq!(connection.reply(), Reply::Closed));
    for (connection, body) in held.iter_mut().zip(&bodies) {
        assert!(server.is_running(), "it ended in the middle of a request");
        connection.write(body).expect("the server is connected");
        assert_eq!(connection.reply(), Reply::Answer { text: sha256(body), is_last: true });
        assert_eq!(connection.reply(), Reply::Closed);
    }
    server.ended();
}

/// Checks that connections which are idle at the signal, and new ones, still get answers in the
/// grace time.
fn answers_in_the_grace_time(program: &str) {
    let server = Server::start(program, &["--grace", &GRACE.as_millis().to_string()]);
    let connect = || Connection::new(server.address).expect("the server listens");
    let (mut first, mut second, mut third) = (connect(), connect(), connect());
    first.ask(false);
    second.ask(false);
    let start = Instant::now();
    server.terminate();
    // Until the server has seen the signal.
    loop {
        let mut connection = connect();
        connection.send(b"").expect("the server is connected");
        if matches!(connection.reply(), Reply::Answer { is_last: true, .. }) {
            break;
        }
    }
    first.ask(true);
    third.ask(true);
    assert_eq!(second.reply(), Reply::Closed);
    assert!(start.elapsed() >= GRACE, "an idle connection was closed too early");
    server.ended();
}

/// Checks that a client which never sends the rest of its request does not keep the server for
/// ever.
fn gives_up(program: &str) {
    let server = Server::start(program, &["--grace", "0", "--patience", "1"]);
    let mut connection = Connection::new(server.address).expect("the server listens");
    connection.begin(MOST_BYTES);
    server.terminate();
    assert_eq!(server.end(), (Some(1), String::new()));
}

#[test]
fn a_tokio_application_loses_nothing() {
    loses_nothing(TOKIO_APP);
}

#[test]
fn a_tokio_application_answers_in_the_grace_time() {
    answers_in_the_grace_time(TOKIO_APP);
}

#[test]
fn a_tokio_application_gives_up() {
    gives_up(TOKIO_APP);
}

#[test]
fn a_server_on_the_pool_loses_nothing() {
    loses_nothing(SERVER);
}

#[test]
fn a_server_on_the_pool_answers_in_the_grace_time() {
    answers_in_the_grace_time(SERVER);
}

#[test]
fn a_server_on_the_pool_gives_up() {
    gives_up(SERVER);
}

mod http2 {
    use std::future;
    use std::net::TcpStream;
    use std::pin::pin;

    use async_io::Async;
    use elastipool::ThreadPool;
    use futures::StreamExt;
    use futures::stream::FuturesUnordered;
    use hyper::body::{Body, Incoming};
    use hyper::client::conn::http2;
    use hyper::{Request, Response};
    use smol_hyper::rt::FuturesIo;

    use super::{SERVER, Server, sha256};

    /// Requests on one connection at the same time: as many as a client sends before it knows the
    /// server's limit.
    const REQUESTS: usize = 100;

    async fn text(response: Response<Incoming>) -> String {
        assert_eq!(response.status(), 200);
        let (mut body, mut text) = (pin!(response.into_body()), Vec::new());
        while let Some(frame) = future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let data = frame.expect("a complete body").into_data();
            text.extend_from_slice(&data.unwrap_or_default());
        }
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn a_server_of_http2_loses_nothing() {
        let server = Server::start(SERVER, &["--http2"]);
        let address = server.address;
        let pool = ThreadPool::default();
        let executor = pool.clone();
        let served = pool.spawn_await(async move {
            let stream = Async::<TcpStream>::connect(address).await.expect("the server listens");
            let (requests, connection) =
                http2::handshake(executor.clone(), FuturesIo::new(stream)).await.expect("HTTP/2");
            executor.spawn(async { connection.await.expect("the server ends it in order") });
            let respond = |number: usize| {
                let body = number.to_string().repeat(1_000);
                let digest = sha256(body.as_bytes());
                let request = Request::post(format!("http://{address}/")).body(body);
                let response = requests.clone().send_request(request.expect("a request"));
                async move { assert_eq!(text(response.await.expect("a response")).await, digest) }
            };
            let mut responses: FuturesUnordered<_> = (0..REQUESTS).map(respond).collect();
            responses.next().await.expect("a response");
            server.terminate();
            assert_eq!(responses.count().await, REQUESTS - 1);
            server
        });
        served.await_complete().ended();
        pool.shutdown_join();
    }
}
