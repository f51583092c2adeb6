//! The table where there is no Linux: sysinfo, read whole at every look.
//!
//! sysinfo's own percentages are of no use here (they are wrong for intervals that differ, and for rows that were not
//! read); its accumulated CPU times are, over this program's own clock. It does not tell of waited children, shared
//! pages or exit codes: what is missing is said to be missing.

use super::identity::MOST_ANCESTORS;
use super::row::{CpuReading, Io, Measured, Pss, Row, Rows, Usage};
use super::{
    Ability, Ancestor, Details, KEPT_VARIABLES, Lineage, ListError, Liveness, Machine, Options, Process, ProcessId,
    Program,
};
use crate::clock::{Clock, Moment};
use crate::observe::facts::ProcessState;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

/// Which files processes hold open.
#[derive(Debug, Default)]
pub struct OpenFiles;

impl OpenFiles {
    /// Says that it cannot be known.
    ///
    /// # Errors
    /// Always, on systems without procfs.
    pub fn written_by(
        &mut self,
        _process: ProcessId,
        _now: Moment,
        _wanted: impl Fn(&Path) -> bool,
    ) -> Result<Vec<PathBuf>, String> {
        Err("this system does not show them".to_owned())
    }

    /// Locks are not listed here.
    pub fn locked_by(&mut self, _path: &Path) -> Vec<ProcessId> {
        Vec::new()
    }

    /// There is nothing to forget.
    pub fn retain(&mut self, _wanted: impl Fn(ProcessId) -> bool) {}
}

/// Here all processes see the same files.
///
/// # Errors
/// Never.
pub fn sees_alike(_process: ProcessId, _path: &Path) -> Result<(), String> {
    Ok(())
}

/// The rows and how they are read.
pub(super) struct Table {
    clock: Arc<dyn Clock>,
    machine: Machine,
    /// Opened at the first look.
    system: Option<System>,
    rows: Rows,
    /// How many looks there have been.
    look: u64,
    before: Option<Moment>,
}

impl Table {
    pub(super) fn new(clock: Arc<dyn Clock>, _options: Options) -> Self {
        Self { clock, machine: machine(), system: None, rows: Rows::new(), look: 0, before: None }
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(super) fn cores(&self) -> u32 {
        std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok()).unwrap_or(1)
    }

    /// Here processes are read as they are listed.
    pub(super) fn unread(&self) -> usize {
        0
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(super) fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    pub(super) fn look(&self) -> u64 {
        self.look
    }

    pub(super) fn refresh(&mut self) -> Result<(), ListError> {
        let now = self.clock.now();
        let what = ProcessRefreshKind::nothing()
            .without_tasks()
            .with_cpu()
            .with_memory()
            .with_disk_usage()
            .with_user(UpdateKind::OnlyIfNotSet)
            .with_exe(UpdateKind::OnlyIfNotSet)
            .with_cwd(UpdateKind::OnlyIfNotSet)
            .with_cmd(UpdateKind::OnlyIfNotSet)
            .with_environ(UpdateKind::OnlyIfNotSet);
        let place = || "the system's process table".to_owned();
        let system = match &mut self.system {
            Some(system) => system,
            none => {
                let error = |error: sysinfo::Error| std::io::Error::other(error.to_string());
                none.insert(System::new().map_err(|found| ListError { place: place(), source: error(found) })?)
            }
        };
        // This program is a process itself: an empty list is a failed one.
        if system.refresh_processes_specifics(ProcessesToUpdate::All, true, what) == 0 {
            return Err(ListError { place: place(), source: std::io::ErrorKind::PermissionDenied.into() });
        }
        self.look += 1;
        let mut rows = Rows::new();
        for found in system.processes().values() {
            let mut row = row(found, now, self.look);
            match self.rows.remove(&row.process.id.pid).filter(|known| known.process.id == row.process.id) {
                Some(known) => {
                    row.before = Some(known.cpu);
                    if row.image == known.image {
                        row.process.details = known.process.details;
                    }
                }
                None => {
                    // Not to be in the list before is not enough: it may have been hidden. Start times are whole
                    // seconds here, and counted from a boot time in whole seconds.
                    let started = row.process.started_at_ms + 2000;
                    let since = self.before.filter(|before| started >= before.unix_ms);
                    row.before = since.map(|before| CpuReading { own: 0, waited: 0, at: before.steady });
                    row.newcomer = since.is_some();
                }
            }
            rows.insert(row.process.id.pid, row);
        }
        self.rows = rows;
        self.before = Some(now);
        Ok(())
    }

    /// Open descriptors: the one figure that costs so much that only measured processes are asked for it.
    pub(super) fn read_usage(&mut self, pid: u32) {
        let look = self.look;
        let Some(row) = self.rows.get_mut(&pid).filter(|row| row.usage_of < look) else {
            return;
        };
        row.usage_of = look;
        let Some(found) = self.system.as_ref().and_then(|system| system.process(Pid::from_u32(pid))) else {
            return;
        };
        let count = found.open_files().and_then(|count| u32::try_from(count).ok());
        row.usage.fds = match row.process.state {
            ProcessState::Zombie => Ok(0),
            _ => count.ok_or("the system does not tell"),
        };
    }

    pub(super) fn read_pss(&mut self, _pid: u32) -> Measured<u64> {
        Err("this system does not share out its pages")
    }

    pub(super) fn hidden_cpu(&self, _pid: u32) -> Option<CpuReading> {
        None
    }

    pub(super) fn state_of(&self, id: ProcessId) -> Liveness {
        state_of(id)
    }

    pub(super) fn abilities(&self) -> Vec<Ability> {
        let no = |name, detail: &str| Ability { name, works: false, detail: detail.to_owned() };
        let listed = self.rows.len();
        vec![
            Ability { name: "list processes", works: listed > 0, detail: listed.to_string() },
            no("CPU time of children that ended between two samples", "only Linux tells it"),
            no("memory with shared pages split (PSS)", "only Linux tells it: resident sizes are summed instead"),
            no("threads", "only Linux tells it here"),
            no("exit codes", "only Linux shows them to others than the parent"),
        ]
    }
}

/// Where this very process comes from.
pub(super) fn lineage() -> std::io::Result<Lineage> {
    let mut system = System::new().map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut ancestors = Vec::new();
    let parent_of = |system: &mut System, pid: Pid| {
        let what = ProcessRefreshKind::nothing().without_tasks();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
        system.process(pid).and_then(sysinfo::Process::parent)
    };
    let mut next = parent_of(&mut system, Pid::from_u32(std::process::id()));
    while let Some(pid) = next.filter(|_| ancestors.len() < MOST_ANCESTORS) {
        next = parent_of(&mut system, pid);
        let Some(found) = system.process(pid) else { break };
        let id = ProcessId { pid: pid.as_u32(), start: found.start_time() };
        ancestors.push(Ancestor { id, comm: found.name().to_string_lossy().into_owned() });
    }
    Ok(Lineage { machine: machine(), ancestors })
}

/// Whether one very process lives, as far as this user may know.
pub(super) fn may_live(id: ProcessId) -> bool {
    !matches!(state_of(id), Liveness::Gone | Liveness::Replaced | Liveness::Zombie)
}

fn machine() -> Machine {
    let boot_id = System::boot_time().map(|seconds| seconds.to_string()).unwrap_or_default();
    Machine { boot_id, pid_namespace: String::new() }
}

fn state_of(id: ProcessId) -> Liveness {
    let Ok(mut system) = System::new() else {
        return Liveness::Unreadable;
    };
    let pid = Pid::from_u32(id.pid);
    let what = ProcessRefreshKind::nothing().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    match system.process(pid) {
        None => Liveness::Gone,
        Some(found) if found.start_time() != id.start => Liveness::Replaced,
        Some(found) if state(found.status()) == ProcessState::Zombie => Liveness::Zombie,
        Some(_) => Liveness::Alive,
    }
}

fn row(found: &sysinfo::Process, now: Moment, look: u64) -> Row {
    let id = ProcessId { pid: found.pid().as_u32(), start: found.start_time() };
    let process = Process {
        id,
        parent: found.parent().map_or(0, Pid::as_u32),
        group: group(id.pid),
        session: found.session_id().map_or(0, Pid::as_u32),
        tty_nr: 0,
        comm: found.name().to_string_lossy().into_owned(),
        state: state(found.status()),
        started_at_ms: found.start_time().saturating_mul(1000),
        details: Details::Read(Arc::new(program(found))),
    };
    let disk = found.disk_usage();
    let io = Io { read: disk.total_read_bytes, written: disk.total_written_bytes, moved: 0 };
    let own = found.accumulated_cpu_time().saturating_mul(1_000_000);
    Row {
        process,
        threads: Err("this system does not tell"),
        wait_status: 0,
        image: 0,
        cpu: CpuReading { own, waited: 0, at: now.steady },
        before: None,
        newcomer: false,
        ran: look,
        usage_of: 0,
        usage: Usage { resident: Ok(found.memory()), shared: None, io: Ok(io), ..Usage::unread() },
        pss: Pss::Denied,
    }
}

fn program(found: &sysinfo::Process) -> Program {
    const HIDDEN: &str = "the system does not show it to this user";
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    let shown = |empty: bool| {
        if empty { Err(HIDDEN.to_owned()) } else { Ok(()) }
    };
    let kept = |variable: &OsString| {
        let (name, value) = variable.to_str()?.split_once('=')?;
        KEPT_VARIABLES.contains(&name).then(|| (name.to_owned(), value.to_owned()))
    };
    Program {
        exe: found.exe().map(Into::into).ok_or_else(|| HIDDEN.to_owned()),
        argv: shown(found.cmd().is_empty()).map(|()| found.cmd().iter().map(text).collect()),
        cwd: found.cwd().map(Into::into).ok_or_else(|| HIDDEN.to_owned()),
        env: shown(found.environ().is_empty()).map(|()| found.environ().iter().filter_map(kept).collect()),
        uid: uid(found),
    }
}

#[cfg(unix)]
fn uid(found: &sysinfo::Process) -> Option<u32> {
    found.user_id().map(|user| **user)
}

#[cfg(not(unix))]
fn uid(_found: &sysinfo::Process) -> Option<u32> {
    None
}

#[cfg(unix)]
fn group(pid: u32) -> u32 {
    let group =
        i32::try_from(pid).ok().and_then(|pid| nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(pid))).ok());
    group.and_then(|group| u32::try_from(group.as_raw()).ok()).unwrap_or(0)
}

#[cfg(not(unix))]
fn group(_pid: u32) -> u32 {
    0
}

fn state(status: ProcessStatus) -> ProcessState {
    match status {
        ProcessStatus::Run => ProcessState::Running,
        ProcessStatus::Stop | ProcessStatus::Tracing => ProcessState::Stopped,
        ProcessStatus::Zombie | ProcessStatus::Dead => ProcessState::Zombie,
        ProcessStatus::UninterruptibleDiskSleep => ProcessState::Uninterruptible,
        _ => ProcessState::Sleeping,
    }
}
