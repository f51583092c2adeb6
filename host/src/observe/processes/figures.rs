//! The figures of one tree at one sample, from the rows of its processes.

use super::memory;
use super::row::Row;
use crate::observe::facts::{Gap, Metrics, ProcessState};

/// Sums over the rows of a tree, all but CPU time and IO, which have a history. What is missing in one row is missing
/// in the sum, with the reason.
pub(super) fn sum(rows: &[&Row], look: u64, gaps: &mut Vec<Gap>) -> Metrics {
    let living: Vec<&Row> = rows.iter().copied().filter(|row| row.process.state != ProcessState::Zombie).collect();
    let (memory_bytes, memory_method) = memory::of(living.iter().copied(), look);
    let threads = total(&living, |row| row.threads.map(u64::from));
    let fds = total(&living, |row| row.usage.fds.map(u64::from));
    let fullest = (living.iter()).filter_map(|row| Some((row.usage.fds.ok()?, row.usage.fd_limit.ok()??))).max_by(
        |(open, limit), (other_open, other_limit)| {
            // As fractions, without a division by a limit of 0.
            (u64::from(*open) * u64::from(*other_limit)).cmp(&(u64::from(*other_open) * u64::from(*limit)))
        },
    );
    Metrics {
        memory_bytes: known("memory-bytes", memory_bytes.map_err(str::to_owned), gaps),
        memory_method,
        threads: known("threads", threads, gaps).map(narrow),
        processes: Some(count(living.len())),
        zombies: Some(count(rows.len() - living.len())),
        file_descriptors: known("file-descriptors", fds, gaps).map(narrow),
        fullest_fds: fullest.map(|(open, _)| open),
        fd_limit: fullest.map(|(_, limit)| limit),
        ..Metrics::default()
    }
}

/// The sum of one figure, or of how many rows it may not be read, and why.
pub(super) fn total(rows: &[&Row], figure: impl Fn(&Row) -> Result<u64, &'static str>) -> Result<u64, String> {
    let (mut sum, mut missing, mut why) = (0_u64, 0, "");
    for row in rows {
        match figure(row) {
            Ok(value) => sum = sum.saturating_add(value),
            Err(reason) => (missing, why) = (missing + 1, reason),
        }
    }
    if missing == 0 { Ok(sum) } else { Err(format!("of {missing} of {} processes: {why}", rows.len())) }
}

/// The figure, or a gap in its place.
pub(super) fn known<T>(field: &'static str, figure: Result<T, String>, gaps: &mut Vec<Gap>) -> Option<T> {
    figure.map_err(|reason| gaps.push(Gap::new(field, reason))).ok()
}

fn narrow(sum: u64) -> u32 {
    u32::try_from(sum).unwrap_or(u32::MAX)
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
