//! The clients of one user or grant, as rows in the ledger.

use super::life::{Held, Life};
use crate::clients::{LONGEST, Ledger, NewClient};
use crate::clock::Clock;
use crate::store::clients::{Activity, EndReason};
use rmcp::model::{Implementation, ProtocolVersion};
use std::collections::HashMap;
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
    /// Its id in the ledger, once it was written down; `None` in it: it could not be.
    id: OnceCell<Option<String>>,
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
        Arc::new(Row { id: OnceCell::new(), ended: OnceLock::new(), life: Life::new(Arc::clone(&self.clock)) })
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

    /// Writes a client down, once. That it cannot be written down is no reason not to answer it.
    pub async fn write_down(&self, row: &Row, client: Option<&Implementation>, version: &ProtocolVersion) {
        let id = row.id.get_or_init(|| async {
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
            recorded.inspect_err(|error| tracing::warn!("a client is not in the ledger: {error}")).ok()
        });
        // It may have ended meanwhile; the ledger takes only the first word of that.
        if let (Some(id), Some(reason)) = (id.await, row.ended.get()) {
            self.ledger.end(id, *reason);
        }
    }

    /// Notes that a client was heard, and what it has done.
    pub fn heard(&self, row: &Row, what: Activity) {
        if let Some(id) = row.id() {
            self.ledger.touch(id, what);
        }
    }

    /// Ends a client. Only the first reason counts.
    pub fn end(&self, row: &Row, reason: EndReason) {
        if row.ended.set(reason).is_ok()
            && let Some(id) = row.id()
        {
            self.ledger.end(id, reason);
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

    fn id(&self) -> Option<&String> {
        self.id.get()?.as_ref()
    }
}
