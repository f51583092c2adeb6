//! What agents record of themselves, from their files to the report.

use crate::world::{HEADCOUNT, World, agent, descendants, start_of, until};
use headcount::demo::stand_in::{Behaviour, StandIn};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A stand-in for Claude Code that works in a folder of its home, and is declared as `it` of the session `s`.
struct Claude {
    world: World,
    process: StandIn,
    roster: PathBuf,
}

impl Claude {
    fn start(behaviour: Behaviour) -> Self {
        let world = World::new();
        let app = world.path("app");
        fs::create_dir(&app).unwrap();
        let adjust = |command: &mut std::process::Command| {
            command.arg0("claude").current_dir(&app).env("HOME", world.path("")).env_remove("CLAUDE_CONFIG_DIR");
        };
        let process = StandIn::start_with(Path::new(HEADCOUNT), behaviour, adjust).unwrap();
        let command_line = format!("/proc/{}/cmdline", process.pid());
        until("it runs", || fs::read(&command_line).is_ok_and(|line| line.starts_with(b"claude\0")));
        let roster = world.roster("s", &[("it", process.pid())]);
        Self { world, process, roster }
    }

    /// Writes its session file, with `more` beside the usual.
    fn says(&self, more: &Value) {
        let pid = self.process.pid();
        let mut record = json!({"pid": pid, "procStart": start_of(pid).unwrap().to_string(), "sessionId": "11111111-aa",
            "cwd": "/w/app", "version": "2.1.236", "kind": "interactive", "updatedAt": ago(Duration::from_secs(2))});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.world.write(&format!(".claude/sessions/{pid}.json"), record.to_string());
    }

    fn report(&self) -> Value {
        let (_, report) = self.world.status("s", &self.roster);
        agent(&report, "it").clone()
    }

    /// Its activity: what, why, and who says so.
    fn activity(&self) -> [String; 3] {
        let activity = &self.report()["activity"];
        ["state", "reason", "decided_by"].map(|key| activity[key].as_str().unwrap_or_default().to_owned())
    }
}

/// That long ago, in Unix milliseconds.
fn ago(span: Duration) -> u64 {
    u64::try_from((SystemTime::now() - span).duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[test]
fn an_agent_waits_works_rests_and_dies_as_its_record_and_its_process_say() {
    let mut claude = Claude::start(Behaviour::Idle);
    let own = "own_record";
    claude.says(&json!({"status": "waiting", "waitingFor": "permission prompt"}));
    let report = claude.report();
    assert_eq!((&report["kind"], &report["activity"]["inferred"]), (&"claude".into(), &false.into()), "{report:#}");
    assert_eq!(claude.activity(), ["waiting_for_input", "permission prompt", own]);
    claude.says(&json!({"status": "busy", "waitingFor": "permission prompt"}));
    assert_eq!(claude.activity(), ["working", "at work", own]);
    claude.says(&json!({"status": "idle"}));
    assert_eq!(claude.activity(), ["idle", "nothing to do", own]);
    claude.says(&json!({"status": "shell"}));
    assert_eq!(claude.activity(), ["idle", "background shell", own]);
    claude.says(&json!({"status": "frobnicating"}));
    assert_eq!(claude.activity(), ["unknown", "unknown word \"frobnicating\"", own]);
    claude.says(&json!({"status": "waiting", "waitingFor": "permission prompt"}));
    claude.process.kill().unwrap();
    until("it has ended", || crate::world::state(claude.process.pid()) == Some('Z'));
    assert_eq!(claude.activity()[0], "dead");
}

#[test]
fn a_record_of_another_process_is_not_believed() {
    let claude = Claude::start(Behaviour::Idle);
    let other = start_of(claude.process.pid()).unwrap() + 1;
    claude.says(&json!({"status": "waiting", "procStart": other}));
    let report = claude.report();
    assert_eq!(report["activity"]["decided_by"], "process", "{report:#}");
    assert_eq!(report["metrics"]["unmeasured"]["evidence"], "its record belongs to another process");
}

/// What is recorded is judged again as if it had been watched for ten minutes, with and without something to be seen.
#[test]
fn a_long_quiet_turn_is_work_as_long_as_something_is_to_be_seen() {
    let claude = Claude::start(Behaviour::Idle);
    let begun = ago(Duration::from_secs(14 * 60));
    claude.says(&json!({"status": "busy"}));
    let snapshot = claude.world.path("s.json");
    let snapshot = snapshot.to_str().unwrap();
    claude.world.run(&["status", "s", "--roster", claude.roster.to_str().unwrap(), "--record", snapshot]);
    let mut recorded: Value = serde_json::from_slice(&fs::read(snapshot).unwrap()).unwrap();
    let now = recorded["facts"]["now_ms"].as_u64().unwrap();
    for (quiet_ms, state, since, inferred) in [(0, "working", begun, false), (700_000, "stalled", now - 700_000, true)]
    {
        recorded["facts"]["agents"][0]["evidence"][0]["at_ms"] = begun.into();
        recorded["facts"]["agents"][0]["trend"] = json!({"window_ms": 600_000, "quiet_ms": quiet_ms});
        fs::write(snapshot, recorded.to_string()).unwrap();
        let verdict = claude.world.run(&["policy", "run", "builtin", "--snapshot", snapshot, "--json"]).json();
        let activity = &verdict["agents"][0]["activity"];
        assert_eq!((&activity["state"], &activity["inferred"]), (&state.into(), &inferred.into()), "{verdict:#}");
        let date: jiff::Timestamp = activity["since"].as_str().unwrap().parse().unwrap();
        assert_eq!(u64::try_from(date.as_millisecond()), Ok(since), "{activity:#}");
    }
}

#[test]
fn a_background_job_that_asks_a_question_is_waiting() {
    let claude = Claude::start(Behaviour::Idle);
    claude.says(&json!({"status": "busy", "kind": "bg", "jobId": "a1b2c3d4"}));
    let job = json!({"state": "working", "tempo": "blocked", "needs": "Which secret?", "block": {"questions": []},
        "sessionId": "11111111-aa", "updatedAt": ago(Duration::from_secs(3600))});
    claude.world.write(".claude/jobs/a1b2c3d4/state.json", job.to_string());
    let report = claude.report();
    let activity = &report["activity"];
    assert_eq!(activity["state"], "waiting_for_input", "{report:#}");
    assert_eq!(activity["reason"], "its background job needs input");
    assert!(!report.to_string().contains("secret"), "{report:#}");
    let checks = report["health"]["check_results"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["name"] == "waiting-too-long"), "for an hour: {checks:#?}");
}

/// Waits for what has begun after a mark, three times, each in another process.
#[test]
fn a_need_whose_beginning_is_not_known_is_new_only_once() {
    let claude = Claude::start(Behaviour::Idle);
    let wait = |more: &[&str]| {
        let roster = claude.roster.to_str().unwrap();
        claude.world.run(&[&["wait", "s", "--roster", roster, "--json", "--timeout", "3s"], more].concat())
    };
    let waits = |more: &Value| {
        let mut record =
            json!({"status": "waiting", "waitingFor": "permission prompt", "updatedAt": ago(Duration::ZERO)});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claude.says(&record);
    };
    let ahead = json!({"statusUpdatedAt": ago(Duration::ZERO) + 3_600_000});
    let blocked = || {
        claude.says(&json!({"status": "busy", "kind": "bg", "jobId": "a1b2c3d4"}));
        let job = json!({"tempo": "blocked", "updatedAt": ago(Duration::ZERO)});
        claude.world.write(".claude/jobs/a1b2c3d4/state.json", job.to_string());
    };
    let told_once = |write: &dyn Fn()| {
        write();
        let first = wait(&[]);
        assert_eq!(first.code, Some(0), "{first:#?}");
        let mut mark = first.json()["mark"].clone();
        for _ in 0..3 {
            write();
            let again = wait(&["--since", mark.as_str().unwrap()]);
            assert_eq!((again.code, &again.json()["timed_out"]), (Some(1), &true.into()), "{again:#?}");
            mark = again.json()["mark"].clone();
        }
    };
    told_once(&|| waits(&ahead));
    told_once(&|| waits(&json!({})));
    told_once(&blocked);
}

#[test]
fn a_transcript_says_what_was_used_and_for_what() {
    let claude = Claude::start(Behaviour::Idle);
    // An agent that is driven by a program has no status; its transcript has to speak for it.
    claude.says(&json!({"entrypoint": "sdk-ts"}));
    let now = jiff::Timestamp::now();
    let transcript = format!(
        r#"{{"type":"user","timestamp":"{now}","message":{{"content":"the secret plan"}}}}
{{"type":"assistant","timestamp":"{now}","message":{{"id":"m","model":"opus","stop_reason":"tool_use","usage":{{"input_tokens":9,"output_tokens":3}},"content":[{{"type":"tool_use","id":"t","name":"Bash","input":{{"command":"cat /secret"}}}}]}}}}
"#
    );
    claude.world.write(".claude/projects/-w-app/11111111-aa.jsonl", transcript);
    let report = claude.report();
    let work = &report["work"];
    assert_eq!((&work["model"], &work["current_tool"]), (&"opus".into(), &"Bash".into()), "{report:#}");
    assert_eq!((&work["input_tokens"], &work["output_tokens"]), (&9.into(), &3.into()));
    assert_eq!((&work["cache_read_tokens"], &work["subagents"]), (&Value::Null, &0.into()));
    let activity = &report["activity"];
    assert_eq!((&activity["state"], &activity["decided_by"]), (&"working".into(), &"transcript".into()));
    assert!(!report.to_string().contains("secret"), "{report:#}");
    let ran = claude.world.run(&["status", "s", "--roster", claude.roster.to_str().unwrap()]);
    assert!(
        ran.stdout.contains("open turn; permissions are not recorded") && !ran.stdout.contains("secret"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_a_record_says_cannot_disturb_a_terminal() {
    let claude = Claude::start(Behaviour::Idle);
    let hostile = "evil\u{1b}]0;owned\u{7}\u{202e}x";
    claude.says(&json!({"status": hostile}));
    let now = jiff::Timestamp::now();
    let call = json!({"type": "tool_use", "id": "t", "name": hostile});
    let line =
        json!({"type": "assistant", "timestamp": now, "message": {"id": "m", "model": hostile, "content": [call]}});
    claude.world.write(".claude/projects/-w-app/11111111-aa.jsonl", format!("{line}\n"));
    let report = claude.report();
    assert_eq!(report["activity"]["reason"], "unknown word \"evilx\"", "{report:#}");
    assert_eq!((&report["work"]["model"], &report["work"]["current_tool"]), (&"evilx".into(), &"evilx".into()));
}

#[test]
fn what_an_agent_says_of_its_work_is_in_the_report_and_in_the_table() {
    let claude = Claude::start(Behaviour::Busy);
    until("it has children", || descendants(claude.process.pid()).len() >= 2);
    claude.says(&json!({"status": "busy"}));
    let answer = |id: &str, model: &str, input: u64, output: u64| {
        let usage = json!({"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 400_000,
            "cache_creation_input_tokens": 0});
        let message = json!({"id": id, "model": model, "stop_reason": "end_turn", "content": [], "usage": usage});
        json!({"type": "assistant", "timestamp": "2026-09-06T10:00:00Z", "message": message}).to_string() + "\n"
    };
    let folder = ".claude/projects/-w-app/11111111-aa";
    claude.world.write(&format!("{folder}.jsonl"), answer("m1", "opus[1m]", 100_000, 7));
    fs::create_dir_all(claude.world.path(folder).join("subagents")).unwrap();
    claude.world.write(&format!("{folder}/subagents/agent-1.jsonl"), answer("m2", "haiku", 1_100_000, 34_000));
    let servers = json!({"mcpServers": {"a": {"command": "headcount", "args": ["stand-in", "computing", "--parent", "${PARENT}"]},
        "b": {"command": "npx", "args": ["-y", "secret"], "env": {"KEY": "secret"}}}});
    claude.world.write(".claude.json", servers.to_string());
    // Its configuration is read beside the looks.
    until("its servers are counted", || claude.report()["work"]["mcp_servers"] == 2);
    let report = claude.report();
    let work = &report["work"];
    assert_eq!((&work["input_tokens"], &work["output_tokens"]), (&1_200_000.into(), &34_007.into()), "{work:#}");
    assert_eq!((&work["model"], &work["context_used_percent"]), (&"opus[1m]".into(), &50.0.into()), "{work:#}");
    assert!(!report.to_string().contains("secret"));
    let shown = claude.world.run(&["status", "s", "--roster", claude.roster.to_str().unwrap()]).stdout;
    assert!(shown.contains("opus[1m] · 1.2M in · 800k cached · 34k out · context 50 %"), "{shown}");
}
