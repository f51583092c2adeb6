//! What running servers say of themselves, for commands that look from outside: a file for each, locked as long as the
//! server lives, so that nobody takes the word of one that was killed.

use super::private;
use crate::config::make_private;
use crate::files::regular_or_missing;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The folder of these files, below the state directory.
const FOLDER: &str = "serving";

/// The most that is read of what one server says, bytes.
const MAX_SAID: u64 = 1 << 20;

/// How often a file is read that is just being written, and the wait in between.
const TRIES: u32 = 5;
const BREATH: Duration = Duration::from_millis(2);

/// This process's own file; it goes with it.
#[derive(Debug)]
pub struct Serving {
    said: Mutex<(File, Map<String, Value>)>,
    path: PathBuf,
}

/// What a server that runs now says: an object with a part for each thing that it speaks of.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The server's pid.
    pub process_id: u32,
    parts: Map<String, Value>,
}

impl Said {
    /// What it says of this; `None`: nothing, or something else than one of this version would.
    pub fn of<T: DeserializeOwned>(&self, part: &str) -> Option<T> {
        T::deserialize(self.parts.get(part)?).ok()
    }
}

impl Serving {
    /// Opens this process's file.
    ///
    /// # Errors
    /// When it cannot be made or locked.
    pub fn open(state: &Path) -> io::Result<Self> {
        let folder = state.join(FOLDER);
        make_private(&folder)?;
        let path = folder.join(format!("{}.json", std::process::id()));
        // Left by an earlier process of this pid, it is overwritten only once it is ours alone.
        let file = private().write(true).truncate(false).open(&path)?;
        file.try_lock()?;
        Ok(Self { said: Mutex::new((file, Map::new())), path })
    }

    /// Says this of a part from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn say(&self, part: &str, what: &impl Serialize) -> io::Result<()> {
        let what = serde_json::to_value(what)?;
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, parts) = &mut *said;
        parts.insert(part.to_owned(), what);
        let text = serde_json::to_vec(parts)?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // One that stays behind is nobody's, because its lock has gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// What the servers that run now say, in the order of their pids. Files of servers that are gone are removed.
///
/// # Errors
/// When the folder cannot be read.
pub fn servers(state: &Path) -> io::Result<Vec<Said>> {
    let entries = match fs::read_dir(state.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(process_id) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()) else { continue };
        // What is no plain file would keep a reader waiting.
        if regular_or_missing(&path).is_err() {
            continue;
        }
        let Ok(file) = OpenOptions::new().read(true).open(&path) else { continue };
        if file.try_lock_shared().is_ok() {
            // Nobody holds it.
            let _ = fs::remove_file(&path);
        } else if let Some(parts) = read(file) {
            found.push(Said { process_id, parts });
        }
    }
    found.sort_by_key(|said| said.process_id);
    Ok(found)
}

/// What a file holds, which may be half written at this very moment.
fn read(mut file: File) -> Option<Map<String, Value>> {
    (0..TRIES).find_map(|nth| {
        if nth > 0 {
            thread::sleep(BREATH);
        }
        file.rewind().ok()?;
        serde_json::from_reader((&file).take(MAX_SAID)).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_heard_while_it_lives() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(servers(state.path()).unwrap(), []);
        let serving = Serving::open(state.path()).unwrap();
        serving.say("policies", &"something long").unwrap();
        serving.say("upstreams", &[1, 2]).unwrap();
        serving.say("policies", &"short").unwrap();
        let [said] = &*servers(state.path()).unwrap() else { panic!("one is there") };
        assert_eq!(said.process_id, std::process::id());
        assert_eq!(said.of::<String>("policies").as_deref(), Some("short"));
        assert_eq!(said.of::<Vec<u8>>("upstreams"), Some(vec![1, 2]));
        assert_eq!((said.of::<u8>("policies"), said.of::<u8>("else")), (None, None));
        drop(serving);
        assert_eq!(servers(state.path()).unwrap(), []);
    }

    #[test]
    fn what_is_heard_is_whole_while_it_is_written() {
        let state = tempfile::tempdir().unwrap();
        let serving = Serving::open(state.path()).unwrap();
        serving.say("n", &0).unwrap();
        thread::scope(|scope| {
            let writing = scope.spawn(|| (0..2000).for_each(|n| serving.say("n", &vec![n; 100]).unwrap()));
            while !writing.is_finished() {
                let said = servers(state.path()).unwrap();
                assert!(said.iter().all(|said| said.parts.contains_key("n")));
            }
        });
        assert_eq!(servers(state.path()).unwrap()[0].of::<Vec<u32>>("n"), Some(vec![1999; 100]));
    }

    #[test]
    fn one_that_was_killed_is_not_heard() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join(FOLDER)).unwrap();
        let left = state.path().join(FOLDER).join("4242.json");
        fs::write(&left, "\"I am well\"").unwrap();
        assert_eq!(servers(state.path()).unwrap(), []);
        assert!(!left.exists());
    }
}
