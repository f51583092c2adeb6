//! Aider's chat history, a file in the project that all chats are appended to. Nothing in it names a process; but each chat begins
//! with the time, and Aider writes that when it starts. The last chat in a file is an agent's if it began when the agent did, and
//! no other agent that lives writes to that file: what comes after the header is told apart by nothing.

pub(super) mod history;

use super::follow::Followed;
use super::{Records, Subject, Testimony, gap};
use crate::clock::Moment;
use crate::observe::facts::{Evidence, Source};
use crate::observe::processes::{ProcessId, Program};
use history::{History, Turn, as_utc_ms};
use jiff::civil::DateTime;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The name of the file, unless the agent was told another.
const NAME: &str = ".aider.chat.history.md";

/// What to say where two chats are in one file at once.
const SHARED: &str = "another aider writes to the same history, or did, and what is whose is not recorded";

/// The option that tells another, and the least of it that is enough.
const OPTION: &str = "--chat-history-file";
const SHORTEST: &str = "--chat-h";

/// How far a process's start may be off, milliseconds: it is reckoned from the boot, whose time drifts.
const EARLY_MS: i64 = 2000;

/// How long Aider may take from its start to its first line, milliseconds.
const LATE_MS: i64 = 60_000;

/// Clocks on walls differ by whole quarters of an hour.
const QUARTER_MS: i64 = 900_000;

/// The clocks that are furthest behind and ahead of Greenwich, milliseconds.
const WEST_MS: i64 = -12 * 3_600_000;
const EAST_MS: i64 = 14 * 3_600_000;

/// Reads the histories of Aider.
#[derive(Debug, Default)]
pub struct Aider {
    /// Where each agent's history is, settled when it is first seen.
    places: HashMap<ProcessId, Result<PathBuf, String>>,
    histories: Followed<History>,
    /// Those that have shared a history with another one: some of what came after the header may be the other's.
    shared: HashSet<ProcessId>,
}

impl Records for Aider {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["aider"]
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.histories.begin();
        let roots: Vec<_> = subjects.iter().map(|agent| agent.root()).collect();
        self.places.retain(|root, _| roots.contains(&Some(*root)));
        self.shared.retain(|root| roots.contains(&Some(*root)));
        let places: Vec<_> = subjects.iter().map(|agent| agent.sees(self.place(agent)?)).collect();
        let is_shared = |at: usize| {
            let others = (0..subjects.len()).filter(|other| roots[*other] != roots[at]);
            places[at].is_ok() && others.into_iter().any(|other| places[other] == places[at])
        };
        self.shared.extend(roots.iter().enumerate().filter(|(at, _)| is_shared(*at)).filter_map(|(_, root)| *root));
        let mut order: Vec<_> = (0..subjects.len()).collect();
        order.sort_by_cached_key(|at| places[*at].as_ref().map_or(0, |path| self.histories.behind(path)));
        let mut said = vec![Testimony::default(); subjects.len()];
        for at in order {
            let place = match places[at].clone() {
                Ok(_) if roots[at].is_some_and(|root| self.shared.contains(&root)) => Err(SHARED.to_owned()),
                place => place,
            };
            said[at] = place.and_then(|path| self.testimony(subjects[at], &path, now)).into();
        }
        said
    }
}

impl Aider {
    fn place(&mut self, agent: &Subject) -> Result<PathBuf, String> {
        // The last of several is what a launcher has started.
        let (root, (_, program)) = agent.root().zip(agent.processes.last()).ok_or("it has no process")?;
        self.places.entry(root).or_insert_with(|| history_of(program)).clone()
    }

    /// Of what is known of the turn, the time when the file was written is the time.
    fn testimony(&mut self, agent: &Subject, path: &Path, now: Moment) -> Result<Testimony, String> {
        let said = self.histories.read(path, now)?;
        if !said.whole {
            return Ok(Testimony { unmeasured: said.gaps(false), ..Testimony::default() });
        }
        let (history, written_ms) = (said.parser, said.modified_ms.unwrap_or_default());
        let began = history.started().is_some_and(|wall| began_with(wall, agent.started_at_ms));
        if !began || !agent.ran_at(written_ms) {
            return Err("the last chat in its history did not begin when it started".to_owned());
        }
        if history.before().zip(history.started()).is_some_and(|(before, last)| are_at_once(before, last)) {
            return Err(SHARED.to_owned());
        }
        let evidence = history.turn().claim().map(|(claim, word, detail)| Evidence {
            source: Source::Transcript,
            claim,
            word: word.to_owned(),
            detail: detail.map(str::to_owned),
            at_ms: written_ms,
        });
        let why = match history.turn() {
            Turn::None => Some("nothing was asked in its chat yet"),
            Turn::Unsure => Some("what came of its last command, or of a question that was answered, is not recorded"),
            _ => None,
        };
        let unmeasured = why.map(|why| gap("evidence", why)).into_iter().collect();
        let evidence = evidence.into_iter().collect();
        Ok(Testimony { evidence, usage: history.usage(), unmeasured, ..Testimony::default() })
    }
}

/// Whether two chats have begun so shortly after each other that either may be that of the same process.
fn are_at_once(before: DateTime, last: DateTime) -> bool {
    let apart = as_utc_ms(last).zip(as_utc_ms(before)).map(|(last, before)| last - before);
    apart.is_some_and(|apart| apart <= EARLY_MS + LATE_MS)
}

/// Whether a chat that began at this time on somebody's wall began with a process, whatever the zone: that of the process need not
/// be this program's, and is told nowhere. One of fifteen chats that have nothing to do with it would fit; but those that are older
/// than the process are not the last in a file that was written since.
fn began_with(wall: DateTime, started_at_ms: u64) -> bool {
    let Some(difference) = as_utc_ms(wall).zip(i64::try_from(started_at_ms).ok()).map(|(wall, start)| wall - start)
    else {
        return false;
    };
    let after = (difference + EARLY_MS).rem_euclid(QUARTER_MS);
    after <= EARLY_MS + LATE_MS && (WEST_MS - EARLY_MS..=EAST_MS + LATE_MS).contains(&difference)
}

/// The history that a program writes to: the one that it was told, else that of the repository in which it was started, or of its
/// folder.
///
/// # Errors
/// Its command line or its folder may not be read.
fn history_of(program: &Program) -> Result<PathBuf, String> {
    let unknown = |why: &String| format!("where its history is is not known: {why}");
    let (argv, cwd) = (program.argv.as_ref().map_err(unknown)?, program.cwd.as_ref().map_err(unknown)?);
    let env = program.env.as_ref().map_err(unknown)?;
    let set = env.iter().find(|(name, value)| name == "AIDER_CHAT_HISTORY_FILE" && !value.is_empty());
    if let Some(told) = told(argv).or_else(|| set.map(|(_, value)| value.as_str())) {
        return Ok(cwd.join(told));
    }
    let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let repository = cwd.ancestors().find(has_git).filter(|_| !argv.iter().any(|slot| slot == "--no-git"));
    Ok(repository.unwrap_or(cwd).join(NAME))
}

/// The history that a command line names. Options may be cut short, as long as they are no others'; the last counts.
fn told(argv: &[String]) -> Option<&str> {
    let mut told = None;
    let mut slots = argv.iter();
    while let Some(slot) = slots.next() {
        let (name, value) = slot.split_once('=').map_or((slot.as_str(), None), |(name, value)| (name, Some(value)));
        if name.starts_with(SHORTEST) && OPTION.starts_with(name) {
            told = value.or_else(|| slots.next().map(String::as_str));
        }
    }
    told
}

#[cfg(test)]
mod tests;
