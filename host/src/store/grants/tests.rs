//! Grants on disk, as several processes use them.

use super::*;
use crate::store::clients::{Activity, Client, End, EndReason, NewClient, Wanted, Which};
use std::collections::BTreeMap;

fn grant(id: &str, name: &str) -> Grant {
    Grant {
        id: id.into(),
        user_id: "ada".into(),
        name: name.into(),
        client_id: None,
        scopes: "status:read".into(),
        created_at_ms: 100,
        expires_at_ms: None,
        last_used_at_ms: None,
        revoked_at_ms: None,
    }
}

fn digest(of: u8) -> Digest {
    [of; 32]
}

#[test]
fn a_grant_is_found_by_its_token_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    assert_eq!(store.grant_of(&digest(1)).unwrap(), None);
    assert!(!store.path().exists(), "who only asks makes nothing");
    let (one, two) = (grant("grt_1", "one"), Grant { expires_at_ms: Some(200), ..grant("grt_2", "two") });
    assert!(store.add_grant(&one, &digest(1)).unwrap() && store.add_grant(&two, &digest(2)).unwrap());
    let other = Store::at(dir.path());
    assert_eq!(other.grant_of(&digest(1)).unwrap().map(|shown| shown.grant).as_ref(), Some(&one));
    assert_eq!(other.grant_of(&digest(2)).unwrap().map(|shown| shown.grant).as_ref(), Some(&two));
    assert_eq!(other.grant_of(&digest(3)).unwrap(), None);
    assert_eq!(other.grants("ada").unwrap(), [two.clone(), one.clone()]);
    assert_eq!(other.living_grants("ada", 199).unwrap(), [two, one.clone()]);
    assert_eq!(other.living_grants("ada", 200).unwrap(), [one]);
    other.revoke_grant("ada", "grt_1", 150).unwrap();
    assert_eq!(other.living_grants("ada", 199).unwrap().len(), 1);
    assert_eq!(other.grants("bob").unwrap(), []);
    store.add_grant(&Grant { user_id: "bob".into(), ..grant("grt_3", "one") }, &digest(3)).unwrap();
    let ids = |grants: Vec<Grant>| grants.into_iter().map(|grant| grant.id).collect::<Vec<_>>();
    assert_eq!(ids(other.grants("bob").unwrap()), ["grt_3"]);
    assert_eq!(ids(other.grants(Whose::Everybody).unwrap()), ["grt_3", "grt_2", "grt_1"]);
    assert_eq!(ids(other.living_grants(Whose::Everybody, 199).unwrap()), ["grt_3", "grt_2"]);
    assert!(other.revoke_grant(Whose::Everybody, "grt_3", 150).unwrap().is_some());
    assert_eq!(ids(other.living_grants(Whose::Everybody, 199).unwrap()), ["grt_2"]);
}

#[test]
fn what_is_revoked_stays_so_since_the_first_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.add_grant(&grant("grt_1", "one"), &digest(1)).unwrap();
    assert_eq!(store.revoke_grant("bob", "grt_1", 150).unwrap(), None, "it is not his");
    assert_eq!(store.grant_of(&digest(1)).unwrap().unwrap().grant.ended(1000), None);
    for now_ms in [150, 160] {
        let revoked = store.revoke_grant("ada", "grt_1", now_ms).unwrap().unwrap();
        assert_eq!(revoked.ended(1000), Some((150, GrantEnd::Revoked)));
    }
    assert_eq!(store.revoke_grant("ada", "grt_2", 150).unwrap(), None);
    let ids = ["grt_1".to_owned(), "grt_2".to_owned()];
    assert_eq!(store.unrevoked(&ids).unwrap(), HashSet::new());
}

#[test]
fn a_name_is_free_again_when_its_token_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let at = |id: &str, created_at_ms| Grant { created_at_ms, expires_at_ms: Some(200), ..grant(id, "laptop") };
    assert!(store.add_grant(&at("grt_1", 100), &digest(1)).unwrap());
    assert!(!store.add_grant(&at("grt_2", 199), &digest(2)).unwrap());
    assert_eq!(store.grant_of(&digest(2)).unwrap(), None, "what was refused is not there");
    let bobs = Grant { user_id: "bob".into(), ..at("grt_3", 199) };
    assert!(store.add_grant(&bobs, &digest(3)).unwrap());
    assert!(store.add_grant(&Grant { expires_at_ms: None, ..at("grt_4", 200) }, &digest(4)).unwrap());
    store.revoke_grant("ada", "grt_4", 210).unwrap();
    assert!(store.add_grant(&at("grt_5", 211), &digest(5)).unwrap());
}

#[test]
fn of_several_who_want_the_same_name_one_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let add = &|n: u8| Store::at(dir.path()).add_grant(&grant(&format!("grt_{n}"), "laptop"), &digest(n)).unwrap();
    let added: Vec<bool> = std::thread::scope(|scope| {
        let adding: Vec<_> = (0..6).map(|n| scope.spawn(move || add(n))).collect();
        adding.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(added.iter().filter(|added| **added).count(), 1, "{added:?}");
    assert_eq!(Store::at(dir.path()).grants("ada").unwrap().len(), 1);
}

#[test]
fn what_comes_first_ends_a_grant() {
    let of = |expires_at_ms, revoked_at_ms| Grant { expires_at_ms, revoked_at_ms, ..grant("grt_1", "one") };
    assert_eq!(of(None, None).ended(u64::MAX), None);
    assert_eq!(of(Some(200), None).ended(199), None);
    assert_eq!(of(Some(200), None).ended(200), Some((200, GrantEnd::Expired)));
    assert_eq!(of(Some(200), Some(150)).ended(300), Some((150, GrantEnd::Revoked)));
    assert_eq!(of(Some(200), Some(250)).ended(300), Some((200, GrantEnd::Expired)));
}

/// As on a disk that is mounted for reading only: who reads there sees nothing of what stands in the log beside the file.
#[cfg(unix)]
#[test]
fn what_may_hide_a_revocation_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    store.add_grant(&grant("grt_1", "one"), &digest(1)).unwrap();
    drop(store);
    let side = dir.path().join("headcount.db-shm");
    std::os::unix::fs::symlink(dir.path().join("no/folder"), &side).unwrap();
    let store = Store::at(dir.path());
    store.list().expect("others read what there is");
    assert!(store.grant_of(&digest(1)).is_err() && store.unrevoked(&["grt_1".to_owned()]).is_err());
    std::fs::remove_file(side).unwrap();
    assert!(store.grant_of(&digest(1)).unwrap().is_some());
}

#[test]
fn a_client_ends_with_its_grant() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    let client = |id: &str, grant: Option<&str>| Client {
        id: id.into(),
        server: "srv".into(),
        who: NewClient { user_id: "ada".into(), grant_id: grant.map(str::to_owned), ..NewClient::default() },
        connected_at_ms: 110,
        last_activity_at_ms: 120,
        ended: None,
        calls: BTreeMap::new(),
        agents_registered: 0,
    };
    let living = HashSet::from(["srv".to_owned()]);
    store.add_grant(&grant("grt_1", "one"), &digest(1)).unwrap();
    store.add_grant(&Grant { expires_at_ms: Some(300), ..grant("grt_2", "two") }, &digest(2)).unwrap();
    for (id, grant) in [("a", Some("grt_1")), ("b", Some("grt_1")), ("c", Some("grt_2")), ("d", None)] {
        store.record_client(&client(id, grant)).unwrap();
    }
    let seen = |which, now_ms| {
        let wanted = Wanted { whose: "ada".into(), id: None, which, now_ms, limit: 100, after: None };
        let page = store.clients(wanted, &living).unwrap();
        page.clients.into_iter().map(|client| (client.id, client.ended)).collect::<Vec<_>>()
    };
    let end = |at_ms, reason| Some(End { at_ms, reason });
    let close = |id: &str, at_ms| {
        let activity = Activity { ended: end(at_ms, EndReason::Closed), ..Activity::default() };
        store.touch_clients([(&id.to_owned(), &activity)]).unwrap();
    };
    close("b", 140);
    store.revoke_grant("ada", "grt_1", 150).unwrap();
    let expected =
        [("d", None), ("c", None), ("b", end(140, EndReason::Closed)), ("a", end(150, EndReason::GrantRevoked))];
    assert_eq!(seen(Which::All, 299), expected.map(|(id, end)| (id.to_owned(), end)), "what had ended before stays so");
    assert_eq!(seen(Which::Active, 299), [("d".to_owned(), None), ("c".to_owned(), None)]);
    assert_eq!(seen(Which::Active, 300), [("d".to_owned(), None)]);
    assert_eq!(seen(Which::Ended, 300)[0], ("c".to_owned(), end(300, EndReason::GrantExpired)));
    close("a", 160);
    assert_eq!(
        seen(Which::Ended, 300)[2],
        ("a".to_owned(), end(150, EndReason::GrantRevoked)),
        "it closed because of that"
    );
}
