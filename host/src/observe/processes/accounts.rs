//! What each process of a tree has used between two samples, those that ended in between included.

use super::ProcessId;
use super::counters::{Ended, Ledger};
use super::row::{CpuReading, Io, Row};
use std::collections::{HashMap, HashSet};

/// One process of a tree as it is seen at one sample.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) id: ProcessId,
    pub(super) root: ProcessId,
    pub(super) parent: u32,
    pub(super) image: u64,
    pub(super) cpu: CpuReading,
    /// The CPU time at the look before; see [`Row::before`].
    pub(super) before: Option<CpuReading>,
    /// Whether it has started since the look before, so that all it has used is new.
    pub(super) newcomer: bool,
    pub(super) io: Option<Io>,
}

impl Seen {
    /// What a row shows.
    pub(super) fn of(row: &Row, root: ProcessId) -> Self {
        Self {
            id: row.process.id,
            root,
            parent: row.process.parent,
            image: row.image,
            cpu: row.cpu,
            before: row.before,
            newcomer: row.newcomer,
            io: row.usage.io.ok(),
        }
    }

    /// What a process shows that procfs hides: its CPU clock.
    pub(super) fn hidden(root: ProcessId, cpu: CpuReading) -> Self {
        Self { id: root, root, parent: 0, image: 0, cpu, before: None, newcomer: false, io: None }
    }
}

/// What one tree has used between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spent {
    /// CPU time, nanoseconds.
    pub(super) cpu: u64,
    /// The sum of each process's CPU time over its own time between the samples, 1.0 = one core.
    pub(super) cores: f64,
    /// Whether time has passed for it since a sample before.
    pub(super) timed: bool,
    /// Bytes moved.
    pub(super) io: Io,
}

/// A process that shares its memory with its relatives has come or gone: its parent's pid and the image they share.
pub(super) type Family = (u32, u64);

/// The processes of all trees, as they were at the last sample.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    members: HashMap<u32, Member>,
}

#[derive(Debug, Clone)]
struct Member {
    id: ProcessId,
    parent: u32,
    image: u64,
    cpu: CpuReading,
    io: Option<Io>,
    ledger: Ledger,
}

impl Member {
    fn total(&self) -> Ended {
        Ended { cpu: self.cpu.own.saturating_add(self.cpu.waited), io: self.io.unwrap_or_default() }
    }
}

impl Accounts {
    /// The families in which somebody has come or gone since the last sample.
    pub(super) fn families(&self, seen: &[Seen], alive: impl Fn(ProcessId) -> bool) -> HashSet<Family> {
        let come = seen
            .iter()
            .filter(|seen| self.members.get(&seen.id.pid).is_none_or(|member| member.id != seen.id))
            .map(|seen| (seen.parent, seen.image));
        let gone = self.members.values().filter(|member| !alive(member.id)).map(|member| (member.parent, member.image));
        come.chain(gone).filter(|&(_, image)| image != 0).collect()
    }

    /// Takes in one sample; what each tree has used since the last one.
    ///
    /// A process that is new here counts from the look before, where the table saw it then, or from its start, where
    /// it has started since; otherwise it counts from now.
    pub(super) fn settle(&mut self, seen: &[Seen], alive: impl Fn(ProcessId) -> bool) -> HashMap<ProcessId, Spent> {
        let mut heirs = self.heirs(alive);
        let mut trees: HashMap<ProcessId, Spent> = HashMap::new();
        let mut members = HashMap::with_capacity(seen.len());
        for now in seen {
            let spent = trees.entry(now.root).or_default();
            let known = self.members.remove(&now.id.pid).filter(|member| member.id == now.id);
            let baseline = known.as_ref().map(|member| member.cpu).or(now.before).unwrap_or(now.cpu);
            let interval = now.cpu.at.saturating_sub(baseline.at);
            if interval.is_zero()
                && let Some(member) = known
            {
                // The same sample once more.
                members.insert(now.id.pid, member);
                continue;
            }
            spent.timed |= !interval.is_zero() && (known.is_some() || now.id == now.root);
            let io_baseline = match &known {
                Some(member) => member.io.or(now.io),
                None if now.newcomer => Some(Io::default()),
                None => now.io,
            };
            let mut ledger = known.map(|member| member.ledger).unwrap_or_default();
            let waited = now.cpu.waited.saturating_sub(baseline.waited);
            let settled = ledger.settle(waited, heirs.remove(&now.id).unwrap_or_default());
            let used = now.cpu.own.saturating_sub(baseline.own).saturating_add(settled.cpu);
            spent.cpu = spent.cpu.saturating_add(used);
            if !interval.is_zero() {
                #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days of CPU time")]
                let used = used as f64;
                spent.cores += used / 1e9 / interval.as_secs_f64();
            }
            if let (Some(io), Some(before)) = (now.io, io_baseline) {
                spent.io = spent.io.plus(io.since(before).since(settled.io));
            }
            // No counter of the kernel's falls, but one of a made-up tree or of a restored process may: what it rises
            // again to has been counted already.
            let cpu = CpuReading {
                own: now.cpu.own.max(baseline.own),
                waited: now.cpu.waited.max(baseline.waited),
                at: now.cpu.at,
            };
            let member = Member { id: now.id, parent: now.parent, image: now.image, cpu, io: now.io, ledger };
            members.insert(now.id.pid, member);
        }
        self.members = members;
        trees
    }

    /// For those who live: whom they may have waited for since the last sample.
    ///
    /// A child's parent may have ended as well, and then what the parent had waited for went to the parent's parent.
    fn heirs(&self, alive: impl Fn(ProcessId) -> bool) -> HashMap<ProcessId, Vec<Ended>> {
        let mut heirs: HashMap<ProcessId, Vec<Ended>> = HashMap::new();
        for ended in self.members.values().filter(|member| !alive(member.id)) {
            let parent =
                |child: &&Member| self.members.get(&child.parent).filter(|parent| parent.id.start <= child.id.start);
            let mut line = std::iter::successors(Some(ended), parent).take(self.members.len());
            if let Some(heir) = line.find(|member| alive(member.id)) {
                heirs.entry(heir.id).or_default().push(ended.total());
            }
        }
        heirs
    }
}
