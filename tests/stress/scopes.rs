//! Scopes: when one returns all of its tasks have ended, at that moment, and no panic is lost.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elastipool::{Scope, ScopedJoinHandle, worker_index};
use fastrand::Rng;

use crate::oracle::{Case, EXPECTED, Expected, Kind, add, get, in_region, panic_quietly};
use crate::submit::Round;

/// The payload of a body's panic, which counts how often somebody hears of it.
pub(crate) struct BodyPanic(pub(crate) Arc<AtomicUsize>);

/// A handle that is still of interest.
type Kept<'scope> = (Arc<Case>, ScopedJoinHandle<'scope, ()>);

/// What is outside of a scope.
#[derive(Clone, Copy)]
struct Environment<'env> {
    round: &'env Round,
    /// Those of the scope's tasks.
    cases: &'env Mutex<Vec<Arc<Case>>>,
}

impl Round {
    /// Opens a scope and checks how it ends.
    pub(crate) fn scope(&self, rng: &mut Rng, depth: u32) {
        let cases = Mutex::default();
        let environment = Environment { round: self, cases: &cases };
        let body_panics = rng.u8(..) < 16;
        let body_reports = Arc::new(AtomicUsize::new(0));
        let open = || {
            self.pool.scope(|scope| {
                environment.body(scope, rng, depth);
                // For lost tasks: from here to the end of the scope nothing else runs on this thread.
                EXPECTED.set(true);
                if body_panics {
                    panic_quietly(BodyPanic(Arc::clone(&body_reports)));
                }
            });
        };
        let result = catch_unwind(AssertUnwindSafe(|| in_region(&self.oracle, open)));
        EXPECTED.set(false);
        let cases = cases.into_inner().expect("not poisoned");
        for case in &cases {
            assert!(case.gone.get(), "it has outlived its scope: {case:?}");
        }
        self.check_end(&cases, body_panics, result);
        // It is resumed, or the panic handler is told.
        assert_eq!(get(&body_reports), usize::from(body_panics), "reports of the body's panic");
    }

    fn check_end(
        &self,
        cases: &[Arc<Case>],
        body_panicked: bool,
        result: Result<(), Box<dyn Any + Send>>,
    ) {
        let is_unheard = |case: &Arc<Case>| case.panicked.get() && !case.told_panic.get();
        let is_unheard_of = cases.iter().any(is_unheard);
        let is_lost = |case: &&Arc<Case>| case.is_dropped() && !case.has_handle.get();
        let lost = cases.iter().filter(is_lost).count();
        assert!(lost == 0 || self.oracle.shut_down_now.get(), "{lost} tasks are lost");
        let Err(payload) = result else {
            let panicked = is_unheard_of || body_panicked || lost > 0;
            assert!(!panicked, "the scope says nothing: {lost} {cases:?}");
            return;
        };
        if let Some(Expected(case)) = payload.downcast_ref() {
            let is_own = cases.iter().any(|own| Arc::ptr_eq(own, case));
            assert!(is_own && is_unheard(case), "somebody else's panic: {case:?}");
            add(&case.reports);
        } else if let Some(BodyPanic(reports)) = payload.downcast_ref() {
            add(reports);
        } else {
            assert!(!is_unheard_of && !body_panicked, "there was a panic to be resumed");
            let text = payload.downcast_ref::<String>().expect("a text");
            let start = format!("{lost} of a scope's tasks were dropped without having been run");
            assert!(lost > 0 && text.starts_with(&start), "{lost} tasks are lost: {text}");
        }
    }
}

impl<'env> Environment<'env> {
    fn body<'scope>(self, scope: &'scope Scope<'scope, 'env>, rng: &mut Rng, depth: u32) {
        let mut kept = Vec::new();
        for _ in 0..rng.u32(0..6) {
            kept.extend(self.submit_and_listen(scope, rng, depth));
        }
        for (case, handle) in kept {
            if rng.bool() {
                case.hear(in_region(&self.round.oracle, || handle.try_await_complete()));
            }
        }
    }

    /// Submits a task, and waits for its handle, drops it or returns it.
    fn submit_and_listen<'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        rng: &mut Rng,
        depth: u32,
    ) -> Option<Kept<'scope>> {
        let (case, handle) = self.submit(scope, rng, depth)?;
        // A task waits for others only if there are to be blocking regions.
        let may_wait = self.round.regions || worker_index().is_none();
        let oracle = &self.round.oracle;
        match rng.u8(0..5) {
            0 if may_wait => {
                case.hear(in_region(oracle, || handle.try_await_complete()));
                None
            }
            1 if may_wait => {
                let timeout = Duration::from_micros(rng.u64(0..200));
                match in_region(oracle, || handle.await_complete_timeout(timeout)) {
                    Ok(result) => {
                        case.hear(result);
                        None
                    }
                    Err(handle) => Some((case, handle)),
                }
            }
            2 | 3 if may_wait => Some((case, handle)),
            _ => None,
        }
    }

    fn submit<'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        rng: &mut Rng,
        depth: u32,
    ) -> Option<Kept<'scope>> {
        let round = self.round;
        let case = round.open_case(Kind::Scoped);
        self.cases.lock().expect("not poisoned").push(Arc::clone(&case));
        let task = self.closure(scope, &case, rng, depth);
        let handle = match rng.u8(0..4) {
            0 => {
                round.note_panic(&case, || scope.execute(task));
                None
            }
            1 => {
                round.note(&case, scope.try_execute(task));
                None
            }
            2 => round.note(&case, scope.try_evaluate(task)),
            _ => Some(round.note_guess(&case, || scope.evaluate(task))),
        };
        let handle = handle?;
        case.has_handle.set();
        Some((case, handle))
    }

    /// A task that may submit to its own scope, or open another.
    fn closure<'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        case: &Arc<Case>,
        rng: &mut Rng,
        depth: u32,
    ) -> impl FnOnce() + Send + use<'scope, 'env> {
        let ticket = self.round.ticket(case, rng);
        let inner = (depth > 0 && rng.u8(..) < 96).then(|| rng.fork());
        move || {
            ticket.begin();
            if let Some(mut rng) = inner {
                for _ in 0..rng.u32(1..4) {
                    match rng.u8(0..4) {
                        0 => self.round.work_inside(&ticket, &mut rng, depth - 1),
                        _ => drop(self.submit_and_listen(scope, &mut rng, depth - 1)),
                    }
                    ticket.step();
                }
            }
            ticket.end();
        }
    }
}
