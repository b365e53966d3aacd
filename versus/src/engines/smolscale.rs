use std::thread;
use std::time::{Duration, Instant};

use super::{Executor, FutureHandles};
use crate::Result;

/// Far longer than it takes to start its threads.
const PATIENCE: Duration = Duration::from_secs(10);

/// The crate has one executor for the whole process, with a thread for each CPU.
pub(crate) struct Smolscale;

impl Smolscale {
    pub(crate) fn start() -> Result<&'static Self> {
        let start = Instant::now();
        // The first future starts the threads.
        smolscale::spawn(async {}).detach();
        let cpus = thread::available_parallelism()?.get();
        while smolscale::running_threads() < cpus {
            if start.elapsed() > PATIENCE {
                return Err(format!("fewer than {cpus} threads").into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(&Smolscale)
    }
}

impl Executor for Smolscale {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        smolscale::spawn(future).detach();
    }
}

impl FutureHandles for Smolscale {
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R> {
        smolscale::spawn(future)
    }
}
