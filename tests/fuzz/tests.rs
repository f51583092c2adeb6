//! Each target over its seeds and changes of them.

use super::mutation::Mutator;
use super::{secrets, targets};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// How often the seeds of each target are changed.
const CHANGES: usize = 600;

/// A target's seeds, in the order of their names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files: BTreeSet<_> = files.map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{target} has no seed");
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn each_target_holds_over_its_seeds_and_changes_of_them() {
    for target in targets() {
        let (seeds, mut mutator) = (seeds(target.name), Mutator::new(0x5eed));
        let changes = (0..CHANGES).map(|_| mutator.change(&seeds));
        for input in seeds.iter().cloned().chain(changes) {
            let run = catch_unwind(AssertUnwindSafe(|| target.run(&input)));
            assert!(
                run.is_ok(),
                "{} does not hold of what should be its next seed:\n{}",
                target.name,
                input.escape_ascii()
            );
        }
    }
}

#[test]
fn no_folder_of_seeds_is_without_a_target() {
    let names: BTreeSet<_> = targets().map(|target| target.name.to_owned()).collect();
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")).unwrap();
    let folders: BTreeSet<_> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, names);
    assert_eq!(targets().count(), names.len(), "each name stands once");
}

#[test]
fn the_mark_stands_wherever_work_may() {
    let record = br#"{"type":"assistant","cwd":"/w","message":{"id":"m","content":[{"text":"a"},"b",{"name":"Bash","input":{"c":["d"]}}]}}"#;
    let marked = String::from_utf8(secrets::with_secrets(record).unwrap()).unwrap();
    assert_eq!(marked.matches(secrets::MARK).count(), 4, "{marked}");
    assert!(marked.contains("Bash") && marked.contains("\"m\""));
    assert_eq!(secrets::with_secrets(b"no JSON\n[1]"), None);
    for known in [secrets::MARK.to_owned(), secrets::MARK.replace('m', "\\u006d")] {
        assert_eq!(secrets::with_secrets(format!(r#"{{"status":"{known}"}}"#).as_bytes()), None);
    }
}
