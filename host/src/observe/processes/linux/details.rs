//! Reads what processes run on helper threads, so that a process which keeps a reader waiting keeps no sample waiting.

use super::files::Files;
use super::program;
use crate::observe::processes::row::Rows;
use crate::observe::processes::{Details, Options, ProcessId, Program};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many helpers there are in any case, so that one process that hangs does not keep the others from being read.
const AT_LEAST: u64 = 2;

/// So many helpers may hang at the same time; with the next one, no more are started until one of them comes back.
const MOST_HUNG: usize = 4;

/// What to say of a process that keeps its reader waiting.
const LATE: &str = "did not answer in time";

/// What to say of the others when all helpers hang.
const NO_HELPER: &str = "not read: too many other processes did not answer in time";

/// One process to read, and the image it had when this was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Request {
    id: ProcessId,
    image: u64,
}

/// What helpers and reader share.
#[derive(Default)]
struct Desk {
    queue: VecDeque<Request>,
    /// What each helper reads, by the helper's number.
    busy: HashMap<u64, Request>,
    /// Helpers that hang, and are to go when they come back.
    given_up: HashSet<u64>,
    closed: bool,
}

/// The requests and the helpers that work on them.
pub(super) struct Reader {
    proc_root: PathBuf,
    deadline: Duration,
    desk: Arc<(Mutex<Desk>, Condvar)>,
    answers: Receiver<(Request, Program)>,
    answer: Sender<(Request, Program)>,
    helpers: u64,
    /// Asked, and neither answered nor given up.
    open: HashSet<Request>,
    /// What helpers were busy with when the last sample stopped waiting.
    late: HashMap<u64, Request>,
}

impl Reader {
    pub(super) fn new(options: &Options) -> Self {
        let (answer, answers) = mpsc::channel();
        Self {
            proc_root: options.proc_root.clone(),
            deadline: options.details_deadline,
            desk: Arc::default(),
            answers,
            answer,
            helpers: 0,
            open: HashSet::new(),
            late: HashMap::new(),
        }
    }

    /// Asks for what a process runs.
    pub(super) fn ask(&mut self, id: ProcessId, image: u64) {
        if self.helpers < AT_LEAST {
            self.start_helper();
        }
        let request = Request { id, image };
        if self.open.insert(request) {
            lock(&self.desk).queue.push_back(request);
            self.desk.1.notify_one();
        }
    }

    /// Puts answers into the rows as they come, until all have come or none does for as long as the deadline says: thousands
    /// of processes take their time to read, and are worth it; one that hangs is not.
    pub(super) fn gather(&mut self, rows: &mut Rows) {
        while let Some((request, program)) = self.next_answer() {
            self.open.remove(&request);
            put(rows, request, program);
        }
        self.give_up(rows);
    }

    /// How many processes have been asked for and are not known yet.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    fn next_answer(&self) -> Option<(Request, Program)> {
        if self.open.is_empty() {
            // Those that were given up may answer after all.
            return self.answers.try_recv().ok();
        }
        self.answers.recv_timeout(self.deadline).ok()
    }

    /// Gives up helpers that have been at one process over two waits, and has others take their place.
    fn give_up(&mut self, rows: &mut Rows) {
        let mut desk = lock(&self.desk);
        // A helper may have answered and not yet come back for more: only what is open counts.
        let busy = desk.busy.iter().filter(|(_, request)| self.open.contains(request));
        let late: HashMap<u64, Request> = busy.map(|(&helper, &request)| (helper, request)).collect();
        let hung: Vec<(u64, Request)> = (late.iter())
            .filter(|(helper, request)| self.late.get(helper) == Some(request))
            .map(|(&helper, &request)| (helper, request))
            .collect();
        self.late = late;
        for &(helper, request) in &hung {
            desk.given_up.insert(helper);
            self.open.remove(&request);
            put(rows, request, program::unknown(LATE));
        }
        let stuck = desk.given_up.len();
        if stuck > MOST_HUNG {
            for request in desk.queue.drain(..) {
                self.open.remove(&request);
                put(rows, request, program::unknown(NO_HELPER));
            }
        }
        drop(desk);
        if !hung.is_empty() && stuck <= MOST_HUNG {
            self.start_helper();
        }
    }

    fn start_helper(&mut self) {
        self.helpers += 1;
        let (number, desk, answer) = (self.helpers, Arc::clone(&self.desk), self.answer.clone());
        let proc_root = self.proc_root.clone();
        let work = move || {
            let mut files = Files::open(&proc_root);
            while let Some(request) = take(&desk, number) {
                let program = match &mut files {
                    Ok(files) => program::read(files, request.id.pid),
                    Err(errno) => program::unknown(errno.desc()),
                };
                if answer.send((request, program)).is_err() {
                    return;
                }
            }
        };
        // Where no thread can be started, requests stay open and details pending.
        if let Err(error) = std::thread::Builder::new().name("headcount-details".to_owned()).spawn(work) {
            tracing::warn!(%error, "cannot start a helper that reads command lines");
            self.helpers -= 1;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        lock(&self.desk).closed = true;
        self.desk.1.notify_all();
    }
}

/// The next request for a helper; `None` when it is to end.
fn take(desk: &(Mutex<Desk>, Condvar), helper: u64) -> Option<Request> {
    let mut shared = lock(desk);
    shared.busy.remove(&helper);
    if shared.given_up.remove(&helper) {
        return None;
    }
    loop {
        if shared.closed {
            return None;
        }
        if let Some(request) = shared.queue.pop_front() {
            shared.busy.insert(helper, request);
            return Some(request);
        }
        shared = desk.1.wait(shared).unwrap_or_else(PoisonError::into_inner);
    }
}

fn lock(desk: &(Mutex<Desk>, Condvar)) -> MutexGuard<'_, Desk> {
    desk.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts an answer where it belongs, if the process still is the one that was asked for and runs what it ran.
fn put(rows: &mut Rows, request: Request, program: Program) {
    if let Some(row) =
        rows.get_mut(&request.id.pid).filter(|row| row.process.id == request.id && row.image == request.image)
    {
        row.process.details = Details::Read(Arc::new(program));
    }
}
