//! A procfs of plain files.

use crate::clock::{Clock as _, ManualClock};
use crate::observe::facts::{MemoryMethod, ProcessState};
use crate::observe::processes::{Details, Liveness, Options, ProcessId, Reading, Sampler};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

struct Tree {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    sampler: Sampler,
}

/// One process of it. CPU times are ticks.
#[derive(Clone, Copy)]
struct Actor {
    pid: u32,
    parent: u32,
    start: u64,
    own: u64,
    waited: u64,
    state: char,
    flags: u32,
    exit_code: i32,
}

fn actor(pid: u32, parent: u32, start: u64) -> Actor {
    Actor { pid, parent, start, own: 0, waited: 0, state: 'S', flags: 0, exit_code: 0 }
}

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("uptime"), "1000.00 900.00\n").unwrap();
        let clock = Arc::new(ManualClock::at(1_800_000_000_000));
        let options = Options {
            proc_root: folder.path().to_owned(),
            details_deadline: Duration::from_secs(5),
            ..Options::default()
        };
        Self { sampler: Sampler::new(clock.clone(), options), folder, clock }
    }

    fn path(&self, pid: u32, file: &str) -> PathBuf {
        self.folder.path().join(pid.to_string()).join(file)
    }

    fn write(&self, pid: u32, file: &str, text: &str) {
        fs::create_dir_all(self.path(pid, "fd")).unwrap();
        fs::write(self.path(pid, file), text).unwrap();
    }

    fn put(&self, actor: Actor) {
        let Actor { pid, parent, start, own, waited, state, flags, exit_code } = actor;
        self.write(
            pid,
            "stat",
            &format!(
                "{pid} (actor) {state} {parent} {pid} {pid} 0 -1 {flags} 0 0 0 0 {own} 0 {waited} 0 20 0 2 0 {start} 0 0 \
                 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 {exit_code}\n"
            ),
        );
        self.write(pid, "statm", "100 50 20 1 0 30 0\n");
        self.write(pid, "io", "rchar: 5\nwchar: 6\nsyscr: 0\nsyscw: 0\nread_bytes: 7\nwrite_bytes: 8\n");
        self.write(pid, "limits", "Limit Soft Hard\nMax open files            20                   40 files\n");
        self.write(pid, "smaps_rollup", "00-01 ---p [rollup]\nRss: 200 kB\nPss:  120 kB\nPss_Dirty: 9 kB\n");
        self.write(pid, "cmdline", "actor\0");
        self.write(pid, "fd/0", "");
        self.write(pid, "fd/1", "");
    }

    fn remove(&self, pid: u32) {
        fs::remove_dir_all(self.path(pid, "")).unwrap();
    }

    fn measure(&mut self, root: ProcessId) -> Reading {
        self.clock.advance(Duration::from_secs(1));
        self.sampler.refresh().unwrap();
        self.sampler.measure(&[root]).remove(0)
    }
}

const ROOT: ProcessId = ProcessId { pid: 100, start: 500 };

fn reason(reading: &Reading, field: &str) -> String {
    reading.unmeasured.iter().find(|gap| gap.field == field).map(|gap| gap.reason.clone()).unwrap_or_default()
}

#[test]
fn every_figure_has_its_file() {
    let mut tree = Tree::new();
    tree.put(Actor { own: 100, ..actor(100, 1, 500) });
    tree.put(actor(101, 100, 501));
    tree.put(Actor { flags: 0x0020_0000, ..actor(2, 0, 0) });
    let first = tree.measure(ROOT);
    assert_eq!(first.metrics.cpu_percent, None);
    assert_eq!(reason(&first, "cpu-percent"), "needs two samples");
    tree.put(Actor { own: 130, waited: 20, ..actor(100, 1, 500) });
    let reading = tree.measure(ROOT);
    assert_eq!(reading.metrics.cpu_percent, Some(50.0));
    assert_eq!(reading.cpu_time, Duration::from_millis(500));
    assert_eq!((reading.metrics.processes, reading.metrics.threads), (Some(2), Some(4)));
    assert_eq!((reading.metrics.memory_bytes, reading.metrics.memory_method), (Some(240 << 10), MemoryMethod::Pss));
    assert_eq!(reading.metrics.file_descriptors, Some(4));
    assert_eq!((reading.metrics.fullest_fds, reading.metrics.fd_limit), (Some(2), Some(20)));
    assert_eq!((reading.metrics.read_bytes, reading.io_bytes), (Some(0), Some(0)));
    assert!(reading.unmeasured.is_empty(), "{:?}", reading.unmeasured);
    let processes: Vec<u32> = tree.sampler.processes().map(|process| process.id.pid).collect();
    assert_eq!(processes, [100, 101], "no kernel threads");
    let started = tree.sampler.get(100).unwrap().started_at_ms;
    assert_eq!(started, 1_800_000_001_000 - 995_000, "1000 s after the boot, less 5 s");
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let mut tree = Tree::new();
    tree.put(Actor { own: 100, ..actor(100, 1, 500) });
    tree.measure(ROOT);
    let stranger = Actor { own: 9000, ..actor(100, 1, 99_000) };
    tree.put(stranger);
    assert_eq!(tree.sampler.state_of(ROOT), Liveness::Replaced);
    let reading = tree.measure(ROOT);
    assert_eq!(reading.state, ProcessState::Gone);
    assert_eq!((reading.metrics.processes, reading.metrics.threads), (Some(0), Some(0)));
    assert_eq!((reading.metrics.memory_bytes, reading.cpu_time), (Some(0), Duration::ZERO));
    assert_eq!(tree.sampler.get(100).unwrap().id.start, 99_000);
}

#[test]
fn what_may_not_be_read_is_missing_with_its_reason_and_never_zero() {
    let mut tree = Tree::new();
    tree.put(actor(100, 1, 500));
    tree.put(actor(101, 100, 501));
    tree.measure(ROOT);
    // A file in place of a folder, and folders in place of files, are refused to every user.
    tree.put(Actor { own: 1, ..actor(101, 100, 501) });
    for file in ["io", "smaps_rollup"] {
        fs::remove_file(tree.path(101, file)).unwrap();
        fs::create_dir(tree.path(101, file)).unwrap();
    }
    fs::remove_dir_all(tree.path(101, "fd")).unwrap();
    fs::write(tree.path(101, "fd"), "").unwrap();
    let reading = tree.measure(ROOT);
    assert_eq!(reading.metrics.processes, Some(2));
    assert_eq!(reading.metrics.file_descriptors, None);
    assert_eq!(reason(&reading, "file-descriptors"), "of 1 of 2 processes: Not a directory");
    assert_eq!((reading.metrics.read_bytes, reading.metrics.written_bytes, reading.io_bytes), (None, None, None));
    assert_eq!(reason(&reading, "read-bytes"), "of 1 of 2 processes: Is a directory");
    assert_eq!(reading.metrics.cpu_percent, Some(1.0));
}

#[test]
fn one_failed_listing_ends_nothing() {
    let mut tree = Tree::new();
    tree.put(actor(100, 1, 500));
    tree.measure(ROOT);
    let away = tree.folder.path().with_extension("away");
    // The folder stays open, so it is the entries that go.
    fs::rename(tree.folder.path(), &away).unwrap();
    let mut other =
        Sampler::new(tree.clock.clone(), Options { proc_root: tree.folder.path().to_owned(), ..Options::default() });
    let error = other.refresh().unwrap_err();
    assert!(error.to_string().contains("No such file or directory"), "{error}");
    assert_eq!(other.abilities().len(), 1);
    assert!(!other.abilities()[0].works);
    fs::rename(&away, tree.folder.path()).unwrap();
    other.refresh().unwrap();
    assert_eq!(other.get(100).unwrap().id, ROOT);
}

#[test]
fn a_zombie_shows_how_it_ended() {
    for (exit_code, expected) in [(256, 1), (0, 0), (9, -9), (0x80 | 6, -6)] {
        let mut tree = Tree::new();
        tree.put(actor(100, 1, 500));
        tree.put(actor(101, 100, 501));
        tree.measure(ROOT);
        tree.put(Actor { state: 'Z', exit_code, own: 1, ..actor(100, 1, 500) });
        let path = tree.path(100, "stat");
        let stat = fs::read_to_string(&path).unwrap().replace(" 20 0 2 0 ", " 20 0 1 0 ");
        fs::write(&path, stat).unwrap();
        let reading = tree.measure(ROOT);
        assert_eq!((reading.state, reading.exit_code), (ProcessState::Zombie, Some(expected)));
        assert_eq!((reading.metrics.processes, reading.metrics.zombies), (Some(1), Some(1)));
        assert_eq!(reading.metrics.file_descriptors, Some(2), "of the child alone");
        // The code stays known when the zombie is gone, and what it left behind stays its own.
        tree.remove(100);
        tree.put(actor(101, 1, 501));
        let reading = tree.measure(ROOT);
        assert_eq!((reading.state, reading.exit_code), (ProcessState::Gone, Some(expected)));
        assert_eq!((reading.metrics.processes, reading.metrics.zombies), (Some(1), Some(0)));
    }
}

#[test]
fn a_zombie_whose_end_may_not_be_read_did_not_end_well() {
    let mut tree = Tree::new();
    tree.put(Actor { state: 'Z', ..actor(100, 1, 500) });
    let path = tree.path(100, "stat");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace(" 20 0 2 0 ", " 20 0 1 0 ")).unwrap();
    fs::remove_file(tree.path(100, "io")).unwrap();
    fs::create_dir(tree.path(100, "io")).unwrap();
    let reading = tree.measure(ROOT);
    assert_eq!((reading.state, reading.exit_code), (ProcessState::Zombie, None));
    assert_eq!(reason(&reading, "exit-code"), "Is a directory");
}

#[test]
fn a_process_that_has_started_since_counts_from_its_start() {
    let mut tree = Tree::new();
    tree.put(actor(1, 0, 0));
    tree.clock.advance(Duration::from_secs(1));
    tree.sampler.refresh().unwrap();
    fs::write(tree.folder.path().join("uptime"), "1001.00 900.00\n").unwrap();
    tree.put(Actor { own: 1, ..actor(100, 1, 100_050) });
    // This one was there before, though it was not shown.
    tree.put(Actor { own: 5000, ..actor(101, 100, 60) });
    let root = ProcessId { pid: 100, start: 100_050 };
    let reading = tree.measure(root);
    assert_eq!(reading.metrics.cpu_percent, Some(1.0), "10 ms in the second between the samples");
    assert_eq!(reading.metrics.processes, Some(1), "a parent is no younger than its child");
    assert_eq!(reading.io_bytes, Some(11));
}

#[test]
fn what_started_first_seems_so_whichever_look_has_found_it() {
    let mut tree = Tree::new();
    let uptime = |tree: &Tree, seconds: &str| fs::write(tree.folder.path().join("uptime"), seconds).unwrap();
    let started = |tree: &mut Tree, pid: u32, start: u64| {
        tree.put(actor(pid, 1, start));
        tree.measure(ROOT);
        tree.sampler.get(pid).unwrap().started_at_ms
    };
    let first = started(&mut tree, 100, 500);
    // The clocks are read one after the other, and something comes in between.
    uptime(&tree, "1001.09 900.00\n");
    assert_eq!(started(&mut tree, 101, 501), first + 10);
    // Somebody sets the clock: what starts then has started by the new time.
    tree.clock.advance(Duration::from_secs(3600));
    uptime(&tree, "1002.00 900.00\n");
    assert_eq!(started(&mut tree, 102, 502), first + 20 + 3_600_000);
    // Never in the future.
    uptime(&tree, "1003.00 900.00\n");
    assert!(started(&mut tree, 103, 9_000_000) <= tree.clock.now().unix_ms);
}

#[test]
fn an_entry_that_is_no_process_is_passed_over() {
    let mut tree = Tree::new();
    tree.put(actor(100, 1, 500));
    tree.write(200, "stat", "nonsense");
    tree.write(201, "statm", "");
    fs::create_dir(tree.folder.path().join("99999999999")).unwrap();
    fs::create_dir(tree.folder.path().join("12a")).unwrap();
    let reading = tree.measure(ROOT);
    assert_eq!(reading.state, ProcessState::Sleeping);
    assert_eq!(tree.sampler.processes().count(), 1);
    let Details::Read(program) = &tree.sampler.get(100).unwrap().details else { panic!("not read") };
    assert_eq!(program.argv.as_deref(), Ok(&["actor".to_owned()][..]));
    assert!(program.exe.as_ref().unwrap_err().contains("No such file"), "{program:?}");
}

/// A tree that names this program as its own, so that pids mean to the kernel what they mean in it.
fn live() -> Tree {
    let mut tree = Tree::new();
    std::os::unix::fs::symlink(std::process::id().to_string(), tree.folder.path().join("self")).unwrap();
    let options = Options { proc_root: tree.folder.path().to_owned(), ..Options::default() };
    tree.sampler = Sampler::new(tree.clock.clone(), options);
    tree
}

#[test]
fn a_process_that_procfs_hides_is_alive_and_its_cpu_time_known() {
    let mut busy = super::stage::Actor::part("busy 1");
    busy.hear("ready");
    let mut tree = live();
    let root = ProcessId { pid: busy.pid(), start: 500 };
    assert_eq!(tree.sampler.state_of(root), Liveness::Unreadable);
    let first = tree.measure(root);
    assert_eq!((first.state, first.metrics.cpu_percent), (ProcessState::Unreadable, None));
    let (used, start) = (super::stage::cpu_clock(root.pid), std::time::Instant::now());
    while super::stage::cpu_clock(root.pid) < used + Duration::from_millis(20) {
        assert!(start.elapsed() < Duration::from_secs(20), "it gets no time");
        std::thread::sleep(Duration::from_millis(5));
    }
    let reading = tree.measure(root);
    assert!(reading.metrics.cpu_percent > Some(0.0), "{reading:?}");
    assert!(reading.cpu_time > Duration::ZERO);
    assert_eq!((reading.metrics.memory_bytes, reading.metrics.processes, reading.io_bytes), (None, None, None));
    assert_eq!(reason(&reading, "memory-bytes"), "the system does not show this process to this user");
    drop(busy);
    assert_eq!(tree.sampler.state_of(root), Liveness::Gone);
    assert_eq!(tree.measure(root).state, ProcessState::Gone);
}

#[test]
fn a_process_that_keeps_its_reader_waiting_keeps_no_sample_waiting() {
    let mut tree = Tree::new();
    let options = Options {
        proc_root: tree.folder.path().to_owned(),
        details_deadline: Duration::from_millis(100),
        ..Options::default()
    };
    // The steady clock must go on by itself for a deadline to pass.
    tree.sampler = Sampler::new(Arc::new(crate::clock::SystemClock::default()), options);
    tree.put(actor(100, 1, 500));
    tree.put(actor(101, 1, 500));
    // A pipe that nobody writes to holds up whoever opens it, as a hung process does.
    let held = tree.path(100, "cmdline");
    fs::remove_file(&held).unwrap();
    nix::unistd::mkfifo(&held, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let argv = |sampler: &Sampler, pid| match &sampler.get(pid).unwrap().details {
        Details::Pending => None,
        Details::Read(program) => Some(program.argv.clone()),
    };
    tree.sampler.refresh().unwrap();
    assert_eq!(argv(&tree.sampler, 100), None, "not answered yet");
    let start = std::time::Instant::now();
    while argv(&tree.sampler, 100).is_none() || argv(&tree.sampler, 101).is_none() {
        tree.sampler.refresh().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(argv(&tree.sampler, 100), Some(Err("did not answer in time".to_owned())));
    assert_eq!(argv(&tree.sampler, 101), Some(Ok(vec!["actor".to_owned()])));
    // When it answers after all, that is what is shown.
    fs::write(&held, "late\0").unwrap();
    while argv(&tree.sampler, 100) != Some(Ok(vec!["late".to_owned()])) {
        tree.sampler.refresh().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn when_too_many_hang_the_others_are_told_so() {
    let mut tree = Tree::new();
    let options = Options {
        proc_root: tree.folder.path().to_owned(),
        details_deadline: Duration::from_millis(20),
        ..Options::default()
    };
    tree.sampler = Sampler::new(Arc::new(crate::clock::SystemClock::default()), options);
    for pid in 100..107 {
        tree.put(actor(pid, 1, 500));
        let held = tree.path(pid, "cmdline");
        fs::remove_file(&held).unwrap();
        nix::unistd::mkfifo(&held, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let start = std::time::Instant::now();
    tree.sampler.refresh().unwrap();
    while tree.sampler.processes().any(|process| matches!(process.details, Details::Pending)) {
        tree.sampler.refresh().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    let Details::Read(program) = &tree.sampler.get(106).unwrap().details else { panic!("not read") };
    assert!(program.argv.as_ref().unwrap_err().contains("too many other processes"), "{program:?}");
    // Lets the helpers go.
    for pid in 100..107 {
        let held = nix::fcntl::OFlag::O_WRONLY | nix::fcntl::OFlag::O_NONBLOCK;
        drop(nix::fcntl::open(&tree.path(pid, "cmdline"), held, nix::sys::stat::Mode::empty()));
    }
}

#[test]
fn only_a_procfs_shows_this_process() {
    let tree = Tree::new();
    let mut listing = Vec::new();
    let mut shows_us = |root: &std::path::Path| {
        let mut files = super::super::files::Files::open(root).unwrap();
        files.list(&mut listing).unwrap();
        files.shows_us(&listing)
    };
    assert!(!shows_us(tree.folder.path()), "an empty folder");
    std::os::unix::fs::symlink("7", tree.folder.path().join("self")).unwrap();
    assert!(!shows_us(tree.folder.path()), "a link to nobody");
    tree.put(actor(7, 1, 500));
    assert!(shows_us(tree.folder.path()));
    assert!(shows_us(std::path::Path::new("/proc")));
}

#[test]
fn a_program_that_was_read_while_it_began_is_read_again_when_it_has_run() {
    let mut tree = Tree::new();
    tree.put(actor(100, 1, 500));
    tree.write(100, "cmdline", "");
    let argv = |tree: &Tree| match &tree.sampler.get(100).unwrap().details {
        Details::Read(program) => program.argv.clone(),
        Details::Pending => panic!("not read"),
    };
    tree.measure(ROOT);
    assert_eq!(argv(&tree), Ok(vec![]));
    tree.put(Actor { own: 1, ..actor(100, 1, 500) });
    tree.measure(ROOT);
    assert_eq!(argv(&tree), Ok(vec!["actor".to_owned()]));
}
