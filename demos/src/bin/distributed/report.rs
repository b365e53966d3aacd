//! What has become of the jobs.

use std::fmt;

use redis::RedisResult;

use crate::store::{Jobs, Store};

pub(crate) struct Report {
    jobs: Jobs,
    /// The numbers of the jobs that are neither open nor done nor dead.
    pub(crate) lost: Vec<u64>,
}

impl Report {
    pub(crate) fn new(store: &mut Store) -> RedisResult<Self> {
        let jobs = store.all()?;
        let is_known = |number: &u64| {
            jobs.open.contains(number)
                || jobs.done.contains_key(number)
                || jobs.dead.iter().any(|(dead, _)| dead == number)
        };
        let lost = (1..=jobs.last).filter(|number| !is_known(number)).collect();
        Ok(Report { jobs, lost })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Jobs { last, waiting, pending, open: _, done, dead } = &self.jobs;
        let repeated = done.values().filter(|times| **times > 1).count();
        writeln!(f, "added:    {last}")?;
        writeln!(f, "waiting:  {waiting}")?;
        writeln!(f, "pending:  {pending}")?;
        writeln!(f, "done:     {}, of these more than once: {repeated}", done.len())?;
        writeln!(f, "dead:     {}", dead.len())?;
        for (number, error) in dead {
            writeln!(f, "  {number}: {error}")?;
        }
        writeln!(f, "lost:     {}", self.lost.len())?;
        for number in &self.lost {
            writeln!(f, "  {number}")?;
        }
        Ok(())
    }
}
