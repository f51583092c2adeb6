//! One agent's past: the window in at most [`POINTS`] points, so that a thousand agents cost a megabyte, not twenty.

use super::{Options, Sample};
use crate::observe::facts::Trend;
use std::collections::VecDeque;
use std::time::Duration;

/// Points that a window is kept in: one for each ten seconds of ten minutes.
const POINTS: u32 = 60;

/// One agent's past.
#[derive(Debug)]
pub(super) struct Series {
    points: VecDeque<Sample>,
    last: Sample,
    /// When the tree was last seen above the noise floor, or first seen at all.
    quiet_since: Duration,
}

impl Series {
    pub fn starting_with(sample: Sample) -> Self {
        Self { points: VecDeque::from([sample]), last: sample, quiet_since: sample.at }
    }

    pub fn latest(&self) -> Duration {
        self.last.at
    }

    pub fn record(&mut self, sample: Sample, options: &Options) -> Trend {
        // Counters only fall where another process has taken the agent's place: its past is not this one's.
        if sample.cpu_time < self.last.cpu_time {
            *self = Self::starting_with(sample);
            return self.trend();
        }
        let elapsed = sample.at.saturating_sub(self.last.at);
        if !elapsed.is_zero() && is_active(&self.last, &sample, elapsed, options) {
            self.quiet_since = sample.at;
        }
        let spacing = options.window / POINTS;
        let is_due = self.points.back().is_none_or(|newest| sample.at.saturating_sub(newest.at) >= spacing);
        if is_due {
            self.points.push_back(sample);
        }
        // The oldest point that is outside the window stays until the next one is, so that the window is covered whole.
        while self.points.get(1).is_some_and(|second| sample.at.saturating_sub(second.at) >= options.window) {
            self.points.pop_front();
        }
        self.last = sample;
        self.trend()
    }

    pub fn trend(&self) -> Trend {
        let first = self.points.front().unwrap_or(&self.last);
        let window = self.last.at.saturating_sub(first.at);
        let cpu = self.last.cpu_time.saturating_sub(first.cpu_time);
        Trend {
            window_ms: millis(window),
            cpu_percent_mean: (!window.is_zero()).then(|| 100.0 * cpu.as_secs_f64() / window.as_secs_f64()),
            memory_bytes_per_minute: self.memory_slope(),
            io_bytes: self.last.io.zip(first.io).map(|(now, then)| now.saturating_sub(then)),
            quiet_ms: millis(self.last.at.saturating_sub(self.quiet_since)),
        }
    }

    /// Least-squares slope of memory over time; `None` below three points, where it would be noise.
    fn memory_slope(&self) -> Option<f64> {
        let points = self.points.iter().chain((self.points.back() != Some(&self.last)).then_some(&self.last));
        let points: Vec<(f64, f64)> =
            points.filter_map(|s| s.memory.map(|bytes| (s.at.as_secs_f64() / 60.0, bytes as f64))).collect();
        if points.len() < 3 {
            return None;
        }
        let n = points.len() as f64;
        let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
        let spread: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
        let together: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
        (spread > 0.0).then(|| together / spread)
    }
}

fn is_active(before: &Sample, now: &Sample, elapsed: Duration, options: &Options) -> bool {
    let cpu = now.cpu_time.saturating_sub(before.cpu_time);
    let cpu_percent = 100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64();
    let io = now.io.zip(before.io).map_or(0, |(now, then)| now.saturating_sub(then));
    cpu_percent >= options.quiet_cpu_percent || io as f64 / elapsed.as_secs_f64() >= options.quiet_io as f64
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPTIONS: Options = Options { window: Duration::from_secs(600), quiet_cpu_percent: 2.0, quiet_io: 64 * 1024 };

    fn sample(second: u64, cpu_ms: u64, memory: u64) -> Sample {
        Sample {
            at: Duration::from_secs(second),
            cpu_time: Duration::from_millis(cpu_ms),
            memory: Some(memory),
            io: Some(0),
        }
    }

    #[test]
    fn steady_use_gives_its_mean_and_slope() {
        let mut series = Series::starting_with(sample(0, 0, 0));
        let mut trend = series.trend();
        for second in 1..=1200 {
            trend = series.record(sample(second, second * 500, second * 1024), &OPTIONS);
        }
        assert_eq!(trend.window_ms, 600_000);
        assert!((trend.cpu_percent_mean.unwrap() - 50.0).abs() < 1e-9);
        assert!((trend.memory_bytes_per_minute.unwrap() - 60.0 * 1024.0).abs() < 1e-3);
        assert_eq!(trend.quiet_ms, 0);
        assert!(series.points.len() <= POINTS as usize + 1);
    }

    #[test]
    fn quiet_counts_beyond_the_window_and_ends_with_work_or_io() {
        let mut series = Series::starting_with(sample(0, 0, 0));
        let trend = series.record(sample(1000, 10, 0), &OPTIONS);
        assert_eq!(trend.quiet_ms, 1_000_000);
        assert_eq!(series.record(sample(1001, 60, 0), &OPTIONS).quiet_ms, 0);
        let reads = Sample { io: Some(1 << 20), ..sample(1003, 60, 0) };
        assert_eq!(series.record(sample(1002, 60, 0), &OPTIONS).quiet_ms, 1_000);
        assert_eq!(series.record(reads, &OPTIONS).quiet_ms, 0);
    }

    #[test]
    fn what_cannot_be_known_is_not_said() {
        let unread = Sample { memory: None, io: None, ..sample(0, 0, 0) };
        let mut series = Series::starting_with(unread);
        assert_eq!(series.trend().cpu_percent_mean, None);
        let trend = series.record(Sample { at: Duration::from_secs(9), ..unread }, &OPTIONS);
        assert_eq!((trend.io_bytes, trend.memory_bytes_per_minute), (None, None));
        assert_eq!(trend.cpu_percent_mean, Some(0.0));
    }

    #[test]
    fn another_process_in_the_agents_place_has_no_past() {
        let mut series = Series::starting_with(sample(0, 0, 0));
        series.record(sample(100, 90_000, 0), &OPTIONS);
        let trend = series.record(sample(101, 10, 0), &OPTIONS);
        assert_eq!((trend.window_ms, trend.cpu_percent_mean, trend.quiet_ms), (0, None, 0));
    }

    proptest! {
        #[test]
        fn any_samples_give_finite_figures(steps in prop::collection::vec((0u64..100_000_000, any::<u32>(), any::<Option<u64>>(), any::<Option<u64>>()), 1..80)) {
            let mut at = Duration::ZERO;
            let mut series = Series::starting_with(sample(0, 0, 0));
            for (ms, cpu, memory, io) in steps {
                at += Duration::from_millis(ms);
                let cpu_time = Duration::from_millis(u64::from(cpu));
                let trend = series.record(Sample { at, cpu_time, memory, io }, &OPTIONS);
                prop_assert!(trend.cpu_percent_mean.is_none_or(f64::is_finite));
                prop_assert!(trend.memory_bytes_per_minute.is_none_or(f64::is_finite));
            }
        }
    }
}
