//! Codex's rollouts. A conversation's rollout is open for writing as long as the conversation is, so the descriptors of the
//! agent's own processes say which is whose.

pub(super) mod rollout;

use super::follow::Followed;
use super::{Records, Subject, Testimony};
use crate::clock::Moment;
use crate::files::open_itself;
use crate::observe::facts::{Claim, Evidence, Usage};
use crate::observe::processes::OpenFiles;
use rollout::Rollout;
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// The ending of rollouts that are compressed: those that nobody has gone on with for long.
const COMPRESSED: &str = ".jsonl.zst";

/// So much of a rollout is read to find its first line, which has the instructions of the model in it.
const LONGEST_HEAD: u64 = 1 << 20;

/// So many first lines are remembered.
const MOST_HEADS: usize = 1000;

/// Reads the rollouts of Codex.
#[derive(Debug, Default)]
pub struct Codex {
    files: OpenFiles,
    rollouts: Followed<Rollout>,
    /// Which of the rollouts that are one of several are subagents'.
    subagents: HashMap<PathBuf, bool>,
}

impl Records for Codex {
    fn reads(&self, kind: &str) -> bool {
        kind == "codex"
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.rollouts.begin();
        let live = |id| subjects.iter().any(|agent| agent.processes.iter().any(|(own, _)| *own == id));
        self.files.retain(live);
        if self.subagents.len() > MOST_HEADS {
            self.subagents.clear();
        }
        let held: Vec<_> = subjects.iter().map(|agent| self.held(agent, now)).collect();
        let mut order: Vec<_> = (0..subjects.len()).collect();
        let behind = |at: &usize| held[*at].iter().flatten().map(|path| self.rollouts.behind(path)).sum::<u64>();
        order.sort_by_cached_key(behind);
        let mut said = vec![Testimony::default(); subjects.len()];
        for at in order {
            let held = held[at].clone();
            said[at] = held.and_then(|held| self.testimony(subjects[at], &held, now)).into();
        }
        said
    }
}

impl Codex {
    fn testimony(&mut self, agent: &Subject, held: &BTreeSet<PathBuf>, now: Moment) -> Result<Testimony, String> {
        if held.iter().any(|path| path.to_string_lossy().ends_with(COMPRESSED)) {
            return Err("its rollout is compressed, which is not read".to_owned());
        }
        let (subagents, conversations): (Vec<_>, Vec<_>) =
            held.iter().partition(|path| held.len() > 1 && self.is_of_subagent(path));
        let conversation = match conversations.as_slice() {
            [] => return Err("it has no rollout open: it has begun no conversation, or keeps none".to_owned()),
            [one] => one,
            several => {
                return Err(format!("it has {} conversations; which one is meant is not decided", several.len()));
            }
        };
        let (mut working, mut all_read) = (0, true);
        for path in subagents {
            let rollout = self.rollouts.read(path, now)?;
            all_read &= rollout.whole;
            let works = |said: &Evidence| said.claim == Claim::Working && agent.ran_at(said.at_ms);
            working += u32::from(rollout.parser.statement().is_some_and(works));
        }
        let said = self.rollouts.read(conversation, now)?;
        let (rollout, unmeasured) = (said.parser, said.gaps(said.parser.statement().is_some()));
        let usage = rollout.usage(|at_ms| agent.ran_at(at_ms)).filter(|_| said.whole);
        let usage = usage.map(|usage| Usage { subagents: all_read.then_some(working), ..usage });
        let evidence = rollout.statement().filter(|said| agent.ran_at(said.at_ms)).cloned();
        Ok(Testimony { evidence: evidence.into_iter().collect(), usage, unmeasured })
    }

    /// Whether a rollout's first line says that it is a subagent's. It never changes, and is read once.
    fn is_of_subagent(&mut self, path: &Path) -> bool {
        if let Some(known) = self.subagents.get(path) {
            return *known;
        }
        let mut line = Vec::new();
        let read = open_itself(path)
            .and_then(|(file, _)| BufReader::new(file.take(LONGEST_HEAD)).read_until(b'\n', &mut line));
        // One that cannot be read is a conversation, and says so when all of it is read.
        let is_of_subagent = read.is_ok() && rollout::is_of_subagent(&line);
        self.subagents.insert(path.to_owned(), is_of_subagent);
        is_of_subagent
    }

    /// The rollouts that the agent's processes hold open, each once.
    fn held(&mut self, agent: &Subject, now: Moment) -> Result<BTreeSet<PathBuf>, String> {
        let mut held = BTreeSet::new();
        for (process, _) in &agent.processes {
            let written = self.files.written_by(*process, now, is_rollout);
            held.extend(written.map_err(|why| format!("its open files cannot be read: {why}"))?);
        }
        Ok(held)
    }
}

/// Whether it is `…/sessions/YYYY/MM/DD/rollout-….jsonl`, compressed or not.
fn is_rollout(path: &Path) -> bool {
    let mut parts = path.iter().rev().map(|part| part.to_str().unwrap_or_default());
    let name = parts.next().unwrap_or_default();
    let numbers = parts.by_ref().take(3).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit())).count();
    name.starts_with("rollout-")
        && (name.ends_with(".jsonl") || name.ends_with(COMPRESSED))
        && numbers == 3
        && parts.next() == Some("sessions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_known_by_its_path() {
        for yes in [
            "/home/me/.codex/sessions/2026/09/06/rollout-2026-09-06T10-00-00-u.jsonl",
            "/x/sessions/2026/09/06/rollout-1.jsonl.zst",
        ] {
            assert!(is_rollout(Path::new(yes)), "{yes}");
        }
        for no in [
            "/home/me/.codex/sessions/2026/09/06",
            "/home/me/.codex/sessions/2026/09/06/notes.jsonl",
            "/home/me/.codex/archive/2026/09/06/rollout-1.jsonl",
            "/home/me/.codex/sessions/2026/september/06/rollout-1.jsonl",
            "/home/me/.codex/sessions/2026/09/06/rollout-1.jsonl (deleted)",
            "rollout-1.jsonl",
            "/",
        ] {
            assert!(!is_rollout(Path::new(no)), "{no}");
        }
    }
}
