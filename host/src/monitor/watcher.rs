//! One look: observe, add how figures move, judge.

use super::decisions::Decisions;
use super::tick::{Seen, Tick, Timings};
use crate::clock::{Clock, Moment};
use crate::history::{self, History};
use crate::judge::{Judge, Link, LoadError};
use crate::observe::Observer;
use crate::observe::facts::Snapshot;
use crate::report::clean_facts;
use crate::store::log::LogStats;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long the first sample waits for the second, without which there are no CPU figures.
///
/// CPU clocks are exact to the nanosecond; the CPU of children that came and went is counted in steps of 10 ms, which is
/// a tenth of a core here and a hundredth in the ticks that follow.
pub const FIRST_INTERVAL: Duration = Duration::from_millis(100);

/// Does the work of one tick after the other. [`Monitor`] runs it on a thread; a single look runs it by hand.
pub struct Watcher {
    observer: Observer,
    judge: Option<Judge>,
    /// Policies are compiled while the first samples are taken.
    compiling: Option<JoinHandle<Result<Judge, LoadError>>>,
    /// What to do with the policies when they, or their files, have changed; `None`: their files are not followed.
    changed: Option<Told>,
    /// What the second sample of the first look waits for.
    awaited: Option<Box<dyn FnOnce() + Send>>,
    history: History,
    decisions: Decisions,
    clock: Arc<dyn Clock>,
}

/// Who is told of the policies that have the places now.
type Told = Box<dyn FnMut(&Arc<Vec<Link>>) + Send>;

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
        decisions: Decisions,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let compiling = Some(thread::Builder::new().name("policy-compiler".into()).spawn(judge)?);
        let history = History::new(history);
        Ok(Self { observer, judge: None, compiling, changed: None, awaited: None, history, decisions, clock })
    }

    /// Policies are to be loaded again when their files change, and `changed` told of it: once when they have been loaded,
    /// and then after each change.
    #[must_use]
    pub fn following_policies(self, changed: impl FnMut(&Arc<Vec<Link>>) + Send + 'static) -> Self {
        Self { changed: Some(Box::new(changed)), ..self }
    }

    /// The second sample of the first look is to wait for this, which is to be bounded.
    #[must_use]
    pub fn waiting_for(self, awaited: impl FnOnce() + Send + 'static) -> Self {
        Self { awaited: Some(Box::new(awaited)), ..self }
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
        if let Some(awaited) = self.awaited.take() {
            awaited();
        }
        thread::sleep((start + FIRST_INTERVAL).saturating_sub(self.clock.now().steady));
        self.tick()
    }

    /// How many processes there were at the last look.
    pub fn processes(&self) -> usize {
        self.observer.table().processes().count()
    }

    /// What became of the decisions so far.
    pub fn decided(&self) -> LogStats {
        self.decisions.stats()
    }

    fn observe(&mut self) -> (Vec<Snapshot>, Moment) {
        let mut snapshots = self.observer.observe();
        let at = self.clock.now();
        // Before anybody judges them: what is shown, recorded and judged again is what was judged.
        snapshots.iter_mut().for_each(clean_facts);
        for Snapshot { session, agents, .. } in &mut snapshots {
            for agent in agents {
                let Some(counters) = agent.counters else { continue };
                let sample = history::Sample {
                    at: at.steady,
                    cpu_time: counters.cpu_time,
                    memory: agent.metrics.memory_bytes,
                    io: counters.io_bytes,
                };
                let trend = self.history.record(&session.id, &agent.id, sample);
                agent.trend = Some(if counters.shared { trend.of_each() } else { trend });
            }
        }
        self.history.forget_before(at.steady);
        (snapshots, at)
    }

    fn judge(&mut self, snapshots: Vec<Snapshot>) -> Result<Vec<Arc<Seen>>, WatchError> {
        if let Some(compiling) = self.compiling.take() {
            let mut judge = compiling.join().map_err(|_| WatchError::Compiling)??;
            if let Some(mut changed) = self.changed.take() {
                changed(judge.chain());
                judge.follow_files(changed);
            }
            self.judge = Some(judge);
        }
        let judge = self.judge.as_ref().ok_or(WatchError::Compiling)?;
        let (clock, decisions) = (&self.clock, &self.decisions);
        let seen = |facts: Snapshot| {
            let start = clock.now().steady;
            let judgement = judge.judge(&facts);
            let judging = clock.now().steady.saturating_sub(start);
            let seen = Arc::new(Seen::new(facts, judgement, judging));
            decisions.record(&seen);
            seen
        };
        Ok(snapshots.into_iter().map(seen).collect())
    }
}
