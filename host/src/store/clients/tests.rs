//! The ledger on disk, as writers and readers of several processes use it.

use super::*;
use proptest::prelude::*;

fn client(id: &str, server: &str, connected_at_ms: u64) -> Client {
    Client {
        id: id.into(),
        server: server.into(),
        who: NewClient {
            user_id: "ada".into(),
            name: Some("claude-code".into()),
            version: Some("2.1.236".into()),
            protocol: "2025-11-25".into(),
            transport: "stdio".into(),
            ..NewClient::default()
        },
        connected_at_ms,
        last_activity_at_ms: connected_at_ms,
        ended: None,
        calls: BTreeMap::new(),
        agents_registered: 0,
    }
}

fn living(servers: &[&str]) -> HashSet<String> {
    servers.iter().map(ToString::to_string).collect()
}

fn store(dir: &tempfile::TempDir, clients: &[Client]) -> Store {
    let store = Store::at(dir.path());
    for one in clients {
        store.record_client(one).unwrap();
    }
    store
}

fn wanted(which: Which) -> Wanted<'static> {
    Wanted { whose: "ada".into(), id: None, which, now_ms: 1000, limit: 100, after: None }
}

fn ids(page: &Page) -> Vec<&str> {
    page.clients.iter().map(|client| client.id.as_str()).collect()
}

fn calls(of: &[(&str, u64, u64)]) -> BTreeMap<String, Calls> {
    of.iter().map(|(tool, all, failed)| ((*tool).to_owned(), Calls { all: *all, failed: *failed })).collect()
}

#[test]
fn what_a_client_does_is_added_up_and_an_end_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let one = client("a", "srv", 10);
    let store = store(&dir, std::slice::from_ref(&one));
    let heard = |at_ms, calls, agents_registered, ended| {
        let activity = Activity { at_ms, calls, agents_registered, ended };
        store.touch_clients([(&"a".to_owned(), &activity), (&"unknown".to_owned(), &activity)]).unwrap();
    };
    heard(30, calls(&[("list_sessions", 2, 0), ("register_agent", 1, 0)]), 1, None);
    heard(20, calls(&[("list_sessions", 3, 1)]), 0, None);
    let closed = |at_ms| Some(End { at_ms, reason: EndReason::Closed });
    heard(40, BTreeMap::new(), 0, closed(40));
    heard(50, BTreeMap::new(), 0, Some(End { at_ms: 50, reason: EndReason::ServerStopped }));
    let found = store.clients(wanted(Which::All), &living(&["srv"])).unwrap().clients;
    let calls = calls(&[("list_sessions", 5, 1), ("register_agent", 1, 0)]);
    assert_eq!(found, [Client { last_activity_at_ms: 50, ended: closed(40), calls, agents_registered: 1, ..one }]);
}

#[test]
fn a_client_ends_with_its_server_though_nobody_has_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir, &[client("a", "killed", 10), client("b", "lives", 20)]);
    store.touch_clients([(&"a".to_owned(), &Activity { at_ms: 15, ..Activity::default() })]).unwrap();
    let now = living(&["lives"]);
    assert_eq!(ids(&store.clients(wanted(Which::Active), &now).unwrap()), ["b"]);
    assert_eq!(ids(&store.clients(wanted(Which::All), &now).unwrap()), ["b", "a"]);
    let end = End { at_ms: 15, reason: EndReason::ServerStopped };
    let ended = || store.clients(wanted(Which::Ended), &now).unwrap().clients;
    assert_eq!((ended().len(), ended()[0].ended), (1, Some(end)));
    // Written down, it stays so.
    assert!(store.forget(&now, 0, 10).unwrap());
    assert_eq!(ended()[0].ended, Some(end));
    assert_eq!(store.clients(wanted(Which::Active), &living(&[])).unwrap(), Page::default());
}

#[test]
fn nobody_sees_the_clients_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut of_bob = client("b", "srv", 20);
    of_bob.who.user_id = "bob".into();
    let store = store(&dir, &[client("a", "srv", 10), of_bob]);
    assert_eq!(ids(&store.clients(wanted(Which::All), &living(&["srv"])).unwrap()), ["a"]);
    let after = Cursor { connected_at_ms: 30, id: "z".into() };
    let page = Wanted { after: Some(&after), ..wanted(Which::Active) };
    assert_eq!(ids(&store.clients(page, &living(&["srv"])).unwrap()), ["a"]);
}

#[test]
fn pages_leave_nobody_out_and_show_nobody_twice() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<Client> = (0..23).map(|n| client(&format!("c{n:02}"), "srv", 100 + n / 5)).collect();
    let store = store(&dir, &all);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let wanted = Wanted { limit: 4, after: after.as_ref(), ..wanted(Which::All) };
        let page = store.clients(wanted, &living(&["srv"])).unwrap();
        seen.extend(page.clients.iter().map(|client| client.id.clone()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut expected: Vec<String> = all.iter().map(|client| client.id.clone()).collect();
    expected.reverse();
    assert_eq!(seen, expected);
}

#[test]
fn where_nothing_was_recorded_there_is_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(&dir.path().join("state"));
    assert_eq!(store.clients(wanted(Which::All), &living(&[])).unwrap(), Page::default());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cursor_is_read_as_it_was_written(connected_at_ms in 0..u64::MAX / 2, id in "[A-Za-z0-9-]{1,128}") {
        let cursor = Cursor { connected_at_ms, id };
        prop_assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = Cursor::parse(&text);
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    for no in ["", "7", "7.", ".a", "-1.a", "7.a b", "7.a'", "18446744073709551615.a"] {
        assert_eq!(Cursor::parse(no), None, "{no:?}");
    }
}
