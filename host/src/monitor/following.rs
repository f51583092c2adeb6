//! Those who are told of every tick, instead of asking again and again.

use super::{Ended, Latest, Tick};
use std::sync::Arc;
use tokio::sync::watch;

/// One who follows the ticks. All of them look at the same one, and the monitor counts them: it needs no word when one goes.
#[derive(Debug)]
pub struct Following(watch::Receiver<Latest>);

impl Following {
    pub(super) fn new(latest: watch::Receiver<Latest>) -> Self {
        Self(latest)
    }

    /// The next tick that was not seen yet; those in between are left out. It may be dropped half way, and loses nothing.
    ///
    /// # Errors
    /// When there will be no more.
    pub async fn next(&mut self) -> Result<Arc<Tick>, Ended> {
        loop {
            self.0.changed().await.map_err(|_| Ended::broken())?;
            match &*self.0.borrow_and_update() {
                Ok(Some(tick)) => return Ok(Arc::clone(tick)),
                Ok(None) => {}
                Err(why) => return Err(Ended(why.clone())),
            }
        }
    }
}
