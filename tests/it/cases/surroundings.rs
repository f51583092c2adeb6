//! What surrounds headcount and must not change what it says.

use crate::world::{World, agent, finish, stand_in};
use headcount::demo::stand_in::Behaviour;
use serde_json::Value;

#[test]
fn case_of_another_language_changes_nothing() {
    let world = World::new();
    let it = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", it.pid())]);
    let run = |language: &str, args: &[&str]| {
        let mut command = world.command(&[&["status", "s", "--roster", roster.to_str().unwrap()], args].concat());
        for variable in ["LC_ALL", "LC_TIME", "LC_NUMERIC", "LANG", "LANGUAGE"] {
            command.env(variable, language);
        }
        finish(command)
    };
    let facts = |language: &str| {
        let report = run(language, &["--json"]).json();
        let it = agent(&report, "it").clone();
        let created: jiff::Timestamp = it["created_at"].as_str().unwrap().parse().unwrap();
        let same = ["agent_id", "kind", "status", "process_id"].map(|key| it[key].clone());
        let counts = ["process_count", "thread_count", "unmeasured"].map(|key| it["metrics"][key].clone());
        (same, counts, it["activity"]["state"].clone(), created.as_millisecond())
    };
    let (same, counts, state, created) = facts("C");
    assert_ne!(counts[0], Value::Null);
    for language in ["de_DE.UTF-8", "ja_JP.UTF-8", "en_GB.UTF-8", "ar_EG.UTF-8", "nonsense"] {
        let (also, counted, does, began) = facts(language);
        assert_eq!((&also, &counted, &does), (&same, &counts, &state), "{language}");
        assert!(began.abs_diff(created) < 1000, "{language}: {began} instead of {created}");
        let table = run(language, &[]).stdout;
        assert!(table.contains("AGENT") && table.contains("ACTIVE") && table.contains("0.0"), "{language}: {table}");
    }
}
