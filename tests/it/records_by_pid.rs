//! What the records say of agents that put a process's number into a file's name: by stand-ins with records of the tests' own.

use crate::world::{World, posing_as, start_of};
use serde_json::{Value, json};
use std::fs;

/// An event for each of these.
fn lines(events: &[(&str, Value)]) -> String {
    let line = |(kind, data): &(&str, Value)| {
        let timestamp = jiff::Timestamp::now().to_string();
        format!("{}\n", json!({"id": "e", "timestamp": timestamp, "type": kind, "data": data}))
    };
    events.iter().map(line).collect()
}

#[test]
fn copilot_waits_for_a_person_until_they_answer() {
    let world = World::new();
    let elsewhere = world.path("elsewhere");
    for (variable, folder) in [("OTHER_HOME", ".copilot"), ("COPILOT_HOME", "elsewhere")] {
        let copilot = posing_as("copilot", &world, |command| {
            command.env(variable, &elsewhere);
        });
        let session = format!("{folder}/session-state/5e55");
        let asked = [
            ("session.start", json!({"sessionId": "5e55"})),
            ("assistant.turn_start", json!({"turnId": "0"})),
            ("assistant.message", json!({"model": "gpt-5-mini", "content": "secret", "outputTokens": 7})),
            (
                "tool.execution_start",
                json!({"toolCallId": "t", "toolName": "bash", "arguments": {"command": "secret"}}),
            ),
            ("permission.requested", json!({"requestId": "r", "permissionRequest": {"kind": "shell"}})),
        ];
        world.write(&format!("{session}/inuse.{}.lock", copilot.pid()), "");
        world.write(&format!("{session}/events.jsonl"), lines(&asked));
        let waiting = world.found(&copilot);
        let activity = &waiting["activity"];
        assert_eq!(
            (&activity["state"], &activity["reason"]),
            (&json!("waiting_for_input"), &json!("permission prompt"))
        );
        assert_eq!((&activity["decided_by"], &activity["inferred"]), (&json!("own_record"), &json!(false)));
        let work = &waiting["work"];
        let known = (&work["model"], &work["output_tokens"], &work["input_tokens"], &work["current_tool"]);
        assert_eq!(known, (&json!("gpt-5-mini"), &json!(7), &Value::Null, &json!("bash")), "{work:#}");
        assert!(waiting["metrics"]["unmeasured"]["input_tokens"].is_string(), "{waiting:#}");
        assert!(!waiting.to_string().contains("secret"));

        let answered =
            [&asked[..], &[("permission.completed", json!({"requestId": "r", "result": {"kind": "approved"}}))]];
        world.write(&format!("{session}/events.jsonl"), lines(&answered.concat()));
        assert_eq!(world.found(&copilot)["activity"]["state"], "working");
    }
}

#[test]
fn qwen_has_used_what_the_chat_of_its_registered_session_says() {
    let world = World::new();
    let qwen = posing_as("qwen", &world, |_| {});
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace = namespace.to_str().unwrap().trim_start_matches("pid:[").trim_end_matches(']');
    let record = |start: u64| {
        json!({
            "schemaVersion": 1, "pid": qwen.pid(), "procStart": format!("{}:{start}", boot.trim()),
            "pidNs": namespace.parse::<u64>().unwrap(), "sessionId": "8e016be8-5b48", "cwd": "/w", "ipcToken": "secret",
        })
    };
    let usage = json!({"promptTokenCount": 500, "cachedContentTokenCount": 100, "candidatesTokenCount": 20});
    let answer =
        json!({"type": "assistant", "model": "qwen3-coder-plus", "contextWindowSize": 2000, "usageMetadata": usage});
    world.write(".qwen/projects/-w/chats/8e016be8-5b48.jsonl", format!("{answer}\n"));
    let start = start_of(qwen.pid()).unwrap();
    let file = format!(".qwen/sessions/{}.json", qwen.pid());

    world.write(&file, record(start - 1).to_string());
    let other = world.found(&qwen);
    assert_eq!(other["work"]["input_tokens"], Value::Null);
    let reason = other["metrics"]["unmeasured"]["evidence"].as_str().unwrap();
    assert!(reason.contains("earlier process"), "{reason}");

    world.write(&file, record(start).to_string());
    let own = world.found(&qwen);
    let work = &own["work"];
    let tokens =
        (&work["input_tokens"], &work["cache_read_tokens"], &work["output_tokens"], &work["context_used_percent"]);
    assert_eq!(tokens, (&json!(400), &json!(100), &json!(20), &json!(25.0)), "{own:#}");
    assert_eq!((&work["model"], &own["activity"]["decided_by"]), (&json!("qwen3-coder-plus"), &json!("process")));
    assert!(!own.to_string().contains("secret"));
}

#[test]
fn of_an_agent_whose_records_nobody_reads_that_is_said_and_the_report_is_whole() {
    let world = World::new();
    let amp = posing_as("amp", &world, |_| {});
    let found = world.found(&amp);
    let why = &found["metrics"]["unmeasured"];
    for field in ["evidence", "usage"] {
        assert_eq!(why[field], "headcount reads no records of amp", "{found:#}");
    }
    assert_eq!(why["mcp_servers"], "headcount reads no configuration of MCP servers of amp");
    let ours = |report: &&Value| report["agents"][0]["process_id"] == amp.pid();
    let reports = world.run(&["status", "--json"]).json();
    let report = reports["reports"].as_array().unwrap().iter().find(ours).unwrap_or_else(|| panic!("{reports:#}"));
    assert_eq!(report["partial"], false, "{report:#}");
    let session = report["session_id"].as_str().unwrap();
    let shown = world.run(&["status", session]).stdout;
    assert!(shown.contains("amp") && !shown.contains("tokens") && !shown.contains("MCP"), "{shown}");
}

#[test]
fn an_agent_without_hooks_says_once_what_would_tell_that_it_waits() {
    let world = World::new();
    let codex = posing_as("codex", &world, |_| {});
    let found = world.found(&codex);
    let why = found["metrics"]["unmeasured"]["waiting"].as_str().unwrap_or_else(|| panic!("{found:#}"));
    assert!(why.contains("headcount hook install codex"), "{why}");
}
