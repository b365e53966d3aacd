//! The jobs in Redis: one connection, and what is asked of it.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `PREFIX:jobs` | stream, with the consumer group `workers` | the jobs that are neither done nor dead |
//! | `PREFIX:done` | hash | how many times each job was done, by its number |
//! | `PREFIX:dead` | stream | the jobs that were delivered too often |
//! | `PREFIX:errors` | hash | the last error of jobs that have failed, by their id |
//! | `PREFIX:numbers` | number | the number of the last job |
//!
//! A job leaves `jobs` in the transaction that enters it in `done` or `dead`. So it is in one of
//! them at any time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use redis::streams::{
    StreamClaimReply, StreamId, StreamPendingCountReply, StreamRangeReply, StreamReadOptions,
    StreamReadReply,
};
use redis::{Commands, Pipeline, RedisResult};

use crate::job::Work;

const GROUP: &str = "workers";

/// Jobs that are added in one transaction.
const CHUNK: usize = 500;

/// Fields of a job, and of a dead one.
const NUMBER: &str = "number";
const WORK: &str = "work";
const ERROR: &str = "error";

pub(crate) struct Store {
    connection: redis::Connection,
    jobs: String,
    done: String,
    dead: String,
    errors: String,
    numbers: String,
}

/// A job that was delivered to this process.
pub(crate) struct Delivery {
    pub(crate) id: String,
    /// `None` if it has none.
    pub(crate) number: Option<String>,
    /// What it does, as text.
    pub(crate) work: String,
}

/// How a job ended.
pub(crate) struct Outcome {
    pub(crate) id: String,
    pub(crate) number: Option<String>,
    pub(crate) result: Result<(), String>,
}

/// The jobs by number.
pub(crate) struct Jobs {
    pub(crate) last: u64,
    /// Jobs that no process has read.
    pub(crate) waiting: usize,
    /// Jobs that a process has read and not acknowledged.
    pub(crate) pending: usize,
    /// The numbers of both.
    pub(crate) open: HashSet<u64>,
    /// How many times each was done.
    pub(crate) done: HashMap<u64, u64>,
    /// The dead jobs, with their errors.
    pub(crate) dead: Vec<(u64, String)>,
}

impl Store {
    /// Connects, and creates stream and group if they do not exist.
    pub(crate) fn open(url: &str, prefix: &str) -> crate::Result<Self> {
        let client = redis::Client::open(url)?;
        let connection = client.get_connection().map_err(|error| {
            // Not the URL, which may have a password.
            let address = client.get_connection_info().addr();
            format!(
                "no connection to Redis at {address}: {error}\n\
                 Start a server there, such as with `redis-server`, or name another one with --redis URL."
            )
        })?;
        let key = |name: &str| format!("{prefix}:{name}");
        let mut store = Store {
            connection,
            jobs: key("jobs"),
            done: key("done"),
            dead: key("dead"),
            errors: key("errors"),
            numbers: key("numbers"),
        };
        // From the start of the stream: jobs may have been added before.
        let created: RedisResult<()> =
            store.connection.xgroup_create_mkstream(&store.jobs, GROUP, 0);
        match created {
            Err(error) if error.code() == Some("BUSYGROUP") => {}
            created => created?,
        }
        Ok(store)
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) -> RedisResult<()> {
        self.connection.del(&[&self.jobs, &self.done, &self.dead, &self.errors, &self.numbers])
    }

    // ----- for the producer -----

    /// Adds jobs.
    pub(crate) fn add(&mut self, count: usize, work: Work) -> RedisResult<()> {
        let work = work.to_string();
        let mut left = count;
        while left > 0 {
            let chunk = left.min(CHUNK);
            let last: u64 = self.connection.incr(&self.numbers, chunk)?;
            let mut transaction = transaction();
            for number in last + 1 - chunk as u64..=last {
                let fields = [(NUMBER, number.to_string()), (WORK, work.clone())];
                transaction.xadd(&self.jobs, "*", &fields).ignore();
            }
            transaction.exec(&mut self.connection)?;
            left -= chunk;
        }
        Ok(())
    }

    // ----- for the workers -----

    /// Reads jobs that were never delivered. Waits for the first one, at most for `wait`.
    pub(crate) fn read(
        &mut self,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> RedisResult<Vec<Delivery>> {
        let options = StreamReadOptions::default()
            .group(GROUP, consumer)
            .count(count)
            // Zero would mean for ever.
            .block((wait.as_millis() as usize).max(1));
        let read: Option<StreamReadReply> =
            self.connection.xread_options(&[&self.jobs], &[">"], &options)?;
        let streams = read.into_iter().flat_map(|reply| reply.keys);
        Ok(streams.flat_map(|stream| stream.ids).map(delivery).collect())
    }

    /// Returns jobs that no process has read or kept for `min_idle`, with the number of their
    /// deliveries.
    pub(crate) fn overdue(
        &mut self,
        count: usize,
        min_idle: Duration,
    ) -> RedisResult<Vec<(String, usize)>> {
        let overdue: StreamPendingCountReply = redis::cmd("XPENDING")
            .arg(&[&self.jobs, GROUP, "IDLE"])
            .arg(min_idle.as_millis() as u64)
            .arg(&["-", "+"])
            .arg(count)
            .query(&mut self.connection)?;
        Ok(overdue.ids.into_iter().map(|job| (job.id, job.times_delivered)).collect())
    }

    /// Claims an overdue job. Returns `None` if another process was faster.
    pub(crate) fn claim(
        &mut self,
        consumer: &str,
        id: &str,
        min_idle: Duration,
    ) -> RedisResult<Option<Delivery>> {
        let min_idle = min_idle.as_millis() as u64;
        let claimed: StreamClaimReply =
            self.connection.xclaim(&self.jobs, GROUP, consumer, min_idle, &[id])?;
        Ok(claimed.ids.into_iter().next().map(delivery))
    }

    /// Moves a job to the dead-letter stream.
    pub(crate) fn bury(&mut self, job: Delivery) -> RedisResult<()> {
        let error: Option<String> = self.connection.hget(&self.errors, &job.id)?;
        // A job whose process died has left none.
        let error = error.unwrap_or_else(|| "its process died each time".into());
        let number = job.number.unwrap_or_default();
        transaction()
            .xadd(&self.dead, "*", &[(NUMBER, &number), (WORK, &job.work), (ERROR, &error)])
            .xack(&self.jobs, GROUP, &[&job.id])
            .xdel(&self.jobs, &[&job.id])
            .hdel(&self.errors, &job.id)
            .exec(&mut self.connection)
    }

    /// Keeps other processes from claiming jobs, for another `min_idle`.
    pub(crate) fn keep(&mut self, consumer: &str, ids: &[String]) -> RedisResult<()> {
        if ids.is_empty() {
            return Ok(());
        }
        // With JUSTID a claim does not count as a delivery. Jobs that were acknowledged meanwhile
        // are not claimed.
        redis::cmd("XCLAIM")
            .arg(&[&self.jobs, GROUP, consumer, "0"])
            .arg(ids)
            .arg("JUSTID")
            .exec(&mut self.connection)
    }

    /// Acknowledges the jobs that are done, and enters the errors of the others, which stay
    /// pending.
    pub(crate) fn settle(&mut self, outcomes: &[Outcome]) -> RedisResult<()> {
        let mut transaction = transaction();
        let mut done = Vec::new();
        for outcome in outcomes {
            match (&outcome.result, &outcome.number) {
                (Ok(()), number) => {
                    transaction
                        .hincr(&self.done, number.as_deref().unwrap_or_default(), 1)
                        .ignore();
                    done.push(&outcome.id);
                }
                (Err(error), _) => _ = transaction.hset(&self.errors, &outcome.id, error).ignore(),
            }
        }
        if !done.is_empty() {
            transaction.xack(&self.jobs, GROUP, &done).xdel(&self.jobs, &done);
            transaction.hdel(&self.errors, &done);
        }
        transaction.exec(&mut self.connection)
    }

    /// Removes a consumer that has nothing pending. Removing one that has would lose its jobs.
    pub(crate) fn leave(&mut self, consumer: &str) -> RedisResult<()> {
        let pending: StreamPendingCountReply =
            self.connection.xpending_consumer_count(&self.jobs, GROUP, "-", "+", 1, consumer)?;
        if pending.ids.is_empty() {
            let _: usize = self.connection.xgroup_delconsumer(&self.jobs, GROUP, consumer)?;
        }
        Ok(())
    }

    // ----- for those who look -----

    /// Whether each job is done or dead.
    pub(crate) fn is_empty(&mut self) -> RedisResult<bool> {
        self.connection.xlen(&self.jobs).map(|length: usize| length == 0)
    }

    /// How many jobs are done.
    pub(crate) fn done_count(&mut self) -> RedisResult<usize> {
        self.connection.hlen(&self.done)
    }

    /// Reads all jobs. A job moves from `jobs` to one of the others, so `jobs` is read first: none
    /// is missed.
    pub(crate) fn all(&mut self) -> RedisResult<Jobs> {
        let last: Option<u64> = self.connection.get(&self.numbers)?;
        let jobs: StreamRangeReply = self.connection.xrange_all(&self.jobs)?;
        let pending = self.connection.xpending(&self.jobs, GROUP)?;
        let pending: redis::streams::StreamPendingReply = pending;
        let dead: StreamRangeReply = self.connection.xrange_all(&self.dead)?;
        let done: HashMap<u64, u64> = self.connection.hgetall(&self.done)?;
        let number = |entry: &StreamId| entry.get::<u64>(NUMBER).unwrap_or_default();
        Ok(Jobs {
            last: last.unwrap_or_default(),
            waiting: jobs.ids.len().saturating_sub(pending.count()),
            pending: pending.count(),
            open: jobs.ids.iter().map(number).collect(),
            done,
            dead: dead.ids.iter().map(|entry| (number(entry), text(entry, ERROR))).collect(),
        })
    }
}

/// Commands that Redis executes at once: all of them or, if this process dies before, none.
fn transaction() -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.atomic();
    pipeline
}

fn text(entry: &StreamId, field: &str) -> String {
    entry.get(field).unwrap_or_default()
}

fn delivery(entry: StreamId) -> Delivery {
    Delivery { number: entry.get(NUMBER), work: text(&entry, WORK), id: entry.id }
}
