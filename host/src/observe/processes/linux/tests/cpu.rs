//! CPU figures, against the processes' own clocks.

use super::stage::{Actor, cpu_clock, identify, measure, sample_until, sampler};
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
    let true_percent =
        (cpu_clock(root.pid) - used).as_secs_f64() / at.elapsed().as_secs_f64() * 100.0;
    let percent = reading.metrics.cpu_percent.unwrap();
    assert!(
        (percent - true_percent).abs() < 15.0,
        "{percent} instead of {true_percent}"
    );
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
    actor
        .child()
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"go\n")
        .unwrap();
    actor.hear("done");
    actor.hear("");
    let children: f64 = actor.hear("").split(' ').map(seconds).sum();
    actor.hear("end");
    let reading = sample_until(&mut sampler, root, |_, reading| {
        reading.metrics.processes == Some(1)
    });
    let counted = (reading.cpu_time - before).as_secs_f64();
    assert!(
        counted >= children * 0.97 - 0.02 && counted <= children * 1.03 + 0.1,
        "{counted} of {children} s"
    );
}

/// `0m1.230s`, as the shell's `times` writes it.
fn seconds(time: &str) -> f64 {
    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}
