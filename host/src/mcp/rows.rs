//! The clients of one user or grant, as rows in the ledger.

use super::life::{Held, Life};
use crate::clients::{LONGEST, Ledger, NewClient};
use crate::clock::Clock;
use crate::store::clients::{Activity, EndReason};
use rmcp::model::{Implementation, ProtocolVersion};
use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// So many clients that name themselves in each request have rows of their own. What is one more is a client that has said
/// nothing of itself.
const MOST: usize = 64;

/// What a request says of who sends it: name and version.
type Words = (Option<String>, Option<String>);

/// Where clients are written down, and those of the newer era, by what their requests say.
pub(super) struct Rows {
    ledger: Arc<Ledger>,
    clock: Arc<dyn Clock>,
    /// What all of them have in common.
    common: NewClient,
    named: Mutex<HashMap<Words, Arc<Row>>>,
}

/// One client.
pub(super) struct Row {
    /// Its id in the ledger, once it was written down.
    id: OnceCell<String>,
    /// How often it could not be.
    failures: AtomicU64,
    /// What it has done meanwhile.
    untold: Mutex<Activity>,
    ended: OnceLock<EndReason>,
    life: Arc<Life>,
}

impl Rows {
    /// None yet; all that come are like `common`.
    pub fn new(ledger: Arc<Ledger>, clock: Arc<dyn Clock>, common: NewClient) -> Self {
        Self { ledger, clock, common, named: Mutex::default() }
    }

    /// A client that is not written down yet.
    pub fn row(&self) -> Arc<Row> {
        let life = Life::new(Arc::clone(&self.clock));
        let (id, failures, untold, ended) = <(_, _, Mutex<Activity>, _)>::default();
        Arc::new(Row { id, failures, untold, ended, life })
    }

    /// The client that says this of itself, and the use that is made of it.
    pub async fn named(&self, client: Option<&Implementation>) -> (Arc<Row>, Held) {
        let cut = |word: &str| word.chars().take(LONGEST).collect::<String>();
        let mut said = client.map(|client| (cut(&client.name), cut(&client.version))).unzip();
        let (row, held) = {
            let mut named = self.all();
            if named.len() >= MOST && !named.contains_key(&said) {
                said = (None, None);
            }
            let row = Arc::clone(named.entry(said.clone()).or_insert_with(|| self.row()));
            // While nobody can take it for idle.
            let held = row.hold();
            (row, held)
        };
        let client = client.filter(|_| said.0.is_some());
        self.write_down(&row, client, &ProtocolVersion::V_2026_07_28).await;
        (row, held)
    }

    /// Writes a client down, once. That it cannot be written down is no reason not to answer it; it is tried again with its next
    /// request.
    pub async fn write_down(&self, row: &Row, client: Option<&Implementation>, version: &ProtocolVersion) {
        let failures = || row.failures.load(Ordering::Relaxed);
        let before = failures();
        let id = row.id.get_or_try_init(|| async {
            if failures() != before {
                // Whoever has waited for one that failed does not wait for another.
                return Err(());
            }
            let new = NewClient {
                name: client.map(|client| client.name.clone()),
                version: client.map(|client| client.version.clone()),
                protocol: version.to_string(),
                ..self.common.clone()
            };
            let ledger = Arc::clone(&self.ledger);
            let recorded = tokio::task::spawn_blocking(move || ledger.record(new)).await;
            let recorded =
                recorded.map_err(|error| error.to_string()).and_then(|id| id.map_err(|error| error.to_string()));
            recorded.map_err(|error| {
                row.failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("a client is not in the ledger yet: {error}");
            })
        });
        // It may have ended meanwhile; the ledger takes only the first word of that.
        if let (Ok(id), Some(reason)) = (id.await, row.ended.get()) {
            self.ledger.end(id, *reason);
        }
    }

    /// Notes that a client was heard, and what it has done. Where it is not written down, that is kept until it is.
    pub fn heard(&self, row: &Row, what: Activity) {
        let mut untold = row.untold();
        untold.add(what);
        if let Some(id) = row.id.get() {
            self.ledger.touch(id, mem::take(&mut untold));
        }
    }

    /// Ends a client. Only the first reason counts.
    pub fn end(&self, row: &Row, reason: EndReason) {
        if row.ended.set(reason).is_err() {
            return;
        }
        match row.id.get() {
            Some(id) => self.ledger.end(id, reason),
            None if row.failures.load(Ordering::Relaxed) > 0 => self.ledger.losses().given_up.add_one(),
            // It has never asked for anything.
            None => {}
        }
    }

    /// Ends those of the newer era that were not heard for so long; when they are heard again, they are new ones.
    pub fn end_idle(&self, after: Duration) {
        self.all().retain(|_, row| {
            let is_idle = row.life.unused_for().is_some_and(|silent| silent >= after);
            if is_idle {
                self.end(row, EndReason::Idle);
            }
            !is_idle
        });
    }

    /// Ends all of the newer era.
    pub fn end_all(&self, reason: EndReason) {
        for (_, row) in self.all().drain() {
            self.end(&row, reason);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Words, Arc<Row>>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    /// Uses it: it is not idle meanwhile.
    pub fn hold(&self) -> Held {
        self.life.hold()
    }

    fn untold(&self) -> MutexGuard<'_, Activity> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::store::Store;
    use crate::store::clients::{Calls, Wanted, Which};
    use crate::store::lease;
    use std::collections::BTreeMap;

    #[tokio::test]
    async fn a_client_that_could_not_be_written_down_is_with_its_next_request_and_what_it_did_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        // Nothing can be written there: it is no folder.
        std::fs::write(&state, "").unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store = Arc::new(Store::at(&state));
        let ledger = Ledger::open(store, Arc::clone(&clock), state.clone(), Duration::from_secs(3600)).unwrap();
        let ledger = Arc::new(ledger);
        let common = NewClient { user_id: "ada".into(), transport: "http".into(), ..NewClient::default() };
        let rows = Rows::new(Arc::clone(&ledger), clock, common);
        let one = || Activity {
            calls: BTreeMap::from([("list_sessions".into(), Calls { all: 1, failed: 0 })]),
            ..Activity::default()
        };
        let (row, lost) = (rows.row(), rows.row());
        for row in [&row, &lost] {
            rows.write_down(row, None, &ProtocolVersion::V_2025_11_25).await;
            rows.heard(row, one());
        }
        rows.end(&lost, EndReason::Closed);
        assert_eq!(ledger.losses().given_up.get(), 1);
        std::fs::remove_file(&state).unwrap();
        std::fs::create_dir(&state).unwrap();
        rows.write_down(&row, None, &ProtocolVersion::V_2025_11_25).await;
        rows.heard(&row, one());
        // All is written when the last of these has gone.
        drop((rows, ledger));
        let wanted = Wanted { whose: "ada".into(), id: None, which: Which::All, now_ms: 0, limit: 9, after: None };
        let found = Store::at(&state).clients(wanted, &lease::living(&state).unwrap()).unwrap().clients;
        let calls: Vec<_> = found.iter().map(|client| client.calls["list_sessions"].all).collect();
        assert_eq!(calls, [2]);
    }
}
