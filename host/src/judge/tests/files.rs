//! Files that are no policies, or not ones of this version.

use super::*;

fn refusal(bytes: &[u8]) -> Outcome {
    load(bytes, "", Limits::default()).err().expect("it is refused")
}

/// The built-in policy as if it were built for this version of the interface.
fn of_version(version: &str) -> Vec<u8> {
    const NAME: &[u8] = b"headcount:policy/policy@0.1.0";
    let mut bytes = BUILTIN.to_vec();
    let places: Vec<usize> = (0..bytes.len() - NAME.len()).filter(|&at| bytes[at..].starts_with(NAME)).collect();
    assert!(!places.is_empty() && version.len() == 5);
    for at in places {
        bytes[at + NAME.len() - 5..at + NAME.len()].copy_from_slice(version.as_bytes());
    }
    bytes
}

#[test]
fn what_is_no_component_is_told_what_it_is() {
    for (bytes, said) in [
        (b"".as_slice(), "found an empty file"),
        (b"#!/bin/sh\necho policy\n", "found something else"),
        (b"(component)", "WebAssembly as text"),
        (b"\0asm\x01\0\0\0", "found a core module; `headcount policy build`"),
        (b"\0asm\x02\0\0\0", "another version"),
        (b"\x7fELF\x02\x01\x01", "machine code"),
        (b"\0asm\x0d\0\x01\0", "wanted an export headcount:policy/policy@0.1.0, found none"),
    ] {
        let outcome = refusal(bytes);
        assert!(matches!(&outcome, Outcome::NotAPolicy(why) if why.contains(said)), "{said}: {outcome:?}");
    }
}

#[test]
fn a_component_that_is_cut_short_is_damaged() {
    for length in [8 + 1, BUILTIN.len() / 2, BUILTIN.len() - 1] {
        let outcome = refusal(&BUILTIN[..length]);
        assert!(matches!(&outcome, Outcome::NotAPolicy(_)), "{length} bytes: {outcome:?}");
    }
}

#[test]
fn a_flipped_byte_harms_nobody() {
    let facts = session(2);
    let healthy = judge_of(builtin(""));
    let expected = format!("{:?}", healthy.judge(&facts).verdict);
    for at in (8..BUILTIN.len()).step_by(BUILTIN.len() / 12) {
        let mut bytes = BUILTIN.to_vec();
        bytes[at] ^= 0x10;
        // Refused, broken, or another verdict that is sound: all that matters is that the judge lives on.
        let limits = Limits { deadline: Duration::from_millis(50), ..Limits::default() };
        judge_of(load(&bytes, "", limits)).judge(&facts);
    }
    assert_eq!(format!("{:?}", healthy.judge(&facts).verdict), expected);
}

#[test]
fn a_policy_for_another_version_is_told_both_versions() {
    let outcome = refusal(&of_version("0.2.0"));
    let Outcome::WrongVersion(why) = &outcome else { panic!("{outcome:?}") };
    assert!(why.contains("@0.2.0") && why.contains("@0.1.0"), "{why}");
    assert_eq!(outcome.name(), "wrong-version");
}

#[test]
fn a_policy_for_a_later_patch_of_this_version_is_loaded() {
    assert!(load(&of_version("0.1.7"), "", Limits::default()).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_is_no_policy() {
    let missing = Path::new("/nowhere/policy.wasm");
    let error = Policy::load_file(&runtime(), missing, "", Limits::default()).err().unwrap().to_string();
    assert!(error.starts_with("policy /nowhere/policy.wasm: its file cannot be read"), "{error}");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_policy() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("policy.wasm");
    crate::files::make_pipe(&pipe);
    for special in [pipe.as_path(), Path::new("/dev/zero")] {
        let error = Policy::load_file(&runtime(), special, "", Limits::default()).err().unwrap().to_string();
        assert!(error.ends_with("its file cannot be read: is not a regular file"), "{error}");
    }
}

#[test]
fn a_policy_is_known_by_the_digest_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.wasm");
    std::fs::write(&file, BUILTIN).unwrap();
    let loaded = Policy::load_file(&runtime(), &file, "", Limits::default()).unwrap();
    assert_eq!(loaded.digest, builtin("").unwrap().digest);
    assert_ne!(loaded.digest, misbehaving("nothing").unwrap().digest);
    assert!(loaded.digest.len() == 64 && loaded.digest.bytes().all(|b| b.is_ascii_hexdigit()));
}

#[test]
fn a_policy_is_kept_compiled_and_runs_also_where_it_cannot_be_kept() {
    let place = tempfile::tempdir().unwrap();
    let cache = place.path().join("policies");
    let judged_with = |cache: &Path| {
        let judge = with_cache(cache, Arc::new(SystemClock::default())).unwrap();
        judge.judge(&session(1)).verdict.is_some()
    };
    assert!(judged_with(&cache));
    assert!(std::fs::read_dir(&cache).unwrap().next().is_some(), "nothing was kept");
    assert!(judged_with(&cache), "what was kept runs");
    // A file in the place of the folder.
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(judged_with(&file));
}

#[test]
fn a_compiled_policy_that_was_changed_on_disk_is_compiled_anew() {
    let place = tempfile::tempdir().unwrap();
    let cache = place.path().join("policies");
    let judged = || {
        let judge = with_cache(&cache, Arc::new(SystemClock::default())).unwrap();
        let judgement = judge.judge(&session(2));
        format!("{:?} {:?}", judgement.verdict, judgement.policies[0].outcome)
    };
    let sound = judged();
    let compiled = || {
        let mut found = Vec::new();
        let mut folders = vec![cache.join("modules")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry)
                } else if entry.extension().is_none() {
                    found.push(entry)
                }
            }
        }
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    };
    let good = std::fs::read(compiled()).unwrap();
    for at in (0..good.len()).step_by(good.len() / 16) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(compiled(), &bad).unwrap();
        assert_eq!(judged(), sound, "changed at byte {at}");
    }
    for bad in [&good[..100], b""] {
        std::fs::write(compiled(), bad).unwrap();
        assert_eq!(judged(), sound);
    }
    // Without its seals nothing is trusted; with nonsense for seals neither.
    std::fs::write(cache.join("seals.json"), "[]").unwrap();
    assert_eq!(judged(), sound);
    std::fs::remove_file(cache.join("seals.json")).unwrap();
    assert_eq!(judged(), sound);
}

#[cfg(unix)]
#[test]
fn compiled_policies_are_not_taken_from_where_others_may_write() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let cache = place.path().join("policies");
    std::fs::create_dir(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    let judge = with_cache(&cache, Arc::new(SystemClock::default())).unwrap();
    assert!(judge.judge(&session(1)).verdict.is_some());
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 0);
}
