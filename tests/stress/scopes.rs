//! Scopes: when one returns all of its tasks have ended, at that moment, and no panic is lost.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elastipool::{Scope, ScopedJoinHandle, worker_index};
use fastrand::Rng;

use crate::oracle::{
    Case, EXPECTED, Expected, Family, Kind, Wait, add, get, panic_quietly, waiting,
};
use crate::submit::Round;

/// The payload of a body's panic, which counts how often it is received.
pub(crate) struct BodyPanic(pub(crate) Arc<AtomicUsize>);

/// What a scope says of tasks that were not run.
pub(crate) const LOST: &str = "of a scope's tasks were dropped without having been run";

/// A handle that is still of interest.
type Kept<'scope> = (Arc<Case>, ScopedJoinHandle<'scope, ()>);

/// What is outside of a scope.
#[derive(Clone, Copy)]
struct Environment<'env> {
    round: &'env Round,
    family: Family,
    /// Those of the scope's tasks.
    cases: &'env Mutex<Vec<Arc<Case>>>,
}

impl Round {
    /// Opens a scope and checks how it ends.
    pub(crate) fn scope(&self, rng: &mut Rng, depth: u32) {
        let cases = Mutex::default();
        let family = Family::new();
        let environment = Environment { round: self, family, cases: &cases };
        let body_panics = rng.u8(..) < 16;
        let body_reports = Arc::new(AtomicUsize::new(0));
        let open = || {
            self.pool.scope(|scope| {
                environment.body(scope, rng, depth);
                if body_panics {
                    panic_quietly(BodyPanic(Arc::clone(&body_reports)));
                }
            });
        };
        let wait = || waiting(&self.oracle, Wait::Scope(family), open);
        let result = catch_unwind(AssertUnwindSafe(wait));
        EXPECTED.set(false);
        let cases = cases.into_inner().expect("not poisoned");
        for case in &cases {
            assert!(case.gone.get(), "it has outlived its scope: {case:?}");
        }
        self.check_end(&cases, body_panics, result);
        // It is resumed, or the panic handler receives it.
        assert_eq!(get(&body_reports), usize::from(body_panics), "reports of the body's panic");
    }

    fn check_end(
        &self,
        cases: &[Arc<Case>],
        body_panicked: bool,
        result: Result<(), Box<dyn Any + Send>>,
    ) {
        let is_unheard = |case: &Arc<Case>| case.panicked.get() && !case.received_panic.get();
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
            assert!(is_own && is_unheard(case), "another task's panic: {case:?}");
            add(&case.reports);
        } else if let Some(BodyPanic(reports)) = payload.downcast_ref() {
            add(reports);
        } else {
            assert!(!is_unheard_of && !body_panicked, "there was a panic to be resumed");
            let text = payload.downcast_ref::<String>().expect("a text");
            let start = format!("{lost} {LOST}");
            assert!(lost > 0 && text.starts_with(&start), "{lost} tasks are lost: {text}");
        }
    }
}

/// Waits for the handle without a limit.
fn hear(round: &Round, case: &Arc<Case>, handle: ScopedJoinHandle<'_, ()>) {
    let wait = Wait::Task(Arc::clone(case));
    case.hear(waiting(&round.oracle, wait, || handle.try_await_complete()));
}

impl<'env> Environment<'env> {
    fn body<'scope>(self, scope: &'scope Scope<'scope, 'env>, rng: &mut Rng, depth: u32) {
        let mut kept = Vec::new();
        for _ in 0..rng.u32(0..6) {
            kept.extend(self.submit_and_listen(scope, rng, depth));
        }
        for (case, handle) in kept {
            if rng.bool() {
                hear(self.round, &case, handle);
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
        // A task waits with a limit only if there are to be blocking regions.
        let may_give_up = self.round.regions || worker_index().is_none();
        match rng.u8(0..5) {
            0 => {
                hear(self.round, &case, handle);
                None
            }
            1 if may_give_up => {
                let timeout = Duration::from_micros(rng.u64(0..200));
                let wait = Wait::Task(Arc::clone(&case));
                match waiting(&self.round.oracle, wait, || handle.await_complete_timeout(timeout)) {
                    Ok(result) => {
                        case.hear(result);
                        None
                    }
                    Err(handle) => Some((case, handle)),
                }
            }
            2 | 3 => Some((case, handle)),
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
        let case = round.open_case(Kind::Scoped, self.family);
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
            let _running = ticket.begin();
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
