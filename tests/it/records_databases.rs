//! What the databases of OpenCode, Goose and Crush say of them, in the report: by stand-ins that hold one open, as they do.

use crate::hooked::Agent;
use crate::world::{World, posing_as, without_servers};
use headcount::demo::stand_in::StandIn;
use headcount_tests::databases::{CRUSH, GOOSE, OPENCODE};
use rusqlite::{Connection, Params};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where OpenCode's database is, below a home directory.
const PLACE: &str = ".local/share/opencode/opencode.db";

/// An agent's database. Nobody has it open between two changes.
struct Database(PathBuf);

impl Database {
    fn new(world: &World, place: &str, tables: &str) -> Self {
        let database = Self(world.write(place, ""));
        let owner = database.open();
        owner.pragma_update(None, "journal_mode", "wal").unwrap();
        owner.execute_batch(tables).unwrap();
        database
    }

    fn open(&self) -> Connection {
        let owner = Connection::open(&self.0).unwrap();
        owner.pragma_update(None, "synchronous", "off").unwrap();
        owner
    }

    fn change(&self, sql: &str, params: impl Params) {
        self.open().execute(sql, params).unwrap();
    }

    /// A session of OpenCode's that is gone on with now.
    fn session(&self, id: &str, parent: Option<&str>) {
        let sql = "INSERT INTO session (id, parent_id, time_updated, tokens_input, tokens_output, tokens_cache_read)
            VALUES (?1, ?2, ?3, 10, 20, 300)";
        self.change(sql, (id, parent, now_ms()));
    }

    /// The newest message of a session of OpenCode's.
    fn message(&self, id: &str, session: &str, data: &Value) {
        self.change(
            "INSERT OR REPLACE INTO message VALUES (?1, ?2, ?3, ?4)",
            (id, session, now_ms(), data.to_string()),
        );
    }

    /// All files in its folder, with all that shows whether somebody has touched them.
    fn files(&self) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
        let files = fs::read_dir(self.0.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
        let touched = |file: &Path| (fs::metadata(file).unwrap().modified().unwrap(), fs::read(file).unwrap());
        files.map(|file| (file.clone(), touched(&file))).collect()
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// An answer that has begun, and ended where that is said.
fn answer(completed: Option<&str>) -> Value {
    let time = json!({"created": now_ms(), "completed": completed.map(|_| now_ms())});
    json!({"role": "assistant", "modelID": "big\u{1b}[2Jmodel", "time": time, "finish": completed})
}

/// A process that is taken for an agent of this kind, and has a database open as its output.
fn agent(world: &World, kind: &str, database: &Database) -> StandIn {
    let held = File::options().append(true).open(&database.0).unwrap();
    posing_as(kind, world, |command| {
        command.stdout(held);
    })
}

/// Why nothing is said of an agent's work.
fn undecided(found: &Value) -> &str {
    assert_eq!(
        (&found["work"]["input_tokens"], &found["activity"]["decided_by"]),
        (&Value::Null, &json!("process")),
        "{found:#}"
    );
    found["metrics"]["unmeasured"]["evidence"].as_str().unwrap_or_else(|| panic!("{found:#}"))
}

#[test]
fn a_turn_is_work_until_it_ends() {
    let world = World::new();
    let database = Database::new(&world, PLACE, OPENCODE);
    let agent = agent(&world, "opencode", &database);
    assert!(undecided(&world.found(&agent)).contains("no conversation since it started"));

    database.session("ses_1", None);
    database.session("ses_1a", Some("ses_1"));
    database.message("m1", "ses_1", &answer(None));
    let running = json!({"type": "tool", "tool": "bash", "state": {"status": "running", "input": "secret"}});
    database.change("INSERT INTO part VALUES ('p1', 'm1', 'ses_1', ?1)", [running.to_string()]);
    let working = world.found(&agent);
    let activity = &working["activity"];
    assert_eq!((&activity["state"], &activity["decided_by"]), (&json!("working"), &json!("transcript")), "{working:#}");
    assert_eq!(activity["inferred"], true, "it may wait for a permission");
    assert_eq!((&working["work"]["current_tool"], &working["work"]["model"]), (&json!("bash"), &json!("bigmodel")));

    database.message("m1", "ses_1", &answer(Some("stop")));
    let idle = world.found(&agent);
    assert_eq!(
        (&idle["activity"]["state"], &idle["activity"]["inferred"]),
        (&json!("idle"), &json!(false)),
        "{idle:#}"
    );
    let expected = json!({
        "model": "bigmodel", "input_tokens": 10, "output_tokens": 20, "cache_read_tokens": 300, "cache_write_tokens": 0,
        "context_used_percent": null, "current_tool": null, "subagents": 0, "mcp_servers": null,
    });
    assert_eq!(without_servers(&idle["work"]), expected);
    assert!(!idle.to_string().contains("secret"));

    database.session("ses_2", None);
    assert!(undecided(&world.found(&agent)).contains("it has 2 conversations"));
}

#[test]
fn a_database_that_is_being_written_is_read_without_a_trace() {
    let world = World::new();
    let database = Database::new(&world, PLACE, OPENCODE);
    let agent = Agent::holding(&world, "opencode", &database.0, &["-s", "ses_1"]);
    let owner = database.open();
    owner.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    database.session("ses_1", None);
    database.message("m1", "ses_1", &answer(None));
    let before = database.files();
    assert_eq!(before.len(), 3, "its log is there, with an index");
    assert_eq!(world.found_by_pid(agent.pid())["activity"]["state"], "working");
    assert!(database.files() == before, "not a byte, not a time");
    owner.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    owner.close().unwrap();
    assert_eq!(
        (world.found_by_pid(agent.pid())["activity"]["state"].clone(), database.files().len()),
        (json!("working"), 1)
    );
}

#[test]
fn what_a_killed_process_has_left_is_read_as_it_is_and_is_nobodys_work() {
    let world = World::new();
    let living = Database::new(&world, "living/opencode.db", OPENCODE);
    let owner = living.open();
    owner.execute("INSERT INTO session (id, time_updated) VALUES ('ses_1', 1)", []).unwrap();
    let left = Database(world.write(PLACE, ""));
    for end in ["", "-wal", "-shm"] {
        let name = |database: &Database| format!("{}{end}", database.0.display());
        fs::copy(name(&living), name(&left)).unwrap();
    }
    let next = agent(&world, "opencode", &left);
    let before = left.files();
    // The tables are in the log alone.
    assert!(undecided(&world.found(&next)).contains("no conversation since it started"));
    assert!(before.len() == 3 && left.files() == before);
}

#[test]
fn of_two_processes_with_one_database_their_hooks_tell_which_conversation_each_has() {
    let world = World::new();
    let database = Database::new(&world, PLACE, OPENCODE);
    let mut agents = ["opencode"; 2].map(|kind| Agent::holding(&world, kind, &database.0, &[]));
    let pids = agents.each_ref().map(Agent::pid);
    for (session, completed) in [("ses_1", None), ("ses_2", Some("stop"))] {
        database.session(session, None);
        database.message(session, session, &answer(completed));
    }
    for pid in pids {
        let found = world.found_by_pid(pid);
        let why = undecided(&found);
        assert!(why.contains("another process") && why.contains("headcount hook install opencode"), "{why}");
    }
    for (agent, session) in agents.iter_mut().zip(["ses_1", "ses_2"]) {
        agent.send(&json!({"hook_event_name": "session.created", "session_id": session}));
    }
    let found = pids.map(|pid| world.found_by_pid(pid));
    let models = found.each_ref().map(|found| found["work"]["model"].clone());
    assert_eq!(models, ["bigmodel", "bigmodel"], "{found:#?}");
    agents[1].send(&json!({"hook_event_name": "session.idle", "session_id": "ses_1"}));
    for pid in pids {
        let found = world.found_by_pid(pid);
        assert!(found["metrics"]["unmeasured"]["usage"].as_str().unwrap().contains("same conversation"), "{found:#}");
    }
}

#[test]
fn whoever_else_has_the_database_may_have_written_it() {
    let world = World::new();
    let database = Database::new(&world, PLACE, OPENCODE);
    let tui = agent(&world, "opencode", &database);
    database.session("ses_1", None);
    database.message("m1", "ses_1", &answer(None));
    {
        let _server = Agent::holding(&world, "opencode", &database.0, &["serve"]);
        assert!(undecided(&world.found(&tui)).contains("another process"), "a server that is no agent");
    }
    let other = database.open();
    other.query_row("SELECT count(*) FROM session", [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(undecided(&world.found(&tui)).contains("another process"), "this very test, which has a lock on it");
    drop(other);
    let alone = world.found(&tui);
    assert_eq!(alone["metrics"]["unmeasured"]["evidence"], Value::Null, "{alone:#}");
}

#[test]
fn goose_works_from_a_question_to_the_answer() {
    let world = World::new();
    let database = Database::new(&world, ".local/share/goose/sessions/sessions.db", GOOSE);
    let agent = agent(&world, "goose", &database);
    let model = json!({"model_name": "big", "context_limit": 1000}).to_string();
    let sql = "INSERT INTO sessions (id, total_tokens, accumulated_input_tokens, model_config_json) VALUES ('1', 250, 40, ?1)";
    database.change(sql, [model]);
    let say = |role: &str| {
        let sql = "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('1', ?1, '[]', ?2)";
        database.change(sql, (role, now_ms() / 1000));
    };
    say("user");
    let working = world.found(&agent);
    assert_eq!((&working["activity"]["state"], &working["activity"]["inferred"]), (&json!("working"), &json!(true)));
    say("assistant");
    let idle = world.found(&agent);
    assert_eq!(idle["activity"]["state"], "idle", "{idle:#}");
    let work = &idle["work"];
    assert_eq!(
        (&work["model"], &work["input_tokens"], &work["context_used_percent"]),
        (&json!("big"), &json!(40), &json!(25.0))
    );
    assert_eq!(work["output_tokens"], Value::Null);
    assert_eq!(idle["metrics"]["unmeasured"]["output_tokens"], "none are recorded yet", "{idle:#}");
}

#[test]
fn crush_works_until_an_answer_says_why_it_ends() {
    let world = World::new();
    let database = Database::new(&world, "project/.crush/crush.db", CRUSH);
    let agent = agent(&world, "crush", &database);
    database.change("INSERT INTO sessions (id, prompt_tokens, updated_at) VALUES ('1', 5, ?1)", [now_ms() / 1000]);
    let say = |parts: Value| {
        let sql = "INSERT OR REPLACE INTO messages VALUES ('m', '1', 'assistant', ?1, 'big', ?2)";
        database.change(sql, (parts.to_string(), now_ms() / 1000));
    };
    let call = json!({"type": "tool_call", "data": {"id": "c", "name": "bash", "input": "secret"}});
    say(json!([call]));
    let working = world.found(&agent);
    assert_eq!((&working["activity"]["state"], &working["work"]["current_tool"]), (&json!("working"), &json!("bash")));
    say(json!([call, {"type": "finish", "data": {"reason": "canceled", "time": now_ms() / 1000}}]));
    let idle = world.found(&agent);
    assert_eq!(
        (&idle["activity"]["state"], &idle["activity"]["reason"]),
        (&json!("idle"), &json!("aborted")),
        "{idle:#}"
    );
    assert_eq!((&idle["work"]["model"], &idle["work"]["input_tokens"]), (&json!("big"), &Value::Null));
    say(json!([{"type": "finish", "data": {"reason": "frobnicated", "time": now_ms() / 1000}}]));
    let unknown = world.found(&agent);
    assert_eq!(unknown["activity"]["state"], "unknown");
    assert!(unknown["activity"]["reason"].as_str().unwrap().contains("frobnicated"), "{unknown:#}");
}
