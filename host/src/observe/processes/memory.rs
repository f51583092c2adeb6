//! A tree's memory, with pages that several of its processes share counted once.
//!
//! The kernel's proportional set size (PSS) has it right and is dear to read: about 4 µs for each MiB. So it is read in
//! turn, so many at each sample as the budget allows, and carried on from there by what the process's own pages have
//! grown by. Until all of a tree's are known, those that are not are estimated: each one's own pages, and the largest
//! shared part once.

use super::row::{Pss, Row, Rows};
use crate::observe::facts::{MemoryMethod, ProcessState};
use std::collections::HashMap;
use std::time::Duration;

/// A reading is repeated after so many samples, even if nothing seems to have changed.
const RENEW_AFTER: u64 = 45;

/// A reading older than so many samples does not count as known.
const OLD_AFTER: u64 = 60;

/// A process that is dearer than the whole budget gets its turn once in so many samples.
const DEAR_EVERY: u64 = 10;

/// A tree's memory in bytes; `Err` if that of a living process may not be read.
///
/// A process that has not been read is taken to share as much as those of the same program in its tree that have: of a hundred
/// copies that one process forked, each seems to have all of its pages to itself.
pub(super) fn of<'a>(living: impl Iterator<Item = &'a Row>, look: u64) -> (Result<u64, &'static str>, MemoryMethod) {
    let living: Vec<&Row> = living.collect();
    let known = known_shares(&living);
    let (mut sum, mut most_shared, mut resident) = (0_u64, 0, 0_u64);
    let (mut all_known, mut all_told) = (true, true);
    for row in living {
        let size = match row.usage.resident {
            Ok(size) => size,
            Err(reason) => return (Err(reason), MemoryMethod::Estimate),
        };
        resident = resident.saturating_add(size);
        let own = row.usage.private();
        match (carried(row), row.pss) {
            (Some(carried), Pss::Read { look: read, shaken, .. }) => {
                sum = sum.saturating_add(carried.min(size));
                all_known &= !shaken && look.saturating_sub(read) <= OLD_AFTER;
            }
            _ => {
                all_known = false;
                all_told &= row.usage.shared.is_some();
                match known.get(row.process.comm.as_str()) {
                    Some(share) => sum = sum.saturating_add(((own as f64 * share) as u64).min(size)),
                    None => {
                        sum = sum.saturating_add(own);
                        most_shared = most_shared.max(row.usage.shared.unwrap_or(0));
                    }
                }
            }
        }
    }
    let method = match (all_known, all_told) {
        (true, _) => MemoryMethod::Pss,
        (false, true) => MemoryMethod::Estimate,
        (false, false) => MemoryMethod::Resident,
    };
    (Ok(sum.saturating_add(most_shared).min(resident)), method)
}

/// The proportional set size of a process as it was read, carried on by what its own pages have grown by.
fn carried(row: &Row) -> Option<u64> {
    match row.pss {
        Pss::Read { bytes, private, .. } => Some(bytes.saturating_add(row.usage.private()).saturating_sub(private)),
        Pss::Unread | Pss::Denied => None,
    }
}

/// For each program of which a process has been read: its proportional set size by its own pages.
fn known_shares<'a>(living: &[&'a Row]) -> HashMap<&'a str, f64> {
    let mut sums: HashMap<&str, (f64, f64)> = HashMap::new();
    for row in living {
        if let Some(carried) = carried(row) {
            let (pss, own) = sums.entry(row.process.comm.as_str()).or_default();
            *pss += carried as f64;
            *own += row.usage.private() as f64;
        }
    }
    sums.into_iter().filter(|(_, (_, own))| *own > 0.0).map(|(program, (pss, own))| (program, pss / own)).collect()
}

/// Whose proportional set size is to be read, the most urgent first.
pub(super) fn turns(rows: &Rows, members: impl Iterator<Item = u32>, look: u64) -> Vec<Turn> {
    let mut turns: Vec<Turn> = members.filter_map(|pid| turn(rows.get(&pid)?, look)).collect();
    turns.sort_unstable_by_key(|turn| (turn.urgency, turn.read, turn.pid));
    turns
}

/// One process's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Whose.
    pub(super) pid: u32,
    /// How long it will take.
    pub(super) cost: Duration,
    urgency: Urgency,
    /// The look of the last reading.
    read: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Unread,
    Shaken,
    Changed,
    Old,
}

fn turn(row: &Row, look: u64) -> Option<Turn> {
    if row.process.state == ProcessState::Zombie {
        return None;
    }
    let (urgency, read) = match row.pss {
        Pss::Denied => return None,
        Pss::Unread => (Urgency::Unread, 0),
        Pss::Read { shaken: true, look: read, .. } => (Urgency::Shaken, read),
        Pss::Read { bytes, private, look: read, .. } => {
            let moved = row.usage.private().abs_diff(private);
            if moved > bytes / 4 {
                (Urgency::Changed, read)
            } else if look.saturating_sub(read) >= RENEW_AFTER {
                (Urgency::Old, read)
            } else {
                return None;
            }
        }
    };
    let mib = row.usage.resident.unwrap_or(0) >> 20;
    // Measured: 15 to 20 µs for the smallest process, and about 4 µs for each MiB.
    let cost = Duration::from_micros(20 + 4 * mib);
    Some(Turn { pid: row.process.id.pid, cost, urgency, read })
}

/// What one sample may still spend.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget {
    /// The look at which the last process had its turn that is dearer than the whole budget.
    dear: u64,
}

impl Budget {
    /// Which of the turns are taken.
    pub(super) fn choose(&mut self, turns: &[Turn], budget: Duration, look: u64) -> Vec<u32> {
        let mut left = budget;
        let mut chosen = Vec::new();
        for turn in turns {
            if turn.cost <= left {
                left -= turn.cost;
                chosen.push(turn.pid);
            } else if turn.cost > budget && look >= self.dear + DEAR_EVERY {
                self.dear = look;
                left = Duration::ZERO;
                chosen.push(turn.pid);
            }
        }
        chosen
    }
}
