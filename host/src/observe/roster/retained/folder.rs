//! The folder of one retained session: read again when its status has changed, and what is known of it.

use super::said::{Seen, is_over, said, specialization};
use super::{RetainedStatus, STATUS_FILE};
use crate::files::{Stamp, owner, read_small_itself, unix_ms};
use crate::observe::processes::Machine;
use crate::observe::roster::{Locator, Said};
use std::cell::OnceCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A status names its tools; what is much larger is something else.
const LARGEST: u64 = 256 << 10;

/// For so long counts what was said before a status could not be read, or since a heartbeat.
pub const PATIENCE_MS: u64 = 60_000;

/// Whether a link may stand in the folder's place: whoever names one may well name a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Followed,
    Refused,
}

/// One folder.
#[derive(Debug, Default)]
pub struct Folder {
    /// What was read last, whether it was understood or not.
    read: Option<Stamp>,
    /// What was understood last.
    known: Option<(RetainedStatus, Stamp)>,
    /// Why its status cannot be read now.
    problem: Option<String>,
    /// Since when, Unix milliseconds.
    unread_since_ms: Option<u64>,
    uid: Option<u32>,
    made_at_ms: Option<u64>,
    root: OnceCell<PathBuf>,
}

impl Folder {
    /// Looks at the folder at `path`. Returns whether something else is to be said of it than before.
    pub fn look(&mut self, path: &Path, links: Links, now_ms: u64) -> bool {
        match self.read(path, links) {
            Ok(Some(anew)) => {
                if anew {
                    (self.problem, self.unread_since_ms) = (None, None);
                }
                anew
            }
            // Whoever ends a session for good takes its folder away.
            Ok(None) => {
                let was_known = self.is_known();
                *self = Self::default();
                was_known
            }
            // A moment later it may be whole.
            Err(why) => {
                self.problem = Some(why);
                self.unread_since_ms.get_or_insert(now_ms);
                false
            }
        }
    }

    /// Reads the status, where it is another one than before. `None`: there is none.
    fn read(&mut self, path: &Path, links: Links) -> Result<Option<bool>, String> {
        let found = if links == Links::Followed { fs::metadata(path) } else { fs::symlink_metadata(path) };
        let found = match found {
            Ok(found) if found.is_dir() => found,
            Ok(_) => return Ok(None),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => {
                self.read = None;
                return Err(error.to_string());
            }
        };
        (self.uid, self.made_at_ms) = (owner(&found), found.created().ok().and_then(unix_ms));
        let file = path.join(STATUS_FILE);
        let stamp = match Stamp::of_itself(&file) {
            Ok(stamp) => stamp,
            Err(error) if is_missing(&error) => return Ok(None),
            // Others' folders are mostly not to be looked into: nothing says that they hold anything.
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied && links == Links::Refused && !self.is_known() =>
            {
                return Ok(None);
            }
            Err(error) => return self.refuse(error.to_string()),
        };
        if self.read == Some(stamp) {
            return self.problem.clone().map_or(Ok(Some(false)), Err);
        }
        if stamp.uid != self.uid {
            return self.refuse("is another user's than its folder");
        }
        match read_small_itself(&file, LARGEST) {
            // It was replaced since it was looked at: the next look sees who has written that.
            Ok((_, stamp)) if stamp.uid != self.uid => self.refuse("is another user's than its folder"),
            Ok((bytes, stamp)) => {
                self.read = Some(stamp);
                let status = serde_json::from_slice(&bytes).map_err(|_| format!("{STATUS_FILE} is not understood"))?;
                self.known = Some((status, stamp));
                Ok(Some(true))
            }
            Err(error) => self.refuse(error.to_string()),
        }
    }

    /// It is not read this time, and tried again in the next look.
    fn refuse(&mut self, why: impl std::fmt::Display) -> Result<Option<bool>, String> {
        self.read = None;
        Err(format!("{STATUS_FILE} {why}"))
    }

    /// Whether anything was ever understood of it.
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether it has said that it has ended.
    pub fn is_over(&self) -> bool {
        self.known.as_ref().is_some_and(|(status, _)| is_over(status))
    }

    /// Why its status cannot be read now.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whose it is.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// When its status was written, Unix milliseconds.
    pub fn written_at_ms(&self) -> Option<u64> {
        self.known.as_ref().and_then(|(_, stamp)| stamp.modified_ms())
    }

    /// The top folder of the project in which it lies, which `find` finds once.
    pub fn root(&self, find: impl FnOnce() -> PathBuf) -> &Path {
        self.root.get_or_init(find)
    }

    /// Whether time alone changes what is to be said of it.
    pub fn is_late(&self, now_ms: u64) -> bool {
        self.seen(now_ms).is_some_and(|seen| seen.unread_ms.is_some() || seen.silent_ms.is_some())
    }

    /// How its process is found, and what is to be said of it besides.
    pub fn said(&self, here: &Machine, now_ms: u64) -> Option<(Locator, Said)> {
        self.seen(now_ms).map(|seen| said(&seen, here))
    }

    /// What it is for.
    pub fn specialization(&self) -> Option<String> {
        self.known.as_ref().and_then(|(status, _)| specialization(status))
    }

    fn seen(&self, now_ms: u64) -> Option<Seen<'_>> {
        let (status, stamp) = self.known.as_ref()?;
        let late = |since: Option<u64>| since.map(|ms| now_ms.saturating_sub(ms)).filter(|ms| *ms > PATIENCE_MS);
        Some(Seen {
            status,
            uid: self.uid,
            written_at_ms: stamp.modified_ms().unwrap_or(now_ms),
            made_at_ms: self.made_at_ms,
            unread_ms: late(self.unread_since_ms),
            silent_ms: late(status.heartbeat_ms),
        })
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
