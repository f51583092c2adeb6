//! What judging costs in the sandbox (fresh store and instance, rows built, result checked), against the same rules called
//! natively, and what making and writing the report costs: medians and ratios from one run in which all take turns.
//!
//! `cargo bench --bench judging [ROUNDS]`

// The figures are this program's output.
#![allow(clippy::print_stdout)]

use headcount::clock::SystemClock;
use headcount::judge::{Judge, Options, Place};
use headcount::observe::facts::{
    Agent, Claim, Evidence, MemoryMethod, Metrics, ProcessState, Session, Snapshot, Source, SourceState, Trend,
};
use headcount::report::{Rendered, View, report};
use headcount_policy as native;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(200);
    let judge = Judge::new(vec![Place::builtin()], &Options::default(), Arc::new(SystemClock::default()))?;
    println!("agents   judged in the sandbox   natively    ratio   report made and written");
    for agents in [1, 10, 100, 1000] {
        let natives = native::cases::crowd(agents);
        let facts = snapshot(&natives);
        let view = View { limit: agents, ..View::default() };
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..rounds {
            times[0].push(time(|| judge.judge(&facts)));
            times[1].push(time(|| native::judge(&natives, None, "")));
            let judgement = judge.judge(&facts);
            times[2].push(time(|| Rendered::new(&report(&facts, &judgement, &view, 0))));
        }
        let [sandbox, natively, reporting] = times.map(median);
        let ratio = sandbox.as_secs_f64() / natively.as_secs_f64();
        println!("{agents:>6} {sandbox:>23.1?} {natively:>10.1?} {ratio:>8.1} {reporting:>25.1?}");
    }
    Ok(())
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The guest's facts as the host has them.
fn snapshot(of: &native::Snapshot) -> Snapshot {
    let s = &of.session;
    Snapshot {
        now_ms: of.now_ms,
        cores: of.cores,
        session: Session {
            id: s.id.clone(),
            name: s.name.clone(),
            root_path: s.root_path.clone(),
            owner: s.owner.clone(),
            created_at_ms: s.created_at_ms,
        },
        agents: of.agents.iter().map(agent).collect(),
        instance: None,
        sources: of
            .sources
            .iter()
            .map(|s| SourceState { name: s.name.clone(), error: s.error.clone(), ..SourceState::default() })
            .collect(),
    }
}

/// Of states, sources and claims only those that a crowd has.
fn agent(a: &native::Agent) -> Agent {
    let m = &a.metrics;
    Agent {
        id: a.id.clone(),
        name: a.name.clone(),
        specialization: a.specialization.clone(),
        kind: a.kind.clone(),
        created_at_ms: a.created_at_ms,
        process_id: Some(1),
        terminal: None,
        process: ProcessState::Sleeping,
        exit_code: a.exit_code,
        metrics: Metrics {
            cpu_percent: m.cpu_percent,
            memory_bytes: m.memory_bytes,
            memory_method: MemoryMethod::Pss,
            threads: m.threads,
            processes: m.processes,
            zombies: m.zombies,
            file_descriptors: m.file_descriptors,
            fullest_fds: m.fullest_fds,
            fd_limit: m.fd_limit,
            read_bytes: m.read_bytes,
            written_bytes: m.written_bytes,
        },
        counters: None,
        trend: a.trend.map(|t| Trend {
            window_ms: t.window_ms,
            cpu_percent_mean: t.cpu_percent_mean,
            memory_bytes_per_minute: t.memory_bytes_per_minute,
            io_bytes: t.io_bytes,
            quiet_ms: t.quiet_ms,
        }),
        usage: None,
        evidence: a.evidence.iter().map(evidence).collect(),
        unmeasured: vec![],
        origin: Default::default(),
        identity: None,
        via: vec![],
        run: None,
    }
}

fn evidence(e: &native::Evidence) -> Evidence {
    Evidence {
        source: match e.source {
            native::Source::Hook => Source::Hook,
            native::Source::Transcript => Source::Transcript,
            _ => Source::OwnRecord,
        },
        claim: match e.claim {
            native::Claim::Waiting => Claim::Waiting,
            native::Claim::Idle => Claim::Idle,
            _ => Claim::Working,
        },
        word: e.word.clone(),
        detail: e.detail.clone(),
        at_ms: e.at_ms,
    }
}
