//! What the tests act with: real processes that end with the test, and a sampler.

use crate::clock::SystemClock;
use crate::observe::processes::{Options, Process, ProcessId, Reading, Sampler};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The variable that tells [`act`] what to do.
const PART: &str = "HEADCOUNT_TEST_PART";

/// A process with a group of its own, ended with all of that group when it is dropped.
pub(super) struct Actor {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts a command.
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = headcount_tests::spawn(command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Starts a shell with a script.
    pub(super) fn shell(script: &str) -> Self {
        Self::start(Command::new("sh").args(["-c", script]))
    }

    /// Starts this very program as a helper; see [`act`].
    pub(super) fn part(part: &str) -> Self {
        Self::start(&mut command(part))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that begins with `start` and gives its rest.
    pub(super) fn hear(&mut self, start: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "ended without saying {start:?}");
            if let Some(at) = line.find(start) {
                return line[at + start.len()..].trim_end().to_owned();
            }
        }
    }

    /// Gives the process a line to read.
    pub(super) fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(pid(self.pid()), signal).unwrap();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = killpg(pid(self.pid()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

pub(super) fn pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

/// A process that no [`Actor`] has in its group, killed when it is dropped.
pub(super) struct Stray(pub(super) u32);

impl Drop for Stray {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(pid(self.0), Signal::SIGKILL);
    }
}

/// A sampler of the live system that waits for details as long as it takes on a busy machine.
pub(super) fn sampler() -> Sampler {
    let options = Options { details_deadline: Duration::from_secs(5), ..Options::default() };
    Sampler::new(Arc::new(SystemClock::default()), options)
}

/// This very program as a helper that does this part.
fn command(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{}::act", module_path!().split_once("::").unwrap().1), "--nocapture"]);
    command.env(PART, part);
    command
}

/// What the sampler knows of a process that is there.
pub(super) fn find(sampler: &Sampler, pid: u32) -> &Process {
    sampler.get(pid).unwrap_or_else(|| panic!("{pid} is not in the table"))
}

/// Refreshes, and gives the identity of a process.
pub(super) fn identify(sampler: &mut Sampler, pid: u32) -> ProcessId {
    sampler.refresh().unwrap();
    find(sampler, pid).id
}

/// Refreshes and measures one root.
pub(super) fn measure(sampler: &mut Sampler, root: ProcessId) -> Reading {
    sampler.refresh().unwrap();
    sampler.measure(&[root]).remove(0)
}

/// Samples one root until something is so, and fails after a time that is long on any machine.
pub(super) fn sample_until(sampler: &mut Sampler, root: ProcessId, so: impl Fn(&Sampler, &Reading) -> bool) -> Reading {
    let start = Instant::now();
    loop {
        let reading = measure(sampler, root);
        if so(sampler, &reading) {
            return reading;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "still not so: {reading:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// CPU time of a process by its own clock: the truth that figures are held against.
pub(super) fn cpu_clock(pid: u32) -> Duration {
    Duration::from_nanos(super::super::clock::cpu_time(pid).unwrap())
}

/// Not a test, but the helper that [`Actor::part`] starts: does what the variable says, for a minute at the most.
#[test]
fn act() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let words: Vec<&str> = part.split(' ').collect();
    let number = |at: usize| words[at].parse::<usize>().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    match words[0] {
        // busy THREADS
        "busy" => {
            for _ in 1..number(1) {
                std::thread::spawn(move || spin(end));
            }
            println!("ready");
            spin(end);
        }
        // half: busy for about half of the time
        "half" => {
            println!("ready");
            while Instant::now() < end {
                spin(Instant::now() + Duration::from_millis(5));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // hold MIB THREADS [MIB and THREADS of a child]
        "hold" => {
            // In the same group, so that it ends with this one.
            let child = words.get(3).map(|_| command(&format!("hold {} {}", words[3], words[4])));
            let child = child.map(|mut child| child.stdout(Stdio::piped()).spawn().unwrap().stdout.unwrap());
            if let Some(lines) = child {
                BufReader::new(lines).lines().find(|line| line.as_ref().unwrap().contains("ready")).unwrap().unwrap();
            }
            let pages = vec![1_u8; number(1) << 20];
            for _ in 2..number(2) {
                std::thread::spawn(move || std::thread::sleep(Duration::from_secs(60)));
            }
            println!("ready {}", pages.iter().step_by(4096).map(|&byte| usize::from(byte)).sum::<usize>());
            std::thread::sleep(Duration::from_secs(60));
        }
        // open FILES
        "open" => {
            let open = || std::fs::read_dir("/proc/self/fd").unwrap().count() - 1;
            let mut files = Vec::new();
            while open() < number(1) {
                files.push(std::fs::File::open("/dev/null").unwrap());
            }
            println!("ready");
            std::thread::sleep(Duration::from_secs(60));
        }
        other => panic!("no part {other:?}"),
    }
}

fn spin(until: Instant) {
    while Instant::now() < until {
        std::hint::black_box((0..10_000_u64).sum::<u64>());
    }
}
