//! What there is to tell: each part's figures, by their names.

use super::super::super::app::App;
use super::text::{Family, Figure, Kind, Labels};
use crate::figures::{Count, Durations};
use crate::judge::Link;
use crate::monitor::Sight;
use crate::report::{Numbers, word};
use crate::store::log::LogStats;
use crate::upstream::{Figures, Reach};
use crate::{auth, clients};
use Kind::{Counter, Gauge, Histogram, Info};
use prometheus_client::registry::Unit;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The revision of the protocol from which on there are no sessions.
const MODERN: &str = "2026-07-28";

/// Everything.
pub(super) fn all(app: &App) -> Vec<Family> {
    let version = labels([("version", env!("CARGO_PKG_VERSION"))]);
    let build = Family::new(Info, "headcount_build", "Which headcount this is").each([(version, 1u64)]);
    let (looked, asked) =
        ([watching(app), policies(app), upstreams(app)], [queries(app), connected(app), traffic(app)]);
    let parts = looked.into_iter().chain(asked).chain([losses(app), own_cost(app)]);
    [build].into_iter().chain(parts.flatten()).collect()
}

fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

/// Looking at the machine, and what was seen.
fn watching(app: &App) -> Vec<Family> {
    let (service, ticks) = (&app.service, app.service.ticks());
    let tick = service.latest(&Sight::All);
    let age = tick.as_ref().map(|tick| Figure::from(service.age(tick).as_secs_f64()));
    let seen = tick.iter().flat_map(|tick| &tick.sessions).map(|seen| (&seen.facts, &seen.judgement));
    let numbers = Numbers::of(seen);
    let failing = tick.as_ref().map(|tick| tick.sources.iter().filter(|source| source.error.is_some()).count());
    let phases = [("observe", &ticks.observe), ("judge", &ticks.judge)];
    let phases = phases.map(|(phase, took)| (labels([("phase", phase)]), took.spread()));
    let agents = numbers.agents.iter().map(|((kind, status, activity), n)| {
        (labels([("kind", kind), ("status", status), ("activity", activity)]), *n)
    });
    let sessions = numbers.sessions.iter().map(|(health, n)| (labels([("health", health)]), *n));
    vec![
        Family::new(Gauge, "headcount_watcher_alive", "Whether the machine is still looked at")
            .one(Figure::from(service.ended().is_none())),
        Family::new(
            Gauge,
            "headcount_tick_age",
            "How old the latest look at the machine is; while nobody asks, looks are rare",
        )
        .in_unit(Unit::Seconds)
        .one(age),
        Family::new(Histogram, "headcount_tick_duration", "How long looks at the machine took, by phase")
            .in_unit(Unit::Seconds)
            .each(phases),
        Family::new(Gauge, "headcount_processes", "Processes on the machine at the latest look")
            .one(tick.as_ref().map(|_| ticks.processes().into())),
        Family::new(
            Gauge,
            "headcount_sources_failing",
            "Where agents come from and that cannot be read: processes, rosters",
        )
        .one(failing.map(Figure::from)),
        Family::new(Gauge, "headcount_sessions", "Sessions by health").each(sessions),
        Family::new(Gauge, "headcount_agents", "Agents by kind, status, and what they do").each(agents),
    ]
}

/// How the policies fare. `place` is where one stands in the chain, which tells apart those of one name.
fn policies(app: &App) -> Vec<Family> {
    let chain = app.service.chain();
    let each = || chain.iter().enumerate().map(|(n, link)| (link, place(n, link)));
    let about = each().map(|(link, mut labels)| {
        let told = link.state().evaluation(&link.place);
        labels.extend([
            ("version", crate::report::clean(&told.version)),
            ("digest", told.digest),
            ("mode", word(&told.mode)),
            ("on_error", word(&told.on_error)),
        ]);
        (labels, 1u64)
    });
    let outcomes = each().flat_map(|(link, labels)| {
        let of_each = link.record.outcomes.read(Count::get).into_iter();
        of_each.map(move |(outcome, n)| ([&labels[..], &[("outcome", outcome.to_owned())]].concat(), n))
    });
    let stale = each().map(|(link, labels)| (labels, link.state().stale));
    let since = stale.clone().filter_map(|(labels, stale)| Some((labels, stale?.since_ms as f64 / 1000.0)));
    vec![
        Family::new(Info, "headcount_policy", "The policies of the chain, and what is in use of each").each(about),
        Family::new(Gauge, "headcount_policy_in_use", "Whether the policy is loaded")
            .each(each().map(|(link, labels)| (labels, link.state().policy.is_ok()))),
        Family::new(
            Gauge,
            "headcount_policy_stale",
            "Whether a newer file of the policy is refused, and the last good one works on",
        )
        .each(stale.map(|(labels, stale)| (labels, stale.is_some()))),
        Family::new(Gauge, "headcount_policy_stale_since_timestamp", "Since when, Unix time")
            .in_unit(Unit::Seconds)
            .each(since),
        Family::new(Counter, "headcount_policy_evaluations", "Judgements, by what came of them").each(outcomes),
        Family::new(Histogram, "headcount_policy_duration", "How long the policy took to judge a session")
            .in_unit(Unit::Seconds)
            .each(each().map(|(link, labels)| (labels, link.record.took.spread()))),
        Family::new(
            Gauge,
            "headcount_policy_memory",
            "The memory that the policy had at the end of its latest judgement",
        )
        .in_unit(Unit::Bytes)
        .each(each().map(|(link, labels)| (labels, link.record.memory.load(Relaxed)))),
    ]
}

/// The sessions that are kept with upstream servers, by the names that the configuration has for these.
fn upstreams(app: &App) -> Vec<Family> {
    let Some(pool) = app.service.upstreams() else { return Vec::new() };
    let all: Vec<_> = pool.figures().collect();
    let each = |figure: fn(&Figures<'_>) -> Option<Figure>| {
        let figures = all.iter().filter_map(|of| Some((labels([("upstream", of.name)]), figure(of)?)));
        figures.collect::<Vec<_>>()
    };
    let states = all.iter().flat_map(|of| {
        Reach::ALL.map(|state| (labels([("upstream", of.name), ("state", &word(&state))]), of.status.reach == state))
    });
    vec![
        Family::new(
            Gauge,
            "headcount_upstream_state",
            "Whether the upstream server can be used: 1 for the state it is in",
        )
        .each(states),
        Family::new(Counter, "headcount_upstream_connections", "Connections that were made with the upstream server")
            .each(each(|of| Some(of.status.connections.into()))),
        Family::new(Counter, "headcount_upstream_calls", "Calls of the upstream server")
            .each(each(|of| Some(of.status.calls.into()))),
        Family::new(Counter, "headcount_upstream_failures", "Calls of the upstream server that came to nothing")
            .each(each(|of| Some(of.status.failures.into()))),
        Family::new(
            Gauge,
            "headcount_upstream_agents_age",
            "How old the last answer of the upstream server about agents is",
        )
        .in_unit(Unit::Seconds)
        .each(each(|of| Some(of.age?.as_secs_f64().into()))),
    ]
}

/// Where a policy stands, and the name of its file: what it calls itself may change with each file.
fn place(n: usize, link: &Link) -> Labels {
    let file = link.place.file.as_deref().and_then(|file| file.file_stem()).map(|stem| stem.to_string_lossy());
    let name = file.map_or_else(|| link.place.name.clone(), |stem| crate::report::clean(&stem));
    vec![("place", n.to_string()), ("policy", name)]
}

/// What was asked, and how long answers took.
fn queries(app: &App) -> Vec<Family> {
    let queries = app.service.queries();
    let all = queries.all.read(Count::get).into_iter().map(|((query, transport, outcome), n)| {
        (labels([("query", query), ("transport", &word(&transport)), ("outcome", &word(&outcome))]), n)
    });
    let status = queries.status.read(Durations::spread).into_iter().map(|((transport, outcome), spread)| {
        (labels([("transport", &word(&transport)), ("outcome", &word(&outcome))]), spread)
    });
    let parts = queries.parts.read(Durations::spread);
    let parts = parts.into_iter().map(|(phase, spread)| (labels([("phase", phase)]), spread));
    vec![
        Family::new(Counter, "headcount_queries", "Queries, by what was called, the way it came, and what came of it").each(all),
        Family::new(Histogram, "headcount_status_duration", "How long get_session_status took, over MCP or REST")
            .in_unit(Unit::Seconds)
            .each(status),
        Family::new(
            Histogram,
            "headcount_status_phase_duration",
            "How long the phases of answered get_session_status took; those of the look that several may share count for each",
        )
        .in_unit(Unit::Seconds)
        .each(parts),
    ]
}

/// How many clients there are of each transport and era, also where there is none.
fn by_era(clients: Vec<(String, String, u64)>) -> BTreeMap<(String, &'static str), u64> {
    let each = ["stdio", "http"].into_iter().flat_map(|way| ["legacy", "modern"].map(|era| ((way.to_owned(), era), 0)));
    let mut by_era: BTreeMap<_, u64> = each.collect();
    for (transport, protocol, n) in clients {
        let era = if protocol.as_str() < MODERN { "legacy" } else { "modern" };
        *by_era.entry((transport, era)).or_default() += n;
    }
    by_era
}

/// Who is connected. What the database does not tell now is left out.
fn connected(app: &App) -> Vec<Family> {
    let setup = app.service.setup();
    let clients = clients::connected(&setup.store, &setup.dirs.state, &*setup.clock, &setup.user);
    let clients = clients.inspect_err(|error| tracing::warn!("who is connected cannot be told: {error}"));
    let by_era = clients.map(by_era);
    let grants = auth::list(&setup.store, &*setup.clock, &setup.user, false);
    let grants = grants.inspect_err(|error| tracing::warn!("how many grants there are cannot be told: {error}"));
    let open = app.endpoint.open();
    vec![
        Family::new(
            Gauge,
            "headcount_clients",
            "MCP clients connected to any server of this user, by transport and era of the protocol",
        )
        .each(
            by_era
                .into_iter()
                .flatten()
                .map(|((transport, era), n)| (labels([("transport", &transport), ("era", era)]), n)),
        ),
        Family::new(Gauge, "headcount_grants", "Grants of this user that are alive")
            .one(grants.ok().map(|found| found.grants.len().into())),
        Family::new(
            Gauge,
            "headcount_grants_in_use",
            "Grants under which somebody has come to this server and that are alive",
        )
        .one(Figure::from(open.guests)),
        Family::new(Gauge, "headcount_mcp_sessions", "Sessions over HTTP that are open")
            .one(Figure::from(open.sessions)),
        Family::new(Gauge, "headcount_mcp_streams", "Streams of notifications that are open")
            .one(Figure::from(open.streams)),
        Family::new(Gauge, "headcount_http_connections", "Connections that are open")
            .one(Figure::from(app.connections.open())),
    ]
}

/// What has come in over HTTP.
fn traffic(app: &App) -> Vec<Family> {
    let requests = app.traffic.requests.read(Count::get).into_iter().map(|((route, method, code), n)| {
        (labels([("route", route), ("method", method), ("code", &code.to_string())]), n)
    });
    let refusals = app.traffic.refusals.read(Count::get);
    let refusals = refusals.into_iter().map(|(reason, n)| (labels([("reason", reason)]), n));
    vec![
        Family::new(Counter, "headcount_http_requests", "Requests that were answered, by route, method and status")
            .each(requests),
        Family::new(Counter, "headcount_http_refusals", "Requests that were refused, by reason").each(refusals),
        Family::new(
            Counter,
            "headcount_http_connections_refused",
            "Connections that were closed at once, for there were too many",
        )
        .one(Figure::from(&app.connections.refused)),
    ]
}

/// What was lost on the way to a disk or a client.
fn losses(app: &App) -> Vec<Family> {
    let (service, ledger) = (&app.service, app.service.ledger());
    let (flow, losses) = (service.flow(), ledger.losses());
    let logs = [("audit", service.audited()), ("decisions", service.ticks().decisions())];
    let logs = logs.into_iter().flat_map(|(log, LogStats { written, dropped, failed, .. })| {
        let of_each = [("written", written), ("dropped", dropped), ("failed", failed)];
        of_each.map(|(result, n)| (labels([("log", log), ("result", result)]), n))
    });
    let updates = [("told", &flow.told), ("held_back", &flow.coalesced)];
    vec![
        Family::new(
            Counter,
            "headcount_log_lines",
            "Lines for the logs: written, dropped because too many waited, or refused by the disk",
        )
        .each(logs),
        Family::new(
            Counter,
            "headcount_ledger_refusals",
            "How often the disk has refused what clients do, which is late then",
        )
        .one(Figure::from(&losses.refused)),
        Family::new(
            Counter,
            "headcount_ledger_losses",
            "Clients of whom was given up what they have done, for the disk took nothing",
        )
        .one(Figure::from(&losses.given_up)),
        Family::new(
            Counter,
            "headcount_updates",
            "Changes of sessions for subscribers: told, or held back at a look to be told with a later one",
        )
        .each(updates.map(|(result, n)| (labels([("result", result)]), n))),
        Family::new(
            Counter,
            "headcount_answers_lost",
            "Prepared answers that were kept no more when they were to be sent",
        )
        .one(Figure::from(&flow.forgotten)),
        Family::new(Counter, "headcount_store_errors", "How often the database could not be used")
            .one(Figure::from(service.setup().store.failures())),
    ]
}

/// What this process costs, under the names that all programs have for it. Where that cannot be read, nothing is said.
#[cfg(target_os = "linux")]
fn own_cost(app: &App) -> Vec<Family> {
    let cost = crate::observe::processes::own_cost();
    let Ok(cost) = cost.inspect_err(|error| tracing::warn!("what this process costs cannot be read: {error}")) else {
        return Vec::new();
    };
    let started = || app.service.unix_ms() as f64 / 1000.0 - cost.age.as_secs_f64();
    let started = *app.started.get_or_init(started);
    vec![
        Family::new(Counter, "process_cpu", "CPU time of this process, user and system")
            .in_unit(Unit::Seconds)
            .one(Figure::from(cost.cpu.as_secs_f64())),
        Family::new(Gauge, "process_resident_memory", "Memory of this process that is in RAM")
            .in_unit(Unit::Bytes)
            .one(Figure::from(cost.resident_bytes)),
        Family::new(Gauge, "process_virtual_memory", "Address space of this process")
            .in_unit(Unit::Bytes)
            .one(Figure::from(cost.virtual_bytes)),
        Family::new(Gauge, "process_threads", "Threads of this process").one(Figure::from(cost.threads)),
        Family::new(Gauge, "process_open_fds", "Files that this process has open").one(Figure::from(cost.open_files)),
        Family::new(Gauge, "process_max_fds", "How many files this process may have open")
            .one(Figure::from(cost.most_files)),
        Family::new(Gauge, "process_start_time", "When this process has started, Unix time")
            .in_unit(Unit::Seconds)
            .one(Figure::from(started)),
    ]
}

#[cfg(not(target_os = "linux"))]
fn own_cost(_: &App) -> Vec<Family> {
    Vec::new()
}
