//! Task groups: what they report is what happened, nothing is dropped without a reason, limits
//! hold.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use elastipool::{GroupError, JoinError, RejectReason, Rejected, TaskGroup, worker_index};
use fastrand::Rng;
use futures_executor::block_on;

use crate::hops::{Errand, Hops};
use crate::oracle::{
    Case, Expected, Failed, Family, Fate, Flag, HANDED_BACK, Kind, Ticket, Wait, add, expected,
    get, in_region, waiting,
};
use crate::submit::Round;

/// What is known of a group, from when it is quiet to when it has been waited for.
#[derive(Debug)]
pub(crate) struct Term {
    family: Family,
    keeps_going: bool,
    /// The largest limit that was set.
    limit: AtomicUsize,
    /// A limit has been or is about to be set.
    is_limited: Arc<Flag>,
    /// Tasks that have been begun, and not dropped.
    under_way: AtomicUsize,
    cases: Mutex<Vec<Arc<Case>>>,
    /// Those that were accepted: from then on a wait is for them.
    accepted: Mutex<Vec<Arc<Case>>>,
    /// `cancel` has been or is about to be called.
    cancelled: Flag,
    /// Others wait while it is submitted to.
    is_watched: bool,
    /// No thread has waited.
    detached: Flag,
    /// Some errors were dropped by a wait that returns the first.
    incomplete: Flag,
    /// What the waits have said.
    errors: AtomicUsize,
    /// How many of that were cancellations.
    cancellations: AtomicUsize,
}

impl Term {
    fn new(keeps_going: bool, limit: usize, is_limited: &Arc<Flag>, is_watched: bool) -> Arc<Self> {
        Arc::new(Term {
            family: Family::new(),
            keeps_going,
            limit: AtomicUsize::new(limit),
            is_limited: Arc::clone(is_limited),
            under_way: AtomicUsize::new(0),
            cases: Mutex::default(),
            accepted: Mutex::default(),
            cancelled: Flag::default(),
            is_watched,
            detached: Flag::default(),
            incomplete: Flag::default(),
            errors: AtomicUsize::new(0),
            cancellations: AtomicUsize::new(0),
        })
    }

    pub(crate) fn begin_task(&self) {
        // The limit is raised before the group hears of it, so it is looked at last.
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        let limit = self.limit.load(Ordering::SeqCst);
        assert!(under_way <= limit, "{under_way} tasks of a group with the limit {limit}");
    }

    pub(crate) fn end_task(&self) {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
    }

    fn cases(&self) -> Vec<Arc<Case>> {
        self.cases.lock().expect("not poisoned").clone()
    }

    fn accepted(&self) -> Vec<Arc<Case>> {
        self.accepted.lock().expect("not poisoned").clone()
    }

    /// Notes what a wait has returned.
    fn hear(&self, error: GroupError<Failed>) {
        add(&self.errors);
        let case = match error {
            GroupError::Failed(Failed(case)) => {
                assert!(case.failed.get(), "it has not failed: {case:?}");
                case
            }
            GroupError::Join(error) => match JoinError::try_into_panic(error) {
                Ok(payload) => {
                    let Expected(case) = expected(payload);
                    assert!(case.panicked.get(), "it has not panicked: {case:?}");
                    case
                }
                Err(_) => return add(&self.cancellations),
            },
            other => unreachable!("a group fails in two ways: {other:?}"),
        };
        let is_own = self.cases().iter().any(|own| Arc::ptr_eq(own, &case));
        assert!(is_own, "another task's error: {case:?}");
        add(&case.group_reports);
    }

    /// All of its tasks have ended.
    pub(crate) fn judge(&self, shut_down_now: bool) {
        let cases = self.cases();
        let any = |which: fn(&Case) -> bool| cases.iter().any(|case| which(case));
        let failed = any(Case::has_failed);
        let dropped = any(Case::is_dropped);
        let abandoned = any(|case| case.is_dropped() && case.excused.get());
        let cancelled = self.cancelled.get()
            || (!self.keeps_going && (failed || abandoned || (dropped && shut_down_now)));
        for case in &cases {
            if case.is_dropped() {
                let may_be_dropped = cancelled || shut_down_now || case.excused.get();
                assert!(may_be_dropped, "dropped without a reason: {case:?} {self:?}");
            }
            if case.group_cancelled.get() {
                assert!(cancelled, "rejected without a reason: {case:?} {self:?}");
            }
            let reports = get(&case.group_reports);
            let least = case.has_failed() && !self.detached.get() && !self.incomplete.get();
            let expected = usize::from(least)..=usize::from(case.has_failed());
            assert!(expected.contains(&reports), "{reports} reports: {case:?} {self:?}");
        }
        if get(&self.cancellations) > 0 {
            // If several wait, one of them hears of the failures, and the others of a cancellation.
            let may_be_cancelled = self.cancelled.get() || dropped || failed;
            assert!(may_be_cancelled, "cancelled without a reason: {self:?}");
        }
        if !self.detached.get() {
            let succeeded = !failed && !dropped && !self.cancelled.get();
            assert_eq!(get(&self.errors) == 0, succeeded, "{self:?}");
        }
    }
}

/// A group and its surroundings.
#[derive(Clone)]
struct Member {
    round: Round,
    group: TaskGroup<Failed>,
    term: Arc<Term>,
}

impl Round {
    /// Makes a group, uses it some times, and gives it up.
    pub(crate) fn group(&self, rng: &mut Rng, depth: u32) {
        let mut group = self.pool.group();
        let keeps_going = rng.u8(0..4) == 0;
        if keeps_going {
            group = group.keep_going();
        }
        // A worker does all by itself, so that its regions are known.
        let is_outside = worker_index().is_none() && !HANDED_BACK.get();
        let mut limit = usize::MAX;
        let is_limited = Arc::new(Flag::default());
        let mut dropped = 0;
        for _ in 0..rng.u32(1..4) {
            if rng.bool() {
                limit = rng.usize(1..4);
                is_limited.set();
                group = group.limit(limit);
            }
            let is_watched = is_outside && rng.u8(0..3) == 0;
            let term = Term::new(keeps_going, limit, &is_limited, is_watched);
            self.terms.send(Arc::clone(&term)).expect("the terms are judged last");
            let member = Member { round: self.clone(), group: group.clone(), term };
            member.fill(rng, depth, is_outside);
            if rng.u8(0..6) == 0 {
                member.term.detached.set();
                return;
            }
            member.wait_with_others(rng, is_outside);
            let cases = member.term.cases();
            for case in &cases {
                assert!(case.gone.get(), "it was not waited for: {case:?}");
            }
            dropped += cases.iter().filter(|case| case.is_dropped()).count();
            assert_eq!(group.dropped_count(), dropped, "{:?}", member.term);
            assert!(!group.is_cancelled(), "{:?}", member.term);
            limit = get(&member.term.limit);
        }
    }

    /// For a group's task, which may fail.
    fn ticket_of(&self, case: &Arc<Case>, rng: &mut Rng, term: &Arc<Term>) -> Ticket {
        let fate = match rng.u8(..) {
            0..10 => Fate::Panics,
            10..20 => Fate::Fails,
            _ => Fate::Succeeds,
        };
        Ticket::new(case, &self.oracle, fate, Some(Arc::clone(term)))
    }
}

impl Member {
    /// Submits some tasks, perhaps together with others, and perhaps while others wait.
    fn fill(&self, rng: &mut Rng, depth: u32, is_outside: bool) {
        let submit = |rng: &mut Rng| {
            for _ in 0..rng.u32(0..10) {
                self.act(rng, depth, false);
            }
        };
        let has_company = is_outside && rng.u8(0..3) == 0;
        thread::scope(|scope| {
            if has_company {
                let mut rng = rng.fork();
                scope.spawn(move || submit(&mut rng));
            }
            if self.term.is_watched {
                let mut rng = rng.fork();
                scope.spawn(move || {
                    for _ in 0..rng.u32(1..6) {
                        self.wait_for_a_while(&mut rng);
                    }
                });
            }
            submit(rng);
        });
    }

    /// Does one thing to the group.
    fn act(&self, rng: &mut Rng, depth: u32, is_inside: bool) {
        match rng.u8(0..48) {
            0 => {
                self.term.cancelled.set();
                self.group.cancel();
            }
            1 => {
                let limit = rng.usize(1..6);
                self.term.is_limited.set();
                self.term.limit.fetch_max(limit, Ordering::SeqCst);
                self.group.set_limit(limit);
            }
            2 => assert!(format!("{:?}", self.group).contains("TaskGroup")),
            _ => self.submit(rng, depth, is_inside),
        }
    }

    fn submit(&self, rng: &mut Rng, depth: u32, is_inside: bool) {
        let case = self.round.open_case(Kind::Grouped, self.term.family);
        self.term.cases.lock().expect("not poisoned").push(Arc::clone(&case));
        // Only a wait ends that, and none is over as long as a task of the group runs.
        let is_cancelled = (is_inside || !self.term.is_watched) && self.group.is_cancelled();
        let (oracle, group) = (&self.round.oracle, &self.group);
        let reason = match rng.u8(0..4) {
            0 => {
                let task = self.closure(&case, rng, depth);
                self.note(&case, true, in_region(oracle, || group.execute(task)))
            }
            1 => self.note(&case, false, group.try_execute(self.closure(&case, rng, depth))),
            2 => {
                let future = self.future(&case, rng, depth);
                self.note(&case, true, in_region(oracle, || group.spawn(future)))
            }
            _ => self.note(&case, false, group.try_spawn(self.future(&case, rng, depth))),
        };
        if is_cancelled {
            assert_eq!(reason, Some(RejectReason::Cancelled), "{case:?}");
        }
    }

    /// Notes what became of a submission, and checks that a task that was refused came back, for a
    /// reason.
    fn note<F>(
        &self,
        case: &Arc<Case>,
        waits: bool,
        submitted: Result<(), Rejected<F>>,
    ) -> Option<RejectReason> {
        let Err(rejected) = submitted else {
            case.accepted.set();
            self.term.accepted.lock().expect("not poisoned").push(Arc::clone(case));
            return None;
        };
        let reason = rejected.reason();
        match reason {
            RejectReason::Closed => assert!(self.round.pool.is_closed()),
            RejectReason::Full => {
                let has_limit = self.term.is_limited.get() || self.round.oracle.capacity.is_some();
                assert!(has_limit && !waits, "no limit, or one to wait for: {case:?}");
            }
            RejectReason::Cancelled => case.group_cancelled.set(),
            other => panic!("rejected: {other:?}"),
        }
        assert!(!case.dropped.get(), "it does not come back: {case:?}");
        case.rejected.set();
        drop(rejected.into_task());
        Some(reason)
    }

    fn closure(
        &self,
        case: &Arc<Case>,
        rng: &mut Rng,
        depth: u32,
    ) -> impl FnOnce() -> Result<(), Failed> + Send + 'static + use<> {
        let ticket = self.round.ticket_of(case, rng, &self.term);
        let errand = self.errand(rng, depth);
        move || {
            let _running = ticket.begin();
            if let Some(errand) = errand {
                errand(&ticket);
            }
            ticket.try_end()
        }
    }

    fn future(&self, case: &Arc<Case>, rng: &mut Rng, depth: u32) -> Hops<Result<(), Failed>> {
        let ticket = self.round.ticket_of(case, rng, &self.term);
        let errand = self.errand(rng, depth);
        Hops::new(ticket, rng, errand, Ticket::try_end, &self.round.wakes)
    }

    /// What some of the group's tasks do.
    fn errand(&self, rng: &mut Rng, depth: u32) -> Option<Errand> {
        let (member, mut rng) =
            (depth > 0 && rng.u8(..) < 128).then(|| (self.clone(), rng.fork()))?;
        Some(Box::new(move |ticket| {
            for _ in 0..rng.u32(1..4) {
                match rng.u8(0..8) {
                    0 => member.round.work_inside(ticket, &mut rng, depth - 1),
                    _ => member.act(&mut rng, depth - 1, true),
                }
                ticket.step();
            }
        }))
    }

    /// Waits until the group is quiet, perhaps together with others.
    fn wait_with_others(&self, rng: &mut Rng, is_outside: bool) {
        let has_company = is_outside && rng.u8(0..3) == 0;
        thread::scope(|scope| {
            if has_company {
                let mut rng = rng.fork();
                scope.spawn(move || self.wait(&mut rng));
            }
            self.wait(rng);
        });
    }

    fn wait(&self, rng: &mut Rng) {
        let before = self.term.accepted();
        let (oracle, wait) = (&self.round.oracle, Wait::Group(self.term.family));
        match rng.u8(0..6) {
            0 => self.hear_first(waiting(oracle, wait, || self.group.wait())),
            1 => while !self.wait_for_a_while(rng) {},
            2 if worker_index().is_none() => {
                self.hear_first(block_on(self.group.clone().into_future()));
            }
            _ => {
                let errors = waiting(oracle, wait, || self.group.wait_all());
                errors.into_iter().for_each(|error| self.term.hear(error));
            }
        }
        check_gone(&before);
    }

    /// Whether the group was quiet in time.
    fn wait_for_a_while(&self, rng: &mut Rng) -> bool {
        let before = self.term.accepted();
        let timeout = Duration::from_micros(rng.u64(0..200));
        let (oracle, wait) = (&self.round.oracle, Wait::Group(self.term.family));
        let Some(result) = waiting(oracle, wait, || self.group.wait_timeout(timeout)) else {
            return false;
        };
        self.hear_first(result);
        check_gone(&before);
        true
    }

    fn hear_first(&self, result: Result<(), GroupError<Failed>>) {
        if let Err(error) = result {
            self.term.incomplete.set();
            self.term.hear(error);
        }
    }
}

fn check_gone(cases: &[Arc<Case>]) {
    for case in cases {
        assert!(case.gone.get(), "it was not waited for: {case:?}");
    }
}
