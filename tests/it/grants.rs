//! Who may: tokens that are made, shown once, listed and ended, and the gate of another process that lets them in.

use crate::world::{Ran, World, finish, until};
use headcount::auth::{Admitted, Denied, Gate, Token};
use headcount::clock::SystemClock;
use headcount::store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Makes a token, and returns it.
fn create(world: &World, args: &[&str]) -> String {
    let ran = world.run(&[&["token", "create"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let token = ran.stdout.strip_suffix('\n').unwrap();
    assert!(Token::parse(token).is_some(), "a token stands alone on stdout: {token:?}");
    assert!(!ran.stderr.contains(token), "it is shown once");
    token.to_owned()
}

/// The grants that a command lists.
fn listed(world: &World, args: &[&str]) -> Vec<Value> {
    let ran = world.run(&[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = ran.json();
    assert_eq!(found["schema"], "headcount.grants/1");
    found["grants"].as_array().unwrap().clone()
}

/// The gate of a server, in this process, to the state of a world.
struct Server {
    runtime: Runtime,
    gate: Gate,
}

impl Server {
    fn of(world: &World) -> Self {
        Self::at(&world.state())
    }

    fn at(state: &Path) -> Self {
        let store = Arc::new(Store::at(state));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { runtime, gate: Gate::open(store, Arc::new(SystemClock::default())) }
    }

    fn admit(&self, token: &str) -> Result<Admitted, Denied> {
        self.runtime.block_on(self.gate.admit(Some(token)))
    }
}

#[test]
fn a_token_is_shown_once_and_kept_nowhere() {
    let world = World::new();
    let token = create(&world, &["laptop", "--scope", "status:read", "--scope", "grants:revoke", "--expires", "30d"]);
    let server = Server::of(&world);
    let principal = server.admit(&token).unwrap().principal;
    until("its use is noted", || listed(&world, &["token", "list"])[0]["last_used_at"].is_string());
    let grant = listed(&world, &["token", "list"])[0].clone();
    assert_eq!((&grant["id"], &grant["user_id"]), (&json!(principal.grant_id), &json!(principal.user_id)));
    assert_eq!(
        (&grant["name"], &grant["state"], &grant["client_id"]),
        (&json!("laptop"), &json!("alive"), &Value::Null)
    );
    assert_eq!(grant["scopes"], json!(["status:read", "grants:revoke"]));
    let again = ["token", "create", "laptop"];
    let commands: [&[&str]; 8] = [
        &["token", "list"],
        &["token", "list", "--all", "--json"],
        &["grants", "list"],
        &["grants", "list", "--json"],
        &again,
        &["token", "revoke", &token],
        &["grants", "revoke", &token],
        &["token", "create", &token],
    ];
    let secret = &token[4..];
    for args in commands {
        let mut command = world.command(args);
        command.env("RUST_LOG", "trace");
        let ran = finish(command);
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{args:?}: {ran:#?}");
        assert_eq!(ran.code, Some(if args.contains(&"list") { 0 } else { 2 }), "{args:?}: {ran:#?}");
    }
    assert!(server.admit(&token).is_ok(), "nothing of that has ended it");
    let files = files_with(&world.path(""), secret.as_bytes());
    assert_eq!(files.values().filter(|found| **found).count(), 0, "{files:#?}");
    assert!(files.keys().any(|path| path.ends_with("headcount.db-wal")), "{files:#?}");
}

/// Every file below a folder, and whether `bytes` stand in it.
fn files_with(folder: &Path, bytes: &[u8]) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files_with(&entry.path(), bytes));
        } else if let Ok(content) = fs::read(entry.path()) {
            let holds = content.windows(bytes.len()).any(|window| window == bytes);
            found.insert(entry.path().display().to_string(), holds);
        }
    }
    found
}

#[test]
fn a_token_that_is_revoked_is_over_at_once_in_a_server_that_runs() {
    let world = World::new();
    let (lost, kept) = (create(&world, &["lost"]), create(&world, &["kept", "--expires", "never"]));
    let server = Server::of(&world);
    let (inside, stays) = (server.admit(&lost).unwrap(), server.admit(&kept).unwrap());
    let ran = world.run(&["token", "revoke", "lost"]);
    assert_eq!(ran.stdout, format!("revoked: lost ({})\n", inside.principal.grant_id), "{ran:#?}");
    assert!(matches!(server.admit(&lost), Err(Denied::Revoked)));
    until("who is inside is told", || inside.ended.is_cancelled());
    assert!(server.admit(&kept).is_ok() && !stays.ended.is_cancelled());
    assert_eq!(listed(&world, &["grants", "list"]).len(), 1);
    let all = listed(&world, &["grants", "list", "--all"]);
    assert_eq!((&all[0]["expires_at"], &all[1]["state"]), (&Value::Null, &json!("revoked")));
    let again = world.run(&["token", "revoke", "lost"]);
    assert_eq!((again.code, &again.stdout), (Some(0), &ran.stdout), "twice is once: {again:#?}");
    assert_eq!(world.run(&["token", "revoke", "never"]).code, Some(2));
    let by_id = world.run(&["grants", "revoke", &stays.principal.grant_id]);
    assert_eq!(by_id.code, Some(0), "{by_id:#?}");
    assert!(matches!(server.admit(&kept), Err(Denied::Revoked)));
    assert_eq!(world.run(&["grants", "revoke", &stays.principal.grant_id]).code, Some(0), "twice is once");
    assert_eq!(world.run(&["grants", "revoke", "grt_none"]).code, Some(2));
    assert_ne!(create(&world, &["lost"]), lost, "its name is free again");
    assert!(matches!(server.admit(&lost), Err(Denied::Revoked)));
}

#[test]
fn a_token_expires() {
    let world = World::new();
    let token = create(&world, &["short", "--expires", "1s"]);
    let server = Server::of(&world);
    let inside = server.admit(&token);
    until("it has expired", || matches!(server.admit(&token), Err(Denied::Expired)));
    if let Ok(inside) = inside {
        until("who is inside is told", || inside.ended.is_cancelled());
    }
    assert_eq!(listed(&world, &["token", "list"]), Vec::<Value>::new());
    assert_eq!(listed(&world, &["token", "list", "--all"])[0]["state"], "expired");
    assert_eq!(world.run(&["token", "list"]).stdout, "There is none; --all shows those that have ended.\n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let world = World::new();
    for (args, code) in [
        (&["laptop", "--scope", "everything"][..], 64),
        (&["laptop", "--expires", "soon"], 64),
        (&["laptop", "--expires", "0s"], 64),
        (&[], 64),
        (&[" "], 2),
        (&["a\nb"], 2),
        (&["a\u{202e}b"], 2),
        (&["grt_laptop"], 2),
    ] {
        let ran = world.run(&[&["token", "create"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{args:?}: {ran:#?}");
    }
    assert_eq!(listed(&world, &["grants", "list", "--all"]), Vec::<Value>::new());
    assert!(!world.state().join("headcount.db").exists(), "nothing was made");
}

#[test]
fn a_token_that_cannot_be_shown_is_none() {
    let world = World::new();
    let mut command = world.command(&["token", "create", "laptop"]);
    command.stdout(fs::File::options().write(true).open("/dev/full").unwrap()).stderr(std::process::Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(2));
    assert_eq!(listed(&world, &["token", "list"]), Vec::<Value>::new());
    assert_eq!(listed(&world, &["token", "list", "--all"])[0]["state"], "revoked");
}

#[test]
fn a_damaged_database_is_said_to_be_so_and_revokes_nothing() {
    let world = World::new();
    let token = create(&world, &["laptop"]);
    let server = Server::of(&world);
    let inside = server.admit(&token).unwrap();
    let database = world.state().join("headcount.db");
    // Noting that the token is used writes to it, too.
    until("its use is noted", || listed(&world, &["token", "list"])[0]["last_used_at"].is_string());
    drop(server);
    let whole = fs::read(&database).unwrap();
    let broken = |bytes: &[u8]| {
        // A file of its own, as a copy that was put in the database's place.
        fs::remove_file(&database).unwrap();
        for side in ["headcount.db-wal", "headcount.db-shm"] {
            let _ = fs::remove_file(world.state().join(side));
        }
        fs::write(&database, bytes).unwrap();
    };
    let server = Server::of(&world);
    for bytes in [&b"this is no database, and has never been one"[..], &whole[..whole.len() / 2], &whole[..100]] {
        broken(bytes);
        assert!(matches!(server.admit(&token), Err(Denied::Unavailable(_))), "{:?}", server.admit(&token));
        for args in [&["token", "list"][..], &["token", "revoke", "laptop"], &["token", "create", "desk"]] {
            let ran = world.run(args);
            assert!(ran.code == Some(2) && ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}: {ran:#?}");
        }
    }
    assert!(!inside.ended.is_cancelled());
    broken(&whole);
    assert_eq!(server.admit(&token).unwrap().principal, inside.principal);
}

/// When a command is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// After so much time, whatever it does then.
    After(Duration),
    /// As soon as it has answered, while it tidies up.
    Answered,
}

/// What a command has answered that was killed; `None`: nothing.
fn killed(world: &World, args: &[&str], when: Kill) -> Option<String> {
    let mut child = world.command(args).spawn().unwrap();
    let mut answer = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    match when {
        Kill::After(time) => std::thread::sleep(time),
        Kill::Answered => assert!(stdout.read_line(&mut answer).unwrap() > 0, "{args:?} has no answer"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    stdout.read_to_string(&mut answer).unwrap();
    answer.ends_with('\n').then(|| answer.trim_end().to_owned())
}

#[test]
fn killing_what_gives_and_revokes_loses_nothing_that_was_answered() {
    let world = World::new();
    let server = Server::of(&world);
    let start = Instant::now();
    create(&world, &["first"]);
    let whole = start.elapsed();
    // Half of the kills fall anywhere between the start of a command and some time after it would have ended.
    let kills = (0..32_u32).flat_map(|n| [Kill::After(whole.mul_f64(f64::from(n) / 25.0)), Kill::Answered]);
    let (mut given, mut revoked) = (Vec::new(), 0);
    for (nth, kill) in kills.enumerate() {
        let name = format!("token {nth}");
        let Some(token) = killed(&world, &["token", "create", &name], kill) else { continue };
        assert!(server.admit(&token).is_ok(), "{name} was given");
        let answered = killed(&world, &["token", "revoke", &name], kill).is_some();
        match server.admit(&token) {
            Ok(_) => assert!(!answered, "{name} was revoked"),
            Err(denied) => assert!(matches!(denied, Denied::Revoked), "{denied}"),
        }
        revoked += usize::from(answered);
        given.push(token);
    }
    assert!(given.len() >= 32 && revoked >= 32, "{} given, {revoked} revoked", given.len());
    assert!(listed(&world, &["token", "list", "--all"]).len() > given.len());
    // When the power goes, the index beside the log is lost, and with it all that was not written through.
    let after = tempfile::tempdir().unwrap();
    for file in ["headcount.db", "headcount.db-wal"] {
        fs::copy(world.state().join(file), after.path().join(file)).unwrap();
    }
    let fresh = Server::at(after.path());
    for token in &given {
        let plain = |one: Result<Admitted, Denied>| one.map(|one| one.principal).map_err(|denied| denied.to_string());
        assert_eq!(plain(fresh.admit(token)), plain(server.admit(token)));
    }
}

#[test]
fn many_at_once_give_and_revoke_without_harm() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|n| format!("token {n}")).collect();
    let server = Server::of(&world);
    std::thread::scope(|scope| {
        for name in &names {
            let world = &world;
            let server = &server;
            scope.spawn(move || {
                let token = create(world, &[name]);
                let inside = server.admit(&token).unwrap();
                let ran: Ran = world.run(&["token", "revoke", name]);
                assert_eq!(ran.code, Some(0), "{ran:#?}");
                assert!(matches!(server.admit(&token), Err(Denied::Revoked)));
                until("who is inside is told", || inside.ended.is_cancelled());
            });
        }
    });
    assert_eq!(listed(&world, &["grants", "list"]), Vec::<Value>::new());
    assert_eq!(listed(&world, &["grants", "list", "--all"]).len(), names.len());
}
