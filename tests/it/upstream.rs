//! Persistent sessions with servers that die, hang, flood and pay no heed: each a child of the test's own.

use crate::world::{HEADCOUNT, PATIENCE, World};
use headcount::clock::SystemClock;
use headcount::config::Handshake;
use headcount::upstream::{CallToolResult, Door, Failure, JsonObject, Outcome, Phase, Program, Server, Session};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A stand-in server with these manners, started when it is used.
pub fn server(manners: &[&str]) -> Server {
    let args = ["stand-in-server"].iter().chain(manners).map(ToString::to_string).collect();
    Server {
        name: "stand-in".into(),
        door: Door::Program(Program { command: HEADCOUNT.into(), args, env: [].into() }),
        handshake: Handshake::Auto,
        connect: PATIENCE,
        timeout: PATIENCE,
        grace: Duration::from_millis(300),
        queue: 64,
    }
}

pub fn session(manners: &[&str]) -> Session {
    Session::open(server(manners), &[], Arc::new(SystemClock::default())).unwrap()
}

fn arguments(value: Value) -> Option<JsonObject> {
    value.as_object().cloned()
}

pub fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

/// The process that a session has started.
pub fn pid(session: &Session) -> u32 {
    session.status().about.unwrap().pid.unwrap()
}

/// Whether a process is there, be it as a zombie.
pub fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process is there, and not as a zombie, which is for its parent to reap.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

async fn until(mut what: impl FnMut() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < PATIENCE, "it does not come to that");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_connects_when_it_is_first_used_and_once_for_all_who_come() {
    for (manners, protocol) in [(&[][..], "2026-07-28"), (&["--legacy"], "2025-11-25")] {
        let session = session(manners);
        assert_eq!((session.status().phase, session.status().connections), (Phase::Idle, 0));
        let calls: Vec<_> = (0..20)
            .map(|n| {
                let session = session.clone();
                tokio::spawn(async move { session.call_tool("echo", arguments(json!({"n": n}))).await })
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap().structured_content, Some(json!({"n": n})));
        }
        let status = session.status();
        assert_eq!((status.phase, status.connections, status.calls), (Phase::Ready, 1, 20));
        let about = status.about.unwrap();
        assert_eq!((about.server.as_deref(), about.protocol.as_str()), (Some("stand-in 1"), protocol));
        let read = session.read_resource("stand-in://pid").await.unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap()["contents"][0]["text"], pid(&session).to_string());
        assert_eq!(session.list_resources().await.unwrap().len(), 1);
        let failed = session.call_tool("fail", None).await.unwrap();
        assert_eq!(failed.is_error, Some(true), "that a tool has failed is an answer");
        let unknown = session.read_resource("stand-in://none").await.unwrap_err();
        assert!(matches!(unknown.failure, Failure::Refused { code: -32601, .. }), "{unknown}");
        let pid = pid(&session);
        session.close().await;
        assert!(!is_there(pid));
        assert_eq!(session.call_tool("echo", None).await.unwrap_err().failure, Failure::Closed);
        session.close().await;
    }
}

#[tokio::test]
async fn only_allowed_tools_are_listed_and_called() {
    let session = session(&[]);
    assert_eq!(session.set_allowed_tools(&["pid".into(), "echo".into(), "nowhere".into()]), Ok(true));
    let error = session.call_tool("fail", None).await.unwrap_err();
    let told = "upstream stand-in: call of fail: the tool is not allowed; allowed are echo, nowhere, pid";
    assert_eq!(error.to_string(), told);
    assert_eq!(session.status().phase, Phase::Idle, "nothing is started for that");
    let tools = session.list_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["echo", "pid"]);
    assert_eq!(session.set_allowed_tools(&["fail".into()]), Ok(true));
    assert_eq!(session.list_tools().await.unwrap().len(), 1);
    session.call_tool("fail", None).await.unwrap();
    assert_eq!(session.set_allowed_tools(&[]), Ok(true));
    assert_eq!(session.list_tools().await.unwrap().len(), 12);
    session.close().await;
}

#[tokio::test]
async fn tools_are_listed_again_when_they_have_changed() {
    for manners in [&[][..], &["--legacy"]] {
        let session = session(manners);
        assert_eq!(session.list_tools().await.unwrap().len(), 12);
        session.call_tool("grow", None).await.unwrap();
        let start = Instant::now();
        while session.list_tools().await.unwrap().len() < 13 {
            assert!(start.elapsed() < PATIENCE, "the change is not heard of: {manners:?}");
        }
        session.call_tool("die", None).await.unwrap_err();
        assert_eq!(session.list_tools().await.unwrap().len(), 12, "another process has other tools");
        session.close().await;
    }
}

#[tokio::test]
async fn who_waits_when_the_server_dies_is_told_at_once_and_the_next_call_connects_anew() {
    let world = World::new();
    let journal = world.path("journal");
    let session = session(&["--journal", journal.to_str().unwrap()]);
    let first = text(&session.call_tool("pid", None).await.unwrap());
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.call_tool("silent", None).await }
    });
    until(|| fs::read_to_string(&journal).unwrap().contains("silent")).await;
    let start = Instant::now();
    let died = session.call_tool("die", arguments(json!({"n": 3}))).await.unwrap_err();
    let lost = waiting.await.unwrap().unwrap_err();
    assert!(start.elapsed() < PATIENCE / 2, "at once, not at the deadline");
    for error in [&died, &lost] {
        assert_eq!(error.failure, Failure::Lost("the server has ended: exit code 3".into()), "{error}");
        assert_eq!(error.failure.outcome(), Outcome::Unknown);
    }
    let second = text(&session.call_tool("pid", None).await.unwrap());
    assert_ne!(first, second);
    assert!(!is_there(first.parse().unwrap()));
    let status = session.status();
    assert_eq!((status.reconnects(), status.failures), (1, 2));
    assert_eq!(status.last_error.unwrap().0, "the server has ended: exit code 3");
    let calls = fs::read_to_string(&journal).unwrap();
    assert_eq!(calls.lines().collect::<Vec<_>>(), ["pid", "silent", "die", "pid"], "none was sent twice");
    session.close().await;
}

#[tokio::test]
async fn what_may_be_repeated_is_sent_once_more_and_nothing_else_is() {
    let world = World::new();
    let (journal, marker) = (world.path("journal"), world.path("marker"));
    let once = |marker: &Path| arguments(json!({"once": marker.to_str().unwrap()}));
    let session = session(&["--journal", journal.to_str().unwrap()]);
    session.call_tool("die_safely", once(&marker)).await.unwrap();
    let other = world.path("other");
    session.call_tool("die", once(&other)).await.unwrap_err();
    session.call_tool("die_safely", None).await.unwrap_err();
    let calls = fs::read_to_string(&journal).unwrap();
    assert_eq!(calls.lines().collect::<Vec<_>>(), ["die_safely", "die_safely", "die", "die_safely", "die_safely"]);
    session.close().await;
}

#[tokio::test]
async fn why_it_was_given_up_is_told_and_not_that_it_ended_then() {
    for (script, told) in [
        (
            r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"not today"}}'; cat > /dev/null"#,
            "not today (-32000)",
        ),
        ("read -r _; exit 3", "the server has ended: exit code 3"),
    ] {
        let mut server = server(&[]);
        server.handshake = Handshake::Initialize;
        let args = vec!["-c".into(), script.into()];
        server.door = Door::Program(Program { command: "/bin/sh".into(), args, env: [].into() });
        let session = Session::open(server, &[], Arc::new(SystemClock::default())).unwrap();
        let error = session.list_tools().await.unwrap_err().to_string();
        assert!(error.ends_with(told), "{error}");
        session.close().await;
    }
}

#[tokio::test]
async fn a_handshake_that_hangs_has_a_deadline_and_can_be_cut_short() {
    let mut hanging = server(&["--hangs", "--stays"]);
    hanging.connect = Duration::from_millis(500);
    let session = Session::open(hanging, &[], Arc::new(SystemClock::default())).unwrap();
    let error = session.call_tool("echo", None).await.unwrap_err();
    assert_eq!(error.failure, Failure::Connect("no connection within 500 ms".into()));
    until(|| session.status().phase == Phase::Idle).await;
    session.close().await;

    let session = self::session(&["--hangs", "--stays"]);
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.list_tools().await }
    });
    until(|| session.status().phase == Phase::Connecting).await;
    let start = Instant::now();
    session.close().await;
    assert!(start.elapsed() < PATIENCE / 2, "closing does not wait for the handshake");
    assert_eq!(waiting.await.unwrap().unwrap_err().failure, Failure::Closed);
}

#[tokio::test]
async fn closing_ends_who_pays_no_heed_and_what_it_has_left_behind() {
    let session = session(&["--stays", "--leaves-child"]);
    session.list_tools().await.unwrap();
    let pid = pid(&session);
    let group = group(pid);
    assert_eq!(group.len(), 2, "{group:?}");
    let start = Instant::now();
    session.close().await;
    assert!(start.elapsed() < PATIENCE / 2);
    until(|| !group.iter().any(|pid| is_alive(*pid))).await;
    assert_eq!(session.status().phase, Phase::Closed);
}

#[tokio::test]
async fn a_server_that_ends_is_missed_though_another_holds_its_output_open() {
    let session = session(&["--leaves-child"]);
    let error = session.call_tool("die", arguments(json!({"n": 5}))).await.unwrap_err();
    assert_eq!(error.failure, Failure::Lost("the server has ended: exit code 5".into()));
    session.close().await;
}

#[tokio::test]
async fn a_session_that_is_dropped_leaves_nothing_behind() {
    let session = session(&["--stays"]);
    session.list_tools().await.unwrap();
    let pid = pid(&session);
    drop(session);
    until(|| !is_there(pid)).await;
}

#[tokio::test]
async fn a_call_has_a_deadline_and_a_late_answer_is_nobodys() {
    let session = session(&[]);
    session.list_tools().await.unwrap();
    let patience = Duration::from_millis(100);
    let late = session.call_tool_within("slow", arguments(json!({"n": 300})), patience).await.unwrap_err();
    assert_eq!(late.failure, Failure::Timeout { after: patience, sent: true });
    let next = session.call_tool("slow", arguments(json!({"n": 400}))).await.unwrap();
    assert_eq!(text(&next), "late");
    assert_eq!(session.call_tool("echo", None).await.unwrap().is_error, None);
    assert_eq!(session.status().connections, 1, "a late answer is no reason to connect anew");
    session.close().await;
}

#[tokio::test]
async fn a_full_queue_is_an_error() {
    let mut small = server(&[]);
    small.queue = 2;
    let session = Session::open(small, &[], Arc::new(SystemClock::default())).unwrap();
    session.list_tools().await.unwrap();
    let silent = |session: &Session| {
        let session = session.clone();
        tokio::spawn(async move { session.call_tool("silent", None).await })
    };
    let waiting = [silent(&session), silent(&session)];
    until(|| session.status().calls == 2).await;
    let error = session.call_tool("echo", None).await.unwrap_err();
    assert_eq!(error.failure, Failure::QueueFull { limit: 2 });
    waiting[0].abort();
    let start = Instant::now();
    while session.call_tool("echo", None).await.is_err() {
        assert!(start.elapsed() < PATIENCE, "who waits no longer takes no place");
    }
    session.close().await;
    assert_eq!(waiting.into_iter().nth(1).unwrap().await.unwrap().unwrap_err().failure, Failure::Closed);
}

#[tokio::test]
async fn floods_are_bounded() {
    let session = session(&[]);
    session.call_tool("notify", arguments(json!({"n": 20_000}))).await.unwrap();
    session.call_tool("complain", arguments(json!({"n": 20_000_000}))).await.unwrap();
    let before = resident();
    let big = session.call_tool("big", arguments(json!({"n": 100_000_000}))).await.unwrap_err();
    assert_eq!(big.failure, Failure::Lost("the server has sent a message of more than 16 MiB".into()));
    assert!(resident() < before + (96 << 20), "{} MiB are held", (resident() - before) >> 20);
    assert_eq!(text(&session.call_tool("echo", None).await.unwrap()), "null", "the next call connects anew");
    session.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_not_tried_all_the_time() {
    let mut nowhere = server(&[]);
    nowhere.door = Door::Program(Program { command: "/nowhere/at-all".into(), args: vec![], env: [].into() });
    let session = Session::open(nowhere, &[], Arc::new(SystemClock::default())).unwrap();
    let error = session.list_tools().await.unwrap_err();
    assert!(matches!(&error.failure, Failure::Connect(why) if why.starts_with("/nowhere/at-all cannot be started")));
    let soon = Duration::from_millis(1);
    let error = session.call_tool_within("echo", None, soon).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Backoff { .. }), "{error}");
    assert_eq!(error.failure.outcome(), Outcome::NotDone);
    session.close().await;
}

/// A hundred here, to see that nothing adds up; what a thousand cost is measured elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_and_connecting_anew_leaks_nothing() {
    let session = session(&[]);
    let round = async || {
        session.call_tool("echo", None).await.unwrap();
        session.call_tool("die", None).await.unwrap_err();
    };
    for _ in 0..5 {
        round().await;
    }
    let before = (descriptors(), tokio::runtime::Handle::current().metrics().num_alive_tasks());
    for _ in 0..100 {
        round().await;
    }
    until(|| (descriptors(), tokio::runtime::Handle::current().metrics().num_alive_tasks()) <= before).await;
    assert_eq!(session.status().reconnects(), 104);
    session.close().await;
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// The processes of a group.
fn group(leader: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_member = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split(' ').nth(3)) == Some(&leader.to_string())
    };
    pids.filter(is_member).collect()
}
