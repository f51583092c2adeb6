//! Whose conversation is whose, over real databases.

use super::super::NO_PERMISSIONS;
use super::super::tests::{home, now, subject, undecided};
use super::*;
use headcount_tests::databases::{CRUSH, GOOSE, OPENCODE};
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::sync::Arc;

/// A home directory with an agent's database in it, and a reader.
struct Stage {
    home: tempfile::TempDir,
    owner: Connection,
    reader: Databases,
}

/// When the agents started.
const START: u64 = 1_788_688_800_000;

impl Stage {
    fn new(place: &str, tables: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(place);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let owner = Connection::open(file).unwrap();
        owner.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL").unwrap();
        owner.execute_batch(tables).unwrap();
        Self { home, owner, reader: Databases::default() }
    }

    fn opencode() -> Self {
        let stage = Self::new(PLACE, OPENCODE);
        for (id, parent) in [("ses_1", None), ("ses_2", None), ("ses_1a", Some("ses_1"))] {
            let sql = "INSERT INTO session (id, parent_id, time_updated, tokens_input) VALUES (?1, ?2, ?3, 7)";
            stage.owner.execute(sql, (id, parent, START as i64)).unwrap();
        }
        stage
    }

    /// An answer in a session of OpenCode's that has begun and not ended.
    fn answer(&self, id: &str, session: &str, at_ms: u64) {
        let data = json!({"role": "assistant", "modelID": "m", "time": {"created": at_ms}}).to_string();
        let sql = "INSERT INTO message VALUES (?1, ?2, ?3, ?4)";
        self.owner.execute(sql, (id, session, at_ms as i64, data)).unwrap();
    }

    fn agent(&self, kind: &str) -> Subject {
        subject(kind, home(self.home.path()))
    }

    /// An agent whose hooks have told this.
    fn told(&self, conversation: &str) -> Subject {
        Subject { conversation: Some(conversation.to_owned()), ..self.agent("opencode") }
    }

    /// An agent with this command line.
    fn argued(&self, kind: &str, line: &[&str]) -> Subject {
        let mut agent = self.agent(kind);
        let (id, program) = agent.processes.remove(0);
        let argv = Ok(line.iter().map(|slot| (*slot).to_owned()).collect());
        agent.processes.push((id, Arc::new(Program { argv, ..Program::clone(&program) })));
        agent
    }

    fn look(&mut self, agents: &[&Subject]) -> Vec<Testimony> {
        self.reader.read(agents, now(60))
    }
}

const PLACE: &str = ".local/share/opencode/opencode.db";

#[test]
fn a_conversation_is_that_of_the_process_whose_hooks_have_told_it() {
    let mut stage = Stage::opencode();
    stage.answer("m1", "ses_1", START + 5000);
    stage.answer("m2", "ses_2", START - 60_000);
    let agents = [stage.told("ses_1a"), stage.told("ses_2")];
    let said = stage.look(&agents.each_ref());
    assert_eq!(said[0].evidence, [rows::statement(Claim::Working, "unfinished", Some(NO_PERMISSIONS), START + 5000)]);
    let usage = said[0].usage.as_ref().unwrap();
    assert_eq!((usage.model.as_deref(), usage.input_tokens, usage.subagents), (Some("m"), Some(7), Some(0)));
    assert_eq!((said[1].evidence.len(), said[1].usage.is_some()), (0, true), "an earlier process has left it open");
}

#[test]
fn a_command_line_names_a_conversation_but_not_a_fork_of_it() {
    let mut stage = Stage::opencode();
    stage.answer("m1", "ses_1", START + 5000);
    for (line, is_named) in [
        (&["opencode", "-s", "ses_1"][..], true),
        (&["node", "/bin/opencode", "run", "--session=ses_1", "go on"], true),
        (&["opencode", "--session", "ses_1", "--fork"], false),
        (&["opencode", "run", "--", "-s", "ses_1"], false),
        (&["opencode", "-s", "../ses_1"], false),
        (&["opencode", "-s"], false),
    ] {
        let agent = stage.argued("opencode", line);
        assert_eq!(stage.look(&[&agent])[0].evidence.len(), usize::from(is_named), "{line:?}");
    }
}

#[test]
fn no_conversation_is_shown_twice() {
    let mut stage = Stage::opencode();
    let argued = stage.argued("opencode", &["opencode", "-s", "ses_1"]);
    let told = stage.told("ses_1");
    let said = stage.look(&[&argued, &argued]);
    for said in &said {
        assert!(undecided(said).contains("another process has the same"), "{said:?}");
    }
    let said = stage.look(&[&argued, &told]);
    assert!(undecided(&said[0]).contains("another process") && said[1].usage.is_some());
}

#[test]
fn what_is_not_there_is_said() {
    let mut stage = Stage::opencode();
    let agent = stage.told("ses_9");
    assert!(undecided(&stage.look(&[&agent])[0]).contains("not in its database"));
    let sql = "UPDATE session SET parent_id = 'ses_2' WHERE id = 'ses_1'; UPDATE session SET parent_id = 'ses_1' WHERE id = 'ses_2'";
    stage.owner.execute_batch(sql).unwrap();
    let agent = stage.told("ses_1");
    assert!(undecided(&stage.look(&[&agent])[0]).contains("deeper"));
    stage.owner.execute_batch("ALTER TABLE message RENAME COLUMN data TO content").unwrap();
    stage.owner.execute_batch("UPDATE session SET parent_id = NULL").unwrap();
    assert!(undecided(&stage.look(&[&agent])[0]).contains("has no column message.data"));
    fs::remove_file(stage.home.path().join(PLACE)).unwrap();
    assert!(undecided(&stage.look(&[&agent])[0]).contains("its database is not there"));
    fs::create_dir(stage.home.path().join(".local/share/opencode/storage")).unwrap();
    let nobody = stage.agent("opencode");
    assert!(undecided(&stage.look(&[&nobody])[0]).contains("open files cannot be read"));
    let place = stage.home.path().join(PLACE);
    assert!(opencode::OpenCode.without(&place).unwrap().contains("older form"));
}

#[test]
fn a_database_that_has_not_changed_is_not_read_again() {
    let mut stage = Stage::opencode();
    let agent = stage.told("ses_1");
    stage.owner.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    let file = fs::File::options().write(true).open(stage.home.path().join(PLACE)).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(START);
    file.set_modified(long_ago).unwrap();
    let known = stage.look(&[&agent]);
    assert!(known[0].usage.is_some());
    std::io::Write::write_all(&mut &file, &[0; 4096]).unwrap();
    file.set_modified(long_ago).unwrap();
    assert_eq!(stage.look(&[&agent]), known);
    let other = stage.told("ses_2");
    assert!(undecided(&stage.look(&[&other])[0]).contains("is no SQLite database"), "what is asked has changed");
}

#[test]
fn one_that_is_locked_is_read_as_soon_as_it_is_not() {
    let mut stage = Stage::opencode();
    let agent = stage.told("ses_1");
    stage
        .owner
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL")
        .unwrap();
    stage.owner.execute_batch("UPDATE session SET tokens_input = 8").unwrap();
    assert!(undecided(&stage.look(&[&agent])[0]).contains("is locked"));
    stage.owner = Connection::open_in_memory().unwrap();
    assert!(stage.look(&[&agent])[0].usage.is_some());
}

/// OpenCode as it was when sessions had no sums.
fn older_opencode() -> Stage {
    let stage = Stage::opencode();
    for column in ["input", "output", "reasoning", "cache_read", "cache_write"] {
        stage.owner.execute_batch(&format!("ALTER TABLE session DROP COLUMN tokens_{column}")).unwrap();
    }
    stage
}

impl Stage {
    /// Any message of a session of OpenCode's.
    fn message(&self, id: &str, data: &str) {
        self.owner.execute("INSERT OR REPLACE INTO message VALUES (?1, 'ses_1', 1, ?2)", (id, data)).unwrap();
    }
}

/// An answer that has taken this much.
fn spent(output: u64) -> String {
    let tokens = json!({"input": 10, "output": output, "reasoning": 1, "cache": {"read": 300, "write": 0}});
    json!({"role": "assistant", "time": {"created": START, "completed": START}, "tokens": tokens}).to_string()
}

#[test]
fn an_older_opencode_is_summed_up_from_its_messages() {
    let mut stage = older_opencode();
    for (id, data) in [("a", spent(20)), ("b", spent(20)), ("d", "{\"role\":\"user\"}".to_owned())] {
        stage.message(id, &data);
    }
    let agent = stage.told("ses_1");
    let usage = stage.look(&[&agent]).remove(0).usage.unwrap();
    let sums = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens);
    assert_eq!(sums, (Some(20), Some(42), Some(600), Some(0)));
    stage.message("c", "no JSON");
    let said = stage.look(&[&agent]).remove(0);
    assert_eq!(said.usage.unwrap().output_tokens, None, "what is not read may have taken some");
    assert!(said.unmeasured.iter().any(|gap| gap.field == "usage" && gap.reason.contains("not understood")));
}

#[test]
fn a_long_conversation_is_summed_up_bit_by_bit_and_nothing_twice() {
    let mut stage = older_opencode();
    stage.reader.budget = Duration::ZERO;
    let agent = stage.told("ses_1");
    for n in 0..100 {
        stage.message(&format!("m{n:03}"), &spent(20));
    }
    let output = |stage: &mut Stage| stage.look(&[&agent]).remove(0).usage.unwrap().output_tokens;
    let said = stage.look(&[&agent]).remove(0);
    assert_eq!(said.evidence.len(), 1, "what it does does not wait for that: {said:?}");
    assert!(said.unmeasured.contains(&gap("usage", "its conversation is still being summed up")), "{said:?}");
    let mut looks = 1;
    while output(&mut stage).is_none() {
        looks += 1;
        assert!(looks < 100);
    }
    assert!(looks > 3);
    assert_eq!(output(&mut stage), Some(2100));
    stage.message("m099", &spent(50));
    assert_eq!(output(&mut stage), Some(2130), "the newest answer grows");
    stage.message("m100", &spent(20));
    assert_eq!(output(&mut stage), Some(2151), "at once");
    stage.owner.execute("DELETE FROM message WHERE id >= 'm005'", []).unwrap();
    assert_eq!(output(&mut stage), Some(105), "what was taken back");
    for n in 0..50 {
        stage.message(&format!("n{n:03}"), "{\"role\":\"user\"}");
    }
    stage.message("o", &spent(20));
    assert_eq!(output(&mut stage), Some(126), "questions are passed over");
}

#[test]
fn databases_that_wait_are_read_in_turn_and_what_was_known_stands() {
    let stages: [Stage; 3] = std::array::from_fn(|_| Stage::opencode());
    for stage in &stages {
        stage.answer("m1", "ses_1", START + 5000);
    }
    let agents = stages.each_ref().map(|stage| stage.told("ses_1"));
    let mut reader = Databases { budget: Duration::ZERO, ..Databases::default() };
    let waits = |said: &Testimony| said.unmeasured.contains(&gap(ACTIVITY, WAITS));
    for read in 1..=3 {
        let said = reader.read(&agents.each_ref(), now(60));
        assert_eq!(said.iter().filter(|said| !waits(said)).count(), 1, "one a look");
        assert_eq!(said.iter().filter(|said| said.evidence.len() == 1 && said.usage.is_some()).count(), read);
        for unread in said.iter().filter(|said| said.usage.is_none()) {
            assert!(unread.evidence.is_empty() && unread.unmeasured.contains(&gap("evidence", WAITS)), "{unread:?}");
        }
    }
    let other = stages[0].told("ses_2");
    reader.read(&[&other, &agents[1], &agents[2]], now(60));
    reader.budget = BUDGET;
    assert!(!reader.read(&agents.each_ref(), now(60)).iter().any(waits), "all of them in time");
}

#[test]
fn goose_and_crush_are_read_from_tables_of_their_own() {
    let at = START as i64 / 1000 + 5;
    let mut goose = Stage::new(".local/share/goose/sessions/sessions.db", GOOSE);
    goose.owner.execute_batch("INSERT INTO sessions (id, accumulated_output_tokens) VALUES ('20260906_1', 9)").unwrap();
    let sql = "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('20260906_1', 'assistant', '[]', ?1)";
    goose.owner.execute(sql, [at]).unwrap();
    let agent = goose.argued("goose", &["goose", "session", "-r", "--session-id", "20260906_1"]);
    let said = goose.look(&[&agent]).remove(0);
    assert_eq!(said.evidence, [rows::statement(Claim::Idle, "assistant", Some("turn ended"), START + 5000)]);
    assert_eq!(said.usage.unwrap().output_tokens, Some(9));

    let mut crush = Stage::new("project/.crush/crush.db", CRUSH);
    crush.owner.execute("INSERT INTO sessions (id, updated_at) VALUES ('c-1', ?1)", [at]).unwrap();
    crush.owner.execute("INSERT INTO messages VALUES ('m', 'c-1', 'assistant', '[]', 'big', ?1)", [at]).unwrap();
    let mut agent = crush.argued("crush", &["crush", "--session", "c-1"]);
    let program = Program { cwd: Ok(crush.home.path().join("project")), ..Program::clone(&agent.processes[0].1) };
    agent.processes[0].1 = Arc::new(program);
    let said = crush.look(&[&agent]).remove(0);
    assert_eq!(said.evidence, [rows::statement(Claim::Working, "unfinished", Some(NO_PERMISSIONS), START + 5000)]);
    let usage = said.usage.unwrap();
    assert_eq!((usage.model.as_deref(), usage.input_tokens), (Some("big"), None));
}
