//! The user rows: those that a user would recognise as his own program, by what he does there.

use super::{Row, Setting};

/// What a program does. The order is that of the chart.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Story {
    ManySmallTasks,
    OneAnswerSoon,
    WorkBesideOtherWork,
    TasksThatWait,
    Sizing,
    Bounded,
    InAServer,
    Memory,
}

impl Story {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Story::ManySmallTasks => "Many small tasks",
            Story::OneAnswerSoon => "One answer soon",
            Story::WorkBesideOtherWork => "Kinds of work beside each other",
            Story::TasksThatWait => "Tasks that wait for tasks",
            Story::Sizing => "Sizing",
            Story::Bounded => "A bounded queue",
            Story::InAServer => "In a server",
            Story::Memory => "Memory",
        }
    }
}

impl Row {
    /// Where it belongs if it is a user row, and what it is, in words.
    pub(crate) fn story(self) -> Option<(Story, &'static str)> {
        use Story::{
            Bounded, InAServer, ManySmallTasks, Memory, OneAnswerSoon, Sizing, TasksThatWait,
            WorkBesideOtherWork,
        };
        Some(match self {
            Row::Submit => (ManySmallTasks, "submit a closure"),
            Row::Empty => (ManySmallTasks, "closures of one thread"),
            Row::Multi => (ManySmallTasks, "closures of 11 threads"),
            Row::Fanout => (ManySmallTasks, "one task submits all others"),
            Row::Tree => (ManySmallTasks, "each task submits two"),
            Row::Handler => (ManySmallTasks, "one function, many arguments"),
            Row::Closures200 => (ManySmallTasks, "closures of 200 bytes"),
            Row::Spawn => (ManySmallTasks, "futures, ready at once"),
            Row::Yield => (ManySmallTasks, "futures that yield"),
            Row::Pingpong => (ManySmallTasks, "futures that send messages"),
            Row::Roundtrip => (OneAnswerSoon, "a task, its result, the next"),
            Row::Sporadic => (OneAnswerSoon, "a result after each pause"),
            Row::Pair => (OneAnswerSoon, "two tasks after each pause"),
            Row::PairSame => (OneAnswerSoon, "both workers on one CPU"),
            Row::PairApart => (OneAnswerSoon, "both workers on two CPUs"),
            Row::Frames => (OneAnswerSoon, "four tasks for each frame"),
            Row::Batch => (OneAnswerSoon, "48 short tasks at once"),
            Row::BatchSleep => (OneAnswerSoon, "100 sleeps at once"),
            Row::OpenLoop => (OneAnswerSoon, "tasks at random times"),
            Row::Neighbours => (OneAnswerSoon, "beside busy processes"),
            Row::Backlog => (WorkBesideOtherWork, "a timer in a pool of a fixed size"),
            Row::Ticks => (WorkBesideOtherWork, "a timer in the default pool"),
            Row::Ticks64 => (WorkBesideOtherWork, "64 timers in the default pool"),
            Row::Requests => (WorkBesideOtherWork, "requests of several steps"),
            Row::Stages => (WorkBesideOtherWork, "blocking tasks in stages"),
            Row::Urgent => (WorkBesideOtherWork, "urgent beside bulk"),
            Row::Tenants => (WorkBesideOtherWork, "shares of two tenants"),
            Row::FibScopes => (TasksThatWait, "recursion by scopes"),
            Row::Quicksort => (TasksThatWait, "sort 2,000,000 integers"),
            Row::Chunks => (TasksThatWait, "16 chunks for each step"),
            Row::Scope300k => (TasksThatWait, "a scope of 300,000 tasks"),
            Row::BlockingSleep => (TasksThatWait, "10,000 sleeps in regions"),
            Row::Grow => (Sizing, "64 blocking tasks at once"),
            Row::Waves => (Sizing, "64 after each pause"),
            Row::LoadCompute => (Sizing, "1,000 tasks that compute"),
            Row::LoadSleep => (Sizing, "2,000 tasks that sleep"),
            Row::LoadHalf => (Sizing, "half compute, half sleep"),
            Row::LoadPhases => (Sizing, "computing, sleeping, in turn"),
            Row::LoadWaits => (Sizing, "64 that wait for each other"),
            Row::LoadShort => (Sizing, "a short one behind 20 sleeps"),
            Row::LoadOpen => (Sizing, "tasks that wait in between"),
            Row::LoadLock => (Sizing, "2,000 that wait for one lock"),
            Row::LoadHalfLock => (Sizing, "half under one lock"),
            Row::LoadConnections => (Sizing, "2,000 for ten connections"),
            Row::LoadDisk => (Sizing, "2,000 that read from a disk"),
            Row::LoadReplies => (Sizing, "replies after 10 ms"),
            Row::LoadReplies100 => (Sizing, "replies after 100 ms"),
            Row::LoadReplies1000 => (Sizing, "replies after 1 s"),
            Row::LoadStages => (Sizing, "a disk, a CPU, a socket in turn"),
            Row::Mixed => (Sizing, "each tenth task blocks"),
            Row::Trickle => (Sizing, "threads left in a trickle"),
            Row::Idle => (Sizing, "CPU time without work"),
            Row::Bounded100 => (Bounded, "empty tasks, 100 places"),
            Row::BoundedWork => (Bounded, "tasks of 20 us, 10 places"),
            Row::Awaited1 => (InAServer, "one tokio task awaits"),
            Row::Awaited64 => (InAServer, "64 tokio tasks await"),
            Row::Http => (InAServer, "hyper, 64 connections"),
            Row::Sleepers => (InAServer, "1,000,000 timers"),
            Row::MemoryTask => (Memory, "a queued closure"),
            Row::MemoryFuture => (Memory, "a pending future"),
            _ => return None,
        })
    }

    /// Whether a user would recognise it as his own program: what speed means for this crate.
    pub(crate) fn is_user(self) -> bool {
        self.story().is_some()
    }

    /// Which settings of a user row count. Those beside busy processes are for information in most
    /// rows.
    pub(crate) fn is_user_setting(self, setting: Setting) -> bool {
        match self {
            Row::OpenLoop => matches!(setting.load, Some(10 | 50 | 80)) && setting.busy == 0,
            Row::Neighbours => setting.pause == Some(300),
            _ => setting.busy == 0,
        }
    }
}
