//! `/metrics`, read as strictly as the formats are written down.

use crate::http_client::{Response, Server, token};
use crate::http_rest::strangers;
use crate::mcp_client::LEGACY;
use crate::world::{World, stand_in, until};
use headcount::demo::stand_in::Behaviour;
use headcount_tests::MISBEHAVING_POLICY;
use regex::Regex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

type Labels = BTreeMap<String, String>;

/// One scrape.
#[derive(Debug, Default)]
struct Scrape {
    /// The kind of each family, by the name that its figures begin with.
    families: BTreeMap<String, String>,
    figures: BTreeMap<(String, Labels), f64>,
}

impl Scrape {
    /// Reads a text, whichever of the two formats it is in.
    fn parse(text: &str) -> Self {
        let open = text.contains("\n# EOF\n");
        let name = Regex::new("^[a-z][a-z0-9_]*$").unwrap();
        let mut scrape = Self::default();
        let (mut helped, mut family) = (String::new(), String::new());
        assert!(text.ends_with('\n') && (!open || text.ends_with("\n# EOF\n")), "it breaks off");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (of, says) = help.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                assert!(name.is_match(of) && says.len() > 5, "{line}");
                helped = of.to_owned();
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (of, kind) = kind.split_once(' ').unwrap();
                assert!(["counter", "gauge", "histogram", "info"].contains(&kind), "{line}");
                assert!(helped == of || open, "{line} without help");
                assert!(scrape.families.insert(of.to_owned(), kind.to_owned()).is_none(), "{of} stands twice");
                family = of.to_owned();
            } else if !line.starts_with("# UNIT ") && line != "# EOF" {
                let (of, labels, figure) = sample(line);
                let rest = of.strip_prefix(&family).unwrap_or_else(|| panic!("{line} is not in {family}"));
                let expected: &[&str] = match (scrape.families[&family].as_str(), open) {
                    ("counter", true) => &["_total"],
                    ("info", true) => &["_info"],
                    ("histogram", _) => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(expected.contains(&rest), "{line}");
                assert!(figure.is_finite(), "{line}");
                assert!(scrape.figures.insert((of, labels), figure).is_none(), "{line} stands twice");
            }
        }
        scrape.check_histograms();
        scrape
    }

    fn check_histograms(&self) {
        for family in self.families.iter().filter(|(_, kind)| *kind == "histogram").map(|(family, _)| family) {
            let mut spreads: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((_, labels), n) in self.figures.iter().filter(|((name, _), _)| *name == format!("{family}_bucket")) {
                let mut labels = labels.clone();
                let bound = labels.remove("le").unwrap().replace("+Inf", "inf").parse().unwrap();
                spreads.entry(labels).or_default().push((bound, *n));
            }
            for (labels, mut buckets) in spreads {
                buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{family} {labels:?}: {buckets:?}");
                let of = |end: &str| self.figures[&(format!("{family}{end}"), labels.clone())];
                assert_eq!(*buckets.last().unwrap(), (f64::INFINITY, of("_count")), "{family} {labels:?}");
                assert!(of("_sum") >= 0.0);
            }
        }
    }

    /// The sum of the figures with this name and these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_it = |found: &Labels| labels.iter().all(|(name, value)| found.get(*name).is_some_and(|v| v == value));
        self.figures.iter().filter(|((n, l), _)| n == name && is_it(l)).map(|(_, figure)| figure).sum()
    }

    fn has(&self, name: &str) -> bool {
        self.figures.keys().any(|(found, _)| found == name)
    }

    /// That nothing that only grows has shrunk since `before`, or gone.
    fn has_grown_since(&self, before: &Self) {
        let grows = |name: &str| ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end));
        for ((name, labels), was) in before.figures.iter().filter(|((name, _), _)| grows(name)) {
            let is = self.figures.get(&(name.clone(), labels.clone()));
            assert!(is.is_some_and(|is| is >= was), "{name} {labels:?}: {was}, then {is:?}");
        }
    }
}

/// One line: name, labels and figure.
fn sample(line: &str) -> (String, Labels, f64) {
    let whole = Regex::new(r#"^([a-z][a-z0-9_]*)(?:\{(.*)\})? ([^ ]+)$"#).unwrap();
    let label = Regex::new(r#"^([a-z][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)"#).unwrap();
    let parts = whole.captures(line).unwrap_or_else(|| panic!("no figure: {line}"));
    let mut rest = parts.get(2).map_or("", |labels| labels.as_str());
    let mut labels = Labels::new();
    while !rest.is_empty() {
        let one = label.captures(rest).unwrap_or_else(|| panic!("no label: {rest} in {line}"));
        assert!(labels.insert(one[1].to_owned(), one[2].to_owned()).is_none(), "{line}");
        rest = &rest[one[0].len()..];
    }
    (parts[1].to_owned(), labels, parts[3].parse().unwrap_or_else(|_| panic!("no number: {line}")))
}

fn read(answer: &Response) -> Scrape {
    assert_eq!(answer.status, 200, "{}", answer.text());
    Scrape::parse(&answer.text())
}

fn scrape(server: &Server, token: &str) -> Scrape {
    read(&server.connect(token).get("/metrics"))
}

const STATUS: &str = "GET /v1/sessions/{id}/status";

#[test]
fn what_is_counted_is_what_has_happened() {
    let world = World::new();
    let idle = [stand_in(Behaviour::Idle), stand_in(Behaviour::Idle)];
    let roster = world.roster("shop", &[("one", idle[0].pid()), ("two", idle[1].pid())]);
    let all = token(&world, "all", &["status:read", "metrics:read", "roster:write"]);
    let other = token(&world, "other", &["clients:read"]);
    let server = Server::start(&world, &[&roster]);
    let mut connection = server.connect(&all);
    for _ in 0..3 {
        assert_eq!(connection.get("/v1/sessions/shop/status").status, 200);
    }
    assert_eq!(connection.get("/v1/sessions/none/status").status, 404);
    assert_eq!(connection.get("/v1/sessions/shop/status?limit=0").status, 400);
    assert_eq!(connection.get("/nowhere").status, 404);
    let mut client = server.connect(&all);
    client.initialize(LEGACY[3]);
    client.structured("get_session_status", json!({"session_id": "shop"}));
    client.structured("list_sessions", json!({}));
    let (mut nobody, mut refused) = (server.connect("hct_x"), server.connect(&other));
    assert_eq!([nobody.get("/v1/grants").status, refused.get("/v1/grants").status], [401, 403]);
    assert_eq!(connection.request("GET", "/v1/grants", &[("host", "evil.example")], b"").status, 403);

    let first = scrape(&server, &all);
    let answered = |query: &str| {
        let of = |outcome| first.sum("headcount_queries_total", &[("query", query), ("outcome", outcome)]);
        of("ok") + of("partial")
    };
    assert_eq!((answered(STATUS), answered("get_session_status"), answered("list_sessions")), (3.0, 1.0, 1.0));
    for (name, labels, n) in [
        ("headcount_queries_total", &[("query", STATUS), ("outcome", "not_found")][..], 1.0),
        ("headcount_queries_total", &[("query", STATUS), ("outcome", "invalid")], 1.0),
        ("headcount_queries_total", &[], 7.0),
        ("headcount_status_duration_seconds_count", &[("transport", "http")], 6.0),
        ("headcount_status_phase_duration_seconds_count", &[("phase", "report")], 4.0),
        ("headcount_status_phase_duration_seconds_count", &[("phase", "judge")], 4.0),
        ("headcount_http_requests_total", &[("route", "/v1/sessions/{id}/status"), ("code", "200")], 3.0),
        ("headcount_http_requests_total", &[("route", "/v1/sessions/{id}/status"), ("code", "404")], 1.0),
        ("headcount_http_requests_total", &[("route", "none"), ("code", "404")], 1.0),
        ("headcount_http_requests_total", &[("route", "/mcp"), ("method", "POST"), ("code", "200")], 3.0),
        ("headcount_http_requests_total", &[("route", "/v1/grants")], 3.0),
        ("headcount_http_refusals_total", &[("reason", "invalid_token")], 1.0),
        ("headcount_http_refusals_total", &[("reason", "scope")], 1.0),
        ("headcount_http_refusals_total", &[("reason", "host")], 1.0),
        ("headcount_http_refusals_total", &[], 3.0),
        ("headcount_clients", &[("transport", "http"), ("era", "legacy")], 1.0),
        ("headcount_grants", &[], 2.0),
        ("headcount_mcp_sessions", &[], 1.0),
        ("headcount_mcp_streams", &[], 0.0),
        ("headcount_watcher_alive", &[], 1.0),
        ("headcount_sources_failing", &[], 0.0),
        ("headcount_policy_in_use", &[("place", "0"), ("policy", "built-in")], 1.0),
        ("headcount_policy_stale", &[], 0.0),
        ("headcount_store_errors_total", &[], 0.0),
        ("headcount_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0),
    ] {
        assert_eq!(first.sum(name, labels), n, "{name} {labels:?}: {first:#?}");
    }
    // There may be others on this machine.
    assert!(first.sum("headcount_sessions", &[("health", "HEALTHY")]) >= 1.0);
    assert!(first.sum("headcount_agents", &[("status", "ACTIVE")]) >= 2.0);
    let judged = first.sum("headcount_policy_evaluations_total", &[("outcome", "verdict")]);
    assert!(judged >= 1.0 && judged == first.sum("headcount_policy_evaluations_total", &[]));
    assert_eq!(judged, first.sum("headcount_policy_duration_seconds_count", &[]));
    assert!(first.sum("headcount_policy_memory_bytes", &[]) >= 65536.0);
    assert!(first.sum("headcount_processes", &[]) >= 2.0);
    let own = ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"];
    assert!(own.iter().all(|name| first.sum(name, &[]) > 0.0));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let age = now - first.sum("process_start_time_seconds", &[]);
    assert!((0.0..600.0).contains(&age), "{age}");

    // The same once more: what only grows has not shrunk, and what was scraped is counted.
    until("the audit log is written", || {
        scrape(&server, &all).sum("headcount_log_lines_total", &[("log", "audit"), ("result", "written")]) >= 11.0
    });
    let second = scrape(&server, &all);
    second.has_grown_since(&first);
    assert!(second.sum("headcount_http_requests_total", &[("route", "/metrics"), ("code", "200")]) >= 2.0);
    assert_eq!(
        client.request("DELETE", "/mcp", &[("mcp-session-id", &client.session.clone().unwrap())], b"").status,
        204
    );
    until("the client has gone", || {
        let scrape = scrape(&server, &all);
        // Each kind of client has a figure, also where there is none.
        assert_eq!(scrape.figures.keys().filter(|(name, _)| name == "headcount_clients").count(), 4);
        scrape.sum("headcount_clients", &[]) == 0.0 && scrape.sum("headcount_mcp_sessions", &[]) == 0.0
    });
}

#[test]
fn a_policy_is_known_by_what_came_of_it_and_by_the_file_that_it_works_with() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("one", idle.pid())]);
    let all = token(&world, "all", &["metrics:read"]);
    let bad = world.write("bad.wasm", MISBEHAVING_POLICY);
    let policy = "[[policy]]\npath = \"bad.wasm\"\nsettings = { do = \"panic\" }\n";
    let config = world.write("config.toml", policy.to_owned() + "[[policy]]\npath = \"text.wasm\"\n");
    world.write("text.wasm", "no policy");
    let server = Server::start_with(&world, &[&roster], &[], &[("HEADCOUNT_CONFIG", config.to_str().unwrap())]);
    let place = [("place", "1"), ("policy", "bad")];
    let once = |what: &str, is_so: &dyn Fn(&Scrape) -> bool| until(what, || is_so(&scrape(&server, &all)));
    once("it has broken", &|found| {
        found.sum("headcount_policy_evaluations_total", &[place[0], place[1], ("outcome", "trap")]) >= 1.0
    });
    let found = scrape(&server, &all);
    assert_eq!(found.sum("headcount_policy_evaluations_total", &[place[0], ("outcome", "verdict")]), 0.0);
    assert!(found.sum("headcount_policy_evaluations_total", &[("place", "2"), ("outcome", "not-a-policy")]) >= 1.0);
    let in_use = |place| found.sum("headcount_policy_in_use", &[("place", place)]);
    assert_eq!([in_use("0"), in_use("1"), in_use("2")], [1.0, 1.0, 0.0]);
    assert!(!found.has("headcount_policy_stale_since_timestamp_seconds"));
    fs::write(bad, "not wasm any more").unwrap();
    once("it is stale", &|found| {
        found.sum("headcount_policy_stale", &place) == 1.0
            && found.sum("headcount_policy_stale_since_timestamp_seconds", &place) > 1.7e9
    });
}

#[test]
fn only_the_servers_own_user_may_read_it_and_only_with_its_scope() {
    let world = World::new();
    let mine = token(&world, "mine", &["metrics:read"]);
    let without = token(&world, "without", &["status:read", "roster:write", "clients:read", "grants:revoke"]);
    let theirs = strangers(&world);
    let server = Server::start(&world, &[]);
    let status = |token: &str| server.connect(token).get("/metrics").status;
    assert_eq!([status(&mine), status(&without), status(&theirs), status("hct_x")], [200, 403, 403, 401]);
    assert_eq!(server.connect(&mine).get("/v1/sessions").status, 403, "it permits nothing else");
}

#[test]
fn both_formats_say_the_same_to_who_asks_for_them() {
    let world = World::new();
    let all = token(&world, "all", &["metrics:read"]);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&all);
    let mut asked = |accept: &str| connection.request("GET", "/metrics", &[("accept", accept)], b"");
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
    assert_eq!(asked("").status, 200, "who says nothing takes the plain one");
    let (plain, open) = (asked("*/*"), asked(prometheus));
    assert!(plain.header("content-type").starts_with("text/plain; version=0.0.4"), "{plain:#?}");
    assert!(open.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"), "{open:#?}");
    assert_eq!((plain.header("vary"), plain.header("cache-control")), ("accept", "no-store"));
    assert!(open.text().ends_with("\n# EOF\n") && !plain.text().contains("# EOF"));
    let names = |answer: &Response| read(answer).figures.into_keys().map(|(name, _)| name).collect::<BTreeSet<_>>();
    assert_eq!(names(&plain).symmetric_difference(&names(&open)).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(asked("text/html").status, 406);
}

/// Labels are words of the program's own, whatever agents and clients call themselves.
#[test]
fn nobody_makes_new_series_by_what_they_say() {
    let world = World::new();
    let roster = world.roster("marker-session", &[("marker-agent", std::process::id())]);
    let all = token(&world, "marker-token", &["status:read", "metrics:read", "roster:write"]);
    let server = Server::start(&world, &[&roster]);
    let mut connection = server.connect(&all);
    connection.get("/v1/sessions/marker-session/status");
    connection.structured("register_agent", json!({"session_id": "marker-other", "agent_name": "marker\"} # TYPE"}));
    let before = scrape(&server, &all);
    let meta = json!({"io.modelcontextprotocol/clientInfo": {"name": "marker-client", "version": "marker"}});
    for n in 0..20 {
        connection.get(&format!("/v1/sessions/marker-{n}/status"));
        connection.get(&format!("/marker-{n}"));
        connection.request(&format!("MARKER{n}"), "/v1/sessions", &[("user-agent", "marker")], b"");
        connection.ask("tools/call", json!({"name": format!("marker-{n}"), "arguments": {}, "_meta": meta}));
        connection.ask(&format!("marker/{n}"), json!({}));
    }
    let answer = server.connect(&all).get("/metrics");
    assert!(!answer.text().to_lowercase().contains("marker"), "{}", answer.text());
    let after = read(&answer);
    assert!(after.figures.len() < before.figures.len() + 40, "{} then {}", before.figures.len(), after.figures.len());
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (label, value) in after.figures.keys().flat_map(|(_, labels)| labels) {
        values.entry(label).or_default().insert(value);
    }
    let closed: BTreeSet<&str> = [
        "le",
        "phase",
        "health",
        "kind",
        "status",
        "activity",
        "place",
        "policy",
        "version",
        "digest",
        "mode",
        "on_error",
        "outcome",
        "query",
        "transport",
        "era",
        "route",
        "method",
        "code",
        "reason",
        "log",
        "result",
    ]
    .into();
    assert_eq!(values.keys().copied().filter(|label| !closed.contains(label)).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(values["method"].contains("other") && values["route"].contains("none"), "{values:#?}");
}

#[test]
fn it_can_be_read_while_much_is_going_on_and_nothing_is_lost() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let all = token(&world, "all", &["status:read", "metrics:read"]);
    let server = Server::start(&world, &[&roster]);
    let (threads, each) = (4, 100);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut connection = server.connect(&all);
                (0..each).for_each(|_| assert_eq!(connection.get("/v1/sessions/shop/status").status, 200));
            });
        }
        let mut last = scrape(&server, &all);
        for _ in 0..20 {
            let next = scrape(&server, &all);
            next.has_grown_since(&last);
            last = next;
        }
    });
    let found = scrape(&server, &all);
    let wanted = f64::from(threads * each);
    assert_eq!(found.sum("headcount_queries_total", &[("query", STATUS)]), wanted);
    assert_eq!(found.sum("headcount_status_duration_seconds_count", &[]), wanted);
    assert_eq!(found.sum("headcount_http_requests_total", &[("route", "/v1/sessions/{id}/status")]), wanted);
}
