//! A list that numbers its values in the order in which they were added, and finds them by their
//! numbers.
//!
//! A removed value leaves a hole, until the list has room for four times as many values as it
//! holds. So each operation takes at most the time of a binary search, on average, and the memory
//! follows the number of values.

use std::collections::VecDeque;

use crate::task::unstarted::KEPT_TASKS;

/// See the [module's documentation](self).
pub(crate) struct Numbered<T> {
    /// By their numbers. The first one is no hole.
    values: VecDeque<(u64, Option<T>)>,
    len: usize,
    next: u64,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { values: VecDeque::new(), len: 0, next: 0 }
    }
}

impl<T> Numbered<T> {
    /// Adds a value, and returns its number.
    pub(crate) fn push(&mut self, value: T) -> u64 {
        let number = self.next;
        self.values.push_back((number, Some(value)));
        self.next += 1;
        self.len += 1;
        number
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.values.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        self.values[self.find(number)?].1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let index = self.find(number)?;
        self.values[index].1.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let index = self.find(number)?;
        let value = self.values[index].1.take()?;
        self.len -= 1;
        while let Some((_, None)) = self.values.front() {
            self.values.pop_front();
        }
        let kept = self.len.max(KEPT_TASKS);
        if self.values.capacity() > 4 * kept {
            self.values.retain(|(_, value)| value.is_some());
            self.values.shrink_to(2 * kept);
        }
        Some(value)
    }

    /// Returns the values with their numbers, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.values.iter().filter_map(|(number, value)| Some((*number, value.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.values.iter_mut().filter_map(|(number, value)| Some((*number, value.as_mut()?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::{KEPT_TASKS, Numbered};

    /// As a map does, which is ordered and has no holes.
    #[test]
    fn values_are_found_by_their_numbers_until_they_are_removed() {
        let (mut list, mut map) = (Numbered::default(), BTreeMap::new());
        for round in 0..40_000 {
            let grows = round / 5_000 % 2 == 0;
            if fastrand::u8(..4) < if grows { 3 } else { 1 } {
                assert!(map.insert(list.push(round), round).is_none(), "a new number");
            }
            let number = fastrand::u64(..=map.len() as u64 * 2);
            let number = map.keys().copied().nth(number as usize % 8).unwrap_or(number);
            if fastrand::bool() {
                assert_eq!(list.remove(number), map.remove(&number));
            }
            assert_eq!(list.get(number), map.get(&number));
            assert_eq!(list.get_mut(number), map.get_mut(&number));
            assert_eq!(list.len(), map.len());
            assert!(
                list.values.capacity() <= 8 * list.len().max(KEPT_TASKS),
                "memory is given back"
            );
            if round % 100 == 0 {
                assert!(list.iter().eq(map.iter().map(|(number, value)| (*number, value))));
                assert!(list.iter_mut().map(|(number, _)| number).eq(map.keys().copied()));
            }
        }
    }
}
