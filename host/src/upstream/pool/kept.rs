//! One kept session: who asks over it, and what was heard.

use super::super::BadServer;
use super::super::agents::{Listing, Taker};
use super::super::session::Session;
use super::super::view::{UpstreamRow, session};
use super::Figures;
use super::heard::Heard;
use crate::clock::{Clock, Moment};
use crate::config::Upstream;
use crate::names::Instance;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// By how much of itself the time between two questions varies, lest all who ask the same server ask together.
const SPREAD: f64 = 0.1;

/// A session that is kept, with what its server has answered.
pub struct Kept {
    session: Session,
    taker: Taker,
    /// How old an answer may become when nobody looks.
    idle: Duration,
    clock: Arc<dyn Clock>,
    heard: Mutex<Heard<Listing>>,
    /// Woken when the first answer has come.
    answered: Condvar,
    /// Somebody has looked since the last question.
    looked_at: Notify,
    /// Whoever tells others how the sessions stand.
    changed: Arc<Notify>,
}

impl Kept {
    /// A session with this upstream that has asked nothing yet; `None`: it is not to be asked for agents. To be called where
    /// tokio's runtime is.
    ///
    /// # Errors
    /// When a server cannot be configured so.
    pub fn new(
        upstream: &Upstream,
        me: Instance,
        clock: &Arc<dyn Clock>,
        changed: &Arc<Notify>,
    ) -> Result<Option<Self>, BadServer> {
        let Some((taker, from)) = Taker::new(upstream, me).zip(upstream.agents_from.as_ref()) else {
            return Ok(None);
        };
        Ok(Some(Self {
            session: session(upstream, clock)?,
            taker,
            idle: from.stale_after.0 / 2,
            clock: Arc::clone(clock),
            heard: Mutex::default(),
            answered: Condvar::new(),
            looked_at: Notify::new(),
            changed: Arc::clone(changed),
        }))
    }

    /// The upstream's name.
    pub fn name(&self) -> &str {
        self.session.name()
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Who understands the answers.
    pub fn taker(&self) -> &Taker {
        &self.taker
    }

    /// The time now.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// What was heard so far.
    pub fn heard(&self) -> MutexGuard<'_, Heard<Listing>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that somebody looks, and wants the next answer.
    pub fn look(&self) {
        self.looked_at.notify_one();
    }

    /// Asks for agents, as often as is wanted. Never ends.
    pub async fn ask_again_and_again(&self) {
        tokio::join!(self.ask(), self.follow());
    }

    async fn ask(&self) {
        let mut noted = None;
        loop {
            let now = self.clock.now();
            self.heard().ask(now);
            let answer = self.taker.ask(&self.session).await;
            let note = answer.as_ref().ok().and_then(Listing::note);
            if let Some(note) = note.as_ref().filter(|_| note != noted) {
                tracing::info!("upstream {}: {note}", self.name());
            }
            noted = note;
            let now = self.clock.now();
            self.heard().hear(answer, now);
            self.answered.notify_all();
            self.changed.notify_one();
            let every = spread(self.taker.every());
            tokio::time::sleep(every).await;
            let _ = tokio::time::timeout(self.idle.saturating_sub(every), self.looked_at.notified()).await;
        }
    }

    /// Passes on that the session stands otherwise.
    async fn follow(&self) {
        let mut status = self.session.watch();
        while status.changed().await.is_ok() {
            self.changed.notify_one();
        }
    }

    /// Waits for the first answer for as long as is `left`, and tells what is left then. `patience` is how long that was at first.
    pub fn first_answer(&self, left: Duration, patience: Duration) -> Duration {
        let start = self.clock.now().steady;
        let waited = self.answered.wait_timeout_while(self.heard(), left, |heard| heard.is_silent());
        let (mut heard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if heard.is_silent() {
            heard.give_up(patience);
        }
        left.saturating_sub(self.clock.now().steady.saturating_sub(start))
    }

    /// What is counted of it.
    pub fn figures(&self) -> Figures<'_> {
        let now = self.clock.now().steady;
        let age = self.heard().last().map(|(_, heard, _)| now.saturating_sub(heard.steady));
        Figures { name: self.name(), status: self.session.status(), age }
    }

    /// How it stands now.
    pub fn row(&self) -> UpstreamRow {
        let agents = self.heard().agents(self.clock.now());
        UpstreamRow::of(self.name(), &self.session.status(), Some(agents))
    }
}

/// A time that is a little shorter or longer.
fn spread(time: Duration) -> Duration {
    let chance = f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX);
    time.mul_f64(1.0 - SPREAD + 2.0 * SPREAD * chance)
}
