//! Retained sessions among the agents: which process each is, and which session shows it.

use super::world::*;
use crate::clock::SystemClock;
use crate::config::{Retained, Worktrees};
use crate::names::SessionId;
use crate::observe::facts::{Claim, ProcessState, Snapshot, Source as EvidenceSource};
use crate::observe::processes::Machine;
use crate::observe::roster::Source;
use crate::observe::roster::retained::RetainedSource;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The sessions in `folder`, shown in the session of this id where one is named.
fn scanned(folder: &Path, session: Option<&str>) -> Box<dyn Source> {
    let session = session.map(|id| SessionId::parse(id).unwrap());
    let setting = Retained { dir: None, scan: Some(folder.to_owned()), session, name: None };
    let here = Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() };
    Box::new(RetainedSource::new(setting, Worktrees::Together, here, Arc::new(SystemClock::default())))
}

/// Says in the folder of a session how it stands.
fn say(folder: &Path, name: &str, status: &str) {
    fs::create_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("new"), status).unwrap();
    fs::rename(folder.join(name).join("new"), folder.join(name).join("status.json")).unwrap();
}

/// Starts a process of this user, or of another, before or after the files of a test are written.
fn start(world: &mut World, pid: u32, cwd: &Path, is_later: bool, other: u32) {
    world.start(pid, 1, &["python3", "retain.py"], cwd);
    world.change(pid, |program| program.uid = Some(nix::unistd::geteuid().as_raw() + other));
    // Files are written by the real clock.
    world.processes.get_mut(&pid).unwrap().started_at_ms = if is_later { u64::MAX / 2 } else { 1000 };
}

/// The row of this name.
fn row<'a>(seen: &'a [Snapshot], name: &str) -> &'a crate::observe::facts::Agent {
    seen.iter().flat_map(|snapshot| &snapshot.agents).find(|agent| agent.name == name).expect("a row")
}

#[test]
fn a_status_that_is_left_behind_says_nothing_of_who_has_the_pid_now() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let identity = |pid: u32, start: u64, boot: &str| {
        format!(
            r#"{{"state":"ready","pid":{pid},"start":{start},"boot_id":"{boot}","pid_namespace":"pid:[1]","tools":[]}}"#
        )
    };
    for (name, pid) in [("alive", 10), ("gone", 11), ("later", 12), ("other", 13)] {
        say(top, name, &format!(r#"{{"state":"ready","pid":{pid},"tools":[]}}"#));
    }
    say(top, "exact", &identity(14, 1400, "boot"));
    say(top, "inexact", &identity(15, 1, "boot"));
    say(top, "rebooted", &identity(16, 1600, "before"));
    let mut scene = Scene::new(vec![scanned(top, None)], |world, disk| {
        for (pid, is_later, other) in [(10, false, 0), (12, true, 0), (13, false, 1)] {
            start(world, pid, disk, is_later, other);
        }
        for pid in [14, 15, 16] {
            start(world, pid, disk, true, 0);
        }
    });
    let seen = scene.look();
    let state = |name: &str| (row(&seen, name).process, row(&seen, name).process_id, gap(row(&seen, name), "process"));
    assert_eq!(state("alive"), (ProcessState::Sleeping, Some(10), None));
    assert_eq!(row(&seen, "alive").kind, "retained");
    assert_eq!(state("exact"), (ProcessState::Sleeping, Some(14), None));
    for (name, why) in [
        ("gone", "there is no process 11"),
        ("later", "process 12 is another one: it started after its pid was written down"),
        ("other", "process 13 is another one: it is of another user"),
        ("rebooted", "the machine was started anew since"),
    ] {
        assert_eq!(state(name), (ProcessState::Gone, None, Some(why)), "{name}");
    }
    assert_eq!((state("inexact").0, state("inexact").1), (ProcessState::Gone, Some(15)), "its start is another");
    scene.world().end(10);
    assert_eq!(row(&scene.look(), "alive").process, ProcessState::Gone);
    let disk = scene.disk.clone();
    start(scene.world(), 10, &disk, false, 0);
    scene.world().processes.get_mut(&10).unwrap().id.start = 5;
    assert_eq!(row(&scene.look(), "alive").process, ProcessState::Gone, "the next one with its pid is not it");
}

#[test]
fn an_end_that_was_told_is_one_when_the_process_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    say(folder.path(), "closed", r#"{"state":"closed","pid":10}"#);
    say(folder.path(), "failed", r#"{"state":"failed","pid":11,"error":"startup_failed"}"#);
    let mut scene = Scene::new(vec![scanned(folder.path(), None)], |_, _| {});
    let seen = scene.look();
    for (name, claim) in [("closed", Claim::Finished), ("failed", Claim::Failed)] {
        let agent = row(&seen, name);
        let ends = agent.evidence.iter().filter(|told| told.source == EvidenceSource::Process && told.word == "ended");
        assert_eq!((agent.process, ends.map(|end| end.claim).collect()), (ProcessState::Gone, vec![claim]));
    }
}

#[test]
fn it_joins_the_agents_that_work_in_its_project_and_whom_somebody_declares_there() {
    let disk = tempfile::tempdir().unwrap();
    let shop = fs::canonicalize(disk.path()).unwrap().join("shop");
    for folder in ["objects", "refs"] {
        fs::create_dir_all(shop.join(".git").join(folder)).unwrap();
    }
    fs::write(shop.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let kept = shop.join("kept");
    say(&kept, "sheets", r#"{"state":"ready","pid":10}"#);
    let prepare = |world: &mut World, _: &Path| {
        start(world, 10, &shop, false, 0);
        world.start(20, 1, &["claude"], &shop);
        world.change(20, |program| program.uid = Some(nix::unistd::geteuid().as_raw()));
    };
    let seen = Scene::new(vec![scanned(&kept, None)], prepare).look();
    assert_eq!(names(&seen), [["sheets", "claude"]]);
    assert_eq!((seen[0].session.name.as_str(), seen[0].session.root_path.as_str()), ("shop", shop.to_str().unwrap()));
    let found = seen[0].session.id.clone();
    // What somebody declares for the folder shows both.
    let mut declared = session("web", vec![]);
    declared.root_path = Some(shop.clone());
    let seen = Scene::new(vec![scanned(&kept, None), roster("roster:x", vec![declared])], prepare).look();
    assert_eq!((names(&seen), seen[0].session.id.as_str()), (vec![vec!["sheets", "claude"]], "web"));
    // And so does the session that the setting names, with the name that somebody gives it.
    let mut declared = session("team", vec![]);
    declared.name = Some("The team".to_owned());
    let seen = Scene::new(vec![scanned(&kept, Some("team")), roster("roster:x", vec![declared])], prepare).look();
    let team = seen.iter().find(|snapshot| snapshot.session.id == "team").unwrap();
    assert_eq!((team.session.name.as_str(), team.agents.len(), seen.len()), ("The team", 1, 2));
    // A session of that id or folder that is another user's does not.
    for id in ["team", &found] {
        let mut theirs = session(id, vec![]);
        (theirs.owner, theirs.root_path) = (Some("mallory".to_owned()), Some(shop.clone()));
        let named = (id == "team").then_some("team");
        let seen = Scene::new(vec![scanned(&kept, named), roster("registry", vec![theirs])], prepare).look();
        let its = seen.iter().find(|snapshot| snapshot.agents.iter().any(|agent| agent.name == "sheets")).unwrap();
        assert!(its.session.owner != "mallory" && its.session.id.starts_with(&format!("{id}-")), "{:?}", its.session);
        assert!(seen.iter().all(|snapshot| snapshot.session.owner != "mallory" || snapshot.agents.is_empty()));
    }
}
