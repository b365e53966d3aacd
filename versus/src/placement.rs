//! On which CPUs the idle workers of a pool have run last: Linux wakes each there, or on an idle
//! CPU that it looks for. Which ones they are is otherwise chance, and remains for long.

use std::mem;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::engines::{Pool, leak};
use crate::gate::Gate;
use crate::system::{self, PinnedThread};

/// A worker rests by then.
const REST: Duration = Duration::from_millis(1);

/// Makes so many CPUs those where the idle workers have run last, in turn. Each worker runs a task
/// while it is pinned, and rests: to pin a thread that sleeps does not move it. Afterwards it may
/// run anywhere.
pub(crate) fn place_workers<P: Pool>(
    pool: &'static P,
    workers: usize,
    on_cpus: usize,
) -> Result<()> {
    let pinned: &Mutex<Vec<std::result::Result<PinnedThread, String>>> = leak(Mutex::default());
    let gate = Gate::occupy_with(pool, workers, move || {
        let mut pinned = pinned.lock().expect("nothing panics under the lock");
        let cpu = pinned.len() % on_cpus;
        pinned.push(system::pin_to(cpu).map_err(|error| error.to_string()));
    })?;
    gate.open();
    thread::sleep(REST);
    let pinned = mem::take(&mut *pinned.lock().expect("nothing panics under the lock"));
    pinned.into_iter().try_for_each(|thread| thread?.unpin())
}
