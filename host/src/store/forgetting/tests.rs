//! What is forgotten, what is not, and how much at a time.

use super::super::clients::{Activity, Calls, Client, End, NewClient, Wanted, Which};
use super::super::grants::Grant;
use super::*;
use std::collections::BTreeMap;

fn living(servers: &[&str]) -> HashSet<String> {
    servers.iter().map(ToString::to_string).collect()
}

/// A client that was heard at 10 and has called something.
fn client(store: &Store, id: &str, server: &str, grant: Option<&str>) {
    let client = Client {
        id: id.into(),
        server: server.into(),
        who: NewClient { user_id: "ada".into(), grant_id: grant.map(str::to_owned), ..NewClient::default() },
        connected_at_ms: 10,
        last_activity_at_ms: 10,
        ended: None,
        calls: BTreeMap::new(),
        agents_registered: 0,
    };
    store.record_client(&client).unwrap();
    let calls = BTreeMap::from([("list_sessions".to_owned(), Calls { all: 1, failed: 0 })]);
    store.touch_clients([(&id.to_owned(), &Activity { calls, ..Activity::default() })]).unwrap();
}

fn close(store: &Store, id: &str, at_ms: u64) {
    let ended = Some(End { at_ms, reason: EndReason::Closed });
    store.touch_clients([(&id.to_owned(), &Activity { at_ms, ended, ..Activity::default() })]).unwrap();
}

/// A grant, whose tokens are given here or by others.
fn grant(store: &Store, id: &str, expires_at_ms: Option<u64>, is_others: bool) {
    let grant = Grant {
        id: id.into(),
        user_id: "ada".into(),
        name: id.into(),
        client_id: None,
        scopes: String::new(),
        created_at_ms: 1,
        expires_at_ms,
        last_used_at_ms: None,
        revoked_at_ms: None,
    };
    if is_others {
        store.take_up_grant(&grant).unwrap();
        return;
    }
    let digest: [u8; 32] = std::array::from_fn(|at| id.as_bytes().get(at).copied().unwrap_or_default());
    assert!(store.add_grant(&grant, &digest).unwrap());
}

fn clients(store: &Store, living: &HashSet<String>) -> Vec<(String, Option<EndReason>)> {
    let wanted = Wanted { whose: "ada".into(), id: None, which: Which::All, now_ms: 1000, limit: 100, after: None };
    let found = store.clients(wanted, living).unwrap().clients;
    found.into_iter().map(|client| (client.id, client.ended.map(|end| end.reason))).collect()
}

fn grants(store: &Store) -> Vec<String> {
    store.grants("ada").unwrap().into_iter().rev().map(|grant| grant.id).collect()
}

fn count(store: &Store, table: &str) -> u32 {
    let sql = format!("SELECT count(*) FROM {table}");
    store.read(|db| db.query_row(&sql, [], |row| row.get(0))).unwrap().unwrap()
}

#[test]
fn only_what_has_ended_long_ago_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    for (id, server) in [("open", "lives"), ("old", "killed"), ("closed", "lives"), ("late", "lives")] {
        client(&store, id, server, None);
    }
    close(&store, "closed", 20);
    close(&store, "late", 60);
    assert!(store.forget(&living(&["lives"]), 50, 10).unwrap());
    let left = [("open".to_owned(), None), ("late".to_owned(), Some(EndReason::Closed))];
    assert_eq!(clients(&store, &living(&["lives"])), left);
    assert_eq!(count(&store, "client_call"), 2, "their calls go with them");
}

#[test]
fn a_grant_goes_with_its_clients_and_they_tell_of_it_until_then() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    for id in ["alive", "lost", "lost-late"] {
        grant(&store, id, None, false);
        client(&store, id, "lives", Some(id));
    }
    store.revoke_grant("ada", "lost", 40).unwrap();
    store.revoke_grant("ada", "lost-late", 60).unwrap();
    let now = living(&["lives"]);
    let revoked = |id: &str| (id.to_owned(), Some(EndReason::GrantRevoked));
    assert!(store.forget(&now, 40, 10).unwrap());
    assert_eq!(clients(&store, &now), [revoked("lost-late"), revoked("lost"), ("alive".to_owned(), None)]);
    assert!(store.forget(&now, 50, 10).unwrap());
    assert_eq!(clients(&store, &now), [revoked("lost-late"), ("alive".to_owned(), None)]);
    assert_eq!((grants(&store), count(&store, "token")), (vec!["alive".to_owned(), "lost-late".to_owned()], 2));
}

#[test]
fn what_was_revoked_is_known_for_good_where_others_give_tokens_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    for (id, expires, is_others, revoked) in [
        ("own", Some(900), false, true),
        ("own-lasting", None, false, true),
        ("theirs", Some(900), true, true),
        ("theirs-lasting", None, true, true),
        ("theirs-over", Some(45), true, true),
        ("theirs-expired", Some(45), true, false),
    ] {
        grant(&store, id, expires, is_others);
        if revoked {
            store.revoke_grant("ada", id, 40).unwrap();
        }
    }
    // Access tokens that have expired are swept before the grant is forgotten.
    store.write(|db| db.execute("DELETE FROM token", [])).unwrap();
    for oldest in [50, 901] {
        assert!(store.forget(&living(&[]), oldest, 10).unwrap());
        assert_eq!(grants(&store), ["theirs", "theirs-lasting", "theirs-over"]);
    }
}

#[test]
fn no_step_does_more_than_it_may_and_together_they_do_all() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    grant(&store, "lost", None, false);
    for n in 0..7 {
        client(&store, &format!("killed-{n}"), "killed", None);
        client(&store, &format!("lost-{n}"), "lives", Some("lost"));
    }
    store.revoke_grant("ada", "lost", 40).unwrap();
    let (mut steps, mut is_all) = (0, false);
    while !is_all {
        let before = count(&store, "client");
        is_all = store.forget(&living(&["lives"]), 50, 3).unwrap();
        // So many that had ended by themselves, and so many of a grant.
        assert!(before - count(&store, "client") <= 6);
        steps += 1;
    }
    assert!(steps >= 3 && clients(&store, &living(&["lives"])).is_empty() && grants(&store).is_empty());
}

#[test]
fn nothing_that_is_asked_goes_through_all_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    grant(&store, "one", None, false);
    for sql in
        [ENDED_GRANTS, ENDED_CLIENTS, "SELECT rowid FROM client WHERE grant_id = ?1", "DELETE FROM grant WHERE id = ?1"]
    {
        let plan = store.read(|db| {
            let mut explained = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let given = rusqlite::params_from_iter(vec![5; explained.parameter_count()]);
            explained.query_map(given, |row| row.get::<_, String>("detail"))?.collect::<rusqlite::Result<Vec<_>>>()
        });
        let plan = plan.unwrap().unwrap();
        assert!(plan.iter().all(|step| !step.starts_with("SCAN")), "{sql}: {plan:?}");
    }
}
