//! The judge against policies that misbehave in every way, and against its own rules run natively.

pub(crate) mod cases;
mod chain;
mod examples;
mod files;
mod generated;
mod limits;
mod misbehaviour;
mod refused;
mod reload;

use super::*;
use crate::clock::SystemClock;
use crate::observe::facts::{Agent, Metrics, ProcessState, Session};
use headcount_tests::MISBEHAVING_POLICY;
use std::time::Duration;

/// Where tests keep what was compiled: below the build's own folder.
const CACHE: &str = concat!(env!("OUT_DIR"), "/policies");

/// An engine for each test, which has its own thread: one engine runs but a few policies at a time.
fn runtime() -> Runtime {
    thread_local!(static RUNTIME: Runtime = Runtime::new(Some(Path::new(CACHE)), None, 0).unwrap());
    RUNTIME.with(Runtime::clone)
}

/// A judge of one policy.
pub(crate) fn judge_of(policy: Result<Policy, Outcome>) -> Judge {
    chain(vec![policy])
}

fn chain(policies: Vec<Result<Policy, Outcome>>) -> Judge {
    let place = || Place { name: "POLICY.wasm".into(), ..Place::builtin() };
    chain_of(policies.into_iter().map(|policy| (place(), policy)).collect())
}

/// A chain of policies in their places.
fn chain_of(links: Vec<(Place, Result<Policy, Outcome>)>) -> Judge {
    let chain = links.into_iter().map(|(place, policy)| Link::of(place, policy)).collect();
    Judge {
        runtime: runtime(),
        chain: Arc::new(chain),
        clock: Arc::new(SystemClock::default()),
        with_rests: true,
        follower: None,
    }
}

/// A judge with the built-in policy that keeps what it compiles there.
fn with_cache(cache: &Path, clock: Arc<SystemClock>) -> Result<Judge, LoadError> {
    Judge::new(vec![Place::builtin()], &Options { cache: Some(cache.into()), ..Options::default() }, clock)
}

/// The built-in policy.
pub(crate) fn builtin(settings: &str) -> Result<Policy, Outcome> {
    load(BUILTIN, settings, Limits::default())
}

/// The policy that misbehaves so.
fn misbehaving(what: &str) -> Result<Policy, Outcome> {
    load(MISBEHAVING_POLICY, &format!(r#"{{"do":"{what}"}}"#), patient())
}

/// Limits with all the time that a busy machine may need.
fn patient() -> Limits {
    Limits { deadline: Duration::from_secs(60), ..Limits::default() }
}

fn load(bytes: &[u8], settings: &str, limits: Limits) -> Result<Policy, Outcome> {
    Policy::load(&runtime(), "POLICY.wasm", bytes, settings, limits).map_err(|error| match error {
        LoadError::Policy { outcome, .. } => outcome,
        other => panic!("{other}"),
    })
}

/// How the only policy fared, and the verdict.
fn outcome(judge: &Judge, facts: &Snapshot) -> Outcome {
    let mut judgement = judge.judge(facts);
    assert_eq!(judgement.policies.len(), 1);
    let outcome = judgement.policies.remove(0).outcome;
    assert_eq!(judgement.verdict.is_some(), outcome == Outcome::Verdict);
    outcome
}

/// Whether this process runs the test of this name alone: what others take up beside it would count too. If not, the test has
/// been run in such a process by now.
#[cfg(target_os = "linux")]
fn alone(name: &str) -> bool {
    const ALONE: &str = "HEADCOUNT_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let ended = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("1 passed"), "the test has another name now");
    false
}

/// A session of so many agents of which little is known.
fn session(agents: usize) -> Snapshot {
    let agent = |n| Agent {
        id: format!("a-{n}"),
        name: format!("agent {n}"),
        specialization: None,
        kind: "process".into(),
        created_at_ms: Some(1_000),
        process_id: Some(1),
        terminal: None,
        process: ProcessState::Sleeping,
        exit_code: None,
        metrics: Metrics { cpu_percent: Some(1.5), threads: Some(3), ..Metrics::default() },
        counters: None,
        trend: None,
        usage: None,
        evidence: vec![],
        unmeasured: vec![],
        origin: Default::default(),
        identity: None,
        via: vec![],
        run: None,
    };
    Snapshot {
        now_ms: 2_000_000,
        cores: 2,
        session: Session {
            id: "s".into(),
            name: "s".into(),
            root_path: String::new(),
            owner: "me".into(),
            created_at_ms: None,
        },
        agents: (0..agents).map(agent).collect(),
        sources: vec![],
        instance: None,
    }
}
