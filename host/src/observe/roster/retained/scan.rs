//! The folders that lie in one: listed again when one has come or gone.

use crate::files::unix_ms;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// So many entries are looked at; nothing that somebody cleans up has more.
const MOST_ENTRIES: usize = 4096;

/// Two changes within one tick of a file system's clock leave the same time: a younger one may not be the last.
const TICK_MS: u64 = 2_500;

/// What was found last.
#[derive(Debug, Default)]
pub struct Scan {
    folders: Vec<PathBuf>,
    /// When the folder had changed last, if nothing can have come since without changing that.
    changed_at_ms: Option<u64>,
    is_cut: bool,
}

impl Scan {
    /// The folders in `top`, by name. What is wrong is added to `problems`; a folder that is not there yet holds none.
    pub fn look(&mut self, top: &Path, now_ms: u64, problems: &mut Vec<String>) -> Vec<PathBuf> {
        if let Err(error) = self.list(top, now_ms) {
            self.changed_at_ms = None;
            if error.kind() == ErrorKind::NotFound {
                *self = Self::default();
            } else {
                problems.push(error.to_string());
            }
        }
        if self.is_cut {
            problems.push(format!("holds more than {MOST_ENTRIES} entries: not all are looked at"));
        }
        self.folders.clone()
    }

    fn list(&mut self, top: &Path, now_ms: u64) -> io::Result<()> {
        let changed_at_ms = fs::metadata(top)?.modified().ok().and_then(unix_ms);
        if self.changed_at_ms.is_some() && self.changed_at_ms == changed_at_ms {
            return Ok(());
        }
        let mut folders = Vec::new();
        let mut entries = fs::read_dir(top)?;
        for entry in entries.by_ref().take(MOST_ENTRIES) {
            let entry = entry?;
            // A link is no folder of this one.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
        self.is_cut = entries.next().is_some();
        folders.sort_unstable();
        self.folders = folders;
        self.changed_at_ms = changed_at_ms.filter(|changed| changed.saturating_add(TICK_MS) < now_ms);
        Ok(())
    }
}
