//! The tick: observe, judge, keep. One thread does all of it, faster while somebody asks or follows and slower while nobody
//! does, and everybody is answered from the latest tick.

mod decisions;
mod figures;
mod following;
mod sight;
#[cfg(test)]
mod tests;
mod tick;
mod watcher;

pub use decisions::Decisions;
pub use figures::Figures;
pub use following::Following;
pub use sight::Sight;
pub use tick::{Find, Seen, Tick, Timings};
pub use watcher::{FIRST_INTERVAL, WatchError, Watcher};

use crate::clock::Clock;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;

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

/// Ticks on a thread of its own until it is dropped.
pub struct Monitor {
    latest: watch::Receiver<Latest>,
    ask: SyncSender<()>,
    /// When a question was last passed on to the thread.
    passed_on: Mutex<Option<Duration>>,
    /// Ticks from before this moment are out of date.
    renewed: Arc<Mutex<Duration>>,
    /// When somebody last asked who wanted to know.
    attended: Arc<Mutex<Duration>>,
    clock: Arc<dyn Clock>,
    pace: Pace,
    figures: Arc<Figures>,
}

/// The latest tick, none yet, or why there will be no more.
type Latest = Result<Option<Arc<Tick>>, String>;

/// Nobody looks any more, and why.
#[derive(Debug, thiserror::Error)]
#[error("sessions are watched no more: {0}")]
pub struct Ended(String);

impl Ended {
    fn broken() -> Self {
        Self("the thread that looks has broken; see the log".into())
    }
}

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
        let figures = Arc::new(Figures::default());
        let attended = Arc::new(Mutex::new(Duration::ZERO));
        let ticking = Ticking {
            asked,
            renewed: Arc::clone(&renewed),
            attended: Arc::clone(&attended),
            pace,
            clock: Arc::clone(&clock),
            figures: Arc::clone(&figures),
        };
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
        Ok(Self { latest, ask, passed_on: Mutex::default(), renewed, attended, clock, pace, figures })
    }

    /// The latest tick as `sight` shows it, or a new one where the latest is older than the faster pace allows.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn tick(&self, sight: &Sight) -> Result<Arc<Tick>, Ended> {
        *self.attended.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now().steady;
        self.glance(sight).await
    }

    /// The same for one who asks again and again whether or not anybody wants to know, and so does not keep up the faster pace:
    /// two headcounts that ask each other would never come to rest.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn glance(&self, sight: &Sight) -> Result<Arc<Tick>, Ended> {
        let now = self.clock.now().steady;
        // Two paces, so that nobody waits for the tick that is just being made.
        let oldest = now.saturating_sub(2 * self.pace.tick);
        let renewed = read(&self.renewed);
        let will_do = |latest: &Latest| match latest {
            Ok(tick) => tick.as_ref().is_some_and(|t| t.at.steady >= oldest && t.begun >= renewed),
            Err(_) => true,
        };
        self.pass_on(now, will_do(&self.latest.borrow()));
        let mut latest = self.latest.clone();
        match latest.wait_for(will_do).await.as_deref() {
            Ok(Ok(Some(tick))) => Ok(sight.of(tick)),
            Ok(Err(why)) => Err(Ended(why.clone())),
            Ok(Ok(None)) | Err(_) => Err(Ended::broken()),
        }
    }

    /// Tells the thread that somebody asks. Where what there is will do, once for each tick is enough to keep it attentive, and
    /// waking it for each question would take longer than answering.
    fn pass_on(&self, now: Duration, will_do: bool) {
        let mut passed_on = self.passed_on.lock().unwrap_or_else(PoisonError::into_inner);
        if will_do && passed_on.is_some_and(|at| now.saturating_sub(at) < self.pace.tick) {
            return;
        }
        *passed_on = Some(now);
        // A thread that has ended has left word why, and takes no more questions.
        let _ = self.ask.try_send(());
    }

    /// The latest tick that there is, as `sight` shows it, however old it is; `None`: there is none yet.
    pub fn latest(&self, sight: &Sight) -> Option<Arc<Tick>> {
        self.latest.borrow().as_ref().ok()?.as_ref().map(|tick| sight.of(tick))
    }

    /// The latest tick as `sight` shows it, and those that come after it. While anybody follows, ticks come at the faster pace.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn follow(&self, sight: &Sight) -> Result<(Arc<Tick>, Following), Ended> {
        let following = Following::new(self.latest.clone(), sight.clone());
        Ok((self.tick(sight).await?, following))
    }

    /// Declares all earlier ticks out of date: what was just changed is in the next answer.
    pub fn renew(&self) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now().steady;
    }

    /// Why nobody looks any more; `None`: somebody does, or is about to begin.
    pub fn ended(&self) -> Option<Ended> {
        // Who is to look and has left no word has broken.
        let broken = || self.latest.has_changed().is_err().then(Ended::broken);
        self.latest.borrow().as_ref().err().map(|why| Ended(why.clone())).or_else(broken)
    }

    /// What ticks have cost.
    pub fn figures(&self) -> &Figures {
        &self.figures
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
    attended: Arc<Mutex<Duration>>,
    pace: Pace,
    clock: Arc<dyn Clock>,
    figures: Arc<Figures>,
}

impl Ticking {
    /// Ticks until nobody can ask any more.
    fn run(&self, mut watcher: Watcher, publish: &watch::Sender<Latest>) -> Result<(), WatchError> {
        let mut latest = Arc::new(watcher.look()?);
        // Whoever has started it will ask.
        *self.attended.lock().unwrap_or_else(PoisonError::into_inner) = latest.at.steady;
        loop {
            self.figures.note(&latest, &watcher);
            drop(publish.send_replace(Ok(Some(Arc::clone(&latest)))));
            // Beside the monitor's own, which all others come from.
            let is_followed = || publish.receiver_count() > 1;
            if !self.wait_for_next(&latest, is_followed) {
                return Ok(());
            }
            latest = Arc::new(watcher.tick()?);
        }
    }

    /// Waits until the next tick is due or wanted; `false`: nobody can ask any more.
    fn wait_for_next(&self, latest: &Tick, is_followed: impl Fn() -> bool) -> bool {
        loop {
            let now = self.clock.now().steady;
            let attentive = now.saturating_sub(read(&self.attended)) < ATTENTIVE || is_followed();
            let due = latest.at.steady + if attentive { self.pace.tick } else { self.pace.idle_tick };
            match self.asked.recv_timeout(due.saturating_sub(now)) {
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => return true,
                Ok(()) => {}
            }
            let old = self.clock.now().steady >= latest.at.steady + self.pace.tick;
            if old || latest.begun < read(&self.renewed) {
                return true;
            }
        }
    }
}

fn read(moment: &Mutex<Duration>) -> Duration {
    *moment.lock().unwrap_or_else(PoisonError::into_inner)
}
