//! Which view's task a worker takes next, and how many workers may run tasks of each view
//! (`views/protocol.md`).
//!
//! A pool that has never had a view does not come here, nor does a worker between two tasks of the
//! default view while its [gate](Gate) is open. Everything is under one lock: the queues of the
//! views, the places that workers hold, and the workers that wait for a place. So a decision and its
//! effect are one step: no limit is exceeded and no reserve invaded in between.
//!
//! A take looks at each view that has queued tasks. That is cheap for a few dozen of them; the
//! others cost nothing.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::iter;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::crew::{MustLook, Sizes, check_reserves};
use crate::error::BuildError;
use crate::priority::Priority;
use crate::queue::is_turn_of_new;
use crate::sync::parker::Parker;
use crate::sync::returning::{ReturnQueue, wait_until_released};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};
use crate::task::{DEFAULT_VIEW, KEPT_TASKS, Numbered, ViewId};

/// One for each priority.
type Levels<T> = [T; Priority::Low as usize + 1];

/// How often in a row a level with eligible work is passed over before it is served. With 18, each
/// of two lower levels that are due at the same time still gets one take in 20.
const MAX_PASSED: usize = 18;

/// The step of a view of weight 1. The step of weight n is n times smaller, and not zero for any n.
const FULL_STEP: u128 = 1 << 64;

/// What a view asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) priority: Priority,
    pub(crate) weight: usize,
    pub(crate) limit: usize,
    pub(crate) reserve: usize,
    /// Whether workers take none of its tasks. Those that have started go on: they still get
    /// places.
    pub(crate) is_paused: bool,
    /// How long a task may wait for its start.
    pub(crate) queue_timeout: Option<Duration>,
}

impl Default for Terms {
    fn default() -> Self {
        let (priority, limit) = (Priority::Normal, usize::MAX);
        Terms { priority, weight: 1, limit, reserve: 0, is_paused: false, queue_timeout: None }
    }
}

impl Terms {
    /// Returns an error if no view can have these.
    pub(crate) fn check(self) -> Result<(), BuildError> {
        match self {
            Terms { limit: 0, .. } => Err(BuildError::ViewLimitZero),
            Terms { weight: 0, .. } => Err(BuildError::ViewWeightZero),
            Terms { limit, reserve, .. } if limit < reserve => {
                Err(BuildError::ViewLimitBelowReserve { limit, reserve })
            }
            Terms { queue_timeout: Some(Duration::ZERO), .. } => Err(BuildError::QueueTimeoutZero),
            _ => Ok(()),
        }
    }
}

/// Through what workers take the tasks of the default view.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Gate {
    /// The pool has had no view: they take them without a place.
    Unused,
    /// No other view has eligible work: a worker that has a place of the default view keeps it for
    /// the next task of that view.
    Open,
    /// The policy decides.
    Shut,
    /// Of no pool: for a worker without such a place.
    None,
}

/// The views of a pool, with their queued tasks and places.
pub(crate) struct Policy<T> {
    /// `None` until the first view is added, or the default view is used as one.
    views: Mutex<Option<Box<dyn Views<T>>>>,
    /// A [`Gate`]. Written under the lock.
    gate: AtomicUsize,
    /// Whether the pool may have had a view so far. Apart from the gate, which changes often: a
    /// model explores each older value that a load may return.
    is_used: AtomicBool,
}

/// The right of a worker to run a task of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) view: ViewId,
    /// Whether it is the place for ready futures, which comes on top of the limit.
    pub(crate) is_for_futures: bool,
}

impl Place {
    pub(crate) fn of(view: ViewId) -> Self {
        Place { view, is_for_futures: false }
    }
}

/// The wait of a worker for a place of a view.
pub(crate) type PlaceWait = (ViewId, Arc<Parker>);

/// What the rest of the pool asks of the [`PolicyState`] that there may be. A program that creates
/// none does not contain it.
trait Views<T>: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn set_gate(&mut self) -> Option<Gate>;
    fn resume(&mut self);
    fn has_paused(
        &self,
        id: Option<ViewId>,
        queued: &dyn Fn() -> usize,
        all_stale: usize,
        stale: &dyn Fn(&T) -> usize,
    ) -> bool;
    fn terms(&self, id: ViewId) -> Terms;
    fn reserved(&self) -> usize;
    fn reserved_places(&self) -> usize;
    fn resize(&mut self, sizes: &Sizes);
    fn push(&mut self, id: ViewId, item: T, is_new: bool) -> bool;
    fn skip(&mut self, id: ViewId, is_stale: &dyn Fn(&T) -> bool) -> Vec<T>;
    fn release(&mut self, place: Place);
    fn exchange(
        &mut self,
        held: Option<Place>,
        id: Option<ViewId>,
        claims: bool,
    ) -> Option<PlaceWait>;
    fn may_exchange(&self, held: Option<Place>, id: ViewId, at_once: bool) -> bool;
    fn force(&mut self, wait: &PlaceWait, seen: &mut Option<usize>) -> bool;
    fn eligible_now(&self, queued: usize, has_injected: bool) -> usize;
    fn eligible_of_all(&self, queued: usize) -> usize;
    fn beyond_limit(&self) -> usize;
    fn may_poll(&self, has_injected: bool) -> bool;
    fn may_start_another(&self, id: ViewId) -> bool;
    fn len(&self, id: Option<ViewId>) -> usize;
    fn pop_all_of_oldest(&mut self) -> Option<[VecDeque<T>; 2]>;
}

struct PolicyState<T> {
    /// That of the pool. Changes under the lock (race 15). This and `limit` are copies of what
    /// `Sizes` has, so that a decision under the lock reads one pair.
    max_size: usize,
    /// How many workers may run now: at most `max_size`. Bounds what workers take, and not who
    /// returns from a region.
    limit: usize,
    /// What the pool's gate was set to.
    gate: Gate,
    /// By the numbers of their identities.
    views: Numbered<ViewState<T>>,
    /// The views that have queued tasks, but for the default view. The oldest first, as in
    /// `awaited`.
    busy: Vec<ViewId>,
    /// The views with workers that wait for a place. Also some that have none any more, until the
    /// next place is free.
    awaited: Vec<ViewId>,
    levels: Levels<Level>,
    /// The sum of all reserves.
    reserved: usize,
    /// Places that are not covered by the reserve of their view.
    shared: usize,
    /// Whether the pool has a place for ready futures: it measures.
    serves_futures: bool,
    /// Whether a worker holds that place: then `limit` is one more.
    is_polling: bool,
    /// How often a worker has acquired it.
    polls: usize,
}

/// The views of one priority.
#[derive(Default)]
struct Level {
    /// How often in a row it was passed over.
    passed: usize,
    /// The pass of the view that was served last.
    pass: u128,
}

struct ViewState<T> {
    terms: Terms,
    /// The queued woken futures, and the queued new tasks. Of the default view only those that a
    /// worker has put back, since it had taken them without a place.
    queues: [VecDeque<T>; 2],
    /// How many items were taken.
    turns: usize,
    /// How many workers hold a place.
    places: usize,
    /// Workers that have left a region and wait for a place.
    returning: ReturnQueue,
    /// Workers that have claimed a task of the paused view, or lost its last place to others after
    /// their look. They wait for as long as it takes: their tasks have not begun, so the limit
    /// holds.
    claiming: ReturnQueue,
    /// The view with the smallest pass of its level is served next.
    pass: u128,
    /// When the place for ready futures has served it last.
    polled: usize,
}

impl<T> ViewState<T> {
    fn new(terms: Terms) -> Self {
        ViewState {
            terms,
            queues: Default::default(),
            turns: 0,
            places: 0,
            returning: ReturnQueue::default(),
            claiming: ReturnQueue::default(),
            pass: 0,
            polled: 0,
        }
    }

    fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn level(&self) -> usize {
        self.terms.priority as usize
    }

    /// Returns the queue whose first worker gets the next place.
    fn waiting(&mut self) -> Option<&mut ReturnQueue> {
        [&mut self.returning, &mut self.claiming].into_iter().find(|queue| !queue.is_empty())
    }

    /// Whether one more worker may take a task of it.
    fn may_start(&self, has_shared: bool) -> bool {
        !self.terms.is_paused && self.has_place(has_shared)
    }

    /// Whether the place for ready futures would serve it. `has_injected`: one of its own lies in
    /// the injector.
    fn may_poll(&self, has_injected: bool) -> bool {
        (has_injected || !self.queues[0].is_empty()) && self.may_start(true)
    }

    /// Whether one more worker may run its tasks.
    fn has_place(&self, has_shared: bool) -> bool {
        self.places < self.terms.limit && (self.places < self.terms.reserve || has_shared)
    }

    /// Takes the oldest ready future or, unless it `polls`, every 16th time and if there is none,
    /// the oldest new task.
    fn pop(&mut self, polls: bool) -> Option<T> {
        if polls {
            return self.queues[0].pop_front();
        }
        self.turns = self.turns.wrapping_add(1);
        let first = usize::from(is_turn_of_new(self.turns));
        self.queues[first].pop_front().or_else(|| self.queues[1 - first].pop_front())
    }
}

/// Adds a view to a list of views, the oldest first, unless it is in it.
fn note(views: &mut Vec<ViewId>, id: ViewId) {
    if let Err(index) = views.binary_search(&id) {
        views.insert(index, id);
    }
}

impl<T> PolicyState<T> {
    fn new(sizes: &Sizes) -> Self {
        let mut views = Numbered::default();
        // It gets the number of `DEFAULT_VIEW`.
        views.push(ViewState::new(Terms::default()));
        PolicyState {
            max_size: sizes.max(),
            limit: sizes.limit(),
            // The first section sets it.
            gate: Gate::None,
            views,
            busy: Vec::new(),
            awaited: Vec::new(),
            levels: Levels::default(),
            reserved: 0,
            shared: 0,
            serves_futures: cfg!(feature = "async") && sizes.follows_measurements(),
            is_polling: false,
            polls: 0,
        }
    }

    /// Returns a view that a task or the caller keeps from being removed.
    fn view(&self, id: ViewId) -> &ViewState<T> {
        self.views.get(id.0).expect("it is held")
    }

    fn view_mut(&mut self, id: ViewId) -> &mut ViewState<T> {
        self.views.get_mut(id.0).expect("it is held")
    }

    /// Pops an item that lies in a view's queue: if the caller only `polls`, a ready future.
    fn pop(&mut self, id: ViewId, polls: bool) -> Option<T> {
        let item = self.view_mut(id).pop(polls);
        self.note_popped(id);
        item
    }

    /// Items of a view's queue were popped. Empty queues keep no memory for more than a few.
    fn note_popped(&mut self, id: ViewId) {
        let view = self.view_mut(id);
        if view.len() == 0 {
            view.queues.iter_mut().for_each(|queue| queue.shrink_to(KEPT_TASKS));
            self.busy.retain(|busy| *busy != id);
        }
    }

    /// How many places of the shared capacity are free.
    fn shared_left(&self, limit: usize) -> usize {
        limit.saturating_sub(self.reserved + self.shared)
    }

    /// Whether the place for ready futures is free. It is one of the shared capacity, so it takes no
    /// worker from a reserve.
    fn has_futures_place(&self) -> bool {
        self.serves_futures && !self.is_polling && self.shared_left(self.max_size) > 0
    }

    /// Sets a view's reserve, beside those of `others`, unless they would leave no worker to tasks
    /// without one.
    fn reserve(&mut self, sizes: &Sizes, others: usize, own: usize) -> Result<(), BuildError> {
        let reserved = others.saturating_add(own);
        check_reserves(reserved, self.max_size)?;
        self.reserved = reserved;
        self.limit = sizes.set_number(sizes.number(), reserved);
        Ok(())
    }

    /// How many workers may run now.
    fn limit(&self) -> usize {
        self.max_size.min(self.limit + usize::from(self.is_polling))
    }

    /// Acquires a place, free or not.
    fn acquire(&mut self, place: Place) {
        self.is_polling |= place.is_for_futures;
        if let Some(view) = self.views.get_mut(place.view.0) {
            let is_shared = view.places >= view.terms.reserve;
            view.places += 1;
            self.shared += usize::from(is_shared);
        }
    }

    /// A view that was removed meanwhile took its places with it.
    fn give_back(&mut self, place: Place) {
        debug_assert!(self.is_polling || !place.is_for_futures);
        self.is_polling &= !place.is_for_futures;
        if let Some(view) = self.views.get_mut(place.view.0) {
            view.places -= 1;
            let was_shared = view.places >= view.terms.reserve;
            self.shared -= usize::from(was_shared);
        }
    }

    fn try_acquire(&mut self, id: ViewId) -> bool {
        let has_shared = self.shared_left(self.max_size) > 0;
        let has_place = self.views.get(id.0).is_none_or(|view| view.has_place(has_shared));
        if has_place {
            self.acquire(Place::of(id));
        }
        has_place
    }

    /// Gives free places to the workers that wait for one (race 7), the oldest view first.
    fn admit_returning(&mut self) {
        for id in mem::take(&mut self.awaited) {
            while self.views.get_mut(id.0).is_some_and(|view| view.waiting().is_some()) {
                if !self.try_acquire(id) {
                    self.awaited.push(id);
                    break;
                }
                self.view_mut(id).waiting().expect("one waits").release_first();
            }
        }
    }

    /// Open unless the end of a task of the default view could change what is decided: another view
    /// is served, a worker that waits gets the place, or there is no place any more.
    fn gate(&self) -> Gate {
        let is_over = self.reserved + self.shared > self.limit();
        let is_paused = self.view(DEFAULT_VIEW).terms.is_paused;
        // The worker would release a place of the shared capacity.
        let has_work = || self.busy.iter().any(|id| self.view(*id).may_start(true));
        let is_shut = is_over || is_paused || !self.awaited.is_empty() || has_work();
        if is_shut { Gate::Shut } else { Gate::Open }
    }

    /// Chooses the view that the place for ready futures serves next: of the highest level the one
    /// that it has not served for longest. These polls come on top of the shares of the views.
    fn choose_polled(&self, has_injected: bool) -> Option<ViewId> {
        let views = iter::once(&DEFAULT_VIEW).chain(&self.busy).copied();
        let polled = views.filter(|&id| self.view(id).may_poll(has_injected && id == DEFAULT_VIEW));
        polled.min_by_key(|&id| (Reverse(self.view(id).level()), self.view(id).polled))
    }

    /// Chooses the view to serve next. The default view is assumed to have work if `tries_default`.
    /// Counts each level with eligible work as passed over.
    fn choose(&mut self, tries_default: bool) -> Option<ViewId> {
        let has_shared = self.shared_left(self.limit()) > 0;
        let mut best = Levels::<Option<(u128, ViewId)>>::default();
        let default = tries_default.then_some(&DEFAULT_VIEW);
        // The oldest view first: of two with the same pass it is served first.
        for &id in default.into_iter().chain(&self.busy) {
            let view = self.views.get_mut(id.0).expect("it has tasks");
            if !view.may_start(has_shared) {
                continue;
            }
            // No credit from a time in which it was not eligible. If it was, its pass is no
            // smaller.
            view.pass = view.pass.max(self.levels[view.level()].pass);
            let best = &mut best[view.level()];
            if best.is_none_or(|(pass, _)| view.pass < pass) {
                *best = Some((view.pass, id));
            }
        }
        // The highest one, unless others are due.
        let due = |index: &usize| Some(self.levels[*index].passed).filter(|&it| it >= MAX_PASSED);
        let contenders = (0..best.len()).rev().filter(|&index| best[index].is_some());
        let chosen = contenders.clone().max_by_key(due)?;
        contenders.for_each(|index| self.levels[index].passed += 1);
        best[chosen].map(|(_, id)| id)
    }

    /// Takes the next item, and a place of its view: that for ready futures if the caller only
    /// `polls`. `pop_default` takes one of the default view, if there is any.
    fn take(
        &mut self,
        polls: bool,
        mut tries_default: bool,
        pop_default: &mut dyn FnMut(bool) -> Option<T>,
    ) -> Option<(T, Place)> {
        loop {
            let id = match polls {
                true => self.choose_polled(tries_default)?,
                false => self.choose(tries_default)?,
            };
            let kept = if self.busy.contains(&id) { self.pop(id, polls) } else { None };
            let Some(item) = kept.or_else(|| pop_default(polls)) else {
                // Another worker has taken the last one of the default view: choose again without
                // it.
                tries_default = false;
                continue;
            };
            let view = self.views.get_mut(id.0).expect("it is chosen");
            if polls {
                self.polls += 1;
                view.polled = self.polls;
            } else {
                let level = &mut self.levels[view.level()];
                level.passed = 0;
                level.pass = view.pass;
                view.pass += FULL_STEP / view.terms.weight as u128;
            }
            let place = Place { view: id, is_for_futures: polls };
            self.acquire(place);
            return Some((item, place));
        }
    }

    /// How many queued items could be taken without the place for ready futures if `limit` workers
    /// might run, and that many came. `queued` are those of the default view.
    fn eligible(&self, limit: usize, queued: usize) -> usize {
        let shared_left = self.shared_left(limit);
        let (mut from_reserves, mut from_shared) = (0, 0);
        let others = self.busy.iter().map(|id| self.view(*id)).map(|view| (view, view.len()));
        for (view, len) in iter::once((self.view(DEFAULT_VIEW), queued)).chain(others) {
            // Also without shared capacity a view may have places left of its reserve.
            if view.may_start(shared_left > 0) {
                let may_start = len.min(view.terms.limit - view.places);
                let from_reserve = may_start.min(view.terms.reserve.saturating_sub(view.places));
                from_reserves += from_reserve;
                from_shared += may_start - from_reserve;
            }
        }
        from_reserves + from_shared.min(shared_left)
    }
}

impl<T: Send + 'static> Views<T> for PolicyState<T> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    /// Returns the gate if it is another one than before.
    fn set_gate(&mut self) -> Option<Gate> {
        let gate = self.gate();
        (mem::replace(&mut self.gate, gate) != gate).then_some(gate)
    }

    fn resume(&mut self) {
        self.views.iter_mut().for_each(|(_, view)| view.terms.is_paused = false);
    }

    fn has_paused(
        &self,
        id: Option<ViewId>,
        queued: &dyn Fn() -> usize,
        all_stale: usize,
        stale: &dyn Fn(&T) -> usize,
    ) -> bool {
        let stale_of =
            |view: &ViewState<T>| view.queues.iter().find_map(VecDeque::front).map_or(0, stale);
        let of_views: usize = self.views.iter().map(|(_, view)| stale_of(view)).sum();
        self.views.iter().any(|(number, view)| {
            let (others, stale) = match number == DEFAULT_VIEW.0 {
                true => (queued(), all_stale.saturating_sub(of_views)),
                false => (0, stale_of(view)),
            };
            let is_asked = id.is_none_or(|id| id.0 == number);
            is_asked && view.terms.is_paused && view.len() + others > stale
        })
    }

    fn terms(&self, id: ViewId) -> Terms {
        self.view(id).terms
    }

    fn reserved(&self) -> usize {
        self.reserved
    }

    fn reserved_places(&self) -> usize {
        self.views.iter().map(|(_, view)| view.places.min(view.terms.reserve)).sum()
    }

    fn resize(&mut self, sizes: &Sizes) {
        (self.max_size, self.limit) = (sizes.max(), sizes.limit());
        self.admit_returning();
    }

    fn push(&mut self, id: ViewId, item: T, is_new: bool) -> bool {
        let has_shared = self.shared_left(self.limit()) > 0;
        let has_futures_place = self.has_futures_place();
        note(&mut self.busy, id);
        let view = self.view_mut(id);
        view.queues[usize::from(is_new)].push_back(item);
        view.may_start(has_shared) || has_futures_place && view.may_poll(false)
    }

    fn skip(&mut self, id: ViewId, is_stale: &dyn Fn(&T) -> bool) -> Vec<T> {
        let mut skipped = Vec::new();
        for queue in &mut self.view_mut(id).queues {
            skipped.extend(iter::from_fn(|| {
                if queue.back().is_some_and(is_stale) {
                    return queue.pop_back();
                }
                queue.front().filter(|oldest| is_stale(oldest))?;
                queue.pop_front()
            }));
        }
        self.note_popped(id);
        skipped
    }

    /// Gives the place to a worker that waits for one.
    fn release(&mut self, place: Place) {
        self.give_back(place);
        self.admit_returning();
    }

    fn exchange(
        &mut self,
        held: Option<Place>,
        id: Option<ViewId>,
        claims: bool,
    ) -> Option<PlaceWait> {
        if let Some(held) = held {
            self.give_back(held);
        }
        let waits = id.filter(|id| !self.try_acquire(*id));
        // After the attempt: the worker does not lose the capacity that it has.
        self.admit_returning();
        let id = waits?;
        // Race 7: in the same section as the attempt.
        note(&mut self.awaited, id);
        let view = self.view_mut(id);
        let queue = if claims { &mut view.claiming } else { &mut view.returning };
        Some((id, queue.enqueue()))
    }

    fn may_exchange(&self, held: Option<Place>, id: ViewId, at_once: bool) -> bool {
        let holder = held.and_then(|held| self.views.get(held.view.0));
        let frees = holder.is_some_and(|view| view.places > view.terms.reserve);
        let has_shared = self.shared_left(self.max_size + usize::from(frees)) > 0;
        let view = self.view(id);
        view.has_place(has_shared) || !at_once && view.terms.is_paused
    }

    fn force(&mut self, (id, parker): &PlaceWait, seen: &mut Option<usize>) -> bool {
        let forced = self.view_mut(*id).returning.force(parker, seen);
        (0..forced).for_each(|_| self.acquire(Place::of(*id)));
        forced > 0
    }

    /// How many queued items could be taken now, if that many workers came. `has_injected`: one of
    /// the default view's is a future in the injector.
    fn eligible_now(&self, queued: usize, has_injected: bool) -> usize {
        let with_others = self.eligible(self.limit(), queued);
        with_others.max(usize::from(self.may_poll(has_injected)))
    }

    fn eligible_of_all(&self, queued: usize) -> usize {
        self.eligible(self.max_size, queued)
    }

    fn beyond_limit(&self) -> usize {
        match self.eligible(0, 0) {
            0 => usize::from(self.is_polling),
            _ => self.max_size,
        }
    }

    /// Whether a ready future could be taken with that place. `has_injected`: one lies in the
    /// injector.
    fn may_poll(&self, has_injected: bool) -> bool {
        let may_poll = |id: &ViewId| self.view(*id).may_poll(has_injected && *id == DEFAULT_VIEW);
        self.has_futures_place() && iter::once(&DEFAULT_VIEW).chain(&self.busy).any(may_poll)
    }

    fn may_start_another(&self, id: ViewId) -> bool {
        let has_shared = self.shared_left(self.max_size) > 0;
        self.views.get(id.0).is_some_and(|view| view.may_start(has_shared))
    }

    fn len(&self, id: Option<ViewId>) -> usize {
        match id {
            Some(id) => self.views.get(id.0).map_or(0, ViewState::len),
            None => self.busy.iter().map(|id| self.view(*id).len()).sum(),
        }
    }

    fn pop_all_of_oldest(&mut self) -> Option<[VecDeque<T>; 2]> {
        let oldest = *self.busy.first()?;
        self.busy.remove(0);
        Some(mem::take(&mut self.view_mut(oldest).queues))
    }
}

impl<T: Send + 'static> Policy<T> {
    pub(crate) fn new() -> Self {
        let gate = AtomicUsize::new(Gate::Unused as usize);
        Policy { views: Mutex::new(None), gate, is_used: AtomicBool::new(false) }
    }

    /// Changes what there is in a section of the lock, and sets the gate.
    fn change_views<R>(&self, change: impl FnOnce(&mut Option<Box<dyn Views<T>>>) -> R) -> R {
        let mut views = self.views.lock();
        let result = change(&mut views);
        // Mostly it is the same, and stays in the caches of the workers.
        if let Some(gate) = views.as_mut().and_then(|views| views.set_gate()) {
            // Release: what precedes a resume precedes the tasks that start beside the open gate.
            self.gate.store(gate as usize, Ordering::Release);
        }
        result
    }

    /// Changes the views of a pool that has had some.
    fn change_used<R>(&self, change: impl FnOnce(&mut dyn Views<T>) -> R) -> R {
        self.change_views(|views| change(&mut **views.as_mut().expect("there is a view")))
    }

    /// As [`change_used`](Self::change_used), for what only programs with views contain.
    fn change_state<R>(&self, change: impl FnOnce(&mut PolicyState<T>) -> R) -> R {
        self.change_used(|views| change(views.as_any().downcast_mut().expect("there is one type")))
    }

    /// Whether the gate is this one.
    #[inline]
    pub(crate) fn has_gate(&self, gate: Gate) -> bool {
        // Acquire: what a resume has released. A thread that must find it shut is ordered after that
        // change anyway.
        self.gate.load(Ordering::Acquire) == gate as usize
    }

    /// Whether the pool may have had a view so far.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        // Acquire: a worker that sees the store of `begin_use` sees what the caller did before.
        self.is_used.load(Ordering::Acquire)
    }

    /// Called before the first view can have a task. A thread that must find such a task is ordered
    /// after its push, and so after this. A worker that counts itself among those that run is
    /// ordered after a joiner that has not waited for it.
    pub(crate) fn begin_use(&self, sizes: &Sizes) {
        // The section also sets the gate. A thread that sees that the pool is used, and then takes
        // the lock, finds the views there and the gate set: a pause relies on that.
        self.change_views(|views| {
            self.is_used.store(true, Ordering::Release);
            views.get_or_insert_with(|| Box::new(PolicyState::new(sizes)));
        });
    }

    /// Adds a view to a pool that is used, unless the reserves would leave no worker to the others.
    pub(crate) fn add(&self, sizes: &Sizes, terms: Terms) -> Result<ViewId, BuildError> {
        self.change_state(|state| {
            state.reserve(sizes, state.reserved, terms.reserve)?;
            Ok(ViewId(state.views.push(ViewState::new(terms))))
        })
    }

    /// Changes what a view asks for. Changes nothing if no view can have that, or if the reserves
    /// would leave no worker to the others. `None` if nothing is different, the view is gone, or the
    /// pool has had none.
    pub(crate) fn change(
        &self,
        sizes: &Sizes,
        id: ViewId,
        change: impl FnOnce(&mut Terms),
    ) -> Result<Option<MustLook>, BuildError> {
        if !self.is_used() {
            return Ok(None);
        }
        self.change_state(|state| {
            let Some(view) = state.views.get(id.0) else { return Ok(None) };
            let (before, mut terms) = (view.terms, view.terms);
            change(&mut terms);
            if terms == before {
                return Ok(None);
            }
            terms.check()?;
            state.reserve(sizes, state.reserved - before.reserve, terms.reserve)?;
            let view = state.views.get_mut(id.0).expect("found before");
            // What it was served ahead of the others, at its new weight and among the views of its
            // new priority.
            let ahead = view.pass.saturating_sub(state.levels[view.level()].pass);
            view.terms = terms;
            view.pass = state.levels[view.level()].pass
                + ahead * before.weight as u128 / terms.weight as u128;
            let shared = |terms: Terms| view.places.saturating_sub(terms.reserve);
            state.shared = state.shared - shared(before) + shared(terms);
            state.admit_returning();
            Ok(Some(MustLook::owed()))
        })
    }

    /// Resumes all views. `None` if the pool has had none. Also then a section of the lock: a pause
    /// that comes later finds the pool closed (race 10).
    pub(crate) fn resume_all(&self) -> Option<MustLook> {
        self.change_views(|views| views.as_mut().map(|views| views.resume()))
            .map(|()| MustLook::owed())
    }

    /// Whether more items of a paused view are queued than are stale: of one view, or of any.
    /// `queued` are the items of the default view that lie elsewhere, read under the lock: an item
    /// that is put back is counted once. `all_stale` counts the stale items of all views, and
    /// `stale` those of the view of an item.
    pub(crate) fn has_paused(
        &self,
        id: Option<ViewId>,
        queued: impl Fn() -> usize,
        all_stale: usize,
        stale: impl Fn(&T) -> usize,
    ) -> bool {
        self.read(false, |views| views.has_paused(id, &queued, all_stale, &stale))
    }

    pub(crate) fn terms(&self, id: ViewId) -> Terms {
        self.read(Terms::default(), |views| views.terms(id))
    }

    /// Removes a view that has no tasks, no handles and no reserve.
    pub(crate) fn remove(&self, id: ViewId) -> MustLook {
        self.change_state(|state| {
            if let Some(view) = state.views.remove(id.0) {
                debug_assert_eq!((view.len(), view.terms.reserve), (0, 0));
                // A worker may not have released its place yet.
                state.shared -= view.places;
                state.admit_returning();
            }
        });
        MustLook::owed()
    }

    /// Changes the sizes. Gives places that a larger `max_size` has added to the workers that wait
    /// for one. Returns whether `max_size` was lowered.
    pub(crate) fn resize(
        &self,
        sizes: &Sizes,
        change: impl Fn(usize, usize) -> (usize, usize),
    ) -> Result<bool, BuildError> {
        self.change_sizes(sizes, |reserved| sizes.change(change, reserved))
    }

    /// Sets the number of [`Sizes`], and returns the limit.
    pub(crate) fn set_number(&self, sizes: &Sizes, number: usize) -> usize {
        self.change_sizes(sizes, |reserved| sizes.set_number(number, reserved))
    }

    /// Calls `change` with the sum of the reserves.
    fn change_sizes<R>(&self, sizes: &Sizes, change: impl FnOnce(usize) -> R) -> R {
        self.change_views(|views| {
            let result = change(views.as_ref().map_or(0, |views| views.reserved()));
            views.iter_mut().for_each(|views| views.resize(sizes));
            result
        })
    }

    /// How many workers hold places within the reserves of their views.
    pub(crate) fn reserved_places(&self) -> usize {
        self.read(0, |views| views.reserved_places())
    }

    /// Queues an item of a view, among the ready futures unless it `is_new`. Returns whether work of
    /// the view is eligible now: otherwise the next worker that releases a place looks (race 35).
    pub(crate) fn push(&self, id: ViewId, item: T, is_new: bool) -> bool {
        self.change_used(|views| views.push(id, item, is_new))
    }

    /// Removes stale items at both ends of a view's queues: first the newest ones, then the oldest
    /// ones, each time up to the first item that is not stale. `is_stale` is called under the lock.
    pub(crate) fn skip(&self, id: ViewId, is_stale: impl Fn(&T) -> bool) -> Vec<T> {
        self.change_used(|views| views.skip(id, &is_stale))
    }

    /// Releases the place `held`, and takes the next item with a place of its view: if there is
    /// none, a ready future with the place for these. Counts it by `begin`, under the lock: a pause
    /// comes before the take, or finds the item counted. Returns also whether eligible work is left.
    /// `pop_default` takes an item of the default view, or only a future in the injector. `queued`
    /// says how many items it has, and whether there is such a future.
    pub(crate) fn take(
        &self,
        held: Option<Place>,
        mut pop_default: impl FnMut(bool) -> Option<T>,
        queued: impl Fn() -> (usize, bool),
        begin: impl FnOnce(&T),
    ) -> (Option<(T, Place)>, bool) {
        self.change_state(|state| {
            if let Some(held) = held {
                state.release(held);
            }
            let (len, has_injected) = queued();
            let mut taken = state.take(false, len > 0, &mut pop_default);
            if taken.is_none() && state.has_futures_place() {
                taken = state.take(true, has_injected, &mut pop_default);
            }
            if let Some((taken, _)) = &taken {
                begin(taken);
            }
            let (len, has_injected) = queued();
            (taken, state.eligible_now(len, has_injected) > 0)
        })
    }

    /// Releases a place. The caller then looks for work (race 35).
    pub(crate) fn release(&self, held: Place) -> MustLook {
        self.change_used(|views| views.release(held));
        MustLook::owed()
    }

    /// Releases the place `held`, and acquires one of the view `id`, if there is one. If it has no
    /// place, returns the caller's wait, which is in a queue of the view then: the caller must
    /// [wait](Self::wait). If it `claims` a task, it waits until there is a place.
    pub(crate) fn exchange(
        &self,
        held: Option<Place>,
        id: Option<ViewId>,
        claims: bool,
    ) -> Option<PlaceWait> {
        self.change_used(|views| views.exchange(held, id, claims))
    }

    /// Whether a worker that exchanges the place `held` for one of another view gets that at once
    /// or, unless `at_once` is set, the view is paused.
    pub(crate) fn may_exchange(&self, held: Option<Place>, id: ViewId, at_once: bool) -> bool {
        self.read(true, |views| views.may_exchange(held, id, at_once))
    }

    /// Waits in the queue until there is a place or, in the returning one, for as long as the
    /// patience lasts.
    pub(crate) fn wait(&self, wait: &PlaceWait) {
        wait_until_released(&wait.1, |seen| self.change_used(|views| views.force(wait, seen)));
    }

    /// How many queued items could be taken now, if that many workers came. `queued` are those of
    /// the default view, and `has_injected` tells whether there is a future in the injector.
    pub(crate) fn eligible(&self, queued: usize, has_injected: impl FnOnce() -> bool) -> usize {
        self.read(queued, |views| views.eligible_now(queued, has_injected()))
    }

    /// How many queued items could be taken as soon as `max_size` workers may run.
    pub(crate) fn eligible_of_all(&self, queued: usize) -> usize {
        self.read(queued, |views| views.eligible_of_all(queued))
    }

    /// How many workers may run beyond the limit, the next one that comes for a ready future not
    /// included: any number beside a queued item with a free place of its view's reserve, otherwise
    /// the one that holds the place for ready futures.
    pub(crate) fn beyond_limit(&self) -> usize {
        self.read(0, |views| views.beyond_limit())
    }

    /// Whether a worker that came could take a ready future with the place for these.
    pub(crate) fn may_poll(&self, has_injected: bool) -> bool {
        self.read(false, |views| views.may_poll(has_injected))
    }

    /// Reads what there is, unless the pool has had no view.
    fn read<R>(&self, unused: R, read: impl FnOnce(&dyn Views<T>) -> R) -> R {
        let views = self.is_used().then(|| self.views.lock());
        views.as_ref().and_then(|views| views.as_deref()).map_or(unused, read)
    }

    /// Whether one more task of the view could be taken if `max_size` workers might run. If not, a
    /// raised number would only bring permits, for tasks that stay queued.
    pub(crate) fn may_start_another(&self, id: ViewId) -> bool {
        self.read(true, |views| views.may_start_another(id))
    }

    /// How many items are queued, of one view or of all. Those of the default view do not count,
    /// but for those that were put back.
    pub(crate) fn len(&self, id: Option<ViewId>) -> usize {
        self.read(0, |views| views.len(id))
    }

    /// Pops all items of the oldest view that has some, for an immediate shutdown: the new tasks
    /// first.
    pub(crate) fn pop_all_of_oldest(&self) -> Option<impl Iterator<Item = T> + use<T>> {
        // The gate may stay shut until the next section sets it.
        let [woken, new] = self.views.lock().as_mut()?.pop_all_of_oldest()?;
        Some(new.into_iter().chain(woken))
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;
    use std::collections::{HashMap, VecDeque};
    use std::iter;
    use std::time::Duration;

    use super::{
        DEFAULT_VIEW, Gate, Place, Policy, PolicyState, Priority, Sizes, Terms, ViewId, ViewState,
    };

    const WORKERS: usize = 4;

    fn terms() -> Terms {
        let priority = [Priority::High, Priority::Normal, Priority::Low][fastrand::usize(..3)];
        let limit = if fastrand::bool() { usize::MAX } else { fastrand::usize(1..3) };
        let (weight, is_paused) = (fastrand::usize(1..4), fastrand::u8(..4) == 0);
        let reserve = fastrand::usize(..2);
        Terms { priority, weight, limit, reserve, is_paused, queue_timeout: None }
    }

    /// An item: the number of its view, whether it is a new task, and its number among these.
    type Item = (u64, bool, usize);

    /// What was pushed for a view, and has come out, of its woken futures and its new tasks.
    struct Seen {
        id: ViewId,
        pushed: [usize; 2],
        popped: [usize; 2],
    }

    fn sizes() -> Sizes {
        Sizes::new(0, WORKERS, Duration::ZERO)
    }

    fn used<T: Send + 'static>(sizes: &Sizes) -> Policy<T> {
        let policy = Policy::new();
        policy.begin_use(sizes);
        policy
    }

    impl Seen {
        fn pop(&mut self, (number, is_new, index): Item) {
            let popped = &mut self.popped[usize::from(is_new)];
            assert_eq!((number, index), (self.id.0, *popped), "in their order");
            *popped += 1;
        }

        fn queued(&self) -> usize {
            self.pushed.iter().sum::<usize>() - self.popped.iter().sum::<usize>()
        }
    }

    /// A cancelled task of the default view may have been put back.
    #[test]
    fn stale_items_are_no_paused_ones() {
        let sizes = sizes();
        let policy = used::<Item>(&sizes);
        let terms = Terms { is_paused: true, ..Terms::default() };
        assert!(policy.change(&sizes, DEFAULT_VIEW, |old| *old = terms).is_ok());
        policy.push(DEFAULT_VIEW, (DEFAULT_VIEW.0, false, 0), false);
        assert!(policy.has_paused(None, || 0, 0, |_| 0));
        assert!(!policy.has_paused(None, || 0, 1, |_| 0));
        let view = policy.add(&sizes, terms).unwrap();
        policy.push(view, (view.0, false, 0), false);
        // Both are stale, or only that of the view.
        let has_paused =
            |all| policy.has_paused(None, || 0, all, |item| usize::from(item.0 == view.0));
        assert!(!has_paused(2));
        assert!(has_paused(1));
    }

    /// Views come, change and go, with items of random views in between.
    #[test]
    fn items_of_each_view_come_out_once_and_in_order() {
        for _ in 0..200 {
            let sizes = if fastrand::bool() { sizes() } else { sizes().measured(1) };
            let policy = used::<Item>(&sizes);
            let mut views: HashMap<u64, Seen> = HashMap::new();
            let mut held: Vec<Option<Place>> = vec![None; WORKERS];
            // A future of the default view.
            let injected = Cell::new(false);
            let queued = || (usize::from(injected.get()), injected.get());
            for _ in 0..500 {
                let some = views.keys().copied().nth(fastrand::usize(..=views.len()));
                match (fastrand::u8(..11), some) {
                    (0, _) => {
                        if let Ok(id) = policy.add(&sizes, terms()) {
                            views.insert(id.0, Seen { id, pushed: [0; 2], popped: [0; 2] });
                        }
                    }
                    // Only a view without tasks is removed; a worker may hold a place of it.
                    (1, Some(number)) if views[&number].queued() == 0 => {
                        let id = views[&number].id;
                        assert!(policy.change(&sizes, id, |terms| terms.reserve = 0).is_ok());
                        _ = policy.remove(id);
                        views.remove(&number);
                    }
                    (2, Some(number)) => {
                        let (id, wanted) = (views[&number].id, terms());
                        let before = policy.terms(id);
                        let changed = policy.change(&sizes, id, |terms| *terms = wanted);
                        let expected = if changed.is_ok() { wanted } else { before };
                        assert_eq!(policy.terms(id), expected);
                    }
                    (3..=5, Some(number)) => {
                        let (seen, is_new) = (views.get_mut(&number).unwrap(), fastrand::bool());
                        let pushed = &mut seen.pushed[usize::from(is_new)];
                        policy.push(seen.id, (number, is_new, *pushed), is_new);
                        *pushed += 1;
                    }
                    (6, _) => injected.set(true),
                    (7, _) if sizes.follows_measurements() => {
                        policy.set_number(&sizes, fastrand::usize(..=WORKERS));
                    }
                    _ => {
                        let held = &mut held[fastrand::usize(..WORKERS)];
                        let pop = |_| injected.take().then_some((DEFAULT_VIEW.0, false, 0));
                        let (taken, has_more) = policy.take(held.take(), pop, queued, |_| ());
                        assert!(taken.is_some() || !has_more, "eligible work is taken");
                        if let Some((item, place)) = taken {
                            assert!(!(item.1 && place.is_for_futures), "it takes no new task");
                            if item.0 != DEFAULT_VIEW.0 {
                                views.get_mut(&item.0).unwrap().pop(item);
                            }
                            *held = Some(place);
                            check_taken(&policy, place);
                        }
                        assert_eq!(has_more, policy.eligible(queued().0, || queued().1) > 0);
                        assert_eq!(has_more, has_eligible(&policy, &views, injected.get()));
                    }
                }
                assert_eq!(policy.len(None), views.values().map(Seen::queued).sum());
                check_places(&policy, &held);
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

    /// The sums are those of the views, and one worker at most has the place for ready futures.
    fn check_places(policy: &Policy<Item>, held: &[Option<Place>]) {
        let mut locked = policy.views.lock();
        let state: &mut PolicyState<Item> =
            locked.as_mut().unwrap().as_any().downcast_mut().unwrap();
        let sum = |part: fn(&ViewState<Item>) -> usize| {
            state.views.iter().map(|(_, view)| part(view)).sum()
        };
        assert_eq!(state.reserved, sum(|view| view.terms.reserve));
        assert_eq!(state.shared, sum(|view| view.places.saturating_sub(view.terms.reserve)));
        // The view may be gone.
        let polls = held.iter().flatten().filter(|place| place.is_for_futures).count();
        assert_eq!(usize::from(state.is_polling), polls);
    }

    /// No place was taken from the reserve of another view, and none beyond its view's limit.
    fn check_taken(policy: &Policy<Item>, place: Place) {
        let mut locked = policy.views.lock();
        let state: &mut PolicyState<Item> =
            locked.as_mut().unwrap().as_any().downcast_mut().unwrap();
        let view = state.views.get(place.view.0).unwrap();
        assert!(view.places <= view.terms.limit && !view.terms.is_paused);
        if view.places > view.terms.reserve {
            let beyond = usize::from(state.is_polling);
            let limit = if place.is_for_futures { WORKERS } else { state.limit + beyond };
            assert!(state.reserved + state.shared <= limit.min(WORKERS));
        }
    }

    /// Whether a worker may take something: by a place of a reserve, one of the shared capacity,
    /// or that for ready futures.
    fn has_eligible(policy: &Policy<Item>, views: &HashMap<u64, Seen>, has_injected: bool) -> bool {
        let mut locked = policy.views.lock();
        let state: &mut PolicyState<Item> =
            locked.as_mut().unwrap().as_any().downcast_mut().unwrap();
        let beyond = usize::from(state.is_polling);
        let used = state.reserved + state.shared;
        let has_shared = used < WORKERS.min(state.limit + beyond);
        let may_poll = state.serves_futures && beyond == 0 && used < WORKERS;
        let default = (DEFAULT_VIEW.0, [usize::from(has_injected), 0]);
        let queued = |seen: &Seen| [0, 1].map(|kind| seen.pushed[kind] - seen.popped[kind]);
        let others = views.values().map(|seen| (seen.id.0, queued(seen)));
        iter::once(default).chain(others).any(|(number, [futures, new])| {
            let view = state.views.get(number).unwrap();
            let has_place = has_shared || view.places < view.terms.reserve;
            !view.terms.is_paused
                && view.places < view.terms.limit
                && (has_place && futures + new > 0 || may_poll && futures > 0)
        })
    }

    /// So many that each view has places left.
    const MANY: usize = 1000;

    fn many() -> Sizes {
        Sizes::new(0, MANY, Duration::ZERO)
    }

    fn take<T: Send + 'static>(policy: &Policy<T>) -> Option<T> {
        policy.take(None, |_| None, || (0, false), |_| ()).0.map(|(item, _)| item)
    }

    fn served(policy: &Policy<usize>, count: usize) -> Vec<usize> {
        (0..count).filter_map(|_| take(policy)).collect()
    }

    /// A view that was served at a small weight does not wait for that once it has a large one.
    #[test]
    fn a_new_weight_counts_from_the_next_take_on() {
        let policy = used(&many());
        let weighted = |weight| Terms { weight, ..Terms::default() };
        let [small, large] = [1, 50].map(|weight| policy.add(&many(), weighted(weight)).unwrap());
        for _ in 0..100 {
            policy.push(small, 0, true);
            policy.push(large, 1, true);
        }
        assert_eq!(served(&policy, 3), [0, 1, 1]);
        assert!(policy.change(&many(), small, |terms| terms.weight = 50).is_ok());
        let next = served(&policy, 20);
        assert!((8..=12).contains(&next.iter().sum::<usize>()), "{next:?}");
    }

    /// Closures of a view get their takes also while its futures are polled beyond the limit.
    #[cfg(feature = "async")]
    #[test]
    fn a_poll_beyond_the_limit_takes_no_turn_from_closures() {
        for priority in [Priority::Normal, Priority::Low] {
            let sizes = sizes().measured(1);
            let policy = used(&sizes);
            let [busy, other] = [Priority::Normal, priority].map(|priority| {
                policy.add(&sizes, Terms { priority, ..Terms::default() }).unwrap()
            });
            (0..100).for_each(|_| _ = policy.push(busy, 0, true));
            (0..100).for_each(|_| _ = policy.push(other, 1, true));
            let take = |held| policy.take(held, |_| None, || (0, false), |_| ()).0.unwrap();
            let (mut held, mut count) = (None, 0);
            for _ in 0..100 {
                let (item, place) = take(held.take());
                assert!(!place.is_for_futures);
                count += item;
                held = Some(place);
                policy.push(other, 2, false);
                let (polled, place) = take(None);
                assert_eq!((polled, place.is_for_futures), (2, true));
                _ = policy.release(place);
            }
            let expected = if priority == Priority::Low { 4..=6 } else { 48..=52 };
            assert!(expected.contains(&count), "{priority:?}: {count} of 100 takes");
        }
    }

    /// As it was at the end of its level's line, it is not at the end of the line of the other
    /// level.
    #[test]
    fn a_view_of_another_priority_is_in_its_line() {
        let policy = used(&many());
        let low = Terms { priority: Priority::Low, ..Terms::default() };
        let [first, other] =
            [low, Terms::default()].map(|terms| policy.add(&many(), terms).unwrap());
        (0..100).for_each(|_| _ = policy.push(first, 0, true));
        served(&policy, 50);
        (0..100).for_each(|_| _ = policy.push(other, 1, true));
        let normal = |terms: &mut Terms| terms.priority = Priority::Normal;
        assert!(policy.change(&many(), first, normal).is_ok());
        let next = served(&policy, 20);
        assert!((8..=12).contains(&next.iter().sum::<usize>()), "{next:?}");
    }

    /// At the end of a region, or on a waiting worker.
    #[test]
    fn a_started_task_of_a_paused_view_gets_a_place() {
        let policy = used::<Item>(&sizes());
        let paused = Terms { is_paused: true, ..Terms::default() };
        let id = policy.add(&sizes(), paused).unwrap();
        policy.push(id, (id.0, true, 0), true);
        assert_eq!(policy.take(None, |_| None, || (0, false), |_| ()), (None, false));
        assert!(policy.exchange(None, Some(id), false).is_none(), "no wait");
    }

    /// It is open only while a worker that ends a task of the default view would take the next one.
    #[test]
    fn the_gate_is_shut_while_the_policy_may_decide_otherwise() {
        let (policy, sizes) = (Policy::<()>::new(), sizes());
        assert!(policy.has_gate(Gate::Unused));
        policy.begin_use(&sizes);
        let all = Terms { reserve: 1, limit: 1, ..Terms::default() };
        let id = policy.add(&sizes, all).unwrap();
        let take = |held, default| {
            policy.take(held, |_| Some(()), || (usize::from(default), false), |()| ()).0.is_some()
        };
        // Three places, which are all that the reserve leaves.
        assert!(
            (0..3).all(|_| take(None, true)) && !take(None, true) && policy.has_gate(Gate::Open)
        );
        // The limit of the view is reached: its next task is not eligible.
        policy.push(id, (), true);
        assert!(policy.has_gate(Gate::Shut) && take(None, true) && policy.has_gate(Gate::Open));
        policy.push(id, (), true);
        assert!(policy.has_gate(Gate::Open));
        _ = policy.release(Place::of(id));
        assert!(policy.has_gate(Gate::Shut) && take(None, true) && policy.has_gate(Gate::Open));
        // A worker waits for the place of another one.
        assert!(
            policy.exchange(None, Some(DEFAULT_VIEW), false).is_some()
                && policy.has_gate(Gate::Shut)
        );
        _ = policy.release(Place::of(DEFAULT_VIEW));
        assert!(policy.has_gate(Gate::Open));
        // One place more than a second reserve leaves.
        let second = policy.add(&sizes, all).unwrap();
        assert!(policy.has_gate(Gate::Shut) && !take(Some(Place::of(DEFAULT_VIEW)), true));
        assert!(policy.has_gate(Gate::Open));
        assert!(policy.change(&sizes, second, |terms| terms.reserve = 0).is_ok());
        _ = policy.remove(second);
        for (is_paused, gate) in [(true, Gate::Shut), (false, Gate::Open)] {
            let changed = policy.change(&sizes, DEFAULT_VIEW, |terms| terms.is_paused = is_paused);
            assert!(changed.is_ok() && policy.has_gate(gate));
        }
    }

    /// What law 12 excepts: two workers have popped tasks of the default view beside an open gate,
    /// then a pause or a task of another view shuts it. The order in which the workers put the tasks
    /// back is the new one.
    #[test]
    fn tasks_that_are_being_taken_may_change_places() {
        for is_paused in [true, false] {
            let (policy, sizes) = (used(&many()), many());
            let high = Terms { priority: Priority::High, ..Terms::default() };
            let urgent = policy.add(&sizes, high).unwrap();
            let mut injector = VecDeque::from([1, 2]);
            assert!(policy.has_gate(Gate::Open));
            let popped = [(); 2].map(|()| injector.pop_front().unwrap());
            if is_paused {
                let pause = policy.change(&sizes, DEFAULT_VIEW, |terms| terms.is_paused = true);
                assert!(pause.is_ok());
            } else {
                policy.push(urgent, 0, true);
            }
            assert!(policy.has_gate(Gate::Shut), "each worker puts its task back");
            popped.into_iter().rev().for_each(|task| _ = policy.push(DEFAULT_VIEW, task, true));
            assert!(policy.change(&sizes, DEFAULT_VIEW, |terms| terms.is_paused = false).is_ok());
            let expected: &[usize] = if is_paused { &[2, 1] } else { &[0, 2, 1] };
            assert_eq!(served(&policy, 3), expected);
        }
    }

    /// It does not lose it to a worker that waits for one.
    #[test]
    fn a_worker_that_exchanges_its_place_keeps_its_capacity() {
        let sizes = Sizes::new(0, 1, Duration::ZERO);
        let policy = used::<()>(&sizes);
        let view = policy.add(&sizes, Terms::default()).unwrap();
        assert!(policy.exchange(None, Some(DEFAULT_VIEW), false).is_none());
        assert!(policy.exchange(None, Some(DEFAULT_VIEW), false).is_some(), "it waits");
        let held = Some(Place::of(DEFAULT_VIEW));
        assert!(policy.may_exchange(held, view, true) && !policy.may_exchange(None, view, true));
        let paused = |terms: &mut Terms| terms.is_paused = true;
        assert!(policy.change(&sizes, view, paused).is_ok());
        assert!(policy.may_exchange(None, view, false) && !policy.may_exchange(None, view, true));
        assert!(policy.exchange(held, Some(view), true).is_none(), "no wait");
    }

    /// The worker of a removed view releases no place of another one.
    #[test]
    fn a_view_that_comes_after_a_removed_one_is_another() {
        let policy = used::<()>(&sizes());
        let limited = Terms { limit: 1, ..Terms::default() };
        let removed = policy.add(&sizes(), limited).unwrap();
        policy.push(removed, (), true);
        assert!(take(&policy).is_some());
        _ = policy.remove(removed);
        let other = policy.add(&sizes(), limited).unwrap();
        policy.push(other, (), true);
        policy.push(other, (), true);
        assert!(take(&policy).is_some());
        // The worker of the removed view: there is no place for it.
        assert!(policy.take(Some(Place::of(removed)), |_| None, || (0, false), |_| ()).0.is_none());
        assert_eq!((policy.len(Some(removed)), policy.len(Some(other))), (0, 1));
    }

    #[test]
    fn of_two_views_with_equal_claims_the_older_one_comes_first() {
        let policy = used(&sizes());
        let add = || policy.add(&sizes(), Terms::default()).unwrap();
        let (first, older, younger) = (add(), add(), add());
        policy.push(younger, younger.0, true);
        policy.push(first, first.0, true);
        policy.push(older, older.0, true);
        let numbers = [(); 3].map(|()| take(&policy));
        assert_eq!(numbers, [first, older, younger].map(|id| Some(id.0)));
    }
}
