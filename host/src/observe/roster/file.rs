//! Rosters in files.

use super::{DeclaredAgent, DeclaredSession, Locator, Roster, Said, Source, Written};
use crate::config::{Origins, Problem, Problems, check_toml};
use crate::files::{Stamp, read_small_text};
use crate::names::{AgentName, SessionId};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest roster file: some hundred thousand agents.
const MAX_FILE: u64 = 16 << 20;

/// A roster file's content, as people write it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Content {
    /// Sessions that this file declares.
    #[serde(default, rename = "session")]
    #[schemars(extend("x-unique" = "id"))]
    sessions: Vec<Session>,
}

/// A session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Session {
    /// Its id.
    id: SessionId,
    /// What people call it; its id where this is left out.
    name: Option<String>,
    /// The project's top folder. One that is not absolute stands beside this file.
    root_path: Option<PathBuf>,
    /// Its agents.
    #[serde(default, rename = "agent")]
    #[schemars(extend("x-unique" = "name"))]
    agents: Vec<Agent>,
}

/// An agent. Exactly one of `pid`, `pid_file` and `match` says which process it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Agent {
    /// What people call it; unique in its session.
    name: AgentName,
    /// What it is for.
    specialization: Option<String>,
    /// Its process.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pid: Option<u32>,
    /// The raw start token of `pid`: field 22 of `/proc/PID/stat` on Linux.
    #[schemars(range(max = 9_223_372_036_854_775_807_u64))]
    start: Option<u64>,
    /// A file that holds its pid. One that is not absolute stands beside this file.
    pid_file: Option<PathBuf>,
    /// A regular expression over its command line, the slots joined by a space.
    #[serde(rename = "match")]
    matching: Option<String>,
}

/// A roster file, read again when it changes.
#[derive(Debug)]
pub struct FileSource {
    file: PathBuf,
    seen: Option<Stamp>,
    roster: Arc<Roster>,
    error: Option<String>,
}

impl FileSource {
    /// A source that has not read its file yet.
    pub fn new(file: PathBuf) -> Self {
        Self { file, seen: None, roster: Arc::default(), error: None }
    }

    fn read_file(&mut self, stamp: Stamp) -> io::Result<()> {
        let text = read_small_text(&self.file, MAX_FILE)?;
        match declared(&text, &self.file, stamp.modified_ms()) {
            Ok(sessions) => {
                (self.roster, self.error) = (Arc::new(Roster { sessions }), None);
            }
            // What it said before still holds: an editor saves a file half-done, and no agent ends by that.
            Err(problems) => self.error = Some(problems.to_string()),
        }
        self.seen = Some(stamp);
        Ok(())
    }
}

impl Source for FileSource {
    fn name(&self) -> String {
        format!("roster:{}", self.file.display())
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        match Stamp::of(&self.file) {
            Ok(stamp) if self.seen == Some(stamp) => {}
            Ok(stamp) => {
                if let Err(error) = self.read_file(stamp) {
                    self.seen = None;
                    self.error = Some(error.to_string());
                }
            }
            Err(error) => {
                self.seen = None;
                if error.kind() == io::ErrorKind::NotFound {
                    self.roster = Arc::default();
                }
                self.error = Some(error.to_string());
            }
        }
        (Arc::clone(&self.roster), self.error.clone())
    }
}

/// The sessions that `text`, the content of `file`, declares.
fn declared(text: &str, file: &Path, written_at_ms: Option<u64>) -> Result<Vec<DeclaredSession>, Problems> {
    let content = check_toml::<Content>(text, file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    let mut sessions = Vec::new();
    for (at, session) in content.value.sessions.into_iter().enumerate() {
        let mut agents = Vec::new();
        for (nth, agent) in session.agents.into_iter().enumerate() {
            let key = format!("session[{at}].agent[{nth}]");
            match locator(&agent, folder, written_at_ms, &key, &content.origins) {
                Ok(process) => agents.push(DeclaredAgent {
                    run: None,
                    name: agent.name,
                    specialization: agent.specialization,
                    process,
                    declared_at_ms: None,
                    said: Said::default(),
                }),
                Err(problem) => problems.push(problem),
            }
        }
        sessions.push(DeclaredSession {
            name: session.name,
            root_path: session.root_path.map(|path| folder.join(path)),
            agents,
            ..DeclaredSession::new(session.id)
        });
    }
    if problems.is_empty() { Ok(sessions) } else { Err(Problems(problems)) }
}

/// What a roster's text declares, as text: the door for fuzzing.
#[doc(hidden)]
pub fn read_text(text: &str) -> String {
    declared(text, Path::new("/roster.toml"), None)
        .map_or_else(|problems| problems.to_string(), |said| format!("{said:?}"))
}

/// Which process an agent is, by the one key that says so.
fn locator(
    agent: &Agent,
    folder: &Path,
    written_at_ms: Option<u64>,
    key: &str,
    origins: &Origins,
) -> Result<Locator, Problem> {
    if agent.start.is_some() && agent.pid.is_none() {
        return Err(origins.problem(&format!("{key}.start"), "only has a meaning together with pid"));
    }
    match (agent.pid, &agent.pid_file, &agent.matching) {
        (Some(pid), None, None) => {
            let written = Written { at_ms: written_at_ms, ..Written::default() };
            Ok(Locator::Pid { pid, start: agent.start, written })
        }
        (None, Some(file), None) => Ok(Locator::PidFile(folder.join(file))),
        (None, None, Some(pattern)) => Regex::new(pattern)
            .map(Locator::Match)
            .map_err(|error| origins.problem(&format!("{key}.match"), error.to_string())),
        _ => Err(origins.problem(key, "wanted exactly one of pid, pid_file and match")),
    }
}
