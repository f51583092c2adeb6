//! The files of a log: `NAME.jsonl`, and `NAME.1.jsonl` (the youngest) and so on, which are closed.

use super::Keeping;
use crate::config::make_private;
use crate::store::private;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Where lines go. It holds no file open: each batch opens what is there now, so that a directory that was removed, a disk
/// that was full or a file that another process has rotated needs no case of its own.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    keeping: Keeping,
}

impl Files {
    pub(super) fn new(dir: &Path, keeping: Keeping) -> Self {
        Self { dir: dir.into(), keeping }
    }

    /// Appends one line for each item and counts those that are whole on disk in `written`.
    ///
    /// Writers of other processes wait meanwhile, so that nobody's rotation or half-written line meets another's.
    pub(super) fn append(&self, items: &[impl Serialize], written: &mut u64) -> io::Result<()> {
        make_private(&self.dir)?;
        let lock = private().append(true).open(self.dir.join(format!("{}.lock", self.keeping.name)))?;
        lock.lock()?;
        let mut file = self.open()?;
        let mut size = file.metadata()?.len();
        for item in items {
            let mut line = serde_json::to_vec(item)?;
            line.push(b'\n');
            let length = line.len() as u64;
            if size > 0 && size + length > self.keeping.max_bytes {
                self.rotate()?;
                file = self.open()?;
                size = 0;
            }
            if let Err(error) = file.write_all(&line) {
                // A full disk may have taken half of the line. Where even this fails, the next line is on the same line.
                let _ = file.set_len(size);
                return Err(error);
            }
            size += length;
            *written += 1;
        }
        Ok(())
    }

    fn open(&self) -> io::Result<File> {
        private().append(true).open(self.path(0))
    }

    /// The file in use (0) or a closed one (from 1).
    fn path(&self, number: u32) -> PathBuf {
        let name = self.keeping.name;
        match number {
            0 => self.dir.join(format!("{name}.jsonl")),
            number => self.dir.join(format!("{name}.{number}.jsonl")),
        }
    }

    /// Closes the file in use: each moves on by one, and what is older than `keep` is removed.
    fn rotate(&self) -> io::Result<()> {
        let mut beyond = self.keeping.keep;
        while present(fs::remove_file(self.path(beyond)))? {
            beyond += 1;
        }
        for number in (0..self.keeping.keep).rev() {
            present(fs::rename(self.path(number), self.path(number + 1)))?;
        }
        Ok(())
    }
}

/// Whether there was a file to do it to.
fn present(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
