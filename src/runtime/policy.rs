//! Which view's task a worker takes next, and how many workers may run tasks of each view (`views.protocol.md`).
//!
//! A pool that has never had a view does not come here. Everything is under one lock: the queues of the views, the places
//! that workers hold, and the workers that wait for a place at the end of a blocking region. So a decision and its effect
//! are one step: no limit is exceeded and no reserve invaded in between.
//!
//! A take looks at each view that has queued tasks. That is cheap for a few dozen of them; the others cost nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::{array, mem};

use slab::Slab;

use crate::error::BuildError;
use crate::priority::Priority;
use crate::queue::local::is_turn_of_new;
use crate::runtime::counts::MustLook;
use crate::runtime::returning::{ReturnQueue, wait_until_released};
use crate::runtime::sizes::{Sizes, check_reserves};
use crate::sync::parker::Parker;
use crate::sync::{Counter, Mutex};

const LEVELS: usize = 3;

/// How often in a row a level with eligible work is passed over before it is served. With 18, each of two lower levels that
/// are due at the same time still gets one take in 20.
const MAX_PASSED: usize = 18;

/// The step of a view of weight 1. The step of weight n is n times smaller, and not zero for any n.
const FULL_STEP: u128 = 1 << 64;

/// An empty queue keeps no memory for more items than this.
const KEPT_CAPACITY: usize = 1024;

/// Identifies a view of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewId {
    /// Never reused.
    number: usize,
    /// Where its state is until it is removed. Then another view may have this key.
    key: usize,
}

impl ViewId {
    /// Returns its number in the order of the views, from 1.
    pub(crate) fn number(self) -> usize {
        self.number
    }
}

/// The view of tasks that are submitted to the pool itself.
pub(crate) const DEFAULT_VIEW: ViewId = ViewId { number: 0, key: 0 };

/// What a view asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) priority: Priority,
    pub(crate) weight: usize,
    pub(crate) limit: usize,
    pub(crate) reserve: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { priority: Priority::Normal, weight: 1, limit: usize::MAX, reserve: 0 }
    }
}

/// See the [module's documentation](self).
///
/// The methods read the sizes under the lock, under which `max_size` changes (race 15).
pub(crate) struct Policy<T> {
    state: Mutex<PolicyState<T>>,
    /// Changes when work becomes eligible, for workers that spin. What decides is the look under the lock.
    version: Counter,
}

struct PolicyState<T> {
    /// By the keys of the views.
    views: Slab<ViewState<T>>,
    /// The keys of the views that have queued tasks, but for the default view.
    busy: Vec<usize>,
    /// The views with workers that wait for a place. Also some that have none any more, until the next place is free.
    awaited: Vec<ViewId>,
    next_number: usize,
    levels: [Level; LEVELS],
    /// The sum of all reserves.
    reserved: usize,
    /// Places that are not covered by the reserve of their view.
    shared: usize,
    /// Workers that wait for a place.
    returning: usize,
}

/// The views of one priority.
#[derive(Default)]
struct Level {
    /// How often in a row it was passed over.
    passed: usize,
    /// The pass of the view that was served last.
    pass: u128,
    /// How often one of its views was served.
    served: u64,
}

struct ViewState<T> {
    id: ViewId,
    terms: Terms,
    /// The queued tasks. Those of the default view are not here.
    new: VecDeque<T>,
    woken: VecDeque<T>,
    /// Its index in [`PolicyState::busy`], if it has queued tasks.
    busy_at: usize,
    /// How many items were taken.
    turns: usize,
    /// How many workers hold a place.
    places: usize,
    /// Workers that have left a region and wait for a place.
    returning: ReturnQueue,
    /// The view with the smallest pass of its level is served next.
    pass: u128,
    /// The value of [`Level::served`] when this was eligible last. `None`: it starts anew.
    eligible_at: Option<u64>,
}

/// The view to serve next.
struct Choice {
    id: ViewId,
    /// Which levels have eligible work.
    contenders: [bool; LEVELS],
}

/// What a worker has taken.
pub(crate) struct Dequeued<T> {
    pub(crate) item: T,
    /// Whose place the worker holds now.
    pub(crate) place: ViewId,
}

impl<T> ViewState<T> {
    fn new(id: ViewId, terms: Terms) -> Self {
        ViewState {
            id,
            terms,
            new: VecDeque::new(),
            woken: VecDeque::new(),
            busy_at: 0,
            turns: 0,
            places: 0,
            returning: ReturnQueue::new(),
            pass: 0,
            eligible_at: None,
        }
    }

    fn len(&self) -> usize {
        self.new.len() + self.woken.len()
    }

    fn level(&self) -> usize {
        self.terms.priority as usize
    }

    /// Whether one more worker may run its tasks.
    fn has_place(&self, has_shared: bool) -> bool {
        self.places < self.terms.limit && (self.places < self.terms.reserve || has_shared)
    }

    /// Takes the oldest woken future or, every 16th time and if there is none, the oldest new task.
    fn pop(&mut self) -> Option<T> {
        self.turns = self.turns.wrapping_add(1);
        if is_turn_of_new(self.turns) {
            self.new.pop_front().or_else(|| self.woken.pop_front())
        } else {
            self.woken.pop_front().or_else(|| self.new.pop_front())
        }
    }
}

impl<T> PolicyState<T> {
    /// `None` if the view was removed, even if another one has its key now.
    fn view(&self, id: ViewId) -> Option<&ViewState<T>> {
        self.views.get(id.key).filter(|view| view.id == id)
    }

    fn view_mut(&mut self, id: ViewId) -> Option<&mut ViewState<T>> {
        self.views.get_mut(id.key).filter(|view| view.id == id)
    }

    /// Queues an item of a view.
    fn push(&mut self, id: ViewId, item: T, is_new: bool) -> &ViewState<T> {
        let Some(view) = self.views.get_mut(id.key) else {
            unreachable!("the item holds its view")
        };
        debug_assert_eq!(view.id, id);
        if view.len() == 0 {
            view.busy_at = self.busy.len();
            self.busy.push(id.key);
        }
        if is_new { &mut view.new } else { &mut view.woken }.push_back(item);
        view
    }

    /// Pops an item of a view other than the default one.
    fn pop(&mut self, key: usize) -> Option<T> {
        let view = &mut self.views[key];
        let item = view.pop();
        if item.is_some() && view.len() == 0 {
            self.has_become_idle(key);
        }
        item
    }

    /// The last item of a view was popped. Its queues keep no memory for more than a few.
    fn has_become_idle(&mut self, key: usize) {
        let view = &mut self.views[key];
        for queue in [&mut view.new, &mut view.woken] {
            if queue.capacity() > KEPT_CAPACITY {
                *queue = VecDeque::new();
            }
        }
        let at = view.busy_at;
        self.busy.swap_remove(at);
        if let Some(&moved) = self.busy.get(at) {
            self.views[moved].busy_at = at;
        }
    }

    /// How many places of the shared capacity are free.
    fn shared_left(&self, max_size: usize) -> usize {
        (max_size - self.reserved).saturating_sub(self.shared)
    }

    fn acquire(&mut self, id: ViewId) {
        if let Some(view) = self.view_mut(id) {
            let is_shared = view.places >= view.terms.reserve;
            view.places += 1;
            self.shared += usize::from(is_shared);
        }
    }

    /// A view that was removed meanwhile took its places with it.
    fn release(&mut self, id: ViewId, max_size: usize) {
        if let Some(view) = self.view_mut(id) {
            view.places -= 1;
            let was_shared = view.places >= view.terms.reserve;
            self.shared -= usize::from(was_shared);
        }
        self.admit_returning(max_size);
    }

    fn try_acquire(&mut self, id: ViewId, max_size: usize) -> bool {
        let has_shared = self.shared_left(max_size) > 0;
        let has_place = self.view(id).is_none_or(|view| view.has_place(has_shared));
        if has_place {
            self.acquire(id);
        }
        has_place
    }

    /// Gives free places to the workers that wait for one (race 7).
    fn admit_returning(&mut self, max_size: usize) {
        if self.returning == 0 {
            return;
        }
        let is_awaited = |state: &Self, id: ViewId| {
            state.view(id).is_some_and(|view| !view.returning.is_empty())
        };
        let mut awaited = mem::take(&mut self.awaited);
        // The oldest view first.
        awaited.sort_unstable_by_key(|id| id.number);
        awaited.retain(|&id| {
            while is_awaited(self, id) && self.try_acquire(id, max_size) {
                self.returning -= 1;
                if let Some(view) = self.view_mut(id) {
                    view.returning.release_first();
                }
            }
            is_awaited(self, id)
        });
        self.awaited = awaited;
    }

    /// Chooses the view to serve next. The default view is assumed to have work if `tries_default`.
    fn choose(&mut self, max_size: usize, tries_default: bool) -> Option<Choice> {
        let has_shared = self.shared_left(max_size) > 0;
        let PolicyState { views, busy, levels, .. } = self;
        let mut best: [Option<(u128, ViewId)>; LEVELS] = [None; LEVELS];
        let default = tries_default.then_some(DEFAULT_VIEW.key);
        for key in default.into_iter().chain(busy.iter().copied()) {
            let view = &mut views[key];
            if !view.has_place(has_shared) {
                continue;
            }
            let level = &levels[view.level()];
            // No credit from a time in which it was not eligible.
            if view.eligible_at.is_none_or(|at| at + 1 < level.served) {
                view.pass = view.pass.max(level.pass);
            }
            view.eligible_at = Some(level.served);
            let best = &mut best[view.level()];
            // Of two the older view first.
            let is_before =
                |(pass, id): (u128, ViewId)| (view.pass, view.id.number) < (pass, id.number);
            if best.is_none_or(is_before) {
                *best = Some((view.pass, view.id));
            }
        }
        let passed = |index: &usize| levels[*index].passed;
        let contenders = (0..LEVELS).filter(|&index| best[index].is_some());
        let due = contenders.filter(|index| passed(index) >= MAX_PASSED).max_by_key(passed);
        let chosen = due.or_else(|| best.iter().position(Option::is_some))?;
        let (_, id) = best[chosen]?;
        Some(Choice { id, contenders: best.map(|best| best.is_some()) })
    }

    /// Takes the next item and its place. `pop_default` takes one of the default view, if there is any.
    fn take(
        &mut self,
        max_size: usize,
        mut pop_default: impl FnMut() -> Option<T>,
    ) -> Option<Dequeued<T>> {
        let mut tries_default = true;
        loop {
            let Choice { id: place, contenders } = self.choose(max_size, tries_default)?;
            let item = if place == DEFAULT_VIEW { pop_default() } else { self.pop(place.key) };
            let view = &mut self.views[place.key];
            let Some(item) = item else {
                // Only the default view can be without work here: choose again without it.
                tries_default = false;
                view.eligible_at = None;
                continue;
            };
            for (level, is_contender) in self.levels.iter_mut().zip(contenders) {
                level.passed += usize::from(is_contender);
            }
            let level = &mut self.levels[view.level()];
            level.passed = 0;
            level.pass = view.pass;
            level.served += 1;
            view.pass += FULL_STEP / view.terms.weight as u128;
            if !tries_default && !contenders[Priority::Normal as usize] {
                // Its level was passed over with nothing to take.
                self.levels[Priority::Normal as usize].passed = 0;
            }
            self.acquire(place);
            return Some(Dequeued { item, place });
        }
    }

    /// Whether there are [eligible](Self::eligible) items.
    fn has_eligible(&self, max_size: usize, is_queued: impl FnOnce() -> bool) -> bool {
        let has_shared = self.shared_left(max_size) > 0;
        self.busy.iter().any(|&key| self.views[key].has_place(has_shared))
            || (self.views[DEFAULT_VIEW.key].has_place(has_shared) && is_queued())
    }

    /// How many queued items could be taken now, if that many workers came. `queued` are those of the default view.
    fn eligible(&self, max_size: usize, queued: impl FnOnce() -> usize) -> usize {
        let shared_left = self.shared_left(max_size);
        // Also without shared capacity a view may have places left of its reserve.
        let has_place = |view: &&ViewState<T>| view.has_place(shared_left > 0);
        let default = Some(&self.views[DEFAULT_VIEW.key]).filter(has_place);
        let others = self.busy.iter().map(|&key| &self.views[key]).filter(has_place);
        let others = others.map(|view| (view, view.len()));
        let (mut from_reserves, mut from_shared) = (0, 0);
        for (view, len) in default.map(|view| (view, queued())).into_iter().chain(others) {
            let may_start = len.min(view.terms.limit - view.places);
            let from_reserve = may_start.min(view.terms.reserve.saturating_sub(view.places));
            from_reserves += from_reserve;
            from_shared += may_start - from_reserve;
        }
        from_reserves + from_shared.min(shared_left)
    }
}

impl<T> Policy<T> {
    pub(crate) fn new() -> Self {
        let mut views = Slab::new();
        let key = views.insert(ViewState::new(DEFAULT_VIEW, Terms::default()));
        debug_assert_eq!(key, DEFAULT_VIEW.key);
        let state = PolicyState {
            views,
            busy: Vec::new(),
            awaited: Vec::new(),
            next_number: 1,
            levels: array::from_fn(|_| Level::default()),
            reserved: 0,
            shared: 0,
            returning: 0,
        };
        Policy { state: Mutex::new(state), version: Counter::default() }
    }

    /// Adds a view, unless the reserves would leave no worker to the others.
    pub(crate) fn add(&self, terms: Terms, sizes: &Sizes) -> Result<ViewId, BuildError> {
        let mut state = self.state.lock();
        check_reserves(state.reserved.saturating_add(terms.reserve), sizes.max())?;
        let id = ViewId { number: state.next_number, key: state.views.vacant_key() };
        state.next_number += 1;
        state.reserved += terms.reserve;
        state.views.insert(ViewState::new(id, terms));
        Ok(id)
    }

    /// Removes a view that has no tasks and no handles. Its reserve becomes shared capacity.
    pub(crate) fn remove(&self, id: ViewId, sizes: &Sizes) -> MustLook {
        let mut state = self.state.lock();
        if state.view(id).is_some() {
            let view = state.views.remove(id.key);
            debug_assert_eq!(view.len(), 0);
            state.reserved -= view.terms.reserve;
            // A worker may not have released its place yet.
            state.shared -= view.places.saturating_sub(view.terms.reserve);
            state.admit_returning(sizes.max());
        }
        MustLook::owed()
    }

    /// Calls `change`, which may change `max_size`, with the sum of the reserves.
    pub(crate) fn with_reserved<R>(&self, change: impl FnOnce(usize) -> R) -> R {
        let state = self.state.lock();
        change(state.reserved)
    }

    /// Gives places that a larger `max_size` has added to the workers that wait for one.
    pub(crate) fn admit_returning(&self, sizes: &Sizes) {
        self.state.lock().admit_returning(sizes.max());
    }

    /// Queues an item of a view. Returns whether work of the view is eligible now: otherwise the next worker that releases
    /// a place looks (race 35).
    pub(crate) fn push(&self, id: ViewId, item: T, is_new: bool, sizes: &Sizes) -> bool {
        let mut state = self.state.lock();
        let has_shared = state.shared_left(sizes.max()) > 0;
        let is_eligible = state.push(id, item, is_new).has_place(has_shared);
        drop(state);
        if is_eligible {
            self.version.increment();
        }
        is_eligible
    }

    /// Removes stale items at both ends of a view's queue of new tasks: first the newest ones, then the oldest ones, each time up
    /// to the first item that is not stale. `is_stale` is called under the lock.
    pub(crate) fn skip(&self, id: ViewId, is_stale: impl Fn(&T) -> bool) -> Vec<T> {
        let mut state = self.state.lock();
        let Some(view) = state.view_mut(id).filter(|view| view.len() > 0) else {
            return Vec::new();
        };
        let mut skipped = Vec::new();
        while view.new.back().is_some_and(&is_stale) {
            skipped.extend(view.new.pop_back());
        }
        while view.new.front().is_some_and(&is_stale) {
            skipped.extend(view.new.pop_front());
        }
        if view.len() == 0 {
            state.has_become_idle(id.key);
        }
        skipped
    }

    /// Releases the place `held`, and takes the next item with its place. Returns also whether eligible work is left, given
    /// whether an item `is_queued` for the default view.
    pub(crate) fn take(
        &self,
        held: Option<ViewId>,
        sizes: &Sizes,
        pop_default: impl FnMut() -> Option<T>,
        is_queued: impl FnOnce() -> bool,
    ) -> (Option<Dequeued<T>>, bool) {
        let mut state = self.state.lock();
        if let Some(held) = held {
            state.release(held, sizes.max());
        }
        let taken = state.take(sizes.max(), pop_default);
        let has_more = state.has_eligible(sizes.max(), is_queued);
        drop(state);
        if has_more {
            self.version.increment();
        }
        (taken, has_more)
    }

    /// Releases a place. The caller then looks for work (race 35).
    pub(crate) fn release(&self, held: ViewId, sizes: &Sizes) -> MustLook {
        self.state.lock().release(held, sizes.max());
        self.version.increment();
        MustLook::owed()
    }

    /// Releases the place `held`, and acquires one of the view `id`. `false` if there is none: `parker` is in the view's
    /// returning queue then, and the caller must [wait](Self::wait).
    pub(crate) fn exchange(
        &self,
        held: Option<ViewId>,
        id: ViewId,
        sizes: &Sizes,
        parker: &Arc<Parker>,
    ) -> bool {
        let mut state = self.state.lock();
        if let Some(held) = held {
            state.release(held, sizes.max());
            self.version.increment();
        }
        if state.try_acquire(id, sizes.max()) {
            return true;
        }
        // Race 7: in the same section as the attempt.
        if let Some(view) = state.view_mut(id) {
            view.returning.push(parker);
            state.returning += 1;
        }
        if !state.awaited.contains(&id) {
            state.awaited.push(id);
        }
        false
    }

    /// Acquires a place, free or not.
    pub(crate) fn acquire_over_limit(&self, id: ViewId) {
        self.state.lock().acquire(id);
    }

    /// Waits in the returning queue until there is a place, or for as long as the patience lasts.
    pub(crate) fn wait(&self, id: ViewId, parker: &Arc<Parker>) {
        wait_until_released(parker, |seen| {
            let mut state = self.state.lock();
            let view = state.view_mut(id);
            let forced = view.map_or(0, |view| view.returning.force(parker, seen));
            state.returning -= forced;
            (0..forced).for_each(|_| state.acquire(id));
            forced > 0
        });
    }

    /// Whether a queued item could be taken now. `is_queued`: one of the default view.
    pub(crate) fn has_eligible(&self, sizes: &Sizes, is_queued: impl FnOnce() -> bool) -> bool {
        self.state.lock().has_eligible(sizes.max(), is_queued)
    }

    /// How many queued items could be taken now, if that many workers came. `queued` are those of the default view.
    pub(crate) fn eligible(&self, sizes: &Sizes, queued: impl FnOnce() -> usize) -> usize {
        self.state.lock().eligible(sizes.max(), queued)
    }

    /// For a worker that spins: whether it must look again since the version was `seen`.
    pub(crate) fn version(&self) -> usize {
        self.version.get()
    }

    /// How many items are queued, of one view or of all. Those of the default view do not count.
    pub(crate) fn len(&self, id: Option<ViewId>) -> usize {
        let state = self.state.lock();
        match id {
            Some(id) => state.view(id).map_or(0, ViewState::len),
            None => state.busy.iter().map(|&key| state.views[key].len()).sum(),
        }
    }

    /// Pops all items of the oldest view that has some, for an immediate shutdown: the new tasks first.
    pub(crate) fn pop_all_of_oldest(&self) -> Option<impl Iterator<Item = T> + use<T>> {
        let mut state = self.state.lock();
        let oldest = state.busy.iter().min_by_key(|&&key| state.views[key].id.number).copied()?;
        let view = &mut state.views[oldest];
        let (new, woken) = (mem::take(&mut view.new), mem::take(&mut view.woken));
        state.has_become_idle(oldest);
        Some(new.into_iter().chain(woken))
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use super::{Policy, Priority, Terms, ViewId};
    use crate::runtime::sizes::Sizes;

    const WORKERS: usize = 4;

    fn terms() -> Terms {
        let priority = [Priority::High, Priority::Normal, Priority::Low][fastrand::usize(..3)];
        let limit = if fastrand::bool() { usize::MAX } else { fastrand::usize(1..3) };
        Terms { priority, weight: fastrand::usize(1..4), limit, reserve: fastrand::usize(..2) }
    }

    /// An item: the number of its view, whether it is a new task, and its number among these.
    type Item = (usize, bool, usize);

    /// What was pushed for a view, and has come out, of its woken futures and its new tasks.
    struct Seen {
        id: ViewId,
        pushed: [usize; 2],
        popped: [usize; 2],
    }

    impl Seen {
        fn pop(&mut self, (number, is_new, index): Item) {
            let popped = &mut self.popped[usize::from(is_new)];
            assert_eq!((number, index), (self.id.number(), *popped), "in their order");
            *popped += 1;
        }

        fn queued(&self) -> usize {
            self.pushed.iter().sum::<usize>() - self.popped.iter().sum::<usize>()
        }
    }

    /// Views come and go, with items of random views in between.
    #[test]
    fn items_of_each_view_come_out_once_and_in_order() {
        let sizes = Sizes::new(0, WORKERS, Duration::ZERO);
        for _ in 0..200 {
            let policy = Policy::<Item>::new();
            let mut views: HashMap<usize, Seen> = HashMap::new();
            let mut held: Vec<Option<ViewId>> = vec![None; WORKERS];
            for _ in 0..500 {
                let some = views.keys().copied().nth(fastrand::usize(..=views.len()));
                match (fastrand::u8(..8), some) {
                    (0, _) => {
                        if let Ok(id) = policy.add(terms(), &sizes) {
                            views.insert(id.number(), Seen { id, pushed: [0; 2], popped: [0; 2] });
                        }
                    }
                    // Only a view without tasks is removed; a worker may hold a place of it.
                    (1, Some(number)) if views[&number].queued() == 0 => {
                        _ = policy.remove(views[&number].id, &sizes);
                        views.remove(&number);
                    }
                    (2..=4, Some(number)) => {
                        let (seen, is_new) = (views.get_mut(&number).unwrap(), fastrand::bool());
                        let pushed = &mut seen.pushed[usize::from(is_new)];
                        policy.push(seen.id, (number, is_new, *pushed), is_new, &sizes);
                        *pushed += 1;
                    }
                    _ => {
                        let held = &mut held[fastrand::usize(..WORKERS)];
                        let (taken, has_more) = policy.take(held.take(), &sizes, || None, || false);
                        if let Some(taken) = taken {
                            let seen = views.get_mut(&taken.item.0).unwrap();
                            assert_eq!(taken.place, seen.id);
                            seen.pop(taken.item);
                            *held = Some(taken.place);
                        }
                        assert_eq!(has_more, policy.eligible(&sizes, || 0) > 0);
                    }
                }
                assert_eq!(policy.len(None), views.values().map(Seen::queued).sum());
            }
            views.values().for_each(|seen| assert_eq!(policy.len(Some(seen.id)), seen.queued()));
            let mut last = 0;
            while let Some(items) = policy.pop_all_of_oldest() {
                let items: Vec<_> = items.collect();
                assert!(items.is_sorted_by_key(|(_, is_new, _)| !is_new), "new tasks first");
                let number = items[0].0;
                assert!(number > last, "the oldest view first");
                last = number;
                items.into_iter().for_each(|item| views.get_mut(&number).unwrap().pop(item));
                assert_eq!(views[&number].queued(), 0);
            }
            assert_eq!(policy.len(None), 0);
            assert!(views.values().all(|seen| seen.queued() == 0));
        }
    }

    /// Without this, a worker of a removed view would release a place of the view that has its key now.
    #[test]
    fn a_view_with_the_key_of_a_removed_one_is_another() {
        let sizes = Sizes::new(0, WORKERS, Duration::ZERO);
        let policy = Policy::<()>::new();
        let limited = Terms { limit: 1, ..Terms::default() };
        let removed = policy.add(limited, &sizes).unwrap();
        policy.push(removed, (), true, &sizes);
        assert!(policy.take(None, &sizes, || None, || false).0.is_some());
        _ = policy.remove(removed, &sizes);
        let other = policy.add(limited, &sizes).unwrap();
        assert_eq!(other.key, removed.key, "or this shows nothing");
        policy.push(other, (), true, &sizes);
        policy.push(other, (), true, &sizes);
        assert!(policy.take(None, &sizes, || None, || false).0.is_some());
        // The worker of the removed view: there is no place for it.
        assert!(policy.take(Some(removed), &sizes, || None, || false).0.is_none());
        assert_eq!((policy.len(Some(removed)), policy.len(Some(other))), (0, 1));
    }

    #[test]
    fn of_two_views_with_equal_claims_the_older_one_comes_first() {
        let sizes = Sizes::new(0, WORKERS, Duration::ZERO);
        let policy = Policy::new();
        let add = || policy.add(Terms::default(), &sizes).unwrap();
        let (first, older, younger) = (add(), add(), add());
        policy.push(younger, younger.number(), true, &sizes);
        policy.push(first, first.number(), true, &sizes);
        policy.push(older, older.number(), true, &sizes);
        let numbers = [(); 3]
            .map(|()| policy.take(None, &sizes, || None, || false).0.map(|taken| taken.item));
        assert_eq!(numbers, [first, older, younger].map(|id| Some(id.number())));
    }
}
