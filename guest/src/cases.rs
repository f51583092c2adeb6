//! Situations to judge, as data: what the native tests, the component's tests and the benches have in common.

mod list;

pub use list::all;

use crate::{
    Agent, Claim, Evidence, Gap, MemoryMethod, Metrics, ProcessState, Session, Snapshot, Source, SourceState, Trend,
};

/// The moment of every case, in Unix milliseconds.
pub const NOW: u64 = 1_800_000_000_000;

/// A minute in milliseconds.
pub const MINUTE: u64 = 60_000;

/// A process that sleeps, uses little and has been watched for ten minutes; no evidence.
#[must_use]
pub fn agent(id: &str) -> Agent {
    Agent {
        id: id.to_owned(),
        name: id.to_owned(),
        specialization: None,
        kind: "claude".to_owned(),
        created_at_ms: Some(NOW - 60 * MINUTE),
        process: ProcessState::Sleeping,
        exit_code: None,
        metrics: Metrics {
            cpu_percent: Some(12.5),
            memory_bytes: Some(300 << 20),
            memory_method: MemoryMethod::Pss,
            threads: Some(24),
            processes: Some(3),
            zombies: Some(0),
            file_descriptors: Some(90),
            fullest_fds: Some(40),
            fd_limit: Some(1024),
            read_bytes: Some(1 << 20),
            written_bytes: Some(1 << 20),
        },
        trend: Some(trend(0)),
        usage: None,
        evidence: Vec::new(),
        unmeasured: Vec::new(),
    }
}

/// Ten minutes watched, quiet for the last `quiet_ms`.
#[must_use]
pub fn trend(quiet_ms: u64) -> Trend {
    Trend {
        window_ms: 10 * MINUTE,
        cpu_percent_mean: Some(10.0),
        memory_bytes_per_minute: Some(0.0),
        io_bytes: Some(1 << 20),
        quiet_ms,
    }
}

/// [`agent`] of which `evidence` is known.
#[must_use]
pub fn agent_that(id: &str, evidence: Vec<Evidence>) -> Agent {
    Agent { evidence, ..agent(id) }
}

/// [`agent`] whose root process is gone or a zombie; its figures are gone with it.
#[must_use]
pub fn ended(id: &str, process: ProcessState, exit_code: Option<i32>) -> Agent {
    Agent { process, exit_code, metrics: no_metrics(), trend: None, ..agent(id) }
}

/// Nothing measured.
#[must_use]
pub fn no_metrics() -> Metrics {
    Metrics {
        cpu_percent: None,
        memory_bytes: None,
        memory_method: MemoryMethod::Resident,
        threads: None,
        processes: None,
        zombies: None,
        file_descriptors: None,
        fullest_fds: None,
        fd_limit: None,
        read_bytes: None,
        written_bytes: None,
    }
}

/// A statement made `age_ms` ago.
#[must_use]
pub fn said(source: Source, claim: Claim, word: &str, age_ms: u64) -> Evidence {
    Evidence { source, claim, word: word.to_owned(), detail: None, at_ms: NOW - age_ms }
}

/// [`said`] with a detail.
#[must_use]
pub fn said_more(source: Source, claim: Claim, word: &str, detail: &str, age_ms: u64) -> Evidence {
    Evidence { detail: Some(detail.to_owned()), ..said(source, claim, word, age_ms) }
}

/// A reason for what could not be measured.
#[must_use]
pub fn gap(field: &str, reason: &str) -> Gap {
    Gap { field: field.to_owned(), reason: reason.to_owned() }
}

/// A session of `agents`, all of whose sources are well.
#[must_use]
pub fn snapshot(agents: Vec<Agent>) -> Snapshot {
    Snapshot {
        now_ms: NOW,
        cores: 8,
        session: Session {
            id: "shop-1a2b3c".to_owned(),
            name: "shop".to_owned(),
            root_path: "/srv/shop".to_owned(),
            owner: "local".to_owned(),
            created_at_ms: Some(NOW - 60 * MINUTE),
        },
        agents,
        sources: vec![SourceState { name: "processes".to_owned(), error: None }],
    }
}

/// `count` agents as a busy machine has them: most work, some wait or are idle, a few have problems.
#[must_use]
pub fn crowd(count: usize) -> Snapshot {
    let one = |index: usize| {
        let id = format!("claude-{}-{:04x}", 4000 + index, index);
        match index % 10 {
            0 => agent_that(
                &id,
                vec![said_more(Source::OwnRecord, Claim::Waiting, "waiting", "permission prompt", MINUTE)],
            ),
            1 => agent_that(&id, vec![said(Source::OwnRecord, Claim::Idle, "idle", 2 * MINUTE)]),
            2 => agent(&id),
            3 if index % 20 == 3 => {
                let mut agent = agent_that(&id, vec![said(Source::Hook, Claim::Working, "PreToolUse", 1000)]);
                agent.metrics.fullest_fds = Some(1012);
                agent
            }
            _ => agent_that(
                &id,
                vec![
                    said(Source::OwnRecord, Claim::Working, "busy", 3000),
                    said(Source::Transcript, Claim::Working, "open", 2000),
                ],
            ),
        }
    };
    snapshot((0..count).map(one).collect())
}
