//! Folders whose files are records, listed now and then.

use super::tail::Unreadable;
use crate::clock::Moment;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The names in one folder that are of interest.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// How many entries it may have, wanted or not.
    most: usize,
    /// How soon it is listed again.
    every: Duration,
    /// When it is to be listed next, on the steady clock.
    due: Duration,
    names: Result<Vec<String>, Unreadable>,
}

impl Folder {
    /// A folder that was not looked at yet.
    pub fn new(path: PathBuf, most: usize, every: Duration) -> Self {
        Self { path, most, every, due: Duration::ZERO, names: Ok(Vec::new()) }
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names for which `wanted` holds, sorted; those of the last listing unless it is time for another. A folder that
    /// does not exist has none. Names that are no UTF-8 are no records.
    ///
    /// # Errors
    /// It cannot be listed, or has more entries than it may.
    pub fn names(&mut self, now: Moment, wanted: impl Fn(&str) -> bool) -> Result<&[String], Unreadable> {
        if now.steady >= self.due {
            self.due = now.steady + self.every;
            self.names = self.list(wanted);
        }
        self.names.as_deref().map_err(Clone::clone)
    }

    fn list(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Unreadable> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| Unreadable::from(&error))?,
        };
        let mut names = Vec::new();
        for (nth, entry) in entries.enumerate() {
            if nth == self.most {
                return Err(Unreadable::because(format!("there are more than {} files", self.most)));
            }
            let name = entry.map_err(|error| Unreadable::from(&error))?.file_name();
            names.extend(name.to_str().filter(|name| wanted(name)).map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_now_and_then_and_up_to_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let at = |seconds| Moment { unix_ms: 0, steady: Duration::from_secs(seconds) };
        let mut folder = Folder::new(dir.path().join("logs"), 3, Duration::from_secs(5));
        let is_log = |name: &str| name.ends_with(".log");
        assert_eq!(folder.names(at(0), is_log), Ok(&[][..]));
        fs::create_dir(folder.path()).unwrap();
        for name in ["b.log", "a.log", "c.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(folder.names(at(4), is_log), Ok(&[][..]));
        assert_eq!(folder.names(at(5), is_log), Ok(&["a.log".to_owned(), "b.log".to_owned()][..]));
        fs::write(folder.path().join("d.log"), "").unwrap();
        let full = folder.names(at(10), is_log).unwrap_err();
        assert_eq!(full.to_string(), "there are more than 3 files");
    }
}
