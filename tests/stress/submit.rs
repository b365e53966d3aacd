//! Submitting in every way, and noting what became of it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use elastipool::{Handler, JoinHandle, RejectReason, Rejected, ThreadPool, blocking};
use fastrand::Rng;

use crate::groups::Term;
use crate::hops::{DelayedWake, Hops};
use crate::oracle::{Case, EXPECTED, Family, Fate, Kind, Oracle, Ticket, in_region};

/// What a submission does if there is no capacity.
enum Manner {
    Try,
    TryFor(Duration),
    Wait,
}

/// A handle that is still of interest.
pub(crate) type Kept = (Arc<Case>, JoinHandle<()>);

/// One round's surroundings.
#[derive(Clone)]
pub(crate) struct Round {
    pub(crate) pool: ThreadPool,
    /// Views of the pool, each with its handler.
    pub(crate) views: Arc<Vec<(ThreadPool, Handler<Ticket>)>>,
    /// Ends what it is invoked with.
    pub(crate) handler: Handler<Ticket>,
    pub(crate) oracle: Arc<Oracle>,
    pub(crate) cases: mpsc::Sender<Arc<Case>>,
    pub(crate) terms: mpsc::Sender<Arc<Term>>,
    pub(crate) wakes: mpsc::Sender<DelayedWake>,
    /// Whether tasks enter blocking regions. If not, they wait for each other all the same, as
    /// [`nest`](Self::nest) does.
    pub(crate) regions: bool,
}

impl Round {
    /// Returns these surroundings with a handle of the pool or of one of its views: what is
    /// submitted through them, also by their tasks, goes there until another one is chosen.
    pub(crate) fn through_any_view(&self, rng: &mut Rng) -> Round {
        let mut round = self.clone();
        if let Some((pool, handler)) = self.views.get(rng.usize(0..=self.views.len())) {
            (round.pool, round.handler) = (pool.clone(), handler.clone());
        }
        round
    }

    /// Opens the case of a task that is about to be submitted.
    pub(crate) fn open_case(&self, kind: Kind, family: Family) -> Arc<Case> {
        let case = Case::new(kind, family);
        self.cases.send(Arc::clone(&case)).expect("the cases are judged last");
        case
    }

    pub(crate) fn ticket(&self, case: &Arc<Case>, rng: &mut Rng) -> Ticket {
        let fate = if rng.u8(..) < 16 { Fate::Panics } else { Fate::Succeeds };
        Ticket::new(case, &self.oracle, fate, None)
    }

    fn closure(
        &self,
        case: &Arc<Case>,
        rng: &mut Rng,
        depth: u32,
    ) -> impl FnOnce() + Send + 'static + use<> {
        let ticket = self.ticket(case, rng);
        // Only some tasks hold the pool: they submit to it.
        let inner = (depth > 0 && rng.u8(..) < 96).then(|| (self.clone(), rng.fork()));
        let ends_in_region = self.regions && rng.u8(..) < 8;
        move || {
            let _running = ticket.begin();
            if let Some((round, mut rng)) = inner {
                round.work_inside(&ticket, &mut rng, depth - 1);
            }
            if ends_in_region {
                in_region(ticket.oracle(), || blocking(|| ticket.end()));
            } else {
                ticket.end();
            }
        }
    }

    fn future(&self, case: &Arc<Case>, rng: &mut Rng) -> Hops<()> {
        Hops::new(self.ticket(case, rng), rng, None, Ticket::end, &self.wakes)
    }

    fn manner(&self, rng: &mut Rng) -> Manner {
        match rng.u8(0..4) {
            0 => Manner::TryFor(Duration::from_micros(rng.u64(0..200))),
            1 => Manner::Wait,
            _ => Manner::Try,
        }
    }

    /// Submits one task in one of all ways.
    pub(crate) fn submit(&self, rng: &mut Rng, depth: u32) -> Option<Kept> {
        self.through_any_view(rng).submit_here(rng, depth)
    }

    fn submit_here(&self, rng: &mut Rng, depth: u32) -> Option<Kept> {
        let case = self.open_case(Kind::Free, Family::NONE);
        let manner = self.manner(rng);
        let handle = match rng.u8(0..7) {
            0 | 1 => {
                self.execute(&case, manner, self.closure(&case, rng, depth));
                None
            }
            2 => self.evaluate(&case, manner, self.closure(&case, rng, depth)),
            3 => {
                let ticket = self.ticket(&case, rng);
                self.complete(&case, manner, async move {
                    let _running = ticket.begin();
                    ticket.end();
                })
            }
            4 => {
                self.spawn(&case, manner, self.future(&case, rng));
                None
            }
            5 => {
                self.invoke(&case, manner, self.ticket(&case, rng));
                None
            }
            _ => self.spawn_await(&case, manner, self.future(&case, rng)),
        };
        let handle = handle?;
        case.has_handle.set();
        if rng.u8(..) < 32 {
            case.excused.set();
            handle.cancel();
        }
        Some((case, handle))
    }

    fn execute(&self, case: &Case, manner: Manner, task: impl FnOnce() + Send + 'static) {
        match manner {
            Manner::Try => _ = self.note(case, self.pool.try_execute(task)),
            Manner::TryFor(timeout) => {
                let submit = || self.pool.try_execute_for(task, timeout);
                self.note(case, in_region(&self.oracle, submit));
            }
            Manner::Wait => self.note_panic(case, || self.pool.execute(task)),
        }
    }

    fn evaluate(
        &self,
        case: &Case,
        manner: Manner,
        task: impl FnOnce() + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        match manner {
            Manner::Try => self.note(case, self.pool.try_evaluate(task)),
            Manner::TryFor(timeout) => {
                let submit = || self.pool.try_evaluate_for(task, timeout);
                self.note(case, in_region(&self.oracle, submit))
            }
            Manner::Wait => Some(self.note_guess(case, || self.pool.evaluate(task))),
        }
    }

    fn complete(
        &self,
        case: &Case,
        manner: Manner,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        match manner {
            Manner::Try | Manner::TryFor(_) => self.note(case, self.pool.try_complete(future)),
            Manner::Wait => Some(self.note_guess(case, || self.pool.complete(future))),
        }
    }

    fn spawn(&self, case: &Case, manner: Manner, future: Hops<()>) {
        match manner {
            Manner::Try | Manner::TryFor(_) => _ = self.note(case, self.pool.try_spawn(future)),
            Manner::Wait => self.note_panic(case, || self.pool.spawn(future)),
        }
    }

    fn spawn_await(&self, case: &Case, manner: Manner, future: Hops<()>) -> Option<JoinHandle<()>> {
        match manner {
            Manner::Try | Manner::TryFor(_) => self.note(case, self.pool.try_spawn_await(future)),
            Manner::Wait => Some(self.note_guess(case, || self.pool.spawn_await(future))),
        }
    }

    fn invoke(&self, case: &Case, manner: Manner, ticket: Ticket) {
        match manner {
            Manner::Try | Manner::TryFor(_) => {
                _ = self.note(case, self.handler.try_invoke(ticket));
            }
            Manner::Wait => self.note_panic(case, || self.handler.invoke(ticket)),
        }
    }

    /// Notes what became of a submission that returns whether it was accepted, and checks that a
    /// task that was refused came back.
    pub(crate) fn note<H, F>(&self, case: &Case, submitted: Result<H, Rejected<F>>) -> Option<H> {
        match submitted {
            Ok(handle) => {
                case.accepted.set();
                Some(handle)
            }
            Err(rejected) => {
                match rejected.reason() {
                    RejectReason::Closed => assert!(self.pool.is_closed()),
                    RejectReason::Full => assert!(self.oracle.capacity.is_some(), "no limit"),
                    // The group's tasks always succeed, but a shutdown that drops one cancels the
                    // group.
                    RejectReason::Cancelled if case.kind == Kind::Grouped => {
                        assert!(self.oracle.shut_down_now.get(), "{case:?}");
                    }
                    other => panic!("rejected: {other:?}"),
                }
                assert!(!case.dropped.get(), "it does not come back: {case:?}");
                case.rejected.set();
                drop(rejected.into_task());
                None
            }
        }
    }

    /// Notes what became of a submission that waits for capacity, and panics if the pool is closed.
    pub(crate) fn note_panic(&self, case: &Case, submit: impl FnOnce()) {
        EXPECTED.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| in_region(&self.oracle, submit)));
        EXPECTED.set(false);
        match result {
            Ok(()) => case.accepted.set(),
            Err(payload) => {
                let text = payload.downcast_ref::<String>().expect("a text");
                assert!(
                    text.starts_with("the task was not accepted: the pool is closed"),
                    "{text}"
                );
                assert!(self.pool.is_closed());
                case.rejected.set();
            }
        }
    }

    /// Notes what became of a submission that waits for capacity, and does not return whether it
    /// was accepted.
    pub(crate) fn note_guess<H>(&self, case: &Case, submit: impl FnOnce() -> H) -> H {
        let was_closed = self.pool.is_closed();
        let handle = in_region(&self.oracle, submit);
        if was_closed {
            case.rejected.set();
        } else if !self.pool.is_closed() {
            case.accepted.set();
        }
        handle
    }
}
