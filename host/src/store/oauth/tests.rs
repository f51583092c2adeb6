//! What the authorization server keeps, as several processes use it.

use super::*;
use crate::store::Store;
use crate::store::grants::{Digest, Grant};

fn grant() -> Grant {
    Grant {
        id: "grt_1".into(),
        user_id: "ada".into(),
        name: "Agent".into(),
        client_id: Some("hci_1".into()),
        scopes: "status:read".into(),
        created_at_ms: 100,
        expires_at_ms: Some(10_000),
        last_used_at_ms: None,
        revoked_at_ms: None,
    }
}

fn request(n: u8, asked_at_ms: u64) -> Request {
    Request {
        id: [n; 32],
        client_id: "hci_1".into(),
        client_name: None,
        redirect_uri: "http://127.0.0.1/".into(),
        state: None,
        scopes: "status:read".into(),
        resource: "http://localhost/mcp".into(),
        challenge: "c".into(),
        user_code: "BCDF-GHJK".into(),
        tries: 0,
        asked_at_ms,
    }
}

/// The pair of this number, which is given out as many milliseconds after the hundredth.
fn pair(n: u8) -> Pair {
    let now_ms = 100 + u64::from(n);
    Pair {
        access: [n; 32],
        access_expires_at_ms: now_ms + 1000,
        access_scopes: None,
        refresh: [100 + n; 32],
        family: [50; 32],
        resource: "http://localhost/mcp".into(),
        grant_expires_at_ms: now_ms + 10_000,
        most: 3,
        now_ms,
    }
}

/// A store in which a code was redeemed for the first pair.
fn redeemed(dir: &std::path::Path) -> Store {
    let store = Store::at(dir);
    store.add_request(&request(1, 100), &(0..=9999), 8).unwrap();
    assert!(store.consent(&[1; 32], &(0..=9999), &[200; 32], "status:read", 100).unwrap());
    assert!(matches!(store.redeem_code(&[200; 32], &grant(), &pair(0), 0).unwrap(), Redeemed::Given(_)));
    store
}

#[test]
fn a_request_is_there_until_it_is_answered_or_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    assert_eq!(store.requests(&(0..=9999)).unwrap(), [], "there is no database yet");
    for n in 1..=3 {
        store.add_request(&request(n, 100 * u64::from(n)), &(0..=9999), 3).unwrap();
    }
    store.add_request(&request(4, 400), &(101..=9999), 4).unwrap();
    let other = Store::at(dir.path());
    let ids = |oldest| other.requests(&(oldest..=9999)).unwrap().iter().map(|one| one.id[0]).collect::<Vec<_>>();
    assert_eq!((ids(0), ids(300)), (vec![2, 3, 4], vec![3, 4]));
    assert_eq!(other.take_request(&[2; 32], &(201..=9999)).unwrap(), None, "nor is it answered when it is too old");
    assert_eq!(other.take_request(&[2; 32], &(200..=9999)).unwrap().unwrap(), request(2, 200));
    assert_eq!(store.take_request(&[2; 32], &(0..=9999)).unwrap(), None);
    let tries: Vec<_> =
        (0..3).map(|_| store.try_request(&[3; 32], &(0..=9999), 2).unwrap().map(|one| one.tries)).collect();
    assert_eq!(tries, [Some(1), Some(2), None]);
}

#[test]
fn who_has_the_most_requests_makes_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let add = |n: u8, client: &str| {
        let request = Request { client_id: client.into(), ..request(n, u64::from(n)) };
        store.add_request(&request, &(0..=9999), 4).unwrap();
        store.requests(&(0..=9999)).unwrap().iter().map(|one| one.id[0]).collect::<Vec<_>>()
    };
    for (n, client) in [(1, "a"), (2, "b"), (3, "b")] {
        add(n, client);
    }
    assert_eq!(add(4, "b"), [1, 2, 3, 4]);
    assert_eq!(add(5, "c"), [1, 3, 4, 5]);
    assert_eq!(add(6, "b"), [1, 4, 5, 6], "it makes room for its own");
    assert_eq!(add(7, "d"), [1, 5, 6, 7]);
    assert_eq!(add(8, "e"), [5, 6, 7, 8], "where all have as many, the oldest");
    assert_eq!(add(9, "e"), [5, 6, 7, 9], "the second of a client drives out its first");
}

#[test]
fn a_consent_is_for_what_was_asked_and_no_more_than_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.add_request(&request(1, 100), &(0..=9999), 8).unwrap();
    assert!(!store.consent(&[1; 32], &(101..=9999), &[200; 32], "status:read", 150).unwrap(), "it is too old");
    assert!(store.consent(&[1; 32], &(0..=9999), &[200; 32], "status:read", 150).unwrap());
    assert!(!store.consent(&[1; 32], &(0..=9999), &[201; 32], "status:read", 150).unwrap());
    let consent = store.consent_of(&[200; 32]).unwrap().unwrap();
    assert_eq!((consent.client_id.as_str(), consent.issued_at_ms, &consent.grant_id), ("hci_1", 150, &None));
    assert_eq!(store.consent_of(&[201; 32]).unwrap(), None);
    assert_eq!(store.redeem_code(&[200; 32], &grant(), &pair(0), 151).unwrap(), Redeemed::Unknown, "it has expired");
    assert_eq!(store.grants("ada").unwrap(), []);
}

#[test]
fn a_grant_lives_for_the_tokens_that_are_given_under_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = redeemed(dir.path());
    let Redeemed::Given(grant) = store.redeem_refresh(&[100; 32], &pair(1), 30).unwrap() else { panic!("given") };
    assert_eq!((grant.id.as_str(), grant.expires_at_ms), ("grt_1", Some(10_101)));
    assert_eq!(store.grants("ada").unwrap()[0].expires_at_ms, Some(10_101));
    let shown = store.grant_of(&[1; 32]).unwrap().unwrap();
    assert_eq!((shown.grant.id.as_str(), shown.expires_at_ms, shown.scopes), ("grt_1", Some(1101), None));
    // Revoked beside it by another process: nothing more is given.
    Store::at(dir.path()).revoke_grant("ada", "grt_1", 102).unwrap();
    assert_eq!(store.redeem_refresh(&[101; 32], &pair(2), 30).unwrap(), Redeemed::Ended);
    assert_eq!(store.grant_of(&[2; 32]).unwrap(), None);
    assert_eq!(store.redeem_refresh(&[9; 32], &Pair { family: [51; 32], ..pair(2) }, 30).unwrap(), Redeemed::Unknown);
}

#[test]
fn a_grant_has_so_many_tokens_at_the_most() {
    let dir = tempfile::tempdir().unwrap();
    let store = redeemed(dir.path());
    for n in 1..=4 {
        let given = store.redeem_refresh(&[99 + n; 32], &pair(n), 30).unwrap();
        assert!(matches!(given, Redeemed::Given(_)), "{given:?}");
    }
    let known = |digest: Digest| store.grant_of(&digest).unwrap().is_some();
    let is_kept = |n: u8| store.refreshes(&[n; 32], &[50; 32]).unwrap().unwrap().1.is_some();
    let access: Vec<bool> = (0..=4).map(|n| known([n; 32])).collect();
    let refresh: Vec<bool> = (100..=104).map(is_kept).collect();
    assert_eq!((access, refresh), (vec![false, false, true, true, true], vec![false, false, true, true, true]));
    // A token of the user's own has nothing to do with it.
    let own = Grant { id: "grt_2".into(), client_id: None, expires_at_ms: None, ..grant() };
    assert!(store.add_grant(&own, &[77; 32]).unwrap());
    store.redeem_refresh(&[104; 32], &pair(5), 30).unwrap();
    assert!(known([77; 32]));
}

#[test]
fn whatever_was_a_refresh_token_of_a_grant_is_known_to_have_been_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = redeemed(dir.path());
    let rows = || store.read(|db| db.query_row("SELECT count(*) FROM oauth_refresh", [], |row| row.get::<_, u32>(0)));
    for n in 1..=4 {
        let later = Pair { now_ms: 1000 * u64::from(n), ..pair(n) };
        assert!(matches!(store.redeem_refresh(&[99 + n; 32], &later, 30).unwrap(), Redeemed::Given(_)));
    }
    assert_eq!(rows().unwrap(), Some(2), "what was used is kept no longer than it may be shown again");
    let other = Pair { family: [51; 32], ..pair(5) };
    assert_eq!(store.redeem_refresh(&[100; 32], &other, 30).unwrap(), Redeemed::Unknown);
    assert_eq!(store.redeem_refresh(&[100; 32], &pair(5), 30).unwrap(), Redeemed::Reused("grt_1".into()));
    assert_eq!(store.redeem_refresh(&[104; 32], &pair(6), 30).unwrap(), Redeemed::Ended);
}

#[test]
fn what_was_asked_by_a_clock_that_was_wrong_waits_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.add_request(&request(1, 5000), &(4900..=5100), 1).unwrap();
    let (corrected, id) = (0..=200, [1; 32]);
    assert_eq!(store.requests(&corrected).unwrap(), []);
    assert_eq!(store.try_request(&id, &corrected, 5).unwrap(), None);
    assert_eq!(store.take_request(&id, &corrected).unwrap(), None);
    store.add_request(&request(2, 100), &corrected, 2).unwrap();
    assert_eq!(store.requests(&(0..=9999)).unwrap().len(), 1, "it takes nobody's place");
}
