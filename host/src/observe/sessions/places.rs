//! Top folders, asked for where no file system can hold up the look: an agent may work on a mount that never answers.

use super::top_folder;
use crate::config::Worktrees;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// How long one look waits for a file system. Local ones answer in microseconds, also on a busy machine in far less.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a folder's project is not known.
const NO_ANSWER: &str = "its file system does not answer";

/// How a top folder is found.
type Find = fn(&Path, Worktrees) -> PathBuf;

/// Finds top folders.
#[derive(Debug)]
pub struct Places {
    find: Find,
    worktrees: Worktrees,
    worker: Option<Worker>,
    /// What was found in this look, and for good the folders that did not answer.
    found: HashMap<PathBuf, Result<PathBuf, &'static str>>,
    patient: bool,
}

/// A thread that looks up one folder after the other.
#[derive(Debug)]
struct Worker {
    ask: Sender<PathBuf>,
    answers: Receiver<PathBuf>,
}

impl Places {
    /// Finds top folders; see [`top_folder`] for `worktrees`.
    pub fn new(worktrees: Worktrees) -> Self {
        Self { find: top_folder, worktrees, worker: None, found: HashMap::new(), patient: true }
    }

    /// Begins a new look: what was found before may have changed.
    pub fn begin(&mut self) {
        self.found.retain(|_, found| found.is_err());
        self.patient = true;
    }

    /// The top folder of the project that holds `folder`, or why it cannot be known. `None`: this look has waited
    /// long enough already; the next one may ask again.
    pub fn top(&mut self, folder: &Path) -> Option<Result<PathBuf, &'static str>> {
        if let Some(found) = self.found.get(folder) {
            return Some(found.clone());
        }
        if !self.patient {
            return None;
        }
        let found = self.ask(folder);
        self.found.insert(folder.to_owned(), found.clone());
        Some(found)
    }

    fn ask(&mut self, folder: &Path) -> Result<PathBuf, &'static str> {
        let worker = match &self.worker {
            Some(worker) => worker,
            None => {
                let worker = Worker::start(self.find, self.worktrees);
                self.worker.insert(worker.ok_or("no thread can be started to look it up")?)
            }
        };
        let asked = worker.ask.send(folder.to_owned()).is_ok();
        match worker.answers.recv_timeout(PATIENCE) {
            Ok(top) if asked => Ok(top),
            _ => {
                // The thread may never come back. It is left to itself, and the next question gets another.
                self.worker = None;
                self.patient = false;
                Err(NO_ANSWER)
            }
        }
    }
}

impl Worker {
    fn start(find: Find, worktrees: Worktrees) -> Option<Self> {
        let (ask, asked) = mpsc::channel::<PathBuf>();
        let (answer, answers) = mpsc::channel();
        let work = move || {
            for folder in asked {
                if answer.send(find(&folder, worktrees)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("places".to_owned()).spawn(work).ok()?;
        Some(Self { ask, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(folder: &Path, _: Worktrees) -> PathBuf {
        while folder == Path::new("/stuck") {
            thread::park();
        }
        folder.to_owned()
    }

    #[test]
    fn a_folder_that_does_not_answer_holds_up_one_look_once() {
        let mut places = Places { find, ..Places::new(Worktrees::Together) };
        let (stuck, other) = (Path::new("/stuck"), Path::new("/other"));
        assert_eq!(places.top(stuck), Some(Err(NO_ANSWER)));
        assert_eq!(places.top(other), None, "this look has waited long enough");
        places.begin();
        assert_eq!(places.top(stuck), Some(Err(NO_ANSWER)));
        assert_eq!(places.top(other), Some(Ok(other.to_owned())));
    }
}
