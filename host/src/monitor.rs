//! The tick: observe, judge, keep. One thread does all of it, faster while somebody asks and slower while nobody does,
//! and everybody is answered from the latest tick.

use crate::clock::{Clock, Moment};
use crate::history::{self, History};
use crate::judge::{Judge, Judgement, LoadError};
use crate::observe::Observer;
use crate::observe::facts::{Snapshot, SourceState};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

/// How long the first sample waits for the second, without which there are no CPU figures.
///
/// CPU clocks are exact to the nanosecond; the CPU of children that came and went is counted in steps of 10 ms, which is
/// a tenth of a core here and a hundredth in the ticks that follow.
pub const FIRST_INTERVAL: Duration = Duration::from_millis(100);

/// For how long after the last question ticks come at the faster pace.
const ATTENTIVE: Duration = Duration::from_secs(30);

/// How often it ticks.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// While somebody asks.
    pub tick: Duration,
    /// While nobody does.
    pub idle_tick: Duration,
}

/// All sessions at one moment.
#[derive(Debug)]
pub struct Tick {
    /// When looking began, on the steady clock.
    pub begun: Duration,
    /// When the figures were read.
    pub at: Moment,
    /// The sessions, by id.
    pub sessions: Vec<Arc<Seen>>,
    /// Where agents and figures come from, and what failed; in every session's facts too, but there may be no session.
    pub sources: Vec<SourceState>,
    /// What it took.
    pub timings: Timings,
}

/// One session with what was made of it.
#[derive(Debug)]
pub struct Seen {
    /// What was observed.
    pub facts: Snapshot,
    /// What the policies made of it.
    pub judgement: Judgement,
    /// How long judging took.
    pub judging: Duration,
}

/// How long the parts of a tick took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    /// Reading processes and rosters.
    pub observe: Duration,
    /// Judging all sessions.
    pub judge: Duration,
}

impl Tick {
    /// The session with this id, or the only one with this name.
    pub fn find(&self, id_or_name: &str) -> Find<'_> {
        if let Some(seen) = self.sessions.iter().find(|s| s.facts.session.id == id_or_name) {
            return Find::One(seen);
        }
        let mut named = self.sessions.iter().filter(|s| s.facts.session.name == id_or_name);
        match (named.next(), named.next()) {
            (Some(only), None) => Find::One(only),
            (None, _) => Find::None,
            (Some(first), Some(second)) => {
                let ids = [first, second].into_iter().chain(named).map(|s| s.facts.session.id.as_str());
                Find::Several(ids.collect())
            }
        }
    }
}

/// What a name stands for.
#[derive(Debug)]
pub enum Find<'a> {
    /// This session.
    One(&'a Arc<Seen>),
    /// Nothing.
    None,
    /// Several sessions, with these ids.
    Several(Vec<&'a str>),
}

/// Does the work of one tick after the other. [`Monitor`] runs it on a thread; a single look runs it by hand.
pub struct Watcher {
    observer: Observer,
    judge: Option<Judge>,
    /// Policies are compiled while the first samples are taken.
    compiling: Option<JoinHandle<Result<Judge, LoadError>>>,
    history: History,
    clock: Arc<dyn Clock>,
}

/// Why a look came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Policies cannot run.
    #[error(transparent)]
    Judge(#[from] LoadError),
    /// Compiling the policies has panicked.
    #[error("compiling the policies has failed; see the log")]
    Compiling,
}

impl Watcher {
    /// A watcher that has not looked yet. `judge` is made on a thread of its own, and waited for when it is first needed.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(
        observer: Observer,
        judge: impl FnOnce() -> Result<Judge, LoadError> + Send + 'static,
        history: history::Options,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let compiling = Some(thread::Builder::new().name("policy-compiler".into()).spawn(judge)?);
        Ok(Self { observer, judge: None, compiling, history: History::new(history), clock })
    }

    /// Looks once.
    ///
    /// # Errors
    /// When there is no judge.
    pub fn tick(&mut self) -> Result<Tick, WatchError> {
        let begun = self.clock.now().steady;
        let (snapshots, at) = self.observe();
        let observed = self.clock.now().steady;
        let sessions = self.judge(snapshots)?;
        let judged = self.clock.now().steady;
        let timings = Timings { observe: observed.saturating_sub(begun), judge: judged.saturating_sub(observed) };
        Ok(Tick { begun, at, sessions, sources: self.observer.sources().to_vec(), timings })
    }

    /// Looks twice, so that there are CPU figures.
    ///
    /// # Errors
    /// When there is no judge.
    pub fn look(&mut self) -> Result<Tick, WatchError> {
        let start = self.clock.now().steady;
        self.observe();
        thread::sleep((start + FIRST_INTERVAL).saturating_sub(self.clock.now().steady));
        self.tick()
    }

    fn observe(&mut self) -> (Vec<Snapshot>, Moment) {
        let mut snapshots = self.observer.observe();
        let at = self.clock.now();
        for Snapshot { session, agents, .. } in &mut snapshots {
            for agent in agents {
                let Some(counters) = agent.counters else { continue };
                let sample = history::Sample {
                    at: at.steady,
                    cpu_time: counters.cpu_time,
                    memory: agent.metrics.memory_bytes,
                    io: counters.io_bytes,
                };
                agent.trend = Some(self.history.record(&session.id, &agent.id, sample));
            }
        }
        self.history.forget_before(at.steady);
        (snapshots, at)
    }

    fn judge(&mut self, snapshots: Vec<Snapshot>) -> Result<Vec<Arc<Seen>>, WatchError> {
        if let Some(compiling) = self.compiling.take() {
            self.judge = Some(compiling.join().map_err(|_| WatchError::Compiling)??);
        }
        let judge = self.judge.as_ref().ok_or(WatchError::Compiling)?;
        let clock = &self.clock;
        let seen = |facts: Snapshot| {
            let start = clock.now().steady;
            let judgement = judge.judge(&facts);
            Arc::new(Seen { facts, judgement, judging: clock.now().steady.saturating_sub(start) })
        };
        Ok(snapshots.into_iter().map(seen).collect())
    }
}

/// Ticks on a thread of its own until it is dropped.
pub struct Monitor {
    latest: watch::Receiver<Latest>,
    ask: SyncSender<()>,
    /// Ticks from before this moment are out of date.
    renewed: Arc<Mutex<Duration>>,
    clock: Arc<dyn Clock>,
    pace: Pace,
}

/// The latest tick, none yet, or why there will be no more.
type Latest = Result<Option<Arc<Tick>>, String>;

/// Nobody looks any more, and why.
#[derive(Debug, thiserror::Error)]
#[error("sessions are watched no more: {0}")]
pub struct Ended(String);

impl Monitor {
    /// Starts the thread. `watcher` is made on it, so that the program answers while it is still being set up.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start<E: std::fmt::Display>(
        watcher: impl FnOnce() -> Result<Watcher, E> + Send + 'static,
        pace: Pace,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let (publish, latest) = watch::channel(Ok(None));
        // One waiting question is enough: it stands for all that come before the thread looks.
        let (ask, asked) = mpsc::sync_channel(1);
        let renewed = Arc::new(Mutex::new(Duration::ZERO));
        let ticking = Ticking { asked, renewed: Arc::clone(&renewed), pace, clock: Arc::clone(&clock) };
        thread::Builder::new().name("sampler".into()).spawn(move || {
            let ended = match watcher() {
                Ok(watcher) => ticking.run(watcher, &publish).map_err(|e| e.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = ended {
                tracing::error!("sessions are watched no more: {error}");
                drop(publish.send_replace(Err(error)));
            }
        })?;
        Ok(Self { latest, ask, renewed, clock, pace })
    }

    /// The latest tick, or a new one where the latest is older than the faster pace allows.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn tick(&self) -> Result<Arc<Tick>, Ended> {
        // A thread that has ended has left word why, and takes no more questions.
        let _ = self.ask.try_send(());
        let now = self.clock.now().steady;
        // Two paces, so that nobody waits for the tick that is just being made.
        let oldest = now.saturating_sub(2 * self.pace.tick);
        let renewed = read(&self.renewed);
        let will_do = |latest: &Latest| match latest {
            Ok(tick) => tick.as_ref().is_some_and(|t| t.at.steady >= oldest && t.begun >= renewed),
            Err(_) => true,
        };
        let mut latest = self.latest.clone();
        match latest.wait_for(will_do).await.as_deref() {
            Ok(Ok(Some(tick))) => Ok(Arc::clone(tick)),
            Ok(Err(why)) => Err(Ended(why.clone())),
            Ok(Ok(None)) | Err(_) => Err(Ended("the thread that looks has broken; see the log".into())),
        }
    }

    /// Declares all earlier ticks out of date: what was just changed is in the next answer.
    pub fn renew(&self) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now().steady;
    }

    /// How old a tick is now.
    pub fn age(&self, tick: &Tick) -> Duration {
        self.clock.now().steady.saturating_sub(tick.at.steady)
    }
}

/// The thread's side.
struct Ticking {
    asked: mpsc::Receiver<()>,
    renewed: Arc<Mutex<Duration>>,
    pace: Pace,
    clock: Arc<dyn Clock>,
}

impl Ticking {
    /// Ticks until nobody can ask any more.
    fn run(&self, mut watcher: Watcher, publish: &watch::Sender<Latest>) -> Result<(), WatchError> {
        let mut latest = Arc::new(watcher.look()?);
        let mut last_asked = latest.at.steady;
        loop {
            drop(publish.send_replace(Ok(Some(Arc::clone(&latest)))));
            if !self.wait_for_next(&latest, &mut last_asked) {
                return Ok(());
            }
            latest = Arc::new(watcher.tick()?);
        }
    }

    /// Waits until the next tick is due or wanted; `false`: nobody can ask any more.
    fn wait_for_next(&self, latest: &Tick, last_asked: &mut Duration) -> bool {
        loop {
            let now = self.clock.now().steady;
            let attentive = now.saturating_sub(*last_asked) < ATTENTIVE;
            let due = latest.at.steady + if attentive { self.pace.tick } else { self.pace.idle_tick };
            match self.asked.recv_timeout(due.saturating_sub(now)) {
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => return true,
                Ok(()) => *last_asked = self.clock.now().steady,
            }
            let old = *last_asked >= latest.at.steady + self.pace.tick;
            if old || latest.begun < read(&self.renewed) {
                return true;
            }
        }
    }
}

fn read(moment: &Mutex<Duration>) -> Duration {
    *moment.lock().unwrap_or_else(PoisonError::into_inner)
}
