//! Tells the service manager that the server lives, for as long as it does: a server that answers from a look of long ago, for
//! the one who looks or who judges hangs, had better be started anew.

use crate::clock::Clock;
use crate::config::service_manager::{Told, tell, watchdog};
use crate::mcp::Service;
use crate::monitor::Sight;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Tells it as often as the service manager wants it told. As this is done by what answers requests, it also says that they
/// are answered.
pub(super) async fn keep(service: Arc<Service>) {
    let Some(limit) = watchdog() else { return };
    let setup = service.setup();
    // Where nobody asks, looks are rare.
    let health = Health::new(Arc::clone(&setup.clock), limit + 2 * setup.pace().idle_tick);
    loop {
        let latest = service.latest(&Sight::All).map(|tick| tick.at.steady);
        if health.is_good(latest) {
            tell(Told::Alive);
        } else {
            tracing::error!("nobody has looked for {:?}; the service manager will be told no more", health.limit);
        }
        sleep(limit / 2).await;
    }
}

/// Whether somebody looks, on the steady clock.
struct Health {
    clock: Arc<dyn Clock>,
    since: Duration,
    limit: Duration,
}

impl Health {
    /// Looks may be so old. The first may take as long to come.
    fn new(clock: Arc<dyn Clock>, limit: Duration) -> Self {
        let since = clock.now().steady;
        Self { clock, since, limit }
    }

    /// `None`: there was no look, or there will be no more.
    fn is_good(&self, latest: Option<Duration>) -> bool {
        self.clock.now().steady.saturating_sub(latest.unwrap_or(self.since)) <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_server_is_alive_as_long_as_somebody_looks() {
        let second = Duration::from_secs(1);
        let clock = Arc::new(ManualClock::at(0));
        let health = Health::new(Arc::clone(&clock) as Arc<dyn Clock>, 30 * second);
        clock.advance(30 * second);
        assert!(health.is_good(None), "the first look takes its time");
        clock.advance(second);
        assert!(!health.is_good(None), "but it has to come");
        assert!(health.is_good(Some(2 * second)));
        clock.advance(30 * second);
        assert!(!health.is_good(Some(30 * second)), "and others after it");
        assert!(health.is_good(Some(31 * second)));
    }
}
