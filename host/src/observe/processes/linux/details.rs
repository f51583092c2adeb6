//! Reads what processes run on helper threads, so that a process which keeps a reader waiting keeps no sample waiting.

use super::program;
use crate::clock::Clock;
use crate::observe::processes::row::Rows;
use crate::observe::processes::{Details, Options, ProcessId, Program};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    clock: Arc<dyn Clock>,
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
    pub(super) fn new(clock: Arc<dyn Clock>, options: &Options) -> Self {
        let (answer, answers) = mpsc::channel();
        Self {
            clock,
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
        if self.helpers == 0 {
            self.start_helper();
        }
        let request = Request { id, image };
        if self.open.insert(request) {
            lock(&self.desk).queue.push_back(request);
            self.desk.1.notify_one();
        }
    }

    /// Waits for answers until the deadline and puts them into the rows.
    pub(super) fn gather(&mut self, rows: &mut Rows) {
        let until = self.clock.now().steady + self.deadline;
        while let Some((request, program)) = self.next_answer(until) {
            self.open.remove(&request);
            put(rows, request, program);
        }
        self.give_up(rows);
    }

    fn next_answer(&self, until: Duration) -> Option<(Request, Program)> {
        if self.open.is_empty() {
            // Those that were given up may answer after all.
            return self.answers.try_recv().ok();
        }
        self.answers.recv_timeout(until.saturating_sub(self.clock.now().steady)).ok()
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
            while let Some(request) = take(&desk, number) {
                let program = program::read(&proc_root, request.id.pid);
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
