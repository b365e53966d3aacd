//! Keeps closures queued that compute, as long as something else is measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::engines::{Pool, leak};
use crate::rows::closures::burn;

/// A number of closures, of which each submits another one when it ends.
pub(crate) struct Feed(&'static State);

#[derive(Default)]
struct State {
    ended: AtomicU64,
    is_over: AtomicBool,
}

impl Feed {
    pub(crate) fn start<P: Pool>(pool: &'static P, queued: u64, micros: u64) -> Self {
        let state: &State = leak(State::default());
        (0..queued).for_each(|_| feed(pool, state, micros));
        Feed(state)
    }

    /// How many have ended.
    pub(crate) fn count(&self) -> u64 {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// Lets the queued ones end without computing.
    pub(crate) fn end(self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

fn feed<P: Pool>(pool: &'static P, state: &'static State, micros: u64) {
    pool.execute(move || {
        if state.is_over.load(Ordering::Relaxed) {
            return;
        }
        burn(micros);
        state.ended.fetch_add(1, Ordering::Relaxed);
        feed(pool, state, micros);
    });
}
