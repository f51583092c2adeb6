//! Reads configurations on a thread of its own.

use super::command::Command;
use super::formats::{Servers, parse};
use super::places::Place;
use crate::files::{Stamp, read_small};
use crate::observe::processes::ProcessId;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// The largest configuration that is read: some have a history in them.
const LARGEST: u64 = 32 << 20;

/// So many files are remembered.
const MOST_KNOWN: usize = 1000;

/// What a configuration names. `Err`: why that is not known.
pub type Answer = Result<Arc<[Command]>, String>;

/// A question: whose configuration, where it may be, and where the agent works.
type Question = (ProcessId, Vec<Place>, PathBuf);

/// Asks the thread, which ends with this.
#[derive(Debug, Default)]
pub struct Reader(Option<Worker>);

#[derive(Debug)]
struct Worker {
    ask: Sender<Question>,
    answers: Receiver<(ProcessId, Answer)>,
}

impl Reader {
    /// Asks what an agent's configuration names. The answer comes when it comes.
    pub fn ask(&mut self, id: ProcessId, places: Vec<Place>, folder: PathBuf) {
        if self.0.is_none() {
            self.0 = Worker::start();
        }
        // A thread that cannot be started or has gone is asked no more: what is not known stays so.
        if let Some(worker) = &self.0 {
            let _ = worker.ask.send((id, places, folder));
        }
    }

    /// The answers that have come.
    pub fn answers(&self) -> impl Iterator<Item = (ProcessId, Answer)> {
        self.0.iter().flat_map(|worker| worker.answers.try_iter())
    }
}

impl Worker {
    fn start() -> Option<Self> {
        let (ask, questions) = mpsc::channel::<Question>();
        let (answer, answers) = mpsc::channel();
        let work = move || {
            let mut known = Known::default();
            while let Ok((id, places, folder)) = questions.recv() {
                if answer.send((id, known.answer(&places, &folder))).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("mcp-servers".to_owned()).spawn(work).ok()?;
        Some(Self { ask, answers })
    }
}

/// Files that were read. What has not changed is not read again.
#[derive(Default)]
struct Known(HashMap<PathBuf, (Stamp, Result<Servers, String>)>);

impl Known {
    fn answer(&mut self, places: &[Place], folder: &Path) -> Answer {
        if self.0.len() > MOST_KNOWN {
            self.0.clear();
        }
        let mut named: Vec<Command> = Vec::new();
        for place in places {
            let read = self.read(place).map_err(|why| {
                let file = place.file.file_name().unwrap_or_default().to_string_lossy();
                format!("the configuration of its servers, {file}, {why}")
            });
            if let Some(servers) = read? {
                named.extend(servers.in_folder(folder).cloned());
            }
        }
        Ok(named.into())
    }

    /// What a file names; `None`: there is no such file.
    fn read(&mut self, place: &Place) -> Result<Option<&Servers>, String> {
        use ErrorKind::{NotADirectory, NotFound};
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        let stamp = match Stamp::of(&place.file) {
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
            stamp => stamp.map_err(unreadable)?,
        };
        if self.0.get(&place.file).is_none_or(|(seen, _)| *seen != stamp) {
            let bytes = read_small(&place.file, LARGEST).map_err(unreadable)?;
            self.0.insert(place.file.clone(), (stamp, parse(&bytes, place.format)));
        }
        let known = self.0.get(&place.file).map(|(_, servers)| servers.as_ref().map_err(Clone::clone));
        known.transpose()
    }
}
