//! A slab that gives memory back: it stores values under keys that stay valid until the value is
//! removed.
//!
//! The values lie in pages. A page that has become empty is freed, unless it was the last one to do
//! so: values that come and go one at a time allocate nothing. Each operation costs constant time,
//! apart from one allocation for each page. What stays is at most a page for each value, and 48
//! bytes for each page since the slab was last empty.

use std::mem;

use slab::Slab;

/// Values in a page. More would let a value that outlives the others keep more than the 1.5 KiB of
/// a page of weak references. Fewer would cost an allocation more often.
const PAGE: usize = 64;

/// See the [module's documentation](self).
pub(crate) struct Paged<T> {
    pages: Vec<Slab<T>>,
    /// The numbers of the pages that are not full. The last one gets the next value.
    with_room: Vec<usize>,
    /// The page that became empty last. It keeps its memory.
    spare: Option<usize>,
    len: usize,
}

/// Not derived, which would ask for a default of `T`.
impl<T> Default for Paged<T> {
    fn default() -> Self {
        Paged { pages: Vec::new(), with_room: Vec::new(), spare: None, len: 0 }
    }
}

impl<T> Paged<T> {
    /// Stores a value and returns its key.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let number = match self.with_room.last() {
            Some(&number) => number,
            None => {
                self.with_room.push(self.pages.len());
                self.pages.push(Slab::new());
                self.pages.len() - 1
            }
        };
        let page = &mut self.pages[number];
        if page.capacity() == 0 {
            page.reserve_exact(PAGE);
        }
        let place = page.insert(value);
        if page.len() == PAGE {
            self.with_room.pop();
        }
        self.len += 1;
        number * PAGE + place
    }

    /// Removes and returns a value.
    ///
    /// # Panics
    /// If there is none under this key.
    #[inline]
    pub(crate) fn remove(&mut self, key: usize) -> T {
        let number = key / PAGE;
        let page = &mut self.pages[number];
        let value = page.remove(key % PAGE);
        if page.len() == PAGE - 1 {
            self.with_room.push(number);
        }
        self.len -= 1;
        if page.is_empty() {
            self.free_spare(number);
        }
        value
    }

    /// Makes the page that has become empty the spare one, and frees the one before.
    #[cold]
    fn free_spare(&mut self, emptied: usize) {
        let before = self.spare.replace(emptied).filter(|&before| before != emptied);
        if let Some(page) = before.map(|before| &mut self.pages[before]) {
            if page.is_empty() {
                *page = Slab::new();
            }
        }
        if self.len == 0 && self.pages.len() > 1 {
            *self = Paged::default();
        }
    }

    /// Removes and returns all values.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        let mut values = Vec::with_capacity(self.len);
        for page in &mut mem::take(self).pages {
            values.extend(page.drain());
        }
        values
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{PAGE, Paged};

    /// How many values the pages have memory for.
    fn capacity(paged: &Paged<usize>) -> usize {
        paged.pages.iter().map(slab::Slab::capacity).sum()
    }

    #[test]
    fn each_key_leads_to_its_value() {
        let mut paged = Paged::default();
        let mut stored: Vec<_> = (0..10 * PAGE).map(|value| (paged.insert(value), value)).collect();
        for round in 1..100 {
            let (key, value) = stored.swap_remove(round * 7919 % stored.len());
            assert_eq!(paged.remove(key), value);
            if round % 3 > 0 {
                let value = round * 1_000_000;
                stored.push((paged.insert(value), value));
            }
        }
        stored.drain(100..).for_each(|(key, value)| assert_eq!(paged.remove(key), value));
        let mut left = paged.drain();
        left.sort_unstable();
        let mut expected: Vec<_> = stored.into_iter().map(|(_, value)| value).collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
        assert!(paged.drain().is_empty());
    }

    #[test]
    fn memory_is_freed_in_any_order() {
        let orders: [fn(Vec<usize>) -> Vec<usize>; 3] = [
            |keys| keys,
            |keys| keys.into_iter().rev().collect(),
            |keys| (0..keys.len()).map(|i| keys[i * 7919 % keys.len()]).collect(),
        ];
        for order in orders {
            let mut paged = Paged::default();
            let keys: Vec<_> = (0..100 * PAGE).map(|value| paged.insert(value)).collect();
            assert_eq!(capacity(&paged), 100 * PAGE);
            let mut keys = order(keys);
            let last = keys.pop().unwrap();
            for key in keys {
                paged.remove(key);
            }
            assert!(capacity(&paged) <= 2 * PAGE, "the page of the last one, and the spare one");
            paged.remove(last);
            assert_eq!(
                (capacity(&paged), paged.pages.capacity(), paged.with_room.capacity()),
                (0, 0, 0)
            );
        }
    }

    #[test]
    fn free_places_are_used_again() {
        let mut paged = Paged::default();
        let keys: Vec<_> = (0..10 * PAGE).map(|value| paged.insert(value)).collect();
        for key in keys.iter().skip(5).step_by(PAGE) {
            paged.remove(*key);
        }
        for value in 0..10 {
            assert!(keys.contains(&paged.insert(value)));
        }
        assert_eq!(paged.insert(0), 10 * PAGE);
    }

    #[test]
    fn values_that_come_and_go_allocate_nothing() {
        let mut paged = Paged::default();
        let kept: Vec<_> = (0..3 * PAGE).map(|value| paged.insert(value)).collect();
        for _ in 0..3 {
            let key = paged.insert(0);
            let before = capacity(&paged);
            assert_eq!(before, 4 * PAGE);
            paged.remove(key);
            assert_eq!(capacity(&paged), before);
        }
        for key in kept {
            paged.remove(key);
        }
        assert_eq!(capacity(&paged), 0);
        let mut alone = Paged::default();
        for _ in 0..3 {
            let key = alone.insert(0);
            assert_eq!(alone.remove(key), 0);
            assert_eq!(capacity(&alone), PAGE);
        }
    }
}
