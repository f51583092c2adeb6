//! The readers, over files and processes of the tests' own.

use super::{Subject, Testimony, home_of};
use crate::clock::Moment;
use crate::observe::processes::{ProcessId, Program};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What an environment is to a program.
pub(super) type Env = Result<Vec<(String, String)>, String>;

/// An environment in which this is the home directory.
pub(super) fn home(folder: &Path) -> Env {
    Ok(vec![("HOME".to_owned(), folder.to_str().unwrap().to_owned())])
}

/// An agent with one process that has this environment.
pub(super) fn subject(kind: &str, env: Env) -> Subject {
    let denied = || "permission denied".to_owned();
    let program = Program { exe: Err(denied()), argv: Err(denied()), cwd: Err(denied()), env, uid: None };
    let id = ProcessId { pid: 4242, start: 77 };
    let processes = vec![(id, Arc::new(program))];
    Subject {
        kind: kind.into(),
        processes,
        started_at_ms: 1_788_688_800_000,
        conversation: None,
        open: Vec::new(),
        children: vec![],
        calls: vec![],
    }
}

/// So many seconds after the beginning.
pub(super) fn now(second: u64) -> Moment {
    Moment { unix_ms: 1_788_688_800_000 + second * 1000, steady: Duration::from_secs(second) }
}

/// The only reason why nothing is said of an agent.
pub(super) fn undecided(said: &Testimony) -> &str {
    assert!(said.evidence.is_empty() && said.usage.is_none(), "{said:?}");
    assert_eq!(said.unmeasured.iter().map(|gap| &*gap.field).collect::<Vec<_>>(), ["evidence", "usage"], "{said:?}");
    &said.unmeasured[0].reason
}

#[test]
fn what_an_agent_has_done_it_has_done_since_its_start() {
    let agent = subject("codex", Ok(vec![]));
    let started = agent.started_at_ms;
    assert!(agent.ran_at(started + 1) && agent.ran_at(started) && agent.ran_at(started - 1000));
    assert!(!agent.ran_at(started - 60_000) && !agent.ran_at(0) && agent.ran_at(u64::MAX));
}

#[test]
fn the_agents_own_environment_says_where_its_records_are() {
    let program = |env: &[(&str, &str)], cwd: Result<&str, &str>| {
        let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let program = Program::clone(&subject("qwen", Ok(env)).processes[0].1);
        Program { cwd: cwd.map(Into::into).map_err(str::to_owned), ..program }
    };
    let place = |env: &[(&str, &str)]| home_of(&program(env, Ok("/w")), "QWEN_HOME", ".qwen");
    assert_eq!(place(&[("HOME", "/home/me"), ("TMUX", "/x")]), Ok("/home/me/.qwen".into()));
    assert_eq!(place(&[("HOME", "/home/me"), ("QWEN_HOME", "/srv/qwen")]), Ok("/srv/qwen".into()));
    assert_eq!(place(&[("HOME", "/home/me"), ("QWEN_HOME", "")]), Ok("/home/me/.qwen".into()));
    assert_eq!(place(&[("QWEN_HOME", "mine")]), Ok("/w/mine".into()), "as the agent itself would see it");
    assert!(place(&[("QWEN", "/x")]).unwrap_err().contains("no home"));
    let closed = home_of(&program(&[("QWEN_HOME", "mine")], Err("permission denied")), "QWEN_HOME", ".qwen");
    assert!(closed.unwrap_err().contains("permission denied"));
}
