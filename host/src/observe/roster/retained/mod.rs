//! Retained MCP sessions: one connection kept for programs that work through files, in a folder that says how it stands.
//!
//! Each is an agent of its folder's owner. What stands in such a folder is hostile: only a plain file of a sensible size is
//! read, without following links, if it belongs to the folder's owner, and only when it has changed.

mod folder;
mod said;
mod scan;
mod status;
#[cfg(test)]
mod tests;

pub use said::read_text;
pub use status::{RetainedState, RetainedStatus, STATUS_FILE};

use super::{DeclaredAgent, DeclaredSession, Roster, Source};
use crate::clock::Clock;
use crate::config::{Retained, Worktrees};
use crate::names::{AgentName, BadName, SessionId};
use crate::observe::ids;
use crate::observe::processes::Machine;
use crate::observe::sessions::{Owners, top_folder};
use folder::{Folder, Links};
use scan::Scan;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So many sessions of one setting are shown: those that have not ended, and then those that have changed last.
const MOST: usize = 256;

/// So many of those that cannot be read are named.
const MOST_TOLD: usize = 3;

/// Retained sessions as a source: the one in a folder, or those in the folders that lie in one.
pub struct RetainedSource {
    setting: Retained,
    worktrees: Worktrees,
    machine: Machine,
    clock: Arc<dyn Clock>,
    owners: Owners,
    scan: Scan,
    folders: BTreeMap<PathBuf, Folder>,
    roster: Arc<Roster>,
}

impl RetainedSource {
    /// A source that has not looked yet. `machine` is the one whose processes are seen.
    pub fn new(setting: Retained, worktrees: Worktrees, machine: Machine, clock: Arc<dyn Clock>) -> Self {
        Self {
            setting,
            worktrees,
            machine,
            clock,
            owners: Owners::default(),
            scan: Scan::default(),
            folders: BTreeMap::new(),
            roster: Arc::default(),
        }
    }

    /// Looks at all folders. Returns whether anything is to be said anew, and what is wrong.
    fn look(&mut self, now_ms: u64) -> (bool, Vec<String>) {
        let mut problems = Vec::new();
        let (paths, links) = match (&self.setting.dir, &self.setting.scan) {
            (Some(dir), _) => (vec![dir.clone()], Links::Followed),
            (None, Some(scan)) => (self.scan.look(scan, now_ms, &mut problems), Links::Refused),
            (None, None) => (Vec::new(), Links::Refused),
        };
        let before = self.folders.len();
        self.folders.retain(|path, _| paths.binary_search(path).is_ok());
        let mut anew = self.folders.len() != before;
        let me = self.owners.me();
        for path in paths {
            let folder = self.folders.entry(path.clone()).or_default();
            anew |= folder.look(&path, links, now_ms);
            // What is wrong in others' folders is theirs: whoever may make one would have a say in everybody's reports.
            let Some(why) = folder.problem() else { continue };
            if links == Links::Followed || self.owners.name(folder.uid()) == me {
                problems.push(format!("{}: {why}", path.display()));
            }
        }
        let is_open = |folder: &&Folder| folder.is_known() && !folder.is_over();
        let open = self.folders.values().filter(is_open).map(Folder::uid);
        if open.filter(|uid| self.owners.name(*uid) == me).nth(MOST).is_some() {
            problems.push(format!("more than {MOST} have not ended: not all are shown"));
        }
        let told = problems.len().min(MOST_TOLD);
        let others = problems.len() - told;
        problems.truncate(told);
        problems.extend((others > 0).then(|| format!("and {others} more")));
        (anew, problems)
    }

    /// What is declared now, in the order of the folders' names.
    fn declared(&mut self, now_ms: u64) -> Roster {
        let mut shown: Vec<(&PathBuf, &Folder)> = self.folders.iter().filter(|(_, folder)| folder.is_known()).collect();
        // Nobody puts out of sight what is another's.
        let me = self.owners.me();
        shown.sort_by_cached_key(|(_, folder)| {
            let theirs = self.owners.name(folder.uid()) != me;
            (folder.is_over(), theirs, std::cmp::Reverse(folder.written_at_ms()))
        });
        shown.truncate(MOST);
        shown.sort_by_key(|(path, _)| *path);
        let mut sessions: Vec<DeclaredSession> = Vec::new();
        for (path, folder) in shown {
            let Some((process, said)) = folder.said(&self.machine, now_ms) else { continue };
            let name = self.setting.name.clone().unwrap_or_else(|| name_of(path));
            let specialization = folder.specialization();
            let agent = DeclaredAgent { name, specialization, process, declared_at_ms: None, run: None, said };
            let Ok(session) = session_of(path, folder, &self.setting, self.worktrees, &mut self.owners) else {
                continue;
            };
            match sessions.iter_mut().find(|known| known.id == session.id && known.owner == session.owner) {
                Some(known) => known.agents.push(agent),
                None => sessions.push(DeclaredSession { agents: vec![agent], ..session }),
            }
        }
        Roster { sessions }
    }
}

impl Source for RetainedSource {
    fn name(&self) -> String {
        name(&self.setting)
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        let now_ms = self.clock.now().unix_ms;
        let (anew, problems) = self.look(now_ms);
        if anew || self.folders.values().any(|folder| folder.is_late(now_ms)) {
            self.roster = Arc::new(self.declared(now_ms));
        }
        (Arc::clone(&self.roster), (!problems.is_empty()).then(|| problems.join("\n")))
    }
}

/// What the source of a setting is called.
pub fn name(setting: &Retained) -> String {
    format!("retained:{}", setting.folder().unwrap_or(Path::new("")).display())
}

/// Why a setting shows nothing, where it may be meant so: the folder is made when the session begins.
pub fn nothing_yet(setting: &Retained) -> Option<&'static str> {
    let folder = setting.folder()?;
    if !folder.is_dir() {
        return Some("there is no such folder yet");
    }
    let is_empty = setting.dir.is_some() && fs::symlink_metadata(folder.join(STATUS_FILE)).is_err();
    is_empty.then_some("there is no status.json in it yet")
}

/// Where the agent of a folder belongs: to the session that the setting names, else to that of the project in which it lies, as
/// agents do that work there.
fn session_of(
    path: &Path,
    folder: &Folder,
    setting: &Retained,
    worktrees: Worktrees,
    owners: &mut Owners,
) -> Result<DeclaredSession, BadName> {
    let owner = owners.name(folder.uid());
    let other = (owner != owners.me()).then_some(owner.as_str());
    let (id, name, root_path) = match &setting.session {
        Some(id) => (id.clone(), None, None),
        None => {
            let root = folder.root(|| top_folder(path, worktrees));
            (SessionId::parse(&ids::session_id(root, other))?, Some(ids::folder_name(root)), Some(root.to_owned()))
        }
    };
    Ok(DeclaredSession { name, root_path, owner: Some(owner), joins: true, ..DeclaredSession::new(id) })
}

/// What an agent is called after its folder.
fn name_of(path: &Path) -> AgentName {
    AgentName::after(path.file_name().unwrap_or(path.as_os_str()))
}
