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

/// How a top folder is found.
type Find = fn(&Path, Worktrees) -> PathBuf;

/// Finds top folders.
#[derive(Debug)]
pub struct Places {
    find: Find,
    worktrees: Worktrees,
    worker: Option<Worker>,
    /// What was found in this look.
    found: HashMap<PathBuf, PathBuf>,
    /// Where answers come in that nobody waits for any more.
    late: HashMap<PathBuf, Receiver<PathBuf>>,
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
        Self { find: top_folder, worktrees, worker: None, found: HashMap::new(), late: HashMap::new(), patient: true }
    }

    /// Begins a new look: what was found before may have changed.
    pub fn begin(&mut self) {
        self.found.clear();
        self.patient = true;
    }

    /// The top folder of the project that holds `folder`. `None`: its file system has not answered yet, and may in a
    /// later look. One look waits for one folder at most.
    pub fn top(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(top) = self.found.get(folder) {
            return Some(top.clone());
        }
        let top = match self.late.get(folder) {
            Some(answer) => answer.try_recv().ok()?,
            None if self.patient => self.ask(folder)?,
            None => return None,
        };
        self.late.remove(folder);
        self.found.insert(folder.to_owned(), top.clone());
        Some(top)
    }

    fn ask(&mut self, folder: &Path) -> Option<PathBuf> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(self.find, self.worktrees)?,
        };
        worker.ask.send(folder.to_owned()).ok()?;
        match worker.answers.recv_timeout(PATIENCE) {
            Ok(top) => {
                self.worker = Some(worker);
                Some(top)
            }
            Err(_) => {
                // The thread may hang for good. It is left to itself, and the next folder gets another.
                self.late.insert(folder.to_owned(), worker.answers);
                self.patient = false;
                None
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
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static ANSWERS: AtomicBool = AtomicBool::new(false);

    fn find(folder: &Path, _: Worktrees) -> PathBuf {
        while folder == Path::new("/stuck") && !ANSWERS.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        folder.to_owned()
    }

    #[test]
    fn a_folder_that_does_not_answer_holds_up_one_look_once() {
        let mut places = Places { find, ..Places::new(Worktrees::Together) };
        let (stuck, other) = (Path::new("/stuck"), Path::new("/other"));
        assert_eq!(places.top(stuck), None);
        assert_eq!(places.top(other), None, "this look has waited long enough");
        places.begin();
        assert_eq!(places.top(stuck), None);
        assert_eq!(places.top(other), Some(other.to_owned()));
        ANSWERS.store(true, Relaxed);
        while places.top(stuck).is_none() {
            thread::yield_now();
        }
        assert_eq!(places.top(stuck), Some(stuck.to_owned()));
        assert!(places.late.is_empty());
    }
}
