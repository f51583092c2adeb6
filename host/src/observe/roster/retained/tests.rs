//! Retained sessions: what is read of their folders, and what is said of it.

use super::*;
use crate::clock::ManualClock;
use crate::files::make_pipe;
use crate::observe::facts::{ACTIVITY, Claim};
use crate::observe::processes::ProcessId;
use crate::observe::roster::Locator;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

/// Long before any file of a test is written: no list of folders counts as settled.
const NOW_MS: u64 = 1_000_000_000;

/// A folder of sessions, and a source that reads it.
struct Stage {
    top: PathBuf,
    clock: Arc<ManualClock>,
    source: RetainedSource,
    _removed_when_dropped: tempfile::TempDir,
}

impl Stage {
    fn new(setting: impl FnOnce(&Path) -> Retained) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let clock = Arc::new(ManualClock::at(NOW_MS));
        let here = Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() };
        let source = RetainedSource::new(setting(&top), Worktrees::Together, here, clock.clone());
        Self { top, clock, source, _removed_when_dropped: folder }
    }

    fn scan() -> Self {
        Self::new(|top| Retained { scan: Some(top.to_owned()), ..nothing() })
    }

    fn dir() -> Self {
        Self::new(|top| Retained { dir: Some(top.join("one")), ..nothing() })
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.top.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Says `status` in the session's folder, as programs do: whole, or not at all.
    fn say(&self, name: &str, status: &str) {
        let folder = self.folder(name);
        fs::write(folder.join("status.tmp"), status).unwrap();
        fs::rename(folder.join("status.tmp"), folder.join(STATUS_FILE)).unwrap();
    }

    fn agents(&mut self) -> Vec<DeclaredAgent> {
        self.source.read().0.sessions.iter().flat_map(|session| session.agents.clone()).collect()
    }

    fn names(&mut self) -> Vec<String> {
        self.agents().iter().map(|agent| agent.name.to_string()).collect()
    }

    fn problem(&mut self) -> Option<String> {
        self.source.read().1
    }

    fn only(&mut self) -> DeclaredAgent {
        let mut agents = self.agents();
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents.remove(0)
    }
}

fn nothing() -> Retained {
    Retained { dir: None, scan: None, session: None, name: None }
}

/// Claim and detail of all evidence.
fn told(agent: &DeclaredAgent) -> Vec<(Claim, &str)> {
    agent.said.evidence.iter().map(|told| (told.claim, told.detail.as_deref().unwrap())).collect()
}

#[test]
fn what_the_older_program_writes_is_understood() {
    let mut stage = Stage::dir();
    assert_eq!((stage.names(), stage.problem()), (vec![], None), "there is no folder yet");
    stage.folder("one");
    assert_eq!((stage.names(), stage.problem()), (vec![], None), "there is no status yet");
    stage.say("one", r#"{"state": "ready", "pid": 7, "tools": ["read_cell", "list"]}"#);
    let agent = stage.only();
    assert_eq!((agent.name.as_str(), agent.said.kind.as_deref()), ("one", Some("retained")));
    assert_eq!(told(&agent), [(Claim::Idle, "ready, 2 tools")]);
    let Locator::Pid { pid: 7, start: None, written } = agent.process else { panic!("{agent:?}") };
    assert!(written.at_ms.is_some() && written.uid.is_some());
    stage.say("one", r#"{"state": "busy", "pid": 7, "active_tool": "read\u001b[31m_cell"}"#);
    let agent = stage.only();
    assert_eq!(told(&agent), [(Claim::Working, "calls read_cell")]);
    assert_eq!(agent.said.usage.unwrap().current_tool.as_deref(), Some("read_cell"));
    stage.say("one", r#"{"state": "ready", "pid": 7, "connected": false, "tools": ["x"]}"#);
    assert_eq!(told(&stage.only()), [(Claim::Idle, "ready, 1 tool; not connected")], "ours says so");
    stage.say("one", r#"{"state": "closed", "pid": 7}"#);
    assert_eq!(told(&stage.only()), [(Claim::Finished, "closed"); 2]);
    stage.say("one", r#"{"state": "failed", "pid": 7, "error": "startup_failed"}"#);
    assert_eq!(told(&stage.only()), [(Claim::Failed, "failed: startup_failed"); 2]);
    fs::remove_dir_all(stage.top.join("one")).unwrap();
    assert_eq!((stage.names(), stage.problem()), (vec![], None), "who takes its folder away is gone");
}

#[test]
fn a_process_is_known_by_boot_namespace_and_start() {
    let mut stage = Stage::dir();
    let full = |boot: &str, namespace: &str| {
        format!(
            r#"{{"state":"ready","pid":7,"start":70,"boot_id":"{boot}","pid_namespace":"{namespace}","server":"calc 1.0",
                "since_ms":5,"heartbeat_ms":{NOW_MS},"later":{{"members":[1]}}}}"#
        )
    };
    for boot in ["boot", "before"] {
        stage.say("one", &full(boot, "pid:[1]"));
        let agent = stage.only();
        let machine = Machine { boot_id: boot.to_owned(), pid_namespace: "pid:[1]".to_owned() };
        assert_eq!(agent.process, Locator::Exactly { machine, id: ProcessId { pid: 7, start: 70 } });
        assert_eq!((agent.specialization.as_deref(), agent.said.evidence[0].at_ms), (Some("calc 1.0"), 5));
    }
    stage.say("one", &full("boot", "pid:[2]"));
    let agent = stage.only();
    assert_eq!((&agent.process, told(&agent)), (&Locator::Elsewhere, vec![(Claim::Idle, "ready")]));
    assert_eq!(agent.said.unmeasured[0].reason, "process 7 of another pid namespace");
    // Nothing of it can be seen from here but its heartbeat.
    stage.clock.advance(Duration::from_secs(61));
    let agent = stage.only();
    assert_eq!((agent.said.evidence.len(), agent.said.unmeasured[1].field.as_ref()), (0, ACTIVITY));
    stage.say("one", &full("boot", "pid:[1]"));
    assert_eq!(told(&stage.only()), [(Claim::Idle, "ready; no heartbeat for 61 s")], "its process says more");
}

#[test]
fn nothing_is_made_anew_while_nothing_changes() {
    let mut stage = Stage::scan();
    stage.say("one", r#"{"state":"ready","pid":7}"#);
    let first = stage.source.read().0;
    assert!(Arc::ptr_eq(&first, &stage.source.read().0));
    stage.say("one", r#"{"state":"busy","pid":7}"#);
    assert!(!Arc::ptr_eq(&first, &stage.source.read().0));
    stage.say("two", r#"{"state":"ready","pid":8}"#);
    assert_eq!(stage.names(), ["one", "two"]);
    fs::remove_dir_all(stage.top.join("one")).unwrap();
    assert_eq!(stage.names(), ["two"]);
}

#[test]
fn what_cannot_be_read_for_a_moment_leaves_what_was_said_and_then_nothing_is_known() {
    let mut stage = Stage::dir();
    stage.say("one", r#"{"state":"ready","pid":7}"#);
    stage.only();
    stage.say("one", r#"{"state":"rea"#);
    assert_eq!(told(&stage.only()), [(Claim::Idle, "ready")]);
    assert!(stage.problem().unwrap().ends_with("one: status.json is not understood"));
    stage.clock.advance(Duration::from_secs(120));
    let agent = stage.only();
    assert_eq!(agent.said.evidence, []);
    let gap = &agent.said.unmeasured[0];
    assert_eq!((gap.field.as_ref(), gap.reason.as_str()), (ACTIVITY, "its status could not be read for 2 min"));
    stage.say("one", r#"{"state":"ready","pid":7}"#);
    assert_eq!((told(&stage.only()), stage.problem()), (vec![(Claim::Idle, "ready")], None));
}

#[test]
fn what_is_no_plain_file_of_a_sensible_size_is_not_read() {
    let status = r#"{"state":"ready","pid":7}"#;
    let mut stage = Stage::scan();
    fs::write(stage.top.join("elsewhere.json"), status).unwrap();
    make_pipe(&stage.folder("pipe").join(STATUS_FILE));
    assert!(stage.problem().unwrap().ends_with("pipe: status.json is not a regular file"));
    fs::remove_dir_all(stage.top.join("pipe")).unwrap();
    symlink("../elsewhere.json", stage.folder("link").join(STATUS_FILE)).unwrap();
    symlink("/dev/zero", stage.folder("zero").join(STATUS_FILE)).unwrap();
    fs::create_dir(stage.folder("folder").join(STATUS_FILE)).unwrap();
    fs::write(stage.folder("huge").join(STATUS_FILE), format!("{status}{}", " ".repeat(256 << 10))).unwrap();
    fs::write(stage.folder("deep").join(STATUS_FILE), "[".repeat(100_000)).unwrap();
    fs::write(stage.folder("bytes").join(STATUS_FILE), [0xff; 100]).unwrap();
    symlink(stage.top.join("good"), stage.top.join("linked")).unwrap();
    stage.say("good/deeper", status);
    stage.say("good", status);
    fs::create_dir(stage.top.join("empty")).unwrap();
    assert_eq!(stage.names(), ["good"]);
    let said = stage.problem().unwrap();
    assert_eq!(said.lines().count(), MOST_TOLD + 1);
    assert!(said.ends_with("and 3 more"), "{said}");
}

#[test]
fn a_link_leads_to_a_folder_where_somebody_names_it() {
    let mut stage = Stage::dir();
    stage.say("real", r#"{"state":"ready","pid":7}"#);
    symlink("real", stage.top.join("one")).unwrap();
    assert_eq!(stage.names(), ["one"]);
}

#[test]
fn of_thousands_those_that_have_changed_last_are_shown() {
    let mut stage = Stage::scan();
    for n in 0..MOST + 3 {
        stage.say(&format!("{n:04}"), r#"{"state":"closed","pid":7}"#);
        let long_ago = fs::File::options().append(true).open(stage.top.join(format!("{n:04}/status.json"))).unwrap();
        let at = std::time::UNIX_EPOCH + Duration::from_secs(if n == 1 { 5 } else { 1000 + n as u64 });
        long_ago.set_modified(at).unwrap();
    }
    let names = stage.names();
    assert_eq!((names.len(), names[0].as_str()), (MOST, "0003"), "the oldest are left out");
    stage.say("0001", r#"{"state":"ready","pid":7}"#);
    let open = fs::File::options().append(true).open(stage.top.join("0001/status.json")).unwrap();
    open.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(4)).unwrap();
    let names = stage.names();
    assert_eq!(
        (names.len(), names[0].as_str()),
        (MOST, "0001"),
        "one that has not ended is shown before all that have"
    );
}

#[test]
fn where_more_are_open_than_are_shown_it_is_said() {
    let mut stage = Stage::scan();
    for n in 0..=MOST {
        assert_eq!(stage.source.read().1, None, "{n}");
        stage.say(&format!("{n:04}"), r#"{"state":"ready","pid":7}"#);
        stage.clock.advance(Duration::from_secs(10));
    }
    assert_eq!(stage.source.read().1.as_deref(), Some("more than 256 have not ended: not all are shown"));
}

#[test]
fn names_of_folders_are_hostile() {
    let mut stage = Stage::scan();
    let long = "x".repeat(200);
    for name in ["a\u{1b}]0;x\u{7}b\n", "ab", " ", &long, "\u{202e}ab"] {
        stage.say(name, r#"{"state":"ready","pid":7}"#);
    }
    let mut names = stage.names();
    assert_eq!(names.len(), 5);
    assert!(names.iter().all(|name| name.chars().count() <= 128 && !name.contains(char::is_control)), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn it_belongs_to_the_project_in_which_its_folder_lies_unless_another_session_is_named() {
    let mut stage = Stage::new(|top| Retained { scan: Some(top.join("shop/.mcp")), ..nothing() });
    for folder in ["shop/.git/objects", "shop/.git/refs"] {
        stage.folder(folder);
    }
    fs::write(stage.top.join("shop/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    stage.say("shop/.mcp/one", r#"{"state":"ready","pid":7}"#);
    stage.say("shop/.mcp/two", r#"{"state":"ready","pid":8}"#);
    let roster = stage.source.read().0;
    let [shop] = roster.sessions.as_slice() else { panic!("{roster:?}") };
    assert_eq!((shop.name.as_deref(), shop.agents.len(), shop.joins), (Some("shop"), 2, true));
    assert_eq!(shop.root_path.as_deref(), Some(stage.top.join("shop").as_path()));
    assert_eq!(shop.id.as_str(), ids::session_id(&stage.top.join("shop"), None));
    let named = || SessionId::parse("team").ok();
    let mut stage = Stage::new(|top| Retained {
        dir: Some(top.join("one")),
        session: named(),
        name: AgentName::parse("calc").ok(),
        ..nothing()
    });
    stage.say("one", r#"{"state":"ready","pid":7}"#);
    let roster = stage.source.read().0;
    assert_eq!((Some(&roster.sessions[0].id), &roster.sessions[0].root_path), (named().as_ref(), &None));
    assert_eq!(stage.names(), ["calc"]);
}

#[test]
fn a_file_of_another_user_than_its_folder_is_not_read() {
    // Only root can give a file away; elsewhere there is none to be tried.
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut stage = Stage::scan();
    stage.say("mine", r#"{"state":"ready","pid":7}"#);
    std::os::unix::fs::chown(stage.top.join("mine/status.json"), Some(65534), None).unwrap();
    assert_eq!(stage.names(), Vec::<String>::new());
    assert!(stage.problem().unwrap().ends_with("mine: status.json is another user's than its folder"));
    // What is wrong in others' folders is not told; what is well there is theirs.
    std::os::unix::fs::chown(stage.top.join("mine"), Some(65534), None).unwrap();
    assert_eq!((stage.names(), stage.problem()), (vec!["mine".to_owned()], None));
    let theirs = stage.source.read().0;
    let [session] = theirs.sessions.as_slice() else { panic!("{theirs:?}") };
    assert_ne!(session.owner.as_deref(), Some(stage.source.owners.me().as_str()));
    stage.say("mine", "{");
    std::os::unix::fs::chown(stage.top.join("mine/status.json"), Some(65534), None).unwrap();
    assert_eq!((stage.names(), stage.problem()), (vec!["mine".to_owned()], None));
}
