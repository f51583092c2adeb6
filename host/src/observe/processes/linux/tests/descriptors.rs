//! Which files a process holds open for writing, of real processes.

use super::stage::{Actor, identify, sampler};
use crate::clock::Moment;
use crate::observe::processes::{OpenFiles, ProcessId};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A shell that has run this script and waits, and which process it is. Where the tests' own words go is none of its files.
fn shell(script: &str) -> (Actor, ProcessId) {
    let mut actor = Actor::shell(&format!("exec 2>/dev/null\n{script}\necho ready; read -r line"));
    actor.hear("ready");
    let id = identify(&mut sampler(), actor.pid());
    (actor, id)
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

fn written(id: ProcessId) -> Result<Vec<PathBuf>, String> {
    OpenFiles::default().written_by(id, now(0), is_log)
}

fn now(second: u64) -> Moment {
    Moment { unix_ms: 0, steady: Duration::from_secs(second) }
}

#[test]
fn only_regular_files_that_are_open_for_writing_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir(dir.join("folder.log")).unwrap();
    fs::write(dir.join("read.log"), "").unwrap();
    crate::files::make_pipe(&dir.join("pipe.log"));
    let at = dir.display();
    let (_actor, id) = shell(&format!(
        "exec 3>>{at}/appended.log 4>{at}/written.log 5<>{at}/both.log 6<{at}/read.log 7<{at}/folder.log 8<>{at}/pipe.log \
         9>>{at}/other.txt"
    ));
    let mut found = written(id).unwrap();
    found.sort();
    assert_eq!(found, ["appended.log", "both.log", "written.log"].map(|name| dir.join(name)));
}

#[test]
fn a_file_that_has_lost_its_name_or_given_it_away_is_not_mistaken() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let log = dir.join("a.log");
    let (_actor, id) = shell(&format!("exec 3>>{}", log.display()));
    assert_eq!(written(id), Ok(vec![log.clone()]));
    fs::rename(&log, dir.join("b.log")).unwrap();
    assert_eq!(written(id), Ok(vec![dir.join("b.log")]), "a name is what it is now");
    fs::remove_file(dir.join("b.log")).unwrap();
    fs::write(&log, "").unwrap();
    assert_eq!(written(id), Ok(vec![]), "it has no name that ends so");
}

#[test]
fn another_process_with_the_pid_is_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let (actor, id) = shell(&format!("exec 3>>{}/a.log", dir.path().display()));
    let earlier = ProcessId { start: id.start - 1, ..id };
    assert!(written(earlier).is_err() && written(id).is_ok());
    drop(actor);
    assert!(written(id).is_err());
}

#[test]
fn a_list_stands_for_a_while_unless_it_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let [a, b] = ["a.log", "b.log"].map(|name| dir.join(name));
    let script = format!("exec 3>>{}\necho ready; read -r line; exec 4>>{}", a.display(), b.display());
    let (mut actor, id) = shell(&script);
    let mut files = OpenFiles::default();
    assert_eq!(files.written_by(id, now(0), is_log), Ok(vec![a.clone()]));
    actor.say("go on");
    actor.hear("ready");
    assert_eq!(files.written_by(id, now(1), is_log), Ok(vec![a.clone()]), "the new one is not looked for yet");
    assert_eq!(files.written_by(id, now(3), is_log), Ok(vec![a.clone(), b]));
    fs::rename(&a, dir.join("a.txt")).unwrap();
    assert_eq!(
        files.written_by(id, now(4), is_log),
        Ok(vec![dir.join("b.log")]),
        "its name says that it is another one"
    );
}
