//! A made-up machine: processes that stand in a list, and a clock that is turned by hand.

use crate::clock::{Clock, ManualClock};
use crate::config::{Config, Span};
use crate::names::{AgentName, SessionId};
use crate::observe::facts::{Agent, Metrics, ProcessState, Snapshot};
use crate::observe::processes::{Details, ListError, Liveness, Machine, Process, ProcessId, Program, Reading};
use crate::observe::records::Readers;
use crate::observe::roster::{DeclaredAgent, DeclaredSession, Given, Locator, Roster, Said, Source, Written};
use crate::observe::{Observer, ProcessTable};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time when every world begins, Unix milliseconds.
pub const BEGIN_MS: u64 = 1_800_000_000_000;

/// The processes of a machine.
pub struct World {
    /// Those that are listed, by pid.
    pub processes: BTreeMap<u32, Process>,
    /// Pids that are alive and not listed.
    pub hidden: BTreeSet<u32>,
    /// Whether listing fails.
    pub fails: bool,
    /// The roots that were measured last.
    pub measured: Vec<ProcessId>,
    machine: Machine,
}

impl World {
    /// A machine without processes.
    pub fn new() -> Self {
        let machine = Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() };
        Self { processes: BTreeMap::new(), hidden: BTreeSet::new(), fails: false, measured: Vec::new(), machine }
    }

    /// Starts a process below `parent`, in `cwd`; its start token is 100 times its pid, its start so many seconds
    /// after the world's begin.
    pub fn start(&mut self, pid: u32, parent: u32, argv: &[&str], cwd: &Path) -> ProcessId {
        let program = Program {
            exe: Err("permission denied".to_owned()),
            argv: Ok(argv.iter().map(ToString::to_string).collect()),
            cwd: Ok(cwd.to_owned()),
            env: Ok(Vec::new()),
            uid: Some(0),
        };
        let id = ProcessId { pid, start: u64::from(pid) * 100 };
        let process = Process {
            id,
            parent,
            group: pid,
            session: pid,
            tty_nr: 0,
            comm: "MainThread".to_owned(),
            state: ProcessState::Sleeping,
            started_at_ms: BEGIN_MS + u64::from(pid) * 1000,
            details: Details::Read(Arc::new(program)),
        };
        self.processes.insert(pid, process);
        id
    }

    /// Changes what a process shows of itself.
    pub fn change(&mut self, pid: u32, change: impl FnOnce(&mut Program)) {
        let process = self.processes.get_mut(&pid).expect("was started");
        let Details::Read(program) = &process.details else { panic!("has details") };
        let mut program = Program::clone(program);
        change(&mut program);
        process.details = Details::Read(Arc::new(program));
    }

    /// Ends a process.
    pub fn end(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }
}

impl ProcessTable for World {
    fn refresh(&mut self) -> Result<(), ListError> {
        let denied = || ListError { place: "/proc".to_owned(), source: io::ErrorKind::PermissionDenied.into() };
        if self.fails { Err(denied()) } else { Ok(()) }
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    fn state_of(&self, id: ProcessId) -> Liveness {
        match self.processes.get(&id.pid) {
            _ if self.hidden.contains(&id.pid) => Liveness::Unreadable,
            None => Liveness::Gone,
            Some(process) if process.id != id => Liveness::Replaced,
            Some(process) if process.state == ProcessState::Zombie => Liveness::Zombie,
            Some(_) => Liveness::Alive,
        }
    }

    fn measure(&mut self, roots: &[ProcessId]) -> Vec<Reading> {
        self.measured = roots.to_vec();
        let reading = |id: &ProcessId| Reading {
            state: self
                .get(id.pid)
                .filter(|process| process.id == *id)
                .map_or(ProcessState::Gone, |process| process.state),
            exit_code: None,
            metrics: Metrics { processes: Some(id.pid), ..Metrics::default() },
            cpu_time: Duration::from_secs(u64::from(id.pid)),
            io_bytes: Some(u64::from(id.pid)),
            unmeasured: Vec::new(),
        };
        roots.iter().map(reading).collect()
    }

    fn unread(&self) -> usize {
        self.processes.values().filter(|process| matches!(process.details, Details::Pending)).count()
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn cores(&self) -> u32 {
        4
    }
}

/// An observer of a made-up world.
pub struct Scene {
    /// What observes it.
    pub observer: Observer<World>,
    /// The world's clock.
    pub clock: Arc<ManualClock>,
    /// Where its projects lie, links followed.
    pub disk: PathBuf,
    _removed_when_dropped: tempfile::TempDir,
}

impl Scene {
    /// A world in which `rosters` are declared; `prepare` may start processes and knows the folder of the projects.
    pub fn new(rosters: Vec<Box<dyn Source>>, prepare: impl FnOnce(&mut World, &Path)) -> Self {
        Self::configured(&Config::default(), rosters, Readers::default(), prepare)
    }

    /// A world in which those found by themselves stay for a minute after their end.
    pub fn with_memory(prepare: impl FnOnce(&mut World, &Path)) -> Self {
        let mut config = Config::default();
        config.sampling.keep_ended = Span::from_millis(60_000);
        Self::configured(&config, Vec::new(), Readers::default(), prepare)
    }

    /// A world whose agents' records are read by `readers`.
    pub fn with_readers(
        rosters: Vec<Box<dyn Source>>,
        readers: Readers,
        prepare: impl FnOnce(&mut World, &Path),
    ) -> Self {
        Self::configured(&Config::default(), rosters, readers, prepare)
    }

    fn configured(
        config: &Config,
        rosters: Vec<Box<dyn Source>>,
        readers: Readers,
        prepare: impl FnOnce(&mut World, &Path),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = std::fs::canonicalize(folder.path()).unwrap();
        let clock = Arc::new(ManualClock::at(BEGIN_MS));
        let mut world = World::new();
        prepare(&mut world, &disk);
        let port: Arc<dyn Clock> = clock.clone();
        let observer = Observer::new(port, world, config, rosters, readers).unwrap();
        Self { observer, clock, disk, _removed_when_dropped: folder }
    }

    /// The world.
    pub fn world(&mut self) -> &mut World {
        &mut self.observer.table
    }

    /// Looks once.
    pub fn look(&mut self) -> Vec<Snapshot> {
        self.observer.observe()
    }

    /// Looks once, a while later.
    pub fn look_after(&mut self, seconds: u64) -> Vec<Snapshot> {
        self.clock.advance(Duration::from_secs(seconds));
        self.observer.observe()
    }

    /// What the source of this name complains of.
    pub fn complaint(&self, source: &str) -> Option<&str> {
        let found = self.observer.sources().iter().find(|state| state.name == source).expect("a source");
        found.error.as_deref()
    }
}

/// The agents' names, session by session.
pub fn names(snapshots: &[Snapshot]) -> Vec<Vec<&str>> {
    snapshots.iter().map(|snapshot| snapshot.agents.iter().map(|agent| agent.name.as_str()).collect()).collect()
}

/// The only agent of the only session.
pub fn only(snapshots: &[Snapshot]) -> &Agent {
    assert_eq!(snapshots.len(), 1, "{snapshots:#?}");
    assert_eq!(snapshots[0].agents.len(), 1, "{snapshots:#?}");
    &snapshots[0].agents[0]
}

/// Why `agent` lacks `field`.
pub fn gap<'a>(agent: &'a Agent, field: &str) -> Option<&'a str> {
    agent.unmeasured.iter().find(|gap| gap.field == field).map(|gap| gap.reason.as_str())
}

/// A declared agent.
pub fn agent(name: &str, process: Locator) -> DeclaredAgent {
    let specialization = Some(format!("{name} work"));
    DeclaredAgent {
        name: AgentName::parse(name).unwrap(),
        specialization,
        process,
        declared_at_ms: None,
        run: None,
        said: Said::default(),
    }
}

/// A session with these agents.
pub fn session(id: &str, agents: Vec<DeclaredAgent>) -> DeclaredSession {
    DeclaredSession { agents, ..DeclaredSession::new(SessionId::parse(id).unwrap()) }
}

/// A source that declares these sessions.
pub fn roster(name: &str, sessions: Vec<DeclaredSession>) -> Box<dyn Source> {
    Box::new(Given::new(name, Roster { sessions }))
}

/// The process with this pid, whichever it is at the first look.
pub fn pid(pid: u32) -> Locator {
    Locator::Pid { pid, start: None, written: Written::default() }
}
