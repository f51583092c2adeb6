//! How many MCP servers an agent has started: those of its children that run a command which its configuration names.
//!
//! Configurations may lie on a file system that does not answer, and some are large: a thread of its own reads them, now and
//! then, and no tick waits for it.

mod command;
mod configuration;
pub(super) mod formats;
mod places;

use super::{Child, Records, Subject, Testimony, unread};
use crate::clock::Moment;
use crate::observe::facts::{Gap, Usage};
use crate::observe::processes::{ProcessId, Program};
use command::{Command, is_launcher, runs};
use configuration::{Answer, Reader};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How soon a configuration is looked at again.
const EVERY: Duration = Duration::from_secs(5);

/// Counts MCP servers.
#[derive(Debug, Default)]
pub struct McpServers {
    reader: Reader,
    agents: HashMap<ProcessId, Configured>,
}

/// What is known of an agent's configuration.
#[derive(Debug)]
struct Configured {
    /// What its process runs: another program has another configuration.
    program: Arc<Program>,
    /// When it is looked at next, on the steady clock; `None`: somebody looks.
    due: Option<Duration>,
    answer: Option<Answer>,
}

impl Records for McpServers {
    fn kinds(&self) -> Vec<&'static str> {
        places::kinds().collect()
    }

    fn what(&self) -> &'static str {
        "MCP servers"
    }

    /// All kinds: of those whose configuration nobody knows, that is said.
    fn reads(&self, _kind: &str) -> bool {
        true
    }

    fn follows(&self, _kind: &str) -> bool {
        false
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        let roots: Vec<_> = subjects.iter().map(|subject| subject.processes.first()).collect();
        let present: HashMap<ProcessId, &Arc<Program>> = roots.iter().flatten().map(|(id, runs)| (*id, runs)).collect();
        self.agents.retain(|id, agent| present.get(id).is_some_and(|runs| Arc::ptr_eq(runs, &agent.program)));
        for (id, answer) in self.reader.answers() {
            if let Some(agent) = self.agents.get_mut(&id) {
                (agent.answer, agent.due) = (Some(answer), Some(now.steady + EVERY));
            }
        }
        let testimony = |(subject, root): (&&Subject, Option<&(ProcessId, Arc<Program>)>)| {
            let Some((id, program)) = root else { return Testimony::default() };
            if !places::is_known(&subject.kind) {
                let why = unread("configuration of MCP servers", &subject.kind);
                return Testimony { unmeasured: vec![Gap::by_design("mcp-servers", why)], ..Testimony::default() };
            }
            let new = || Configured { program: Arc::clone(program), due: Some(now.steady), answer: None };
            let agent = self.agents.entry(*id).or_insert_with(new);
            if agent.due.is_some_and(|due| due <= now.steady) {
                agent.due = None;
                match places::places(&subject.kind, program) {
                    Ok((places, folder)) => self.reader.ask(*id, places, folder),
                    Err(why) => (agent.answer, agent.due) = (Some(Err(why)), Some(now.steady + EVERY)),
                }
            }
            said(agent.answer.as_ref(), &subject.children)
        };
        subjects.iter().zip(roots).map(testimony).collect()
    }
}

/// What is to be said of an agent with these children.
fn said(answer: Option<&Answer>, children: &[Child]) -> Testimony {
    let count = match answer {
        None => Err("the configuration of its servers is being read".to_owned()),
        Some(Err(why)) => Err(why.clone()),
        Some(Ok(configured)) => count(configured, children),
    };
    match count {
        Ok(servers) => {
            let usage = Usage { mcp_servers: Some(servers), ..Usage::default() };
            Testimony { usage: Some(usage), ..Testimony::default() }
        }
        Err(reason) => Testimony { unmeasured: vec![Gap::new("mcp-servers", reason)], ..Testimony::default() },
    }
}

/// How many of the children run one of these commands, themselves or by what only runs others.
fn count(configured: &[Command], children: &[Child]) -> Result<u32, String> {
    let is_server = |program: &Program| -> Result<bool, String> {
        let argv = program.argv.as_ref().map_err(|why| format!("what its children run cannot be read: {why}"))?;
        Ok(configured.iter().any(|command| runs(argv, command)))
    };
    let mut servers = 0;
    for child in children.iter().filter(|_| !configured.is_empty()) {
        let mut found = is_server(&child.program)?;
        if !found && child.program.argv.as_deref().is_ok_and(is_launcher) {
            for grandchild in &child.children {
                found |= is_server(grandchild)?;
            }
        }
        servers += u32::from(found);
    }
    Ok(servers)
}

#[cfg(test)]
mod tests;
