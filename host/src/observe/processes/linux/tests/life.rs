//! Births, deaths, and what a process turns into.

use super::super::clock;
use super::stage::{Actor, Stray, find, identify, measure, sample_until, sampler};
use crate::observe::facts::ProcessState;
use crate::observe::processes::{AGENT_TAG, Details, Liveness, ProcessId, Program, Sampler};
use nix::sys::signal::Signal;
use std::process::Command;
use std::sync::Arc;

fn program(sampler: &Sampler, pid: u32) -> Arc<Program> {
    match &find(sampler, pid).details {
        Details::Read(program) => Arc::clone(program),
        Details::Pending => panic!("the details of {pid} are not read"),
    }
}

#[test]
fn a_killed_process_is_gone_at_the_next_look() {
    let mut actor = Actor::start(Command::new("sleep").arg("60"));
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    sample_until(&mut sampler, root, |_, reading| reading.state == ProcessState::Sleeping);
    assert_eq!(sampler.state_of(root), Liveness::Alive);
    assert_eq!(sampler.state_of(ProcessId { start: root.start + 1, ..root }), Liveness::Replaced);
    actor.signal(Signal::SIGKILL);
    let reading = sample_until(&mut sampler, root, |_, reading| reading.state == ProcessState::Zombie);
    assert_eq!(reading.exit_code, Some(-9));
    assert_eq!((reading.metrics.processes, reading.metrics.zombies), (Some(0), Some(1)));
    assert_eq!((reading.metrics.memory_bytes, reading.metrics.file_descriptors), (Some(0), Some(0)));
    assert_eq!(sampler.state_of(root), Liveness::Zombie);
    actor.child().wait().unwrap();
    let reading = measure(&mut sampler, root);
    assert_eq!((reading.state, reading.exit_code), (ProcessState::Gone, Some(-9)));
    assert_eq!((reading.metrics.cpu_percent, reading.metrics.zombies), (Some(0.0), Some(0)));
    assert!(sampler.get(root.pid).is_none());
    assert_eq!(sampler.state_of(root), Liveness::Gone);
}

#[test]
fn the_exit_code_of_a_zombie_is_seen() {
    let mut actor = Actor::shell("echo ready; read go; exit 7");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    actor.say("go");
    let reading = sample_until(&mut sampler, root, |_, reading| reading.state == ProcessState::Zombie);
    assert_eq!(reading.exit_code, Some(7));
}

#[test]
fn a_stopped_process_is_stopped() {
    let actor = Actor::start(Command::new("sleep").arg("60"));
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    actor.signal(Signal::SIGSTOP);
    sample_until(&mut sampler, root, |_, reading| reading.state == ProcessState::Stopped);
    actor.signal(Signal::SIGCONT);
    sample_until(&mut sampler, root, |_, reading| reading.state == ProcessState::Sleeping);
}

#[test]
fn what_a_process_runs_now_is_what_is_shown() {
    let mut actor =
        Actor::shell("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo ready; read go; exec sleep 60");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    measure(&mut sampler, root);
    assert_eq!(find(&sampler, root.pid).comm, "sh");
    assert_eq!(program(&sampler, root.pid).argv.as_ref().unwrap()[..2], ["sh", "-c"]);
    let before = find(&sampler, root.pid).started_at_ms;
    actor.say("go");
    sample_until(&mut sampler, root, |sampler, _| find(sampler, root.pid).comm == "sleep");
    let now = sampler_settled(&mut sampler, root);
    assert_eq!(now.argv.as_deref(), Ok(&["sleep".to_owned(), "60".to_owned()][..]));
    assert!(now.exe.as_ref().unwrap().ends_with("sleep") || now.exe.as_ref().unwrap().ends_with("coreutils"));
    assert_eq!(find(&sampler, root.pid).id, root, "its history stays its own");
    assert_eq!(find(&sampler, root.pid).started_at_ms, before);
}

/// The name changes in the middle of exec(2); the command line is there when that is over.
fn sampler_settled(sampler: &mut Sampler, root: ProcessId) -> Arc<Program> {
    sample_until(sampler, root, |sampler, _| {
        program(sampler, root.pid).argv.as_ref().is_ok_and(|argv| !argv.is_empty())
    });
    program(sampler, root.pid)
}

#[test]
fn orphans_stay_with_their_agent() {
    // One that is an orphan at once, and one that becomes one when its shell is told to end.
    let script = "(sleep 60 & echo child $!); sh -c 'sleep 60 & echo child $!; read go' ; echo over; read end";
    let mut actor = Actor::shell(script);
    let first: u32 = actor.hear("child ").parse().unwrap();
    let second: u32 = actor.hear("child ").parse().unwrap();
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let reading = measure(&mut sampler, root);
    assert_eq!(reading.metrics.processes, Some(4));
    assert_ne!(find(&sampler, first).parent, root.pid);
    let shell = find(&sampler, second).parent;
    actor.say("go");
    actor.hear("over");
    let reading = sample_until(&mut sampler, root, |sampler, _| sampler.get(shell).is_none());
    assert_eq!(reading.metrics.processes, Some(3));
    assert_ne!(find(&sampler, second).parent, shell, "its new parent is known, though it has not run");
    // And when the root itself ends, they are what it left behind.
    actor.signal(Signal::SIGKILL);
    actor.child().wait().unwrap();
    let reading = measure(&mut sampler, root);
    assert_eq!((reading.state, reading.metrics.processes), (ProcessState::Gone, Some(2)));
}

#[test]
fn the_tag_finds_what_has_left_its_session() {
    let script = "setsid -f sh -c 'echo away $$; sleep 60; :'; echo ready; read go";
    let tag = format!("test-{}", std::process::id());
    let mut actor = Actor::start(Command::new("sh").args(["-c", script]).env(AGENT_TAG, &tag));
    let away = Stray(actor.hear("away ").parse().unwrap());
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let reading = sample_until(&mut sampler, root, |_, reading| reading.metrics.processes >= Some(3));
    assert_eq!(reading.metrics.processes, Some(3), "two shells and a sleep");
    assert_ne!(find(&sampler, away.0).session, find(&sampler, root.pid).session);
    let kept = program(&sampler, root.pid);
    assert!(kept.env.as_ref().unwrap().contains(&(AGENT_TAG.to_owned(), tag)));
    assert!(kept.env.as_ref().unwrap().iter().all(|(name, _)| name != "PATH"));
    let _sleep = (sampler.processes().find(|process| process.parent == away.0)).map(|process| Stray(process.id.pid));
}

#[test]
fn a_nested_agent_counts_once() {
    let mut actor = Actor::shell("sh -c 'echo inner $$; sleep 60; :'; :");
    let inner: u32 = actor.hear("inner ").parse().unwrap();
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    sample_until(&mut sampler, root, |_, reading| reading.metrics.processes == Some(3));
    let inner = find(&sampler, inner).id;
    let readings = sampler.measure(&[root, inner]);
    assert_eq!(readings[0].metrics.processes, Some(1));
    assert_eq!(readings[1].metrics.processes, Some(2));
}

#[test]
fn hostile_names_are_kept_and_break_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in [") R 1 2 (", "a\nb c", "\x1b[31mred", "sl (deleted)", "日本語日本語", ")"] {
        let path = folder.path().join(name);
        std::fs::copy("/bin/sleep", &path).unwrap();
        let actor = Actor::start(Command::new(&path).arg("60"));
        let mut sampler = sampler();
        let root = identify(&mut sampler, actor.pid());
        let reading = sample_until(&mut sampler, root, |sampler, _| find(sampler, root.pid).comm != "sh");
        let process = find(&sampler, root.pid);
        assert_eq!(process.parent, std::process::id());
        assert!(name.starts_with(process.comm.trim_end_matches('\u{fffd}')), "{:?}", process.comm);
        assert_eq!(reading.metrics.processes, Some(1));
        assert_eq!(program(&sampler, root.pid).exe.as_ref().unwrap(), &path);
        // The path stays what it was when the file is deleted.
        std::fs::remove_file(&path).unwrap();
        let mut files = super::super::files::Files::open("/proc".as_ref()).unwrap();
        assert_eq!(super::super::program::read(&mut files, root.pid).exe.unwrap(), path);
    }
}

#[test]
fn a_thread_is_not_a_process() {
    let mut actor = Actor::part("hold 1 3");
    actor.hear("ready");
    let mut threads = std::fs::read_dir(format!("/proc/{}/task", actor.pid())).unwrap();
    let thread = threads.find_map(|entry| {
        let id: u32 = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        (id != actor.pid()).then_some(id)
    });
    let thread = thread.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let mut sampler = sampler();
    sampler.refresh().unwrap();
    assert!(sampler.get(thread).is_none());
    assert_eq!(sampler.state_of(ProcessId { pid: thread, start }), Liveness::Replaced);
}

#[test]
fn this_system_can_do_what_it_can() {
    let mut sampler = sampler();
    sampler.refresh().unwrap();
    let abilities = sampler.abilities();
    assert!(abilities.iter().any(|ability| ability.name == "list processes"));
    assert!(abilities.iter().all(|ability| !ability.detail.is_empty()));
    assert!(clock::cpu_time(std::process::id()).is_some());
    assert!(!sampler.machine().boot_id.is_empty());
    assert!(sampler.machine().pid_namespace.starts_with("pid:"));
}
