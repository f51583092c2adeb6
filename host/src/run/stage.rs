//! The last step before an agent runs: a process of this program that becomes the agent.
//!
//! It stands still until its identity is registered, and reports whether the agent's program could be executed. Pid and start stay
//! the same when a process executes another program, so what is registered is the agent from its first moment.

use super::line::{self, Line};
use super::signals;
use crate::observe::processes::AGENT_TAG;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// This very program, also where another file has its name by now.
pub const PROGRAM: &str = "/proc/self/exe";

/// What a stage says as soon as it stands.
const STANDS: u8 = b'.';

/// The exit code of what should have started something and could not, as of `env` and `timeout`.
pub const CANNOT_START: u8 = 125;

/// Which descriptors the agent gets.
#[derive(Debug, Clone, Copy)]
pub enum Stdio3<'a> {
    /// Those of the caller, as they are.
    Callers,
    /// The terminal behind this master; standard error only where `stderr`, else the caller's.
    Terminal {
        /// The terminal's other side.
        master: &'a OwnedFd,
        /// Whether the caller's standard error is that terminal, too.
        stderr: bool,
    },
}

/// A stage that stands.
#[derive(Debug)]
pub struct Stage {
    /// Its pid, which becomes the agent's.
    pub pid: u32,
    gate: PipeWriter,
    report: PipeReader,
}

impl Stage {
    /// Starts a stage for this command, and waits until it stands.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(command: &[OsString], tag: &str, blocked: &[i32], stdio: Stdio3<'_>) -> io::Result<Self> {
        let (gate, report) = (Line::new()?, Line::new()?);
        let mut stage = Command::new(PROGRAM);
        stage.arg0("headcount").arg("stage");
        stage.args([line::number(&gate.reader), line::number(&report.writer)]);
        for signal in blocked {
            stage.arg(format!("--blocked={signal}"));
        }
        if let Stdio3::Terminal { master, stderr } = stdio {
            let terminal = ioctl_tiocgptpeer(master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            stage.arg("--terminal").stdin(Stdio::from(terminal.try_clone()?));
            if stderr {
                stage.stderr(Stdio::from(terminal.try_clone()?));
            }
            stage.stdout(Stdio::from(terminal));
        }
        stage.arg("--").args(command).env(AGENT_TAG, tag);
        let pid = line::spawn(&mut stage, &[gate.reader.as_fd(), report.writer.as_fd()])?.id();
        // Its side of the terminal and its ends of the lines are held by it alone, or nobody would notice when they are closed.
        drop((stage, gate.reader, report.writer));
        let mut stands = Self { pid, gate: gate.writer, report: report.reader };
        stands.wait_until_it_stands()?;
        Ok(stands)
    }

    fn wait_until_it_stands(&mut self) -> io::Result<()> {
        let ended = |_| io::Error::other("the process that was to become it has ended");
        self.report.read_exact(&mut [0]).map_err(ended)
    }

    /// Has it become the agent.
    ///
    /// # Errors
    /// Why its program cannot be executed. The stage has ended then, or will at once.
    pub fn go(mut self) -> io::Result<()> {
        self.gate.write_all(&[STANDS])?;
        let mut errno = String::new();
        // It ends when the agent's program is executed, for then the stage's descriptors are closed.
        self.report.read_to_string(&mut errno)?;
        if errno.is_empty() {
            return Ok(());
        }
        Err(errno.parse().map_or_else(|_| io::Error::other(errno), io::Error::from_raw_os_error))
    }
}

/// The lines that a stage has inherited.
#[derive(Debug)]
pub struct Lines {
    /// The line that the stage waits at.
    pub gate: i32,
    /// The line that it reports on.
    pub report: i32,
}

/// Is a stage: stands, waits, and becomes `command`. `terminal`: standard input is to be its controlling terminal; `blocked`: the
/// signals that stay blocked. Comes back only where that does not work.
pub fn run(lines: &Lines, terminal: bool, blocked: &[i32], command: &[OsString]) -> ExitCode {
    match become_agent(lines, terminal, blocked, command) {
        Ok(code) => code,
        Err(error) => {
            tracing::debug!("the agent is not started: {error}");
            ExitCode::from(CANNOT_START)
        }
    }
}

fn become_agent(lines: &Lines, terminal: bool, blocked: &[i32], command: &[OsString]) -> io::Result<ExitCode> {
    let mut gate = line::reading(lines.gate)?;
    let mut report = line::writing(lines.report)?;
    if terminal {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        if let Err(error) = super::anchor::drop_anchor() {
            tracing::warn!("Ctrl-Z will not stop the agent: {error}");
        }
    }
    report.write_all(&[STANDS])?;
    let mut go = [0];
    // Nothing comes where whoever started it is gone.
    gate.read_exact(&mut go)?;
    let [program, arguments @ ..] = command else { return Ok(ExitCode::from(CANNOT_START)) };
    signals::let_through(blocked)?;
    let error = Command::new(program).args(arguments).exec();
    let code = exit_code(&error);
    tell(&mut report, &error)?;
    Ok(ExitCode::from(code))
}

fn tell(report: &mut File, error: &io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(errno) => write!(report, "{errno}"),
        None => write!(report, "{error}"),
    }
}

/// What shells exit with where a command cannot be executed.
pub fn exit_code(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Why a command cannot be executed, in a sentence.
pub fn sentence(program: &Path, error: &io::Error) -> String {
    let program = crate::text::clean(&program.display().to_string());
    match error.kind() {
        io::ErrorKind::NotFound => format!("{program}: command not found"),
        io::ErrorKind::PermissionDenied => format!("{program}: may not be executed"),
        _ => format!("{program}: cannot be executed: {error}"),
    }
}
