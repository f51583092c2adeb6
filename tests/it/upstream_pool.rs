//! The sessions that a running program keeps with upstream servers: they tell of agents, and keep nobody waiting.

use crate::http_client::{Server, token};
use crate::mcp_client::{Client, LEGACY, MODERN};
use crate::world::{HEADCOUNT, PATIENCE, World, descendants, ended, finish, state, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// An upstream that is a stand-in with these manners, asked every 100 ms for what the file of its name holds.
fn upstream(world: &World, name: &str, manners: &str, more: &str) -> String {
    let file = world.path(&format!("{name}.json"));
    let arguments = format!("arguments = {{ file = {file:?} }}");
    asked(name, manners, &format!("tool = \"echo\", {arguments}, {more}"))
}

/// An upstream that is a stand-in with these manners, and asked so.
fn asked(name: &str, manners: &str, how: &str) -> String {
    format!(
        r#"
        [[upstream]]
        name = "{name}"
        command = "{HEADCOUNT}"
        args = ["stand-in-server", {manners}]
        close_grace = "200ms"
        agents_from = {{ every = "100ms", map = {{ agents = "/agents", id = "/id", activity = "/doing" }}, {how} }}
        "#
    )
}

fn world(upstreams: impl Fn(&World) -> Vec<String>) -> World {
    let world = World::new();
    let config = upstreams(&world).concat();
    world.write(".config/headcount/config.toml", format!("[sampling]\nupstream_deadline = \"500ms\"\n{config}"));
    world
}

/// Has the stand-in of this name tell of these agents.
fn tells(world: &World, name: &str, agents: &[(&str, &str)]) {
    let agents: Vec<_> = agents.iter().map(|(id, doing)| json!({"id": id, "doing": doing})).collect();
    let new = world.write(&format!("{name}.new"), json!({"agents": agents}).to_string());
    fs::rename(new, world.path(&format!("{name}.json"))).unwrap();
}

/// What is wrong with a source, as far as anything is.
fn wrong(answer: &Value, source: &str) -> Option<String> {
    let sources = answer["sources"].as_array().unwrap_or_else(|| panic!("no sources: {answer:#}"));
    let of = sources.iter().find(|of| of["name"] == source).unwrap_or_else(|| panic!("no {source}: {answer:#}"));
    of["error"].as_str().map(str::to_owned)
}

/// Asks until it is answered so.
fn ask_until(client: &mut Client, session: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let answer = client.call("get_session_status", json!({"session_id": session}));
        if is_so(&answer["structuredContent"]) {
            return answer["structuredContent"].clone();
        }
        assert!(start.elapsed() < PATIENCE, "it does not come to that: {answer:#}");
    }
}

/// The name and activity of each agent.
fn agents(report: &Value) -> Vec<(&str, &str)> {
    let agents = report["agents"].as_array().into_iter().flatten();
    agents.map(|a| (a["agent_name"].as_str().unwrap(), a["activity"]["state"].as_str().unwrap())).collect()
}

/// The upstream sessions that the only running server keeps, as `upstream list` shows them.
fn kept(world: &World) -> Vec<Value> {
    let listed = world.run(&["upstream", "list", "--timeout", "10s", "--json"]).json();
    let servers = listed["servers"].as_array().unwrap();
    servers.iter().flat_map(|server| server["upstreams"].as_array().unwrap()).cloned().collect()
}

/// The stand-in servers below a process, and what those have started.
fn servers(of: u32) -> Vec<(u32, u64)> {
    let is_one = |pid: u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("stand-in-server") || line.starts_with("sleep")
    };
    descendants(of).into_iter().filter(|(pid, _)| is_one(*pid)).collect()
}

fn is_gone(process: (u32, u64)) -> bool {
    crate::world::start_of(process.0) != Some(process.1) || state(process.0) == Some('Z')
}

#[test]
fn a_server_answers_while_one_upstream_hangs_and_another_tells_of_its_agents() {
    let world = world(|world| {
        vec![upstream(world, "good", "", ""), asked("hanging", r#""--hangs", "--stays""#, r#"tool = "echo""#)]
    });
    tells(&world, "good", &[("ada", "working"), ("bob", "idle")]);
    for version in [MODERN, LEGACY[3]] {
        let start = Instant::now();
        let mut client = Client::connect(&world, &[], version);
        let first = client.structured("list_sessions", json!({}));
        assert!(start.elapsed() < PATIENCE / 2, "the first answer waits for the upstream that hangs");
        assert_eq!(wrong(&first, "upstream:hanging").as_deref(), Some("no answer yet"));
        let report = ask_until(&mut client, "good", |report| agents(report).len() == 2);
        assert_eq!(agents(&report), [("ada", "working"), ("bob", "idle")]);
        assert_eq!(wrong(&report, "upstream:good"), None);
        let mut took: Vec<_> = (0..50)
            .map(|_| {
                let start = Instant::now();
                client.structured("get_session_status", json!({"session_id": "good"}));
                start.elapsed()
            })
            .collect();
        took.sort_unstable();
        assert!(took[25] < Duration::from_millis(100), "an answer takes {:?}", took[25]);
        let processes = servers(client.pid());
        assert_eq!(processes.len(), 2);
        assert_eq!(client.close(PATIENCE).0, Some(0));
        assert!(processes.into_iter().all(is_gone), "an upstream is left behind");
    }
}

#[test]
fn what_was_last_heard_stays_with_its_age_until_nobody_knows_any_more() {
    let world = world(|world| vec![upstream(world, "good", "", r#"stale_after = "8s""#)]);
    tells(&world, "good", &[("ada", "working")]);
    let mut client = Client::connect(&world, &[], MODERN);
    ask_until(&mut client, "good", |report| agents(report) == [("ada", "working")]);
    tells(&world, "good", &[("ada", "idle"), ("eve", "working")]);
    ask_until(&mut client, "good", |report| agents(report) == [("ada", "idle"), ("eve", "working")]);
    fs::remove_file(world.path("good.json")).unwrap();
    let silent = |report: &Value| wrong(report, "upstream:good").is_some();
    let report = ask_until(&mut client, "good", silent);
    assert!(wrong(&report, "upstream:good").unwrap().starts_with("no answer since 20"), "{report:#}");
    assert_eq!(agents(&report), [("ada", "idle"), ("eve", "working")], "the last that is known");
    let report = ask_until(&mut client, "good", |report| agents(report)[0].1 == "unknown");
    assert!(report.to_string().contains("good has not answered for"), "{report:#}");
    assert_eq!(agents(&report).len(), 2);
}

#[test]
fn an_upstream_that_was_killed_is_connected_anew_and_seen_in_the_list() {
    let world = world(|world| vec![upstream(world, "good", "", "")]);
    tells(&world, "good", &[("ada", "working")]);
    let mut client = Client::connect(&world, &[], MODERN);
    ask_until(&mut client, "good", |report| agents(report).len() == 1);
    let before = servers(client.pid());
    kill(Pid::from_raw(before[0].0.cast_signed()), Signal::SIGKILL).unwrap();
    tells(&world, "good", &[("ada", "working"), ("bob", "idle")]);
    ask_until(&mut client, "good", |report| agents(report).len() == 2);
    assert_ne!(servers(client.pid()), before);
    let start = Instant::now();
    let row = loop {
        let rows = kept(&world);
        assert_eq!(rows.len(), 1);
        if rows[0]["state"] == "ready" && rows[0]["reconnects"] == 1 {
            break rows[0].clone();
        }
        assert!(start.elapsed() < PATIENCE, "{rows:#?}");
    };
    assert_eq!((&row["name"], &row["agents"]["count"], &row["tools"]), (&json!("good"), &json!(2), &json!(12)));
    assert_eq!(row["last_error"], "the server has ended: signal 9");
    assert!(row["calls"].as_u64() > Some(2), "{row:#}");
    let table = world.run(&["upstream", "list"]).stdout;
    assert!(table.contains(&format!("kept by server {}", client.pid())), "{table}");
    client.close(PATIENCE);
    assert_eq!(kept(&world), Vec::<Value>::new());
}

#[test]
fn whoever_misbehaves_is_said_to_and_harms_nobody_else() {
    let world = world(|world| {
        vec![
            upstream(world, "good", "", ""),
            asked("dying", "", r#"tool = "die", arguments = { n = 4 }"#),
            asked("flooding", "", r#"tool = "big", arguments = { n = 30000000 }"#),
            asked("failing", "", r#"tool = "fail""#),
            upstream(world, "talking", "", ""),
            upstream(world, "late", "", ""),
            "[[upstream]]\nname = \"nowhere\"\ncommand = \"/nowhere/at-all\"\nagents_from = { tool = \"x\" }\n".into(),
        ]
    });
    tells(&world, "good", &[("ada", "working")]);
    world.write("talking.json", "[\"nobody\"]");
    let mut client = Client::connect(&world, &[], MODERN);
    let all = ["dying", "flooding", "failing", "talking", "nowhere"].map(|name| format!("upstream:{name}"));
    let start = Instant::now();
    let listed = loop {
        // Of all upstreams: that one of them fails is nothing that a session of another one lacks.
        let listed = client.structured("list_sessions", json!({}));
        if all.iter().all(|of| wrong(&listed, of).is_some_and(|why| why != "no answer yet")) {
            break listed;
        }
        assert!(start.elapsed() < PATIENCE, "{listed:#}");
    };
    for (name, words) in [
        ("dying", "exit code 4"),
        ("flooding", "more than 16 MiB"),
        ("nowhere", "cannot be started"),
        ("late", "no answer yet"),
    ] {
        let why = wrong(&listed, &format!("upstream:{name}")).unwrap();
        assert!(why.contains(words), "{name}: {why}");
    }
    let report = ask_until(&mut client, "good", |report| agents(report) == [("ada", "working")]);
    assert_eq!((wrong(&report, "upstream:good"), &report["partial"]), (None, &json!(false)));
    let states: Vec<_> = kept(&world).iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states.len(), 7);
    assert!(states.iter().all(|state| ["ready", "failed", "unknown"].contains(&state.as_str())), "{states:?}");
}

#[test]
fn what_looks_once_waits_for_answers_a_moment_and_leaves_nothing_behind() {
    let world = world(|world| {
        vec![upstream(world, "good", "", ""), asked("hanging", r#""--hangs", "--stays""#, r#"tool = "echo""#)]
    });
    tells(&world, "good", &[("ada", "working")]);
    for args in [&["status", "--json"][..], &["sessions", "--json"]] {
        let ran = world.run(args);
        let answer = ran.json();
        assert_eq!(wrong(&answer, "upstream:hanging").as_deref(), Some("no answer within 500 ms yet"), "{ran:#?}");
        assert!(ran.stdout.contains("\"good\""), "{ran:#?}");
    }
    let waited = world.run(&["wait", "good", "--timeout", "1s", "--json"]);
    assert_eq!((waited.code, &waited.json()["timed_out"]), (Some(1), &json!(true)), "{waited:#?}");
    assert_eq!(world.run(&["status", "good", "--json"]).json()["agents"][0]["agent_name"], "ada");
}

/// What a process has started, once it has.
fn started(of: &Child, how_many: usize) -> Vec<(u32, u64)> {
    until("the upstreams are started", || servers(of.id()).len() == how_many);
    servers(of.id())
}

#[test]
fn whoever_is_ended_by_a_signal_ends_its_upstreams_first() {
    let manners = r#""--stays", "--leaves-child""#;
    let world = world(|world| vec![upstream(world, "good", manners, "")]);
    let config = fs::read_to_string(world.path(".config/headcount/config.toml")).unwrap();
    world.write(".config/headcount/config.toml", config.replace("\"500ms\"", "\"1m\""));
    for (args, code) in [(&["status"][..], 130), (&["wait", "good"], 130), (&["serve", "--http", "127.0.0.1:0"], 0)] {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let mut child = world.command(args).spawn().unwrap();
            let processes = started(&child, 2);
            kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            assert_eq!(ended(&mut child, PATIENCE), Some(code), "{args:?}");
            assert!(processes.into_iter().all(is_gone), "{args:?} leaves something behind at {signal}");
        }
    }
}

#[test]
fn the_upstreams_of_a_server_that_is_killed_hear_that_nobody_is_there() {
    let world = world(|world| vec![upstream(world, "good", "", "")]);
    let client = Client::connect(&world, &[], MODERN);
    until("the upstream is started", || servers(client.pid()).len() == 1);
    let upstream = servers(client.pid())[0];
    client.kill();
    until("it has ended", || is_gone(upstream));
}

#[test]
fn without_agents_to_ask_for_nobody_is_connected() {
    let world = World::new();
    let marker = world.path("started");
    let config = format!("[[upstream]]\nname = \"tools\"\ncommand = \"touch\"\nargs = [{marker:?}]\n");
    world.write(".config/headcount/config.toml", config);
    assert_eq!(world.run(&["status", "--json"]).code, Some(0));
    let mut client = Client::connect(&world, &[], MODERN);
    client.structured("list_sessions", json!({}));
    let tasks = fs::read_dir(format!("/proc/{}/task", client.pid())).unwrap().flatten();
    let names: Vec<_> = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect();
    assert!(!names.iter().any(|name| name.trim() == "upstream"), "{names:?}");
    assert!(!Path::new(&marker).exists());
}

#[test]
fn the_doctor_says_whether_an_agent_list_is_understood() {
    let world = world(|world| vec![upstream(world, "good", "", ""), upstream(world, "talking", "", "")]);
    tells(&world, "good", &[("ada", "working")]);
    world.write("talking.json", "[\"nobody\"]");
    let findings = world.run(&["doctor", "--json"]).json();
    let of = |name: &str| {
        let found = findings["findings"].as_array().unwrap().iter();
        found.filter(|f| f["part"] == "upstream").find(|f| f["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (&of("good")["works"], of("good")["detail"].as_str().unwrap().ends_with(", 1 agents")),
        (&json!(true), true)
    );
    assert_eq!(of("talking")["works"], false);
    assert!(of("talking")["detail"].as_str().unwrap().contains("its agents: "), "{findings:#}");
}

#[test]
fn what_is_counted_of_upstreams_has_their_names() {
    let world = world(|world| {
        vec![
            upstream(world, "good", "", ""),
            "[[upstream]]\nname = \"nowhere\"\ncommand = \"/nowhere/at-all\"\nagents_from = { tool = \"x\" }\n".into(),
        ]
    });
    tells(&world, "good", &[("ada", "working")]);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&token(&world, "all", &["metrics:read", "status:read"]));
    let start = Instant::now();
    let text = loop {
        let text = connection.get("/metrics").text();
        if text.contains("headcount_upstream_agents_age_seconds{")
            && text.contains("{upstream=\"nowhere\",state=\"failed\"} 1")
        {
            break text;
        }
        assert!(start.elapsed() < PATIENCE, "{text}");
    };
    for line in [
        "headcount_upstream_state{upstream=\"good\",state=\"ready\"} 1",
        "headcount_upstream_state{upstream=\"good\",state=\"failed\"} 0",
        "headcount_upstream_connections_total{upstream=\"good\"} 1",
        "headcount_upstream_connections_total{upstream=\"nowhere\"} 0",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    assert!(!text.contains("agents_age_seconds{upstream=\"nowhere\"}"), "{text}");
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
}

#[test]
fn a_look_is_over_as_soon_as_all_have_answered() {
    let world = world(|world| vec![upstream(world, "good", "", "")]);
    let config = fs::read_to_string(world.path(".config/headcount/config.toml")).unwrap();
    world.write(".config/headcount/config.toml", config.replace("\"500ms\"", "\"1m\""));
    tells(&world, "good", &[("ada", "working")]);
    let start = Instant::now();
    let ran = finish(world.command(&["status", "good", "--json"]));
    assert_eq!(agents(&ran.json()), [("ada", "working")], "{ran:#?}");
    assert!(start.elapsed() < PATIENCE, "it waits to the deadline");
}
