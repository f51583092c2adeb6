//! Claude Code: the record that each of its processes keeps of itself, background jobs, and transcripts.
//!
//! A process is matched to its record by pid and raw start, the record names the conversation, and the conversation its
//! transcript. Claude Code promises none of these formats: what is not there is not known, an unknown word is passed on as such.

mod agent;
mod conversation;
mod inside;
pub(super) mod jobs;
pub(super) mod session_file;
#[cfg(test)]
mod tests;
mod thread;
pub(super) mod transcript;
pub(super) mod turn;

use super::tail::Budget;
use super::{Records, Subject, Testimony, shared};
use crate::clock::Moment;
use crate::observe::processes::ProcessId;
use agent::Agent;
use std::collections::{BTreeMap, BTreeSet};

/// How much is read of transcripts in one tick, all agents together.
const PER_TICK: u64 = 16 << 20;

/// Reads what Claude Code agents record.
#[derive(Debug, Default)]
pub struct Claude {
    /// Those that are followed, by root.
    agents: BTreeMap<ProcessId, Agent>,
}

impl Claude {
    fn read_within(&mut self, subjects: &[&Subject], now: Moment, budget: &mut Budget) -> Vec<Testimony> {
        let roots = subjects.iter().filter_map(|subject| root(subject));
        let present: BTreeSet<ProcessId> = roots.collect();
        self.agents.retain(|root, _| present.contains(root));
        for subject in subjects {
            let Some(root) = root(subject) else { continue };
            let agent = self.agents.entry(root).or_default();
            agent.look(subject, now);
            agent.glance(budget, now);
        }
        self.agents.values_mut().for_each(|agent| agent.look_further(budget, now));
        for subject in subjects {
            if let Some(agent) = root(subject).and_then(|root| self.agents.get_mut(&root)) {
                agent.glance_inside(budget, now, subject.started_at_ms);
            }
        }
        // The shortest first: a long transcript keeps nobody else waiting.
        let mut behind: Vec<&mut Agent> = self.agents.values_mut().filter(|agent| agent.is_behind()).collect();
        behind.sort_by_cached_key(|agent| agent.behind());
        behind.into_iter().for_each(|agent| agent.read_on(budget, now));
        let agents: Vec<_> = subjects.iter().map(|subject| self.agents.get(&root(subject)?)).collect();
        // By their ids: of one home a conversation may have transcripts in several folders.
        let conversation = |agent: Option<&Agent>| {
            let transcript = agent?.transcript()?;
            Some((transcript.parent()?.parent()?.to_owned(), transcript.file_stem()?.to_owned()))
        };
        let all = agents.iter().enumerate().filter_map(|(at, agent)| Some((at, conversation(*agent)?)));
        let shared = shared(subjects, all);
        let said = |(at, agent): (usize, &Option<&Agent>)| {
            let (why, started_at_ms) = (shared.get(&at).map(String::as_str), subjects[at].started_at_ms);
            agent.map_or_else(Testimony::default, |agent| agent.testimony(started_at_ms, why))
        };
        agents.iter().enumerate().map(said).collect()
    }
}

impl Records for Claude {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["claude"]
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.read_within(subjects, now, &mut Budget::new(PER_TICK))
    }
}

fn root(subject: &Subject) -> Option<ProcessId> {
    subject.processes.first().map(|(root, _)| *root)
}
