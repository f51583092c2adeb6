//! Codex's rollouts. A conversation's rollout is open for writing as long as the conversation is, so the descriptors of the
//! agent's own processes say which is whose.

pub(super) mod rollout;

use super::follow::Followed;
use super::tail::first_line;
use super::value::Id;
use super::{Calls, Conversation, Records, Subject, Testimony, nothing_for, shared};
use crate::clock::Moment;
use crate::names::short_hash;
use crate::observe::facts::{Claim, Evidence, Source, Usage};
use crate::observe::processes::{OpenFiles, ProcessId};
use rollout::{Head, Rollout};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// How rollouts end; those that nobody has gone on with for long are compressed.
const ENDINGS: [&str; 2] = [".jsonl", ".jsonl.zst"];

/// So much of a rollout is read to find its first line, which has the instructions of the model in it.
const LONGEST_HEAD: usize = 1 << 20;

/// So many first lines are remembered.
const MOST_HEADS: usize = 1000;

/// Reads the rollouts of Codex.
#[derive(Debug, Default)]
pub struct Codex {
    files: OpenFiles,
    rollouts: Followed<Rollout>,
    heads: HashMap<PathBuf, Head>,
    /// Processes that run an agent's program, with a row or without.
    programs: Vec<ProcessId>,
}

impl Records for Codex {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["codex"]
    }

    fn learn(&mut self, programs: &[ProcessId]) {
        self.programs.clear();
        self.programs.extend_from_slice(programs);
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.rollouts.begin();
        let is_agents = |id| subjects.iter().any(|agent| agent.processes.iter().any(|(own, _)| *own == id));
        let others: Vec<_> =
            self.programs.iter().copied().filter(|id| !subjects.is_empty() && !is_agents(*id)).collect();
        self.files.retain(|id| is_agents(id) || others.contains(&id));
        if self.heads.len() > MOST_HEADS {
            self.heads.clear();
        }
        let mut held: Vec<_> = subjects.iter().map(|agent| self.held(agent, now)).collect();
        let all =
            held.iter().enumerate().flat_map(|(at, held)| held.iter().flatten().map(move |path| (at, path.as_path())));
        for (at, why) in shared(subjects, all) {
            held[at] = Err(why);
        }
        for (path, other) in self.held_by_others(&others, now) {
            for held in held.iter_mut().filter(|held| held.as_ref().is_ok_and(|held| held.contains(&path))) {
                *held = Err(format!("its conversation is that of process {} too", other.pid));
            }
        }
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

/// Rollouts by the ids of their conversations, with what their first lines say.
type Held = BTreeMap<String, (PathBuf, Head)>;

impl Codex {
    fn testimony(&mut self, agent: &Subject, held: &BTreeSet<PathBuf>, now: Moment) -> Result<Testimony, String> {
        // Where one is there in two forms the plain one counts, which comes first: Codex unpacks what it goes on with.
        let mut held: Held = held.iter().rev().map(|path| (id_of(path), (path.clone(), self.head(path)))).collect();
        let subagents = match held.len() {
            1 => Held::new(),
            _ => held.extract_if(.., |_, (_, head)| head.is_subagent).collect(),
        };
        if held.is_empty() {
            return Err("it has no rollout open: it has begun no conversation, or keeps none".to_owned());
        }
        let working = self.working(agent, &subagents, &held, now);
        let alone = held.len() == 1;
        let calls = held.iter().filter_map(|(id, (path, _))| self.calls(id, path, now)).collect();
        let of = |(id, (path, head)): (String, (PathBuf, Head))| {
            let subagents = working.as_ref().map(|working| working.get(&id).copied().unwrap_or_default());
            let unread = |why: String| Conversation { unmeasured: nothing_for(&why), ..Conversation::default() };
            let mut said = self.conversation(agent, &path, subagents, now).unwrap_or_else(unread);
            if !alone && said.evidence.is_empty() {
                said.evidence.extend(self.nothing_begun(agent, &path, now));
            }
            Conversation { id, started_at_ms: head.started_at_ms, ..said }
        };
        Ok(Testimony { conversations: held.into_iter().map(of).collect(), calls, ..Testimony::default() })
    }

    /// The calls of a conversation.
    fn calls(&mut self, id: &str, path: &Path, now: Moment) -> Option<Calls> {
        let rollout = self.rollouts.read(path, now).ok().filter(|rollout| rollout.whole)?;
        let (open, last_ms) = rollout.parser.calls()?;
        Some(Calls { conversation: id.to_owned(), open, last_ms })
    }

    /// How many of the subagents are at work for each of the conversations; `None`: not all of it is known.
    fn working(
        &mut self,
        agent: &Subject,
        subagents: &Held,
        conversations: &Held,
        now: Moment,
    ) -> Option<HashMap<String, u32>> {
        // All of them are read on, also where one says nothing yet.
        let works: Vec<_> = subagents.values().map(|(path, _)| self.works(agent, path, now)).collect();
        let only = conversations.keys().next().filter(|_| conversations.len() == 1);
        let mut working = HashMap::new();
        for (id, works) in subagents.keys().zip(works) {
            let whose = only.or_else(|| conversations.get_key_value(ancestor(id, subagents)?).map(|(id, _)| id));
            *working.entry(whose?.clone()).or_default() += u32::from(works?);
        }
        Some(working)
    }

    /// What a rollout says of its conversation, in which so many subagents are at work.
    fn conversation(
        &mut self,
        agent: &Subject,
        path: &Path,
        subagents: Option<u32>,
        now: Moment,
    ) -> Result<Conversation, String> {
        let said = self.rollouts.read(path, now)?;
        let (rollout, unmeasured) = (said.parser, said.gaps(said.parser.statement().is_some()));
        let usage = rollout.usage(|at_ms| agent.ran_at(at_ms)).filter(|_| said.whole);
        let usage = usage.map(|usage| Usage { subagents, ..usage });
        let evidence = rollout.statement().filter(|said| agent.ran_at(said.at_ms)).cloned();
        Ok(Conversation { evidence: evidence.into_iter().collect(), usage, unmeasured, ..Conversation::default() })
    }

    /// That a conversation rests in which no turn has begun since its process has it. Of an agent with a single one its processes
    /// say so; of one of several they say nothing.
    fn nothing_begun(&mut self, agent: &Subject, path: &Path, now: Moment) -> Option<Evidence> {
        let said = self.rollouts.read(path, now).ok().filter(|said| said.whole)?;
        let untouched = said.parser.is_untouched() && !said.cut;
        let is_earlier = said.parser.statement().is_some_and(|earlier| earlier.claim != Claim::Unknown);
        (untouched || is_earlier).then(|| Evidence {
            source: Source::Transcript,
            claim: Claim::Idle,
            word: "no turn since it was opened".to_owned(),
            detail: None,
            at_ms: agent.started_at_ms,
        })
    }

    /// Whether a subagent is at work; `None`: its rollout is not read to its end.
    fn works(&mut self, agent: &Subject, path: &Path, now: Moment) -> Option<bool> {
        let rollout = self.rollouts.read(path, now).ok().filter(|rollout| rollout.whole)?;
        let works = |said: &Evidence| said.claim == Claim::Working && agent.ran_at(said.at_ms);
        Some(rollout.parser.statement().is_some_and(works))
    }

    /// What a rollout's first line says. It never changes, and is read once it is there.
    fn head(&mut self, path: &Path) -> Head {
        if let Some(known) = self.heads.get(path) {
            return known.clone();
        }
        let head = match first_line(path, LONGEST_HEAD) {
            Ok(Some(line)) => Head::new(&line),
            // One that cannot be read is a conversation, and says so when all of it is read.
            Err(why) if !why.missing => Head::default(),
            Ok(None) | Err(_) => return Head::default(),
        };
        self.heads.insert(path.to_owned(), head.clone());
        head
    }

    /// The rollouts that the agent's processes hold open, each once.
    fn held(&mut self, agent: &Subject, now: Moment) -> Result<BTreeSet<PathBuf>, String> {
        let mut held = BTreeSet::new();
        for (process, _) in &agent.processes {
            let written = self.files.written_by(*process, now, is_named_so);
            let written = written.map_err(|why| format!("its open files cannot be read: {why}"))?;
            for path in written {
                match (is_in_place(&path) || self.head(&path).is_meta, has_ending(&path)) {
                    (true, true) => _ = held.insert(path),
                    (true, false) => return Err("its rollout was given another name while it is open".to_owned()),
                    (false, _) => {}
                }
            }
        }
        Ok(held)
    }

    /// The rollouts that programs hold open which are none of the agents'.
    fn held_by_others(&mut self, others: &[ProcessId], now: Moment) -> Vec<(PathBuf, ProcessId)> {
        let mut held = Vec::new();
        for other in others {
            // Of one that may not be looked at nothing is known.
            let written = self.files.written_by(*other, now, is_named_so).unwrap_or_default();
            held.extend(written.into_iter().map(|path| (path, *other)));
        }
        held
    }
}

/// Whether it may be a rollout, by its name: also one that has got another ending, or is gone.
fn is_named_so(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("rollout-") && name.contains(ENDINGS[0])
}

fn has_ending(path: &Path) -> bool {
    path.to_str().is_some_and(|path| ENDINGS.iter().any(|ending| path.ends_with(ending)))
}

/// Whether it is in a folder `…/sessions/YYYY/MM/DD`, where rollouts are unless a link leads somewhere else.
fn is_in_place(path: &Path) -> bool {
    let mut parts = path.iter().rev().skip(1).map(|part| part.to_str().unwrap_or_default());
    let numbers = parts.by_ref().take(3).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit())).count();
    numbers == 3 && parts.next() == Some("sessions")
}

/// The id of a rollout's conversation, which ends the file's name: `rollout-2026-09-06T10-00-00-ID.jsonl`. A name of another
/// form is taken whole, or what identifies it.
fn id_of(path: &Path) -> String {
    /// How long a UUID is.
    const ID: usize = 36;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = ENDINGS.iter().rev().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let stem = stem.strip_prefix("rollout-").unwrap_or(stem);
    let uuid = stem.len().checked_sub(ID).and_then(|start| stem.get(start..));
    let id = Id::new(uuid.unwrap_or(stem)).map(|id| id.as_str().to_owned());
    id.unwrap_or_else(|| short_hash(stem.as_bytes()))
}

/// The conversation that a subagent works for in the end: it may have been started by another subagent.
fn ancestor<'a>(id: &str, subagents: &'a Held) -> Option<&'a str> {
    let parent = |id: &str| subagents.get(id)?.1.parent.as_deref();
    let mut whose = parent(id)?;
    // Whoever says that they have started one another have no ancestor.
    for _ in 0..subagents.len() {
        if !subagents.contains_key(whose) {
            return Some(whose);
        }
        whose = parent(whose)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_from_the_name_and_is_safe() {
        let id = |name: &str| id_of(&Path::new("/x").join(name));
        let uuid = "0199c0de-0000-7000-8000-00000000abcd";
        assert_eq!(id(&format!("rollout-2026-09-06T10-00-00-{uuid}.jsonl")), uuid);
        assert_eq!(id(&format!("rollout-2026-09-06T10-00-00-{uuid}.jsonl.zst")), uuid);
        assert_eq!((id("rollout-mine.jsonl"), id("rollout-mine.jsonl.zst")), ("mine".into(), "mine".into()));
        for hostile in
            ["rollout-a b.jsonl", "rollout-\u{1b}[2J.jsonl", "rollout-.jsonl", "rollout-ééééééééééééééééééé.jsonl"]
        {
            assert!(Id::new(&id(hostile)).is_some(), "{hostile}");
        }
    }

    #[test]
    fn a_subagent_works_for_the_conversation_that_started_all_of_them() {
        let parents = [("b", Some("a")), ("c", Some("b")), ("x", Some("y")), ("y", Some("x")), ("z", None)];
        let held = |(id, parent): (&str, Option<&str>)| {
            let head = Head { is_subagent: true, parent: parent.map(str::to_owned), ..Head::default() };
            (id.to_owned(), (PathBuf::new(), head))
        };
        let subagents = parents.map(held).into();
        let whose = ["b", "c", "x", "z", "none"].map(|id| ancestor(id, &subagents));
        assert_eq!(whose, [Some("a"), Some("a"), None, None, None]);
    }

    #[test]
    fn a_rollout_is_known_by_its_path() {
        let known =
            |path: &str| (is_named_so(Path::new(path)), is_in_place(Path::new(path)), has_ending(Path::new(path)));
        let day = "/home/me/.codex/sessions/2026/09/06";
        for yes in
            [&*format!("{day}/rollout-2026-09-06T10-00-00-u.jsonl"), "/x/sessions/2026/09/06/rollout-1.jsonl.zst"]
        {
            assert_eq!(known(yes), (true, true, true), "{yes}");
        }
        for renamed in [format!("{day}/rollout-1.jsonl.old"), format!("{day}/rollout-1.jsonl (deleted)")] {
            assert_eq!(known(&renamed), (true, true, false), "{renamed}");
        }
        for elsewhere in ["/real/2026/09/06/rollout-1.jsonl", "/x/sessions/2026/september/06/rollout-1.jsonl"] {
            assert_eq!(known(elsewhere), (true, false, true), "{elsewhere}");
        }
        for no in [day, &format!("{day}/notes.jsonl"), "rollout-1.txt", "/"] {
            assert!(!is_named_so(Path::new(no)), "{no}");
        }
    }
}
