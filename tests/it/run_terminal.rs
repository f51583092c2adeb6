//! `headcount run` in a terminal, which the test makes and sits at.

use crate::world::{HEADCOUNT, PATIENCE, World, agent, descendants, state, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::{Errno, FdFlags};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs;
use std::io::{PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A terminal with a program in it.
pub struct Terminal {
    master: Option<Arc<OwnedFd>>,
    shown: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    /// A terminal of 30 lines with 100 columns, in which `command` runs as in a window of its own. What makes it so is the same stage
    /// that agents go through, because a test may not do it itself between a fork and an exec.
    pub fn start(world: &World, command: &[&str], adjust: impl FnOnce(&mut Command, &OwnedFd)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        resize(&master, 30, 100);
        let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        let (gate, mut open) = std::io::pipe().unwrap();
        let (mut report, stands) = std::io::pipe().unwrap();
        for end in [gate.as_fd(), stands.as_fd()] {
            rustix::io::fcntl_setfd(end, FdFlags::empty()).unwrap();
        }
        let lines = [gate.as_raw_fd(), stands.as_raw_fd()].map(|n| n.to_string());
        let mut stage = world.command(&["stage", &lines[0], &lines[1], "--terminal", "--"]);
        stage.args(command).env("TERM", "xterm").env("PATH", std::env::var_os("PATH").unwrap());
        stage.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave.try_clone().unwrap());
        adjust(&mut stage, &slave);
        let child = stage.spawn().unwrap();
        report.read_exact(&mut [0]).unwrap();
        open_gate(&mut open);
        drop((slave, stage));
        let master = Arc::new(master);
        let shown = Arc::default();
        collect(Arc::clone(&master), Arc::clone(&shown));
        Self { master: Some(master), shown, child }
    }

    /// `headcount run` with these arguments in a terminal.
    pub fn run(world: &World, args: &[&str]) -> Self {
        Self::start(world, &[&[HEADCOUNT, "run"], args].concat(), |_, _| {})
    }

    /// The pid of what runs in it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn type_in(&self, keys: &str) {
        let mut bytes = keys.as_bytes();
        while !bytes.is_empty() {
            bytes = &bytes[rustix::io::write(self.master.as_ref().unwrap(), bytes).unwrap()..];
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    pub fn until_shows(&self, what: &str) {
        let start = Instant::now();
        while !self.text().contains(what) {
            assert!(start.elapsed() < PATIENCE, "{what:?} is not shown: {:?}", self.text());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The number that is shown after `label`, once the line has ended.
    pub fn number_after(&self, label: &str) -> u32 {
        let find = || {
            let text = self.text();
            let (_, rest) = text.split_once(label)?;
            rest.split_once("\r\n")?.0.trim().parse().ok()
        };
        until(label, || find().is_some());
        find().unwrap()
    }

    /// Whether each key is passed on at once, and not line by line.
    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.master.as_ref().unwrap()).unwrap();
        !modes.local_modes.contains(LocalModes::ICANON)
    }

    pub fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it has not ended: {:?}", self.text());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Of a test that has failed nothing is to be left.
        for (pid, _) in descendants(self.pid()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_gate(gate: &mut PipeWriter) {
    gate.write_all(b".").unwrap();
}

fn resize(master: &OwnedFd, ws_row: u16, ws_col: u16) {
    tcsetwinsize(master, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

/// Collects what is shown, as long as the terminal is there.
fn collect(master: Arc<OwnedFd>, shown: Arc<Mutex<Vec<u8>>>) {
    let master = Arc::downgrade(&master);
    rustix::io::ioctl_fionbio(master.upgrade().unwrap().as_fd(), true).unwrap();
    thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Some(master) = master.upgrade() {
            match rustix::io::read(&*master, &mut bytes) {
                Ok(count) if count > 0 => shown.lock().unwrap().extend_from_slice(&bytes[..count]),
                Err(Errno::AGAIN | Errno::INTR) => {
                    drop(master);
                    thread::sleep(Duration::from_millis(2));
                }
                // Nobody has it open.
                _ => return,
            }
        }
    });
}

pub fn kill_now(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// The keeper that a front has started: its only child.
pub fn keeper_of(front: u32) -> u32 {
    let children = || fs::read_to_string(format!("/proc/{front}/task/{front}/children")).unwrap_or_default();
    until("the keeper is there", || !children().trim().is_empty());
    children().split_whitespace().next().unwrap().parse().unwrap()
}

fn it(world: &World) -> serde_json::Value {
    agent(&world.run(&["status", "s", "--json"]).json(), "it").clone()
}

pub const NAMED: [&str; 5] = ["--session", "s", "--name", "it", "--"];

pub fn shell(script: &str) -> Vec<&str> {
    [&NAMED[..], &["sh", "-c", script]].concat()
}

#[test]
fn keys_and_output_pass_and_the_window_has_the_size_of_the_users() {
    let world = World::new();
    let mut terminal = Terminal::run(
        &world,
        &shell(
            "stty size; read line; echo \"<$line>\"; read line; until stty size | grep 132; do sleep 0.02; done; exit 3",
        ),
    );
    terminal.until_shows("30 100\r\n");
    terminal.type_in("hello\r");
    terminal.until_shows("<hello>\r\n");
    assert!(terminal.is_raw(), "keys are looked at by the agent's terminal alone");
    resize(terminal.master.as_ref().unwrap(), 40, 132);
    terminal.type_in("\r");
    terminal.until_shows("40 132\r\n");
    assert_eq!(terminal.end().code(), Some(3));
    assert!(!terminal.is_raw());
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 3);
}

#[test]
fn all_that_is_written_before_the_end_is_shown() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("seq 1 20000; printf LAST"));
    assert_eq!(terminal.end().code(), Some(0));
    terminal.until_shows("LAST");
    let wanted: String = (1..=20000).map(|n| format!("{n}\r\n")).collect();
    assert_eq!(terminal.text(), wanted + "LAST");
}

#[test]
fn control_c_reaches_the_agent() {
    let world = World::new();
    let mut terminal =
        Terminal::run(&world, &shell("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.02; done"));
    terminal.until_shows("ready");
    terminal.type_in("\u{3}");
    terminal.until_shows("caught");
    assert_eq!(terminal.end().code(), Some(5));
    let mut terminal = Terminal::run(&world, &shell("echo ready; exec cat"));
    terminal.until_shows("ready");
    terminal.type_in("\u{3}");
    assert_eq!(terminal.end().signal(), Some(2));
    assert!(!terminal.is_raw());
    assert_eq!(it(&world)["run"]["last_exit"]["signal"], 2);
}

#[test]
fn a_signal_is_passed_on_and_the_terminal_given_back() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("echo ready; exec cat"));
    terminal.until_shows("ready");
    kill_now(terminal.pid(), Signal::SIGTERM);
    assert_eq!(terminal.end().signal(), Some(15));
    assert!(!terminal.is_raw());
    assert_eq!(it(&world)["run"]["last_exit"]["signal"], 15);
}

#[test]
fn control_z_stops_it_and_fg_goes_on() {
    let world = World::new();
    let script = format!(
        "set -m; {HEADCOUNT} run --session s --name it -- sh -c 'echo pid $$; read a; echo \"got $a\"; exit 7'; \
         echo \"stopped $?\"; fg >/dev/null; echo \"ended $?\""
    );
    let mut terminal = Terminal::start(&world, &["sh", "-c", &script], |_, _| {});
    let pid = terminal.number_after("pid ");
    until("it takes keys", || terminal.is_raw());
    terminal.type_in("\u{1a}");
    // 128 and the number of SIGTSTP or SIGSTOP, as the shell likes.
    terminal.until_shows("stopped 1");
    until("it is raw again after fg", || terminal.is_raw() && state(pid) == Some('S'));
    terminal.type_in("back\r");
    terminal.until_shows("got back");
    terminal.until_shows("ended 7");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn it_is_started_again_in_the_same_terminal_and_control_c_gives_up() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "1h"];
    let script = ["--session", "s", "--name", "it", "--", "sh", "-c", "echo ready; read a; echo $a; exit 3"];
    let mut terminal = Terminal::run(&world, &[&options[..], &script].concat());
    terminal.until_shows("ready");
    terminal.type_in("enough\r");
    until("it waits", || {
        !terminal.is_raw() && world.state().join("headcount.db").exists() && terminal.text().contains("enough\r\n")
    });
    terminal.until_shows("headcount: exit code 3; starts again in 60 min (Ctrl-C ends)\r\n");
    terminal.type_in("\u{3}");
    assert_eq!(terminal.end().signal(), Some(2));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 3);
    assert_eq!(it(&world)["activity"]["reason"], "ended on request (signal 2)");

    let options = ["--restart", "on-failure", "--backoff", "100ms", "--max-restarts", "1"];
    let mut terminal = Terminal::run(&world, &[&options[..], &script].concat());
    terminal.until_shows("ready");
    terminal.type_in("one\r");
    until("it is there again", || terminal.text().matches("ready").count() == 2 && terminal.is_raw());
    terminal.type_in("two\r");
    terminal.until_shows("two");
    assert_eq!(terminal.end().code(), Some(3));
    assert!(!terminal.is_raw());
}

/// With a pipe in place of its output it has the user's terminal itself, in the caller's process group.
#[test]
fn control_z_stops_it_in_a_pipeline_too() {
    let world = World::new();
    let script = format!(
        "set -m; {HEADCOUNT} run --session s --name it -- sh -c 'echo ready; read a; echo \"got $a\"' | cat; \
         echo \"stopped $?\"; fg >/dev/null; echo \"ended $?\""
    );
    let mut terminal = Terminal::start(&world, &["sh", "-c", &script], |_, _| {});
    terminal.until_shows("ready");
    terminal.type_in("\u{1a}");
    terminal.until_shows("stopped 1");
    terminal.type_in("back\n");
    terminal.until_shows("got back");
    terminal.until_shows("ended 0");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn an_agent_outlives_the_front_and_the_users_terminal_is_as_it_was() {
    let world = World::new();
    let end = world.path("end");
    let script = format!("echo pid $$; until test -e {}; do echo and on; sleep 0.02; done; exit 4", end.display());
    let mut terminal = Terminal::run(&world, &shell(&script));
    let pid = terminal.number_after("pid ");
    until("it takes keys", || terminal.is_raw());
    kill_now(terminal.pid(), Signal::SIGKILL);
    assert_eq!(terminal.end().signal(), Some(9));
    until("the modes are restored", || !terminal.is_raw());
    let found = it(&world);
    assert_eq!((&found["status"], &found["process_id"]), (&"ACTIVE".into(), &pid.into()), "{found:#}");
    drop(terminal);
    // What it writes is taken, or it would never see this.
    fs::write(end, "").unwrap();
    until("its end is recorded", || it(&world)["run"]["last_exit"]["code"] == 4);
}

#[test]
fn an_agent_outlives_the_keeper_and_nothing_is_to_be_seen_of_it() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("echo pid $$; read a; echo \"got $a\"; exit 4"));
    let pid = terminal.number_after("pid ");
    kill_now(keeper_of(terminal.pid()), Signal::SIGKILL);
    until("it is the front's", || keeper_of(terminal.pid()) == pid);
    terminal.type_in("it\r");
    terminal.until_shows("got it");
    assert_eq!(terminal.end().code(), Some(4));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 4);
}

#[test]
fn a_keeper_that_is_stopped_holds_nobody_up() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("echo ready; read a; exit 4"));
    terminal.until_shows("ready");
    kill_now(keeper_of(terminal.pid()), Signal::SIGSTOP);
    terminal.type_in("\r");
    assert_eq!(terminal.end().code(), Some(4));
}

#[test]
fn without_both_the_agent_is_hung_up_and_how_it_ended_is_not_known() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("echo pid $$; exec cat"));
    let pid = terminal.number_after("pid ");
    let keeper = keeper_of(terminal.pid());
    kill_now(keeper, Signal::SIGSTOP);
    kill_now(terminal.pid(), Signal::SIGKILL);
    kill_now(keeper, Signal::SIGKILL);
    assert_eq!(terminal.end().signal(), Some(9));
    until("it has ended", || matches!(state(pid), None | Some('Z')));
    let found = it(&world);
    assert_eq!(
        (&found["status"], &found["run"]["last_exit"]),
        (&"FAILED".into(), &serde_json::Value::Null),
        "{found:#}"
    );
}

#[test]
fn a_closed_terminal_hangs_the_agent_up() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("trap 'exit 6' HUP; echo ready; while :; do sleep 0.02; done"));
    terminal.until_shows("ready");
    terminal.master = None;
    assert_eq!(terminal.end().code(), Some(6));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 6);
}

#[test]
fn an_agent_in_the_background_writes_and_gets_no_keys() {
    let world = World::new();
    let script = format!(
        "set -m; {HEADCOUNT} run --session s --name it -- sh -c 'echo begun; read a; exit 3' & \
         until test -e go; do sleep 0.02; done; read mine; echo \"mine: $mine\"; fg >/dev/null; echo \"ended $?\""
    );
    let mut terminal = Terminal::start(&world, &["sh", "-c", &script], |_, _| {});
    terminal.until_shows("begun");
    world.write("go", "");
    terminal.type_in("first\n");
    terminal.until_shows("mine: first");
    until("it takes keys after fg", || terminal.is_raw());
    terminal.type_in("second\r");
    terminal.until_shows("ended 3");
    assert_eq!(terminal.end().code(), Some(0));
}

/// Of the three, only a terminal is replaced by one; and only where the agent can be talked to through it.
#[test]
fn what_is_no_terminal_stays_what_it_is() {
    let world = World::new();
    let kinds = "for n in 0 1 2; do test -t $n && echo yes >>kinds || echo no >>kinds; done; tty >>kinds";
    let kinds_of = |adjust: fn(&mut Command, &OwnedFd)| {
        let _ = fs::remove_file(world.path("kinds"));
        let mut terminal = Terminal::start(&world, &[&[HEADCOUNT, "run"], &shell(kinds)[..]].concat(), adjust);
        let own = rustix::pty::ptsname(terminal.master.as_ref().unwrap(), Vec::new()).unwrap().into_string().unwrap();
        assert_eq!(terminal.end().code(), Some(0));
        fs::read_to_string(world.path("kinds")).unwrap().replace(&own, "the user's")
    };
    assert!(kinds_of(|_, _| {}).starts_with("yes\nyes\nyes\n/dev/pts/"));
    assert_eq!(kinds_of(|it, _| _ = it.stdout(Stdio::null())), "yes\nno\nyes\nthe user's\n");
    assert!(kinds_of(|it, _| _ = it.stderr(Stdio::null())).starts_with("yes\nyes\nno\n/dev/pts/"));
}
