//! Who is let in, while others give, revoke and damage.

use super::*;
use crate::auth::{NewToken, create_token, revoke};
use crate::clock::ManualClock;
use crate::store::grants::Grant;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::time::Duration;

const NOON: u64 = 1_800_000_000_000;

/// A gate, and another process that gives and revokes.
struct Door {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    gate: Gate,
    office: Store,
}

impl Door {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(NOON));
        let gate = Gate::open(Arc::new(Store::at(dir.path())), Arc::clone(&clock) as Arc<dyn Clock>);
        let office = Store::at(dir.path());
        Self { dir, clock, gate, office }
    }

    fn give(&self, name: &str, seconds: Option<u64>) -> (Grant, Token) {
        let scopes = [Scope::StatusRead].into_iter().collect();
        let new =
            NewToken { user_id: "ada".into(), name: name.into(), scopes, lifetime: seconds.map(Duration::from_secs) };
        create_token(&self.office, &*self.clock, new).unwrap()
    }

    fn revoke(&self, grant: &Grant) {
        let revoked = revoke(&self.office, &*self.clock, "ada", &grant.id).unwrap().unwrap();
        assert!(revoked.revoked_at_ms.is_some());
    }

    async fn admit(&self, token: &Token) -> Result<Admitted, Denied> {
        self.gate.admit(Some(token.reveal())).await
    }
}

/// Waits until a grant's end was told.
async fn told(admitted: &Admitted) {
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, admitted.ended.cancelled()).await.expect("the end of a grant is told");
}

#[tokio::test]
async fn who_shows_a_token_is_let_in_and_nobody_else() {
    let door = Door::new();
    let stranger = Token::generate().unwrap();
    assert!(matches!(door.admit(&stranger).await, Err(Denied::Invalid)), "there is no database yet");
    let (grant, token) = door.give("laptop", None);
    let principal = door.admit(&token).await.unwrap().principal;
    assert_eq!((principal.user_id.as_str(), &principal.grant_id, &principal.client_id), ("ada", &grant.id, &None));
    assert!(principal.may(Scope::StatusRead) && !principal.may(Scope::RosterWrite));
    assert!(matches!(door.admit(&stranger).await, Err(Denied::Invalid)));
    assert!(matches!(door.gate.admit(None).await, Err(Denied::Missing)));
    for text in ["", &grant.id, &format!("Bearer {}", token.reveal()), &format!("{} ", token.reveal())] {
        assert!(matches!(door.gate.admit(Some(text)).await, Err(Denied::Invalid)), "{text:?}");
    }
}

#[tokio::test]
async fn what_another_process_revokes_lets_nobody_in_and_sends_away_who_is_inside() {
    let door = Door::new();
    let ((lost, its), (kept, other)) = (door.give("lost", None), door.give("kept", None));
    let (inside, stays) = (door.admit(&its).await.unwrap(), door.admit(&other).await.unwrap());
    door.admit(&its).await.unwrap().ended.cancel();
    assert!(!inside.ended.is_cancelled(), "one that goes by itself takes nobody along");
    door.revoke(&lost);
    assert!(matches!(door.admit(&its).await, Err(Denied::Revoked)), "at once");
    told(&inside).await;
    assert!(!stays.ended.is_cancelled(), "other grants are untouched");
    assert_eq!(door.admit(&other).await.unwrap().principal.grant_id, kept.id);
}

#[tokio::test]
async fn who_is_let_in_while_the_grant_is_revoked_is_sent_away_all_the_same() {
    let door = Door::new();
    let ((lost, its), (_, other)) = (door.give("lost", None), door.give("other", None));
    let (read, inside) =
        (door.gate.reader.grant_of(&its.digest()).unwrap().unwrap(), door.admit(&other).await.unwrap());
    door.revoke(&lost);
    let other = inside.principal.grant_id.as_str();
    revoke(&door.office, &*door.clock, "ada", other).unwrap();
    told(&inside).await;
    // By now the revocations were noticed, and nothing changes any more.
    let let_in = door.gate.watch.over(&read.grant, None, door.clock.now()).unwrap();
    told(&Admitted { principal: Principal::from(read), ended: let_in.ended, expired: let_in.expired, resource: None })
        .await;
}

#[tokio::test]
async fn a_grant_ends_when_its_time_is_over() {
    let door = Door::new();
    let (_, token) = door.give("short", Some(60));
    let inside = door.admit(&token).await.unwrap();
    door.clock.advance(Duration::from_millis(59_999));
    assert!(door.admit(&token).await.is_ok());
    door.clock.advance(Duration::from_millis(1));
    assert!(matches!(door.admit(&token).await, Err(Denied::Expired)));
    told(&inside).await;
}

#[tokio::test]
async fn a_database_that_cannot_be_read_revokes_nothing() {
    let door = Door::new();
    let (grant, token) = door.give("laptop", None);
    let inside = door.admit(&token).await.unwrap();
    let away = door.dir.path().join("away");
    fs::create_dir(&away).unwrap();
    move_database(door.dir.path(), &away);
    fs::write(door.office.path(), "this is no database, and never was one: ".repeat(40)).unwrap();
    let denied = door.admit(&token).await.unwrap_err();
    assert!(matches!(&denied, Denied::Unavailable(why) if why.contains("damaged")), "{denied}");
    // As long as a few looks take.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!inside.ended.is_cancelled(), "that nobody can tell is no end");
    fs::remove_file(door.office.path()).unwrap();
    move_database(&away, door.dir.path());
    assert_eq!(door.admit(&token).await.unwrap().principal.grant_id, grant.id);
}

/// Moves a database from one folder to another, with what lies beside it.
fn move_database(from: &Path, to: &Path) {
    for file in ["headcount.db", "headcount.db-wal", "headcount.db-shm"] {
        // What lies beside it need not be there.
        if from.join(file).exists() {
            fs::rename(from.join(file), to.join(file)).unwrap();
        }
    }
}

#[tokio::test]
async fn when_a_grant_was_used_is_noted_once_a_minute() {
    let door = Door::new();
    let (_, token) = door.give("laptop", None);
    let noted = || door.office.grants("ada").unwrap()[0].last_used_at_ms;
    assert_eq!(noted(), None);
    let at_last = async |at| {
        let patience = tokio::time::timeout(Duration::from_secs(30), async {
            while noted() != Some(at) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        patience.await.unwrap_or_else(|_| panic!("{:?} is noted, not {at}", noted()));
    };
    door.admit(&token).await.unwrap();
    at_last(NOON).await;
    door.clock.advance(Duration::from_secs(59));
    door.admit(&token).await.unwrap();
    door.clock.advance(Duration::from_secs(1));
    door.admit(&token).await.unwrap();
    at_last(NOON + 60_000).await;
}

/// What happens, in any order.
#[derive(Debug, Clone)]
enum Event {
    Give(Option<u64>),
    Revoke(usize),
    Pass(u64),
    Admit(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        proptest::option::of(1..40_u64).prop_map(Event::Give),
        (0..8_usize).prop_map(Event::Revoke),
        (1..20_u64).prop_map(Event::Pass),
        (0..8_usize).prop_map(Event::Admit),
    ]
}

/// What is known of a grant from what has happened.
struct Model {
    grant: Grant,
    token: Token,
    expires_at: Option<u64>,
    revoked_at: Option<u64>,
    inside: Vec<Admitted>,
}

impl Model {
    /// How it is, `now` seconds after noon.
    fn state(&self, now: u64) -> &'static str {
        match (self.expires_at.filter(|at| *at <= now), self.revoked_at) {
            (None, None) => "alive",
            (Some(expired), Some(revoked)) if revoked < expired => "revoked",
            (Some(_), _) => "expired",
            (None, Some(_)) => "revoked",
        }
    }
}

fn state(admitted: &Result<Admitted, Denied>) -> &'static str {
    match admitted {
        Ok(_) => "alive",
        Err(Denied::Expired) => "expired",
        Err(Denied::Revoked) => "revoked",
        Err(other) => panic!("{other}"),
    }
}

async fn play(events: Vec<Event>) {
    let door = Door::new();
    let mut now = 0;
    let mut models: Vec<Model> = Vec::new();
    for event in events {
        match event {
            Event::Give(lifetime) => {
                let (grant, token) = door.give(&format!("token {}", models.len()), lifetime);
                let expires_at = lifetime.map(|lifetime| now + lifetime);
                models.push(Model { grant, token, expires_at, revoked_at: None, inside: Vec::new() });
            }
            Event::Pass(seconds) => {
                door.clock.advance(Duration::from_secs(seconds));
                now += seconds;
            }
            Event::Revoke(nth) => {
                if let Some(model) = models.get_mut(nth) {
                    door.revoke(&model.grant);
                    model.revoked_at = model.revoked_at.or(Some(now));
                }
            }
            Event::Admit(nth) => {
                if let Some(model) = models.get_mut(nth) {
                    let admitted = door.admit(&model.token).await;
                    assert_eq!(state(&admitted), model.state(now));
                    model.inside.extend(admitted);
                }
            }
        }
    }
    for model in models.iter().filter(|model| model.state(now) != "alive") {
        for inside in &model.inside {
            told(inside).await;
        }
    }
    for model in &models {
        let admitted = door.admit(&model.token).await;
        assert_eq!(state(&admitted), model.state(now));
        let is_alive = admitted.is_ok();
        assert!(model.inside.iter().all(|inside| inside.ended.is_cancelled() != is_alive));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_happens_in_whatever_order_exactly_the_living_are_let_in(
        events in proptest::collection::vec(event(), 1..24),
    ) {
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap().block_on(play(events));
    }
}
