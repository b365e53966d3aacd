//! hyper's executor trait (feature `hyper`).

use std::future::Future;

use hyper::rt::Executor;

use crate::pool::ThreadPool;
use crate::weak::WeakThreadPool;

/// The executor trait of hyper, for its servers and clients (feature `hyper`).
///
/// Spawns like [`ThreadPool::spawn`], and waits for capacity like it. **If the pool is closed, the future is dropped**: hyper's
/// method returns nothing, so it cannot hand the future back. hyper spawns a future for each request of an HTTP/2 server, so
/// the client of a closed pool sees its requests reset on connections that still exist. To stop a server gracefully, end
/// its connections first with `graceful_shutdown`, then close the pool.
///
/// A connection stores its executor. If it runs on the pool itself, give it a [`WeakThreadPool`], which implements the trait
/// too: a `ThreadPool` would keep the pool open. The handle of a [`View`](crate::View) is a `ThreadPool` as well
/// (`(*view).clone()`), so requests can have a reserve or a priority.
///
/// ```
/// use std::convert::Infallible;
/// use std::net::{Ipv4Addr, TcpListener, TcpStream};
///
/// use async_io::Async;
/// use elastipool::{ThreadPool, WeakThreadPool};
/// use hyper::body::Incoming;
/// use hyper::service::service_fn;
/// use hyper::{Request, Response, client, server};
/// use smol_hyper::rt::FuturesIo;
///
/// // A server of one connection. Its I/O is that of async-io.
/// async fn serve(listener: Async<TcpListener>, pool: WeakThreadPool) {
///     let (stream, _) = listener.accept().await.unwrap();
///     let greet = service_fn(|_: Request<Incoming>| async {
///         Ok::<_, Infallible>(Response::new("Hello, World!".to_owned()))
///     });
///     server::conn::http2::Builder::new(pool) // which polls the requests
///         .serve_connection(FuturesIo::new(stream), greet)
///         .await
///         .unwrap();
/// }
///
/// let pool = ThreadPool::default();
/// let listener = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
/// let address = listener.get_ref().local_addr().unwrap();
/// pool.spawn(serve(listener, pool.downgrade()));
///
/// let executor = pool.clone();
/// let status = pool.spawn_await(async move {
///     let stream = Async::<TcpStream>::connect(address).await.unwrap();
///     let io = FuturesIo::new(stream);
///     let (mut requests, connection) =
///         client::conn::http2::handshake(executor.clone(), io).await.unwrap();
///     executor.spawn(async move { connection.await.unwrap() });
///     let request = Request::get(format!("http://{address}/")).body(String::new()).unwrap();
///     requests.send_request(request).await.unwrap().status()
/// });
/// assert_eq!(status.await_complete(), 200);
/// // The client's connection has ended with `requests`, the server's with it.
/// pool.shutdown_join();
/// ```
impl<F> Executor<F> for ThreadPool
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        // hyper does not look at the output. Its own futures have none.
        let _closed = self.spawn_or_drop(async move { drop(future.await) });
    }
}

/// As for [`ThreadPool`]. If no handle of the pool is left, the future is dropped.
impl<F> Executor<F> for WeakThreadPool
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        if let Some(pool) = self.upgrade() {
            Executor::execute(&pool, future);
        }
    }
}
