//! Stand-ins: processes that behave like agents of one kind or another, for `demo` and for tests.
//!
//! Each is this program itself, started as `headcount stand-in KIND`. It ends when its parent does, whatever happens.

use crate::clock::{Clock as _, SystemClock};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

/// What a stand-in does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Two children that compute, and a short-lived one again and again.
    Busy,
    /// Nothing.
    Idle,
    /// Many threads, and nearly as many open files as it may have.
    Crowded,
    /// Stopped, as by Ctrl-Z.
    Stopped,
    /// Ends with exit code 3 after two seconds.
    Crashing,
    /// Computes on one core until it is ended.
    Computing,
    /// Computes for 40 ms and ends: one of the busy one's short-lived children.
    Brief,
}

impl Behaviour {
    /// All there are, with the words for them on the command line.
    pub const ALL: [(&'static str, Self); 7] = [
        ("busy", Self::Busy),
        ("idle", Self::Idle),
        ("crowded", Self::Crowded),
        ("stopped", Self::Stopped),
        ("crashing", Self::Crashing),
        ("computing", Self::Computing),
        ("brief", Self::Brief),
    ];

    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, b)| *b == self).map_or("idle", |(word, _)| word)
    }
}

/// A stand-in that runs; it is ended and waited for when this is dropped.
#[derive(Debug)]
pub struct StandIn(Child);

impl StandIn {
    /// Starts `program` (the headcount executable) as a stand-in.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(program: &Path, behaviour: Behaviour) -> io::Result<Self> {
        Self::start_with(program, behaviour, |_| {})
    }

    /// Starts a stand-in whose command `adjust` has changed: another folder, environment or argv[0].
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start_with(program: &Path, behaviour: Behaviour, adjust: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let mut command = command(program, behaviour);
        adjust(&mut command);
        command.spawn().map(Self)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it at once, and leaves it a zombie until this is dropped.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.0.kill()
    }

    /// Waits for its end, so that nothing of it is left.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        self.0.wait()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Both fail only when it has ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(program: &Path, behaviour: Behaviour) -> Command {
    let mut command = Command::new(program);
    command.args(["stand-in", behaviour.word(), "--parent", &std::process::id().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Behaves so until it is ended, or its parent is. `parent` is who started it, where that is known for certain.
///
/// # Errors
/// When the system refuses what the behaviour needs.
pub fn run(behaviour: Behaviour, parent: Option<u32>) -> anyhow::Result<ExitCode> {
    end_with_parent(parent)?;
    match behaviour {
        Behaviour::Busy => busy()?,
        Behaviour::Idle => sleep_for_ever(),
        Behaviour::Crowded => crowded()?,
        Behaviour::Stopped => stop()?,
        Behaviour::Computing => loop {
            compute(Duration::from_secs(60));
        },
        Behaviour::Brief => compute(Duration::from_millis(40)),
        Behaviour::Crashing => {
            thread::sleep(Duration::from_secs(2));
            return Ok(ExitCode::from(3));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn busy() -> io::Result<()> {
    let program = std::env::current_exe()?;
    let _workers = [Behaviour::Computing, Behaviour::Computing].map(|b| command(&program, b).spawn());
    loop {
        command(&program, Behaviour::Brief).status()?;
        thread::sleep(Duration::from_millis(400));
    }
}

/// 220 threads, and all but a few of the 256 files that it allows itself.
fn crowded() -> anyhow::Result<()> {
    const THREADS: usize = 220;
    const FILES: u64 = 256;
    const LEFT: u64 = 6;
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, FILES.min(hard), hard)?;
    }
    for _ in 1..THREADS {
        thread::Builder::new().stack_size(64 << 10).spawn(sleep_for_ever)?;
    }
    let open: Vec<File> = (0..FILES - LEFT).map_while(|_| File::open(std::env::current_exe().ok()?).ok()).collect();
    black_box(&open);
    sleep_for_ever();
    Ok(())
}

fn sleep_for_ever() {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn compute(duration: Duration) {
    let clock = SystemClock::default();
    let mut x = 1u64;
    while clock.now().steady < duration {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

#[cfg(unix)]
fn stop() -> anyhow::Result<()> {
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP)?;
    sleep_for_ever();
    Ok(())
}

#[cfg(not(unix))]
fn stop() -> anyhow::Result<()> {
    anyhow::bail!("a process cannot stop itself here")
}

/// A stopped process notices nothing, so the kernel is asked to end it with its parent; which may have ended before that.
#[cfg(target_os = "linux")]
fn end_with_parent(parent: Option<u32>) -> anyhow::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    let now = u32::try_from(nix::unistd::getppid().as_raw())?;
    anyhow::ensure!(parent.is_none_or(|parent| parent == now), "the parent has ended already");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent(_parent: Option<u32>) -> anyhow::Result<()> {
    Ok(())
}
