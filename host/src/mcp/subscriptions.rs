//! Clients that want to hear when a session has changed, in both eras of the protocol.
//!
//! What counts as a change says [`Standing::outline`](crate::report::Standing::outline); a session that comes or goes has
//! changed too, so one can be watched for before it is there. Figures are no change: they move with every tick.

use super::answer::{Flow, Service};
use super::connection::Connection;
use super::resources::{missing, session_of};
use crate::clock::Clock;
use crate::monitor::{Ended, Following, Sight, Tick};
use crate::report::clean;
use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Sessions that one client may watch at a time.
const MAX: usize = 100;

/// The shortest time between two updates of one session.
const PAUSE: Duration = Duration::from_secs(1);

/// The subscriptions of one client; they end with it.
pub(super) struct Subscriptions {
    service: Arc<Service>,
    connection: Arc<Connection>,
    free: Arc<Semaphore>,
    /// Those of the older era, by address. The newer era's end with their requests.
    asked: Mutex<HashMap<String, Asked>>,
}

/// A subscription of the older era; it ends, and its place is free, when this is dropped.
struct Asked {
    _until: oneshot::Sender<()>,
    _taken: OwnedSemaphorePermit,
}

impl Subscriptions {
    /// None yet.
    pub fn new(service: Arc<Service>, connection: Arc<Connection>) -> Self {
        Self { service, connection, free: Arc::new(Semaphore::new(MAX)), asked: Mutex::default() }
    }

    /// What of a wish can be granted: addresses of sessions, as many as are free.
    pub fn acceptable(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let wanted: BTreeSet<&String> = requested.resource_subscriptions.iter().flatten().collect();
        let ours = wanted.into_iter().filter(|uri| session_of(uri).is_some());
        SubscriptionFilter::builder().resource_subscriptions(ours.take(self.free.available_permits())).build()
    }

    /// Tells of changes until the request ends or the client has gone.
    ///
    /// # Errors
    /// When another request has taken what was free, or nobody looks any more.
    pub async fn listen(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let uris: BTreeSet<String> = context.accepted().resource_subscriptions.iter().flatten().cloned().collect();
        // One that watches nothing takes a place, too.
        let taken = u32::try_from(uris.len().max(1)).ok().and_then(|n| self.free.try_acquire_many(n).ok());
        let _taken = taken.ok_or_else(too_many)?;
        let telling = async {
            if uris.is_empty() {
                // Nothing is to be told, and nobody need look for it.
                return std::future::pending().await;
            }
            // The client has its word already, and may have changed something before anybody has looked anew.
            let known = self.service.latest(&self.connection.sight);
            let mut changes = Changes::begin(&self.service, &self.connection.sight, uris, known).await?;
            loop {
                for uri in changes.next().await? {
                    if context.sink().notify_resource_updated(uri).await.is_err() {
                        return Ok(());
                    }
                }
            }
        };
        tokio::select! {
            told = telling => told,
            () = context.cancelled() => Ok(()),
            () = self.connection.gone.cancelled() => Ok(()),
        }
    }

    /// Tells `peer` of changes from now on until it asks to be told no more, or has gone.
    ///
    /// # Errors
    /// When the address is not one of a session, there are too many already, or nobody looks any more.
    pub async fn subscribe(&self, uri: String, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        if session_of(&uri).is_none() {
            let message = format!("there is no resource `{}` to subscribe to", clean(&uri));
            return Err(missing(message, &uri));
        }
        let changes =
            Changes::begin(&self.service, &self.connection.sight, BTreeSet::from([uri.clone()]), None).await?;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.contains_key(&uri) {
            return Ok(());
        }
        let taken = Arc::clone(&self.free).try_acquire_owned().map_err(|_| too_many())?;
        let (until, ended) = oneshot::channel();
        asked.insert(uri, Asked { _until: until, _taken: taken });
        let gone = self.connection.gone.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tell(changes, &peer) => {}
                _ = ended => {}
                () = gone.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Tells of an address no more.
    pub fn unsubscribe(&self, uri: &str) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

fn too_many() -> ErrorData {
    ErrorData::invalid_request(format!("a client can watch {MAX} sessions; unsubscribe from one first"), None)
}

/// Tells of changes until the client hears no more or nobody looks any more.
async fn tell(mut changes: Changes, peer: &Peer<RoleServer>) {
    while let Ok(changed) = changes.next().await {
        for uri in changed {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

/// Waits for changes of some sessions.
struct Changes {
    following: Following,
    clock: Arc<dyn Clock>,
    flow: Arc<Flow>,
    watched: Vec<Watched>,
}

impl Changes {
    /// Those since the tick that is `known`, or from now on.
    async fn begin(
        service: &Service,
        sight: &Sight,
        uris: BTreeSet<String>,
        known: Option<Arc<Tick>>,
    ) -> Result<Self, ErrorData> {
        let (tick, following) = service.follow(sight).await.map_err(ended)?;
        let tick = known.unwrap_or(tick);
        let watched = uris.into_iter().map(|uri| Watched { told: outline(&tick, &uri), told_at: None, uri }).collect();
        let (clock, flow) = (Arc::clone(&service.setup().clock), Arc::clone(service.flow()));
        Ok(Self { following, clock, flow, watched })
    }

    /// The addresses of those that have changed. It may be dropped half way, and loses nothing.
    async fn next(&mut self) -> Result<Vec<String>, ErrorData> {
        loop {
            let tick = self.following.next().await.map_err(ended)?;
            let now = self.clock.now().steady;
            let due = self
                .watched
                .iter_mut()
                .filter_map(|watched| watched.look(outline(&tick, &watched.uri), now, &self.flow));
            let changed: Vec<String> = due.collect();
            if !changed.is_empty() {
                return Ok(changed);
            }
        }
    }
}

fn ended(error: Ended) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// What matters of a session; `None`: there is none.
fn outline(tick: &Tick, uri: &str) -> Option<u64> {
    Some(tick.session(session_of(uri)?)?.standing().outline())
}

/// One session, and what its subscriber was last told of.
struct Watched {
    uri: String,
    told: Option<u64>,
    /// On the steady clock.
    told_at: Option<Duration>,
}

impl Watched {
    /// Its address, where it is to be told now. What is too early stays to be told at a later look.
    fn look(&mut self, outline: Option<u64>, now: Duration, flow: &Flow) -> Option<String> {
        let early = self.told_at.is_some_and(|at| now.saturating_sub(at) < PAUSE);
        if outline == self.told {
            return None;
        }
        if early {
            flow.coalesced.add_one();
            return None;
        }
        flow.told.add_one();
        (self.told, self.told_at) = (outline, Some(now));
        Some(self.uri.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_change_is_told_once_and_not_more_often_than_each_second() {
        let clock = ManualClock::at(0);
        let mut watched = Watched { uri: "headcount://session/s".into(), told: Some(1), told_at: None };
        let flow = Flow::default();
        let mut told_after = |ms, outline| {
            clock.advance(Duration::from_millis(ms));
            watched.look(outline, clock.now().steady, &flow).is_some()
        };
        assert!(!told_after(0, Some(1)), "nothing has changed");
        assert!(told_after(1, Some(2)), "the first is told at once");
        assert!(!told_after(1, Some(2)));
        assert!(!told_after(500, Some(3)), "too early");
        assert!(told_after(500, Some(3)), "and not forgotten");
        assert!(!told_after(10, Some(4)) && !told_after(1000, Some(3)), "it is again as it was told");
        assert!(told_after(5000, None), "it has ended");
        assert!(told_after(5000, Some(3)), "it is there again");
        assert_eq!((flow.told.get(), flow.coalesced.get()), (4, 2));
    }
}
