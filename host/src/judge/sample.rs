//! A made-up session, the same whenever it is made: what a policy is tried on where no snapshot is given.

use crate::observe::facts::{
    Agent, Claim, Evidence, Gap, MemoryMethod, Metrics, ProcessState, Session, Snapshot, Source, SourceState, Trend,
    Usage,
};

/// The moment of the sample, Unix milliseconds.
const NOW: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

/// Agents of the session that a policy is tried on before it is trusted with real ones: every kind of them twice.
pub const TRIAL: usize = 20;

/// A session of so many agents, as a busy machine has them: most are at work, some wait or are idle, a few have problems.
pub fn session(agents: usize) -> Snapshot {
    Snapshot {
        now_ms: NOW,
        cores: 8,
        session: Session {
            id: "sample".into(),
            name: "sample".into(),
            root_path: "/srv/sample".into(),
            owner: "local".into(),
            created_at_ms: Some(NOW - 60 * MINUTE),
        },
        agents: (0..agents).map(agent).collect(),
        sources: vec![SourceState { name: "processes".into(), error: None, ..SourceState::default() }],
        instance: None,
    }
}

/// The nth agent. Each tenth is of the same kind.
fn agent(n: usize) -> Agent {
    let agent = working(n);
    match n % 10 {
        0 => Agent { evidence: vec![said(Claim::Waiting, "waiting", Some("permission prompt"), 14 * MINUTE)], ..agent },
        1 => Agent { evidence: vec![said(Claim::Idle, "idle", None, 2 * MINUTE)], ..agent },
        2 => Agent { evidence: vec![], usage: None, ..agent },
        3 => {
            let metrics = Metrics { fullest_fds: Some(1012), file_descriptors: Some(1100), ..agent.metrics.clone() };
            Agent { metrics, ..agent }
        }
        4 => Agent { process: ProcessState::Stopped, trend: Some(trend(10 * MINUTE)), ..agent },
        5 => Agent { metrics: Metrics { memory_bytes: Some(13 << 30), ..agent.metrics.clone() }, ..agent },
        6 => Agent {
            process: ProcessState::Gone,
            exit_code: Some(1),
            process_id: None,
            metrics: Metrics::default(),
            trend: None,
            ..agent
        },
        7 => Agent {
            metrics: Metrics { file_descriptors: None, fullest_fds: None, fd_limit: None, ..agent.metrics.clone() },
            unmeasured: vec![Gap::new("file-descriptors", "may not be read")],
            ..agent
        },
        _ => agent,
    }
}

fn working(n: usize) -> Agent {
    let pid = 4000 + u32::try_from(n).unwrap_or_default();
    Agent {
        id: format!("claude-{pid}-{n:04x}"),
        name: format!("claude-{pid}"),
        specialization: None,
        kind: "claude".into(),
        created_at_ms: Some(NOW - 60 * MINUTE),
        process_id: Some(pid),
        terminal: None,
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
        counters: None,
        trend: Some(trend(0)),
        usage: Some(Usage {
            model: Some("opus".into()),
            input_tokens: Some(200_000),
            output_tokens: Some(40_000),
            context_used_percent: Some(42.0),
            ..Usage::default()
        }),
        evidence: vec![said(Claim::Working, "busy", None, 3_000)],
        unmeasured: vec![],
        origin: Default::default(),
        identity: None,
        via: vec![],
        run: None,
    }
}

/// Ten minutes watched, quiet for the last `quiet_ms`.
fn trend(quiet_ms: u64) -> Trend {
    Trend {
        window_ms: 10 * MINUTE,
        cpu_percent_mean: Some(10.0),
        memory_bytes_per_minute: Some(0.0),
        io_bytes: Some(1 << 20),
        quiet_ms,
    }
}

fn said(claim: Claim, word: &str, detail: Option<&str>, age_ms: u64) -> Evidence {
    Evidence {
        source: Source::OwnRecord,
        claim,
        word: word.into(),
        detail: detail.map(str::to_owned),
        at_ms: NOW - age_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::session;

    #[test]
    fn a_sample_is_always_the_same_and_every_agent_another() {
        assert_eq!(session(25), session(25));
        let ids: std::collections::HashSet<String> = session(1000).agents.into_iter().map(|agent| agent.id).collect();
        assert_eq!(ids.len(), 1000);
    }
}
