//! Policies of one's own, good and bad, in the configuration.

use crate::world::{Ran, World, agent, stand_in};
use headcount::demo::stand_in::{Behaviour, StandIn};
use headcount_tests::MISBEHAVING_POLICY;
use serde_json::Value;

/// What is said of a session of one idle agent under this configuration, and who said it.
fn judged_by(policies: &str) -> (Ran, StandIn) {
    judged(policies, &[])
}

fn judged(policies: &str, more: &[&str]) -> (Ran, StandIn) {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    world.write("bad.wasm", MISBEHAVING_POLICY);
    world.write("text.wasm", "not wasm");
    let config = world.write("config.toml", policies);
    let [config, roster] = [&config, &roster].map(|path| path.to_str().unwrap());
    let args = ["--config", config, "status", "s", "--json", "--roster", roster];
    (world.run(&[&args, more].concat()), idle)
}

/// A policy file in the configuration, and what it is to do.
fn misbehaving(what: &str) -> String {
    format!("[[policy]]\npath = \"bad.wasm\"\nsettings = {{ do = \"{what}\" }}\n")
}

const BUILTIN: &str = "[[policy]]\npath = \"builtin\"\n";

/// The chain without the built-in policy.
const ALONE: &str = "[[policy]]\npath = \"builtin\"\nenabled = false\n";

fn outcomes(report: &Value) -> Vec<&str> {
    report["policies"].as_array().unwrap().iter().map(|p| p["outcome"].as_str().unwrap()).collect()
}

#[test]
fn where_the_only_policy_runs_for_ever_the_facts_are_there_and_health_is_unknown() {
    let (ran, idle) = judged_by(&(ALONE.to_owned() + &misbehaving("loop")));
    let report = ran.json();
    assert_eq!((ran.code, &report["session_health"]), (Some(1), &"UNKNOWN".into()));
    assert_eq!(outcomes(&report), ["deadline"]);
    assert_eq!((&report["session_score"], &report["session_metrics"]), (&Value::Null, &Value::Null));
    assert_eq!(report["partial"], true);
    let it = agent(&report, "it");
    assert_eq!((&it["process_id"], &it["status"]), (&idle.pid().into(), &"UNKNOWN".into()));
    assert!(it["metrics"]["memory_mb"].as_f64().unwrap() > 0.0, "{it:#}");
    assert!(it["activity"]["reason"].as_str().unwrap().contains("deadline"), "{it:#}");
    assert_eq!(report["policies"][0]["detail"], "it ran longer than its limit of 250ms");
}

#[test]
fn the_built_in_policy_comes_first_and_the_last_one_has_the_last_word() {
    for policies in [misbehaving("critical"), BUILTIN.to_owned() + &misbehaving("critical")] {
        let (ran, _) = judged_by(&policies);
        assert_eq!((ran.code, &ran.json()["session_health"]), (Some(1), &"CRITICAL".into()));
        assert_eq!(outcomes(&ran.json()), ["verdict", "verdict"]);
        assert_eq!(ran.json()["policies"][0]["name"], "built-in");
    }
    let (ran, _) = judged_by(&(misbehaving("nothing") + BUILTIN));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("policy[1].path: \"builtin\" can only be the first"), "{ran:?}");
}

#[test]
fn a_policy_that_fails_open_leaves_the_verdict_so_far() {
    let (ran, _) = judged_by(&misbehaving("panic"));
    let report = ran.json();
    assert_eq!((ran.code, &report["session_health"]), (Some(0), &"HEALTHY".into()));
    assert_eq!(outcomes(&report), ["verdict", "trap"]);
    assert_eq!((&report["policies"][1]["name"], &report["partial"]), (&"misbehaving".into(), &true.into()));
    assert!(report["policies"][1]["detail"].as_str().unwrap().starts_with("it broke: it panicked"), "{report:#}");
}

#[test]
fn a_policy_that_fails_closed_leaves_health_unknown_and_says_why() {
    // One after it may not make it well again.
    let closed = misbehaving("panic") + "on_error = \"closed\"\n" + &misbehaving("critical");
    let (ran, _) = judged_by(&closed);
    let report = ran.json();
    assert_eq!((ran.code, &report["session_health"]), (Some(1), &"UNKNOWN".into()));
    assert_eq!(report["session_score"], Value::Null);
    let check = &report["session_checks"][0];
    assert_eq!((&check["name"], &check["outcome"]), (&"policy".into(), &"unknown".into()));
    assert!(check["detail"].as_str().unwrap().starts_with("policy misbehaving: it broke"), "{check:#}");
    assert_eq!(report["attention"][0]["why"], check["detail"]);
    assert_eq!(agent(&report, "it")["status"], "ACTIVE", "what the others have judged stays");
}

#[test]
fn a_shadow_is_shown_beside_the_report_and_changes_nothing() {
    let (alone, _) = judged_by("");
    for (what, outcome) in [("critical", "verdict"), ("panic", "trap"), ("loop", "deadline")] {
        let (ran, _) = judged_by(&(misbehaving(what) + "mode = \"shadow\"\non_error = \"closed\"\n"));
        let (report, alone) = (ran.json(), alone.json());
        assert_eq!(ran.code, Some(0), "{report:#}");
        for same in ["session_health", "session_score", "session_checks", "attention", "partial"] {
            assert_eq!(report[same], alone[same], "{what}: {same}");
        }
        assert_eq!((outcomes(&report), &report["policies"][1]["mode"]), (vec!["verdict", outcome], &"shadow".into()));
        let shadow = report["shadow"].as_array().unwrap();
        assert_eq!(shadow.len(), usize::from(what == "critical"));
        for verdict in shadow {
            assert_eq!((&verdict["policy"], &verdict["session_health"]), (&"misbehaving".into(), &"CRITICAL".into()));
        }
    }
}

#[test]
fn a_policy_judges_the_sessions_that_it_is_for() {
    for (globs, outcomes_are) in [("\"s\"", vec!["verdict", "trap"]), ("\"web-*\"", vec!["verdict"])] {
        let (ran, _) = judged_by(&(misbehaving("panic") + &format!("sessions = [{globs}]\n")));
        assert_eq!(outcomes(&ran.json()), outcomes_are);
    }
}

#[test]
fn each_policy_has_the_limits_of_its_own_or_those_of_all() {
    let (small, large) = ("memory = \"16MiB\"", "memory = \"40MiB\"");
    let large_of_its_own = format!("{}limits = {{ {large} }}\n", misbehaving("grow-20"));
    let small_of_its_own = format!("{}limits = {{ {small} }}\n", misbehaving("grow-20"));
    for (config, outcomes_are) in [
        (format!("{large_of_its_own}{small_of_its_own}"), ["verdict", "memory"]),
        (format!("[limits]\n{small}\n{large_of_its_own}{}", misbehaving("grow-20")), ["verdict", "memory"]),
        (format!("[limits]\n{large}\n{}{small_of_its_own}", misbehaving("grow-20")), ["verdict", "memory"]),
    ] {
        let (ran, _) = judged_by(&config);
        assert_eq!(outcomes(&ran.json())[1..], outcomes_are, "{config}");
        let detail = ran.json()["policies"][2]["detail"].clone();
        assert!(detail.as_str().unwrap().ends_with("its limit is 16MiB"), "{detail}");
    }
    let deadlines = format!("[limits]\ndeadline = \"20ms\"\n{BUILTIN}limits = {{ deadline = \"10s\" }}\n");
    let own = misbehaving("loop") + "limits = { deadline = \"40ms\" }\n";
    let (ran, _) = judged_by(&(deadlines + &own + &misbehaving("loop")));
    let details: Vec<_> = (1..3).map(|n| ran.json()["policies"][n]["detail"].clone()).collect();
    assert_eq!(details, ["it ran longer than its limit of 40ms", "it ran longer than its limit of 20ms"]);
}

#[test]
fn a_policy_that_is_none_is_said_in_every_report() {
    for (policy, outcome, said) in [
        ("path = \"text.wasm\"", "not-a-policy", "found something else"),
        ("path = \"nowhere.wasm\"", "not-a-policy", "cannot be read"),
        ("path = \"bad.wasm\"\nsettings = { do = \"refuse-settings\" }", "bad-settings", "/do: not this"),
        (PINNED, "wrong-digest", "the configuration pins 0000"),
    ] {
        let config = format!("[[policy]]\n{policy}\n");
        let (ran, _) = judged_by(&config);
        let report = ran.json();
        assert_eq!((ran.code, outcomes(&report)), (Some(0), vec!["verdict", outcome]));
        assert!(report["policies"][1]["detail"].as_str().unwrap().contains(said), "{report:#}");
        let (strict, _) = judged(&config, &["--strict"]);
        assert_eq!(strict.code, Some(2), "{strict:?}");
        assert!(strict.stderr.contains(said) && strict.stderr.contains("policy "), "{strict:?}");
    }
}

/// A policy with a pin that no file has.
const PINNED: &str =
    "path = \"bad.wasm\"\ndigest = \"0000000000000000000000000000000000000000000000000000000000000000\"";

#[test]
fn settings_reach_the_policy() {
    let strict = format!("{BUILTIN}settings = {{ thread_count_warn = 1, thread_count_fail = 1 }}\n");
    let (ran, _) = judged_by(&strict);
    let report = ran.json();
    assert_eq!((ran.code, &agent(&report, "it")["status"]), (Some(1), &"DEGRADED".into()), "{report:#}");
}
