//! What authors of policies work with: `policy check`, `run`, `test` and `bench`, and snapshots.

use crate::world::{NO_PID, Ran, World, finish, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount_tests::{BUDGET_POLICY, LEAK_POLICY, MISBEHAVING_POLICY, NIGHT_WATCH_POLICY};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// A world with the misbehaving policy in `bad.wasm`.
pub fn world() -> World {
    let world = World::new();
    world.write("bad.wasm", MISBEHAVING_POLICY);
    world
}

/// The executable with a deadline that a busy machine keeps.
fn policy(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(&[&["policy"], args].concat());
    command.env("HEADCOUNT_LIMITS_DEADLINE", "10s").env("HEADCOUNT_LIMITS_LOAD", "30s");
    command
}

pub fn run(world: &World, args: &[&str]) -> Ran {
    finish(policy(world, args))
}

pub fn wish(what: &str) -> String {
    json!({ "do": what }).to_string()
}

/// An agent that sleeps and is well.
pub fn agent(id: &str) -> Value {
    json!({
        "id": id, "name": id, "kind": "claude", "created_at_ms": 1_799_996_400_000_u64, "process": "sleeping",
        "metrics": {
            "cpu_percent": 12.5, "memory_bytes": 300_000_000, "memory_method": "pss", "threads": 20, "processes": 2,
            "zombies": 0, "file_descriptors": 60, "fullest_fds": 40, "fd_limit": 1024,
        },
        "trend": { "window_ms": 600_000, "cpu_percent_mean": 10.0, "quiet_ms": 0 },
        "evidence": [{ "source": "own_record", "claim": "working", "word": "busy", "at_ms": 1_799_999_995_000_u64 }],
    })
}

pub fn snapshot(agents: &[Value]) -> Value {
    json!({
        "schema": "headcount.snapshot/1",
        "facts": {
            "now_ms": 1_800_000_000_000_u64,
            "cores": 8,
            "session": { "id": "shop", "name": "shop", "root_path": "/srv/shop", "owner": "ada" },
            "agents": agents,
        },
    })
}

/// Three agents: one is well, one uses too much memory, one has failed.
fn troubled() -> Value {
    let mut large = agent("claude-2");
    large["metrics"]["memory_bytes"] = 13_958_643_712_u64.into();
    let mut gone = agent("claude-3");
    gone["process"] = "gone".into();
    gone["exit_code"] = 1.into();
    gone["metrics"] = json!({});
    snapshot(&[agent("claude-1"), large, gone])
}

pub fn write(world: &World, name: &str, json: &Value) -> String {
    path(&world.write(name, json.to_string()))
}

pub fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_status_records_is_judged_again_as_it_was() {
    let world = world();
    let idle = stand_in(Behaviour::Idle);
    let agents = [("it\u{202e}", idle.pid()), ("gone", NO_PID)];
    let agents = agents.map(|(name, pid)| format!("[[session.agent]]\nname = \"{name}\"\npid = {pid}\n"));
    let roster = path(&world.write("r.toml", format!("[[session]]\nid = \"shop\"\n{}", agents.concat())));
    let status = world.run(&["status", "shop", "--json", "--roster", &roster, "--record", "s.json"]);
    let file = world.path("s.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains("stand-in") && !text.contains('\u{202e}'),
        "neither command lines nor what they hide: {text}"
    );
    let ran = run(&world, &["run", "builtin", "--snapshot", "s.json", "--json"]);
    let (report, verdict) = (status.json(), ran.json());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for same in ["session_health", "session_score", "session_checks", "attention"] {
        assert_eq!(verdict[same], report[same], "{same}");
    }
    let again = run(&world, &["run", "builtin", "--snapshot", "s.json", "--json"]);
    assert_eq!(ran.stdout, again.stdout);
    let live = run(&world, &["run", "builtin", "--live", "shop", "--roster", &roster, "--json"]);
    assert_eq!(live.json()["session_health"], report["session_health"]);
}

#[test]
fn one_session_is_recorded_and_several_are_named() {
    let world = world();
    let roster = path(&world.write("r.toml", "[[session]]\nid = \"one\"\n[[session]]\nid = \"two\"\n"));
    let ran = world.run(&["status", "--roster", &roster, "--record", "s.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("one") && ran.stderr.contains("two"), "{}", ran.stderr);
    assert!(!world.path("s.json").exists());
    let ran = world.run(&["status", "one", "--roster", &roster, "--record", "nowhere/s.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("nowhere/s.json cannot be written"), "{}", ran.stderr);
}

#[test]
fn what_is_no_snapshot_is_refused_in_a_sentence() {
    let world = world();
    let mut wrong = troubled();
    wrong["facts"]["agents"][0]["metrics"]["memory_byte"] = 1.into();
    let mut doubled = troubled();
    doubled["facts"]["agents"][1]["id"] = "claude-1".into();
    world.write("deep.json", "[".repeat(1 << 20));
    nix::unistd::mkfifo(&world.path("pipe.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::File::create(world.path("huge.json")).unwrap().set_len(65 << 20).unwrap();
    write(&world, "wrong.json", &wrong);
    write(&world, "doubled.json", &doubled);
    for (file, said) in [
        ("wrong.json", "facts.agents[0].metrics.memory_byte: unknown key `memory_byte`; did you mean `memory_bytes`?"),
        ("doubled.json", "\"claude-1\" stands there twice"),
        ("deep.json", "line 1"),
        ("pipe.json", "is not a regular file"),
        (".", "snapshot.json: No such file"),
        ("huge.json", "is larger than 64 MiB"),
        ("nowhere.json", "No such file"),
    ] {
        let ran = run(&world, &["run", "builtin", "--snapshot", file]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{file}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{file}: {}", ran.stderr);
    }
}

#[test]
fn a_policy_that_works_passes_every_step() {
    let world = world();
    for (policy, steps) in [("builtin", 10), ("bad.wasm", 11)] {
        let ran = run(&world, &["check", policy, "--json"]);
        let checked = ran.json();
        let findings = checked["findings"].as_array().unwrap();
        assert_eq!((ran.code, &checked["ok"], findings.len()), (Some(0), &true.into(), steps), "{checked:#}");
        assert_eq!(checked["limits"]["deadline"], "10s");
    }
    let text = run(&world, &["check", "bad.wasm", "--settings", &wish("decline")]);
    assert_eq!(text.code, Some(1), "it declines after another policy too: {text:?}");
    assert!(text.stdout.contains("declines without a policy before it: not today"), "{text:?}");
    assert!(text.stdout.contains("limits: deadline 10s, load 30s, memory 48MiB, result 32MiB"), "{text:?}");
}

#[test]
fn a_policy_that_does_not_work_is_told_at_which_step() {
    let world = world();
    world.write("text.wasm", "not wasm");
    for (policy, settings, step, said) in [
        ("nowhere.wasm", "{}", "file", "cannot be read"),
        ("text.wasm", "{}", "component", "wanted a WebAssembly component"),
        ("bad.wasm", &*wish("refuse-settings"), "settings", "/do: not this"),
        ("builtin", r#"{"stall_afer":"1m"}"#, "settings", "stall_after"),
        ("bad.wasm", &*wish("panic"), "judgement", "it panicked"),
    ] {
        let ran = run(&world, &["check", policy, "--settings", settings, "--json"]);
        let checked = ran.json();
        assert_eq!((ran.code, &checked["ok"]), (Some(1), &false.into()), "{checked:#}");
        let findings = checked["findings"].as_array().unwrap();
        let failed = findings.iter().position(|finding| finding["ok"] == false).unwrap();
        assert_eq!(findings[failed]["step"], step, "{checked:#}");
        assert!(findings[failed]["detail"].as_str().unwrap().contains(said), "{checked:#}");
        let not_tried = step != "judgement";
        assert!(findings[failed + 1..].iter().all(|later| later["ok"].is_null() == not_tried), "{checked:#}");
    }
}

#[test]
fn settings_are_an_object_or_a_file_that_holds_one() {
    let world = world();
    world.write("settings.json", r#"{"memory_high_fail":"100MiB","memory_high_warn":"50MiB"}"#);
    write(&world, "s.json", &snapshot(&[agent("claude-1")]));
    let ran = run(&world, &["run", "builtin", "--snapshot", "s.json", "--json", "--settings", "@settings.json"]);
    assert_eq!(ran.json()["agents"][0]["check_results"][0]["name"], "memory-high", "{ran:?}");
    for (settings, said) in [("[]", "--settings wants a JSON object"), ("@nowhere.json", "nowhere.json: No such file")]
    {
        let ran = run(&world, &["run", "builtin", "--snapshot", "s.json", "--settings", settings]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn a_policy_judges_after_the_built_in_one_unless_it_is_alone() {
    let world = world();
    let s = write(&world, "s.json", &troubled());
    let health = |more: &[&str]| {
        let ran = run(&world, &[&["run", "bad.wasm", "--snapshot", &s, "--json"], more].concat());
        (ran.code, ran.json()["session_health"].clone())
    };
    assert_eq!(health(&[]), (Some(0), "DEGRADED".into()), "the verdict so far is the built-in policy's");
    assert_eq!(health(&["--alone"]), (Some(0), "HEALTHY".into()));
    let mut alone = troubled();
    alone["alone"] = true.into();
    write(&world, "s.json", &alone);
    assert_eq!(health(&[]), (Some(0), "HEALTHY".into()), "the snapshot says so");
    let table = run(&world, &["run", "builtin", "--snapshot", &s]);
    assert!(table.stdout.contains("claude-2") && table.stdout.contains("memory"), "{table:?}");
}

#[test]
fn what_is_no_verdict_is_said_with_its_outcome() {
    let world = world();
    let s = write(&world, "s.json", &troubled());
    for (what, outcome, detail) in [
        ("panic", "trap", "it broke: it panicked"),
        ("decline", "declined", "not today"),
        ("score-101", "bad-verdict", "score 101"),
        ("refuse-settings", "bad-settings", "/do: not this"),
    ] {
        let args = ["run", "bad.wasm", "--snapshot", &s, "--settings", &wish(what)];
        let ran = run(&world, &[&args[..], &["--json"]].concat());
        let found = ran.json();
        assert_eq!((ran.code, &found["outcome"]), (Some(1), &outcome.into()), "{found:#}");
        assert!(found["detail"].as_str().unwrap().contains(detail), "{found:#}");
        assert_eq!(found["problems"].is_array(), what == "refuse-settings", "{found:#}");
        let table = run(&world, &args);
        assert_eq!(table.code, Some(1));
        assert!(table.stdout.contains("did not judge"), "{table:?}");
    }
}

#[test]
fn an_explanation_names_the_facts_that_led_to_a_verdict() {
    let world = world();
    let mut facts = troubled();
    let agents = facts["facts"]["agents"].as_array_mut().unwrap();
    agents.extend(["claude-4", "claude-5", "claude-6"].map(agent));
    let s = write(&world, "s.json", &facts);
    let ran = run(&world, &["run", "bad.wasm", "--snapshot", &s, "--explain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().map(str::trim).collect();
    let after = |start: &str| {
        let n = lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start}: {ran:?}"));
        lines[n + 1]
    };
    assert_eq!(after("shop  DEGRADED"), "because agents[2] = claude-3 (claude-3)");
    assert_eq!(after("memory-high fail"), "because metrics.memory_bytes = 13958643712 (13.0 GiB)");
    assert!(lines.iter().any(|line| line.starts_with("claude-3  FAILED dead")), "{ran:?}");
    assert!(!ran.stdout.contains("claude-1"), "nothing is to be explained of it");
    let json = run(&world, &["run", "bad.wasm", "--snapshot", &s, "--explain", "--json"]).json();
    assert_eq!((&json["schema"], &json["complete"]), (&"headcount.explanation/1".into(), &true.into()));
    let facts: Vec<_> =
        json["agents"][0]["because"].as_array().unwrap().iter().map(|b| b["fact"].as_str().unwrap()).collect();
    assert_eq!(facts, ["process"], "it has failed however it ended: {json:#}");
}

#[test]
fn where_no_single_fact_decides_the_whole_part_of_them_does() {
    let world = world();
    let mut waiting = agent("claude-1");
    let said = |source: &str| json!({ "source": source, "claim": "waiting", "word": "waiting", "at_ms": 1_799_998_000_000_u64 });
    waiting["evidence"] = json!([said("own_record"), said("hook")]);
    let s = write(&world, "s.json", &snapshot(&[waiting]));
    let json = run(&world, &["run", "builtin", "--snapshot", &s, "--explain", "--json"]).json();
    let because = &json["agents"][0]["checks"][0]["because"];
    assert_eq!(json["agents"][0]["checks"][0]["name"], "waiting-too-long", "{json:#}");
    assert_eq!((because.as_array().unwrap().len(), &because[0]["fact"]), (1, &"evidence".into()), "{json:#}");
}

#[test]
fn an_explanation_of_many_agents_says_where_it_stopped() {
    let world = world();
    let large = |n: usize| {
        let mut agent = agent(&format!("claude-{n}"));
        agent["metrics"]["memory_bytes"] = 30_000_000_000_u64.into();
        agent
    };
    let s = write(&world, "s.json", &snapshot(&(0..30).map(large).collect::<Vec<_>>()));
    let json = run(&world, &["run", "builtin", "--snapshot", &s, "--explain", "--json"]).json();
    assert_eq!(json["agents"].as_array().unwrap().len(), 20);
    assert_eq!((&json["agents_left_out"], &json["complete"]), (&10.into(), &false.into()));
    assert!(json["judgements"].as_u64().unwrap() <= 2000);
}

#[test]
fn a_snapshot_cannot_reach_the_terminal() {
    let world = world();
    let mut hostile = troubled();
    let text = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}x";
    for place in
        ["/session/name", "/session/root_path", "/agents/1/name", "/agents/1/kind", "/agents/1/evidence/0/word"]
    {
        *hostile["facts"].pointer_mut(place).unwrap() = text.into();
    }
    hostile["facts"]["sources"] = json!([{ "name": text, "error": text }]);
    let s = write(&world, "s.json", &hostile);
    for how in [&[][..], &["--explain"], &["--json"], &["--explain", "--json"]] {
        let ran = run(&world, &[&["run", "bad.wasm", "--snapshot", &s], how].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{how:?}: {ran:?}");
        assert!(!ran.stdout.contains("\\u001b"), "{how:?}: {ran:?}");
    }
}

/// A folder of one case.
pub fn case(world: &World, name: &str, expected: Option<&Value>, settings: Option<&str>) {
    write(world, &format!("cases/{name}/snapshot.json"), &troubled());
    if let Some(expected) = expected {
        write(world, &format!("cases/{name}/expected.json"), expected);
    }
    if let Some(settings) = settings {
        world.write(&format!("cases/{name}/settings.json"), settings);
    }
}

#[test]
fn cases_pass_or_say_in_what_the_verdict_differs() {
    let world = world();
    case(&world, "a-good", Some(&json!({ "session_health": "DEGRADED", "session_score": 33.001 })), None);
    case(&world, "b-bad", Some(&json!({ "session_health": "HEALTHY", "agents": [], "sesion_score": 1 })), None);
    case(&world, "c-new", None, None);
    let problems = json!({ "outcome": "bad-settings", "problems": [{ "path": "/do", "message": "not this" }] });
    case(&world, "d-refused", Some(&problems), Some(&wish("refuse-settings")));
    case(&world, "e-declined", Some(&json!({ "outcome": "declined", "detail": "not today" })), Some(&wish("decline")));
    let good = run(&world, &["run", "bad.wasm", "--snapshot", "cases/a-good/snapshot.json", "--json"]).json();
    let score = good["session_score"].as_f64().unwrap() + 0.001;
    case(&world, "a-good", Some(&json!({ "session_health": "DEGRADED", "session_score": score })), None);
    let ran = run(&world, &["test", "cases", "--policy", "bad.wasm"]);
    assert_eq!(ran.code, Some(1));
    for said in [
        "ok         a-good",
        "failed     b-bad",
        "session_health: wanted \"HEALTHY\", found \"DEGRADED\"",
        "agents[2]: wanted nothing, found {",
        "sesion_score: a verdict has no such member; did you mean `session_score`?",
        "error      c-new",
        "it has no expected.json",
        "ok         d-refused",
        "ok         e-declined",
        "5 cases, 2 failed",
    ] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    let json = run(&world, &["test", "cases", "--policy", "bad.wasm", "--json"]).json();
    let results: Vec<_> =
        json["cases"].as_array().unwrap().iter().map(|case| case["result"].as_str().unwrap()).collect();
    assert_eq!((results, &json["ok"]), (vec!["passed", "failed", "error", "passed", "passed"], &false.into()));
}

#[test]
fn the_examples_pass_their_cases() {
    let world = World::new();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/policies");
    for (name, policy) in [("budget", BUDGET_POLICY), ("leak", LEAK_POLICY), ("night_watch", NIGHT_WATCH_POLICY)] {
        world.write("p.wasm", policy);
        let ran = run(&world, &["test", &path(&cases.join(name)), "--policy", "p.wasm", "--json"]);
        let tested = ran.json();
        assert_eq!(ran.code, Some(0), "{name}: {tested:#}");
        assert!(tested["cases"].as_array().unwrap().len() > 3, "{name}");
    }
}

#[test]
fn a_project_is_built_and_tried_on_its_own_cases() {
    let world = World::new();
    world.write("budget.wasm", BUDGET_POLICY);
    assert_eq!(world.run(&["policy", "new", "thrift"]).code, Some(0));
    world.write(
        "thrift/policy.toml",
        "name = \"thrift\"\nbuild = [\"cp\", \"../budget.wasm\", \"out.wasm\"]\noutput = \"out.wasm\"\n",
    );
    let mut command = policy(&world, &["test", "thrift"]);
    command.env("PATH", "/usr/bin:/bin");
    let ran = finish(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.ends_with("9 cases, 0 failed\n"), "{}", ran.stdout);
    assert!(!world.path("thrift/thrift.wasm").exists(), "what may be in use is not touched by a trial");
    // Elsewhere the project stands for what was built in it.
    let unbuilt = run(&world, &["check", "thrift"]);
    assert!(unbuilt.stderr.contains("type `headcount policy build thrift`"), "{}", unbuilt.stderr);
    world.write("thrift/thrift.wasm", BUDGET_POLICY);
    let checked = run(&world, &["check", "thrift", "--settings", r#"{"memory_gb":1}"#]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
}

#[test]
fn expectations_are_written_only_where_the_policy_came_to_an_answer() {
    let world = world();
    case(&world, "a-new", None, None);
    case(&world, "b-old", Some(&json!({ "session_health": "HEALTHY" })), None);
    case(&world, "c-breaks", None, Some(&wish("panic")));
    case(&world, "d-passes", Some(&json!({ "agents": [{}, {}, {"status": "FAILED"}] })), None);
    let update = || run(&world, &["test", "cases", "--policy", "bad.wasm", "--update"]);
    let ran = update();
    assert_eq!(ran.code, Some(1));
    for said in ["updated    a-new", "updated    b-old", "error      c-breaks", "unchanged  d-passes", "not written"] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    assert!(!world.path("cases/c-breaks/expected.json").exists());
    assert!(update().stdout.contains("unchanged  a-new"));
    let written = |case: &str| -> Value {
        let file = world.path("cases").join(case).join("expected.json");
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    };
    assert_eq!(written("a-new"), run(&world, &["run", "bad.wasm", "--snapshot", "cases/a-new", "--json"]).json());
    assert_eq!(written("b-old"), json!({ "session_health": "DEGRADED" }), "what was left out stays so");
    assert_eq!(written("d-passes"), json!({ "agents": [{}, {}, {"status": "FAILED"}] }));
    let before = fs::read(world.path("cases/a-new/expected.json")).unwrap();
    world.write("text.wasm", "not wasm");
    let ran = run(&world, &["test", "cases", "--policy", "text.wasm", "--update"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("the policy cannot be loaded"), "{}", ran.stdout);
    assert_eq!(fs::read(world.path("cases/a-new/expected.json")).unwrap(), before);
}

#[test]
fn where_there_is_no_case_or_no_policy_that_is_an_error() {
    let world = world();
    fs::create_dir(world.path("empty")).unwrap();
    case(&world, "a", None, None);
    for (args, said) in [
        (&["test", "empty", "--policy", "builtin"][..], "there is no case in empty"),
        (&["test", "nowhere", "--policy", "builtin"], "nowhere cannot be read"),
        (&["test", "cases"], "say which policy to try: --policy FILE"),
    ] {
        let ran = run(&world, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn what_a_policy_costs_is_measured_beside_the_built_in_one() {
    let world = world();
    let ran = run(&world, &["bench", "bad.wasm", "--agents", "10", "--rounds", "20", "--json"]);
    let costs = ran.json();
    assert_eq!((ran.code, &costs["agents"], &costs["outcomes"]), (Some(0), &10.into(), &json!({ "verdict": 20 })));
    let number =
        |place: &str| costs.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("{place}: {costs:#}"));
    assert!(number("/micros/p50") > 0.0 && number("/micros/p50") <= number("/micros/p99"), "{costs:#}");
    assert!(number("/load_micros/compiled_before") < number("/load_micros/compiled_anew"), "{costs:#}");
    assert!(number("/ratio") > 0.0 && number("/memory_bytes") > 0.0, "{costs:#}");
    let ran = run(&world, &["bench", "bad.wasm", "--settings", &wish("refuse-settings"), "--json"]);
    assert_eq!((ran.code, &ran.json()["outcome"]), (Some(1), &"bad-settings".into()));
}

/// What is left of a judgement that broke would be there a thousand times.
#[test]
fn a_policy_that_breaks_again_and_again_leaves_no_memory_behind() {
    let world = world();
    for (what, outcome, rounds) in [("panic", "trap", 1000), ("grow", "memory", 60)] {
        let args = ["bench", "bad.wasm", "--json", "--agents", "20", "--rounds"];
        let command = policy(&world, &[&args[..], &[&rounds.to_string(), "--settings", &wish(what)]].concat());
        let ran = finish(command);
        let costs = ran.json();
        assert_eq!((ran.code, &costs["outcomes"]), (Some(1), &json!({ outcome: rounds })), "{costs:#}");
        let growth = costs["resident_growth_bytes"].as_i64().unwrap();
        println!("{what}: {growth} bytes in {rounds} rounds, {} µs each", costs["micros"]["p50"]);
        assert!(growth < 8 << 20, "{what}: {growth} bytes more than before");
    }
}
