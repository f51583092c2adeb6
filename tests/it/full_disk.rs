//! A disk that takes nothing more: here a process that may not write to files, which SQLite meets in the same places.

use crate::http_client::{Server, token};
use crate::mcp_client::LEGACY;
use crate::world::{HEADCOUNT, PATIENCE, Ran, World, finish, until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const ALL: [&str; 4] = ["status:read", "roster:write", "clients:read", "grants:revoke"];

/// The executable, in a shell that does this before it. What is written beyond the limit is an error then, and not the end.
fn after(world: &World, before: &str, args: &[&str]) -> Command {
    let bare = world.command(&[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("trap '' XFSZ; {before} exec \"$0\" \"$@\"")).arg(HEADCOUNT).args(args);
    command
        .env_clear()
        .envs(bare.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(world.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn run_full(world: &World, args: &[&str]) -> Ran {
    finish(after(world, "ulimit -f 0;", args))
}

/// How much a server may write to files.
fn limit(server: &Server, most: Option<u64>) {
    let limit = Rlimit { current: most, maximum: None };
    prlimit(Pid::from_raw(server.pid().cast_signed()), Resource::Fsize, limit).unwrap();
}

fn grants(world: &World) -> Vec<Value> {
    world.run(&["grants", "list", "--json"]).json()["grants"].as_array().unwrap().clone()
}

fn id(world: &World, name: &str) -> String {
    let found = grants(world).into_iter().find(|grant| grant["name"] == json!(name)).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_that_cannot_write_says_so_and_changes_nothing() {
    let world = World::new();
    token(&world, "laptop", &[]);
    let ran = run_full(&world, &["token", "create", "another"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "no token is shown that holds nothing: {ran:?}");
    for args in [&["token", "revoke", "laptop"][..], &["grants", "revoke", &id(&world, "laptop")]] {
        let ran = run_full(&world, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    }
    assert_eq!((grants(&world).len(), &grants(&world)[0]["state"]), (1, &json!("alive")));
    assert_eq!(run_full(&world, &["clients"]).code, Some(0), "reading goes on");
    // Unless what is read has to be true for sure: SQLite cannot look into its log without a file beside it.
    assert_eq!(run_full(&world, &["grants", "list"]).code, Some(2));
}

#[test]
fn a_server_that_cannot_write_says_so_reads_on_and_goes_on_when_there_is_room() {
    let world = World::new();
    let (admin, lost) = (token(&world, "admin", &ALL), token(&world, "lost", &[]));
    let grant = format!("/v1/grants/{}", id(&world, "lost"));
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let args = ["serve", "--http", "127.0.0.1:0", "--roster", roster.to_str().unwrap()];
    let server = Server::spawn(after(&world, "", &args));
    let mut connection = server.connect(&admin);
    connection.initialize(LEGACY[3]);
    connection.structured("list_sessions", json!({}));
    limit(&server, Some(0));
    let refused = connection.request("DELETE", &grant, &[], b"");
    assert_eq!((refused.status, refused.header("content-type")), (503, "application/problem+json"));
    let mut of_lost = server.connect(&lost);
    assert_eq!(of_lost.get("/v1/sessions").status, 200, "it was not revoked, and nothing says that it was");
    connection.structured("get_session_status", json!({"session_id": "shop"}));
    let clients = connection.structured("list_clients", json!({}));
    assert_eq!(clients["sessions"].as_array().unwrap().len(), 1);
    let failed = connection.call("register_agent", json!({"session_id": "depot", "agent_name": "backend"}));
    assert_eq!(failed["isError"], true, "{failed}");
    for path in ["/v1/grants", "/v1/sessions/shop/status", "/readyz"] {
        assert_eq!(connection.get(path).status, 200, "{path}");
    }
    // Whoever comes is answered, though nobody can write down that it came.
    let mut newcomer = server.connect(&admin);
    assert_eq!(newcomer.initialize(LEGACY[3]).status, 200);
    newcomer.structured("list_sessions", json!({}));
    limit(&server, None);
    assert_eq!(connection.request("DELETE", &grant, &[], b"").status, 204);
    assert_eq!(of_lost.get("/v1/sessions").status, 401);
    connection.structured("register_agent", json!({"session_id": "depot", "agent_name": "backend"}));
    let called = || {
        let listed = world.run(&["clients", "--json"]).json();
        listed["sessions"].as_array().unwrap().iter().any(|row| row["tool_calls"] == 5 && row["tool_failures"] == 1)
    };
    until("what was done meanwhile is written down", called);
    newcomer.structured("list_sessions", json!({}));
    let is_there = || {
        let listed = world.run(&["clients", "--json"]).json();
        listed["sessions"].as_array().unwrap().iter().any(|row| row["tool_calls"] == 2 && row["tool_failures"] == 0)
    };
    until("so is who came meanwhile, with all that it did", is_there);
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
    // Its session was remembered before that, and goes on with the next server.
    let next = Server::start(&world, &[&roster]);
    let mut again = next.connect(&admin);
    again.session = newcomer.session;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(again.post(&[], &ping).status, 200);
}

#[test]
fn who_cannot_be_told_on_stderr_is_served_all_the_same() {
    let world = World::new();
    let ran = finish(after(&world, "exec 2>/dev/full;", &["status", "nobody"]));
    assert_eq!(ran.code, Some(2), "as where the error can be said");
    let folder = world.path("session");
    let args = ["bridge", "--session-dir", folder.to_str().unwrap(), "--", HEADCOUNT, "stand-in-server"];
    let mut bridge = after(&world, "exec 2>/dev/full;", &args).spawn().unwrap();
    let status = || std::fs::read_to_string(folder.join("status.json")).unwrap_or_default();
    until("it is ready, and has said so in its log", || status().contains("\"ready\""));
    std::fs::write(folder.join("request-1.json"), r#"{"tool": "close", "arguments": {}}"#).unwrap();
    assert_eq!(bridge.wait().unwrap().code(), Some(0));
    assert!(status().contains("\"closed\""), "{}", status());
}
