//! The decision log.

use crate::world::{World, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount::judge::{BUILTIN, digest};
use headcount_tests::MISBEHAVING_POLICY;
use serde::Deserialize as _;
use serde_json::Value;
use std::fs;

/// The lines of the log.
fn decisions(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state().join("decisions.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_decision_has_all_that_it_takes_to_judge_again() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    world.write("bad.wasm", MISBEHAVING_POLICY);
    let bad = "[[policy]]\npath = \"bad.wasm\"\nsettings = { do = \"critical\" }\nmode = \"shadow\"\n";
    let config = world.write("config.toml", format!("[decisions]\nenabled = true\n{bad}"));
    let [config, roster] = [&config, &roster].map(|path| path.to_str().unwrap());
    let report = world.run(&["--config", config, "status", "s", "--json", "--roster", roster]).json();

    let lines = decisions(&world);
    let decision = lines.iter().find(|line| line["session_id"] == "s").unwrap();
    assert_eq!(decision["schema"], "headcount.decision/1");
    assert_eq!(decision["time"], report["observed_at"]);
    let policies = decision["policies"].as_array().unwrap();
    assert_eq!((&policies[0]["digest"], &policies[0]["mode"]), (&digest(BUILTIN).into(), &"enforce".into()));
    assert_eq!((&policies[1]["settings"], &policies[1]["mode"]), (&r#"{"do":"critical"}"#.into(), &"shadow".into()));
    assert_eq!(policies[1]["settings_digest"], digest(br#"{"do":"critical"}"#));
    assert_eq!(policies[1]["shadow"]["session_health"], "CRITICAL");
    assert_eq!(decision["verdict"]["session_health"], report["session_health"]);
    assert_eq!(decision["verdict"]["agents"][0]["status"], "ACTIVE");

    let facts = headcount::observe::facts::Snapshot::deserialize(&decision["facts"]).unwrap();
    assert_eq!(decision["snapshot_digest"], digest(&serde_json::to_vec(&facts).unwrap()));
    assert_eq!(facts.agents[0].process_id, Some(idle.pid()));

    // A line is a snapshot, and is judged again as it was.
    let line = world.write("decision.json", decision.to_string());
    let judge_again = |policy: &str| {
        let again = || world.run(&["policy", "run", policy, "--json", "--snapshot", line.to_str().unwrap()]);
        assert_eq!(again().stdout, again().stdout);
        assert_eq!(again().stderr, "");
        again().json()
    };
    assert_eq!(judge_again("builtin"), decision["verdict"]);
    // With the settings that it had.
    assert_eq!(judge_again("bad.wasm"), policies[1]["shadow"]);
    assert_eq!(decisions(&world).len(), lines.len(), "what is tried is no decision");
}

#[test]
fn no_decision_is_kept_unless_it_is_asked_for() {
    let world = World::new();
    world.run(&["status"]);
    assert!(world.state().join("audit.jsonl").exists());
    assert!(!world.state().join("decisions.jsonl").exists());
}
