//! Sums that survive the end of those who made them.
//!
//! When a parent waits for a child, the kernel adds the child's CPU time (and that of the children the child itself
//! waited for) to the parent's `cutime` and `cstime`, and its IO to the parent's own counters. The part of it that was
//! seen while the child lived has been counted already; the rest (after the last sample, or all of a child that was
//! never seen) has not. A ledger for each parent tells the two apart.

use super::row::Io;
use std::cmp::Reverse;
use std::mem;

/// How far the children's times may lag: `cutime` and `cstime` are both rounded down to ticks of 10 ms.
const ROUNDING: i64 = 20_000_000;

/// What a process had used when it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ended {
    /// CPU time, that of its waited children included, nanoseconds.
    pub(super) cpu: u64,
    /// Bytes moved, likewise.
    pub(super) io: Io,
}

/// What was waited for and not yet counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Settled {
    /// CPU time that nobody has counted before, nanoseconds.
    pub(super) cpu: u64,
    /// Bytes that are in the parent's counters and have been counted before.
    pub(super) io: Io,
}

/// One parent's account of its children.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// What `cutime` and `cstime` still owe by rounding, nanoseconds: from `-ROUNDING` to 0.
    balance: i64,
    /// Children that were gone at the last sample without having appeared in the parent's counters: they may have been
    /// waited for just after these were read. They are expected once more.
    expected: Vec<Ended>,
}

impl Ledger {
    /// Takes in what the children's times have grown by since the last sample, and the children that have gone since.
    ///
    /// Which of them were waited for is not recorded anywhere; a child counts as waited for if its time fits into what
    /// the children's times have grown by. A child that ended otherwise (its death signal ignored, or waited for by
    /// another) does not fit, unless it has hardly used any. The largest come first: a small one that was not waited
    /// for must not take the place of a large one that was.
    pub(super) fn settle(&mut self, waited: u64, ended: Vec<Ended>) -> Settled {
        self.balance = self.balance.saturating_add(signed(waited));
        let again = mem::take(&mut self.expected).into_iter().map(|child| (child, false));
        let mut children: Vec<(Ended, bool)> = again.chain(ended.into_iter().map(|child| (child, true))).collect();
        children.sort_by_key(|(child, _)| Reverse(child.cpu));
        let mut settled = Settled::default();
        for (child, new) in children {
            let rest = self.balance.saturating_sub(signed(child.cpu));
            // Once for the rounding now, and once for what is still owed from before.
            if rest >= -2 * ROUNDING {
                self.balance = rest.max(-ROUNDING);
                settled.io = settled.io.plus(child.io);
            } else if new {
                self.expected.push(child);
            }
        }
        if self.balance > 0 {
            settled.cpu = self.balance.unsigned_abs();
            self.balance = 0;
        }
        settled
    }
}

impl Io {
    /// The sum.
    pub(super) fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What came on top of `before`; nothing where the counter has fallen.
    pub(super) fn since(self, before: Self) -> Self {
        self.each(before, u64::saturating_sub)
    }

    fn each(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            read: f(self.read, other.read),
            written: f(self.written, other.written),
            moved: f(self.moved, other.moved),
        }
    }
}

fn signed(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}
