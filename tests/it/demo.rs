//! `headcount demo`: shows itself at work, and leaves nothing behind.

use crate::world::{PATIENCE, World, descendants, ended, start_of, until};
use std::collections::HashSet;
use std::io::Read as _;
use std::process::Child;

/// Whether none of these processes is there any more.
fn all_gone(processes: &HashSet<(u32, u64)>) -> bool {
    processes.iter().all(|(pid, start)| start_of(*pid) != Some(*start) || crate::world::state(*pid) == Some('Z'))
}

/// A demonstration in which all stand-ins run, and the processes seen below it.
fn demonstration(world: &World, seconds: &str) -> (Child, HashSet<(u32, u64)>) {
    let demo = world.command(&["demo", "--seconds", seconds]).spawn().unwrap();
    until("the stand-ins run", || descendants(demo.id()).len() >= 7);
    let seen = descendants(demo.id()).into_iter().collect();
    (demo, seen)
}

#[test]
fn it_shows_every_stand_in_explained_and_leaves_no_process() {
    let world = World::new();
    let (mut demo, mut seen) = demonstration(&world, "3");
    seen.extend(descendants(demo.id()));
    assert_eq!(ended(&mut demo, PATIENCE), Some(0));
    let mut text = String::new();
    demo.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!text.contains('\u{1b}'), "it is piped: {text}");
    let (shown, explained) = text.split_once("Line by line").unwrap_or_else(|| panic!("{text}"));
    for name in ["busy", "idle", "crowded", "stopped", "crashing"] {
        assert!(shown.contains(name) && explained.contains(name), "{name}: {text}");
    }
    for said in ["FAILED", "DEGRADED", "ACTIVE", "stalled"] {
        assert!(shown.contains(said), "{said}: {text}");
    }
    until("all of it has ended", || all_gone(&seen));
}

#[test]
fn killed_at_once_it_leaves_no_process_either() {
    let world = World::new();
    let (mut demo, seen) = demonstration(&world, "60");
    demo.kill().unwrap();
    demo.wait().unwrap();
    until("all of it has ended", || all_gone(&seen));
}

#[test]
fn it_leaves_no_file_but_the_log() {
    let world = World::new();
    let (mut demo, _) = demonstration(&world, "1");
    assert_eq!(ended(&mut demo, PATIENCE), Some(0));
    let left: Vec<_> = std::fs::read_dir(world.path("")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
