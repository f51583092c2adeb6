//! A policy that misbehaves as its settings say (`{"do": "loop"}`), for tests of the judge's limits.

#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        world: "health-policy",
        path: "../../wit",
        runtime_path: "crate::support::rt",
        disable_custom_section_link_helpers: true,
    });

    #[cfg(target_family = "wasm")]
    export!(Policy);
    #[cfg(target_family = "wasm")]
    use super::Policy;
}

/// So that its panics leave their text.
#[path = "../../../guest/examples/support/mod.rs"]
mod support;

use bindings::exports::headcount::policy::policy::{
    Activity, Advice, AgentVerdict, Check, Description, Guest, Health, Outcome, Problem, SessionVerdict, Snapshot,
    Source, Status, Totals,
};

/// The policy.
pub struct Policy;

impl Guest for Policy {
    fn describe() -> Description {
        Description {
            name: "misbehaving".into(),
            version: "1".into(),
            summary: "does what its settings say".into(),
            settings_schema: "{}".into(),
        }
    }

    fn validate_settings(json: String) -> Vec<Problem> {
        match wish(&json) {
            "refuse-settings" => vec![Problem { path: "/do".into(), message: "not this".into() }],
            "loop-in-settings" => endless(),
            _ => vec![],
        }
    }

    fn judge(facts: Snapshot, so_far: Option<SessionVerdict>, settings: String) -> Result<SessionVerdict, String> {
        let mut verdict = so_far.unwrap_or_else(|| honest(&facts));
        match wish(&settings) {
            "loop" => endless(),
            "recurse" => drop(recurse(facts.now_ms)),
            "grow" => grow(),
            "grow-20" => drop(std::hint::black_box(vec![1_u8; 20 << 20])),
            "slow" => work(),
            "panic" => panic!("as asked"),
            "panic-on-two" if facts.agents.len() == 2 => panic!("two of them"),
            "decline" => return Err("not today".into()),
            "long-text" => verdict.checks.push(check("x".repeat(36 << 20))),
            "many-rows" => verdict.checks = (0..400_000).map(|_| check(String::new())).collect(),
            "many-checks" => verdict.checks = (0..65).map(|_| check(String::new())).collect(),
            "nan" => verdict.totals.cpu_percent = f64::NAN,
            "nan-since" => verdict.agents.iter_mut().for_each(|agent| agent.since_ms = Some(f64::NAN)),
            "nan-value" => verdict.checks.push(Check { value: Some(f64::NAN), ..check(String::new()) }),
            "nan-limit" => verdict.checks.push(Check { limit: Some(f64::NAN), ..check(String::new()) }),
            "infinity" => verdict.checks.push(Check { value: Some(f64::INFINITY), ..check(String::new()) }),
            "negative" => verdict.totals.threads = -1.0,
            "score-101" => verdict.score = 101,
            "agent-score-101" => verdict.agents.iter_mut().for_each(|agent| agent.score = 101),
            "one-agent-more" => verdict.agents.push(agent()),
            "one-agent-less" => drop(verdict.agents.pop()),
            "no-agents" => verdict.agents.clear(),
            "empty" => verdict.health = Health::Empty,
            "dead-and-active" => verdict.agents.iter_mut().for_each(|agent| {
                agent.activity = Activity::Dead;
                agent.status = Status::Active;
            }),
            "much-advice" => {
                let advice = || Advice { agent: None, why: "x".repeat(10_000), action: String::new() };
                verdict.advice = (0..1000).map(|_| advice()).collect();
            }
            "long-reasons" => verdict.agents.iter_mut().for_each(|agent| agent.reason = "x".repeat(1 << 20)),
            "wrong-counts" => verdict.totals.failed += 1,
            "too-many-waiting" => verdict.totals.waiting = u32::MAX,
            "too-many-unmeasured" => verdict.totals.unmeasured = u32::MAX,
            "advice-for-nobody" => {
                let nobody = Some(u32::try_from(facts.agents.len()).unwrap_or(u32::MAX));
                verdict.advice.push(Advice { agent: nobody, why: String::new(), action: String::new() });
            }
            "critical" => verdict.health = Health::Critical,
            _ => {}
        }
        Ok(verdict)
    }
}

/// The word after `"do":"`.
fn wish(settings: &str) -> &str {
    settings.split('"').nth(3).unwrap_or_default()
}

fn endless() -> ! {
    let mut x = 0u64;
    loop {
        x = std::hint::black_box(x.wrapping_add(1));
    }
}

/// Some tenths of a second of work, which ends.
fn work() {
    let mut x = 0u64;
    for _ in 0..400_000_000 {
        x = std::hint::black_box(x.wrapping_add(1));
    }
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    recurse(depth + 1) + frame[3]
}

fn grow() {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(std::hint::black_box(vec![1; 1 << 20]));
    }
}

fn check(detail: String) -> Check {
    Check { name: "c".into(), outcome: Outcome::Warn, detail, value: None, limit: None }
}

fn agent() -> AgentVerdict {
    AgentVerdict {
        activity: Activity::Idle,
        reason: String::new(),
        since_ms: None,
        decided_by: Source::Process,
        inferred: true,
        status: Status::Active,
        score: 100,
        checks_passed: 0,
        checks: vec![],
    }
}

fn honest(facts: &Snapshot) -> SessionVerdict {
    SessionVerdict {
        agents: facts.agents.iter().map(|_| agent()).collect(),
        totals: Totals {
            cpu_percent: 0.0,
            memory_bytes: 0.0,
            file_descriptors: 0.0,
            threads: 0.0,
            processes: 0.0,
            active: u32::try_from(facts.agents.len()).unwrap_or(u32::MAX),
            degraded: 0,
            failed: 0,
            offline: 0,
            unknown: 0,
            waiting: 0,
            unmeasured: 0,
        },
        health: Health::Healthy,
        score: 100,
        checks_passed: 1,
        checks: vec![],
        advice: vec![],
    }
}
