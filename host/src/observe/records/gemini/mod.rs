//! Gemini's chats. Nothing in them names a process, and no process holds them open: a chat is an agent's only if the agent's own
//! hooks have told the id that stands in its first line.

pub(super) mod chat;

use super::folder::Folder;
use super::follow::{Followed, Parser as _, not_understood};
use super::small::Small;
use super::sought::Sought;
use super::tail::first_line;
use super::value::Id;
use super::{Records, Subject, Testimony, home_of, told_conversations};
use crate::clock::Moment;
use crate::files::{Stamp, read_small_itself};
use crate::observe::facts::Gap;
use chat::Chat;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to say, and what would help, where no hook has told anything.
const UNTOLD: &str = "its records name no process, and no hook has told which conversation it is in; \
                      `headcount hook install gemini` has it do so";

/// So many projects are looked through, and so many chats of each.
const MOST: usize = 10_000;

/// The largest chat that is written anew each time, and the longest first line of one that grows, bytes.
const LARGEST: u64 = 8 << 20;
const LONGEST_HEAD: usize = 1 << 20;

/// Reads the chats of Gemini.
#[derive(Debug, Default)]
pub struct Gemini {
    chats: Sought,
    growing: Followed<Chat>,
    rewritten: HashMap<PathBuf, Small<Chat>>,
}

impl Records for Gemini {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["gemini"]
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.growing.begin();
        self.chats.begin();
        let told = told_conversations(subjects, |agent| Id::new(agent.conversation.as_ref()?), UNTOLD);
        let chats: Vec<_> =
            subjects.iter().zip(told).map(|(agent, id)| agent.sees(self.chat_of(agent, &id?, now)?)).collect();
        let is_read = |path: &PathBuf| chats.iter().any(|chat| chat.as_ref() == Ok(path));
        self.rewritten.retain(|path, _| is_read(path));
        let mut order: Vec<_> = (0..subjects.len()).collect();
        order.sort_by_cached_key(|at| chats[*at].as_ref().map_or(0, |chat| self.growing.behind(chat)));
        let mut said = vec![Testimony::default(); subjects.len()];
        for at in order {
            let chat = chats[at].clone();
            said[at] = chat.and_then(|chat| self.testimony(subjects[at], &chat, now)).into();
        }
        said
    }
}

impl Gemini {
    /// The only chat of a conversation. One of the old form stays when it is gone on with in the new one.
    fn chat_of(&mut self, agent: &Subject, id: &Id, now: Moment) -> Result<PathBuf, String> {
        let program = &agent.processes.first().ok_or("it has no process")?.1;
        let projects = home_of(program, "GEMINI_CLI_HOME", "")?.join(".gemini/tmp");
        let chat = self.chats.only(projects.clone(), id, now, |projects| chats_of(id, projects, now))?;
        if is_current(&chat) {
            return Ok(chat);
        }
        self.chats.forget(&chat);
        self.chats.only(projects, id, now, |projects| chats_of(id, projects, now))
    }

    fn testimony(&mut self, agent: &Subject, path: &Path, now: Moment) -> Result<Testimony, String> {
        let (chat, mut unmeasured) = if is_growing(path) {
            let said = self.growing.read(path, now)?;
            (said.parser, said.gaps(said.parser.statement().is_some()))
        } else {
            let new = || Small::new(path.to_owned(), LARGEST);
            let rewritten = self.rewritten.entry(path.to_owned()).or_insert_with(new);
            let chat = rewritten.read(Chat::whole).map_err(|why| format!("its chat {why}"))?;
            (chat, not_understood(chat.lost()).into_iter().collect())
        };
        let evidence: Vec<_> = chat.statement().filter(|said| agent.ran_at(said.at_ms)).cloned().into_iter().collect();
        if evidence.is_empty() && unmeasured.iter().all(|gap| gap.field != "evidence") {
            unmeasured.push(Gap::by_design("evidence", "Gemini does not record where a turn ends"));
        }
        let (usage, calls) = (chat.usage(|at_ms| agent.ran_at(at_ms)), chat.calls().into_iter().collect());
        Ok(Testimony { evidence, usage, unmeasured, calls, ..Testimony::default() })
    }
}

/// The chats of a conversation, in whatever project: those that are named after the beginning of its id, and have all of it
/// in them.
fn chats_of(id: &Id, projects: &Path, now: Moment) -> Result<Vec<PathBuf>, String> {
    let short = id.as_str().get(..8).unwrap_or(id.as_str());
    let endings = [".json", ".jsonl"].map(|ending| format!("-{short}{ending}"));
    let is_named = |name: &str| name.starts_with("session-") && endings.iter().any(|ending| name.ends_with(ending));
    let unlisted = |why| format!("its chats cannot be listed: {why}");
    let list = |folder: &Path| Folder::new(folder.to_owned(), MOST, Duration::ZERO);
    let mut chats = Vec::new();
    for project in list(projects).names(now, |_| true).map_err(unlisted)? {
        let folder = projects.join(project).join("chats");
        // What is no folder has no chats; one that may not be read is somebody else's.
        let Ok(names) = list(&folder).names(now, is_named).map(<[String]>::to_vec) else { continue };
        chats.extend(names.into_iter().map(|name| folder.join(name)));
    }
    chats.retain(|chat| is_current(chat) && session_of(chat).as_deref() == Some(id.as_str()));
    Ok(chats)
}

/// Whether it was not gone on with in the new form.
fn is_current(chat: &Path) -> bool {
    is_growing(chat) || Stamp::of_itself(&chat.with_extension("jsonl")).is_err()
}

fn is_growing(chat: &Path) -> bool {
    chat.extension().is_some_and(|extension| extension == "jsonl")
}

/// The id of the conversation that a chat is of.
fn session_of(chat: &Path) -> Option<String> {
    let chat = if is_growing(chat) {
        let mut head = Chat::default();
        head.line(&first_line(chat, LONGEST_HEAD).ok()??, 0);
        head
    } else {
        Chat::whole(&read_small_itself(chat, LARGEST).ok()?.0).ok()?
    };
    chat.session().map(str::to_owned)
}

#[cfg(test)]
mod tests;
