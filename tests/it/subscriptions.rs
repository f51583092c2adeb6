//! Sessions as resources: reading them, and hearing when they change, in both eras of the protocol.

use crate::mcp_client::{Client, MODERN};
use crate::world::{NO_PID, World, stand_in};
use headcount::demo::stand_in::{Behaviour, StandIn};
use headcount_tests::schema::faults;
use serde_json::{Value, json};
use std::time::Duration;

const LEGACY: &str = "2025-11-25";
const SHOP: &str = "headcount://session/shop";

/// For how long nothing may come where nothing is to be told: several looks, and more than updates are held back for.
const QUIET: Duration = Duration::from_millis(1500);

fn shop() -> (World, StandIn, std::path::PathBuf) {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("writer", idle.pid())]);
    (world, idle, roster)
}

/// Asks to be told of changes; the id of the request that goes on in the newer era.
fn subscribe(client: &mut Client, version: &str, uris: &[&str]) -> u64 {
    if version == MODERN {
        let id = client.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}));
        let acknowledged = client.next().unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged:#}");
        assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!(uris));
        return id;
    }
    for uri in uris {
        client.result("resources/subscribe", json!({"uri": uri}));
    }
    0
}

/// What an update says of the session, and for which request it comes.
fn update(message: &Value) -> (&str, &Value) {
    assert_eq!(message["method"], "notifications/resources/updated", "{message:#}");
    let params = &message["params"];
    (params["uri"].as_str().unwrap(), &params["_meta"]["io.modelcontextprotocol/subscriptionId"])
}

#[test]
fn sessions_are_listed_and_read_as_resources() {
    for version in [LEGACY, MODERN] {
        let (world, _idle, roster) = shop();
        let mut client = Client::connect(&world, &[&roster], version);
        let listed = client.result("resources/list", json!({}))["resources"].take();
        let shop = listed.as_array().unwrap().iter().find(|resource| resource["uri"] == SHOP);
        let shop = shop.unwrap_or_else(|| panic!("{version}: {listed:#}"));
        assert_eq!((&shop["name"], &shop["mimeType"]), (&"shop".into(), &"application/json".into()), "{version}");
        assert!(shop["description"].as_str().unwrap().starts_with("1 agent, HEALTHY"), "{version}: {shop:#}");
        let templates = client.result("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "headcount://session/{id}", "{version}");
        let contents = client.result("resources/read", json!({"uri": SHOP}))["contents"].take();
        assert_eq!((&contents[0]["uri"], &contents[0]["mimeType"]), (&SHOP.into(), &"application/json".into()));
        let report: Value = serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(report["agents"][0]["agent_name"], "writer", "{version}");
        let tools = client.result("tools/list", json!({}));
        assert_eq!(faults(&tools["tools"][0]["outputSchema"], &report), Vec::<String>::new(), "{version}");
        for (uri, said) in [
            ("headcount://session/nobody", "no session `nobody`"),
            ("headcount://session/../x", "headcount://session/{id}"),
        ] {
            let error = client.ask("resources/read", json!({"uri": uri}))["error"].take();
            let code = if version == MODERN { -32602 } else { -32002 };
            assert!(error["code"] == code && error["message"].as_str().unwrap().contains(said), "{version}: {error:#}");
            assert_eq!(error["data"]["uri"], uri, "{version}");
        }
        client.close(crate::world::PATIENCE);
        let log = std::fs::read_to_string(world.state().join("audit.jsonl")).unwrap();
        let reads: Vec<_> = log.lines().filter(|line| line.contains("resources/read")).collect();
        assert_eq!(reads.len(), 3, "{version}: {log}");
    }
}

#[test]
fn a_subscriber_hears_of_what_matters_and_of_nothing_else() {
    for version in [LEGACY, MODERN] {
        let (world, mut idle, roster) = shop();
        let busy = stand_in(Behaviour::Busy);
        world.roster("shop", &[("writer", idle.pid()), ("builder", busy.pid())]);
        let mut client = Client::connect(&world, &[&roster], version);
        client.result("resources/read", json!({"uri": SHOP}));
        // What each does is settled after a few looks.
        assert_eq!(client.within(QUIET), None);
        let id = subscribe(&mut client, version, &[SHOP]);
        assert_eq!(client.within(QUIET), None, "{version}: the busy one's figures move, and nothing else");
        idle.kill().unwrap();
        let message = client.next().unwrap();
        let expected = if version == MODERN { json!(id) } else { Value::Null };
        assert_eq!(update(&message), (SHOP, &expected), "{version}");
        assert_eq!(client.within(QUIET), None, "{version}: once is enough");
        // Many changes within a second are not told one by one.
        for round in 0..10 {
            let agents = [("writer", idle.pid()), ("builder", busy.pid()), ("other", NO_PID)];
            world.roster("shop", &agents[..2 + round % 2]);
            std::thread::sleep(Duration::from_millis(150));
        }
        // The first may be long in coming where the machine is busy.
        assert_eq!(update(&client.next().unwrap()).0, SHOP);
        let more = std::iter::from_fn(|| client.within(QUIET)).count();
        assert!(more < 4, "{version}: {more} more updates in 1.5 seconds and after");
        if version == MODERN {
            client.cancel(id);
        } else {
            client.result("resources/unsubscribe", json!({"uri": SHOP}));
        }
        world.roster("shop", &[("builder", busy.pid())]);
        assert_eq!(client.within(QUIET), None, "{version}: it is told no more");
    }
}

#[test]
fn a_session_that_comes_is_a_change_too() {
    for version in [LEGACY, MODERN] {
        let (world, idle, roster) = shop();
        let mut client = Client::connect(&world, &[&roster], version);
        client.result("resources/list", json!({}));
        subscribe(&mut client, version, &["headcount://session/docs"]);
        // The first look of the subscription is over when a later question is answered.
        client.structured("wait_for_attention", json!({"session_id": "shop", "timeout_s": 1}));
        let declared = json!({"session_id": "docs", "agent_name": "reader", "process_id": idle.pid()});
        client.structured("register_agent", declared);
        let message = client.notifications.pop().unwrap_or_else(|| client.next().unwrap());
        assert_eq!(update(&message).0, "headcount://session/docs", "{version}");
    }
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], LEGACY);
    let error = client.ask("resources/subscribe", json!({"uri": "file:///etc/passwd"}))["error"].take();
    assert_eq!(error["code"], -32002, "{error:#}");
    for n in 0..100 {
        client.result("resources/subscribe", json!({"uri": format!("headcount://session/s{n}")}));
    }
    client.result("resources/subscribe", json!({"uri": "headcount://session/s1"}));
    let error = client.ask("resources/subscribe", json!({"uri": SHOP}))["error"].take();
    assert!(error["message"].as_str().unwrap().contains("100"), "{error:#}");
    client.result("resources/unsubscribe", json!({"uri": "headcount://session/s7"}));
    client.result("resources/subscribe", json!({"uri": SHOP}));
    let mut client = Client::connect(&world, &[&roster], MODERN);
    let uris: Vec<String> = (0..120).map(|n| format!("headcount://session/s{n}")).collect();
    let mut wish: Vec<&str> = uris.iter().map(String::as_str).collect();
    wish.extend(["file:///etc/passwd", "headcount://session/", "headcount://session/a/b"]);
    client.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": wish}}));
    let granted = client.next().unwrap()["params"]["notifications"]["resourceSubscriptions"].take();
    let granted = granted.as_array().unwrap();
    assert!(granted.len() == 100 && granted.iter().all(|uri| uris.contains(&uri.as_str().unwrap().to_owned())));
}

#[test]
fn one_that_watches_nothing_takes_a_place_too() {
    let (world, _idle, roster) = shop();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    for _ in 0..=100 {
        client.send("subscriptions/listen", json!({"notifications": {}}));
    }
    // Which of them is the last to be heard is not certain.
    let refused = std::iter::from_fn(|| client.next()).find(|message| message["id"].is_number()).unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("100"), "{refused:#}");
}

#[test]
fn subscribers_that_vanish_leave_nothing_behind() {
    for version in [LEGACY, MODERN] {
        let (world, _idle, roster) = shop();
        let mut client = Client::connect(&world, &[&roster], version);
        subscribe(&mut client, version, &[SHOP, "headcount://session/docs"]);
        client.structured("get_session_status", json!({"session_id": "shop"}));
        // Sooner than requests are cut off that are still under way.
        assert_eq!(client.close(Duration::from_secs(3)).0, Some(0), "{version}");
    }
}
