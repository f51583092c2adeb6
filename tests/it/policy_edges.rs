//! What authors of policies come across at the edges: builds that make nothing, files that are in use, explanations that
//! stop, settings that are configured.

use crate::policy_tools::{agent, case, path, run, snapshot, wish, world, write};
use crate::world::{NO_PID, World, finish, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount_tests::{BUDGET_POLICY, NIGHT_WATCH_POLICY};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A project whose build copies a file that is in the world.
fn project(world: &World, source: &str) {
    let manifest =
        format!("name = \"p\"\nbuild = [\"cp\", \"../{source}\", \"target/out\"]\noutput = \"target/out\"\n");
    world.write("p/policy.toml", manifest);
}

/// Runs a command of the policy's author, where tools are found.
fn with_tools(world: &World, folder: &str, args: &[&str]) -> crate::world::Ran {
    let mut command = world.command(&[&["policy"], args].concat());
    command.env("PATH", "/usr/bin:/bin").env("HEADCOUNT_LIMITS_LOAD", "30s").current_dir(world.path(folder));
    finish(command)
}

#[test]
fn a_project_is_built_and_tried_where_one_is() {
    let world = World::new();
    world.write("budget.wasm", BUDGET_POLICY);
    project(&world, "budget.wasm");
    case(&world, "a", Some(&json!({ "outcome": "bad-settings" })), None);
    fs::rename(world.path("cases"), world.path("p/cases")).unwrap();
    for _ in 0..2 {
        let ran = with_tools(&world, "p", &["test"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok         a\n1 case, 0 failed\n"), "{ran:?}");
    }
    assert_eq!(with_tools(&world, "p", &["build"]).code, Some(0));
    assert_eq!(fs::read(world.path("p/p.wasm")).unwrap(), BUDGET_POLICY);
    world.write("p/policy.toml", "name = \"p\"\nbuild = [\"true\"]\noutput = \"target/out\"\n");
    for command in ["build", "test"] {
        let ran = with_tools(&world, "p", &[command]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "what is left of before is not taken");
        assert!(ran.stderr.contains("`true` did not make target/out"), "{}", ran.stderr);
    }
}

#[test]
fn what_would_be_refused_is_not_put_in_the_place_of_what_is_in_use() {
    let world = World::new();
    // Another track of the interface, as an author has it who builds against another file.
    let mut other = NIGHT_WATCH_POLICY.to_vec();
    let name = b"headcount:policy/policy@0.1.0";
    let places: Vec<usize> = (0..other.len() - name.len()).filter(|&at| other[at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    for at in places {
        other[at + name.len() - 3] = b'9';
    }
    world.write("other.wasm", &other);
    // What needs settings starts, and is written.
    world.write("budget.wasm", BUDGET_POLICY);
    project(&world, "budget.wasm");
    assert_eq!(with_tools(&world, ".", &["build", "p"]).code, Some(0));
    fs::set_permissions(world.path("p/p.wasm"), fs::Permissions::from_mode(0o640)).unwrap();
    project(&world, "other.wasm");
    let ran = with_tools(&world, ".", &["build", "p"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.starts_with("p/p.wasm is not written, because it would be refused: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("found headcount:policy/policy@0.9.0"), "{}", ran.stdout);
    assert_eq!(fs::read(world.path("p/p.wasm")).unwrap(), BUDGET_POLICY);
    world.write("watch.wasm", NIGHT_WATCH_POLICY);
    project(&world, "watch.wasm");
    assert_eq!(with_tools(&world, ".", &["build", "p"]).code, Some(0));
    assert_eq!(fs::read(world.path("p/p.wasm")).unwrap(), NIGHT_WATCH_POLICY);
    assert_eq!(fs::metadata(world.path("p/p.wasm")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn what_compares_nothing_or_says_things_twice_is_refused() {
    let world = world();
    case(&world, "a-empty", Some(&json!({})), None);
    case(&world, "b-schema", Some(&json!({ "schema": "headcount.verdict/1" })), None);
    for name in ["c-expected", "d-settings", "e-snapshot"] {
        case(&world, name, Some(&json!({ "outcome": "verdict" })), Some("{}"));
    }
    world.write("cases/c-expected/expected.json", r#"{"outcome":"verdict","outcome":"trap"}"#);
    world.write("cases/d-settings/settings.json", r#"{"do":"panic","do":"decline"}"#);
    let text = snapshot(&[agent("claude-1")]).to_string().replacen("\"cores\":8", "\"cores\":8,\"cores\":9", 1);
    world.write("cases/e-snapshot/snapshot.json", text);
    let ran = run(&world, &["test", "cases", "--policy", "bad.wasm"]);
    assert!(ran.code == Some(1) && ran.stdout.ends_with("5 cases, 5 failed\n"), "{ran:?}");
    assert_eq!(ran.stdout.matches("it compares nothing").count(), 2, "{}", ran.stdout);
    for key in ["outcome", "do", "cores"] {
        assert!(ran.stdout.contains(&format!("the key `{key}` stands there twice")), "{}", ran.stdout);
    }
    let settings = run(&world, &["check", "bad.wasm", "--settings", r#"{"do":"panic","do":"decline"}"#]);
    assert!(settings.code == Some(2) && settings.stderr.contains("the key `do` stands there twice"), "{settings:?}");
    run(&world, &["test", "cases", "--policy", "bad.wasm", "--update"]);
    let written = fs::read_to_string(world.path("cases/a-empty/expected.json")).unwrap();
    let whole = run(&world, &["run", "bad.wasm", "--snapshot", "cases/a-empty", "--json"]).json();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), whole);
}

#[test]
fn an_update_says_what_it_wrote_and_keeps_what_nobody_has() {
    let world = world();
    case(&world, "a", None, Some(&wish("refuse-settings")));
    case(&world, "b", Some(&json!({ "sesion_health": "x", "session_score": 1 })), None);
    let ran = run(&world, &["test", "cases", "--policy", "bad.wasm", "--update"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("updated    a  (bad-settings: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("/do: not this)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("failed     b") && ran.stdout.contains("did you mean `session_health`?"), "{ran:?}");
    let file = fs::read(world.path("cases/b/expected.json")).unwrap();
    let (written, verdict): (Value, _) =
        (serde_json::from_slice(&file).unwrap(), run(&world, &["run", "bad.wasm", "--snapshot", "cases/b", "--json"]));
    assert_eq!(written, json!({ "sesion_health": "x", "session_score": verdict.json()["session_score"] }));
    let nowhere = run(&world, &["test", "cases", "--policy", "nowhere.wasm"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (Some(2), ""));
    assert_eq!(nowhere.stderr.lines().count(), 1, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("the policy nowhere.wasm cannot be read"), "{}", nowhere.stderr);
}

#[test]
fn an_agent_with_thousands_of_facts_is_explained_soon_and_by_some() {
    let world = world();
    let mut busy = agent("claude-1");
    busy["metrics"]["memory_bytes"] = 30_000_000_000_u64.into();
    busy["evidence"] = vec![busy["evidence"][0].clone(); 1000].into();
    let mut failed = agent("claude-2");
    failed["process"] = "gone".into();
    failed["exit_code"] = 1.into();
    let s = write(&world, "s.json", &snapshot(&[busy, failed]));
    let explained = run(&world, &["run", "builtin", "--snapshot", &s, "--explain", "--json"]).json();
    let ids: Vec<_> = explained["agents"].as_array().unwrap().iter().map(|agent| &agent["agent_id"]).collect();
    assert_eq!(ids, ["claude-2", "claude-1"], "who has failed comes first");
    assert_eq!(explained["complete"], false, "{explained:#}");
    let busy = &explained["agents"][1];
    assert!(busy["facts_left_out"].as_u64().unwrap() > 700, "{busy:#}");
    assert_eq!(busy["checks"][0]["because"][0]["fact"], "metrics.memory_bytes", "{busy:#}");
    let text = run(&world, &["run", "builtin", "--snapshot", &s, "--explain"]);
    assert!(text.stdout.contains("of its facts were not tried"), "{}", text.stdout);
}

/// A policy is tried after the built-in policy as it is at work.
#[test]
fn the_built_in_policy_has_its_configured_settings_but_for_cases() {
    let world = world();
    let config =
        "[[policy]]\npath = \"builtin\"\nsettings = { memory_high_warn = \"100KiB\", memory_high_fail = \"200KiB\" }\n";
    world.write(".config/headcount/config.toml", config);
    write(&world, "case/snapshot.json", &snapshot(&[agent("claude-1")]));
    let score = |args: &[&str]| {
        let ran = run(&world, &[&["run"], args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.json()["session_score"].as_u64().unwrap()
    };
    for policy in ["builtin", "bad.wasm"] {
        let recorded = score(&[policy, "--snapshot", "case/snapshot.json"]);
        assert!(recorded < 100, "{policy}: 300 MB are too much here");
        assert_eq!(score(&[policy, "--snapshot", "case"]), 100, "{policy}: a case comes out alike everywhere");
    }
    assert_eq!(score(&["builtin", "--snapshot", "case/snapshot.json", "--settings", "{}"]), 100);
    let idle = stand_in(Behaviour::Idle);
    let roster = path(&world.roster("live", &[("it", idle.pid())]));
    let status = world.run(&["status", "live", "--json", "--roster", &roster]).json();
    let live = score(&["builtin", "--live", "live", "--roster", &roster]);
    assert_eq!((status["session_score"].as_u64(), live < 100), (Some(live), true), "both say the same: {status:#}");
    let off = format!("{config}enabled = false\n");
    world.write(".config/headcount/config.toml", off);
    assert_eq!(score(&["bad.wasm", "--snapshot", "case/snapshot.json"]), 100, "where it is off it has none");
}

#[test]
fn who_looks_is_noted_and_what_cannot_be_recorded_has_failed() {
    let world = world();
    let roster = path(&world.roster("shop", &[("gone", NO_PID)]));
    run(&world, &["run", "bad.wasm", "--live", "shop", "--roster", &roster]);
    run(&world, &["run", "bad.wasm", "--live", "nobody", "--roster", &roster]);
    world.run(&["status", "shop", "--roster", &roster, "--record", "nowhere/s.json"]);
    world.run(&["status", "shop", "--roster", &roster, "--record", "s.json"]);
    let log = fs::read_to_string(world.state().join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let noted = lines.iter().map(|l| [&l["client"], &l["session"], &l["outcome"]].map(|v| v.as_str().unwrap()));
    let noted: Vec<_> = noted.collect();
    let wanted = [
        ["headcount policy run", "shop", "ok"],
        ["headcount policy run", "nobody", "not_found"],
        ["headcount status", "shop", "failed"],
        ["headcount status", "shop", "ok"],
    ];
    assert_eq!(noted, wanted);
    assert_eq!(lines[0]["agents"], 1);
    let ran = run(&world, &["run", "bad.wasm", "--snapshot", "s.json", "--roster", &roster]);
    assert_eq!(ran.code, Some(64), "a roster is of no use there: {ran:?}");
}

#[test]
fn the_cost_beside_a_built_in_policy_that_fails_is_no_ratio() {
    let world = world();
    let mut command = world.command(&["policy", "bench", "bad.wasm", "--rounds", "3", "--agents", "2000"]);
    // Two thousand agents take it more than this, whatever the machine.
    command.env("HEADCOUNT_LIMITS_RESULT", "100KiB").env("HEADCOUNT_LIMITS_LOAD", "30s");
    command.env("HEADCOUNT_LIMITS_DEADLINE", "10s");
    let text = finish(command);
    assert_eq!(text.code, Some(1), "{text:?}");
    let has = |start: &str| text.stdout.lines().any(|line| line.trim_start().starts_with(start));
    assert!(text.stdout.contains("(not all are verdicts: 3 flood)") && has("ratio     -"), "{}", text.stdout);
}

#[test]
fn what_is_shown_to_be_typed_can_be_typed() {
    let world = World::new();
    let ran = world.run(&["policy", "new", "thrift", "--dir", "my policies"]);
    assert!(ran.stdout.contains("headcount policy test 'my policies/thrift' "), "{}", ran.stdout);
    let ran = world.run(&["policy", "check", "my policies/thrift"]);
    assert!(ran.stderr.contains("`headcount policy build 'my policies/thrift'`"), "{}", ran.stderr);
}

#[test]
fn a_configuration_cannot_reach_the_terminal_of_who_checks_it() {
    let world = World::new();
    let hostile = "a\\u001b[2J\\u202eb.wasm";
    for text in [
        format!("[[policy]]\npath = \"{hostile}\"\n"),
        format!("rosters = [\"{hostile}\"]\n"),
        format!("[\"{hostile}\"]\n"),
        "[sampling]\n\"\u{1b}[2J".to_owned(),
    ] {
        let config = path(&world.write("c.toml", text));
        for how in [&[][..], &["--json"]] {
            let ran = world.run(&[&["--config", &config, "config", "check"], how].concat());
            assert_eq!(ran.code, Some(2), "{ran:?}");
            let said = ran.stdout + &ran.stderr;
            assert!(!said.contains(['\u{1b}', '\u{202e}']) && !said.contains("\\u001b"), "{said:?}");
            assert!(!said.trim().is_empty() && Path::new(&config).exists());
        }
    }
}
