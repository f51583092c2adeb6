//! One server's side of the ledger: what its clients do is gathered, and written down by a thread of its own, so that no call
//! waits for the disk. At most a second of it is lost when the server is killed.

use super::forgetting::Forgetting;
use crate::clock::Clock;
use crate::figures::Count;
use crate::store::clients::{Activity, Client, End, EndReason, NewClient};
use crate::store::lease::Lease;
use crate::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// For how long activities are gathered before they are written down.
const GATHER: Duration = Duration::from_millis(500);

/// The most clients whose activities wait for a disk that refuses them.
const MOST_WAITING: usize = 10_000;

/// What is kept of a client's own words, in characters.
pub const LONGEST: usize = 128;

/// Why a client cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// There is no lease for this server.
    #[error("no sign of life can be given: {0}")]
    Lease(#[from] std::io::Error),
    /// The database does not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ledger, as one server writes it.
pub struct Ledger {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    state: PathBuf,
    own: Mutex<Own>,
    told: Option<Told>,
    writer: Option<JoinHandle<()>>,
    losses: Arc<Losses>,
}

/// What the disk did not take.
#[derive(Debug, Default)]
pub struct Losses {
    /// How often it has refused what was gathered: it is late then.
    pub refused: Count,
    /// Clients of whom was given up what they had done.
    pub given_up: Count,
}

/// The way to the writer.
struct Told {
    activities: Sender<(String, Activity)>,
    /// Goes last: who hears that it has gone has heard everything.
    _open: Sender<()>,
}

/// What is this server's own: made with its first client.
#[derive(Debug, Default)]
struct Own {
    lease: Option<Lease>,
    clients: u64,
}

impl Ledger {
    /// The ledger in the state directory `state`, whose database is `store`. Clients and grants that have ended are remembered
    /// for `keep`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(store: Arc<Store>, clock: Arc<dyn Clock>, state: PathBuf, keep: Duration) -> std::io::Result<Self> {
        let (activities, heard) = mpsc::channel();
        let (open, is_open) = mpsc::channel();
        let losses = Arc::new(Losses::default());
        let (into, with, counts) = (Arc::clone(&store), Arc::clone(&clock), Arc::clone(&losses));
        let forgets = Forgetting::new(state.clone(), keep);
        let run = move || write(&into, &Heard { activities: heard, is_open }, &*with, forgets, &counts);
        let writer = thread::Builder::new().name("clients".to_owned()).spawn(run)?;
        let told = Some(Told { activities, _open: open });
        Ok(Self { store, clock, state, own: Mutex::default(), told, writer: Some(writer), losses })
    }

    /// Takes up a client, and returns its id. It is on disk then.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn record(&self, new: NewClient) -> Result<String, LedgerError> {
        let now_ms = self.clock.now().unix_ms;
        let (server, nth) = self.next()?;
        let own_word =
            |text: Option<String>| text.map(|text| crate::text::clean(&text).chars().take(LONGEST).collect());
        let client = Client {
            id: format!("{server}-{nth}"),
            server,
            who: NewClient { name: own_word(new.name), version: own_word(new.version), ..new },
            connected_at_ms: now_ms,
            last_activity_at_ms: now_ms,
            ended: None,
            calls: BTreeMap::new(),
            agents_registered: 0,
        };
        self.store.record_client(&client)?;
        Ok(client.id)
    }

    /// This server's id, and the number of its next client.
    fn next(&self) -> std::io::Result<(String, u64)> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let lease = match own.lease.take() {
            Some(lease) => lease,
            None => Lease::take(&self.state)?,
        };
        let id = lease.id().to_owned();
        own.lease = Some(lease);
        own.clients += 1;
        Ok((id, own.clients))
    }

    /// A client was heard; `what` says what it has done, whose time is set here. It returns at once.
    pub fn touch(&self, id: &str, what: Activity) {
        self.tell(id, Activity { at_ms: self.clock.now().unix_ms, ..what });
    }

    /// A client has ended, which is no sign of life.
    pub fn end(&self, id: &str, reason: EndReason) {
        let at_ms = self.clock.now().unix_ms;
        self.tell(id, Activity { ended: Some(End { at_ms, reason }), ..Activity::default() });
    }

    /// What the disk has not taken so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    fn tell(&self, id: &str, activity: Activity) {
        if let Some(told) = &self.told {
            // Without a writer there is nobody to tell; it has said why.
            let _ = told.activities.send((id.to_owned(), activity));
        }
    }
}

impl Drop for Ledger {
    /// Waits until everything is written down, as long as the disk takes it.
    fn drop(&mut self) {
        self.told = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// What clients have done and is not written down yet, by their ids.
type Gathered = BTreeMap<String, Activity>;

/// The writer's end of the way to it.
struct Heard {
    activities: Receiver<(String, Activity)>,
    is_open: Receiver<()>,
}

/// The writer: it ends when nobody can tell it anything any more and all is written down.
fn write(store: &Store, heard: &Heard, clock: &dyn Clock, mut forgets: Forgetting, losses: &Losses) {
    let mut gathered = Gathered::new();
    let mut is_open = true;
    while is_open {
        is_open = heard.gather(&mut gathered);
        if is_open || !gathered.is_empty() {
            forgets.turn(store, clock.now());
        }
        if gathered.is_empty() {
            continue;
        }
        match store.touch_clients(&gathered) {
            Ok(()) => gathered.clear(),
            Err(error) => {
                let given_up = gathered.len() > MOST_WAITING;
                tracing::warn!(%error, given_up, "what clients do cannot be written down");
                losses.refused.add_one();
                if given_up {
                    losses.given_up.add(gathered.len() as u64);
                    gathered.clear();
                }
            }
        }
    }
}

impl Heard {
    /// Waits for an activity, unless the disk has refused what is there and it is to be tried again, and for those that come shortly
    /// after it. They wake nobody: that would take longer than the call that tells of them. Returns whether more may come.
    fn gather(&self, gathered: &mut Gathered) -> bool {
        if gathered.is_empty() {
            match self.activities.recv_timeout(super::forgetting::PAUSE) {
                Ok((id, activity)) => gathered.entry(id).or_default().add(activity),
                // There may be something to forget, also where no client ever comes.
                Err(error) => return error == RecvTimeoutError::Timeout,
            }
        }
        let is_open = self.is_open.recv_timeout(GATHER) != Err(RecvTimeoutError::Disconnected);
        for (id, activity) in self.activities.try_iter() {
            gathered.entry(id).or_default().add(activity);
        }
        is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, SystemClock};
    use crate::store::clients::{Calls, Wanted, Which};
    use crate::store::lease;
    use std::path::Path;

    fn ledger(state: &Path) -> Ledger {
        let store = Arc::new(Store::at(state));
        Ledger::open(store, Arc::new(SystemClock::default()), state.to_owned(), Duration::from_secs(3600)).unwrap()
    }

    fn claude() -> NewClient {
        let name = Some("claude\u{1b}[2J-code".to_owned());
        NewClient {
            user_id: "ada".into(),
            name,
            protocol: "2025-11-25".into(),
            transport: "stdio".into(),
            ..NewClient::default()
        }
    }

    fn called(tool: &str) -> Activity {
        Activity { calls: BTreeMap::from([(tool.to_owned(), Calls { all: 1, failed: 0 })]), ..Activity::default() }
    }

    /// What others see.
    fn seen(state: &Path) -> Vec<Client> {
        let wanted = Wanted { whose: "ada".into(), id: None, which: Which::All, now_ms: 0, limit: 100, after: None };
        Store::at(state).clients(wanted, &lease::living(state).unwrap()).unwrap().clients
    }

    /// Waits until so many calls are on disk.
    fn until_written(state: &Path, calls: u64) {
        let began = SystemClock::default();
        while seen(state).iter().flat_map(|client| client.calls.values()).map(|calls| calls.all).sum::<u64>() < calls {
            assert!(began.now().steady < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_client_is_seen_at_once_and_nothing_that_it_did_is_lost_at_the_end() {
        let state = tempfile::tempdir().unwrap();
        let ledger = ledger(state.path());
        let id = ledger.record(claude()).unwrap();
        let found = seen(state.path());
        assert_eq!(
            (found[0].id.as_str(), found[0].who.name.as_deref(), found[0].ended),
            (&*id, Some("claude-code"), None)
        );
        for _ in 0..300 {
            ledger.touch(&id, called("list_sessions"));
        }
        ledger.end(&id, EndReason::Closed);
        drop(ledger);
        let found = seen(state.path());
        assert_eq!(found[0].calls["list_sessions"].all, 300);
        assert_eq!(found[0].ended.map(|end| end.reason), Some(EndReason::Closed));
    }

    #[test]
    fn an_end_is_no_sign_of_life() {
        let state = tempfile::tempdir().unwrap();
        let ledger = ledger(state.path());
        let id = ledger.record(claude()).unwrap();
        let connected = seen(state.path())[0].last_activity_at_ms;
        thread::sleep(Duration::from_millis(2));
        ledger.end(&id, EndReason::Closed);
        drop(ledger);
        let found = seen(state.path());
        assert!(found[0].last_activity_at_ms == connected && found[0].ended.is_some_and(|end| end.at_ms > connected));
    }

    #[test]
    fn a_wall_clock_that_jumps_loses_nobody_and_ends_nobody() {
        let state = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(1_000_000));
        let store = Arc::new(Store::at(state.path()));
        let with: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let ledger = Ledger::open(store, with, state.path().to_owned(), Duration::from_secs(100)).unwrap();
        let one = ledger.record(claude()).unwrap();
        clock.set(1000);
        let other = ledger.record(claude()).unwrap();
        ledger.touch(&one, called("a"));
        clock.set(900_000_000);
        ledger.touch(&other, called("a"));
        clock.set(2000);
        ledger.touch(&other, called("a"));
        until_written(state.path(), 3);
        let found = seen(state.path());
        let times: Vec<_> = found.iter().map(|c| (c.id.clone(), c.connected_at_ms, c.last_activity_at_ms)).collect();
        assert_eq!(times, [(one.clone(), 1_000_000, 1_000_000), (other, 1000, 900_000_000)]);
        assert!(found.iter().all(|client| client.ended.is_none()));
        // It has ended before it was there, as far as clocks tell.
        ledger.end(&one, EndReason::Closed);
        drop(ledger);
        let end = seen(state.path())[0].ended.unwrap();
        assert_eq!((end.at_ms, end.reason), (2000, EndReason::Closed));
    }

    #[test]
    fn what_has_not_ended_ends_with_the_server() {
        let state = tempfile::tempdir().unwrap();
        let ledger = ledger(state.path());
        ledger.record(claude()).unwrap();
        assert_eq!(seen(state.path())[0].ended, None);
        drop(ledger);
        assert_eq!(seen(state.path())[0].ended.map(|end| end.reason), Some(EndReason::ServerStopped));
    }

    #[test]
    fn what_a_client_does_is_seen_while_it_goes_on() {
        let state = tempfile::tempdir().unwrap();
        let ledger = ledger(state.path());
        let id = ledger.record(claude()).unwrap();
        let began = SystemClock::default();
        while seen(state.path())[0].calls.is_empty() {
            ledger.touch(&id, called("list_sessions"));
            assert!(began.now().steady < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn servers_have_clients_of_their_own() {
        let state = tempfile::tempdir().unwrap();
        let (one, two) = (ledger(state.path()), ledger(state.path()));
        let ids: std::collections::HashSet<String> =
            [&one, &two, &one].iter().map(|ledger| ledger.record(claude()).unwrap()).collect();
        assert_eq!((ids.len(), seen(state.path()).len()), (3, 3));
    }
}
