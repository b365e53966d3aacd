//! Runs the program `distributed`: several processes, a Redis server for each test, and processes
//! that are killed.

#![cfg(unix)]

#[path = "../../tests/common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::child::capture_stderr;
use common::example::Folder;
use redis::Commands;
use redis::streams::{StreamPendingReply, StreamRangeReply};
use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distributed");

/// How long a test waits for what must happen. Jobs are claimed only when they were idle for a
/// while, several times.
const PATIENCE: Duration = Duration::from_secs(60);

/// After this time the jobs of a dead process are claimed. A process tells Redis three times as
/// often that it is alive, and may be late for that on a busy machine.
const MIN_IDLE: &str = "1500";

/// A process that is killed if the test ends before it.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Option<Self> {
        match command.stderr(Stdio::piped()).spawn() {
            Ok(mut child) => {
                capture_stderr(&mut child);
                Some(Process(child))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{command:?}: {error}"),
        }
    }

    /// Sends SIGKILL, as `kill -9` does, and waits until the process is gone.
    fn kill_9(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::KILL).expect("it exists");
        self.0.wait().expect("it was started here");
    }

    /// Sends SIGTERM, and returns how the process ends.
    fn terminate(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it exists");
        self.ended()
    }

    fn ended(&mut self) -> ExitStatus {
        wait_until("a process ends", || self.0.try_wait().expect("it was started here").is_some());
        self.0.wait().expect("it was started here")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A Redis server in a folder of its own. It listens on a socket in that folder: another process
/// may take a port that is free now, and this test would talk to that process.
struct Server {
    url: String,
    connection: redis::Connection,
    // In this order: the server ends before its folder is removed.
    _process: Process,
    _folder: Folder,
}

impl Server {
    /// Returns `None`, and says so, if there is no Redis on this machine.
    fn start(test: &str) -> Option<Self> {
        let folder = Folder::new(test);
        let socket = folder.0.join("socket");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--unixsocket").arg(&socket).arg("--dir").arg(&folder.0).stdout(Stdio::null());
        let Some(mut process) = Process::start(&mut command) else {
            eprintln!(
                "skipped: there is no program redis-server (Debian's package redis-server has it)"
            );
            return None;
        };
        wait_until("the server listens", || {
            let ended = process.0.try_wait().expect("it was started here");
            assert_eq!(ended, None, "redis-server does not listen on {}", socket.display());
            UnixStream::connect(&socket).is_ok()
        });
        let url = url(&socket);
        let client = redis::Client::open(url.as_str()).expect("an address");
        let connection = client.get_connection().expect("the server listens");
        Some(Server { url, connection, _process: process, _folder: folder })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        // The panic of a job is expected: a line is enough.
        command.env("RUST_BACKTRACE", "0");
        command.args(["--redis", &self.url, "--prefix", "test"]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    fn produce(&self, jobs: usize, work: &str) {
        let output = self.run(&["produce", "--jobs", &jobs.to_string(), "--work", work]);
        assert_eq!(text(&output.stdout), format!("added {jobs} jobs\n"), "{output:?}");
    }

    fn worker(&self, name: &str, args: &[&str]) -> Process {
        let mut command = self.command(&["work", "--name", name, "--min-idle", MIN_IDLE]);
        Process::start(command.args(args)).expect("the program exists")
    }

    fn pending(&mut self) -> StreamPendingReply {
        self.connection.xpending("test:jobs", "workers").expect("the server runs")
    }

    /// How many jobs a process has read and not acknowledged.
    fn pending_of(&mut self, name: &str) -> usize {
        let StreamPendingReply::Data(pending) = self.pending() else { return 0 };
        let consumer = pending.consumers.iter().find(|consumer| consumer.name == name);
        consumer.map_or(0, |consumer| consumer.pending)
    }

    /// How many jobs are neither done nor dead.
    fn open(&mut self) -> usize {
        self.connection.xlen("test:jobs").expect("the server runs")
    }

    /// How many times each job was done.
    fn done(&mut self) -> HashMap<usize, usize> {
        self.connection.hgetall("test:done").expect("the server runs")
    }

    /// The numbers and the errors of the dead jobs.
    fn dead(&mut self) -> Vec<(usize, String)> {
        let dead: StreamRangeReply =
            self.connection.xrange_all("test:dead").expect("the server runs");
        let field = |entry: &redis::streams::StreamId, name| entry.get::<String>(name).expect(name);
        dead.ids
            .iter()
            .map(|entry| (field(entry, "number").parse().unwrap(), field(entry, "error")))
            .collect()
    }

    fn report(&self) -> String {
        let output = self.run(&["report"]);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }
}

fn url(socket: &Path) -> String {
    format!("redis+unix://{}", socket.display())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_jobs_of_a_killed_process_are_done_by_others_and_a_poison_job_becomes_dead() {
    let Some(mut server) = Server::start("killed") else { return };
    const JOBS: usize = 300;
    const POISON: usize = 101;
    server.produce(POISON - 1, "sleep:20");
    server.produce(1, "panic");
    server.produce(JOBS - POISON, "sleep:20");
    let args = ["--workers", "4", "--queue", "8", "--batch", "4", "--max-deliveries", "4"];
    let mut killed = server.worker("killed", &args);
    let mut others = ["second", "third"].map(|name| server.worker(name, &args));

    wait_until("all are at work", || {
        ["killed", "second", "third"].iter().all(|name| server.pending_of(name) > 4)
    });
    killed.kill_9();
    let left_behind = server.pending_of("killed");
    assert!(left_behind > 0, "it was killed in the middle of its work");

    wait_until("each job is done or dead", || server.open() == 0);
    let done = server.done();
    let missing: Vec<usize> = (1..=JOBS).filter(|number| !done.contains_key(number)).collect();
    assert_eq!(missing, [POISON], "{}", server.report());
    assert_eq!(server.dead(), [(POISON, "the job panicked".to_owned())]);
    assert_eq!(server.pending().count(), 0);
    let report = server.report();
    assert!(report.contains("\nlost:     0\n") && report.contains("\ndead:     1\n"), "{report}");
    for other in &mut others {
        assert!(other.terminate().success());
    }
}

#[test]
fn after_sigterm_a_process_finishes_what_it_has_taken_and_takes_no_more() {
    let Some(mut server) = Server::start("drained") else { return };
    const JOBS: usize = 100;
    server.produce(JOBS, "sleep:200");
    let mut worker = server.worker("drained", &["--workers", "4", "--queue", "8", "--batch", "4"]);
    wait_until("the queue is full", || server.pending_of("drained") >= 12);
    let taken = server.pending_of("drained") + server.done().len();
    assert!(worker.terminate().success());

    let done = server.done();
    assert!(done.len() >= taken, "{taken} were taken, {} are done", done.len());
    assert!(done.len() < JOBS / 2, "it went on reading: {} are done", done.len());
    assert!(done.values().all(|times| *times == 1));
    assert_eq!(server.pending().count(), 0, "it has acknowledged all");
    assert_eq!(server.open(), JOBS - done.len());
    // The process has left the group.
    let consumers: redis::streams::StreamInfoConsumersReply =
        server.connection.xinfo_consumers("test:jobs", "workers").unwrap();
    assert!(consumers.consumers.is_empty(), "{consumers:?}");
}

#[test]
fn a_process_whose_queue_is_full_reads_no_more() {
    let Some(mut server) = Server::start("full") else { return };
    server.produce(100, "sleep:100");
    let _worker = server.worker("full", &["--workers", "2", "--queue", "4", "--batch", "3"]);
    let mut most = 0;
    wait_until("some jobs are done", || {
        most = most.max(server.pending_of("full"));
        server.done().len() >= 20
    });
    // Running, queued, and the batch that waits for capacity. Two more have ended and are not
    // acknowledged yet.
    assert!((6..=2 + 4 + 3 + 2).contains(&most), "{most}");
}

#[test]
fn a_job_that_kills_its_process_becomes_dead_and_takes_no_other_with_it() {
    let Some(mut server) = Server::start("abort") else { return };
    const JOBS: usize = 60;
    const POISON: usize = 31;
    server.produce(POISON - 1, "sleep:1");
    server.produce(1, "abort");
    server.produce(JOBS - POISON, "sleep:1");
    let mut failures = 0;
    // As a supervisor would start it again.
    while !server.worker("restarted", &["--max-deliveries", "3", "--until-empty"]).ended().success()
    {
        failures += 1;
        assert!(failures <= 3, "{}", server.report());
    }
    assert_eq!(failures, 3);
    assert_eq!(server.dead(), [(POISON, "its process died each time".to_owned())]);
    assert_eq!(server.done().len(), JOBS - 1, "{}", server.report());
}

#[test]
fn work_that_cannot_be_understood_becomes_dead() {
    let Some(mut server) = Server::start("malformed") else { return };
    server.produce(1, "fail");
    let fields = [("number", "2"), ("work", "sing")];
    let _: String = server.connection.xadd("test:jobs", "*", &fields).unwrap();
    let _: usize = server.connection.incr("test:numbers", 1).unwrap();
    assert!(server.worker("only", &["--max-deliveries", "2", "--until-empty"]).ended().success());
    let dead = [(1, "the job failed".to_owned()), (2, "\"sing\" is no work".to_owned())];
    assert_eq!(server.dead(), dead);
}

#[test]
fn a_process_without_redis_fails() {
    let folder = Folder::new("without");
    // Port 1 is that of a service which is long out of use.
    for url in [url(&folder.0.join("socket")), "redis://127.0.0.1:1/".to_owned()] {
        let mut command = Command::new(PROGRAM);
        let output = command.args(["--redis", &url, "work"]).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with("distributed: no connection to Redis at "), "{stderr}");
        let address = url.split_once("://").expect("a URL").1.trim_end_matches('/');
        let address = address.split('?').next().expect("an address");
        assert!(stderr.contains(address), "{stderr}");
        assert!(stderr.contains("Start a server there, such as with `redis-server`"), "{stderr}");
    }
}

#[test]
fn a_process_that_loses_redis_fails() {
    let Some(mut server) = Server::start("lost") else { return };
    let mut worker = server.worker("lost", &[]);
    server.produce(20, "sleep:1");
    wait_until("it works", || server.done().len() == 20);
    server._process.kill_9();
    assert_eq!(worker.ended().code(), Some(1));
}

#[test]
fn the_bench_measures() {
    let Some(server) = Server::start("bench") else { return };
    let output = server.run(&["bench", "--jobs", "200", "--processes", "1,2"]);
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    for count in ["1", "2"] {
        let row = printed.lines().find(|line| line.trim_start().starts_with(&format!("{count} ")));
        let rates = row.expect("a row").split_whitespace().skip(1).map(str::parse::<f64>);
        assert!(rates.clone().count() == 3 && rates.flatten().all(|rate| rate > 0.0), "{printed}");
    }
}

#[test]
fn bad_settings_are_errors() {
    let Some(server) = Server::start("bad") else { return };
    for args in [["--max-deliveries", "1"], ["--batch", "0"], ["--min-idle", "9"]] {
        let output = server.run(&["work", args[0], args[1]]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains("at least"), "{output:?}");
    }
    let output = server.run(&["work", "--workers", "0"]);
    assert!(text(&output.stderr).contains("max_size"), "{output:?}");
    let output = server.run(&["produce", "--work", "sing"]);
    assert!(text(&output.stderr).contains("is no work"), "{output:?}");
}
