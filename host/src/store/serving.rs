//! What running servers say of themselves, for commands that look from outside: a file for each, locked as long as the
//! server lives, so that nobody takes the word of one that was killed.

use super::private;
use crate::config::make_private;
use crate::files::regular_or_missing;
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// The folder of these files, below the state directory.
const FOLDER: &str = "serving";

/// The most that is read of what one server says, bytes.
const MAX_SAID: u64 = 1 << 20;

/// This process's own file; it goes with it.
#[derive(Debug)]
pub struct Serving {
    file: File,
    path: PathBuf,
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
        Ok(Self { file, path })
    }

    /// Says something else from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(what)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // One that stays behind is nobody's, because its lock has gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// What the servers that run now say, by their pid. Files of servers that are gone are removed.
///
/// # Errors
/// When the folder cannot be read.
pub fn servers(state: &Path) -> io::Result<Vec<(u32, Value)>> {
    let entries = match fs::read_dir(state.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(pid) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()) else { continue };
        // What is no plain file would keep a reader waiting.
        if regular_or_missing(&path).is_err() {
            continue;
        }
        let Ok(file) = OpenOptions::new().read(true).open(&path) else { continue };
        if file.try_lock_shared().is_ok() {
            // Nobody holds it.
            let _ = fs::remove_file(&path);
        } else if let Ok(said) = serde_json::from_reader(file.take(MAX_SAID)) {
            found.push((pid, said));
        }
    }
    found.sort_by_key(|(pid, _)| *pid);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_heard_while_it_lives() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(servers(state.path()).unwrap(), []);
        let mut serving = Serving::open(state.path()).unwrap();
        serving.say(&"something long").unwrap();
        serving.say(&"short").unwrap();
        let heard = servers(state.path()).unwrap();
        assert_eq!(heard, [(std::process::id(), Value::from("short"))]);
        drop(serving);
        assert_eq!(servers(state.path()).unwrap(), []);
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
