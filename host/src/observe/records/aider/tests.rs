//! A chat is that of the agent that began with it.

use super::super::tests::{home, now, subject, undecided};
use super::*;
use crate::observe::facts::Claim;
use std::fs::{self, File};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const TOKENS: &str = "> Tokens: 12k sent, 340 received.  \n";

/// A project with a history, and a reader of it.
struct Stage {
    project: tempfile::TempDir,
    reader: Aider,
}

impl Stage {
    fn new() -> Self {
        let project = tempfile::tempdir().unwrap();
        fs::create_dir_all(project.path().join("src")).unwrap();
        fs::create_dir(project.path().join(".git")).unwrap();
        Self { project, reader: Aider::default() }
    }

    /// An aider with this pid that started at the beginning, below the project.
    fn agent(&self, pid: u32, argv: &[&str]) -> Subject {
        let mut agent = subject("aider", home(self.project.path()));
        let (id, program) = &mut agent.processes[0];
        id.pid = pid;
        let argv = Ok(argv.iter().map(ToString::to_string).collect());
        let cwd = Ok(self.project.path().join("src"));
        *program = Arc::new(Program { argv, cwd, ..Program::clone(program) });
        agent
    }

    /// A history that was written so many seconds after the beginning.
    fn write(&self, file: &str, content: &str, second: u64) {
        let path = self.project.path().join(file);
        fs::write(&path, content).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(now(second).unix_ms);
        File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }

    fn look(&mut self, agent: &Subject, second: u64) -> Testimony {
        self.reader.read(&[agent], now(second)).remove(0)
    }
}

/// The header of a chat that began at this time of the day.
fn chat(time: &str) -> String {
    format!("\n# aider chat started at 2026-09-06 {time}\n\n> Main model: gpt-6 with diff edit format  \n")
}

#[test]
fn the_last_chat_is_that_of_the_agent_that_began_with_it() {
    let mut stage = Stage::new();
    let agent = stage.agent(1, &["python", "aider"]);
    let open = format!("{}\n#### secret  \n{TOKENS}{}\n#### secret  \n", chat("08:00:00"), chat("10:00:03"));
    stage.write(NAME, &open, 9);
    let said = stage.look(&agent, 10);
    let claims = |said: &Testimony| said.evidence.iter().map(|said| (said.claim, said.at_ms)).collect::<Vec<_>>();
    assert_eq!(claims(&said), [(Claim::Working, now(9).unix_ms)]);
    assert_eq!(said.usage.unwrap().model, Some("gpt-6".to_owned()));
    stage.write(NAME, &format!("{open}\nsecret\n\n{TOKENS}"), 12);
    let said = stage.look(&agent, 13);
    assert_eq!(claims(&said), [(Claim::Idle, now(12).unix_ms)]);
    assert_eq!((said.usage.unwrap().input_tokens, said.unmeasured.len()), (Some(12_000), 0));
    stage.write(NAME, &format!("{open}\n#### /run make  \n"), 14);
    let said = stage.look(&agent, 15);
    assert_eq!((said.evidence.len(), &*said.unmeasured[0].field), (0, "evidence"));
}

#[test]
fn a_chat_of_another_time_is_another_ones() {
    let mut stage = Stage::new();
    let agent = stage.agent(1, &["aider"]);
    assert!(undecided(&stage.look(&agent, 0)).contains("no such file"));
    for (time, written) in [("09:59:50", 5), ("10:02:00", 5), ("10:00:03", -60)] {
        let mut other = agent.clone();
        other.started_at_ms = other.started_at_ms.saturating_add_signed(-written.min(0) * 1000 * 2);
        stage.write(NAME, &chat(time), 5);
        stage.reader = Aider::default();
        assert!(undecided(&stage.look(&other, 10)).contains("did not begin when it started"), "{time}");
    }
}

#[test]
fn every_zone_s_clock_is_understood_and_no_other() {
    let start = now(0).unix_ms;
    let began = |wall: &str| began_with(wall.parse().unwrap(), start);
    for zone in [
        "2026-09-06T10:00:05",
        "2026-09-06T15:45:05",
        "2026-09-07T00:00:59",
        "2026-09-05T22:00:00",
        "2026-09-06T09:59:59",
    ] {
        assert!(began(zone), "{zone}");
    }
    for none in [
        "2026-09-06T10:01:05",
        "2026-09-06T10:07:00",
        "2026-09-07T00:15:05",
        "2026-09-05T21:45:05",
        "2026-09-05T10:00:05",
    ] {
        assert!(!began(none), "{none}");
    }
    for broken in [0, u64::MAX, 1] {
        assert!(!began_with("2026-09-06T10:00:05".parse().unwrap(), broken), "{broken}");
    }
}

#[test]
fn two_that_write_to_one_file_are_not_told_apart() {
    let mut stage = Stage::new();
    stage.write(NAME, &format!("{}{}", chat("10:00:03"), chat("10:00:04")), 9);
    let (one, two) = (stage.agent(1, &["aider"]), stage.agent(2, &["aider", "--model", "x"]));
    let apart = stage.agent(3, &["aider", "--chat-history-file", "mine.md"]);
    stage.write("src/mine.md", &chat("10:00:05"), 9);
    let said = stage.reader.read(&[&one, &apart, &two, &one], now(10));
    for shared in [&said[0], &said[2]] {
        assert!(undecided(shared).contains("another aider"), "{shared:?}");
    }
    assert!(said[1].usage.is_some());
    let said = stage.reader.read(&[&one], now(11));
    assert!(undecided(&said[0]).contains("or did"), "what the other one wrote still stands there");
    stage.write(NAME, &chat("10:00:03"), 11);
    let third = stage.agent(4, &["aider"]);
    let said = stage.reader.read(&[&third, &third], now(12));
    assert!(said.iter().all(|said| said.usage.is_some()), "the same one twice is no other: {said:?}");
}

#[test]
fn of_two_chats_that_began_at_once_neither_is_anybody_s() {
    let mut stage = Stage::new();
    let agent = stage.agent(1, &["aider"]);
    stage.write(NAME, &format!("{}{TOKENS}{}{TOKENS}", chat("10:00:03"), chat("10:00:40")), 9);
    assert!(undecided(&stage.look(&agent, 10)).contains("another aider"), "who looks for the first time sees it too");
    stage.reader = Aider::default();
    stage.write(NAME, &format!("{}{TOKENS}{}{TOKENS}", chat("09:58:00"), chat("10:00:03")), 19);
    assert!(stage.look(&agent, 20).usage.is_some());
}

#[test]
fn the_history_is_where_the_agent_was_told_to_keep_it() {
    let stage = Stage::new();
    let place = |argv: &[&str]| {
        let place = history_of(&stage.agent(1, argv).processes[0].1).unwrap();
        place.strip_prefix(stage.project.path()).unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(place(&["aider", "--chat-language", "x"]), NAME);
    assert_eq!(place(&["aider", "--no-git"]), format!("src/{NAME}"));
    assert_eq!(place(&["aider", "--chat-history-file", "a.md"]), "src/a.md");
    assert_eq!(place(&["aider", "--chat-history-file=a.md", "--chat-hist", "b.md"]), "src/b.md");
    assert_eq!(place(&["aider", "--chat-history-file"]), NAME);
    let mut program = Program::clone(&stage.agent(1, &["aider"]).processes[0].1);
    program.env = Ok(vec![("AIDER_CHAT_HISTORY_FILE".to_owned(), "/x/c.md".to_owned())]);
    assert_eq!(history_of(&program), Ok(PathBuf::from("/x/c.md")));
    program.argv = Err("permission denied".to_owned());
    assert!(history_of(&program).unwrap_err().contains("permission denied"));
}
