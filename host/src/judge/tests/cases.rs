//! The built-in policy is one and the same in the sandbox and out of it.

use super::*;
use crate::observe::facts;
use headcount_policy as native;
use headcount_tests::schema::faults;
use serde_json::Value;
use std::collections::HashMap;

#[test]
fn every_case_is_judged_in_the_sandbox_as_it_is_natively() {
    let cases = native::cases::all();
    assert!(cases.len() > 40);
    let mut judges: HashMap<String, Result<Judge, Outcome>> = HashMap::new();
    for (name, facts, settings) in cases {
        let expected = native::judge(&facts, None, &settings);
        let judge = judges.entry(settings.clone()).or_insert_with(|| builtin(&settings).map(|p| judge_of(Ok(p))));
        match (judge, expected) {
            (Ok(judge), Ok(expected)) => {
                let judgement = judge.judge(&snapshot(&facts));
                let actual = judgement.verdict.unwrap_or_else(|| panic!("{name}: {:?}", judgement.policies));
                assert_eq!(plain(&actual), plain(&expected), "{name}");
            }
            (Err(Outcome::BadSettings(problems)), Err(_)) => {
                let expected = native::validate_settings(&settings);
                let expected: Vec<_> = expected.iter().map(|p| (p.path.as_str(), p.message.as_str())).collect();
                let actual: Vec<_> = problems.iter().map(|p| (p.path.as_str(), p.message.as_str())).collect();
                assert_eq!(actual, expected, "{name}");
            }
            (judge, expected) => panic!("{name}: {:?}, but natively {expected:?}", judge.as_ref().err()),
        }
    }
}

#[test]
fn the_settings_schema_takes_the_defaults_and_every_setting_that_the_policy_takes() {
    let description = builtin("").unwrap().description;
    let schema: Value = serde_json::from_str(&description.settings_schema).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let defaults: Value = properties.iter().map(|(name, of)| (name.clone(), of["default"].clone())).collect();
    assert!(properties.len() > 10);
    assert_eq!(faults(&schema, &defaults), Vec::<String>::new());
    assert!(builtin(&defaults.to_string()).is_ok());
    let wrong: Value = properties.keys().map(|name| (name.clone(), Value::Bool(true))).collect();
    assert_eq!(faults(&schema, &wrong).len(), properties.len());
    let Err(Outcome::BadSettings(problems)) = builtin(&wrong.to_string()) else { panic!("they are refused") };
    assert_eq!(problems.len(), properties.len(), "{problems:?}");
}

/// A verdict as text without the names of the types, which differ between the two sides' bindings.
pub(super) fn plain(verdict: &impl std::fmt::Debug) -> String {
    const TYPES: [&str; 6] = ["Result", "Activity::", "Status::", "Health::", "Source::", "Outcome::"];
    TYPES.iter().fold(format!("{verdict:?}"), |text, name| text.replace(name, ""))
}

/// The facts as the host has them.
pub(crate) fn snapshot(of: &native::Snapshot) -> Snapshot {
    Snapshot {
        now_ms: of.now_ms,
        cores: of.cores,
        session: Session {
            id: of.session.id.clone(),
            name: of.session.name.clone(),
            root_path: of.session.root_path.clone(),
            owner: of.session.owner.clone(),
            created_at_ms: of.session.created_at_ms,
        },
        agents: of.agents.iter().map(agent).collect(),
        instance: None,
        sources: of
            .sources
            .iter()
            .map(|s| facts::SourceState { name: s.name.clone(), error: s.error.clone(), ..Default::default() })
            .collect(),
    }
}

fn agent(of: &native::Agent) -> Agent {
    Agent {
        id: of.id.clone(),
        name: of.name.clone(),
        specialization: of.specialization.clone(),
        kind: of.kind.clone(),
        created_at_ms: of.created_at_ms,
        process_id: None,
        terminal: None,
        process: process_state(of.process),
        exit_code: of.exit_code,
        metrics: metrics(&of.metrics),
        counters: None,
        trend: of.trend.as_ref().map(|t| facts::Trend {
            window_ms: t.window_ms,
            cpu_percent_mean: t.cpu_percent_mean,
            memory_bytes_per_minute: t.memory_bytes_per_minute,
            io_bytes: t.io_bytes,
            quiet_ms: t.quiet_ms,
        }),
        usage: of.usage.as_ref().map(usage),
        evidence: of.evidence.iter().map(evidence).collect(),
        unmeasured: of.unmeasured.iter().map(|gap| facts::Gap::new(gap.field.clone(), gap.reason.clone())).collect(),
        origin: Default::default(),
        identity: None,
        via: vec![],
        run: None,
    }
}

fn metrics(of: &native::Metrics) -> Metrics {
    Metrics {
        cpu_percent: of.cpu_percent,
        memory_bytes: of.memory_bytes,
        memory_method: match of.memory_method {
            native::MemoryMethod::Pss => facts::MemoryMethod::Pss,
            native::MemoryMethod::Estimate => facts::MemoryMethod::Estimate,
            native::MemoryMethod::Resident => facts::MemoryMethod::Resident,
        },
        threads: of.threads,
        processes: of.processes,
        zombies: of.zombies,
        file_descriptors: of.file_descriptors,
        fullest_fds: of.fullest_fds,
        fd_limit: of.fd_limit,
        read_bytes: of.read_bytes,
        written_bytes: of.written_bytes,
    }
}

fn usage(of: &native::Usage) -> facts::Usage {
    facts::Usage {
        model: of.model.clone(),
        input_tokens: of.input_tokens,
        output_tokens: of.output_tokens,
        cache_read_tokens: of.cache_read_tokens,
        cache_write_tokens: of.cache_write_tokens,
        context_used_percent: of.context_used_percent,
        current_tool: of.current_tool.clone(),
        subagents: of.subagents,
        mcp_servers: of.mcp_servers,
    }
}

fn process_state(of: native::ProcessState) -> ProcessState {
    match of {
        native::ProcessState::Running => ProcessState::Running,
        native::ProcessState::Sleeping => ProcessState::Sleeping,
        native::ProcessState::Stopped => ProcessState::Stopped,
        native::ProcessState::Uninterruptible => ProcessState::Uninterruptible,
        native::ProcessState::Zombie => ProcessState::Zombie,
        native::ProcessState::Gone => ProcessState::Gone,
        native::ProcessState::Unreadable => ProcessState::Unreadable,
        native::ProcessState::NotLocal => ProcessState::NotLocal,
    }
}

fn evidence(of: &native::Evidence) -> facts::Evidence {
    facts::Evidence {
        source: match of.source {
            native::Source::OwnRecord => facts::Source::OwnRecord,
            native::Source::Hook => facts::Source::Hook,
            native::Source::Transcript => facts::Source::Transcript,
            native::Source::Process => facts::Source::Process,
            native::Source::Upstream => facts::Source::Upstream,
        },
        claim: match of.claim {
            native::Claim::Working => facts::Claim::Working,
            native::Claim::Waiting => facts::Claim::Waiting,
            native::Claim::Idle => facts::Claim::Idle,
            native::Claim::Finished => facts::Claim::Finished,
            native::Claim::Failed => facts::Claim::Failed,
            native::Claim::Unknown => facts::Claim::Unknown,
        },
        word: of.word.clone(),
        detail: of.detail.clone(),
        at_ms: of.at_ms,
    }
}
