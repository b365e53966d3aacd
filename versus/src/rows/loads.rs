//! Loads that need very different numbers of threads, and nothing that tells the pool which: what a
//! pool that finds its size does, beside each size that its user might have set. Nothing is marked
//! as blocking.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use super::Row;
use crate::Result;
use crate::engines::{Pool, leak};
use crate::latch::Latch;
use crate::system;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Uses that much of a CPU, however long that takes.
fn compute(time: Duration) {
    // Without a clock of the thread, the row cannot be measured.
    let now = || system::own_cpu_time().unwrap_or(Duration::MAX);
    let since = now();
    while now().saturating_sub(since) < time {}
}

/// What a row gives: milliseconds, or microseconds from a submission to its start; and the most
/// threads at a time.
pub(crate) fn measure<P: Pool>(row: Row, pool: &'static P, size: u64) -> Result<(Vec<f64>, u64)> {
    let before = system::threads()?;
    let peak = leak(AtomicU64::new(0));
    // Looks once in a while, and ends with the process.
    spawn(move || {
        while let Ok(threads) = system::threads() {
            peak.fetch_max(threads, Ordering::Relaxed);
            sleep(millis(5));
        }
    });
    let values = match row {
        Row::LoadCompute => vec![run(pool, size, |_| compute(millis(2)))],
        Row::LoadSleep => vec![run(pool, size, |_| sleep(millis(10)))],
        Row::LoadHalf => vec![run(pool, size, |i| match i % 2 {
            0 => compute(millis(1)),
            _ => sleep(millis(20)),
        })],
        Row::LoadPhases => vec![phases(pool, size)],
        Row::LoadWaits => vec![waits(pool, size)?],
        Row::LoadShort => vec![short(pool, size)?],
        Row::LoadOpen => open(pool, size)?,
        Row::LoadLock => vec![run(pool, size, |_| locked(millis(1)))],
        Row::LoadHalfLock => vec![run(pool, size, |_| {
            compute(Duration::from_micros(500));
            locked(Duration::from_micros(500));
        })],
        Row::LoadConnections => vec![run(pool, size, |_| connected(millis(5)))],
        Row::LoadDisk => vec![disk(pool, size, 1 << 20, |_| {})?],
        Row::LoadStages => vec![disk(pool, size, 1 << 18, compute_and_send)?],
        Row::LoadReplies1000 => vec![replies(pool, size, millis(1_000))?],
        Row::LoadReplies => vec![replies(pool, size, millis(10))?],
        Row::LoadReplies100 => vec![replies(pool, size, millis(100))?],
        _ => return Err(format!("{row} is no load").into()),
    };
    let peak = peak.load(Ordering::Relaxed);
    // Without the thread that looks.
    Ok((values, peak.max(before + 1) - before - 1))
}

fn in_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Sleeps under a lock that all tasks want.
fn locked(time: Duration) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    sleep(time);
}

/// Holds one of ten connections for that long.
fn connected(time: Duration) {
    static FREE: (Mutex<usize>, Condvar) = (Mutex::new(10), Condvar::new());
    let lock = || FREE.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut free = lock();
    while *free == 0 {
        free = FREE.1.wait(free).unwrap_or_else(PoisonError::into_inner);
    }
    *free -= 1;
    drop(free);
    sleep(time);
    *lock() += 1;
    FREE.1.notify_one();
}

/// The milliseconds until all tasks have run.
fn run<P: Pool>(pool: &'static P, tasks: u64, task: fn(u64)) -> f64 {
    let time = Latch::rounds(1, tasks, |latch| {
        for i in 0..tasks {
            pool.execute(move || {
                task(i);
                latch.count_down();
            });
        }
    });
    in_millis(time)
}

/// Four phases, each of which begins when the one before has ended.
fn phases<P: Pool>(pool: &'static P, size: u64) -> f64 {
    let phase =
        |_| run(pool, size, |_| compute(millis(2))) + run(pool, 20 * size, |_| sleep(millis(10)));
    (0..2).map(phase).sum()
}

/// Tasks each of which waits for one that is queued behind all of them.
fn waits<P: Pool>(pool: &'static P, tasks: u64) -> Result<f64> {
    let (done, all_done) = mpsc::channel();
    let begin = Instant::now();
    let releases: Vec<_> = (0..tasks)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            let done = done.clone();
            pool.execute(move || {
                let _ = released.recv();
                let _ = done.send(());
            });
            release
        })
        .collect();
    for release in releases {
        pool.execute(move || drop(release));
    }
    for _ in 0..tasks {
        all_done.recv_timeout(Duration::from_secs(10))?;
    }
    Ok(in_millis(begin.elapsed()))
}

/// The milliseconds until a short task starts behind tasks that sleep for 300 ms.
fn short<P: Pool>(pool: &'static P, tasks: u64) -> Result<f64> {
    for _ in 0..tasks {
        pool.execute(|| sleep(millis(300)));
    }
    let (started, start) = mpsc::channel();
    let begin = Instant::now();
    pool.execute(move || {
        let _ = started.send(begin.elapsed());
    });
    Ok(in_millis(start.recv_timeout(Duration::from_secs(10))?))
}

/// A task each 1.2 ms that computes, waits, and computes. The microseconds until each starts.
fn open<P: Pool>(pool: &'static P, tasks: u64) -> Result<Vec<f64>> {
    system::exact_sleeps()?;
    let (started, starts) = mpsc::channel();
    let begin = Instant::now();
    for i in 0..tasks {
        let due = Duration::from_micros(1_200).mul_f64(i as f64);
        sleep(due.saturating_sub(begin.elapsed()));
        let (started, submitted) = (started.clone(), Instant::now());
        pool.execute(move || {
            let _ = started.send(submitted.elapsed());
            compute(Duration::from_micros(500));
            sleep(millis(5));
            compute(Duration::from_micros(500));
        });
    }
    drop(started);
    Ok(starts.iter().map(|start| start.as_secs_f64() * 1e6).collect())
}

/// Tasks that wait for a thread outside, which replies to each after that time.
fn replies<P: Pool>(pool: &'static P, tasks: u64, time: Duration) -> Result<f64> {
    let (ask, asked) = mpsc::channel::<(Instant, mpsc::Sender<()>)>();
    spawn(move || {
        for (due, reply) in asked {
            sleep(due.saturating_duration_since(Instant::now()));
            let _ = reply.send(());
        }
    });
    let (done, all_done) = mpsc::channel();
    let begin = Instant::now();
    for _ in 0..tasks {
        let (ask, done) = (ask.clone(), done.clone());
        pool.execute(move || {
            let (reply, replied) = mpsc::channel();
            let _ = ask.send((Instant::now() + time, reply));
            let _ = replied.recv();
            let _ = done.send(());
        });
    }
    for _ in 0..tasks {
        all_done.recv_timeout(Duration::from_secs(60))?;
    }
    Ok(in_millis(begin.elapsed()))
}

/// Each task reads a part of a file, past the page cache, into a buffer of its own, and then calls
/// `after`.
#[cfg(target_os = "linux")]
fn disk<P: Pool>(pool: &'static P, tasks: u64, len: usize, after: fn(&[u8])) -> Result<f64> {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    /// The length of the file.
    const FILE: u64 = 256 << 20;
    /// Of the buffer, which a read past the cache asks for.
    const ALIGN: usize = 4096;

    let path = std::env::temp_dir().join("elastipool-versus-disk");
    if path.metadata().map_or(0, |file| file.len()) < FILE {
        let mut file = File::create(&path)?;
        for i in 0..FILE >> 20 {
            file.write_all(&vec![i as u8; 1 << 20])?;
        }
        file.sync_all()?;
    }
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let file: &File = leak(OpenOptions::new().read(true).custom_flags(direct).open(&path)?);
    let (done, all_done) = mpsc::channel();
    let begin = Instant::now();
    for i in 0..tasks {
        let done = done.clone();
        pool.execute(move || {
            let mut space = vec![0; len + ALIGN];
            let start = space.as_ptr().align_offset(ALIGN);
            let part = &mut space[start..start + len];
            let read = file.read_exact_at(part, i * len as u64 % FILE);
            after(part);
            let _ = done.send(read);
        });
    }
    for _ in 0..tasks {
        all_done.recv_timeout(Duration::from_secs(60))??;
    }
    Ok(in_millis(begin.elapsed()))
}

#[cfg(not(target_os = "linux"))]
fn disk<P: Pool>(_: &'static P, _: u64, _: usize, _: fn(&[u8])) -> Result<f64> {
    Err("this row needs Linux".into())
}

/// Computes, then writes the first bytes to a socket that another thread reads.
#[cfg(unix)]
fn compute_and_send(bytes: &[u8]) {
    use std::io::{Write, copy, sink};
    use std::os::unix::net::UnixStream;
    use std::sync::LazyLock;

    static SOCKET: LazyLock<UnixStream> = LazyLock::new(|| {
        let (socket, mut peer) = UnixStream::pair().expect("a pair of sockets");
        spawn(move || copy(&mut peer, &mut sink()));
        socket
    });
    compute(Duration::from_micros(300));
    let _ = (&*SOCKET).write_all(&bytes[..1_000]);
}

#[cfg(not(unix))]
fn compute_and_send(_: &[u8]) {}
