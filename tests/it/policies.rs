//! Policies of one's own, good and bad, in the configuration.

use crate::world::{Ran, World, agent, stand_in};
use headcount::demo::stand_in::{Behaviour, StandIn};
use headcount_tests::MISBEHAVING_POLICY;
use serde_json::Value;

/// What is said of a session of one idle agent under this configuration, and who said it.
fn judged_by(policies: &str) -> (Ran, StandIn) {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    world.write("bad.wasm", MISBEHAVING_POLICY);
    world.write("text.wasm", "not wasm");
    let config = world.write("config.toml", policies);
    let [config, roster] = [&config, &roster].map(|path| path.to_str().unwrap());
    (world.run(&["--config", config, "status", "s", "--json", "--roster", roster]), idle)
}

/// A policy file in the configuration, and what it is to do.
fn misbehaving(what: &str) -> String {
    format!("[[policy]]\npath = \"bad.wasm\"\nsettings = {{ do = \"{what}\" }}\n")
}

const BUILTIN: &str = "[[policy]]\npath = \"builtin\"\n";

fn outcomes(report: &Value) -> Vec<&str> {
    report["policies"].as_array().unwrap().iter().map(|p| p["outcome"].as_str().unwrap()).collect()
}

#[test]
fn where_the_only_policy_runs_for_ever_the_facts_are_there_and_health_is_unknown() {
    let (ran, idle) = judged_by(&misbehaving("loop"));
    let report = ran.json();
    assert_eq!((ran.code, &report["session_health"]), (Some(1), &"UNKNOWN".into()));
    assert_eq!(outcomes(&report), ["deadline"]);
    assert_eq!((&report["session_score"], &report["session_metrics"]), (&Value::Null, &Value::Null));
    assert_eq!(report["partial"], true);
    let it = agent(&report, "it");
    assert_eq!((&it["process_id"], &it["status"]), (&idle.pid().into(), &"UNKNOWN".into()));
    assert!(it["metrics"]["memory_mb"].as_f64().unwrap() > 0.0, "{it:#}");
    assert!(it["activity"]["reason"].as_str().unwrap().contains("deadline"), "{it:#}");
    assert!(report["policies"][0]["detail"].as_str().unwrap().contains("longer than"), "{report:#}");
}

#[test]
fn the_last_policy_has_the_last_word() {
    let (ran, _) = judged_by(&(BUILTIN.to_owned() + &misbehaving("critical")));
    assert_eq!((ran.code, &ran.json()["session_health"]), (Some(1), &"CRITICAL".into()));
    assert_eq!(outcomes(&ran.json()), ["verdict", "verdict"]);
}

#[test]
fn a_second_policy_that_breaks_leaves_the_first_ones_verdict() {
    let (ran, _) = judged_by(&(BUILTIN.to_owned() + &misbehaving("panic")));
    let report = ran.json();
    assert_eq!((ran.code, &report["session_health"]), (Some(0), &"HEALTHY".into()));
    assert_eq!(outcomes(&report), ["verdict", "trap"]);
    assert_eq!(report["policies"][1]["name"], "misbehaving");
}

#[test]
fn a_policy_that_is_none_is_said_in_every_report() {
    for (policy, outcome, said) in [
        ("path = \"text.wasm\"", "not-a-policy", "no WebAssembly component"),
        ("path = \"nowhere.wasm\"", "not-a-policy", "cannot be read"),
        ("path = \"builtin\"\nsettings = { stall_afer = \"1m\" }", "bad-settings", "stall_after"),
    ] {
        let (ran, _) = judged_by(&format!("[[policy]]\n{policy}\n"));
        let report = ran.json();
        assert_eq!((ran.code, outcomes(&report)), (Some(1), vec![outcome]));
        assert!(report["policies"][0]["detail"].as_str().unwrap().contains(said), "{report:#}");
    }
}

#[test]
fn settings_reach_the_policy() {
    let strict = format!("{BUILTIN}settings = {{ thread_count_warn = 1, thread_count_fail = 1 }}\n");
    let (ran, _) = judged_by(&strict);
    let report = ran.json();
    assert_eq!((ran.code, &agent(&report, "it")["status"]), (Some(1), &"DEGRADED".into()), "{report:#}");
}
