//! What must hold for any facts whatever: arbitrary sessions with arbitrary numbers, times and texts.

mod arbitrary;

use arbitrary::{agent, evidence, facts, text};
use headcount_policy::cases::{NOW, snapshot};
use headcount_policy::{
    Activity, Agent, AgentVerdict, Claim, Evidence, Health, Outcome, ProcessState, SessionVerdict, Snapshot, Source,
    Status, judge,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn settings() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        r#"{"failed_share":100,"degraded_share":100,"waiting_too_long_fail":"20m"}"#,
        r#"{"cpu_runaway_weight":100,"stalled_weight":100,"waiting_too_long_weight":100,"unmeasured_weight":100}"#,
        r#"{"cpu_runaway_after":"1s","memory_growth_above":"1B","stall_after":"1s","evidence_conflict_within":"1m"}"#,
        r#"{"stalled_weight":0,"cpu_runaway_weight":0,"evidence_conflict_weight":0,"failed_share":0,"degraded_share":0}"#,
    ])
}

fn verdict(facts: &Snapshot, settings: &str) -> SessionVerdict {
    judge(facts, None, settings).expect("the settings are right")
}

/// 0 is well, 3 the worst.
fn illness(status: Status) -> u8 {
    match status {
        Status::Active | Status::Offline => 0,
        Status::Unknown => 1,
        Status::Degraded => 2,
        Status::Failed => 3,
    }
}

fn gravity(health: Health) -> u8 {
    match health {
        Health::Empty | Health::Healthy => 0,
        Health::Unknown => 1,
        Health::Degraded => 2,
        Health::Critical => 3,
    }
}

/// The points that the details of the checks name.
fn deductions(verdict: &AgentVerdict) -> u64 {
    let points = |detail: &str| detail.rsplit_once(", −").and_then(|(_, points)| points.parse::<u64>().ok());
    verdict.checks.iter().map(|check| points(&check.detail).expect("a check names its points")).sum()
}

fn is_harmless(char: char) -> bool {
    !char.is_control() && !matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Every text of a verdict.
fn texts(verdict: &SessionVerdict) -> Vec<&str> {
    let mut texts: Vec<&str> =
        verdict.advice.iter().flat_map(|advice| [advice.why.as_str(), advice.action.as_str()]).collect();
    texts.extend(verdict.agents.iter().map(|agent| agent.reason.as_str()));
    let checks = verdict.agents.iter().flat_map(|agent| &agent.checks).chain(&verdict.checks);
    texts.extend(checks.flat_map(|check| [check.name.as_str(), check.detail.as_str()]));
    texts
}

proptest! {
    // As WebAssembly there are no files in which failures could be kept.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_verdict_is_one_the_host_accepts(facts in facts(0..6), settings in settings()) {
        let verdict = verdict(&facts, settings);
        prop_assert_eq!(verdict.agents.len(), facts.agents.len());
        prop_assert!(verdict.score <= 100 && verdict.agents.iter().all(|agent| agent.score <= 100));
        let totals = &verdict.totals;
        let counts = totals.active + totals.degraded + totals.failed + totals.offline + totals.unknown;
        prop_assert_eq!(counts as usize, facts.agents.len());
        prop_assert!(totals.waiting <= counts && totals.unmeasured <= counts);
        for sum in [totals.cpu_percent, totals.memory_bytes, totals.file_descriptors, totals.threads, totals.processes] {
            prop_assert!(sum.is_finite() && sum >= 0.0);
        }
        let checks = || verdict.agents.iter().flat_map(|agent| &agent.checks).chain(&verdict.checks);
        prop_assert!(checks().all(|check| check.outcome != Outcome::Pass));
        prop_assert!(checks().flat_map(|check| [check.value, check.limit]).flatten().all(f64::is_finite));
        prop_assert!(verdict.advice.iter().all(|advice| advice.agent.is_some_and(|agent| (agent as usize) < facts.agents.len())));
    }

    #[test]
    fn the_checks_explain_the_score(facts in facts(1..4), settings in settings()) {
        for agent in verdict(&facts, settings).agents {
            prop_assert_eq!(u64::from(agent.score), 100_u64.saturating_sub(deductions(&agent)));
            prop_assert!(agent.status != Status::Failed || agent.score == 0);
            prop_assert!(agent.status != Status::Unknown || agent.score <= 50);
            prop_assert!(agent.status != Status::Active || agent.checks.iter().all(|check| check.outcome != Outcome::Fail));
        }
    }

    #[test]
    fn texts_are_short_and_harmless(facts in facts(0..4)) {
        let verdict = verdict(&facts, "");
        for text in texts(&verdict) {
            prop_assert!(text.chars().count() <= 4 * 410, "{}", text.len());
            prop_assert!(text.chars().all(is_harmless));
        }
    }

    #[test]
    fn the_same_facts_give_the_same_verdict_whatever_was_said_so_far(facts in facts(0..4), others in facts(0..4)) {
        let first = verdict(&facts, "");
        prop_assert_eq!(&first, &verdict(&facts.clone(), "{}"));
        prop_assert_eq!(&first, &judge(&facts, Some(&verdict(&others, "")), "").expect("no settings"));
    }

    #[test]
    fn the_order_of_the_agents_does_not_matter(facts in facts(0..8), settings in settings(), keys in vec(any::<u32>(), 8)) {
        let mut order: Vec<usize> = (0..facts.agents.len()).collect();
        order.sort_by_key(|index| keys[*index]);
        let permuted = Snapshot { agents: order.iter().map(|index| facts.agents[*index].clone()).collect(), ..facts.clone() };
        let (straight, permuted) = (verdict(&facts, settings), verdict(&permuted, settings));
        prop_assert_eq!(&permuted.agents, &order.iter().map(|index| straight.agents[*index].clone()).collect::<Vec<_>>());
        prop_assert_eq!(permuted.totals, straight.totals);
        prop_assert_eq!((permuted.health, permuted.score, permuted.checks), (straight.health, straight.score, straight.checks));
        prop_assert_eq!(permuted.advice.len(), straight.advice.len());
    }

    #[test]
    fn one_more_failure_never_improves_the_session(facts in facts(1..8), settings in settings(), index in 0_usize..8) {
        let before = verdict(&facts, settings);
        let mut worse = facts;
        let index = index % worse.agents.len();
        worse.agents[index].process = ProcessState::Gone;
        worse.agents[index].exit_code = Some(1);
        let after = verdict(&worse, settings);
        prop_assert_eq!(after.agents[index].status, Status::Failed);
        prop_assert!(after.score <= before.score, "{} > {}", after.score, before.score);
        prop_assert!(gravity(after.health) >= gravity(before.health), "{:?} after {:?}", after.health, before.health);
    }

    #[test]
    fn an_unknown_word_never_makes_an_agent_healthier_or_dead(agent in agent(), word in evidence(), at in 0_usize..6, settings in settings()) {
        let before = verdict(&snapshot(vec![agent.clone()]), settings).agents.remove(0);
        let mut said_more = agent;
        let at = at.min(said_more.evidence.len());
        said_more.evidence.insert(at, Evidence { claim: Claim::Unknown, ..word });
        let after = verdict(&snapshot(vec![said_more]), settings).agents.remove(0);
        prop_assert!(illness(after.status) >= illness(before.status), "{:?} after {:?}", after.status, before.status);
        prop_assert!(after.score <= before.score, "{} > {}", after.score, before.score);
        prop_assert!(after.activity != Activity::Dead || before.activity == Activity::Dead);
        prop_assert!(after.activity == before.activity || after.activity == Activity::Unknown);
    }

    #[test]
    fn waiting_ends_only_by_newer_evidence_a_stop_or_death(agent in agent(), word in text(), age_ms in 0..NOW) {
        let mut waiting = agent;
        waiting.evidence.retain(|evidence| evidence.at_ms.min(NOW) < NOW - age_ms);
        waiting.evidence.push(Evidence { source: Source::OwnRecord, claim: Claim::Waiting, word, detail: None, at_ms: NOW - age_ms });
        let takes_no_answer = matches!(waiting.process, ProcessState::Gone | ProcessState::Zombie | ProcessState::Stopped);
        let verdict = verdict(&snapshot(vec![waiting]), "").agents.remove(0);
        prop_assert_eq!(verdict.activity == Activity::WaitingForInput, !takes_no_answer);
    }
}

#[test]
fn huge_sessions_and_texts_are_judged() {
    let huge = "\u{1b}[31m\u{202e}word ".repeat(200_000);
    let one = Agent {
        evidence: vec![Evidence {
            source: Source::Hook,
            claim: Claim::Waiting,
            word: huge.clone(),
            detail: Some(huge),
            at_ms: u64::MAX,
        }],
        ..headcount_policy::cases::agent("a")
    };
    let verdict = verdict(&snapshot(vec![one; 20]), "");
    assert!(verdict.agents.iter().all(|agent| agent.reason.chars().count() <= 201));
    let many = headcount_policy::cases::crowd(20_000);
    assert_eq!(judge(&many, None, "").expect("no settings").agents.len(), 20_000);
}
