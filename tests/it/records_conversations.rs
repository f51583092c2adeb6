//! Several conversations in one process, records that are compressed, and records that name no process, in the report: by a
//! shell that is taken for an agent, opens and closes files and sends events as it is told.

use crate::mcp_client::{Client, MODERN};
use crate::world::{HEADCOUNT, World, posing_as, until};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Where rollouts are, below a home directory.
const FOLDER: &str = ".codex/sessions/2026/11/30";

/// A shell under an agent's name that does what it is told; it ends with the test.
struct Told {
    child: Child,
    orders: ChildStdin,
}

impl Told {
    /// A shell that is taken for an agent of this kind, in a project of its own.
    fn posing_as(kind: &str, world: &World) -> Self {
        Self::started_with(kind, world, &[])
    }

    /// The same, with these at the end of its command line.
    fn started_with(kind: &str, world: &World, args: &[&str]) -> Self {
        let (project, program) = (world.path("project"), world.path(&format!("bin/{kind}")));
        headcount_tests::repository(&project);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy("/bin/sh", &program).unwrap();
        let mut command = Command::new(&program);
        command.args(["-c", "while read -r order; do eval \"$order\"; done", "sh"]).args(args);
        command.env_clear().env("HOME", world.path("")).current_dir(&project);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = headcount_tests::spawn(&mut command);
        let orders = child.stdin.take().unwrap();
        Self { child, orders }
    }

    /// Has it open a file for appending, as this descriptor.
    fn open(&mut self, descriptor: u32, file: &Path) {
        writeln!(self.orders, "exec {descriptor}>>'{}'", file.display()).unwrap();
        until("it is open", || self.target(descriptor).is_some_and(|target| target == fs::canonicalize(file).unwrap()));
    }

    /// Has it send an event of a hook, and waits until that is noted.
    fn tell(&mut self, world: &World, kind: &str, event: &Value) {
        let (file, sent) = (world.write("event.json", event.to_string()), world.path("sent"));
        let (file, marker) = (file.display(), sent.display());
        writeln!(self.orders, "'{HEADCOUNT}' hook {kind} <'{file}'; : >'{marker}'").unwrap();
        until("it is sent", || sent.exists());
        fs::remove_file(sent).unwrap();
    }

    fn close(&mut self, descriptor: u32) {
        writeln!(self.orders, "exec {descriptor}>&-").unwrap();
        until("it is closed", || self.target(descriptor).is_none());
    }

    fn target(&self, descriptor: u32) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/fd/{descriptor}", self.child.id())).ok()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn line(kind: &str, payload: Value) -> String {
    format!("{}\n", json!({"timestamp": jiff::Timestamp::now().to_string(), "type": kind, "payload": payload}))
}

/// The lines of a conversation with this model, in which these things have happened.
fn lines(model: &str, source: Value, events: &[&str]) -> String {
    let begin =
        [line("session_meta", json!({"id": "x", "source": source})), line("turn_context", json!({"model": model}))];
    let events = events.iter().map(|event| line("event_msg", json!({"type": event})));
    begin.into_iter().chain(events).collect()
}

fn uuid(n: u32) -> String {
    format!("0199c0de-0000-7000-8000-{n:012}")
}

fn rollout(world: &World, n: u32, ending: &str, content: impl AsRef<[u8]>) -> PathBuf {
    world.write(&format!("{FOLDER}/rollout-2026-11-30T10-00-0{n}-{}.{ending}", uuid(n)), content)
}

/// The report of the only session.
fn report(world: &World) -> Value {
    let reports = world.run(&["status", "--json"]).json();
    let project = fs::canonicalize(world.path("project")).unwrap();
    let mut all = reports["reports"].as_array().unwrap().iter();
    all.find(|report| report["root_path"] == project.to_str().unwrap()).unwrap_or_else(|| panic!("{reports:#}")).clone()
}

fn text<'r>(value: &'r Value, path: &str) -> &'r str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Of each agent its name, state and model.
fn rows(report: &Value) -> Vec<(&str, &str, &str)> {
    let row = |row| (text(row, "/agent_name"), text(row, "/activity/state"), text(row, "/work/model"));
    report["agents"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn an_app_server_with_three_conversations_is_three_rows() {
    let world = World::new();
    let mut server = Told::posing_as("codex", &world);
    let ended = ["task_started", "task_complete"];
    let files = [
        rollout(&world, 1, "jsonl", lines("gpt-1", json!("vscode"), &ended)),
        rollout(&world, 2, "jsonl", lines("gpt-2", json!("vscode"), &["task_started"])),
        rollout(&world, 3, "jsonl", lines("gpt-3", json!("vscode"), &ended)),
        rollout(
            &world,
            4,
            "jsonl",
            lines("gpt-4", json!({"subagent": {"thread_spawn": {"parent_thread_id": uuid(2)}}}), &["task_started"]),
        ),
    ];
    for (n, file) in (4..).zip(&files) {
        server.open(n, file);
    }
    let three = report(&world);
    let expected =
        [("codex", "idle", "gpt-1"), ("codex/000002", "working", "gpt-2"), ("codex/000003", "idle", "gpt-3")];
    assert_eq!(rows(&three), expected, "{three:#}");
    let agents = three["agents"].as_array().unwrap();
    let subagents: Vec<_> = agents.iter().map(|agent| &agent["work"]["subagents"]).collect();
    assert_eq!(subagents, [0, 1, 0]);
    let totals = &three["session_metrics"];
    assert_eq!((&totals["total_processes"], &totals["unmeasured_agents"]), (&json!(1), &json!(0)), "{three:#}");
    assert_eq!((&three["partial"], &three["session_health"]), (&json!(false), &json!("HEALTHY")));
    let id = agents[0]["agent_id"].as_str().unwrap();
    assert_eq!(agents[2]["agent_id"], format!("{id}-{}", uuid(3)));
    let shared = &agents[1]["metrics"]["unmeasured"]["process"];
    assert_eq!(
        (shared, &agents[1]["process_id"]),
        (&json!(format!("its processes are shared: see {id}")), &Value::Null)
    );

    let session = text(&three, "/session_id");
    let working = world.run(&["status", session, "--json", "--only", "working"]).json();
    assert_eq!(rows(&working), [expected[1]], "{working:#}");
    let first = world.run(&["status", session, "--json", "--limit", "2"]).json();
    assert_eq!((rows(&first).as_slice(), &first["truncated"]), (&expected[..2], &json!(true)));
    server.close(5);
    let two = report(&world);
    assert_eq!(rows(&two), [expected[0], expected[2]], "one that is closed leaves the list; its subagent is no row");
}

#[test]
fn a_conversation_that_was_gone_on_with_rests_until_a_turn_begins() {
    let world = World::new();
    let mut server = Told::posing_as("codex", &world);
    let old = |event: &str| {
        let payload = json!({"type": event});
        format!("{}\n", json!({"timestamp": "2020-01-01T00:00:00Z", "type": "event_msg", "payload": payload}))
    };
    let files = [
        rollout(&world, 1, "jsonl", lines("gpt", json!("vscode"), &["task_started"])),
        rollout(&world, 2, "jsonl", lines("gpt", json!("vscode"), &[]) + &old("task_started")),
        rollout(&world, 3, "jsonl", lines("gpt", json!("vscode"), &[]) + &old("task_complete")),
        rollout(&world, 5, "jsonl", lines("gpt", json!("vscode"), &[])),
    ];
    for (n, file) in (4..).zip(&files) {
        server.open(n, file);
    }
    let report = report(&world);
    let states: Vec<_> = rows(&report).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states, ["working", "idle", "idle", "idle"], "{report:#}");
    assert_eq!(report["agents"][1]["activity"]["reason"], "no turn since it was opened");
}

#[test]
fn who_waits_is_told_when_one_of_several_conversations_is_closed() {
    let world = World::new();
    let mut server = Told::posing_as("codex", &world);
    for n in 1..=3 {
        server.open(n + 3, &rollout(&world, n, "jsonl", lines("gpt", json!("vscode"), &["task_started"])));
    }
    let session = report(&world)["session_id"].as_str().unwrap().to_owned();
    let mut client = Client::connect(&world, &[], MODERN);
    let arguments = json!({"session_id": session, "timeout_s": 60});
    let call = json!({"name": "wait_for_attention", "arguments": arguments, "_meta": {"progressToken": 1}});
    let id = client.send("tools/call", call);
    assert_eq!(client.next().unwrap()["method"], "notifications/progress", "it waits");
    server.close(5);
    let answer = client.answer(id)["result"]["structuredContent"].take();
    let needs = answer["needs"].as_array().unwrap();
    assert_eq!((&needs[0]["kind"], &needs[0]["agent_name"]), (&json!("left"), &json!("codex/000002")), "{answer:#}");
    assert_eq!(needs.len(), 1, "{answer:#}");
}

#[test]
fn a_compressed_rollout_that_is_held_open_is_read_while_it_grows() {
    let world = World::new();
    let mut codex = Told::posing_as("codex", &world);
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.write_all(lines("gpt-5", json!("cli"), &["task_started"]).as_bytes()).unwrap();
    encoder.flush().unwrap();
    let file = rollout(&world, 1, "jsonl.zst", encoder.get_ref());
    codex.open(4, &file);
    assert_eq!(rows(&report(&world)), [("codex", "working", "gpt-5")]);
    encoder.write_all(line("event_msg", json!({"type": "task_complete"})).as_bytes()).unwrap();
    fs::write(&file, encoder.finish().unwrap()).unwrap();
    assert_eq!(rows(&report(&world)), [("codex", "idle", "gpt-5")]);
}

#[test]
fn a_rollout_that_a_server_of_codex_writes_to_as_well_is_shown_of_nobody() {
    let world = World::new();
    let file = rollout(&world, 1, "jsonl", lines("gpt-5", json!("cli"), &["task_started"]));
    let mut codex = Told::posing_as("codex", &world);
    codex.open(4, &file);
    assert_eq!(rows(&report(&world)), [("codex", "working", "gpt-5")]);
    // A shell whose script has the name of that command.
    let script = world.write("project/mcp-server", "while read -r order; do eval \"$order\"; done");
    let mut command = Command::new(world.path("bin/codex"));
    command.arg("mcp-server").current_dir(script.parent().unwrap()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = headcount_tests::spawn(&mut command);
    let orders = child.stdin.take().unwrap();
    let mut server = Told { child, orders };
    server.open(4, &file);
    let report = report(&world);
    let [agent] = report["agents"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    let why = format!("its conversation is that of process {} too", server.child.id());
    assert_eq!(text(agent, "/metrics/unmeasured/usage"), why, "{agent:#}");
}

#[test]
fn a_record_that_an_agent_sees_as_another_file_is_not_its_own() {
    // Without the right to make namespaces no process sees other files.
    if !Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|ran| ran.status.success()) {
        return;
    }
    let world = World::new();
    let (project, inner) = (world.path("project"), world.path("inner"));
    headcount_tests::repository(&project);
    fs::create_dir_all(world.path("bin")).unwrap();
    fs::copy("/bin/sh", world.path("bin/aider")).unwrap();
    fs::create_dir_all(&inner).unwrap();
    let script = r#"mount --bind "$1" "$2" && cd "$2" && exec "$3" -c 'read -r order'"#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).args([&inner, &project, &world.path("bin/aider")]);
    command.env("HOME", world.path("")).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = headcount_tests::spawn(&mut command);
    let orders = child.stdin.take().unwrap();
    let aider = Told { child, orders };
    let name = format!("/proc/{}/comm", aider.child.id());
    until("it runs", || fs::read_to_string(&name).is_ok_and(|comm| comm == "aider\n"));
    let began = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let chat = format!("\n# aider chat started at {began}\n\n> Main model: gpt-6 with diff edit format  \n");
    world.write("project/.aider.chat.history.md", &chat);
    world.write("inner/.aider.chat.history.md", &chat);
    let reports = world.run(&["status", "--json"]).json();
    let mut agents =
        reports["reports"].as_array().unwrap().iter().flat_map(|report| report["agents"].as_array().unwrap());
    let agent = agents.find(|agent| agent["process_id"] == aider.child.id()).unwrap_or_else(|| panic!("{reports:#}"));
    assert!(text(agent, "/metrics/unmeasured/usage").contains("lead elsewhere"), "{agent:#}");
}

#[test]
fn an_agent_whose_record_is_still_being_read_is_not_called_idle() {
    let world = World::new();
    let mut codex = Told::posing_as("codex", &world);
    // More than is unpacked in the looks of one command, in few bytes.
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(lines("gpt-5", json!("cli"), &["task_started"]).as_bytes()).unwrap();
    for _ in 0..40 {
        let filling = line("event_msg", json!({"type": "agent_message", "message": "x".repeat(1 << 20)}));
        encoder.write_all(filling.as_bytes()).unwrap();
    }
    let file = rollout(&world, 1, "jsonl.zst", encoder.finish().unwrap());
    assert!(File::open(&file).unwrap().metadata().unwrap().len() < 1 << 16);
    codex.open(4, &file);
    let report = report(&world);
    assert_eq!(rows(&report), [("codex", "unknown", "")], "{report:#}");
    let agent = &report["agents"][0];
    assert_eq!(agent["activity"]["reason"], "not measured: its record is still being read");
    assert_eq!(agent["metrics"]["unmeasured"]["usage"], "its record is still being read");
}

#[test]
fn gemini_s_chat_is_the_one_that_its_hooks_have_told() {
    let world = World::new();
    let mut gemini = Told::posing_as("gemini", &world);
    let id = uuid(7);
    let now = || jiff::Timestamp::now().to_string();
    let header = json!({"sessionId": id, "projectHash": "h", "startTime": now()});
    let tokens = json!({"input": 100, "cached": 40, "output": 7, "thoughts": 3});
    let answer = json!({"id": "2", "timestamp": now(), "type": "gemini", "content": "secret", "tokens": tokens, "model": "gemini-3"});
    let file = format!(".gemini/tmp/project/chats/session-2026-11-30T10-00-{}.jsonl", &id[..8]);
    world.write(&file, format!("{header}\n{answer}\n"));
    let untold = report(&world)["agents"][0].take();
    assert_eq!((&untold["work"]["input_tokens"], &untold["activity"]["decided_by"]), (&Value::Null, &json!("process")));
    assert!(text(&untold, "/metrics/unmeasured/evidence").contains("headcount hook install gemini"), "{untold:#}");
    gemini.tell(&world, "gemini", &json!({"session_id": id, "hook_event_name": "BeforeAgent", "prompt": "secret"}));
    let told = report(&world)["agents"][0].take();
    let work = &told["work"];
    let used = (&work["model"], &work["input_tokens"], &work["cache_read_tokens"], &work["output_tokens"]);
    assert_eq!(used, (&json!("gemini-3"), &json!(60), &json!(40), &json!(10)), "{told:#}");
    assert_eq!((text(&told, "/activity/state"), text(&told, "/activity/decided_by")), ("working", "hook"));
    assert!(!told.to_string().contains("secret"));
}

#[test]
fn cursor_s_transcript_is_the_one_that_its_command_line_or_its_hooks_name() {
    let world = World::new();
    let [one, two] = [uuid(1), uuid(2)];
    let file = |id: &str| format!(".cursor/projects/project/agent-transcripts/{id}/{id}.jsonl");
    let prompt = json!({"role": "user", "message": {"content": [{"type": "text", "text": "secret"}]}});
    let resumed = Told::started_with("cursor-agent", &world, &["--resume", &one]);
    world.write(&file(&one), format!("{prompt}\n"));
    let working = report(&world)["agents"][0].take();
    let activity = (text(&working, "/activity/state"), text(&working, "/activity/decided_by"));
    assert_eq!((activity, &working["activity"]["inferred"]), (("working", "transcript"), &json!(true)), "{working:#}");
    assert!(text(&working, "/metrics/unmeasured/usage").contains("neither models nor tokens"), "{working:#}");
    world.write(&file(&one), format!("{prompt}\n{}\n", json!({"type": "turn_ended", "status": "success"})));
    assert_eq!(text(&report(&world)["agents"][0], "/activity/state"), "idle");
    drop(resumed);

    let mut agent = Told::posing_as("cursor-agent", &world);
    world.write(&file(&two), format!("{prompt}\n"));
    let untold = report(&world)["agents"][0].take();
    assert!(text(&untold, "/metrics/unmeasured/evidence").contains("headcount hook install cursor"), "{untold:#}");
    agent.tell(&world, "cursor", &json!({"conversation_id": two, "hook_event_name": "stop", "status": "completed"}));
    world.write(&file(&two), format!("{prompt}\n{}\n", json!({"type": "turn_ended", "status": "aborted"})));
    let told = report(&world)["agents"][0].take();
    assert_eq!(text(&told, "/activity/state"), "idle", "{told:#}");
    assert!(!told["metrics"]["unmeasured"].to_string().contains("hook install"), "{told:#}");
    assert!(!told.to_string().contains("secret"));
}

#[test]
fn aider_s_chat_is_the_one_that_began_when_it_did() {
    let world = World::new();
    let chat = |minutes: i64| {
        // Whatever the zone: half an hour is a difference between zones, seven minutes are none.
        let began = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
        let began = began.strftime("%Y-%m-%d %H:%M:%S");
        format!("\n# aider chat started at {began}\n\n> Main model: gpt-6 with diff edit format  \n\n#### secret  \n")
    };
    let history = "project/.aider.chat.history.md";
    let aider = posing_as("aider", &world, |_| {});
    world.write(history, chat(7));
    let other = world.found(&aider);
    assert!(text(&other, "/metrics/unmeasured/evidence").contains("did not begin when it started"), "{other:#}");
    world.write(history, format!("{}{}", chat(7), chat(330)));
    let working = world.found(&aider);
    let activity = (text(&working, "/activity/state"), text(&working, "/activity/decided_by"));
    assert_eq!((activity, text(&working, "/work/model")), (("working", "transcript"), "gpt-6"), "{working:#}");
    let answered =
        format!("{}\nsecret\n\n> Tokens: 1.2k sent, 34 received. Cost: $0.01 message, $0.01 session.  \n", chat(330));
    world.write(history, &answered);
    let idle = world.found(&aider);
    let work = &idle["work"];
    assert_eq!(
        (text(&idle, "/activity/state"), &work["input_tokens"], &work["output_tokens"]),
        ("idle", &json!(1200), &json!(34))
    );
    assert!(!idle.to_string().contains("secret"));
    let second = posing_as("aider", &world, |_| {});
    for agent in [&aider, &second] {
        let found = world.found(agent);
        assert!(text(&found, "/metrics/unmeasured/evidence").contains("another aider"), "{found:#}");
    }
}
