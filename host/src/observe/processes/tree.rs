//! Which process belongs to which agent.
//!
//! The nearest root up the chain of parents has a process, and keeps it until it dies: a parent's end does not move it.
//! One whose chain is already broken when it is first seen belongs to the tree that its process group's or session's
//! leader is or was in, or else to the root that has the same [`AGENT_TAG`].
//!
//! A tag that is recorded as a root's (`headcount run` gives each of its agents one) is nobody else's. Where it ends on the way
//! up, so does that root's tree: what stands above took an orphan in, and may itself belong to the agent that started this one.

use super::row::{Row, Rows};
use super::{AGENT_TAG, Details, NOBODYS_TAG, ProcessId};
use std::collections::{HashMap, HashSet};

/// Who belongs to whom, remembered from sample to sample.
#[derive(Debug, Default)]
pub(super) struct Attribution {
    roots: HashSet<ProcessId>,
    /// The root of every living process that has one.
    owners: HashMap<ProcessId, ProcessId>,
    /// Process groups and sessions whose leader is or was in a tree. The kernel gives a number to no new process as
    /// long as a group or session has it, so it means the same until the last member ends.
    groups: HashMap<u32, Led>,
    sessions: HashMap<u32, Led>,
    /// The roots' tags, also of roots that have ended.
    tags: HashMap<String, ProcessId>,
    /// The roots' tags by what is recorded.
    recorded: HashMap<String, ProcessId>,
}

/// A process group or session in a tree.
#[derive(Debug, Clone, Copy)]
struct Led {
    leader: ProcessId,
    root: ProcessId,
}

/// What one pass has found, by pid; `None` is for those that belong to nobody.
type Found = HashMap<u32, Option<ProcessId>>;

impl Attribution {
    /// Learns which tags are recorded as whose.
    pub(super) fn know_tags(&mut self, tags: HashMap<String, ProcessId>) {
        self.recorded = tags;
    }

    /// Brings everything up to date with the table.
    pub(super) fn assign(&mut self, rows: &Rows, roots: &[ProcessId]) {
        let now: HashSet<ProcessId> = roots.iter().copied().collect();
        let new: HashSet<ProcessId> = now.difference(&self.roots).copied().collect();
        self.forget(rows, &now);
        self.roots = now;
        self.learn_tags(rows, roots);
        if !new.is_empty() {
            self.hand_over(rows, &new);
        }
        // What one pass finds (a leader, a tagged parent) may be the tie of others.
        while self.pass(rows) {}
    }

    /// The root that a process belongs to.
    pub(super) fn owner(&self, id: ProcessId) -> Option<ProcessId> {
        self.owners.get(&id).copied()
    }

    /// Forgets the dead, and all that belongs to roots that are none any more.
    fn forget(&mut self, rows: &Rows, roots: &HashSet<ProcessId>) {
        self.owners.retain(|id, root| roots.contains(root) && alive(rows, *id));
        self.tags.retain(|_, root| roots.contains(root));
        forget_groups(&mut self.groups, rows, roots, |row| row.process.group);
        forget_groups(&mut self.sessions, rows, roots, |row| row.process.session);
    }

    /// A nested agent inherits the tag of the outer one: of several roots with the same tag, the first has it.
    fn learn_tags(&mut self, rows: &Rows, roots: &[ProcessId]) {
        for root in roots {
            let Some(tag) = row_of(rows, *root).and_then(tag) else {
                continue;
            };
            let holder = self.tags.entry(tag.to_owned()).or_insert(*root);
            if root.start < holder.start {
                *holder = *root;
            }
        }
    }

    /// New roots take what is theirs from the roots above them.
    fn hand_over(&mut self, rows: &Rows, new: &HashSet<ProcessId>) {
        for row in rows.values() {
            let id = row.process.id;
            let nearest = ancestors(rows, row).map(|row| row.process.id).find(|above| self.roots.contains(above));
            if let Some(root) = nearest.filter(|root| new.contains(root) && self.owners.contains_key(&id)) {
                self.owners.insert(id, root);
            }
        }
        for root in new {
            if alive(rows, *root) {
                self.owners.insert(*root, *root);
            }
        }
    }

    /// Looks for the roots of those that have none. Whether any was found by other ties than the chain of parents.
    fn pass(&mut self, rows: &Rows) -> bool {
        let mut found = Found::with_capacity(rows.len());
        for row in rows.values() {
            let owner = self.up_the_chain(rows, row, &mut found);
            if let Some(root) = owner {
                self.own(row, root);
            }
        }
        let mut again = false;
        for row in rows.values() {
            if found.get(&row.process.id.pid) == Some(&None)
                && let Some(root) = self.by_other_ties(row)
            {
                self.own(row, root);
                again = true;
            }
        }
        again
    }

    fn own(&mut self, row: &Row, root: ProcessId) {
        let process = &row.process;
        self.owners.insert(process.id, root);
        if process.group == process.id.pid {
            self.groups.insert(process.group, Led { leader: process.id, root });
        }
        if process.session == process.id.pid {
            self.sessions.insert(process.session, Led { leader: process.id, root });
        }
    }

    /// The owner of the process itself or of the nearest ancestor that has one.
    fn up_the_chain(&self, rows: &Rows, row: &Row, found: &mut Found) -> Option<ProcessId> {
        let mut passed = Vec::new();
        let mut owner = None;
        for row in ancestors(rows, row) {
            let id = row.process.id;
            if let Some(&known) = found.get(&id.pid) {
                owner = known;
                break;
            }
            passed.push(id.pid);
            if is_nobodys(row) {
                break;
            }
            owner = if self.roots.contains(&id) { Some(id) } else { self.owner(id) };
            if owner.is_some() {
                break;
            }
            owner = self.by_record(row).filter(|_| !parent_has_tag(rows, row));
            if owner.is_some() {
                break;
            }
        }
        found.extend(passed.into_iter().map(|pid| (pid, owner)));
        owner
    }

    /// The root whose tag this is by what is recorded.
    fn by_record(&self, row: &Row) -> Option<ProcessId> {
        if self.recorded.is_empty() {
            return None;
        }
        self.recorded.get(tag(row)?).copied().filter(|root| self.roots.contains(root))
    }

    fn by_other_ties(&self, row: &Row) -> Option<ProcessId> {
        if is_nobodys(row) {
            return None;
        }
        let process = &row.process;
        let led = self.groups.get(&process.group).or_else(|| self.sessions.get(&process.session));
        // A tag that was there before the root is somebody else's: the root has inherited it.
        let tagged = || self.tags.get(tag(row)?).filter(|root| root.start <= process.id.start);
        led.map(|led| &led.root).or_else(tagged).copied()
    }
}

/// Forgets the groups or sessions that have become empty, and those of roots that are none any more.
///
/// Where another process than the leader has the number as its pid, the group was empty in between.
fn forget_groups(groups: &mut HashMap<u32, Led>, rows: &Rows, roots: &HashSet<ProcessId>, group: impl Fn(&Row) -> u32) {
    groups.retain(|number, led| {
        roots.contains(&led.root) && rows.get(number).is_none_or(|row| row.process.id == led.leader)
    });
    if !groups.is_empty() {
        let used: HashSet<u32> = rows.values().map(group).collect();
        groups.retain(|number, _| used.contains(number));
    }
}

/// The process itself, its parent, and so on up.
///
/// A parent has started no later than its child: one that seems to have is a stranger with the dead parent's pid. So
/// the way up ends; and where several have started in the same tick, it ends with the number of rows.
fn ancestors<'a>(rows: &'a Rows, row: &'a Row) -> impl Iterator<Item = &'a Row> {
    let parent = |child: &&'a Row| {
        let row = rows.get(&child.process.parent)?;
        (row.process.id.start <= child.process.id.start).then_some(row)
    };
    std::iter::successors(Some(row), parent).take(rows.len())
}

fn row_of(rows: &Rows, id: ProcessId) -> Option<&Row> {
    rows.get(&id.pid).filter(|row| row.process.id == id)
}

fn alive(rows: &Rows, id: ProcessId) -> bool {
    row_of(rows, id).is_some()
}

/// Whether it says that it belongs to no agent.
fn is_nobodys(row: &Row) -> bool {
    tag(row) == Some(NOBODYS_TAG)
}

/// Whether the parent carries the same tag.
fn parent_has_tag(rows: &Rows, row: &Row) -> bool {
    ancestors(rows, row).nth(1).is_some_and(|parent| tag(parent) == tag(row))
}

fn tag(row: &Row) -> Option<&str> {
    let Details::Read(program) = &row.process.details else {
        return None;
    };
    let variables = program.env.as_ref().ok()?;
    variables.iter().find(|(name, value)| name == AGENT_TAG && !value.is_empty()).map(|(_, value)| value.as_str())
}
