//! The tick: observe, judge, keep. One thread does all of it, faster while somebody asks and slower while nobody does,
//! and everybody is answered from the latest tick.

use crate::clock::{Clock, Moment};
use crate::history::{self, History};
use crate::judge::{Judge, Judgement};
use crate::observe::Observer;
use crate::observe::facts::Snapshot;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;

/// How long the first sample waits for the second, without which there are no CPU figures.
pub const FIRST_INTERVAL: Duration = Duration::from_millis(150);

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
    /// When the figures were read.
    pub at: Moment,
    /// The sessions, by id.
    pub sessions: Vec<Arc<Seen>>,
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
    judge: Judge,
    history: History,
    clock: Arc<dyn Clock>,
}

impl Watcher {
    /// A watcher that has not looked yet.
    pub fn new(observer: Observer, judge: Judge, history: history::Options, clock: Arc<dyn Clock>) -> Self {
        Self { observer, judge, history: History::new(history), clock }
    }

    /// Looks once.
    pub fn tick(&mut self) -> Tick {
        let start = self.clock.now().steady;
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
        let sessions: Vec<_> = snapshots.into_iter().map(|facts| Arc::new(self.judge(facts))).collect();
        let end = self.clock.now().steady;
        let timings = Timings { observe: at.steady.saturating_sub(start), judge: end.saturating_sub(at.steady) };
        Tick { at, sessions, timings }
    }

    /// Looks twice, so that there are CPU figures.
    pub fn look(&mut self) -> Tick {
        self.tick();
        thread::sleep(FIRST_INTERVAL);
        self.tick()
    }

    fn judge(&self, facts: Snapshot) -> Seen {
        let start = self.clock.now().steady;
        let judgement = self.judge.judge(&facts);
        let judging = self.clock.now().steady.saturating_sub(start);
        Seen { facts, judgement, judging }
    }
}

/// Ticks on a thread of its own until it is dropped.
pub struct Monitor {
    latest: watch::Receiver<Option<Arc<Tick>>>,
    ask: SyncSender<()>,
    /// Ticks from before this moment are out of date.
    renewed: Arc<Mutex<Duration>>,
    clock: Arc<dyn Clock>,
    pace: Pace,
}

/// The thread that ticks is no more.
#[derive(Debug, thiserror::Error)]
#[error("the sampler has ended; see the log")]
pub struct Ended;

impl Monitor {
    /// Starts the thread. `watcher` is made on it, so that the program answers while policies are still compiled.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start<E: std::fmt::Display>(
        watcher: impl FnOnce() -> Result<Watcher, E> + Send + 'static,
        pace: Pace,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let (publish, latest) = watch::channel(None);
        // One waiting question is enough: it stands for all that come before the thread looks.
        let (ask, asked) = mpsc::sync_channel(1);
        let renewed = Arc::new(Mutex::new(Duration::ZERO));
        let (thread_clock, thread_renewed) = (Arc::clone(&clock), Arc::clone(&renewed));
        thread::Builder::new().name("sampler".into()).spawn(move || match watcher() {
            Ok(watcher) => run(watcher, &publish, &asked, &thread_renewed, pace, &*thread_clock),
            Err(error) => tracing::error!(%error, "no session can be watched"),
        })?;
        Ok(Self { latest, ask, renewed, clock, pace })
    }

    /// The latest tick, or a new one where the latest is older than the faster pace allows.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn tick(&self) -> Result<Arc<Tick>, Ended> {
        self.ask()?;
        let mut latest = self.latest.clone();
        let now = self.clock.now().steady;
        // Two paces, so that nobody waits for the tick that is just being made.
        let oldest = now.saturating_sub(2 * self.pace.tick).max(read(&self.renewed));
        let fresh_enough = |tick: &Option<Arc<Tick>>| tick.as_ref().is_some_and(|t| t.at.steady >= oldest);
        let tick = latest.wait_for(fresh_enough).await.map_err(|_| Ended)?;
        tick.clone().ok_or(Ended)
    }

    /// Declares all earlier ticks out of date: what was just changed is in the next answer.
    pub fn renew(&self) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now().steady;
    }

    /// How old a tick is now.
    pub fn age(&self, tick: &Tick) -> Duration {
        self.clock.now().steady.saturating_sub(tick.at.steady)
    }

    fn ask(&self) -> Result<(), Ended> {
        match self.ask.try_send(()) {
            Ok(()) | Err(TrySendError::Full(())) => Ok(()),
            Err(TrySendError::Disconnected(())) => Err(Ended),
        }
    }
}

fn run(
    mut watcher: Watcher,
    publish: &watch::Sender<Option<Arc<Tick>>>,
    asked: &mpsc::Receiver<()>,
    renewed: &Mutex<Duration>,
    pace: Pace,
    clock: &dyn Clock,
) {
    let first = Arc::new(watcher.look());
    let mut last = first.at.steady;
    let mut last_asked = last;
    publish.send_replace(Some(first));
    loop {
        let now = clock.now().steady;
        let attentive = now.saturating_sub(last_asked) < ATTENTIVE;
        let due = last + if attentive { pace.tick } else { pace.idle_tick };
        match asked.recv_timeout(due.saturating_sub(now)) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) => {
                last_asked = clock.now().steady;
                if last_asked < last + pace.tick && last >= read(renewed) {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let tick = Arc::new(watcher.tick());
        last = tick.at.steady;
        publish.send_replace(Some(tick));
    }
}

fn read(moment: &Mutex<Duration>) -> Duration {
    *moment.lock().unwrap_or_else(PoisonError::into_inner)
}
