//! The feature `hyper`: HTTP/2 and HTTP/1 on loopback, served and requested by futures on a pool.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::convert::Infallible;
use std::future::{self, Future};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use async_io::Async;
use common::{HOUR, LIMIT, block, settled, value, wait_until};
use elastipool::{ThreadPool, WeakThreadPool, worker_index};
use futures::FutureExt;
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use smol_hyper::rt::FuturesIo;

/// Requests of a test, all of them open at the same time.
const REQUESTS: usize = 50;

/// Clients' requests that a server has answered on a worker.
type Answered = Arc<AtomicUsize>;

fn listen() -> (Async<TcpListener>, SocketAddr) {
    let listener = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.get_ref().local_addr().expect("it is bound");
    (listener, address)
}

/// Answers with the path of the request.
async fn echo(
    request: Request<Incoming>,
    answered: Answered,
) -> Result<Response<String>, Infallible> {
    assert!(worker_index().is_some(), "the request is polled by a worker");
    answered.fetch_add(1, Ordering::Relaxed);
    Ok(Response::new(request.uri().path().to_owned()))
}

/// Serves one connection of HTTP/2, until the client closes it.
async fn serve_http2(
    listener: Async<TcpListener>,
    pool: WeakThreadPool,
    answered: Answered,
) -> hyper::Result<()> {
    let (stream, _) = listener.accept().await.expect("a connection");
    let service = service_fn(move |request| echo(request, Arc::clone(&answered)));
    server::conn::http2::Builder::new(pool).serve_connection(FuturesIo::new(stream), service).await
}

async fn connect(address: SocketAddr) -> FuturesIo<Async<TcpStream>> {
    FuturesIo::new(Async::<TcpStream>::connect(address).await.expect("the server listens"))
}

fn request(address: SocketAddr, path: usize) -> Request<String> {
    Request::get(format!("http://{address}/{path}")).body(String::new()).expect("a request")
}

/// Reads a body of one chunk.
async fn text(response: Response<Incoming>) -> String {
    assert_eq!(response.status(), 200);
    let mut body = pin!(response.into_body());
    let frame = future::poll_fn(|context| body.as_mut().poll_frame(context)).await;
    let data = frame.expect("a frame").expect("the connection lasts").into_data().expect("data");
    String::from_utf8(data.to_vec()).expect("a path")
}

#[test]
fn http2_requests_are_served_by_the_workers() {
    let pool = ThreadPool::new(2, 4, HOUR);
    let answered = Answered::default();
    let (listener, address) = listen();
    let served = pool.spawn_await(serve_http2(listener, pool.downgrade(), Arc::clone(&answered)));

    let executor = pool.clone();
    let received = pool.spawn_await(async move {
        let (requests, connection) =
            client::conn::http2::handshake(executor.clone(), connect(address).await).await.unwrap();
        executor.spawn(async move { connection.await.unwrap() });
        let responses = (0..REQUESTS).map(|path| {
            let response = requests.clone().send_request(request(address, path));
            async move { text(response.await.expect("a response")).await }
        });
        futures::future::join_all(responses).await
    });
    let paths: Vec<String> = (0..REQUESTS).map(|path| format!("/{path}")).collect();
    assert_eq!(value(received), paths);
    assert_eq!(answered.load(Ordering::Relaxed), REQUESTS);
    // The client has ended its connection.
    value(served).expect("no error");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn http1_requests_are_served_by_the_workers() {
    let pool = ThreadPool::new(2, 4, HOUR);
    let answered = Answered::default();
    let (listener, address) = listen();
    let (executor, counted) = (pool.clone(), Arc::clone(&answered));
    let accepted = pool.spawn_await(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = service_fn(move |request| echo(request, Arc::clone(&counted)));
        let connection =
            server::conn::http1::Builder::new().serve_connection(FuturesIo::new(stream), service);
        // As generic code spawns it: with a result that is not looked at.
        Executor::execute(&executor, connection);
    });
    let executor = pool.clone();
    let received = pool.spawn_await(async move {
        let (mut requests, connection) =
            client::conn::http1::handshake(connect(address).await).await.unwrap();
        Executor::execute(&executor, connection);
        let mut paths = Vec::new();
        for path in 0..REQUESTS {
            requests.ready().await.expect("the connection lasts");
            paths.push(text(requests.send_request(request(address, path)).await.unwrap()).await);
        }
        paths
    });
    let paths: Vec<String> = (0..REQUESTS).map(|path| format!("/{path}")).collect();
    assert_eq!(value(received), paths);
    assert_eq!(answered.load(Ordering::Relaxed), REQUESTS);
    value(accepted);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn requests_of_a_view_belong_to_the_view() {
    let pool = ThreadPool::new(2, 4, HOUR);
    let view = pool.view().name("requests").limit(1).build();
    Executor::execute(&(*view).clone(), async {});
    Executor::execute(&view.downgrade(), async {});
    view.join();
    assert_eq!((view.stats().completed, pool.stats().completed), (2, 2));
}

#[test]
fn a_future_waits_for_capacity() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
    let gate = block(&pool);
    let other = pool.clone();
    let submitter = std::thread::spawn(move || {
        (0..REQUESTS).for_each(|_| Executor::execute(&other, async {}));
    });
    wait_until("one future is queued", || pool.queued_count() == 1);
    gate.open();
    common::joined(submitter);
    pool.join();
    assert_eq!(pool.stats().completed, 1 + REQUESTS);
}

/// Counts its drop.
struct Counted(Arc<AtomicUsize>);

impl Future for Counted {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
        panic!("it is not run");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_closed_pool_drops_the_future() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let weak = pool.downgrade();
    let drops = Arc::new(AtomicUsize::new(0));
    pool.close();
    Executor::execute(&pool, Counted(Arc::clone(&drops)));
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    Executor::execute(&weak, Counted(Arc::clone(&drops)));
    assert_eq!(drops.load(Ordering::Relaxed), 2);
    drop(pool);
    assert_eq!(weak.upgrade(), None);
    Executor::execute(&weak, Counted(Arc::clone(&drops)));
    assert_eq!(drops.load(Ordering::Relaxed), 3);
}

#[test]
fn a_closed_pool_resets_requests_on_connections_that_exist() {
    let clients = ThreadPool::new(2, 4, HOUR);
    let servers = ThreadPool::new(2, 4, HOUR);
    let answered = Answered::default();
    let (listener, address) = listen();
    let served =
        servers.spawn_await(serve_http2(listener, servers.downgrade(), Arc::clone(&answered)));
    let executor = clients.clone();
    let connected = clients.spawn_await(async move {
        let (mut requests, connection) =
            client::conn::http2::handshake(executor.clone(), connect(address).await).await.unwrap();
        Executor::execute(&executor, connection.map(drop));
        let first = text(requests.send_request(request(address, 1)).await.unwrap()).await;
        (requests, first)
    });
    let (mut requests, first) = value(connected);
    assert_eq!(first, "/1");
    servers.close();
    let second = clients.spawn_await(async move {
        requests.send_request(request(address, 2)).await.map(|response| response.status())
    });
    assert!(value(second).is_err(), "the request is reset");
    assert_eq!(answered.load(Ordering::Relaxed), 1);
    // The client's end of the connection is gone, and so is the server's.
    let _ = settled(served).expect("it was not cancelled");
    wait_until("the client's futures have ended", || clients.stats().in_flight() == 0);
    assert!(servers.shutdown_join_timeout(LIMIT));
}
