//! What `[access]` lets somebody see, and what they may declare.

use crate::http_client::{Connection, Server, token};
use crate::http_rest::{ALL, strangers};
use crate::mcp_client::LEGACY;
use crate::world::{World, stand_in, until};
use headcount::demo::stand_in::Behaviour;
use serde_json::{Value, json};
use std::path::Path;

/// The user of this process.
fn me() -> String {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().map_or_else(String::new, |user| user.name)
}

/// A server with this in its configuration.
fn configured(world: &World, rosters: &[&Path], text: &str) -> Server {
    let file = world.write("access.toml", text).display().to_string();
    Server::start_with(world, rosters, &[], &[("HEADCOUNT_CONFIG", &file)])
}

/// The ids of the sessions that are listed.
/// The sessions that are seen; of those of this user, who has others on this machine, only what the tests have made.
fn sessions(connection: &mut Connection) -> Vec<String> {
    let listed = connection.get("/v1/sessions").json()["sessions"].take();
    let id = |session: &Value| session["session_id"].as_str().unwrap().to_owned();
    let is_made = |id: &String| ["depot", "own", "shared", "shop", "spying"].contains(&id.as_str());
    listed.as_array().unwrap().iter().map(id).filter(is_made).collect()
}

#[test]
fn who_may_see_more_sees_it_everywhere_and_nothing_else_of_it() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let theirs = strangers(&world);
    let access = format!("[[access]]\nuser = \"somebody-else\"\nsees = [{:?}]\n", me());
    let server = configured(&world, &[&roster], &access);
    let own = token(&world, "own", &ALL);
    server.connect(&own).structured("list_sessions", json!({}));
    let mut guest = server.connect(&theirs);
    assert_eq!(sessions(&mut guest), ["shop"]);
    assert_eq!(guest.get("/v1/sessions/shop/status").json()["session_id"], "shop");
    let listed = guest.structured("list_sessions", json!({}))["sessions"].take();
    assert!(listed.as_array().unwrap().iter().any(|session| session["session_id"] == "shop"), "{listed:#}");
    assert_eq!(guest.structured("get_session_status", json!({"session_id": "shop"}))["agent_count"], 1);
    let waited = guest.structured("wait_for_attention", json!({"session_id": "shop", "timeout_s": 1}));
    assert_eq!(waited["session_id"], "shop", "{waited:#}");
    let uri = "headcount://session/shop";
    let listed = guest.ask("resources/list", json!({})).message()["result"]["resources"].take();
    assert!(listed.as_array().unwrap().iter().any(|resource| resource["uri"] == uri), "{listed:#}");
    assert!(guest.ask("resources/read", json!({"uri": uri})).message()["result"]["contents"].is_array());
    let mut listens = server.connect(&theirs);
    listens.send_message("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}}));
    assert_eq!(listens.head().status, 200);
    assert_eq!(listens.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    server.connect(&own).structured("register_agent", json!({"session_id": "shop", "agent_name": "another"}));
    assert_eq!(listens.event().unwrap()["params"]["uri"], uri, "it hears of it");

    // Seeing sessions is not seeing clients and grants, and changes nothing.
    let clients = guest.get("/v1/mcp/sessions?state=all").json()["sessions"].take();
    assert!(clients.as_array().unwrap().iter().all(|row| row["user_id"] == "somebody-else"), "{clients:#}");
    let grants = guest.get("/v1/grants?all=true").json()["grants"].take();
    assert!(grants.as_array().unwrap().iter().all(|row| row["user_id"] == "somebody-else"), "{grants:#}");
    for (tool, agent) in [("register_agent", "spy"), ("unregister_agent", "another")] {
        let result = guest.call(tool, json!({"session_id": "shop", "agent_name": agent}));
        assert!(result["content"][0]["text"].as_str().unwrap().contains("no session of yours"), "{result:#}");
    }
}

#[test]
fn who_is_meant_is_said_by_grant_or_client_too_and_a_star_means_everybody() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let theirs = strangers(&world);
    for (access, sees) in [
        ("[[access]]\nclient = \"hci_0\"\nsees = [\"*\"]\n".to_owned(), false),
        ("[[access]]\ngrant = \"grt_0\"\nsees = [\"*\"]\n".to_owned(), false),
        (format!("[[access]]\nuser = {:?}\nsees = [\"somebody-else\"]\n", me()), false),
        ("[[access]]\nuser = \"somebody-else\"\nsees = [\"nobody-here\"]\n".to_owned(), false),
        ("[[access]]\nuser = \"somebody-else\"\nsees = [\"*\"]\n".to_owned(), true),
    ] {
        let server = configured(&world, &[&roster], &access);
        assert_eq!(!sessions(&mut server.connect(&theirs)).is_empty(), sees, "{access}");
    }
}

#[test]
fn what_somebody_declares_is_theirs() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let (own, theirs) = (token(&world, "own", &ALL), strangers(&world));
    let server = Server::start(&world, &[&roster]);
    let (mut guest, mut owner) = (server.connect(&theirs), server.connect(&own));
    guest.initialize(LEGACY[3]);
    let declared = json!({"session_id": "depot", "session_name": "Depot", "agent_name": "remote"});
    assert_eq!(guest.structured("register_agent", declared)["session_id"], "depot");
    assert_eq!((sessions(&mut guest), sessions(&mut owner)), (vec!["depot".to_owned()], vec!["shop".to_owned()]));
    // By its name, too, and once more.
    let again = json!({"session_id": "Depot", "agent_name": "remote"});
    assert_eq!(guest.structured("register_agent", again)["replaced"], true);
    assert_eq!(world.run(&["status", "depot", "--json"]).json()["agent_count"], 1, "whoever is here sees all");
    for (tool, agent) in [("register_agent", "mine"), ("unregister_agent", "remote")] {
        let result = owner.call(tool, json!({"session_id": "depot", "agent_name": agent}));
        assert!(result["content"][0]["text"].as_str().unwrap().contains("no session of yours"), "{result:#}");
    }
    // What another's session is called, one's own may be called, too.
    let named = owner.structured("register_agent", json!({"session_id": "Depot", "agent_name": "mine"}));
    assert_eq!(named["session_id"], "Depot");
    let gone = owner.structured("unregister_agent", json!({"session_id": "Depot", "agent_name": "mine"}));
    assert_eq!(gone["removed"], true);
    // An id that a found session may have is reserved, whether one has it or not.
    let reserved = owner.call("register_agent", json!({"session_id": "depot-0a1b2c", "agent_name": "mine"}));
    assert!(reserved["content"][0]["text"].as_str().unwrap().contains("no session of yours"), "{reserved:#}");
    // The command line says whose it is, and takes nobody's.
    for command in [&["register"][..], &["run"]] {
        let end: &[&str] = if command == ["run"] { &["--", "true"] } else { &[] };
        let refused = world.run(&[command, &["--session", "depot", "--name", "mine"], end].concat());
        assert!(refused.code != Some(0) && refused.stderr.contains("belongs to somebody-else"), "{refused:?}");
    }
    // Names of others are not told.
    let missing = guest.structured("unregister_agent", json!({"session_id": "depot", "agent_name": "nobody"}));
    assert_eq!(missing["removed"], false);
    let elsewhere = guest.structured("unregister_agent", json!({"session_id": "empty", "agent_name": "nobody"}));
    assert!(!elsewhere["note"].as_str().unwrap().contains("shop"), "{elsewhere:#}");
    let gone = guest.structured("unregister_agent", json!({"session_id": "depot", "agent_name": "remote"}));
    assert_eq!(gone["removed"], true);
    until("it has gone", || sessions(&mut server.connect(&theirs)).is_empty());
}

#[test]
fn a_process_is_declared_by_its_own_user_whoever_may_see_it() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let (own, theirs) = (token(&world, "own", &ALL), strangers(&world));
    let declared = |session: &str| json!({"session_id": session, "agent_name": "it", "process_id": idle.pid()});
    let server = Server::start(&world, &[]);
    let result = server.connect(&theirs).call("register_agent", declared("spying"));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no process") && text.contains("somebody-else"), "{text}");
    assert_eq!(server.connect(&own).structured("register_agent", declared("own"))["success"], true);
    drop(server);
    // Seeing is no more than that.
    let server = configured(&world, &[], "[[access]]\nuser = \"somebody-else\"\nsees = [\"*\"]\n");
    assert_eq!(server.connect(&theirs).call("register_agent", declared("own"))["isError"], true);
    let result = server.connect(&theirs).call("register_agent", declared("shared"));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("no process"), "{result:#}");
    assert!(!sessions(&mut server.connect(&theirs)).contains(&"shared".to_owned()));
}

#[test]
fn what_somebody_else_has_declared_takes_nothing_that_is_declared_here() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let server = Server::start(&world, &[]);
    let squatted = json!({"session_id": "shared", "agent_name": "squat"});
    server.connect(&strangers(&world)).structured("register_agent", squatted);
    let pid = idle.pid().to_string();
    let declared = world.run(&["register", "--session", "shared", "--name", "backend", "--pid", &pid]);
    assert_eq!(declared.code, Some(2), "{declared:#?}");
    assert!(declared.stderr.contains("session shared belongs to somebody-else"), "{declared:#?}");
    let started = world.run(&["run", "--session", "shared", "--", "true"]);
    assert!(started.code != Some(0) && started.stderr.contains("belongs to somebody-else"), "{started:#?}");
    // Whoever runs the server can take it away.
    assert_eq!(world.run(&["unregister", "--session", "shared", "--name", "squat"]).code, Some(0));
    assert_eq!(world.run(&["register", "--session", "shared", "--name", "backend", "--pid", &pid]).code, Some(0));
}

#[test]
fn what_the_servers_own_sources_are_and_say_is_told_to_its_own_user_alone() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let broken = world.write("private-m4rk.toml", "m4rk = [\n");
    let (own, theirs) = (token(&world, "own", &ALL), strangers(&world));
    let upstream =
        "[[upstream]]\nname = \"far-m4rk\"\ncommand = \"/nowhere/m4rk\"\nagents_from = { tool = \"look\" }\n";
    for sees in [format!("{:?}", me()), "\"*\"".to_owned()] {
        let access = format!("[[access]]\nuser = \"somebody-else\"\nsees = [{sees}]\n{upstream}");
        let server = configured(&world, &[&roster, &broken], &access);
        let told = |token: &str| {
            let mut connection = server.connect(token);
            let mut all = connection.get("/v1/sessions").text();
            all += &connection.get("/v1/sessions/shop/status").text();
            all += &connection.get("/v1/sessions/nowhere/status").text();
            all += &connection.structured("list_sessions", json!({})).to_string();
            all += &connection.call("get_session_status", json!({"session_id": "shop"})).to_string();
            all + &connection.call("get_session_status", json!({"session_id": "nowhere"})).to_string()
        };
        until("the owner hears of both", || {
            let told = told(&own);
            told.contains("private-m4rk") && told.contains("/nowhere/m4rk")
        });
        let told = told(&theirs);
        assert!(!told.contains("m4rk"), "{told}");
        assert!(told.contains("shop"), "{told}");
        let listed = server.connect(&theirs).get("/v1/sessions").json()["sources"].take();
        let failed = |name: &str| {
            let of = |source: &&Value| source["name"] == name && source["ok"] == false;
            listed.as_array().unwrap().iter().find(of).map(|source| source["error"].as_str().unwrap().to_owned())
        };
        for name in ["roster", "upstream"] {
            let why = "it could not be read; whoever runs this server is told why";
            assert_eq!(failed(name).as_deref(), Some(why), "{listed:#}");
        }
    }
}
