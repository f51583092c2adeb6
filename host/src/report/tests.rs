//! Reports of made-up sessions.

use super::*;
use crate::config::{Mode, OnError};
use crate::judge::{self, Evaluation, Judgement, Outcome, Verdict};
use crate::observe::facts::{self, Gap, MemoryMethod, Metrics, ProcessState, Session, Snapshot, SourceState, Terminal};
use std::time::Duration;

/// A moment of 2026 for made-up facts.
const NOW_MS: u64 = 1_790_000_000_123;

fn agent(n: u32) -> facts::Agent {
    facts::Agent {
        id: format!("claude-{n}-00ff"),
        name: format!("agent {n}"),
        specialization: None,
        kind: "claude".into(),
        created_at_ms: Some(NOW_MS - 60_000 + u64::from(n)),
        process_id: Some(n),
        terminal: None,
        process: ProcessState::Sleeping,
        exit_code: None,
        metrics: Metrics {
            cpu_percent: Some(12.345),
            memory_bytes: Some(100 << 20),
            memory_method: MemoryMethod::Pss,
            threads: Some(9),
            processes: Some(2),
            zombies: Some(0),
            file_descriptors: Some(40),
            fullest_fds: Some(30),
            fd_limit: Some(1024),
            read_bytes: Some(1 << 20),
            written_bytes: Some(0),
        },
        counters: None,
        trend: None,
        usage: None,
        evidence: vec![],
        unmeasured: vec![],
        origin: Default::default(),
        identity: None,
        via: vec![],
        run: None,
    }
}

fn snapshot(agents: Vec<facts::Agent>) -> Snapshot {
    Snapshot {
        now_ms: NOW_MS,
        cores: 2,
        session: Session {
            id: "shop-3f2a91".into(),
            name: "shop".into(),
            root_path: "/srv/shop".into(),
            owner: "ada".into(),
            created_at_ms: Some(NOW_MS - 60_000),
        },
        agents,
        sources: vec![SourceState { name: "processes".into(), error: None, ..SourceState::default() }],
        instance: None,
    }
}

fn agent_verdict() -> judge::AgentVerdict {
    judge::AgentVerdict {
        activity: judge::Activity::Working,
        reason: "CPU or IO just now".into(),
        since_ms: Some(NOW_MS as f64 - 5000.0),
        decided_by: judge::Source::Process,
        inferred: true,
        status: judge::Status::Active,
        score: 88,
        checks_passed: 8,
        checks: vec![judge::Check {
            name: "thread-count".into(),
            outcome: judge::CheckOutcome::Warn,
            detail: "many threads, −12".into(),
            value: Some(1200.0),
            limit: Some(1000.0),
        }],
    }
}

fn judgement(verdict: Option<Verdict>, outcome: Outcome) -> Judgement {
    let evaluation = Evaluation {
        name: "built-in".into(),
        version: "0.1.0".into(),
        digest: "ab".repeat(32),
        settings: "".into(),
        mode: Mode::Enforce,
        on_error: OnError::Open,
        stale: None,
        outcome,
        took: Duration::from_micros(42),
        memory: 1 << 20,
        shadow: None,
    };
    Judgement { verdict, withheld: None, policies: vec![evaluation] }
}

fn verdict(facts: &Snapshot) -> Verdict {
    Verdict {
        agents: facts.agents.iter().map(|_| agent_verdict()).collect(),
        totals: judge::Totals {
            cpu_percent: 24.69,
            memory_bytes: 209_715_200.0,
            file_descriptors: 80.0,
            threads: 18.0,
            processes: 4.0,
            active: u32::try_from(facts.agents.len()).unwrap(),
            degraded: 0,
            failed: 0,
            offline: 0,
            unknown: 0,
            waiting: 0,
            unmeasured: 0,
        },
        health: judge::Health::Healthy,
        score: 88,
        checks_passed: 3,
        checks: vec![],
        advice: vec![judge::Advice { agent: Some(0), why: "w".into(), action: "a".into() }],
    }
}

fn of(facts: &Snapshot, view: &View) -> Report {
    report(facts, &judgement(Some(verdict(facts)), Outcome::Verdict), view, 7)
}

/// A report with two agents.
pub(crate) fn any_report() -> Report {
    of(&snapshot(vec![agent(1), agent(2)]), &View::default())
}

#[test]
fn a_report_as_json() {
    let mut facts = snapshot(vec![agent(1), agent(2)]);
    facts.agents[0].terminal = Some(Terminal { app: "iterm2".into(), id: "w0t1p0".into() });
    facts.agents[0].specialization = Some("backend".into());
    facts.agents[1].metrics.read_bytes = None;
    facts.agents[1].unmeasured = vec![Gap::new("read-bytes", "belongs to another user")];
    insta::assert_json_snapshot!(of(&facts, &View::default()));
}

#[test]
fn a_report_in_words() {
    insta::assert_snapshot!(summary(&any_report()));
}

#[test]
fn without_a_verdict_the_facts_are_there_and_health_is_unknown() {
    let facts = snapshot(vec![agent(1)]);
    let report = report(&facts, &judgement(None, Outcome::Deadline(Duration::from_millis(250))), &View::default(), 0);
    assert_eq!(report.session_health, SessionHealth::Unknown);
    assert_eq!((report.session_score, report.session_metrics.is_none(), report.partial), (None, true, true));
    let agent = &report.agents[0];
    assert_eq!(agent.status, AgentStatus::Unknown);
    assert_eq!(agent.metrics.as_ref().unwrap().memory_mb, Some(100.0));
    assert!(agent.activity.reason.contains("deadline"), "{}", agent.activity.reason);
    assert_eq!(report.policies[0].outcome, "deadline");
}

#[test]
fn pages_cover_every_agent_once_though_agents_come_and_go() {
    let mut facts = snapshot((1..=10).map(agent).collect());
    let mut view = View { limit: 4, ..View::default() };
    let mut seen = Vec::new();
    loop {
        let page = of(&facts, &view);
        seen.extend(page.agents.iter().map(|a| a.agent_id.clone()));
        assert_eq!(page.truncated, page.next_cursor.is_some());
        let Some(cursor) = page.next_cursor else { break };
        view.cursor = Some(cursor.parse().unwrap());
        // The agent at which the page ended is gone when the next one is asked for.
        facts.agents.retain(|a| Some(&a.id) != seen.last());
    }
    assert_eq!(seen, (1..=10).map(|n| format!("claude-{n}-00ff")).collect::<Vec<_>>());
}

#[test]
fn totals_are_of_the_whole_session_whatever_is_listed() {
    let facts = snapshot((1..=10).map(agent).collect());
    let only = View { only: vec!["failed".parse().unwrap()], ..View::default() };
    let none = of(&facts, &only);
    assert_eq!((none.agents.len(), none.agent_count, none.truncated), (0, 10, false));
    assert_eq!(none.session_metrics.unwrap().active_agents, 10);
}

#[test]
fn a_whole_report_leaves_out_no_agent_and_no_advice() {
    let facts = snapshot((1..=300).map(agent).collect());
    let mut verdict = verdict(&facts);
    verdict.advice = (0..301).map(|_| verdict.advice[0].clone()).collect();
    let whole = report(&facts, &judgement(Some(verdict), Outcome::Verdict), &View::whole(), 0);
    assert_eq!((whole.agents.len(), whole.attention.len(), whole.truncated), (300, 301, false));
}

#[test]
fn what_is_not_asked_for_is_left_out() {
    let view = View { metrics: false, health: false, ..View::default() };
    let json = serde_json::to_value(of(&snapshot(vec![agent(1)]), &view)).unwrap();
    let agent = json["agents"][0].as_object().unwrap();
    assert!(!agent.contains_key("metrics") && !agent.contains_key("health"));
}

#[test]
fn times_that_no_calendar_has_do_not_matter() {
    let mut facts = snapshot(vec![agent(1)]);
    facts.now_ms = u64::MAX;
    facts.agents[0].created_at_ms = Some(u64::MAX);
    assert!(of(&facts, &View::default()).observed_at.starts_with("9999-12-"));
}

#[test]
fn facts_are_cleaned_in_every_text_that_comes_from_elsewhere() {
    let hostile = "a\u{1b}[2J\u{202e}b\n".to_owned() + &"x".repeat(300);
    let mut facts = snapshot(vec![agent(1)]);
    let Snapshot { session, agents, sources, .. } = &mut facts;
    let agent = &mut agents[0];
    session.name.clone_from(&hostile);
    session.root_path.clone_from(&hostile);
    agent.name.clone_from(&hostile);
    agent.specialization = Some(hostile.clone());
    agent.terminal = Some(Terminal { app: "tmux".into(), id: hostile.clone() });
    agent.evidence = vec![facts::Evidence {
        source: facts::Source::Hook,
        claim: facts::Claim::Unknown,
        word: hostile.clone(),
        detail: Some(hostile.clone()),
        at_ms: 1,
    }];
    agent.unmeasured = vec![Gap::new("threads", hostile.clone())];
    let texts =
        facts::Usage { model: Some(hostile.clone()), current_tool: Some(hostile.clone()), ..Default::default() };
    agent.usage = Some(texts);
    *sources = vec![SourceState { name: hostile.clone(), error: Some(hostile.clone()), ..SourceState::default() }];
    let count = |facts: &Snapshot, text: &str| serde_json::to_string(facts).unwrap().matches(text).count();
    let all = count(&facts, "[2J");
    clean_facts(&mut facts);
    assert_eq!((all, count(&facts, "[2J"), count(&facts, &clean(&hostile))), (12, 0, 12));
    let once = facts.clone();
    clean_facts(&mut facts);
    assert_eq!(facts, once);
}

#[test]
fn what_an_agent_does_not_record_of_its_work_makes_no_report_partial() {
    let partial = |field: &'static str| {
        let gap = Gap::new(field, "not recorded");
        let facts = snapshot(vec![facts::Agent { unmeasured: vec![gap], ..agent(1) }]);
        of(&facts, &View::default()).partial
    };
    assert!(!partial("context-used-percent") && !partial("input-tokens"));
    assert!(partial("cpu-percent") && partial("evidence") && partial("usage"));
}

#[test]
fn what_is_never_read_by_design_has_its_reason_and_makes_no_report_partial() {
    let gaps = vec![Gap::by_design("usage", "nobody reads it"), Gap::by_design("evidence", "nobody reads it")];
    let report = of(&snapshot(vec![facts::Agent { unmeasured: gaps, ..agent(1) }]), &View::default());
    let metrics = report.agents[0].metrics.as_ref().unwrap();
    assert_eq!((metrics.unmeasured["usage"].as_str(), metrics.unmeasured.len()), ("nobody reads it", 2));
    assert!(!report.partial && metrics.expected.is_empty());
}
