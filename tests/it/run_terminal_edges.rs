//! `headcount run` in a terminal, where something is missing that there usually is.

use crate::run_terminal::{Terminal, keeper_of, kill_now, shell};
use crate::world::{HEADCOUNT, World, state, until};
use nix::sys::signal::Signal;
use std::fs;
use std::thread;
use std::time::Duration;

/// Takes away what makes the kernel stop the program of a test's terminal: without it, it is as under `ssh -t` or `script`.
fn weigh_anchor(of: u32) {
    let wanted = format!("headcount\0anchor\0parent\0{of}\0");
    let processes =
        || fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted.as_bytes());
    let group_of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse::<u32>().ok()
    };
    let others = || processes().filter(|pid| *pid != of && group_of(*pid) == Some(of)).count();
    until("the anchor is there", || others() > 0 && processes().any(|pid| is_it(&pid)));
    processes().filter(is_it).for_each(|pid| kill_now(pid, Signal::SIGKILL));
    until("the anchor is gone", || others() == 0);
}

#[test]
fn where_no_shell_could_continue_it_control_z_stops_nobody() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &shell("echo pid $$; read a; echo \"got $a\"; exit 4"));
    let pid = terminal.number_after("pid ");
    until("it takes keys", || terminal.is_raw());
    weigh_anchor(terminal.pid());
    for times in 1..4 {
        terminal.type_in("\u{1a}");
        until("the key has come", || terminal.text().matches("^Z").count() == times);
        until("both go on", || terminal.is_raw() && state(pid) == Some('S') && state(terminal.pid()) == Some('S'));
    }
    terminal.type_in("it\r");
    terminal.until_shows("got it");
    assert_eq!(terminal.end().code(), Some(4));
}

#[test]
fn who_types_control_c_wants_no_restart() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "1h", "--session", "s", "--name", "it", "--"];
    for (key, signal) in [("\u{3}", "INT"), ("\u{1c}", "QUIT")] {
        let script = format!("trap 'exit 5' {signal}; echo ready; while :; do sleep 0.02; done");
        let mut terminal = Terminal::run(&world, &[&options[..], &["sh", "-c", &script]].concat());
        terminal.until_shows("ready");
        until("it takes keys", || terminal.is_raw());
        terminal.type_in(key);
        assert_eq!(terminal.end().code(), Some(5), "{signal}");
    }
}

#[test]
fn the_terminal_by_another_name_is_the_terminal() {
    let world = World::new();
    let script = format!(
        "exec {HEADCOUNT} run --session s --name it -- sh -c 'test \"$(tty)\" = \"$(tty <&2)\" && echo same' 2>/dev/tty"
    );
    let mut terminal = Terminal::start(&world, &["sh", "-c", &script], |_, _| {});
    assert_eq!(terminal.end().code(), Some(0), "{}", terminal.text());
    terminal.until_shows("same");
}

#[test]
fn after_others_have_used_the_terminal_it_is_taken_again() {
    let world = World::new();
    let script = format!(
        "set -m; {HEADCOUNT} run --session s --name it -- sh -c 'echo parent $(cut -d\" \" -f4 /proc/$$/stat); read a; exit 7'; \
         stty icanon echo; echo stopped; fg >/dev/null; echo \"ended $?\""
    );
    let mut terminal = Terminal::start(&world, &["sh", "-c", &script], |_, _| {});
    let keeper = terminal.number_after("parent ");
    until("it takes keys", || terminal.is_raw());
    let status = fs::read_to_string(format!("/proc/{keeper}/status")).unwrap();
    let front = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    kill_now(front, Signal::SIGSTOP);
    terminal.until_shows("stopped");
    until("it is raw again after fg", || terminal.is_raw());
    terminal.type_in("\r");
    terminal.until_shows("ended 7");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn a_stopped_agent_whose_front_is_killed_is_hung_up() {
    let world = World::new();
    let script = format!(
        "set -m; {HEADCOUNT} run --session s --name it -- sh -c 'echo pid $$; exec cat'; echo stopped; kill -9 %1; \
         until test -e end; do sleep 0.02; done"
    );
    let mut terminal = Terminal::start(&world, &["sh", "-c", &script], |_, _| {});
    let pid = terminal.number_after("pid ");
    until("it takes keys", || terminal.is_raw());
    terminal.type_in("\u{1a}");
    terminal.until_shows("stopped");
    until("it is hung up", || matches!(state(pid), None | Some('Z')));
    world.write("end", "");
    terminal.end();
}

/// How often a process was given the processor and gave it back.
fn wakes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let numbers =
        status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:")?.1.trim().parse::<u64>().ok());
    numbers.sum()
}

#[test]
fn nobody_is_busy_with_a_terminal_that_the_agent_has_closed() {
    let world = World::new();
    let end = world.path("end");
    let script =
        format!("echo pid $$; exec </dev/null >/dev/null 2>&1; until test -e {}; do sleep 5; done", end.display());
    let mut terminal = Terminal::run(&world, &shell(&script));
    let pid = terminal.number_after("pid ");
    let (front, keeper) = (terminal.pid(), keeper_of(terminal.pid()));
    let is_idle = |who: u32| {
        let before = wakes(who);
        thread::sleep(Duration::from_millis(300));
        wakes(who) - before <= 3
    };
    let tasks = || fs::read_dir(format!("/proc/{front}/task")).unwrap().map(|task| task.unwrap().file_name());
    let threads: Vec<u32> = tasks().map(|task| task.to_str().unwrap().parse().unwrap()).collect();
    assert_eq!(threads.len(), 2);
    until("the front is idle", || threads.iter().all(|thread| is_idle(*thread)));
    kill_now(front, Signal::SIGKILL);
    terminal.end();
    until("the keeper is idle", || is_idle(keeper));
    kill_now(pid, Signal::SIGKILL);
    until("it has ended", || matches!(state(keeper), None | Some('Z')));
}
