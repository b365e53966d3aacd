//! Tasks that submit others and wait for all of these: nothing is lost on the way, and it costs few
//! threads.
//!
//! All of them end by themselves, once they are run: they wait for nothing but each other.

use std::sync::Arc;

use elastipool::JoinHandle;
use fastrand::Rng;

use crate::oracle::{Case, Family, Fate, Kind, Ticket, Wait, waiting};
use crate::submit::Round;

/// How many tasks may wait for each other in a row. (Those of a scope that is opened in one of them
/// as well.)
pub(crate) const DEPTH: u32 = 6;

impl Round {
    /// Submits some tasks and waits for all of them.
    pub(crate) fn nest(&self, rng: &mut Rng, depth: u32) {
        match rng.u8(0..4) {
            0 => self.scope(rng, depth),
            1 => self.nest_in_group(rng, depth),
            _ => self.nest_by_handles(rng, depth),
        }
    }

    fn nest_by_handles(&self, rng: &mut Rng, depth: u32) {
        let mut kept = Vec::new();
        for _ in 0..rng.u32(0..4) {
            let case = self.open_case(Kind::Free, Family::NONE);
            let ticket = self.ticket(&case, rng);
            let task = self.nested(ticket, rng, depth);
            let handle = match rng.u8(0..4) {
                0 => self.note(&case, self.pool.try_evaluate(task)),
                1 => Some(self.note_guess(&case, || self.pool.complete(async { task() }))),
                2 => Some(self.note_guess(&case, || self.pool.spawn_await(async { task() }))),
                _ => Some(self.note_guess(&case, || self.pool.evaluate(task))),
            };
            let Some(handle) = handle else { continue };
            case.has_handle.set();
            if rng.u8(..) < 16 {
                case.excused.set();
                handle.cancel();
            }
            kept.push((case, handle));
        }
        rng.shuffle(&mut kept);
        for (case, handle) in kept {
            self.hear(&case, handle);
        }
    }

    fn nest_in_group(&self, rng: &mut Rng, depth: u32) {
        let (group, family) = (self.pool.group::<()>(), Family::new());
        let mut cases = Vec::new();
        for _ in 0..rng.u32(0..4) {
            let case = self.open_case(Kind::Grouped, family);
            let ticket = Ticket::new(&case, &self.oracle, Fate::Succeeds, None);
            let task = self.nested(ticket, rng, depth);
            let task = || {
                task();
                Ok(())
            };
            if rng.bool() {
                self.note(&case, group.try_execute(task));
            } else {
                self.note(&case, group.try_spawn(async { task() }));
            }
            cases.push(case);
        }
        let errors = waiting(&self.oracle, Wait::Group(family), || group.wait_all());
        for case in &cases {
            assert!(case.gone.get(), "it was not waited for: {case:?}");
        }
        assert!(errors.is_empty() || self.oracle.shut_down_now.get(), "{errors:?} {cases:?}");
    }

    /// Waits for the handle without a limit.
    pub(crate) fn hear(&self, case: &Arc<Case>, handle: JoinHandle<()>) {
        let wait = Wait::Task(Arc::clone(case));
        case.hear(waiting(&self.oracle, wait, || handle.try_await_complete()));
    }

    /// A task that may submit others and wait for them.
    fn nested(
        &self,
        ticket: Ticket,
        rng: &mut Rng,
        depth: u32,
    ) -> impl FnOnce() + Send + 'static + use<> {
        let inner = (depth > 0).then(|| (self.clone(), rng.fork()));
        move || {
            let _running = ticket.begin();
            if let Some((round, mut rng)) = inner {
                round.nest(&mut rng, depth - 1);
                ticket.step();
            }
            ticket.end();
        }
    }
}
