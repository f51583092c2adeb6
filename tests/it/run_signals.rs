//! Which signals reach an agent of `headcount run`, and what they say of what the user wants.

use crate::run::{Running, child_of, command, lines, pid_in, send};
use crate::world::{HEADCOUNT, World, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Command;

/// Counts SIGTERM and SIGUSR2.
const COUNTS: &str = "trap 'echo . >>caught' TERM; trap 'echo . >>barrier' USR2; \
                      echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done; exit 4";

fn to_group(of: u32, signal: Signal) {
    kill(Pid::from_raw(-of.cast_signed()), signal).unwrap();
}

#[test]
fn what_goes_to_front_and_keeper_reaches_the_agent_and_so_does_what_goes_to_all() {
    let world = World::new();
    let mut running = Running::start(command(&world, &[], COUNTS));
    let agent = pid_in(&world, "pid");
    let keeper = running.keeper();
    // Passed on after all that the front has heard before.
    let all_is_passed_on = |front: u32, times: usize| {
        send(front, Signal::SIGUSR2);
        until("nothing else is on its way", || lines(&world, "barrier") == times);
    };
    send(running.pid(), Signal::SIGTERM);
    send(keeper, Signal::SIGTERM);
    until("it has come", || lines(&world, "caught") == 1);
    to_group(running.pid(), Signal::SIGTERM);
    until("it has come to all", || lines(&world, "caught") == 2);
    // What the keeper knows of it goes with the keeper.
    all_is_passed_on(running.pid(), 1);
    send(keeper, Signal::SIGKILL);
    until("it is the front's", || child_of(running.pid()) == agent);
    to_group(running.pid(), Signal::SIGTERM);
    until("it has come to all again", || lines(&world, "caught") == 3);
    all_is_passed_on(running.pid(), 2);
    assert_eq!(lines(&world, "caught"), 3);
    world.write("end", "");
    assert_eq!(running.end().code(), Some(4));
}

#[test]
fn every_signal_goes_through() {
    let world = World::new();
    let names = ["ALRM", "XFSZ", "PIPE", "ABRT", "URG", "IO", "PROF"];
    let traps: String = names.iter().map(|name| format!("trap 'echo . >>{name}' {name}; ")).collect();
    let mut running = Running::start(command(&world, &[], &(traps + COUNTS)));
    pid_in(&world, "pid");
    for name in names {
        send(running.pid(), format!("SIG{name}").parse().unwrap());
        until(name, || lines(&world, name) == 1);
    }
    world.write("end", "");
    assert_eq!(running.end().code(), Some(4));
}

/// As under `nohup`, or in a shell's background.
#[test]
fn what_was_ignored_from_the_start_asks_nobody_to_end() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "100ms", "--max-restarts", "1"];
    let script = "echo . >>starts; echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done; exit 3";
    let run = command(&world, &options, script);
    let mut outer = Command::new("sh");
    outer.args(["-c", "trap '' HUP; exec \"$@\"", "sh", HEADCOUNT]).args(run.get_args());
    outer.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(run.get_current_dir().unwrap_or(std::path::Path::new("/")));
    let mut running = Running::start(outer);
    pid_in(&world, "pid");
    to_group(running.pid(), Signal::SIGHUP);
    world.write("end", "");
    assert_eq!(running.end().code(), Some(3));
    assert_eq!(lines(&world, "starts"), 2);
}
