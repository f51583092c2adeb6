//! Tests of the audit log: what is kept, what it may cost, and what happens when the disk does not take it.

use super::*;
use crate::store::log::{BATCH, FLUSH};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use std::time::Instant;

const SETTINGS: config::Audit = config::Audit { enabled: true, max_bytes: 1 << 20, keep: 2 };

fn line(client: &str) -> AuditLine {
    AuditLine {
        unix_ms: 1_767_225_600_042,
        principal: "ada".into(),
        client: client.into(),
        transport: Transport::Stdio,
        tool: "get_session_status",
        session: Some("shop".into()),
        outcome: Outcome::Ok,
        agents: 3,
        micros: Micros { observe: 10, judge: 20, report: 30, total: 70 },
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    files
}

/// Every line of every file; each must be JSON.
fn lines(dir: &Path) -> Vec<serde_json::Value> {
    let texts = files(dir).into_iter().map(|path| fs::read_to_string(path).unwrap());
    texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

/// Waits until so many lines were dealt with.
fn settle(audit: &Audit, count: u64) -> LogStats {
    for _ in 0..1000 {
        let stats = audit.stats();
        if stats.written + stats.failed >= count {
            return stats;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("the writer is stuck: {:?}", audit.stats());
}

#[test]
fn a_query_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let audit = Audit::open(&state, SETTINGS);
    audit.record(line("Claude"));
    drop(audit);
    let expected = concat!(
        r#"{"time":"2026-01-01T00:00:00.042Z","principal":"ada","client":"Claude","transport":"stdio","#,
        r#""tool":"get_session_status","session":"shop","outcome":"ok","agents":3,"#,
        r#""micros":{"observe":10,"judge":20,"report":30,"total":70}}"#,
        "\n"
    );
    assert_eq!(fs::read_to_string(state.join("audit.jsonl")).unwrap(), expected);
}

#[test]
fn hostile_text_stays_short_and_on_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), SETTINGS);
    audit.record(AuditLine { unix_ms: u64::MAX, ..line(&"\u{1b}\n\u{9b}".repeat(1 << 20)) });
    drop(audit);
    let text = fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.len() < 2500 && text.contains(r"\u001b\n�"), "{text}");
}

#[test]
fn a_log_that_is_not_wanted_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), config::Audit { enabled: false, ..SETTINGS });
    audit.record(line("x"));
    assert_eq!(audit.stats(), LogStats::default());
    drop(audit);
    assert_eq!(files(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn closed_files_are_bounded_in_size_and_number() {
    let dir = tempfile::tempdir().unwrap();
    // Left by a time when more were kept.
    for old in 3..6 {
        fs::write(dir.path().join(format!("audit.{old}.jsonl")), "").unwrap();
    }
    let audit = Audit::open(dir.path(), config::Audit { max_bytes: 1000, ..SETTINGS });
    for number in 0..100 {
        audit.record(line(&format!("client {number}")));
    }
    drop(audit);
    let names: Vec<_> = files(dir.path()).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["audit.1.jsonl", "audit.2.jsonl", "audit.jsonl"]);
    for path in files(dir.path()) {
        assert!((1..=1000).contains(&fs::metadata(path).unwrap().len()));
    }
    let last = fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    assert!(last.contains("client 99"), "the youngest lines are in the file in use");
}

#[test]
fn several_writers_lose_nothing_and_tear_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let settings = config::Audit { enabled: true, max_bytes: 4096, keep: 1000 };
    let logs: Vec<_> = (0..4).map(|_| Audit::open(dir.path(), settings)).collect();
    thread::scope(|scope| {
        for (writer, audit) in logs.iter().enumerate() {
            scope.spawn(move || (0..250).for_each(|number| audit.record(line(&format!("{writer}-{number}")))));
        }
    });
    for audit in &logs {
        assert_eq!(settle(audit, 250), LogStats { written: 250, ..LogStats::default() });
    }
    let clients: std::collections::BTreeSet<_> =
        lines(dir.path()).iter().map(|line| line["client"].to_string()).collect();
    assert_eq!(clients.len(), 1000);
    assert!(files(dir.path()).len() > 10);
}

#[test]
fn a_directory_that_cannot_be_written_costs_lines_but_no_query() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("file");
    fs::write(&state, "").unwrap();
    let audit = Audit::open(&state, SETTINGS);
    audit.record(line("lost"));
    let stats = settle(&audit, 1);
    assert_eq!((stats.written, stats.failed), (0, 1));
    assert!(stats.last_error.is_some());
    fs::remove_file(&state).unwrap();
    audit.record(line("kept"));
    assert_eq!(settle(&audit, 2).written, 1);
    fs::remove_dir_all(&state).unwrap();
    audit.record(line("kept too"));
    assert_eq!(settle(&audit, 3).written, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_lines_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let audit = Audit::open(dir.path(), SETTINGS);
    audit.record(line("lost"));
    let stats = settle(&audit, 1);
    assert_eq!(stats.failed, 1);
    assert!(stats.last_error.unwrap().contains("No space left"));
    fs::remove_file(&path).unwrap();
    audit.record(line("kept"));
    assert_eq!(settle(&audit, 2).written, 1);
    assert_eq!(lines(dir.path())[0]["client"], "kept");
}

#[cfg(unix)]
#[test]
fn a_stuck_disk_costs_lines_but_no_time() {
    let dir = tempfile::tempdir().unwrap();
    // Opening a pipe that nobody reads waits for ever.
    let pipe = dir.path().join("audit.jsonl");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let audit = Audit::open(dir.path(), SETTINGS);
    let start = Instant::now();
    for _ in 0..QUEUE + BATCH + 500 {
        audit.record(line("x"));
    }
    assert!(start.elapsed() < FLUSH * 5, "recording waits for the disk");
    // One batch at most has left the queue.
    let stats = audit.stats();
    assert!((500..=500 + BATCH as u64).contains(&stats.dropped), "{stats:?}");
    assert_eq!(stats.written, 0);
    let start = Instant::now();
    drop(audit);
    let waited = start.elapsed();
    assert!((FLUSH..FLUSH * 5).contains(&waited), "the end waited {waited:?}");
}
