//! A tree's memory, with pages that several of its processes share counted once.
//!
//! The kernel's proportional set size (PSS) has it right and is dear to read: about 4 µs for each MiB. So it is read in
//! turn, so many at each sample as the budget allows, and carried on from there by what the process's own pages have
//! grown by. Until all of a tree's are known, those that are not are estimated: each one's own pages, and the largest
//! shared part once.

use super::row::{Pss, Row, Rows};
use crate::observe::facts::{MemoryMethod, ProcessState};
use std::time::Duration;

/// A reading is repeated after so many samples, even if nothing seems to have changed.
const RENEW_AFTER: u64 = 45;

/// A reading older than so many samples does not count as known.
const OLD_AFTER: u64 = 60;

/// A process that is dearer than the whole budget gets its turn once in so many samples.
const DEAR_EVERY: u64 = 10;

/// A tree's memory in bytes; `None` if that of a living process may not be read.
pub(super) fn of<'a>(living: impl Iterator<Item = &'a Row>, look: u64) -> (Result<u64, &'static str>, MemoryMethod) {
    let (mut sum, mut most_shared, mut resident) = (0_u64, 0, 0_u64);
    let (mut all_known, mut all_told) = (true, true);
    for row in living {
        let size = match row.usage.resident {
            Ok(size) => size,
            Err(reason) => return (Err(reason), MemoryMethod::Estimate),
        };
        resident = resident.saturating_add(size);
        let own = row.usage.private();
        match row.pss {
            Pss::Read { bytes, private, look: read, shaken } => {
                let carried = bytes.saturating_add(own).saturating_sub(private);
                sum = sum.saturating_add(carried.min(size));
                all_known &= !shaken && look.saturating_sub(read) <= OLD_AFTER;
            }
            Pss::Unread | Pss::Denied => {
                sum = sum.saturating_add(own);
                most_shared = most_shared.max(row.usage.shared.unwrap_or(0));
                all_known = false;
                all_told &= row.usage.shared.is_some();
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
