//! Tests of the registry and of the database below it.

use super::*;
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn registration(session: &str, agent: &str) -> Registration {
    Registration {
        session_id: SessionId::parse(session).unwrap(),
        session_name: Some("Shop rewrite".into()),
        root_path: Some("/srv/shop".into()),
        agent_name: AgentName::parse(agent).unwrap(),
        specialization: Some("backend".into()),
        process: Some(RegisteredProcess {
            pid: 4242,
            start: u64::MAX - 1,
            boot_id: "boot-1".into(),
            pid_namespace: "pid:[1]".into(),
        }),
        owner: "ada".into(),
        registered_by: "orchestrator".into(),
        registered_at_ms: 40 * DAY_MS,
    }
}

fn names(store: &Store) -> Vec<String> {
    store.list().unwrap().into_iter().map(|one| one.agent_name.to_string()).collect()
}

#[test]
fn what_is_registered_is_listed_until_it_is_withdrawn() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(&dir.path().join("state"));
    let backend = registration("shop", "backend");
    let remote = Registration { process: None, specialization: None, ..registration("shop", "remote") };
    let first = store.register(&backend).unwrap();
    assert_eq!(first, Registered { agent_id: backend.agent_name.agent_id(), replaced: false });
    store.register(&remote).unwrap();
    assert_eq!(Store::at(&dir.path().join("state")).list().unwrap(), [backend.clone(), remote]);
    assert!(store.unregister(&backend.session_id, &backend.agent_name).unwrap());
    assert!(!store.unregister(&backend.session_id, &backend.agent_name).unwrap());
    assert_eq!(names(&store), ["remote"]);
}

#[test]
fn nobody_registers_in_the_session_of_another_owner() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let adas = registration("shop", "backend");
    store.register(&adas).unwrap();
    let theirs = Registration { owner: "bob".into(), registered_at_ms: 1, ..registration("shop", "spy") };
    let error = store.register(&theirs).unwrap_err();
    assert_eq!(error.to_string(), "session shop belongs to ada; choose another id");
    assert_eq!(store.list().unwrap(), std::slice::from_ref(&adas));
    store.unregister(&adas.session_id, &adas.agent_name).unwrap();
    store.register(&theirs).unwrap();
    assert_eq!(store.list().unwrap(), [theirs]);
}

#[test]
fn registering_again_replaces_and_the_last_word_on_the_session_counts() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.register(&registration("shop", "backend")).unwrap();
    let mut again = registration("shop", "backend");
    again.session_name = Some("Shop".into());
    again.root_path = None;
    again.process = None;
    assert!(store.register(&again).unwrap().replaced);
    let root_path = Some("/srv/shop".into());
    assert_eq!(store.list().unwrap(), [Registration { root_path, ..again }]);
}

#[test]
fn only_what_ended_with_an_earlier_boot_is_forgotten_after_a_month() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let at = |agent: &str, boot: &str, day: u64| {
        let mut one = registration(agent, agent);
        one.registered_at_ms = day * DAY_MS;
        one.process.as_mut().unwrap().boot_id = boot.into();
        one
    };
    let remote = Registration { process: None, ..at("remote", "", 0) };
    for one in [&remote, &at("old", "boot-1", 0), &at("recent", "boot-1", 5), &at("lasting", "boot-2", 0)] {
        store.register(one).unwrap();
    }
    assert_eq!(names(&store), ["lasting", "old", "recent", "remote"]);
    store.register(&at("new", "boot-2", 31)).unwrap();
    assert_eq!(names(&store), ["lasting", "new", "recent", "remote"]);
}

#[test]
fn texts_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let long = Registration { owner: "x".repeat(257), ..registration("shop", "backend") };
    let error = store.register(&long).unwrap_err().to_string();
    assert_eq!(error, "the owner has 257 characters: at most 256 are allowed");
    let hostile = Registration { session_name: Some("\u{1b}[2J".into()), ..registration("shop", "backend") };
    let error = store.register(&hostile).unwrap_err().to_string();
    assert_eq!(error, "the session's name holds a control character");
}

#[test]
fn writers_of_several_processes_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let dir = dir.path();
            // A connection each, as processes have; all of them find no database at first.
            scope.spawn(move || {
                let store = Store::at(dir);
                for agent in 0..25 {
                    store.register(&registration("shop", &format!("{writer}-{agent}"))).unwrap();
                    let shared = store.register(&registration("shop", "shared")).unwrap();
                    assert_eq!(shared.agent_id, registration("shop", "shared").agent_id());
                    store.list().unwrap();
                }
            });
        }
    });
    assert_eq!(Store::at(dir.path()).list().unwrap().len(), 4 * 25 + 1);
}

#[test]
fn reading_makes_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    assert_eq!(Store::at(&state).list().unwrap(), []);
    assert!(!state.exists());
}

#[cfg(unix)]
#[test]
fn its_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let store = Store::at(&state);
    store.register(&registration("shop", "backend")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    let files: Vec<_> = fs::read_dir(&state).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1, "the write-ahead log is beside it: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_file_that_is_no_database_is_said_to_be_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    fs::write(store.path(), "x".repeat(8192)).unwrap();
    assert!(matches!(store.list(), Err(StoreError::Damaged { .. })), "{:?}", store.list());
    let error = store.register(&registration("shop", "backend")).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    fs::remove_file(store.path()).unwrap();
    store.register(&registration("shop", "backend")).unwrap();
}

#[test]
fn damage_within_a_database_is_an_error_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    for agent in 0..200 {
        store.register(&registration("shop", &format!("agent {agent}"))).unwrap();
    }
    drop(store);
    let path = Store::at(dir.path()).path();
    let whole = fs::read(&path).unwrap();
    for start in (100..whole.len()).step_by(997) {
        let mut bytes = whole.clone();
        let end = (start + 512).min(bytes.len());
        bytes[start..end].fill(0xa5);
        fs::write(&path, bytes).unwrap();
        let store = Store::at(dir.path());
        // Some damage falls where nothing is read.
        let _ = store.list();
        let _ = store.register(&registration("shop", "one more"));
    }
}

#[test]
fn a_newer_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let connection = Connection::open(store.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = fs::read(store.path()).unwrap();
    let error = store.register(&registration("shop", "backend")).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert_eq!(fs::read(store.path()).unwrap(), before);
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let store = Store::at(&file.join("state"));
    let error = store.register(&registration("shop", "backend")).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(matches!(store.list(), Err(StoreError::Unreachable { .. })));
}

#[test]
fn a_database_that_was_taken_away_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.register(&registration("shop", "backend")).unwrap();
    for file in fs::read_dir(dir.path()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(store.list().unwrap(), []);
    store.register(&registration("shop", "frontend")).unwrap();
    assert_eq!(names(&Store::at(dir.path())), ["frontend"]);
}

#[test]
fn processes_that_begin_a_database_at_once_do_not_get_in_each_others_way() {
    for _ in 0..15 {
        let dir = tempfile::tempdir().unwrap();
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for writer in 0..8 {
                let (dir, start) = (dir.path(), &start);
                scope.spawn(move || {
                    let store = Store::at(dir);
                    start.wait();
                    store.register(&registration("shop", &format!("{writer}"))).unwrap();
                });
            }
        });
        assert_eq!(Store::at(dir.path()).list().unwrap().len(), 8);
    }
}

#[test]
fn a_process_that_never_lets_go_stops_nobody_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let lock = fs::File::create(dir.path().join("headcount.lock")).unwrap();
    lock.lock().unwrap();
    let error = Store::at(dir.path()).register(&registration("shop", "backend")).unwrap_err().to_string();
    assert!(error.contains("another process keeps it locked"), "{error}");
}

#[test]
fn who_reads_once_waits_until_a_new_database_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let lock = fs::File::create(dir.path().join("headcount.lock")).unwrap();
    lock.lock().unwrap();
    fs::File::create(dir.path().join("headcount.db")).unwrap();
    thread::scope(|scope| {
        let once = scope.spawn(|| Store::at(dir.path()).reading_once().list());
        assert!(Store::at(dir.path()).list().is_err(), "who reads again and again does not");
        lock.unlock().unwrap();
        assert_eq!(once.join().unwrap().unwrap(), []);
    });
}

#[test]
fn a_reader_waits_for_nobody_for_long() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.register(&registration("shop", "backend")).unwrap();
    drop(store);
    let lock = fs::File::create(dir.path().join("headcount.lock")).unwrap();
    lock.lock().unwrap();
    let start = Instant::now();
    assert_eq!(names(&Store::at(dir.path())), ["backend"], "it needs no turn");
    let other = Connection::open(Store::at(dir.path()).path()).unwrap();
    other.pragma_update(None, "journal_mode", "delete").unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = Store::at(dir.path()).list().unwrap_err().to_string();
    assert!(error.contains("locked"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_reader_writes_nothing_that_it_could_be_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.register(&registration("shop", "backend")).unwrap();
    let lock = dir.path().join("headcount.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let reader = Store::at(dir.path());
    assert_eq!(names(&reader), ["backend"]);
    let error = reader.register(&registration("shop", "frontend")).unwrap_err().to_string();
    assert!(error.ends_with("headcount.lock: is not a regular file"), "{error}");
    store.register(&registration("shop", "frontend")).unwrap();
    assert_eq!(names(&reader), ["backend", "frontend"], "it sees what others write");
    fs::remove_dir(&lock).unwrap();
    reader.register(&registration("shop", "docs")).unwrap();
    assert_eq!(names(&store).len(), 3);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_database() {
    for name in ["headcount.db", "headcount.db-wal", "headcount.db-journal"] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        if name != "headcount.db" {
            store.register(&registration("shop", "backend")).unwrap();
        }
        let side = dir.path().join(name);
        for special in [Some("/dev/zero"), None] {
            let _ = fs::remove_file(&side);
            match special {
                Some(device) => std::os::unix::fs::symlink(device, &side).unwrap(),
                None => crate::files::make_pipe(&side),
            }
            let fresh = Store::at(dir.path());
            let errors = [fresh.list().unwrap_err(), fresh.register(&registration("shop", "x")).unwrap_err()];
            for error in errors {
                assert!(error.to_string().ends_with(&format!("{name}: is not a regular file")), "{error}");
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    crate::files::make_pipe(&dir.path().join("headcount.lock"));
    let error = Store::at(dir.path()).register(&registration("shop", "x")).unwrap_err().to_string();
    assert!(error.ends_with("headcount.lock: is not a regular file"), "{error}");
}
