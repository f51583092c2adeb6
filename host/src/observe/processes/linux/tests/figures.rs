//! Threads, memory, descriptors and bytes, each with a process of which they are known.

use super::stage::{Actor, identify, measure, sample_until, sampler};
use crate::observe::facts::MemoryMethod;
use crate::observe::processes::ProcessId;
use std::fs;

const MIB: u64 = 1 << 20;

#[test]
fn case_03_threads_are_not_processes_and_memory_counts_once() {
    let mut actor = Actor::part("hold 100 40 20 3");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let reading = measure(&mut sampler, root);
    assert_eq!((reading.metrics.processes, reading.metrics.threads), (Some(2), Some(43)));
    let memory = reading.metrics.memory_bytes.unwrap();
    assert!((120 * MIB..150 * MIB).contains(&memory), "{memory}");
    assert!(reading.metrics.cpu_percent.is_none_or(|percent| percent < 50.0), "{reading:?}");
}

#[test]
fn descriptors_are_counted_exactly_and_held_against_the_limit() {
    let mut actor = Actor::part("open 100");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let reading = measure(&mut sampler, root);
    assert_eq!(reading.metrics.file_descriptors, Some(100));
    assert_eq!(reading.metrics.fullest_fds, Some(100));
    let limits = fs::read_to_string(format!("/proc/{}/limits", root.pid)).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let limit = line.split_whitespace().nth(3).unwrap().parse().ok();
    assert_eq!(reading.metrics.fd_limit, limit);
}

/// A shell holds 40 MB in a variable, and its subshells share them.
#[test]
fn pages_that_forked_children_share_count_once() {
    let script = "x=$(dd if=/dev/zero bs=1000000 count=40 2>/dev/null | tr '\\0' x); echo full; read go; \
                  for i in 1 2 3 4; do (echo child; sleep 60; :) & done; wait";
    let mut actor = Actor::shell(script);
    actor.hear("full");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let alone = sample_until(&mut sampler, root, |_, reading| reading.metrics.memory_method == MemoryMethod::Pss);
    let alone = alone.metrics.memory_bytes.unwrap();
    assert!(alone > 40_000_000, "{alone}");
    actor.say("go");
    for _ in 0..4 {
        actor.hear("child");
    }
    let reading = sample_until(&mut sampler, root, |_, reading| {
        reading.metrics.processes == Some(9) && reading.metrics.memory_method == MemoryMethod::Pss
    });
    let memory = reading.metrics.memory_bytes.unwrap();
    let truth: u64 =
        sampler.processes().filter(|process| process.group == root.pid).map(|process| pss(process.id)).sum();
    assert!(memory.abs_diff(truth) < truth / 20, "{memory} instead of {truth}");
    assert!(memory < alone + 30 * MIB, "{memory} of which {alone} are shared");
}

fn pss(id: ProcessId) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", id.pid)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn bytes_of_waited_children_count_once() {
    let script = "echo ready; read go; for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1000000 count=10 2>/dev/null; done; \
                  (dd if=/dev/zero of=/dev/null bs=1000000 count=10 2>/dev/null; echo half; read go; :); echo done; read end";
    let mut actor = Actor::shell(script);
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let start = measure(&mut sampler, root).io_bytes.unwrap();
    actor.say("go");
    actor.hear("half");
    let half = measure(&mut sampler, root).io_bytes.unwrap() - start;
    assert!((80_000_000..81_000_000).contains(&half), "{half}");
    actor.say("go");
    actor.hear("done");
    let end = sample_until(&mut sampler, root, |_, reading| reading.metrics.processes == Some(1));
    let all = end.io_bytes.unwrap() - start;
    assert!((80_000_000..81_000_000).contains(&all), "{all}");
}
