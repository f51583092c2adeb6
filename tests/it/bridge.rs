//! `headcount bridge`, driven as programs drive it that know files and nothing else.

use crate::world::{HEADCOUNT, PATIENCE, World, ended, start_of, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// A bridge that runs, and its folder.
pub struct Bridge {
    pub child: Child,
    pub dir: PathBuf,
}

impl Bridge {
    /// One with these flags before, and manners of the stand-in server after `--`.
    pub fn start(world: &World, flags: &[&str], manners: &[&str]) -> Self {
        let dir = world.path("session");
        let before = ["bridge", "--session-dir", dir.to_str().unwrap()];
        let args = [&before, flags, &["--", HEADCOUNT, "stand-in-server"], manners].concat();
        let child = world.command(&args).env("RUST_LOG", "trace,rmcp=trace").spawn().unwrap();
        Self { child, dir }
    }

    pub fn ready(world: &World, flags: &[&str], manners: &[&str]) -> Self {
        let bridge = Self::start(world, flags, manners);
        let pid = bridge.pid();
        until("it is ready", || {
            bridge.status().is_some_and(|status| status["state"] == "ready" && status["pid"] == pid)
        });
        bridge
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn status(&self) -> Option<Value> {
        read(&self.dir.join("status.json"))
    }

    pub fn response(&self, id: &str) -> Option<Value> {
        read(&self.dir.join(format!("response-{id}.json")))
    }

    /// Puts a request there in one piece.
    pub fn put(&self, id: &str, request: &Value) {
        let new = self.dir.join(format!("{id}.tmp"));
        fs::write(&new, request.to_string()).unwrap();
        fs::rename(new, self.dir.join(format!("request-{id}.json"))).unwrap();
    }

    /// Asks, and waits for the answer.
    pub fn ask(&self, id: &str, request: &Value) -> Value {
        self.put(id, request);
        self.answer(id)
    }

    pub fn answer(&self, id: &str) -> Value {
        until(&format!("{id} is answered"), || self.response(id).is_some());
        self.response(id).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).unwrap();
    }

    /// Its exit code and what it has said.
    pub fn end(mut self) -> (Option<i32>, String) {
        let code = ended(&mut self.child, PATIENCE);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a file holds, which is whole whenever it is there.
fn read(path: &Path) -> Option<Value> {
    let content = fs::read(path).ok()?;
    Some(serde_json::from_slice(&content).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// As a program does that was written for the older script: it knows five members of the status and three of a response, writes
/// in place with a BOM, and looks now and then.
#[test]
fn a_program_for_the_older_script_gets_what_it_expects() {
    let world = World::new();
    let bridge = Bridge::ready(&world, &[], &["--legacy"]);
    let mode = fs::metadata(&bridge.dir).unwrap().permissions().mode() & 0o777;
    let status = bridge.status().unwrap();
    assert_eq!((mode, &status["pid"]), (0o700, &json!(bridge.pid())));
    assert_eq!(status["tools"], json!(["echo", "pid", "die_safely"]));
    let request = "\u{feff}{\"tool\": \"echo\", \"arguments\": {\"text\": \"grüße\"}}";
    let id = "7b0a3c1e-1111-4222-8333-444455556666";
    fs::write(bridge.dir.join(format!("request-{id}.json")), request).unwrap();
    assert_eq!(bridge.answer(id), json!({"is_error": false, "result": {"text": "grüße"}}));
    until("the request is gone", || !bridge.dir.join(format!("request-{id}.json")).exists());
    for (id, tool, error) in
        [("a1", "fail", "not_allowed"), ("a2", "nope", "unknown_tool"), (id, "pid", "duplicate_request_id")]
    {
        bridge.put(id, &json!({"tool": tool, "arguments": {}}));
        let is_so = || bridge.response(id).is_some_and(|response| response["error"] == error);
        until(error, is_so);
        assert_eq!((&bridge.answer(id)["is_error"], &bridge.answer(id)["result"]), (&json!(true), &json!(null)));
    }
    bridge.ask("ffff", &json!({"tool": "close"}));
    let dir = bridge.dir.clone();
    let (code, said) = bridge.end();
    assert_eq!((code, said.contains("ERROR")), (Some(0), false), "{said}");
    assert_eq!(read(&dir.join("status.json")).unwrap()["state"], "closed");
    assert_eq!(names(&dir).iter().filter(|name| !name.starts_with("response-")).collect::<Vec<_>>(), ["status.json"]);
}

#[test]
fn the_status_tells_what_is_called_and_by_which_process() {
    let world = World::new();
    let bridge = Bridge::ready(&world, &["--allow", "slow"], &[]);
    bridge.put("1", &json!({"tool": "slow", "arguments": {"n": 700}}));
    bridge.put("2", &json!({"tool": "echo"}));
    until("it is busy", || bridge.status().unwrap()["state"] == "busy");
    let status = bridge.status().unwrap();
    assert_eq!((&status["active_tool"], &status["server"]), (&json!("slow"), &json!("stand-in 1")));
    assert_eq!(status["start"], json!(start_of(bridge.pid()).unwrap()));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(status["boot_id"], boot.trim());
    assert!(bridge.response("2").is_none(), "one at a time");
    assert_eq!(bridge.answer("1")["text"], json!(["late"]));
    assert_eq!(bridge.answer("2")["is_error"], false);
    assert_eq!(bridge.status().unwrap()["connected"], true);
}

#[test]
fn signals_end_it_in_order_also_in_mid_call_and_while_it_connects() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let world = World::new();
        let bridge = Bridge::ready(&world, &["--allow", "silent"], &[]);
        bridge.put("1", &json!({"tool": "silent"}));
        until("it is busy", || bridge.status().unwrap()["state"] == "busy");
        bridge.signal(signal);
        assert_eq!(
            bridge.answer("1"),
            json!({"is_error": true, "result": null, "error": "unknown_outcome", "done": "unknown"})
        );
        let dir = bridge.dir.clone();
        assert_eq!(bridge.end().0, Some(0));
        assert_eq!(read(&dir.join("status.json")).unwrap()["state"], "closed");
        let again = world.run(&["bridge", "--session-dir", dir.to_str().unwrap(), "--", HEADCOUNT, "stand-in-server"]);
        assert_eq!((again.code, again.stderr.contains("is there already")), (Some(2), true), "{again:?}");
    }
    let world = World::new();
    let bridge = Bridge::start(&world, &[], &["--hangs", "--stays"]);
    until("it has begun", || bridge.dir.exists());
    // It is heard at any time, once it takes signals, which it does before it makes the folder.
    bridge.signal(Signal::SIGTERM);
    let dir = bridge.dir.clone();
    assert_eq!(bridge.end().0, Some(0));
    assert_eq!(read(&dir.join("status.json")).unwrap()["state"], "closed");
}

#[test]
fn a_server_that_dies_is_connected_to_anew_and_one_that_cannot_be_is_told() {
    let world = World::new();
    let journal = world.path("journal");
    let bridge = Bridge::ready(
        &world,
        &["--allow", "die", "--allow", "grown", "--allow", "grow"],
        &["--journal", journal.to_str().unwrap()],
    );
    let died = bridge.ask("1", &json!({"tool": "die", "arguments": {"n": 7}}));
    assert_eq!((&died["error"], &died["done"]), (&json!("transport_lost"), &json!("unknown")));
    until("the status says so", || bridge.status().unwrap()["connected"] == false);
    assert_eq!(bridge.status().unwrap()["state"], "ready");
    assert_eq!(bridge.ask("2", &json!({"tool": "grown"}))["error"], "unknown_tool");
    assert_eq!(bridge.ask("3", &json!({"tool": "grow"}))["is_error"], false);
    assert_eq!(bridge.ask("4", &json!({"tool": "grown"}))["is_error"], false, "the list has changed");
    assert_eq!(fs::read_to_string(journal).unwrap(), "die\ngrow\ngrown\n", "what may change something is called once");
    drop(bridge);
    let dir = world.path("no-server");
    let ran = world.run(&["bridge", "--session-dir", dir.to_str().unwrap(), "--", "/nowhere/s3cret", "s3cret"]);
    assert_eq!((ran.code, ran.stderr.contains("s3cret")), (Some(2), false), "{ran:?}");
    let status = read(&dir.join("status.json")).unwrap();
    assert_eq!((&status["state"], &status["error"]), (&json!("failed"), &json!("connect_failed")));
}

/// Nothing of what goes through it is found anywhere but in the response that holds it.
#[test]
fn nothing_that_is_said_or_given_leaks() {
    let world = World::new();
    world.write(".config/headcount/config.toml", "[[bridge.error]]\ncategory = \"own_word\"\npattern = \"^failed\"\n");
    let server = format!("echo s3cret-stderr >&2; exec {HEADCOUNT} stand-in-server");
    let dir = world.path("session");
    let args = ["bridge", "--session-dir", dir.to_str().unwrap(), "--allow", "fail", "--", "sh", "-c", &server];
    let child = world.command(&args).env("RUST_LOG", "trace,rmcp=trace").env("TOKEN", "s3cret-env").spawn().unwrap();
    let bridge = Bridge { child, dir };
    until("it is ready", || bridge.status().is_some());
    let failed = bridge.ask("1", &json!({"tool": "fail", "arguments": {"key": "s3cret-argument"}}));
    assert_eq!(failed, json!({"is_error": true, "result": null, "error": "own_word", "done": "yes"}));
    bridge.ask("2", &json!({"tool": "s3cret-tool", "arguments": {"key": "s3cret-argument"}}));
    fs::write(bridge.dir.join("request-3.json"), "s3cret-no-json").unwrap();
    assert_eq!(bridge.answer("3")["error"], "invalid_request");
    for name in names(&bridge.dir) {
        let content = fs::read_to_string(bridge.dir.join(&name)).unwrap();
        assert!(!content.contains("s3cret"), "{name}: {content}");
    }
    bridge.signal(Signal::SIGTERM);
    let (code, said) = bridge.end();
    assert_eq!((code, said.contains("s3cret"), said.contains("ready; ")), (Some(0), false, true), "{said}");
}

#[test]
fn it_ends_with_its_folder_and_says_why() {
    for (what, word) in [("removed", "was removed"), ("replaced", "was replaced"), ("shared", "is open to other users")]
    {
        let world = World::new();
        let bridge = Bridge::ready(&world, &[], &[]);
        let aside = world.path("aside");
        match what {
            "shared" => fs::set_permissions(&bridge.dir, fs::Permissions::from_mode(0o755)).unwrap(),
            "removed" => {
                fs::rename(&bridge.dir, &aside).unwrap();
                fs::remove_dir_all(&aside).unwrap();
            }
            _ => {
                fs::rename(&bridge.dir, &aside).unwrap();
                fs::create_dir(&bridge.dir).unwrap();
            }
        }
        let (code, said) = bridge.end();
        assert_eq!((code, said.contains(word)), (Some(2), true), "{said}");
        if what == "replaced" {
            assert_eq!(read(&aside.join("status.json")).unwrap()["error"], "folder_replaced");
        }
    }
}

/// A disk that takes nothing: here a process that may not write to files.
#[test]
fn an_answer_that_cannot_be_written_is_kept_until_it_can() {
    let world = World::new();
    let journal = world.path("journal");
    // What is written beyond the limit is an error then, and not the end.
    let script = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let dir = world.path("session");
    let bridge = ["bridge", "--session-dir", dir.to_str().unwrap(), "--allow", "slow", "--"];
    let server = [HEADCOUNT, "stand-in-server", "--journal", journal.to_str().unwrap()];
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, HEADCOUNT]).args(bridge).args(server).env_clear().env("HOME", world.path(""));
    let child = command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let bridge = Bridge { child, dir };
    until("it is ready", || bridge.status().is_some());
    let limit = |most| {
        let limit = Rlimit { current: most, maximum: None };
        prlimit(rustix::process::Pid::from_raw(bridge.pid().cast_signed()), Resource::Fsize, limit).unwrap();
    };
    bridge.put("1", &json!({"tool": "slow", "arguments": {"n": 300}}));
    until("it is called", || journal.exists());
    limit(Some(0));
    bridge.put("2", &json!({"tool": "echo"}));
    // Longer than the call takes, and than it takes to try again.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        assert!(bridge.response("1").is_none());
        std::thread::sleep(Duration::from_millis(50));
    }
    limit(None);
    assert_eq!(bridge.answer("1")["text"], json!(["late"]));
    assert_eq!(bridge.answer("2")["is_error"], false);
    assert_eq!(fs::read_to_string(journal).unwrap(), "slow\necho\n");
}

#[test]
fn a_server_of_the_configuration_is_asked_what_it_may_be_and_no_more() {
    let world = World::new();
    let config = format!(
        "[[upstream]]\nname = \"good\"\ncommand = \"{HEADCOUNT}\"\nargs = [\"stand-in-server\"]\nallow = [\"echo\", \"fail\"]\n"
    );
    world.write(".config/headcount/config.toml", config);
    let dir = world.path("session");
    let args = ["bridge", "--session-dir", dir.to_str().unwrap(), "--server", "good", "--allow", "silent"];
    let bridge = Bridge { child: world.command(&args).spawn().unwrap(), dir };
    until("it is ready", || bridge.status().is_some_and(|status| status["tools"] == json!(["echo"])));
    for (id, tool, error) in
        [("1", "echo", json!(null)), ("2", "fail", "not_allowed".into()), ("3", "silent", "not_allowed".into())]
    {
        assert_eq!(bridge.ask(id, &json!({"tool": tool}))["error"], error, "{tool}");
    }
}

#[test]
fn a_tool_that_no_longer_only_reads_is_called_no_more_though_nobody_tells_of_it() {
    let world = World::new();
    let bridge = Bridge::ready(&world, &["--allow", "grow"], &[]);
    let echo = json!({"tool": "echo"});
    assert_eq!(bridge.ask("a", &echo)["is_error"], false);
    assert_eq!(bridge.ask("b", &json!({"tool": "grow", "arguments": {"quietly": true}}))["is_error"], false);
    let tries = std::cell::Cell::new(0);
    until("it is refused", || {
        tries.set(tries.get() + 1);
        bridge.ask(&format!("c-{}", tries.get()), &echo)["error"] == "not_allowed"
    });
    until("it is not offered any more", || {
        bridge.status().is_some_and(|status| status["tools"] == json!(["pid", "die_safely", "grow"]))
    });
}

#[test]
fn a_call_without_an_answer_is_to_be_looked_up() {
    let world = World::new();
    let bridge = Bridge::ready(&world, &["--allow", "silent", "--timeout", "5s"], &[]);
    let late = bridge.ask("1", &json!({"tool": "silent"}));
    assert_eq!((&late["error"], &late["done"]), (&json!("timeout_recheck_state"), &json!("unknown")));
    assert_eq!(bridge.ask("2", &json!({"tool": "echo"}))["is_error"], false);
}
