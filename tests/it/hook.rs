//! `headcount hook`: what agents tell, whatever they send.

use crate::hooked::{Agent, shell_called};
use crate::world::{HEADCOUNT, PATIENCE, World, ended, finish, until};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a hook may take on a machine that is busy with other tests; alone it takes milliseconds.
const QUICK: Duration = Duration::from_secs(2);

/// Has the executable take an event from stdin, and holds that it is quick, silent and content.
fn take(mut command: Command, event: &[u8]) {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // It need not read all of it.
    let _ = child.stdin.take().unwrap().write_all(event);
    is_quick_and_silent(child, start);
}

fn is_quick_and_silent(mut child: Child, start: Instant) {
    let code = ended(&mut child, PATIENCE);
    let took = start.elapsed();
    let said = child.wait_with_output().unwrap();
    assert_eq!(
        (code, said.stdout.len(), said.stderr.len()),
        (Some(0), 0, 0),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    assert!(took < QUICK, "it took {took:?}");
}

/// The notes that are kept.
fn notes(state: &Path) -> Vec<PathBuf> {
    fs::read_dir(state.join("hooks")).map_or_else(|_| vec![], |all| all.map(|entry| entry.unwrap().path()).collect())
}

fn event(name: &str) -> Value {
    json!({"session_id": "s", "transcript_path": "/secret", "cwd": "/secret", "hook_event_name": name, "prompt": "secret"})
}

#[test]
fn whatever_is_sent_is_taken_quickly_and_in_silence() {
    let world = World::new();
    let huge = json!({"hook_event_name": "Stop", "prompt": "x".repeat(8 << 20)}).to_string();
    let whole = event("Stop").to_string();
    let deep = "[".repeat(100_000);
    for bytes in [
        &b""[..],
        b"\0\xff\xfe",
        b"null",
        b"[]",
        b"{\"hook_event_name\":",
        b"{\"hook_event_name\":7}",
        deep.as_bytes(),
        huge.as_bytes(),
        whole.as_bytes(),
        &whole.as_bytes()[..30],
        "{\"hook_event_name\":\"\u{1b}[2J\"}".as_bytes(),
    ] {
        for kind in ["claude", "codex", "gemini", "cursor", "opencode", "aider", "--version", "\u{1b}[2J", ""] {
            take(world.command(&["hook", kind]), bytes);
        }
    }
}

#[test]
fn whatever_it_is_asked_it_does_not_complain() {
    let world = World::new();
    for args in [
        &["hook"][..],
        &["hook", "--bogus"],
        &["hook", "claude", "--bogus", "-x"],
        &["hook", "codex", "{"],
        &["hook", "-"],
    ] {
        take(world.command(args), b"{}");
    }
    let mut closed = world.command(&["hook", "claude"]);
    let start = Instant::now();
    is_quick_and_silent(closed.stdin(Stdio::null()).spawn().unwrap(), start);
}

#[test]
fn an_event_counts_though_its_end_never_comes() {
    let world = World::new();
    let start = Instant::now();
    let mut child = world.command(&["hook", "claude"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event("Stop").to_string().as_bytes()).unwrap();
    is_quick_and_silent(child, start);
    drop(stdin);
    assert_eq!(notes(&world.state()).len(), 1);
    let mut endless = world.command(&["hook", "claude"]);
    let start = Instant::now();
    is_quick_and_silent(endless.stdin(fs::File::open("/dev/zero").unwrap()).spawn().unwrap(), start);
}

#[test]
fn where_nothing_can_be_kept_it_does_not_complain() {
    let world = World::new();
    let stop = event("Stop").to_string();
    let with_state = |state: &Path| {
        let mut command = world.command(&["hook", "claude"]);
        command.env("HEADCOUNT_STATE_DIR", state);
        take(command, stop.as_bytes());
    };
    let file = world.write("a file", "");
    with_state(&file);
    with_state(Path::new("/proc/headcount"));
    with_state(Path::new("/dev/full"));
    let mut homeless = world.command(&["hook", "claude"]);
    homeless.env_remove("HOME").env("XDG_STATE_HOME", "relative").env("HEADCOUNT_STATE_DIR", "/dev/null/x");
    take(homeless, stop.as_bytes());
    let mut limited = Command::new("/bin/sh");
    limited.args(["-c", "ulimit -f 0; exec \"$0\" hook claude", HEADCOUNT]).env_clear();
    limited.env("HEADCOUNT_STATE_DIR", world.path("small")).stdout(Stdio::piped()).stderr(Stdio::piped());
    take(limited, stop.as_bytes());
    assert_eq!(notes(&world.path("small")), Vec::<PathBuf>::new(), "and nothing half written is left");
    for broken in ["not an event at all", "{"] {
        let mut broken_config = world.command(&["hook", "claude"]);
        broken_config.env("HEADCOUNT_CONFIG", world.write("broken.toml", broken)).env("RUST_BACKTRACE", "1");
        take(broken_config, stop.as_bytes());
    }
    assert_eq!(notes(&world.state()).len(), 1, "what is configured is no matter for it");
}

#[test]
fn of_an_event_no_more_is_kept_than_is_needed() {
    let world = World::new();
    let mut asked = event("PermissionRequest");
    asked["tool_name"] = "Bash".into();
    asked["tool_input"] = json!({"command": "secret"});
    take(world.command(&["hook", "claude"]), asked.to_string().as_bytes());
    let notes = notes(&world.state());
    let kept = fs::read_to_string(&notes[0]).unwrap();
    assert!(notes.len() == 1 && kept.contains("PermissionRequest") && kept.contains("Bash"), "{kept}");
    assert!(!kept.contains("secret"), "{kept}");
    let notify = json!({"type": "agent-turn-complete", "thread-id": "t", "input-messages": ["secret"]}).to_string();
    assert_eq!(finish(world.command(&["hook", "codex", &notify])).code, Some(0));
    assert_eq!(crate::hook::notes(&world.state()).len(), 2);
}

#[test]
fn who_mistypes_a_kind_at_a_terminal_is_told() {
    let world = World::new();
    for (word, code, said) in
        [("cladue", Some(0), "no kind of agent is called \"cladue\", only claude, codex,"), ("claude", Some(0), "")]
    {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command = world.command(&["hook", word]);
        command.stdin(Stdio::null()).stderr(Stdio::from(terminal.slave));
        let mut child = command.spawn().unwrap();
        drop(command);
        assert_eq!(ended(&mut child, PATIENCE), code);
        let mut shown = Vec::new();
        // The other end is closed: that is an error of a terminal, and the end of what was shown.
        let _ = std::io::Read::read_to_end(&mut fs::File::from(terminal.master), &mut shown);
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(said) && shown.lines().count() == usize::from(!said.is_empty()), "{shown:?}");
    }
}

#[test]
fn an_agent_that_asks_for_permission_waits_and_one_that_was_answered_works() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let with_tool = |name: &str| {
        let mut event = event(name);
        event["tool_name"] = "Bash".into();
        event
    };
    agent.send(&event("UserPromptSubmit"));
    agent.send(&with_tool("PermissionRequest"));
    let waits = agent.activity(&world);
    assert_eq!(
        (&waits["state"], &waits["reason"]),
        (&"waiting_for_input".into(), &"permission: Bash".into()),
        "{waits:#}"
    );
    assert_eq!((&waits["decided_by"], &waits["inferred"]), (&"hook".into(), &false.into()));
    agent.send(&with_tool("PostToolUse"));
    let works = agent.activity(&world);
    assert_eq!((&works["state"], &works["reason"]), (&"working".into(), &"has run Bash".into()), "{works:#}");
    agent.send(&event("Stop"));
    let rests = agent.activity(&world);
    assert_eq!((&rests["state"], &rests["reason"]), (&"idle".into(), &"turn ended".into()), "{rests:#}");
}

#[test]
fn an_agent_that_an_error_has_stopped_needs_somebody_though_its_record_says_that_it_rests() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let mut broken = event("StopFailure");
    broken["error"] = "rate_limit".into();
    agent.send(&event("UserPromptSubmit"));
    agent.send(&broken);
    agent.records(&world, "idle");
    for _ in 0..2 {
        let stopped = agent.activity(&world);
        assert_eq!(
            (&stopped["state"], &stopped["reason"]),
            (&"waiting_for_input".into(), &"stopped by an error: rate_limit".into()),
            "{stopped:#}"
        );
        let mut idle = event("Notification");
        idle["notification_type"] = "idle_prompt".into();
        agent.send(&idle);
    }
    let told = world.run(&["status", "--attention", "--json"]);
    assert!(told.stdout.contains("stopped by an error: rate_limit") && told.code == Some(1), "{told:?}");
    agent.send(&event("UserPromptSubmit"));
    assert_eq!(agent.activity(&world)["reason"], "prompt given");
    agent.records(&world, "idle");
    assert_eq!(agent.activity(&world)["decided_by"], "own_record", "it was interrupted");
}

#[test]
fn a_question_stays_open_while_other_tools_go_on() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let call = |name: &str, tool: &str, id: Option<&str>| {
        let mut event = event(name);
        event["tool_name"] = tool.into();
        event["tool_use_id"] = id.into();
        event
    };
    agent.send(&call("PreToolUse", "Bash", Some("1")));
    agent.send(&call("PermissionRequest", "Bash", None));
    for (name, tool, id, state) in [
        ("PreToolUse", "Read", "2", "waiting_for_input"),
        ("PreToolUse", "Bash", "3", "waiting_for_input"),
        ("PostToolUse", "Bash", "3", "waiting_for_input"),
        ("PostToolUse", "Read", "2", "waiting_for_input"),
        ("PostToolUse", "Bash", "1", "working"),
    ] {
        agent.send(&call(name, tool, Some(id)));
        assert_eq!(agent.activity(&world)["state"], state, "{name} {tool} {id}");
    }
}

#[test]
fn a_conversation_that_is_resumed_elsewhere_leaves_the_first_ones_question_as_it_is() {
    let world = World::new();
    let mut agents = [Agent::start(&world, "claude"), Agent::start(&world, "claude")];
    agents[0].send(&event("PermissionRequest"));
    agents[1].send(&event("SessionStart"));
    assert_eq!(agents.each_ref().map(|agent| agent.activity(&world)["state"].clone()), ["waiting_for_input", "idle"]);
}

/// What no event tells: that somebody has interrupted the agent, or granted what it asked for.
#[test]
fn what_the_agent_records_later_than_its_event_counts() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for (name, status, state) in [("PreToolUse", "idle", "idle"), ("PermissionRequest", "busy", "working")] {
        agent.send(&event(name));
        assert_eq!(agent.activity(&world)["decided_by"], "hook");
        agent.records(&world, status);
        let activity = agent.activity(&world);
        assert_eq!(
            (&activity["state"], &activity["decided_by"]),
            (&state.into(), &"own_record".into()),
            "{activity:#}"
        );
    }
    agent.send(&event("Stop"));
    assert_eq!(agent.activity(&world)["decided_by"], "hook", "and an event later than the record");
}

#[test]
fn agents_in_one_folder_are_told_apart() {
    let world = World::new();
    let mut agents = [Agent::start(&world, "claude"), Agent::start(&world, "claude")];
    for (agent, (id, name)) in agents.iter_mut().zip([("a", "PermissionRequest"), ("b", "Stop")]) {
        let mut event = event(name);
        event["session_id"] = id.into();
        agent.send(&event);
    }
    assert_eq!(agents.each_ref().map(|agent| agent.activity(&world)["state"].clone()), ["waiting_for_input", "idle"]);
}

#[test]
fn what_was_told_of_an_agent_that_has_ended_is_told_of_no_other() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.send(&event("PermissionRequest"));
    drop(agent);
    let next = Agent::start(&world, "claude");
    until("it runs", || next.activity(&world).is_object());
    assert_eq!(next.activity(&world)["decided_by"], "process");
}

#[test]
fn an_agent_that_another_one_drives_does_not_speak_for_it() {
    let world = World::new();
    let inner = shell_called(&world, "claude");
    let hook = format!("{} -c '\"{HEADCOUNT}\" hook claude; :' x --input-format stream-json", inner.display());
    for kind in ["claude", "qwen"] {
        let mut outer = Agent::running(&world, kind, &hook, Path::new("/dev/null"), &[]);
        for name in ["PermissionRequest", "SessionEnd"] {
            outer.send(&event(name));
            assert_eq!(outer.activity(&world)["decided_by"], "process", "{kind} {name}");
        }
    }
    assert!(!notes(&world.state()).is_empty(), "they are noted");
}
