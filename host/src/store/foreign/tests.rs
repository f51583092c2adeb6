//! The door, over real databases of all states, and over such as nobody would write.

use super::*;
use crate::files::make_pipe;
use headcount_tests::databases::OPENCODE;
use proptest::prelude::*;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A folder with one database in it, and whether its owner lives in this process.
struct Stage(TempDir, bool);

impl Stage {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), true)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Its owner's connection to the database, which has one row.
    fn owner(&self, journal: &str) -> Connection {
        let owner = Connection::open(self.path("a.db")).unwrap();
        owner.busy_timeout(Duration::ZERO).unwrap();
        owner.pragma_update(None, "synchronous", "off").unwrap();
        owner.pragma_update(None, "journal_mode", journal).unwrap();
        owner.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        owner.execute_batch("CREATE TABLE t (n)").unwrap();
        add(&owner);
        owner
    }

    fn look(&self) -> Result<u64, Unread> {
        read(&self.path("a.db"), count)
    }

    /// All files, with all that shows whether somebody has touched them. The index of a live owner is left out: within one
    /// process SQLite has it once for all, and its owner may write it. So are, for root alone, the times of change of what
    /// SQLite gives to its owner, who is root already.
    fn files(&self) -> BTreeMap<String, (SystemTime, (i64, i64), u64, u64)> {
        let files = fs::read_dir(self.0.path()).unwrap().map(|file| file.unwrap().path());
        let touched = |file: PathBuf| {
            let (found, mut hash) = (fs::metadata(&file).unwrap(), DefaultHasher::new());
            fs::read(&file).unwrap().hash(&mut hash);
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let is_live = name.ends_with("-shm") && self.1;
            let is_given = name != "a.db" && nix::unistd::geteuid().is_root();
            let changed = if is_given { (0, 0) } else { (found.ctime(), found.ctime_nsec()) };
            (name, (found.modified().unwrap(), changed, found.len(), if is_live { 0 } else { hash.finish() }))
        };
        files.map(touched).collect()
    }

    /// What somebody who is killed leaves: copies of the files as they are.
    fn killed(&self, files: &[&str]) -> Self {
        let left = Self(tempfile::tempdir().unwrap(), false);
        for file in files {
            fs::copy(self.path(file), left.path(file)).unwrap();
        }
        left
    }
}

/// Adds a row, if it can be done at once.
fn add(owner: &Connection) {
    owner.execute("INSERT INTO t VALUES (1)", []).unwrap();
}

fn count(db: &Opened) -> Result<u64, Unread> {
    db.table("t", &["n"])?;
    Ok(db.rows("SELECT count(*) AS n FROM t", [])?[0]["n"].as_u64().unwrap())
}

/// What is said of a database that is not read.
fn why(found: Result<u64, Unread>) -> String {
    found.unwrap_err().to_string()
}

const ALL: [&str; 3] = ["a.db", "a.db-wal", "a.db-shm"];

#[test]
fn what_stands_in_the_log_alone_is_read_and_nothing_is_touched() {
    let stage = Stage::new();
    let owner = stage.owner("wal");
    let before = stage.files();
    assert_eq!((before.len(), stage.look()), (3, Ok(1)));
    assert_eq!(stage.files(), before);
    add(&owner);
    assert_eq!(stage.look(), Ok(2));
    // In the midst of a checkpoint, and after it.
    owner.execute_batch("BEGIN; INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(stage.look(), Ok(2), "not what is not done yet");
    owner.execute_batch("COMMIT; PRAGMA wal_checkpoint(PASSIVE)").unwrap();
    assert_eq!(stage.look(), Ok(3));
    owner.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let before = stage.files();
    assert_eq!((stage.look(), stage.files() == before), (Ok(3), true), "an empty log");
}

/// Root sees less of what is touched, and is let at more. So root runs these tests as somebody else, too.
#[cfg(target_os = "linux")]
#[test]
fn another_user_touches_nothing_either() {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // By its descriptor: its folder may be closed to others.
    let tests = File::open(std::env::current_exe().unwrap()).unwrap();
    let mut run = std::process::Command::new(format!("/proc/self/fd/{}", tests.as_raw_fd()));
    run.args(["store::foreign::tests::what_", "store::foreign::tests::a_database"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    let ran = run.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("what_a_killed_process_has_left_is_read_as_it_is ... ok"));
}

#[test]
fn its_owner_writes_checkpoints_and_ends_while_it_is_read() {
    let stage = Stage::new();
    let owner = stage.owner("wal");
    let found = read(&stage.path("a.db"), |db| {
        let before = count(db)?;
        add(&owner);
        owner.execute_batch("PRAGMA wal_checkpoint(PASSIVE); INSERT INTO t VALUES (2)").unwrap();
        Ok((before, count(db)?))
    });
    assert_eq!((found, stage.look()), (Ok((1, 1)), Ok(3)), "all of one moment");
    read(&stage.path("a.db"), |db| {
        owner.close().map_err(|_| ()).unwrap();
        assert!(stage.path("a.db-wal").exists(), "it goes on being read");
        count(db)
    })
    .unwrap();
    assert_eq!(stage.look(), Ok(3));
    drop(stage.owner_again());
    assert_eq!((stage.look(), stage.files().len()), (Ok(3), 1), "the next one cleans up");
}

impl Stage {
    fn owner_again(&self) -> Connection {
        let owner = Connection::open(self.path("a.db")).unwrap();
        owner.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, u32>(0)).unwrap();
        owner
    }
}

#[test]
fn a_database_that_is_closed_gets_no_files_beside_it() {
    for journal in ["wal", "delete", "truncate", "persist"] {
        let stage = Stage::new();
        drop(stage.owner(journal));
        let before = stage.files();
        assert_eq!((stage.look(), stage.files() == before), (Ok(1), true), "{journal}");
    }
}

#[test]
fn what_a_killed_process_has_left_is_read_as_it_is() {
    let stage = Stage::new();
    let _owner = stage.owner("wal");
    let left = stage.killed(&ALL);
    let before = left.files();
    assert_eq!((left.look(), left.files() == before), (Ok(1), true));
    let left = stage.killed(&ALL[..2]);
    assert!(why(left.look()).contains("without an index"), "{:?}", left.look());
    assert_eq!(left.files().len(), 2);
}

#[test]
fn a_rollback_journal_at_work_is_not_waited_for() {
    let stage = Stage::new();
    let owner = stage.owner("delete");
    let changed = read(&stage.path("a.db"), |db| {
        let before = count(db)?;
        add(&owner);
        Ok(before)
    });
    assert_eq!(changed, Err(Unread::Busy("has changed while it was read")), "and its owner has not waited");
    assert_eq!(stage.look(), Ok(2));
    // A cache of one page writes to the file before the end of the transaction.
    owner.execute_batch("PRAGMA cache_size = 1; BEGIN; INSERT INTO t VALUES (3)").unwrap();
    owner.execute_batch("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9999) INSERT INTO t SELECT hex(x) FROM c").unwrap();
    let before = stage.files();
    assert_eq!((stage.look(), stage.files() == before), (Err(Unread::Busy("is being written")), true));
    owner.execute_batch("ROLLBACK").unwrap();
    assert_eq!(stage.look(), Ok(2));
}

#[test]
fn a_database_that_somebody_has_for_himself_is_busy_at_once() {
    let stage = Stage::new();
    let owner = stage.owner("delete");
    owner
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; INSERT INTO t VALUES (2)")
        .unwrap();
    assert_eq!(stage.look(), Err(Unread::Busy("is locked by whoever writes it")));
    owner.execute_batch("PRAGMA locking_mode = NORMAL; SELECT count(*) FROM t").unwrap();
    drop(owner);
    assert_eq!(stage.look(), Ok(2));
}

#[test]
fn another_file_in_its_place_is_another_database() {
    let (stage, other) = (Stage::new(), Stage::new());
    drop(stage.owner("wal"));
    let stamps = Stamps::of(&stage.path("a.db")).unwrap();
    let owner = other.owner("delete");
    add(&owner);
    drop(owner);
    let found = read(&stage.path("a.db"), |db| {
        fs::rename(other.path("a.db"), stage.path("a.db")).unwrap();
        count(db)
    });
    assert_eq!(found, Err(Unread::Busy("was replaced while it was read")));
    assert_eq!(stage.look(), Ok(2));
    assert_ne!(Stamps::of(&stage.path("a.db")).unwrap(), stamps);
}

#[test]
fn stamps_change_with_what_is_written_once_they_are_settled() {
    let stage = Stage::new();
    let owner = stage.owner("wal");
    let stamps = Stamps::of(&stage.path("a.db")).unwrap();
    let written = stamps.log.unwrap().modified_ms().unwrap();
    assert!(!stamps.are_settled(written + 500) && stamps.are_settled(written + 1500));
    assert_eq!(Stamps::of(&stage.path("a.db")).unwrap(), stamps);
    add(&owner);
    assert_ne!(Stamps::of(&stage.path("a.db")).unwrap(), stamps);
}

#[test]
fn what_is_no_database_is_refused() {
    let stage = Stage::new();
    assert_eq!(stage.look(), Err(Unread::Missing));
    for bytes in [&b""[..], b"SQLite", b"SQLite format 3\0", &[7; 5000]] {
        fs::write(stage.path("a.db"), bytes).unwrap();
        assert_eq!(why(stage.look()), "is no SQLite database");
    }
    fs::write(stage.path("a.db"), [b"SQLite format 3\0".to_vec(), vec![9; 5000]].concat()).unwrap();
    assert!(why(stage.look()).starts_with("is damaged"), "{:?}", stage.look());
    fs::remove_file(stage.path("a.db")).unwrap();
    fs::create_dir(stage.path("a.db")).unwrap();
    assert!(stage.look().is_err());
}

#[test]
fn links_and_pipes_are_neither_followed_nor_waited_for() {
    let stage = Stage::new();
    let owner = stage.owner("wal");
    symlink(stage.path("a.db"), stage.path("b.db")).unwrap();
    assert!(read(&stage.path("b.db"), count).is_err());
    symlink(stage.0.path(), stage.path("here")).unwrap();
    assert_eq!(read(&stage.path("here/a.db"), count), Ok(1), "a folder may be a link");
    drop(owner);
    for end in ["-wal", "-shm", "-journal", ""] {
        let name = format!("a.db{end}");
        let _ = fs::remove_file(stage.path(&name));
        if end == "-shm" {
            fs::write(stage.path("a.db-wal"), "a log").unwrap();
        }
        make_pipe(&stage.path(&name));
        assert!(why(stage.look()).contains("is not a regular file"), "{name}: {:?}", stage.look());
        fs::remove_file(stage.path(&name)).unwrap();
        let _ = fs::remove_file(stage.path("a.db-wal"));
    }
}

#[test]
fn only_plain_tables_are_read() {
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS n FROM c";
    for (made, said) in [
        (format!("CREATE VIEW t AS {endless}"), "has no plain table t"),
        ("CREATE VIRTUAL TABLE t USING fts5(n)".to_owned(), "has no plain table t"),
        ("CREATE TABLE t (m, n AS (hex(zeroblob(m))))".to_owned(), "computes columns of its table t"),
        ("CREATE TABLE t (m)".to_owned(), "has no column t.n"),
        ("CREATE TABLE s (n)".to_owned(), "has no table t"),
    ] {
        let stage = Stage::new();
        Connection::open(stage.path("a.db")).unwrap().execute_batch(&made).unwrap();
        assert_eq!(why(stage.look()), said);
    }
}

#[test]
fn what_has_no_end_is_given_up() {
    let stage = Stage::new();
    drop(stage.owner("wal"));
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let found = read(&stage.path("a.db"), |db| db.rows(endless, []));
    assert_eq!(found.unwrap_err().to_string(), "takes too long to be read");
    let slow = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(length(hex(zeroblob(1000000 + x * 0)))) FROM c";
    let found = read(&stage.path("a.db"), |db| db.rows(slow, []));
    assert_eq!(found.unwrap_err().to_string(), "takes too long to be read", "few steps, but long ones");
    let large = read(&stage.path("a.db"), |db| db.rows("SELECT zeroblob(5000000)", []));
    assert_eq!(large.unwrap_err().to_string(), "has values that are too large");
    for write in ["INSERT INTO t VALUES (1)", "PRAGMA user_version = 7", "ATTACH ':memory:' AS m", "VACUUM"] {
        let _ = read(&stage.path("a.db"), |db| db.rows(write, []));
        assert_eq!((stage.look(), stage.files().len()), (Ok(1), 1), "{write}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_are_too_much(flips in prop::collection::vec((0usize..3, any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let stage = Stage::new();
        let owner = stage.owner("wal");
        owner.execute_batch(OPENCODE).unwrap();
        owner.execute_batch("INSERT INTO session (id, time_updated) VALUES ('s', 7); PRAGMA wal_checkpoint(PASSIVE)").unwrap();
        owner.execute_batch("INSERT INTO message VALUES ('m', 's', 7, '{\"role\":\"assistant\"}')").unwrap();
        let left = stage.killed(&ALL);
        for (file, at, byte) in flips {
            let mut bytes = fs::read(left.path(ALL[file])).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            fs::write(left.path(ALL[file]), bytes).unwrap();
        }
        let before = left.files();
        let rows = |work: fn(&Opened) -> Result<Vec<Row>, Unread>| read(&left.path("a.db"), work).unwrap_or_default();
        prop_assert!(rows(|db| opencode::messages(db, "s")).len() <= 8);
        prop_assert!(rows(|db| opencode::gone_on_with(db, 1)).len() <= 100);
        prop_assert!(rows(|db| opencode::parts(db, "m")).len() <= 200);
        prop_assert!(rows(|db| Ok(opencode::session(db, "s")?.into_iter().chain(opencode::messages_after(db, "s", "")?).collect())).len() <= 9);
        prop_assert_eq!(left.files(), before);
    }
}
