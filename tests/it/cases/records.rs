//! Agents whose records could be mistaken for another's, or for something else than they say.

use crate::world::{World, posing_as, start_of};
use headcount::demo::stand_in::StandIn;
use serde_json::{Value, json};
use std::fs;

/// Where transcripts of `/w/app` are, below a home directory.
const PROJECT: &str = ".claude/projects/-w-app";

/// A stand-in for Claude Code whose records are in this world.
fn claude(world: &World) -> StandIn {
    posing_as("claude", world, |command| {
        command.env_remove("CLAUDE_CONFIG_DIR");
    })
}

/// Says which conversation a stand-in for Claude Code is in.
fn record(world: &World, claude: &StandIn, session: &str, more: Value) {
    let pid = claude.pid();
    let mut record =
        json!({"pid": pid, "procStart": start_of(pid).unwrap().to_string(), "sessionId": session, "cwd": "/w/app"});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.write(&format!(".claude/sessions/{pid}.json"), record.to_string());
}

/// A turn that has begun just now: a tool of this name is called.
fn open_turn(model: &str, tool: &str) -> String {
    let now = jiff::Timestamp::now();
    let call = json!({"type": "tool_use", "id": "t", "name": tool, "input": {"command": "sleep 1000"}});
    let message = json!({"id": "m", "model": model, "usage": {"input_tokens": 9}, "content": [call]});
    format!("{}\n", json!({"type": "assistant", "timestamp": now, "message": message}))
}

#[test]
fn case_15_in_one_folder_each_has_its_own_conversation() {
    let world = World::new();
    let [first, second] = [claude(&world), claude(&world)];
    record(&world, &first, "aaaa", json!({}));
    record(&world, &second, "bbbb", json!({}));
    world.write(&format!("{PROJECT}/aaaa.jsonl"), open_turn("opus", "Bash"));
    world.write(&format!("{PROJECT}/bbbb.jsonl"), open_turn("sonnet", "Read"));
    // Another file with the first one's id, and the newest of all: what a subagent of the second one writes.
    world.write(".claude/projects/-w-copy/aaaa.jsonl", open_turn("a copy", "Copy"));
    world.write(&format!("{PROJECT}/bbbb/subagents/agent-1.jsonl"), open_turn("haiku", "Grep"));
    let work = |claude| {
        let work = world.found(claude)["work"].clone();
        ["model", "current_tool", "subagents"].map(|key| work[key].clone())
    };
    assert_eq!(work(&first), [json!("opus"), json!("Bash"), json!(0)]);
    assert_eq!(work(&second), [json!("sonnet"), json!("Read"), json!(1)]);

    // After `/clear` it is in another conversation.
    record(&world, &first, "cccc", json!({}));
    world.write(&format!("{PROJECT}/cccc.jsonl"), open_turn("fable", "Edit"));
    assert_eq!(work(&first), [json!("fable"), json!("Edit"), json!(0)]);

    // Where its own is not to be found, and there are two others with its id, it has none.
    record(&world, &first, "aaaa", json!({}));
    fs::remove_file(world.path(&format!("{PROJECT}/aaaa.jsonl"))).unwrap();
    world.write(".claude/projects/-w-other/aaaa.jsonl", open_turn("another copy", "Copy"));
    let undecided = world.found(&first);
    assert_eq!(undecided["work"]["input_tokens"], Value::Null, "{undecided:#}");
    assert_eq!(undecided["metrics"]["unmeasured"]["usage"], "2 transcripts have its id");

    let reports = world.run(&["status", "--json"]).json();
    let agents = reports["reports"].as_array().unwrap().iter().flat_map(|report| report["agents"].as_array().unwrap());
    let pids = [first.pid(), second.pid()];
    let mine: Vec<_> = agents.filter(|agent| pids.iter().any(|pid| agent["process_id"] == *pid)).collect();
    assert_eq!(mine.len(), 2, "a subagent is no row");
    assert_ne!(mine[0]["agent_id"], mine[1]["agent_id"]);
}

#[test]
fn case_of_a_slow_tool_is_work_and_no_question() {
    let world = World::new();
    let claude = claude(&world);
    record(&world, &claude, "aaaa", json!({"entrypoint": "sdk-ts"}));
    world.write(&format!("{PROJECT}/aaaa.jsonl"), open_turn("opus", "WebFetch"));
    let found = world.found(&claude);
    let activity = &found["activity"];
    assert_eq!((&activity["state"], &activity["inferred"]), (&json!("working"), &json!(true)), "{found:#}");
    assert!(found["metrics"]["cpu_percent"].as_f64().unwrap() < 1.0, "it does nothing meanwhile: {found:#}");
}

#[test]
fn case_of_a_renamed_field_is_unknown_and_not_zero() {
    let world = World::new();
    let claude = claude(&world);
    record(&world, &claude, "aaaa", json!({"phase": "busy"}));
    let answer =
        open_turn("opus", "Bash").replace("input_tokens", "prompt_tokens").replace("tool_use", "function_call");
    world.write(&format!("{PROJECT}/aaaa.jsonl"), answer);
    let found = world.found(&claude);
    let unmeasured = &found["metrics"]["unmeasured"];
    assert_eq!(unmeasured["evidence"], "the record of its process has no status", "{found:#}");
    assert_eq!(unmeasured["usage"], "there is no answer in its transcript yet", "{found:#}");
    for figure in ["input_tokens", "output_tokens", "cache_read_tokens", "current_tool", "context_used_percent"] {
        assert_eq!(found["work"][figure], Value::Null, "{figure}: {found:#}");
    }
    // And where a process is named by another field, the record is nobody's.
    let text = fs::read_to_string(world.path(&format!(".claude/sessions/{}.json", claude.pid()))).unwrap();
    world.write(&format!(".claude/sessions/{}.json", claude.pid()), text.replace("procStart", "started"));
    let found = world.found(&claude);
    let why = "its record does not say which process it belongs to";
    assert_eq!(
        (&found["work"]["input_tokens"], &found["metrics"]["unmeasured"]["usage"]),
        (&Value::Null, &json!(why)),
        "{found:#}"
    );
}
