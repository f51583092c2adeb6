//! Files of policies that change while they judge.

use super::*;
use crate::judge::link::State;
use crate::judge::reload::look;
use headcount_tests::misbehaving::{HONEST, PATCH, RECURSE};
use std::fs;

/// A policy in a file, in its place.
struct Filed {
    dir: tempfile::TempDir,
    link: Link,
}

impl Filed {
    fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("policy.wasm");
        fs::write(&file, bytes).unwrap();
        let place = Place { name: "policy.wasm".into(), file: Some(file), ..Place::builtin() };
        Self { link: Link::load(&runtime(), place, false), dir }
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join("policy.wasm")
    }

    /// Writes other bytes and looks at them at this moment.
    fn write(&self, bytes: &[u8], now_ms: u64) -> (Option<String>, Option<Stale>) {
        fs::write(self.file(), bytes).unwrap();
        self.look(now_ms)
    }

    /// The digest of the policy that has the place after a look, and whether it is stale.
    fn look(&self, now_ms: u64) -> (Option<String>, Option<Stale>) {
        look(&runtime(), std::slice::from_ref(&self.link), 0, now_ms);
        let state = self.link.state();
        (state.policy.ok().map(|policy| policy.digest.clone()), state.stale)
    }
}

#[test]
fn a_good_file_takes_the_place() {
    let filed = Filed::new(HONEST);
    assert_eq!(filed.write(PATCH, 1), (Some(digest(PATCH)), None));
}

#[test]
fn a_judgement_ends_on_the_policy_that_it_began_with() {
    let filed = Filed::new(HONEST);
    let running = filed.link.state();
    filed.write(PATCH, 1);
    assert_eq!(running.policy.unwrap().digest, digest(HONEST));
}

#[test]
fn a_bad_file_keeps_the_last_good_one_and_says_since_when_and_why() {
    let filed = Filed::new(HONEST);
    let good = Some(digest(HONEST));
    for (bytes, now_ms, reason) in [
        (&PATCH[..PATCH.len() / 2], 10, "the file is damaged"),
        (b"not wasm", 20, "wanted a WebAssembly component"),
        (b"", 30, "found an empty file"),
    ] {
        let (digest, stale) = filed.write(bytes, now_ms);
        let stale = stale.unwrap();
        assert_eq!((digest, stale.since_ms), (good.clone(), 10), "stale since the first of them");
        assert!(stale.reason.contains(reason), "{}", stale.reason);
    }
    assert_eq!(filed.write(HONEST, 40), (good, None), "the good one is back");
}

#[test]
fn a_file_that_loads_and_breaks_on_trial_keeps_the_last_good_one() {
    let filed = Filed::new(HONEST);
    // It breaks when it judges, and not before.
    let (good, stale) = filed.write(RECURSE, 3);
    assert_eq!(good, Some(digest(HONEST)));
    assert_eq!(stale.unwrap().reason, "on trial it broke: it called itself too deeply");
}

#[test]
fn a_deleted_file_keeps_the_last_good_one() {
    let filed = Filed::new(HONEST);
    fs::remove_file(filed.file()).unwrap();
    let (good, stale) = filed.look(7);
    assert_eq!((good, stale.as_ref().unwrap().since_ms), (Some(digest(HONEST)), 7));
    assert!(stale.unwrap().reason.contains("cannot be read"));
    assert_eq!(filed.write(PATCH, 8), (Some(digest(PATCH)), None));
}

#[test]
fn a_touched_file_changes_nothing() {
    let filed = Filed::new(HONEST);
    let before = filed.link.state().policy.unwrap();
    filed.write(HONEST, 1);
    assert!(Arc::ptr_eq(&before, &filed.link.state().policy.unwrap()));
}

#[test]
fn bytes_that_were_refused_are_tried_again() {
    let filed = Filed::new(HONEST);
    // Whatever kept them from being loaded, such as no room to compile them, is over.
    fs::write(filed.file(), PATCH).unwrap();
    let refused = Stale { since_ms: 1, reason: "no room".into() };
    filed.link.set(State { stale: Some(refused), ..filed.link.state() });
    assert_eq!(filed.look(2), (Some(digest(PATCH)), None));
}

#[test]
fn a_place_that_was_empty_is_filled() {
    let filed = Filed::new(b"not wasm");
    assert!(filed.link.state().policy.is_err());
    assert_eq!(filed.write(HONEST, 1), (Some(digest(HONEST)), None));
}

#[test]
fn changes_are_seen_while_a_judge_follows_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.wasm");
    fs::write(&file, HONEST).unwrap();
    let place = Place { name: "policy.wasm".into(), file: Some(file.clone()), ..Place::builtin() };
    let mut judge = Judge::new(vec![place], &Options::default(), Arc::new(SystemClock::default())).unwrap();
    // Between being read and being followed, too.
    fs::write(&file, PATCH).unwrap();
    judge.follow_files(|_| {});
    let reported = |wanted: &dyn Fn(&Evaluation) -> bool| {
        (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            wanted(&judge.judge(&session(1)).policies[0])
        })
    };
    assert!(reported(&|policy| policy.digest == digest(PATCH)));
    fs::write(&file, "not wasm").unwrap();
    assert!(reported(&|policy| policy.stale.is_some() && policy.outcome == Outcome::Verdict));
    // As editors and compilers do it: another file takes the name.
    let new = dir.path().join("new");
    fs::write(&new, HONEST).unwrap();
    fs::rename(&new, &file).unwrap();
    assert!(reported(&|policy| policy.digest == digest(HONEST) && policy.stale.is_none()));
}
