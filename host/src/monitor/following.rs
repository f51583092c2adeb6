//! Those who are told of every tick, instead of asking again and again.

use super::{Ended, Latest, Sight, Tick};
use std::sync::Arc;
use tokio::sync::watch;

/// One who follows the ticks. All of them look at the same one, and the monitor counts them: it needs no word when one goes.
#[derive(Debug)]
pub struct Following {
    latest: watch::Receiver<Latest>,
    sight: Sight,
}

impl Following {
    pub(super) fn new(latest: watch::Receiver<Latest>, sight: Sight) -> Self {
        Self { latest, sight }
    }

    /// The next tick that was not seen yet; those in between are left out. It may be dropped half way, and loses nothing.
    ///
    /// # Errors
    /// When there will be no more.
    pub async fn next(&mut self) -> Result<Arc<Tick>, Ended> {
        loop {
            self.latest.changed().await.map_err(|_| Ended::broken())?;
            match &*self.latest.borrow_and_update() {
                Ok(Some(tick)) => return Ok(self.sight.of(tick)),
                Ok(None) => {}
                Err(why) => return Err(Ended(why.clone())),
            }
        }
    }
}
