//! Figures that only grow: kept by those to whom things happen, and read by whoever shows them. Keeping one costs nanoseconds
//! and waits for nobody.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the classes that durations are counted in, in seconds: from one judgement of one agent to a look that
/// takes far too long.
pub const BOUNDS: [f64; 17] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 5.0,
];

/// How often something happened.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// It happened once more.
    pub fn add_one(&self) {
        self.add(1);
    }

    /// It happened so many times more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// How often it did so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How long something took, each time that it happened.
#[derive(Debug, Default)]
pub struct Durations {
    /// How many were not longer than each of [`BOUNDS`] and longer than the one before; the last ones are longer than all.
    classes: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// What [`Durations`] were so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Each class's upper bound in seconds, the last one's infinite, and how many fell in it alone.
    pub classes: Vec<(f64, u64)>,
    /// All of them together, in seconds.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
}

impl Durations {
    /// It happened once more, and took so long.
    pub fn note(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let class = BOUNDS.partition_point(|bound| *bound < seconds);
        self.classes[class].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// What they were so far.
    pub fn spread(&self) -> Spread {
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        let classes: Vec<(f64, u64)> = bounds.zip(self.classes.iter().map(|class| class.load(Relaxed))).collect();
        let count = classes.iter().map(|(_, count)| count).sum();
        Spread { classes, sum: Duration::from_nanos(self.nanoseconds.load(Relaxed)).as_secs_f64(), count }
    }
}

/// Figures of one kind for each of several things. The things are told apart by what the program itself calls them: what comes
/// from outside would make new ones without end.
#[derive(Debug)]
pub struct Each<K, F>(Mutex<BTreeMap<K, F>>);

impl<K, F> Default for Each<K, F> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord + Clone, F: Default> Each<K, F> {
    /// Notes something in the figure of one of them.
    pub fn note(&self, of: K, note: impl FnOnce(&F)) {
        note(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(of).or_default());
    }

    /// What is to be read of each that there was something of.
    pub fn read<T>(&self, read: impl Fn(&F) -> T) -> Vec<(K, T)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(of, figure)| (of.clone(), read(figure))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_in_the_first_class_that_it_is_not_longer_than() {
        let durations = Durations::default();
        for took in [0, 10, 11, 100, 5_000_000, 5_000_001].map(Duration::from_micros) {
            durations.note(took);
        }
        let spread = durations.spread();
        let found: Vec<u64> = spread.classes.iter().map(|(_, count)| *count).collect();
        assert_eq!(found, [2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((spread.count, spread.classes[17].0), (6, f64::INFINITY));
        assert!((spread.sum - 10.000_122).abs() < 1e-9, "{}", spread.sum);
    }

    #[test]
    fn each_thing_has_a_figure_of_its_own() {
        let each: Each<&str, Count> = Each::default();
        for of in ["b", "a", "b"] {
            each.note(of, Count::add_one);
        }
        assert_eq!(each.read(Count::get), [("a", 1), ("b", 2)]);
    }
}
