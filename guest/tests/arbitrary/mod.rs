//! Any facts whatever: sessions with arbitrary numbers, times and texts, of which anything may be missing.

use headcount_policy::cases::NOW;
use headcount_policy::{
    Agent, Claim, Evidence, Gap, MemoryMethod, Metrics, ProcessState, Session, Snapshot, Source, SourceState, Trend,
    Usage,
};
use proptest::collection::{SizeRange, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Times and amounts: near the limits of the rules, near now, and anything at all.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..2_000_000_u64,
        NOW - 2_000_000..NOW + 1000,
        (0..40_u64).prop_map(|gib| gib << 29),
        any::<u64>(),
        Just(u64::MAX),
        Just(0)
    ]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![0..200_u32, 900..5000_u32, any::<u32>(), Just(u32::MAX)]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..200.0,
        -1e9..1e9,
        any::<f64>(),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MAX)
    ]
}

/// Words that records use, and text of any kind and length.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["busy", "permission prompt", ""]).prop_map(str::to_owned),
        any::<String>(),
        any::<char>().prop_map(|char| char.to_string().repeat(3000))
    ]
}

fn metrics() -> BoxedStrategy<Metrics> {
    let counts = (of(count()), of(count()), of(count()), of(count()), of(count()), of(count()));
    let method = select(vec![MemoryMethod::Pss, MemoryMethod::Estimate, MemoryMethod::Resident]);
    let amounts = (of(number()), of(number()), of(number()));
    (of(float()), method, amounts, counts)
        .prop_map(|(cpu_percent, memory_method, amounts, counts)| Metrics {
            cpu_percent,
            memory_bytes: amounts.0,
            memory_method,
            threads: counts.0,
            processes: counts.1,
            zombies: counts.2,
            file_descriptors: counts.3,
            fullest_fds: counts.4,
            fd_limit: counts.5,
            read_bytes: amounts.1,
            written_bytes: amounts.2,
        })
        .boxed()
}

fn trend() -> BoxedStrategy<Trend> {
    (number(), of(float()), of(float()), of(number()), number())
        .prop_map(|(window_ms, cpu_percent_mean, memory_bytes_per_minute, io_bytes, quiet_ms)| Trend {
            window_ms,
            cpu_percent_mean,
            memory_bytes_per_minute,
            io_bytes,
            quiet_ms,
        })
        .boxed()
}

fn usage() -> BoxedStrategy<Usage> {
    let tokens = (of(number()), of(number()), of(number()), of(number()));
    (of(text()), tokens, of(float()), of(text()), (of(count()), of(count())))
        .prop_map(|(model, tokens, context_used_percent, current_tool, (subagents, mcp_servers))| Usage {
            model,
            input_tokens: tokens.0,
            output_tokens: tokens.1,
            cache_read_tokens: tokens.2,
            cache_write_tokens: tokens.3,
            context_used_percent,
            current_tool,
            subagents,
            mcp_servers,
        })
        .boxed()
}

/// Anything that may be said of an agent.
pub fn evidence() -> BoxedStrategy<Evidence> {
    use Claim::{Failed, Finished, Idle, Unknown, Waiting, Working};
    let source = select(vec![Source::OwnRecord, Source::Hook, Source::Transcript, Source::Process, Source::Upstream]);
    let claim = select(vec![Working, Waiting, Idle, Finished, Failed, Unknown]);
    (source, claim, text(), of(text()), number())
        .prop_map(|(source, claim, word, detail, at_ms)| Evidence { source, claim, word, detail, at_ms })
        .boxed()
}

/// An agent of which anything may be known or unknown.
pub fn agent() -> BoxedStrategy<Agent> {
    use ProcessState::{Gone, NotLocal, Running, Sleeping, Stopped, Uninterruptible, Unreadable, Zombie};
    let process =
        select(vec![Running, Sleeping, Sleeping, Stopped, Uninterruptible, Zombie, Gone, Unreadable, NotLocal]);
    let field = select(vec!["cpu-percent", "memory-bytes", "threads", "fullest-fds", "zombies", "else"]);
    let gaps = vec((field, text()).prop_map(|(field, reason)| Gap { field: field.to_owned(), reason }), 0..3);
    let names = (text(), text(), of(text()), text(), of(number()));
    let exit_code = of(prop_oneof![-20..20, any::<i32>()]);
    let seen = (process, exit_code, metrics(), of(trend()), vec(evidence(), 0..5), gaps, of(usage()));
    (names, seen)
        .prop_map(|(names, seen)| Agent {
            id: names.0,
            name: names.1,
            specialization: names.2,
            kind: names.3,
            created_at_ms: names.4,
            process: seen.0,
            exit_code: seen.1,
            metrics: seen.2,
            trend: seen.3,
            usage: seen.6,
            evidence: seen.4,
            unmeasured: seen.5,
        })
        .boxed()
}

/// A session of so many agents.
pub fn facts(agents: impl Into<SizeRange>) -> impl Strategy<Value = Snapshot> {
    let now = prop_oneof![9 => Just(NOW), 1 => number()];
    let sources = vec((text(), of(text())).prop_map(|(name, error)| SourceState { name, error }), 0..5);
    (vec(agent(), agents), now, count(), session(), sources)
        .prop_map(|(agents, now_ms, cores, session, sources)| Snapshot { now_ms, cores, session, agents, sources })
}

fn session() -> impl Strategy<Value = Session> {
    (text(), text(), text(), text(), of(number())).prop_map(|(id, name, root_path, owner, created_at_ms)| Session {
        id,
        name,
        root_path,
        owner,
        created_at_ms,
    })
}
