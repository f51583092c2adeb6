//! The folder of the notes, as the one who writes them sees it.

use crate::config::make_private;
use crate::observe::processes::{Lineage, Machine, may_live};
use crate::observe::records::hooks::event::Event;
use crate::observe::records::hooks::note::{Change, FOLDER, Note, change, file_name, sender_in};
use crate::observe::records::hooks::read_note;
use std::fs::{self, DirEntry};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// What files are called until they are whole.
const UNFINISHED: &str = ".unfinished";

/// So many files are looked at whether they are still of use.
const SWEPT: usize = 10_000;

/// So many of them are read for it: most tell by their name.
const READ: usize = 256;

/// For how long a note is kept of which it is not known whether its sender lives, milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// For how long a note is kept whose processes cannot be seen from here, milliseconds.
const WEEK: u64 = 7 * DAY;

/// Notes an event. With each new conversation, notes that are of no use any more are removed.
///
/// # Errors
/// Those of the file system.
pub fn note(state: &Path, kind: &str, event: Event, at_ms: u64, from: Lineage) -> io::Result<()> {
    let folder = state.join(FOLDER);
    let file = folder.join(file_name(kind, &event, &from));
    let machine = from.machine.clone();
    make_private(&folder)?;
    let _lock = lock(&folder)?;
    let before = read_note(&file);
    match change(before.as_ref(), kind, event, at_ms, from) {
        Change::Keep => Ok(()),
        Change::Forget => fs::remove_file(&file).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
        Change::Write(note) => {
            replace(&folder, &file, &serde_json::to_vec(&note)?)?;
            if before.is_none() {
                sweep(&folder, &machine, at_ms);
            }
            Ok(())
        }
    }
}

/// Events that come at once are noted one after the other. A file system that knows no locks has to do without.
#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<fs::File> {
    let lock = fs::File::open(folder)?;
    lock.lock().or_else(|error| if error.kind() == io::ErrorKind::Unsupported { Ok(()) } else { Err(error) })?;
    Ok(lock)
}

/// A folder cannot be locked here.
#[cfg(not(unix))]
fn lock(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Puts a file in another's place, so that nobody ever reads half of it. It is this user's alone.
fn replace(folder: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = tempfile::Builder::new().suffix(UNFINISHED).tempfile_in(folder)?;
    new.write_all(bytes)?;
    new.persist(file)?;
    Ok(())
}

/// Removes what is of no use any more.
fn sweep(folder: &Path, machine: &Machine, now_ms: u64) {
    let mut may_read = READ;
    for entry in fs::read_dir(folder).into_iter().flatten().take(SWEPT).flatten() {
        let sender = entry.file_name().to_str().and_then(|name| sender_in(name, machine));
        let is_useless = match sender {
            Some(sender) => !may_live(sender),
            None if may_read == 0 => false,
            None => {
                may_read -= 1;
                is_useless(&entry, machine, now_ms)
            }
        };
        if is_useless {
            // The next sweep will find it again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_useless(entry: &DirEntry, machine: &Machine, now_ms: u64) -> bool {
    let name = entry.file_name();
    let is = |suffix: &str| name.to_str().is_some_and(|name| name.ends_with(suffix));
    if !is(".json") && !is(UNFINISHED) {
        return false;
    }
    match read_note(&entry.path()) {
        Some(note) => is_over(&note, machine, now_ms),
        None => age(entry, now_ms) > Some(DAY),
    }
}

/// Whether nobody can be meant by a note any more.
fn is_over(note: &Note, machine: &Machine, now_ms: u64) -> bool {
    let age = now_ms.saturating_sub(note.last.at_ms);
    if note.machine == *machine {
        age > DAY || note.sender.is_some_and(|sender| !may_live(sender))
    } else if note.machine.pid_namespace == machine.pid_namespace {
        // The machine has been started anew.
        true
    } else {
        age > WEEK
    }
}

/// How old a file is, milliseconds.
fn age(entry: &DirEntry, now_ms: u64) -> Option<u64> {
    let modified = entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let age = Duration::from_millis(now_ms).checked_sub(modified)?;
    u64::try_from(age.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::processes::lineage;
    use std::path::PathBuf;

    const NOW: u64 = 1_800_000_000_000;

    fn event(name: &str, conversation: &str) -> Event {
        Event { name: name.into(), conversation: Some(conversation.into()), ..Event::default() }
    }

    fn files(state: &Path) -> Vec<PathBuf> {
        fs::read_dir(state.join(FOLDER)).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_conversation_has_one_file_for_this_user_alone() {
        let state = tempfile::tempdir().unwrap();
        for (n, name) in ["UserPromptSubmit", "PostToolUse"].into_iter().enumerate() {
            note(state.path(), "claude", event(name, "a"), NOW + n as u64, lineage().unwrap()).unwrap();
        }
        let files = files(state.path());
        assert_eq!(files.len(), 1, "{files:?}");
        let kept = read_note(&files[0]).unwrap();
        assert_eq!((kept.first.at_ms, kept.last.at_ms), (NOW, NOW + 1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&files[0]), mode(&state.path().join(FOLDER))), (0o600, 0o700));
        }
    }

    #[test]
    fn processes_that_have_the_same_conversation_have_a_file_each() {
        let state = tempfile::tempdir().unwrap();
        let first = lineage().unwrap();
        let mut second = first.clone();
        second.ancestors.iter_mut().for_each(|ancestor| ancestor.id.pid = 1);
        second.ancestors.iter_mut().for_each(|ancestor| ancestor.id.start = 0);
        note(state.path(), "claude", event("PermissionRequest", "a"), NOW, first.clone()).unwrap();
        let resumed = Event { about: Some("resume".into()), ..event("SessionStart", "a") };
        note(state.path(), "claude", resumed, NOW + 1, second.clone()).unwrap();
        let left = Event { about: Some("clear".into()), ..event("SessionEnd", "a") };
        note(state.path(), "claude", left, NOW + 2, second).unwrap();
        let kept = read_note(&state.path().join(FOLDER).join(file_name("claude", &event("Stop", "a"), &first)));
        assert_eq!(kept.unwrap().last.event.name, "PermissionRequest");
    }

    #[test]
    fn events_that_come_at_once_are_all_noted() {
        let state = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let asked = Event { call: Some(n.to_string()), ..event("PermissionRequest", "a") };
                scope.spawn(|| note(state.path(), "claude", asked, NOW, lineage().unwrap()).unwrap());
            }
        });
        assert_eq!(read_note(&files(state.path())[0]).unwrap().open.questions.len(), 8);
    }

    #[test]
    fn a_conversation_that_was_left_has_no_file() {
        let state = tempfile::tempdir().unwrap();
        let left = || Event { about: Some("clear".into()), ..event("SessionEnd", "a") };
        note(state.path(), "claude", left(), NOW, lineage().unwrap()).unwrap();
        note(state.path(), "claude", event("Stop", "a"), NOW, lineage().unwrap()).unwrap();
        note(state.path(), "claude", left(), NOW + 1, lineage().unwrap()).unwrap();
        assert_eq!(files(state.path()).len(), 0);
    }

    #[test]
    fn notes_of_those_that_are_gone_are_removed_with_the_next_conversation() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join(FOLDER);
        make_private(&folder).unwrap();
        let alive = lineage().unwrap();
        let mut ended = alive.clone();
        ended.ancestors.iter_mut().for_each(|ancestor| ancestor.id.start += 1);
        let mut restarted = alive.clone();
        restarted.machine.boot_id = "another".to_owned();
        let mut contained = alive.clone();
        contained.machine.pid_namespace = "pid:[0]".to_owned();
        for (id, at_ms, from) in [
            ("alive", NOW - 30 * DAY, &alive),
            ("ended just now", NOW - 1000, &ended),
            ("restarted", NOW - 1000, &restarted),
            ("contained", NOW - 6 * DAY, &contained),
            ("contained and old", NOW - 8 * DAY, &contained),
            ("ended", NOW - 2 * DAY, &ended),
        ] {
            // Written by each for itself, without a look at the others.
            let Change::Write(note) = change(None, "claude", event("Stop", id), at_ms, from.clone()) else {
                panic!("is noted")
            };
            let file = folder.join(file_name("claude", &event("Stop", id), from));
            replace(&folder, &file, &serde_json::to_vec(&note).unwrap()).unwrap();
        }
        fs::write(folder.join("README"), "not ours").unwrap();
        note(state.path(), "claude", event("Stop", "new"), NOW, alive.clone()).unwrap();
        let name = |id: &str, from: &Lineage| folder.join(file_name("claude", &event("Stop", id), from));
        let mut left = vec![name("alive", &alive), name("contained", &contained), name("new", &alive)];
        left.push(folder.join("README"));
        let mut found = files(state.path());
        found.sort();
        left.sort();
        assert_eq!(found, left);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join(FOLDER), "a file").unwrap();
        assert!(note(state.path(), "claude", event("Stop", "a"), NOW, lineage().unwrap()).is_err());
        assert_eq!(fs::read(state.path().join(FOLDER)).unwrap(), b"a file");
    }
}
