//! A server that is killed again and again under load: what was answered is so ever after.

use crate::http_client::{Connection, Response, Server, token};
use crate::mcp_client::LEGACY;
use crate::world::{PATIENCE, World};
use nix::sys::signal::Signal;
use rusqlite::{Connection as Database, OpenFlags};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const ALL: [&str; 4] = ["status:read", "roster:write", "clients:read", "grants:revoke"];

/// How often it is killed; the time after that it is asked to end.
const KILLS: usize = 3;

/// How long each server lives.
const LIFE: Duration = Duration::from_secs(3);

/// What clients did so long before their server was killed may be lost: a second's work, and one more for a machine that is busy.
const LOST: Duration = Duration::from_secs(2);

/// What was answered, by names that nobody else has.
#[derive(Default)]
struct Answered {
    /// When each client's calls were, and in which life.
    calls: Mutex<BTreeMap<String, (usize, Vec<Instant>)>>,
    agents: Mutex<BTreeSet<String>>,
    /// The secret of each token, and whether it was revoked.
    tokens: Mutex<BTreeMap<String, (String, bool)>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap()
}

/// One server's life, with everybody at work.
struct Life<'w> {
    world: &'w World,
    server: &'w Server,
    admin: &'w str,
    nth: usize,
    answered: &'w Answered,
    over: AtomicBool,
}

impl Life<'_> {
    /// One call by a client of this name; `false`: the server has gone or is about to.
    fn call(&self, connection: &mut Connection, name: &str, tool: &str, arguments: &Value) -> bool {
        let meta = json!({"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}});
        connection.send_message("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}));
        let Some(answer) = answered(connection, 200) else { return false };
        let result = answer.message()["result"].take();
        if self.over.load(Ordering::Relaxed) && result["isError"] == true {
            return false;
        }
        assert_ne!(result["isError"], true, "{result:#}");
        lock(&self.answered.calls).entry(name.to_owned()).or_insert((self.nth, Vec::new())).1.push(Instant::now());
        true
    }

    /// One client that goes on.
    fn stays(&self) {
        let (mut connection, name) = (self.server.connect(self.admin), format!("stays-{}", self.nth));
        while self.call(&mut connection, &name, "list_sessions", &json!({})) {
            // A grant may send so many requests in a second.
            sleep(Duration::from_millis(2));
        }
    }

    /// One after the other, each new.
    fn come(&self) {
        let mut connection = self.server.connect(self.admin);
        for n in 0.. {
            if !self.call(&mut connection, &format!("comes-{}-{n}", self.nth), "list_sessions", &json!({})) {
                return;
            }
            // So that no more come than have rows of their own.
            sleep(LIFE / 40);
        }
    }

    fn register(&self) {
        let (mut connection, name) = (self.server.connect(self.admin), format!("registers-{}", self.nth));
        for n in 0.. {
            let agent = format!("agent-{}-{n}", self.nth);
            let arguments = json!({"session_id": "depot", "agent_name": agent});
            if !self.call(&mut connection, &name, "register_agent", &arguments) {
                return;
            }
            lock(&self.answered.agents).insert(agent);
            sleep(Duration::from_millis(20));
        }
    }

    /// Makes tokens by command, and revokes every other one.
    fn command(&self) {
        for n in 0.. {
            let name = format!("command-{}-{n}", self.nth);
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            self.make(&name);
            if n % 2 == 0 {
                assert_eq!(self.world.run(&["token", "revoke", &name]).code, Some(0));
                self.is_revoked(&name);
            }
        }
    }

    /// Makes tokens, and revokes each over REST.
    fn rest(&self) {
        let mut connection = self.server.connect(self.admin);
        for n in 0.. {
            let name = format!("rest-{}-{n}", self.nth);
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            self.make(&name);
            connection.send("GET", "/v1/grants", &[], b"");
            let Some(listed) = answered(&mut connection, 200) else { return };
            let listed = listed.json()["grants"].take();
            let made = listed.as_array().unwrap().iter().find(|grant| grant["name"] == json!(name)).unwrap();
            connection.send("DELETE", &format!("/v1/grants/{}", made["id"].as_str().unwrap()), &[], b"");
            let Some(_) = answered(&mut connection, 204) else { return };
            self.is_revoked(&name);
        }
    }

    fn make(&self, name: &str) {
        let secret = token(self.world, name, &[]);
        lock(&self.answered.tokens).insert(name.to_owned(), (secret, false));
    }

    fn is_revoked(&self, name: &str) {
        lock(&self.answered.tokens).get_mut(name).unwrap().1 = true;
    }
}

/// The next answer; `None`: the server has gone before it has come, or is about to.
fn answered(connection: &mut Connection, status: u16) -> Option<Response> {
    let answer = connection.try_response().ok().filter(|answer| answer.status != 503)?;
    assert_eq!(answer.status, status, "{}", answer.text());
    Some(answer)
}

#[test]
fn nothing_that_was_answered_is_lost_however_often_the_server_is_killed() {
    let world = World::new();
    let admin = token(&world, "admin", &ALL);
    let (answered, mut session, mut ends) = (Answered::default(), None, Vec::new());
    for nth in 0..=KILLS {
        let server = Server::start(&world, &[]);
        goes_on(&server, &admin, &mut session);
        let over = AtomicBool::new(false);
        let life = Life { world: &world, server: &server, admin: &admin, nth, answered: &answered, over };
        scope(|scope| {
            for work in [Life::stays, Life::come, Life::register, Life::command, Life::rest] {
                let life = &life;
                scope.spawn(move || work(life));
            }
            sleep(LIFE);
            life.over.store(true, Ordering::Relaxed);
            ends.push(Instant::now());
            server.signal(if nth < KILLS { Signal::SIGKILL } else { Signal::SIGTERM });
        });
        if nth == KILLS {
            assert_eq!(server.terminate(PATIENCE).0, Some(0));
        }
    }
    is_sound(&world);
    has_all_calls(&world, &answered, &ends);
    has_all_tokens(&world, &answered);
    let report = world.run(&["status", "depot", "--json", "--limit", "5000"]).json();
    let names = report["agents"].as_array().unwrap().iter().map(|agent| agent["agent_name"].as_str().unwrap());
    let (names, registered) = (names.collect::<BTreeSet<_>>(), lock(&answered.agents));
    assert!(registered.len() > KILLS && registered.iter().all(|agent| names.contains(agent.as_str())));
}

/// A session of the older era goes on with each server, once it was begun with the first.
fn goes_on(server: &Server, admin: &str, session: &mut Option<String>) {
    let mut connection = server.connect(admin);
    if session.is_none() {
        assert_eq!(connection.initialize(LEGACY[3]).status, 200);
        session.clone_from(&connection.session);
    }
    connection.session.clone_from(session);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(connection.post(&[], &ping).status, 200);
}

fn is_sound(world: &World) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Database::open_with_flags(world.state().join("headcount.db"), flags).unwrap();
    let check = |what: &str| database.query_row(&format!("PRAGMA {what}_check"), [], |row| row.get::<_, String>(0));
    assert_eq!(check("integrity").unwrap(), "ok");
    assert!(check("foreign_key").is_err(), "nothing is left whose owner is not there");
}

/// Each client has a row, and each call is counted that was not made in the last moment before a kill.
fn has_all_calls(world: &World, answered: &Answered, ends: &[Instant]) {
    let listed = world.run(&["clients", "--all", "--json", "--limit", "5000"]).json();
    let rows = listed["sessions"].as_array().unwrap();
    let calls = lock(&answered.calls);
    assert!(calls.len() > 10 * KILLS, "{}", calls.len());
    for (name, (nth, at)) in calls.iter() {
        let of_it: Vec<&Value> = rows.iter().filter(|row| row["client_name"] == json!(name)).collect();
        assert_eq!(of_it.len(), 1, "{name}");
        let may_be_lost = if *nth < KILLS { LOST } else { Duration::ZERO };
        let kept = at.iter().filter(|at| **at + may_be_lost <= ends[*nth]).count() as u64;
        let counted = of_it[0]["tool_calls"].as_u64().unwrap();
        // One more may have been answered to nobody.
        assert!(counted >= kept && counted <= at.len() as u64 + 1, "{name}: {kept} <= {counted} <= {} + 1", at.len());
        assert_eq!(of_it[0]["ended_reason"], "server_stopped");
    }
}

/// Each token shows its grant as it was left, to people and at the door.
fn has_all_tokens(world: &World, answered: &Answered) {
    let listed = world.run(&["grants", "list", "--all", "--json"]).json();
    let grants = listed["grants"].as_array().unwrap();
    let server = Server::start(world, &[]);
    let tokens = lock(&answered.tokens);
    assert!(tokens.len() > KILLS && tokens.values().any(|(_, is_revoked)| *is_revoked));
    for (name, (secret, is_revoked)) in tokens.iter() {
        let found = grants.iter().find(|grant| grant["name"] == json!(name)).unwrap_or_else(|| panic!("no {name}"));
        let status = server.connect(secret).get("/v1/sessions").status;
        // A revocation that nobody has heard of may have been done.
        let (is_alive, may_be) = (found["state"] == "alive", !is_revoked);
        assert!(may_be || !is_alive, "{name}");
        assert_eq!(status, if is_alive { 200 } else { 401 }, "{name}");
        if name.starts_with("command") && may_be {
            assert!(is_alive, "{name} was never revoked");
        }
    }
}
