//! Whether one set of values differs from another by more than noise.

use fastrand::Rng;

use crate::quantile::quantile;

/// How often the base's values are split at random.
const SPLITS: usize = 2_000;

/// From fewer values the noise cannot be told: two that happen to be equal would seem to have none.
/// Three repetitions give six.
const FEWEST: usize = 6;

/// The part of the splits, on each side, that the noise leaves out.
const TAIL: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// The medians.
    pub(crate) base: f64,
    pub(crate) now: f64,
    /// Of the medians. Unknown if the base's is 0.
    pub(crate) ratio: Option<f64>,
    /// What the ratio may be without any difference.
    pub(crate) noise: Option<Noise>,
}

/// The ratios of the base to itself, from the smallest to the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Less,
    Same,
    More,
    /// Without a ratio, or without the noise.
    Unknown,
}

impl Comparison {
    /// `None` if one of them has no values.
    pub(crate) fn new(base: &[f64], now: &[f64]) -> Option<Self> {
        let (base_median, now_median) = (median(base)?, median(now)?);
        let ratio = (base_median > 0.0).then(|| now_median / base_median);
        Some(Comparison { base: base_median, now: now_median, ratio, noise: noise(base) })
    }

    pub(crate) fn verdict(self) -> Verdict {
        match (self.ratio, self.noise) {
            (Some(ratio), Some(noise)) if ratio < noise.least => Verdict::Less,
            (Some(ratio), Some(noise)) if ratio > noise.most => Verdict::More,
            (Some(_), Some(_)) => Verdict::Same,
            _ => Verdict::Unknown,
        }
    }

    /// Whether the ratio is above `limit`, and beyond the noise.
    pub(crate) fn is_above(self, limit: f64) -> bool {
        self.verdict() == Verdict::More && self.ratio.is_some_and(|ratio| ratio > limit)
    }
}

/// Splits the values of one program into halves, as if they were of two programs: how far apart are
/// the halves' medians? The random splits are the same in each call. `None` for too few values, and
/// if a median is 0.
fn noise(values: &[f64]) -> Option<Noise> {
    if values.len() < FEWEST {
        return None;
    }
    let mut values = values.to_vec();
    let half = values.len() / 2;
    let mut random = Rng::with_seed(1);
    let mut ratios = Vec::with_capacity(2 * SPLITS);
    for _ in 0..SPLITS {
        random.shuffle(&mut values);
        let (one, other) = (median(&values[..half])?, median(&values[half..])?);
        if one <= 0.0 || other <= 0.0 {
            return None;
        }
        ratios.extend([one / other, other / one]);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    Some(Noise { least: quantile(&ratios, TAIL)?, most: quantile(&ratios, 1.0 - TAIL)? })
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Noise, Verdict};

    const BASE: [f64; 10] = [100.0, 103.0, 98.0, 101.0, 99.0, 104.0, 97.0, 100.0, 102.0, 96.0];

    fn times(factor: f64) -> Comparison {
        let now: Vec<_> = BASE[..5].iter().map(|value| value * factor).collect();
        Comparison::new(&BASE, &now).unwrap()
    }

    #[test]
    fn a_difference_inside_the_noise_is_none() {
        let same = times(1.0);
        assert_eq!((same.base, same.now, same.ratio), (100.0, 100.0, Some(1.0)));
        let Noise { least, most } = same.noise.unwrap();
        assert!((0.94..1.0).contains(&least) && (1.0..1.06).contains(&most), "{least} {most}");
        assert!((least * most - 1.0).abs() < 1e-9, "the noise is the same both ways");
        assert_eq!([0.99, 1.0, 1.01].map(|factor| times(factor).verdict()), [Verdict::Same; 3]);
    }

    #[test]
    fn a_difference_beyond_the_noise_is_one() {
        assert_eq!(times(1.2).verdict(), Verdict::More);
        assert_eq!(times(0.8).verdict(), Verdict::Less);
        assert_eq!([1.08, 1.2].map(|factor| times(factor).is_above(1.1)), [false, true]);
    }

    #[test]
    fn noise_is_that_of_the_program_with_itself() {
        let base = [100.0, 200.0, 100.0, 200.0, 100.0, 200.0];
        let comparison = Comparison::new(&base, &[190.0, 190.0]).unwrap();
        assert_eq!(comparison.noise, Some(Noise { least: 0.5, most: 2.0 }));
        assert_eq!(comparison.verdict(), Verdict::Same);
    }

    #[test]
    fn exact_values_have_no_noise() {
        let exact = Comparison::new(&[56.0; 6], &[57.0; 3]).unwrap();
        assert_eq!(exact.noise, Some(Noise { least: 1.0, most: 1.0 }));
        assert_eq!(exact.verdict(), Verdict::More);
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        assert_eq!(Comparison::new(&[], &[1.0]), None);
        assert_eq!(Comparison::new(&[1.0], &[]), None);
        let zero = Comparison::new(&[0.0; 6], &[1.0]).unwrap();
        assert_eq!((zero.ratio, zero.noise, zero.verdict()), (None, None, Verdict::Unknown));
        let few = Comparison::new(&[1.0; 5], &[2.0]).unwrap();
        assert_eq!((few.ratio, few.noise, few.verdict()), (Some(2.0), None, Verdict::Unknown));
    }
}
