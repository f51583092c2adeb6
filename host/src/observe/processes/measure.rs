//! From rows and roots to one reading for each agent.

use super::accounts::{Accounts, Family, Seen, Spent};
use super::figures::{known, sum, total};
use super::memory::{self, Budget};
use super::row::{Io, Pss, Row, Rows};
use super::tree::Attribution;
use super::{Liveness, ProcessId, Reading, Table};
use crate::clock::Clock;
use crate::observe::facts::{Gap, Metrics, ProcessState};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// What the first look may spend on proportional set sizes at the least.
const FIRST_BUDGET: Duration = Duration::from_millis(60);

/// The agents' trees and what they have used so far.
pub(super) struct Forest {
    clock: Arc<dyn Clock>,
    pss_budget: Duration,
    budget: Budget,
    attribution: Attribution,
    accounts: Accounts,
    trees: HashMap<ProcessId, Tree>,
}

/// What one agent's tree has used since it was first seen.
#[derive(Debug, Clone, Default)]
struct Tree {
    /// Nanoseconds.
    cpu_time: u64,
    /// Of the last time between two samples.
    cpu_percent: Option<f64>,
    io: Io,
    exit_code: Option<i32>,
}

impl Forest {
    pub(super) fn new(clock: Arc<dyn Clock>, pss_budget: Duration) -> Self {
        Self {
            clock,
            pss_budget,
            budget: Budget::default(),
            attribution: Attribution::default(),
            accounts: Accounts::default(),
            trees: HashMap::new(),
        }
    }

    pub(super) fn know_tags(&mut self, tags: HashMap<String, ProcessId>) {
        self.attribution.know_tags(tags);
    }

    pub(super) fn measure(&mut self, table: &mut Table, roots: &[ProcessId]) -> Vec<Reading> {
        self.attribution.assign(table.rows(), roots);
        let owned: Vec<(u32, ProcessId)> = (table.rows().values())
            .filter_map(|row| Some((row.process.id.pid, self.attribution.owner(row.process.id)?)))
            .collect();
        for &(pid, _) in &owned {
            table.read_usage(pid);
        }
        let mut trees: HashMap<ProcessId, Vec<&Row>> = HashMap::new();
        let (seen, absent) = look_at(table, &owned, roots);
        let spent = {
            let alive = |id: ProcessId| row_of(table.rows(), id).is_some();
            let families = self.accounts.families(&seen, alive);
            self.read_pss(table, &owned, &families);
            let alive = |id: ProcessId| row_of(table.rows(), id).is_some();
            self.accounts.settle(&seen, alive)
        };
        for (pid, root) in &owned {
            trees.entry(*root).or_default().extend(table.rows().get(pid));
        }
        self.trees.retain(|root, _| roots.contains(root));
        let mut readings = Vec::with_capacity(roots.len());
        for root in roots {
            let new = !self.trees.contains_key(root);
            let tree = self.trees.entry(*root).or_default();
            if let Some(spent) = spent.get(root) {
                let first = new && row_of(table.rows(), *root).is_none_or(|row| row.before.is_none());
                tree.add(spent, first, table.cores());
            }
            let rows = trees.get(root).map_or(&[][..], Vec::as_slice);
            let state = absent.get(root).copied();
            readings.push(tree.reading(row_of(table.rows(), *root), state, rows, table.look()));
        }
        readings
    }

    /// Reads as many proportional set sizes as the budget allows.
    fn read_pss(&mut self, table: &mut Table, owned: &[(u32, ProcessId)], families: &HashSet<Family>) {
        if !families.is_empty() {
            shake(table.rows_mut(), owned, families);
        }
        let look = table.look();
        let turns = memory::turns(table.rows(), owned.iter().map(|&(pid, _)| pid), look);
        // The first look is followed by a wait for the second anyway, and nothing is known yet.
        let budget = if look == 1 { self.pss_budget.max(FIRST_BUDGET) } else { self.pss_budget };
        let until = self.clock.now().steady + budget;
        for pid in self.budget.choose(&turns, budget, look) {
            let read = table.read_pss(pid);
            if let Some(row) = table.rows_mut().get_mut(&pid) {
                let private = row.usage.private();
                row.pss = read.map_or(Pss::Denied, |bytes| Pss::Read { bytes, private, look, shaken: false });
            }
            if self.clock.now().steady >= until {
                break;
            }
        }
    }
}

impl Tree {
    /// Adds what was used since the last sample. `first`: there is no sample before to tell it from.
    fn add(&mut self, spent: &Spent, first: bool, cores: u32) {
        self.cpu_time = self.cpu_time.saturating_add(spent.cpu);
        self.io = self.io.plus(spent.io);
        if spent.timed && !first {
            self.cpu_percent = Some((spent.cores * 100.0).clamp(0.0, f64::from(cores) * 100.0));
        }
    }

    /// `root` is the root's row; where it has none, `absent` says what became of it.
    fn reading(&mut self, root: Option<&Row>, absent: Option<ProcessState>, rows: &[&Row], look: u64) -> Reading {
        let mut gaps = Vec::new();
        let state = root.map(|row| row.process.state).or(absent).unwrap_or(ProcessState::Gone);
        if state == ProcessState::Gone && rows.is_empty() {
            // Nothing runs, so nothing is used.
            self.cpu_percent = Some(0.0);
        }
        let hidden = root.is_none() && state == ProcessState::Unreadable;
        let mut metrics = if hidden { hidden_metrics(&mut gaps) } else { sum(rows, look, &mut gaps) };
        metrics.cpu_percent =
            known("cpu-percent", self.cpu_percent.ok_or_else(|| "needs two samples".to_owned()), &mut gaps);
        let mut io_bytes = None;
        if !hidden {
            let io = total(rows, |row| row.usage.io.map(|_| 0));
            io_bytes = io.is_ok().then_some(self.io.moved);
            metrics.read_bytes = known("read-bytes", io.clone().map(|_| self.io.read), &mut gaps);
            metrics.written_bytes = known("written-bytes", io.map(|_| self.io.written), &mut gaps);
        }
        match root.filter(|_| state == ProcessState::Zombie).map(exit_code) {
            Some(Ok(code)) => self.exit_code = Some(code),
            Some(Err(reason)) => gaps.push(Gap::new("exit-code", reason.to_owned())),
            None if state == ProcessState::Gone && self.exit_code.is_none() => {
                let reason = "its parent had taken the exit code before a sample saw it".to_owned();
                gaps.push(Gap::new("exit-code", reason));
            }
            None => {}
        }
        Reading {
            state,
            exit_code: self.exit_code,
            metrics,
            cpu_time: Duration::from_nanos(self.cpu_time),
            io_bytes,
            unmeasured: gaps,
        }
    }
}

/// What is seen of the trees' processes, and what became of those roots that the table does not have.
fn look_at(
    table: &Table,
    owned: &[(u32, ProcessId)],
    roots: &[ProcessId],
) -> (Vec<Seen>, HashMap<ProcessId, ProcessState>) {
    let rows = table.rows();
    let mut seen: Vec<Seen> = owned.iter().filter_map(|(pid, root)| Some(Seen::of(rows.get(pid)?, *root))).collect();
    let mut absent = HashMap::new();
    for &root in roots.iter().filter(|root| row_of(rows, **root).is_none()) {
        let state = match table.state_of(root) {
            Liveness::Gone | Liveness::Replaced => ProcessState::Gone,
            Liveness::Zombie => ProcessState::Zombie,
            // Alive and not in the table: it started after the last look, and what it does is not known yet.
            Liveness::Alive | Liveness::Unreadable => ProcessState::Unreadable,
        };
        if state == ProcessState::Unreadable && absent.insert(root, state).is_none() {
            seen.extend(table.hidden_cpu(root.pid).map(|cpu| Seen::hidden(root, cpu)));
        }
        absent.insert(root, state);
    }
    (seen, absent)
}

/// Marks what is known of the shared memory of those whose relatives have come or gone.
fn shake(rows: &mut Rows, owned: &[(u32, ProcessId)], families: &HashSet<Family>) {
    for (pid, _) in owned {
        let Some(row) = rows.get_mut(pid) else {
            continue;
        };
        let related = families.contains(&(*pid, row.image)) || families.contains(&(row.process.parent, row.image));
        if related && let Pss::Read { shaken, .. } = &mut row.pss {
            *shaken = true;
        }
    }
}

fn hidden_metrics(gaps: &mut Vec<Gap>) -> Metrics {
    for field in ["memory-bytes", "threads", "processes", "zombies", "file-descriptors", "read-bytes", "written-bytes"]
    {
        gaps.push(Gap::new(field, "the system does not show this process to this user".to_owned()));
    }
    Metrics::default()
}

/// How a zombie ended: its exit code, or minus the number of the signal, as wait(2) has them.
///
/// # Errors
/// The kernel writes 0 where the status may not be read; that it may, the IO counters tell, which need the same right.
fn exit_code(zombie: &Row) -> Result<i32, &'static str> {
    match (zombie.wait_status, zombie.usage.io) {
        (0, Err(reason)) => Err(reason),
        (status, _) if status & 0x7f == 0 => Ok((status >> 8) & 0xff),
        (status, _) => Ok(-(status & 0x7f)),
    }
}

fn row_of(rows: &Rows, id: ProcessId) -> Option<&Row> {
    rows.get(&id.pid).filter(|row| row.process.id == id)
}
