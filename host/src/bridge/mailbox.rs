//! What becomes of a request, on disk, so that it holds whenever this process ends:
//!
//! ```text
//! request-ID ──refused──────────────────────────────────────────► response-ID
//!     └──accept──► accepted-ID (the mark) ──call──► answer in the mark ──► response-ID
//! ```
//!
//! The mark is there before a tool is called, and goes as the response comes, in one renaming. So a mark without an answer is
//! a call of which nobody knows what came, and a request without a mark has never been called.

use super::folder::{Content, Folder, Lasting, Stamp};
use super::request::{CLOSE, Entry, Id, REQUEST_MAX, Request};
use super::response::{Category, Done, RESPONSE_MAX, Response};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

/// A file that is no request, and does not change for so long, is not being written.
const GRACE: Duration = Duration::from_millis(500);
/// So long a file that keeps changing is waited for.
const GRACE_MAX: Duration = Duration::from_secs(5);
/// So many are remembered in the order in which they were heard of.
const HEARD_MAX: usize = 4096;
/// The most that is read of a mark or a response.
const OWN_MAX: u64 = RESPONSE_MAX as u64 + 4096;

/// The requests of a folder.
#[derive(Debug)]
pub struct Mailbox {
    folder: Folder,
    /// Those that were seen and not yet looked at, in order of arrival.
    queue: VecDeque<Id>,
    /// Which of them was heard of as the how manieth.
    heard: HashMap<Id, usize>,
    /// Those that may still be being written.
    settling: HashMap<Id, Settling>,
    /// Those that were refused, and cannot be removed.
    stuck: HashMap<Id, Stamp>,
}

#[derive(Debug)]
struct Settling {
    first: Duration,
    stamp: Stamp,
    since: Duration,
}

/// What was accepted. It has to be answered, or its outcome is unknown.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// To be called.
    Call(Id, Request),
    /// The session is to end.
    Close(Id),
}

/// What stands in the mark of an accepted request.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// The file that the request was.
    accepted: u64,
}

impl Mailbox {
    /// The requests in `folder`.
    pub fn new(folder: Folder) -> Self {
        let (queue, heard) = (VecDeque::new(), HashMap::new());
        Self { folder, queue, heard, settling: HashMap::new(), stuck: HashMap::new() }
    }

    /// Its folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Answers what an earlier session has accepted and not answered: its outcome is unknown. Where it is not `certain` that
    /// all marks are there, because the machine itself has gone down since, that holds of all that was asked.
    ///
    /// # Errors
    /// When something cannot be read or written; to be done again then.
    pub fn resume(&mut self, certain: bool) -> io::Result<()> {
        let unknown = Response::error(Category::UNKNOWN_OUTCOME, Done::Unknown);
        let entries: Vec<Entry> = self.folder.names()?.iter().filter_map(|name| Entry::of(name)).collect();
        for id in entries.iter().filter_map(|entry| if let Entry::Accepted(id) = entry { Some(id) } else { None }) {
            let content = match self.folder.read(&id.accepted(), OWN_MAX)? {
                Content::File(content, _) => content,
                _ => Vec::new(),
            };
            if serde_json::from_slice::<Response>(&content).is_ok() {
                self.folder.rename(&id.accepted(), &id.response())?;
                continue;
            }
            if let Ok(mark) = serde_json::from_slice::<Mark>(&content) {
                self.folder.remove_this(&id.request(), mark.accepted)?;
            }
            self.answer(id, &unknown)?;
        }
        for entry in entries.iter().filter(|_| !certain) {
            let Entry::Request(id) = entry else { continue };
            if let Content::File(_, stamp) | Content::Linked(stamp) = self.folder.read(&id.request(), REQUEST_MAX)? {
                if self.folder.stamp(&id.response())?.is_none() {
                    self.folder.write(&id.response(), &unknown.to_bytes(), Lasting::Cached)?;
                }
                self.folder.remove_this(&id.request(), stamp.inode)?;
            }
        }
        Ok(())
    }

    /// The next request in order of arrival, which is accepted thereby; what is none is refused. `None`: there is none now.
    ///
    /// # Errors
    /// When something cannot be read or written; nothing is lost by that.
    pub fn next(&mut self, now: Duration) -> io::Result<Option<Accepted>> {
        loop {
            // What is left of an earlier look is not all that is there now.
            let is_all = self.queue.is_empty();
            if is_all {
                self.queue = self.arrived()?;
            }
            while let Some(id) = self.queue.front().cloned() {
                // What fails is tried again: it stays in the queue.
                let accepted = self.look_at(&id, now)?;
                self.queue.pop_front();
                if accepted.is_some() {
                    return Ok(accepted);
                }
            }
            if is_all {
                return Ok(None);
            }
        }
    }

    /// Somebody has seen these come, in this order. Files that come within one tick of the system's clock have one time.
    pub fn heard(&mut self, ids: impl IntoIterator<Item = Id>) {
        for id in ids {
            let nth = self.heard.len();
            if nth == HEARD_MAX {
                break;
            }
            self.heard.entry(id).or_insert(nth);
        }
    }

    /// When to look again though nothing happens.
    pub fn wake_at(&self) -> Option<Duration> {
        self.settling.values().map(|settling| settling.since + GRACE).min()
    }

    /// Answers a request that was accepted.
    ///
    /// # Errors
    /// When it cannot be written; to be done again then.
    pub fn answer(&mut self, id: &Id, response: &Response) -> io::Result<()> {
        self.folder.write(&id.accepted(), &response.to_bytes(), Lasting::Cached)?;
        self.folder.rename(&id.accepted(), &id.response())
    }

    /// Removes the responses that were written before `before`, Unix milliseconds.
    ///
    /// # Errors
    /// When one cannot be removed; the others are.
    pub fn forget(&mut self, before: u64) -> io::Result<()> {
        let is_response = |name: &String| matches!(Entry::of(name), Some(Entry::Response(_)));
        let mut all = Ok(());
        for name in self.folder.names()?.into_iter().filter(is_response) {
            let stamp = self.folder.stamp(&name)?;
            if let Some(stamp) = stamp.filter(|stamp| stamp.modified_ms() < before) {
                all = all.and(self.folder.remove_this(&name, stamp.inode));
            }
        }
        all
    }

    /// What is there, the first to come first.
    fn arrived(&mut self) -> io::Result<VecDeque<Id>> {
        let mut arrived = Vec::new();
        for name in self.folder.names()? {
            if let Some(Entry::Request(id)) = Entry::of(&name)
                && let Some(stamp) = self.folder.stamp(&name)?
                && self.stuck.get(&id).is_none_or(|stuck| *stuck != stamp)
            {
                // One that was not heard of yet has come after all that were.
                arrived.push((stamp.changed, self.heard.get(&id).copied().unwrap_or(usize::MAX), id));
            }
        }
        self.heard.clear();
        arrived.sort_unstable();
        let arrived: VecDeque<Id> = arrived.into_iter().map(|(_, _, id)| id).collect();
        self.settling.retain(|id, _| arrived.contains(id));
        Ok(arrived)
    }

    fn look_at(&mut self, id: &Id, now: Duration) -> io::Result<Option<Accepted>> {
        let content = self.folder.read(&id.request(), REQUEST_MAX)?;
        let (parsed, stamp) = match content {
            Content::Missing => {
                self.settling.remove(id);
                return Ok(None);
            }
            Content::Unfit(stamp) => return self.refuse(id, stamp),
            Content::Linked(stamp) => (None, stamp),
            Content::File(bytes, stamp) => (Request::parse(&bytes), stamp),
        };
        if !id.is_valid() {
            return self.refuse(id, stamp);
        }
        let Some(request) = parsed else {
            return if self.may_be_in_the_making(id, stamp, now) { Ok(None) } else { self.refuse(id, stamp) };
        };
        if self.folder.stamp(&id.response())?.is_some() {
            return self.refuse(id, stamp);
        }
        self.settling.remove(id);
        let mark = serde_json::to_vec(&Mark { accepted: stamp.inode })?;
        self.folder.write(&id.accepted(), &mark, Lasting::Cached)?;
        self.folder.remove_this(&id.request(), stamp.inode)?;
        let id = id.clone();
        Ok(Some(if request.tool == CLOSE { Accepted::Close(id) } else { Accepted::Call(id, request) }))
    }

    /// Whether a file that is no request may yet become one: because it changes, or has done so a moment ago.
    fn may_be_in_the_making(&mut self, id: &Id, stamp: Stamp, now: Duration) -> bool {
        let settling = self.settling.entry(id.clone()).or_insert(Settling { first: now, stamp, since: now });
        if settling.stamp != stamp {
            (settling.stamp, settling.since) = (stamp, now);
        }
        now.saturating_sub(settling.since) < GRACE && now.saturating_sub(settling.first) < GRACE_MAX
    }

    /// Answers that it is no request, or the second of its id, and removes it.
    fn refuse(&mut self, id: &Id, stamp: Stamp) -> io::Result<Option<Accepted>> {
        let response = match self.folder.read(&id.response(), OWN_MAX)? {
            Content::Missing => Response::error(Category::INVALID_REQUEST, Done::No),
            Content::File(first, _) => Response::duplicate(serde_json::from_slice(&first).ok()),
            Content::Linked(_) | Content::Unfit(_) => Response::duplicate(None),
        };
        // The first answer is worth more than that there was a second request.
        if let Some(whole) = response.whole() {
            self.folder.write(&id.response(), &whole, Lasting::Cached)?;
        }
        self.settling.remove(id);
        if self.folder.remove_this(&id.request(), stamp.inode).is_err() {
            self.stuck.insert(id.clone(), stamp);
        }
        Ok(None)
    }
}
