//! CPU figures, against the processes' own clocks.

use super::stage::{Actor, cpu_clock, identify, measure, sample_until, sampler};
use crate::observe::facts::ProcessState;
use crate::observe::processes::Reading;
use nix::sys::signal::Signal;
use std::cell::Cell;
use std::time::{Duration, Instant};

#[test]
fn two_busy_threads_are_one_process_and_count_once() {
    let mut actor = Actor::part("busy 2");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    measure(&mut sampler, root);
    let (used, at) = (cpu_clock(root.pid), Instant::now());
    std::thread::sleep(Duration::from_millis(250));
    let reading = measure(&mut sampler, root);
    let true_percent = (cpu_clock(root.pid) - used).as_secs_f64() / at.elapsed().as_secs_f64() * 100.0;
    let percent = reading.metrics.cpu_percent.unwrap();
    assert!((percent - true_percent).abs() < 15.0, "{percent} instead of {true_percent}");
    assert!(percent <= f64::from(sampler.cores()) * 100.0);
    assert_eq!(reading.metrics.processes, Some(1));
    assert_eq!(reading.metrics.zombies, Some(0));
    // The spinning thread, the main thread of the test program that waits for it, and the test's own.
    assert_eq!(reading.metrics.threads, Some(3));
}

#[test]
fn waited_children_count_though_no_sample_saw_them() {
    // dd of a fixed amount takes CPU time in the child alone.
    let script = "echo ready; read go; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                  dd if=/dev/zero of=/dev/null bs=64k count=20000 2>/dev/null; done; echo done; times; echo end; read stop";
    let mut actor = Actor::shell(script);
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let before = measure(&mut sampler, root).cpu_time;
    use std::io::Write as _;
    actor.child().stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    actor.hear("done");
    actor.hear("");
    let children: f64 = actor.hear("").split(' ').map(seconds).sum();
    actor.hear("end");
    let reading = sample_until(&mut sampler, root, |_, reading| reading.metrics.processes == Some(1));
    let counted = (reading.cpu_time - before).as_secs_f64();
    assert!(counted >= children * 0.97 - 0.02 && counted <= children * 1.03 + 0.1, "{counted} of {children} s");
}

#[test]
fn a_busy_process_that_is_stopped_uses_nothing_from_then_on() {
    let mut actor = Actor::part("busy 1");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    sample_until(&mut sampler, root, |_, reading| reading.metrics.cpu_percent.is_some_and(|percent| percent > 5.0));
    actor.signal(Signal::SIGSTOP);
    let still = |reading: &Reading| reading.state == ProcessState::Stopped && reading.metrics.cpu_percent == Some(0.0);
    // It is called stopped a moment before it leaves its core: what it used until then may be in the sample after the first.
    let seen = Cell::new(0);
    sample_until(&mut sampler, root, |_, reading| {
        seen.set(if still(reading) { seen.get() + 1 } else { 0 });
        seen.get() == 2
    });
    for _ in 0..3 {
        assert!(still(&measure(&mut sampler, root)));
    }
    actor.signal(Signal::SIGCONT);
}

#[test]
fn a_process_that_starts_between_two_samples_is_right_in_the_first() {
    let mut sampler = sampler();
    let before = Instant::now();
    sampler.refresh().unwrap();
    let start = Instant::now();
    let mut actor = Actor::part("busy 1");
    actor.hear("ready");
    std::thread::sleep(Duration::from_millis(100));
    let (used, passed) = (cpu_clock(actor.pid()), start.elapsed());
    let root = identify(&mut sampler, actor.pid());
    let reading = sampler.measure(&[root]).remove(0);
    let percent = reading.metrics.cpu_percent.unwrap();
    // The samples lie somewhere between these readings; on a busy machine that may be a while.
    let least = used.as_secs_f64() / before.elapsed().as_secs_f64() * 100.0;
    let most = cpu_clock(actor.pid()).as_secs_f64() / passed.as_secs_f64() * 100.0;
    assert!(percent > least * 0.8 && percent < most + 10.0, "{percent} not between {least} and {most}");
    assert!(reading.cpu_time >= used);
}

#[test]
fn a_long_idle_process_that_runs_a_moment_makes_no_spike() {
    let script = "echo ready; read go; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read end";
    let mut actor = Actor::shell(script);
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    for _ in 0..30 {
        measure(&mut sampler, root);
        std::thread::sleep(Duration::from_millis(5));
    }
    let (used, at) = (cpu_clock(root.pid), Instant::now());
    measure(&mut sampler, root);
    actor.say("go");
    actor.hear("done");
    std::thread::sleep(Duration::from_millis(100));
    let reading = measure(&mut sampler, root);
    let true_percent = (cpu_clock(root.pid) - used).as_secs_f64() / at.elapsed().as_secs_f64() * 100.0;
    let percent = reading.metrics.cpu_percent.unwrap();
    assert!((percent - true_percent).abs() < true_percent * 0.3 + 3.0, "{percent} instead of {true_percent}");
}

#[test]
fn short_intervals_are_right_on_the_whole() {
    let mut actor = Actor::part("half");
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    let first = measure(&mut sampler, root).cpu_time;
    let (used, start) = (cpu_clock(root.pid), Instant::now());
    let (mut weighted, mut last) = (0.0, start);
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(50));
        let percent = measure(&mut sampler, root).metrics.cpu_percent.unwrap();
        weighted += percent * last.elapsed().as_secs_f64();
        last = Instant::now();
    }
    let mean = weighted / (last - start).as_secs_f64();
    let (used, counted) = (cpu_clock(root.pid) - used, measure(&mut sampler, root).cpu_time - first);
    let true_mean = used.as_secs_f64() / (last - start).as_secs_f64() * 100.0;
    assert!((mean - true_mean).abs() < 6.0, "{mean} instead of {true_mean}");
    assert!(counted.abs_diff(used) < Duration::from_millis(40), "{counted:?} of {used:?}");
}

#[test]
fn twenty_four_loops_without_their_shell_still_count() {
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do (while :; do :; done) & done; \
                  echo ready; read go";
    let mut actor = Actor::shell(script);
    actor.hear("ready");
    let mut sampler = sampler();
    let root = identify(&mut sampler, actor.pid());
    assert_eq!(measure(&mut sampler, root).metrics.processes, Some(25));
    actor.say("go");
    actor.child().wait().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let reading = measure(&mut sampler, root);
    assert_eq!(reading.metrics.processes, Some(24));
    let percent = reading.metrics.cpu_percent.unwrap();
    assert!(percent > 10.0 && percent <= f64::from(sampler.cores()) * 100.0, "{percent}");
}

/// `0m1.230s`, as the shell's `times` writes it.
fn seconds(time: &str) -> f64 {
    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}
