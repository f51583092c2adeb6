//! What Codex's rollouts say of it, in the report: by a stand-in that holds one open, as Codex does.

use crate::world::{World, posing_as, without_servers};
use headcount::demo::stand_in::StandIn;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;

/// Where rollouts are, below a home directory.
const FOLDER: &str = ".codex/sessions/2026/11/30";

/// A rollout without lines, open as Codex has it.
fn rollout(world: &World, name: &str) -> File {
    let path = world.write(&format!("{FOLDER}/rollout-{name}"), "");
    File::options().append(true).open(path).unwrap()
}

/// A process that is taken for Codex, and holds these files open as its output.
fn codex(world: &World, held: &[&File]) -> StandIn {
    posing_as("codex", world, |command| {
        if let Some(file) = held.first() {
            command.stdout(file.try_clone().unwrap());
        }
        if let Some(file) = held.get(1) {
            command.stderr(file.try_clone().unwrap());
        }
    })
}

/// Appends an event that happens now.
fn say(mut rollout: &File, kind: &str, payload: Value) {
    let timestamp = jiff::Timestamp::now();
    let line = json!({"timestamp": timestamp.to_string(), "type": kind, "payload": payload});
    writeln!(rollout, "{line}").unwrap();
}

#[test]
fn a_turn_is_work_until_it_ends() {
    let world = World::new();
    let file = rollout(&world, "mine.jsonl");
    let other = rollout(&world, "of-nobody.jsonl");
    say(&other, "event_msg", json!({"type": "task_started"}));
    let codex = codex(&world, &[&file]);
    say(&file, "session_meta", json!({"id": "u", "cwd": "/w", "source": "cli"}));
    say(&file, "turn_context", json!({"model": "gpt-5-codex\u{1b}[2J", "cwd": "/w"}));
    say(&file, "event_msg", json!({"type": "task_started"}));
    say(
        &file,
        "response_item",
        json!({"type": "function_call", "name": "shell", "arguments": "secret", "call_id": "c"}),
    );

    let working = world.found(&codex);
    let activity = &working["activity"];
    assert_eq!((&activity["state"], &activity["decided_by"]), (&json!("working"), &json!("transcript")), "{working:#}");
    assert_eq!(activity["inferred"], true, "it may wait for an approval");
    assert!(activity["reason"].as_str().unwrap().contains("approvals"), "{activity}");
    assert_eq!((&working["work"]["current_tool"], &working["work"]["model"]), (&json!("shell"), &json!("gpt-5-codex")));

    let total = json!({"input_tokens": 1000, "cached_input_tokens": 600, "output_tokens": 50});
    let info =
        json!({"total_token_usage": total, "last_token_usage": {"total_tokens": 500}, "model_context_window": 2000});
    say(&file, "response_item", json!({"type": "function_call_output", "call_id": "c", "output": "secret"}));
    say(&file, "event_msg", json!({"type": "token_count", "info": info}));
    say(&file, "event_msg", json!({"type": "task_complete", "last_agent_message": "secret"}));

    let idle = world.found(&codex);
    assert_eq!(idle["activity"]["state"], "idle", "{idle:#}");
    assert_eq!(idle["activity"]["inferred"], false);
    let expected = json!({
        "model": "gpt-5-codex", "input_tokens": 400, "output_tokens": 50, "cache_read_tokens": 600,
        "cache_write_tokens": null, "context_used_percent": 25.0, "current_tool": null, "subagents": 0, "mcp_servers": null,
    });
    assert_eq!(without_servers(&idle["work"]), expected);
    assert!(!idle.to_string().contains("secret"));
}

#[test]
fn subagents_are_told_from_conversations() {
    let world = World::new();
    let [mine, helper] = ["mine.jsonl", "helper.jsonl"].map(|name| rollout(&world, name));
    let codex = codex(&world, &[&mine, &helper]);
    say(&mine, "session_meta", json!({"id": "a", "source": "cli"}));
    say(&helper, "session_meta", json!({"id": "b", "source": {"subagent": {"thread_spawn": {"depth": 1}}}}));
    say(&helper, "event_msg", json!({"type": "task_started"}));
    say(&mine, "turn_context", json!({"model": "gpt-5"}));
    say(&mine, "event_msg", json!({"type": "turn_aborted", "reason": "interrupted"}));
    let found = world.found(&codex);
    assert_eq!((&found["activity"]["state"], &found["activity"]["reason"]), (&json!("idle"), &json!("aborted")));
    assert_eq!((&found["work"]["model"], &found["work"]["subagents"]), (&json!("gpt-5"), &json!(1)), "{found:#}");
}

#[test]
fn what_is_not_known_is_said() {
    let world = World::new();
    let torn = rollout(&world, "old.jsonl.zst");
    write!(&torn, "no zstd at all").unwrap();
    for (agent, why) in [(codex(&world, &[]), "no rollout open"), (codex(&world, &[&torn]), "cannot be unpacked")] {
        let found = world.found(&agent);
        assert_eq!(
            (&found["work"]["input_tokens"], &found["activity"]["decided_by"]),
            (&Value::Null, &json!("process")),
            "{found:#}"
        );
        let reason = found["metrics"]["unmeasured"]["evidence"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn a_rollout_is_one_also_where_a_link_has_led_to_it() {
    let world = World::new();
    fs::create_dir_all(world.path("real/2026/11/30")).unwrap();
    fs::create_dir_all(world.path(".codex")).unwrap();
    std::os::unix::fs::symlink(world.path("real"), world.path(".codex/sessions")).unwrap();
    let (mine, other) = (rollout(&world, "mine.jsonl"), rollout(&world, "other.jsonl"));
    say(&mine, "session_meta", json!({"id": "u", "source": "cli"}));
    say(&mine, "event_msg", json!({"type": "task_started"}));
    say(&other, "log", json!({}));
    let codex = codex(&world, &[&mine, &other]);
    assert_eq!(world.found(&codex)["activity"]["state"], "working");
}

#[test]
fn a_rollout_that_is_renamed_or_removed_while_it_is_open_is_said_to_be() {
    let world = World::new();
    let file = rollout(&world, "mine.jsonl");
    say(&file, "session_meta", json!({"id": "u", "source": "cli"}));
    say(&file, "event_msg", json!({"type": "task_started"}));
    let codex = codex(&world, &[&file]);
    let path = world.path(&format!("{FOLDER}/rollout-mine.jsonl"));
    let renamed = world.path(&format!("{FOLDER}/rollout-mine.jsonl.old"));
    let why = || {
        let found = world.found(&codex);
        assert_eq!(
            (&found["work"]["model"], &found["work"]["input_tokens"]),
            (&Value::Null, &Value::Null),
            "{found:#}"
        );
        found["metrics"]["unmeasured"]["usage"].as_str().unwrap().to_owned()
    };
    fs::rename(&path, &renamed).unwrap();
    assert!(why().contains("another name"), "{}", why());
    fs::remove_file(&renamed).unwrap();
    fs::write(&path, "").unwrap();
    assert!(why().contains("was removed"), "{}", why());
}

#[test]
fn a_turn_that_an_earlier_process_left_open_is_no_work() {
    let world = World::new();
    let mut file = rollout(&world, "resumed.jsonl");
    let context = json!({"timestamp": "2020-01-01T00:00:00Z", "type": "turn_context", "payload": {"model": "gpt-5"}});
    let started =
        json!({"timestamp": "2020-01-01T00:00:01Z", "type": "event_msg", "payload": {"type": "task_started"}});
    writeln!(file, "{context}\n{started}").unwrap();
    let resumed = codex(&world, &[&file]);
    let found = world.found(&resumed);
    assert_eq!((&found["activity"]["decided_by"], &found["work"]["model"]), (&json!("process"), &json!("gpt-5")));
    say(&file, "event_msg", json!({"type": "task_started"}));
    assert_eq!(world.found(&resumed)["activity"]["decided_by"], "transcript");
}

#[test]
fn a_rollout_that_two_processes_hold_is_shown_of_neither() {
    let world = World::new();
    let file = rollout(&world, "mine.jsonl");
    let (one, two) = (codex(&world, &[&file]), codex(&world, &[&file]));
    say(&file, "event_msg", json!({"type": "task_started"}));
    for (it, other) in [(&one, &two), (&two, &one)] {
        let said = world.found(it);
        let why = format!("its conversation is that of process {} too", other.pid());
        assert_eq!(said["metrics"]["unmeasured"]["usage"], why, "{said:#}");
        assert_eq!(
            (&said["work"]["input_tokens"], &said["activity"]["decided_by"]),
            (&Value::Null, &json!("process")),
            "{said:#}"
        );
    }
}
