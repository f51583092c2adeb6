//! `headcount serve`: MCP over stdio, in every version of the protocol.

use crate::mcp_client::{Client, LEGACY, MODERN};
use crate::world::{NO_PID, PATIENCE, World, ended, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount_tests::schema::faults;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const TOOLS: [&str; 6] =
    ["get_session_status", "list_sessions", "list_clients", "wait_for_attention", "register_agent", "unregister_agent"];

/// A world with a session `shop` of one living agent and one that is gone.
fn shop() -> (World, headcount::demo::stand_in::StandIn, std::path::PathBuf) {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("reviewer", idle.pid()), ("gone", NO_PID)]);
    (world, idle, roster)
}

#[test]
fn every_version_is_answered_in_its_own_way() {
    let (world, _idle, roster) = shop();
    for version in LEGACY {
        let mut client = Client::start(&world, &[&roster], &[]);
        let said = client.greet(version);
        assert_eq!((&said["protocolVersion"], &said["serverInfo"]["name"]), (&version.into(), &"headcount".into()));
        assert!(said["capabilities"]["tools"].is_object(), "{said:#}");
        let result = client.call("get_session_status", json!({"session_id": "shop"}));
        let text = result["content"][0]["text"].as_str().unwrap();
        if version < "2025-06-18" {
            let report: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                (&report["session_id"], &result["structuredContent"]),
                (&"shop".into(), &Value::Null),
                "{version}"
            );
        } else {
            assert!(text.starts_with("Session shop: DEGRADED"), "{version}: {text}");
            assert_eq!(result["structuredContent"]["session_id"], "shop", "{version}");
        }
    }
    let mut client = Client::start(&world, &[&roster], &[]);
    let said = client.greet(MODERN);
    assert!(said["supportedVersions"].as_array().unwrap().contains(&MODERN.into()), "{said:#}");
    assert_eq!(client.structured("get_session_status", json!({"session_id": "shop"}))["agent_count"], 2);
}

#[test]
fn each_tool_answers_as_its_schema_says() {
    let (world, idle, roster) = shop();
    for version in ["2025-11-25", MODERN] {
        let mut client = Client::connect(&world, &[&roster], version);
        let tools = client.result("tools/list", json!({}))["tools"].take();
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, TOOLS);
        let declared = json!({"session_id": "docs", "agent_name": "writer", "process_id": idle.pid()});
        for (name, arguments, read_only) in [
            ("get_session_status", json!({"session_id": "shop"}), true),
            (
                "get_session_status",
                json!({"session_id": "shop", "include_metrics": false, "include_health": false}),
                true,
            ),
            ("list_sessions", json!({}), true),
            ("list_clients", json!({}), true),
            ("list_clients", json!({"state": "all", "limit": null, "cursor": null}), true),
            ("wait_for_attention", json!({"session_id": "shop"}), true),
            ("wait_for_attention", json!({"session_id": "shop", "since": null, "timeout_s": 5}), true),
            ("register_agent", declared, false),
            ("unregister_agent", json!({"session_id": "docs", "agent_name": "writer"}), false),
        ] {
            let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
            assert_eq!(tool["annotations"]["readOnlyHint"], read_only, "{name}");
            assert!(tool["title"].is_string() && tool["description"].as_str().unwrap().len() > 40, "{name}");
            assert_eq!(faults(&tool["inputSchema"], &arguments), Vec::<String>::new(), "{name}");
            let answer = client.structured(name, arguments);
            assert_eq!(faults(&tool["outputSchema"], &answer), Vec::<String>::new(), "{name}: {answer:#}");
        }
    }
}

#[test]
fn a_caller_chooses_what_is_shown() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    let mut ask = |arguments: Value| client.structured("get_session_status", arguments);
    let report = ask(json!({"session_id": "shop", "include_metrics": false}));
    assert!(report["agents"][0].get("metrics").is_none() && report["agents"][0]["health"].is_object());
    let report = ask(json!({"session_id": "shop", "include_health": false}));
    assert!(report["agents"][0].get("health").is_none() && report["agents"][0]["metrics"].is_object());
    let report = ask(json!({"session_id": "shop", "only": ["dead", "waiting_for_input"]}));
    assert_eq!((report["agents"].as_array().unwrap().len(), &report["agent_count"]), (1, &2.into()));
    assert_eq!(report["agents"][0]["agent_name"], "gone");
}

#[test]
fn a_registered_agent_is_in_the_very_next_answer() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    for round in ["a", "b"] {
        let agent = json!({"session_id": "shop", "agent_name": round});
        let done = client.structured("register_agent", agent.clone());
        assert_eq!((&done["success"], &done["replaced"]), (&true.into(), &false.into()));
        let report = client.structured("get_session_status", json!({"session_id": "shop"}));
        assert!(report["agents"].as_array().unwrap().iter().any(|a| a["agent_id"] == done["agent_id"]), "{report:#}");
        assert_eq!(client.structured("unregister_agent", agent.clone())["removed"], true);
        let report = client.structured("get_session_status", json!({"session_id": "shop"}));
        assert_eq!(report["agent_count"], 2, "{report:#}");
        assert_eq!(client.structured("unregister_agent", agent)["removed"], false);
    }
    let error = client.failure("register_agent", json!({"session_id": "s", "agent_name": "x", "process_id": NO_PID}));
    assert!(error.contains(&format!("no process {NO_PID}")), "{error}");
}

#[test]
fn progress_is_told_to_those_who_ask() {
    let (world, _idle, roster) = shop();
    for version in ["2024-11-05", MODERN] {
        let mut client = Client::connect(&world, &[&roster], version);
        client.call("get_session_status", json!({"session_id": "shop"}));
        assert_eq!(client.notifications, Vec::<Value>::new(), "{version}");
        let call = json!({
            "name": "get_session_status", "arguments": {"session_id": "shop"}, "_meta": {"progressToken": "mine"}
        });
        client.result("tools/call", call);
        let steps: Vec<f64> = client
            .notifications
            .iter()
            .map(|n| {
                assert_eq!(
                    (&n["method"], &n["params"]["progressToken"]),
                    (&"notifications/progress".into(), &"mine".into())
                );
                n["params"]["progress"].as_f64().unwrap()
            })
            .collect();
        assert!(steps.len() >= 2 && steps.is_sorted_by(|a, b| a < b), "{version}: {steps:?}");
        let last = client.notifications.last().unwrap();
        assert_eq!(last["params"]["total"], last["params"]["progress"], "{version}");
    }
}

#[test]
fn a_call_can_be_withdrawn() {
    for version in ["2025-11-25", MODERN] {
        let (world, _idle, roster) = shop();
        let mut client = Client::connect(&world, &[&roster], version);
        // The first tick takes two samples, so the first call waits long enough to be withdrawn.
        let call = json!({"name": "get_session_status", "arguments": {"session_id": "shop"}});
        let withdrawn = client.send("tools/call", call);
        client.cancel(withdrawn);
        assert_eq!(client.structured("get_session_status", json!({"session_id": "shop"}))["session_id"], "shop");
        assert!(client.notifications.iter().all(|n| n["id"] != withdrawn), "{:#?}", client.notifications);
        assert_eq!(client.close(PATIENCE).0, Some(0));
        let log = fs::read_to_string(world.state().join("audit.jsonl")).unwrap();
        let line = |line: &str| serde_json::from_str::<Value>(line).unwrap()["outcome"].take();
        let outcomes: Vec<Value> = log.lines().map(line).collect();
        assert_eq!(outcomes, ["cancelled", "ok"], "{version}: {log}");
    }
}

#[test]
fn a_wrong_call_says_what_to_do() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    for (arguments, said) in [
        (json!({"session_id": "shpo"}), &["no session `shpo`", "shop"][..]),
        (json!({"session_id": ""}), &["session_id", "empty"]),
        (json!({"session_id": "a\u{1b}[2J"}), &["control character"]),
        (json!({"session_id": 7}), &["session_id", "string", "get_session_status takes"]),
        (json!({}), &["session_id", "required"]),
        (json!({"session_id": "shop", "sesion": 1}), &["sesion", "get_session_status takes"]),
        (json!({"session_id": "shop", "only": ["sleepy"]}), &["sleepy", "waiting_for_input"]),
        (json!({"session_id": "shop", "limit": 0}), &["limit", "1 to 5000"]),
        (json!({"session_id": "shop", "cursor": "x"}), &["cursor", "next_cursor"]),
    ] {
        let text = client.failure("get_session_status", arguments.clone());
        for part in said {
            assert!(text.contains(part), "{arguments}: {part} in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    let answer = client.ask("tools/call", json!({"name": "get_sesion_status", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "an unknown tool is the client's mistake: {answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("get_session_status"), "{answer}");
}

#[test]
fn pages_cover_every_agent_once_while_agents_come_and_go() {
    let world = World::new();
    let mut idle: Vec<_> = (0..6).map(|_| stand_in(Behaviour::Idle)).collect();
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut agents: Vec<(&str, u32)> = names.iter().zip(&idle).map(|(name, it)| (*name, it.pid())).collect();
    // The start of one that is gone is not known.
    agents.extend([("gone", NO_PID), ("lost", NO_PID + 1)]);
    let roster = world.roster("s", &agents);
    let mut client = Client::connect(&world, &[&roster], MODERN);
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = Value::Null;
    for page in 0.. {
        assert!(page < 10, "pages without end: {seen:?}");
        let mut arguments = json!({"session_id": "s", "limit": 2});
        if cursor.is_string() {
            arguments["cursor"] = cursor;
        }
        let mut report = client.structured("get_session_status", arguments);
        let listed = report["agents"].as_array().unwrap();
        seen.extend(listed.iter().map(|agent| agent["agent_name"].as_str().unwrap().to_owned()));
        assert_eq!(report["truncated"], report["next_cursor"].is_string());
        cursor = report["next_cursor"].take();
        if cursor.is_null() {
            break;
        }
        match page {
            // One that is still to be listed ends; the one at which the page ended is declared no more.
            0 => idle[5].kill().unwrap(),
            1 => drop(world.roster("s", &agents.iter().copied().filter(|(n, _)| *n != seen[3]).collect::<Vec<_>>())),
            _ => {}
        }
    }
    seen.sort();
    assert_eq!(seen, ["a", "b", "c", "d", "e", "f", "gone", "lost"]);
}

#[test]
fn the_end_of_input_ends_the_server_and_nothing_is_lost() {
    let (world, _idle, roster) = shop();
    for version in ["2025-06-18", MODERN] {
        let mut client = Client::connect(&world, &[&roster], version);
        let call = json!({"name": "get_session_status", "arguments": {"session_id": "shop"}});
        let asked = client.send("tools/call", call);
        let (code, rest) = client.close(Duration::from_secs(5));
        assert_eq!(code, Some(0), "{version}");
        let answered = rest.iter().any(|line| serde_json::from_str::<Value>(line).unwrap()["id"] == asked);
        assert!(answered, "{version}: {rest:?}");
    }
    let silent = Client::start(&world, &[], &[]);
    assert_eq!(silent.close(Duration::from_secs(5)), (Some(0), vec![]));
}

#[test]
fn an_idle_server_ends_at_once_when_its_client_does() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    client.call("list_sessions", json!({}));
    assert_eq!(client.close(Duration::from_secs(2)).0, Some(0));
}

#[test]
fn garbage_is_survived() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], "2025-11-25");
    let long = "x".repeat(100_000);
    for line in ["", "hello", "{", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "\u{0}\u{1b}[2J", &long] {
        client.send_line(line);
    }
    assert_eq!(client.structured("get_session_status", json!({"session_id": "shop"}))["session_id"], "shop");
    let unknown = client.ask("no/such/method", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

#[test]
fn a_client_that_vanishes_ends_the_server() {
    let (world, _idle, roster) = shop();
    let mut command = world.command(&["serve", "--roster", roster.to_str().unwrap()]);
    let mut server = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop((server.stdin.take(), server.stdout.take()));
    ended(&mut server, PATIENCE);
}

#[test]
fn nothing_but_messages_is_on_stdout_even_where_everything_is_logged() {
    let (world, _idle, roster) = shop();
    let mut client = Client::start(&world, &[&roster], &[("RUST_LOG", "debug")]);
    client.greet("2025-11-25");
    client.send_line("garbage");
    client.call("get_session_status", json!({"session_id": "shop"}));
    client.failure("get_session_status", json!({"session_id": "nobody"}));
    let (code, rest) = client.close(PATIENCE);
    assert_eq!((code, rest), (Some(0), vec![]));
}

#[test]
fn a_server_without_a_place_for_its_state_still_answers() {
    let (world, _idle, roster) = shop();
    world.write("state", "a file where a folder should be");
    let state = world.path("state/headcount");
    let variables = [("HEADCOUNT_STATE_DIR", state.to_str().unwrap())];
    let mut client = Client::start(&world, &[Path::new(&roster)], &variables);
    client.greet(MODERN);
    let report = client.structured("get_session_status", json!({"session_id": "shop"}));
    assert_eq!((&report["agent_count"], &report["partial"]), (&2.into(), &true.into()), "{report:#}");
    let error = client.failure("register_agent", json!({"session_id": "s", "agent_name": "x"}));
    assert!(error.contains("state"), "{error}");
}
