//! Tells those who were let in when their grant ends, whoever has ended it: this process, another one, or time.

use crate::clock::{Clock, Moment};
use crate::store::grants::Grant;
use crate::store::{Store, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};
use tokio_util::sync::CancellationToken;

/// How often is looked whether a grant has ended.
const LOOK: Duration = Duration::from_millis(100);

/// How often is written down that a grant is used.
const NOTE_USE: Duration = Duration::from_secs(60);

/// The grants that somebody was let in under, and that have not ended. They are looked at by a thread, which begins with the
/// first of them and does nothing while there are none.
pub struct Watch {
    grants: Arc<Grants>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    thread: Mutex<Option<Sender<()>>>,
}

type Grants = Mutex<HashMap<String, Watched>>;

struct Watched {
    ended: CancellationToken,
    /// Children of it by when tokens expire that somebody was let in with.
    expiring: BTreeMap<u64, CancellationToken>,
    expires_at_ms: Option<u64>,
    /// Whether it was looked at since somebody was let in. It may have been revoked between the two.
    looked_at: bool,
    /// When its use was last written down.
    noted: Duration,
}

/// What there is to do for who is let in.
pub struct LetIn {
    /// Cancelled when the grant ends. It is this one's own: whoever cancels it sends nobody else away.
    pub ended: CancellationToken,
    /// Cancelled when the token expires, or the grant ends before.
    pub expired: CancellationToken,
    /// Whether it is time to write down that the grant is used.
    pub note_use: bool,
}

impl Watched {
    fn let_in(&mut self, expires_at_ms: Option<u64>, note_use: bool) -> LetIn {
        let ended = &self.ended;
        let of_token = |at| self.expiring.entry(at).or_insert_with(|| ended.child_token()).child_token();
        LetIn {
            ended: ended.child_token(),
            expired: expires_at_ms.map_or_else(|| ended.child_token(), of_token),
            note_use,
        }
    }

    /// Tells those whose tokens have expired.
    fn expire(&mut self, now_ms: u64) {
        while let Some(first) = self.expiring.first_entry().filter(|first| *first.key() <= now_ms) {
            first.remove().cancel();
        }
    }
}

impl Watch {
    pub fn new(store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        Self { grants: Arc::default(), store, clock, thread: Mutex::default() }
    }

    /// Watches over a grant from now on, and over a token that expires at `expires_at_ms`.
    ///
    /// # Errors
    /// Nobody can: no thread can be started.
    pub fn over(&self, grant: &Grant, expires_at_ms: Option<u64>, now: Moment) -> io::Result<LetIn> {
        let mut grants = lock(&self.grants);
        if let Some(watched) = grants.get_mut(&grant.id) {
            // Refreshing puts it off, and nothing brings it nearer.
            watched.expires_at_ms = watched.expires_at_ms.max(grant.expires_at_ms);
            let note_use = now.steady.saturating_sub(watched.noted) >= NOTE_USE;
            if note_use {
                watched.noted = now.steady;
            }
            return Ok(watched.let_in(expires_at_ms, note_use));
        }
        // While the grants are locked: whoever is woken finds the new one among them.
        self.wake()?;
        let mut watched = Watched {
            ended: CancellationToken::new(),
            expiring: BTreeMap::new(),
            expires_at_ms: grant.expires_at_ms,
            looked_at: false,
            noted: now.steady,
        };
        let let_in = watched.let_in(expires_at_ms, true);
        grants.insert(grant.id.clone(), watched);
        Ok(let_in)
    }

    /// Sees to it that somebody looks.
    fn wake(&self) -> io::Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_some_and(|thread| thread.send(()).is_ok()) {
            return Ok(());
        }
        let (stirred, woken) = mpsc::channel();
        let (grants, store, clock) = (Arc::clone(&self.grants), Arc::clone(&self.store), Arc::clone(&self.clock));
        thread::Builder::new().name("grants".to_owned()).spawn(move || watch(&grants, &store, &*clock, &woken))?;
        *thread = Some(stirred);
        Ok(())
    }
}

/// Looks again and again, until the gate is no more.
fn watch(grants: &Grants, store: &Store, clock: &dyn Clock, woken: &Receiver<()>) {
    let mut can_tell = true;
    loop {
        // Not while grants are locked: who is let in must not wait.
        let is_idle = lock(grants).is_empty();
        let waited = if is_idle { woken.recv().map_err(RecvTimeoutError::from) } else { woken.recv_timeout(LOOK) };
        if waited == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let looked = look(grants, store, clock.now(), !can_tell);
        if let (true, Err(error)) = (can_tell, &looked) {
            tracing::warn!(%error, "whether grants were revoked cannot be told");
        }
        can_tell = looked.is_ok();
    }
}

/// Ends what has ended. Where that cannot be told, nothing but time ends a grant. `at_all`: also where nothing has changed.
fn look(grants: &Grants, store: &Store, now: Moment, at_all: bool) -> Result<(), StoreError> {
    lock(grants).retain(|_, watched| {
        watched.expire(now.unix_ms);
        let is_over = watched.expires_at_ms.is_some_and(|at| at <= now.unix_ms);
        if is_over {
            watched.ended.cancel();
        }
        !is_over
    });
    let changed = store.has_changed()? || at_all;
    let asked = |(id, watched): (&String, &mut Watched)| {
        let is_new = !std::mem::replace(&mut watched.looked_at, true);
        (changed || is_new).then(|| id.clone())
    };
    let ids: Vec<String> = lock(grants).iter_mut().filter_map(asked).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let alive = store.unrevoked(&ids)?;
    let mut grants = lock(grants);
    for id in ids.iter().filter(|id| !alive.contains(id)) {
        if let Some(watched) = grants.remove(id) {
            watched.ended.cancel();
        }
    }
    Ok(())
}

fn lock(grants: &Grants) -> MutexGuard<'_, HashMap<String, Watched>> {
    grants.lock().unwrap_or_else(PoisonError::into_inner)
}
