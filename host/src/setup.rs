//! From settings to a program that is ready to look: the one place where the parts are put together.

use crate::auth::{Gate, Issuers};
use crate::clients::Ledger;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Dirs, Environment, Loaded};
use crate::history;
use crate::judge::{self, Judge, Link, LoadError, Place, Runtime};
use crate::monitor::{Decisions, Pace, Watcher};
use crate::names::Instance;
use crate::observe::facts::Session;
use crate::observe::processes::{Machine, Options, Sampler};
use crate::observe::records::claude::Claude;
use crate::observe::records::hooks::Hooks;
use crate::observe::records::{Aider, Codex, Copilot, Cursor, Databases, Gemini, McpServers, Qwen, Readers};
use crate::observe::roster::{FileSource, Given, RegistrySource, Source};
use crate::observe::sessions::Owners;
use crate::observe::{KindError, Observer};
use crate::report::policy_rows;
use crate::store::Store;
use crate::store::audit::Audit;
use crate::store::serving::Serving;
use crate::upstream::agents::may_be_asked;
use crate::upstream::{Pool, PoolError, Tell, UpstreamRow};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What all commands start from.
pub struct Setup {
    /// The configuration, with where each value is from.
    pub loaded: Loaded,
    /// Where state, cache and configuration are kept.
    pub dirs: Dirs,
    /// Where compiled policies are kept, if they may be.
    cache: Option<PathBuf>,
    /// Whether a policy that cannot be loaded is an error.
    strict: bool,
    /// Whether policies that have to be compiled are not waited for.
    defer: bool,
    /// The machine's clocks.
    pub clock: Arc<dyn Clock>,
    /// The registry of declared agents; opened when it is first needed.
    pub store: Arc<Store>,
    /// The user that this program runs as.
    pub user: String,
    /// The headcounts that have started this one as an upstream server.
    started_by: Vec<Instance>,
}

/// Which agents to look at beside those that are found, configured and registered.
#[derive(Debug, Default)]
pub struct Rosters {
    /// Roster files.
    pub files: Vec<PathBuf>,
    /// A roster that is in no file.
    pub given: Option<Given>,
    /// The sessions that are kept with upstream servers.
    pub upstreams: Option<Arc<Pool>>,
}

/// Says to those who look from outside what this process has, as long as anybody holds it.
#[derive(Debug, Clone)]
pub struct Teller(Option<Arc<Serving>>);

/// Why nobody can look.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A configured kind of agent cannot be used.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// No sessions with upstream servers can be kept.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// No thread can be started.
    #[error("no thread can be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl Setup {
    /// Reads the configuration.
    ///
    /// # Errors
    /// When it is wrong, or there is no place to keep anything.
    pub fn new(config_file: Option<&Path>) -> anyhow::Result<Self> {
        let environment = Environment::of_process();
        let dirs = Dirs::of(&environment)?;
        let loaded = config::load(&environment, config_file, &[])?;
        let store = Arc::new(Store::at(&dirs.state));
        let cache = Some(dirs.cache.join("policies"));
        Ok(Self {
            loaded,
            dirs,
            cache,
            strict: false,
            defer: false,
            clock: Arc::new(SystemClock::default()),
            store,
            user: Owners::default().me(),
            started_by: environment.started_by(),
        })
    }

    /// The same, but compiled policies are not kept.
    pub fn without_cache(self) -> Self {
        Self { cache: None, ..self }
    }

    /// The same, but decisions are not logged: what is only tried decides nothing.
    #[must_use]
    pub fn without_decisions(mut self) -> Self {
        self.loaded.config.decisions.enabled = false;
        self
    }

    /// The same for a command that shows what the registry holds and nothing else.
    #[must_use]
    pub fn reading_once(self) -> Self {
        Self { store: Arc::new(Store::at(&self.dirs.state).reading_once()), ..self }
    }

    /// The same; where `strict`, a policy that cannot be loaded is an error.
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// The same, but policies that have to be compiled are not waited for: they judge when they are ready.
    #[must_use]
    pub fn deferring(self) -> Self {
        Self { defer: true, ..self }
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// Makes the judge with the configured chain. Apart from the rest, because compiling policies takes its time.
    pub fn judge(&self) -> impl FnOnce() -> Result<Judge, LoadError> + Send + 'static {
        let limits = self.config().limits;
        let chain = self.config().chain();
        let options =
            judge::Options { cache: self.cache.clone(), compiler: program(), strict: self.strict, defer: self.defer };
        let clock = Arc::clone(&self.clock);
        move || {
            let places = chain.iter().map(|(_, policy)| Place::new(policy, limits)).collect::<Result<_, _>>();
            Judge::new(places.map_err(|error| LoadError::Refused(vec![error.to_string()]))?, &options, clock)
        }
    }

    /// An engine for policies that are not in the configuration.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly at all.
    pub fn runtime(&self) -> Result<Runtime, LoadError> {
        let memory = judge::Limits::from(self.config().limits).memory;
        Runtime::new(self.cache.as_deref(), program().as_deref(), memory)
    }

    /// The process table as it is configured.
    pub fn sampler(&self) -> Sampler {
        let sampling = &self.config().sampling;
        let options = Options {
            pss_budget: sampling.pss_budget.0,
            details_deadline: sampling.details_deadline.0,
            ..Options::default()
        };
        Sampler::new(Arc::clone(&self.clock), options)
    }

    /// Who looks at this machine.
    ///
    /// # Errors
    /// When a configured kind of agent cannot be used.
    pub fn observer(&self, rosters: Rosters) -> Result<Observer, KindError> {
        let sampler = self.sampler();
        let readers = readers(sampler.machine(), &self.dirs.state);
        self.observing(sampler, rosters, readers)
    }

    /// The sessions that there are, by one look that measures nothing over time and reads no agent's records; with those
    /// that these roster files declare.
    ///
    /// # Errors
    /// When a configured kind of agent cannot be used.
    pub fn sessions(&self, rosters: &[PathBuf]) -> Result<Vec<Session>, KindError> {
        let rosters = Rosters { files: rosters.to_vec(), ..Rosters::default() };
        let mut observer = self.observing(self.sampler(), rosters, Readers::default())?;
        Ok(observer.observe().into_iter().map(|snapshot| snapshot.session).collect())
    }

    /// The sessions with the upstream servers that tell of agents, kept until they are ended or nobody holds them any more;
    /// `None`: there are no such servers. How they stand is told by `teller`.
    ///
    /// # Errors
    /// When there is no thread for them.
    pub fn pool(&self, teller: Option<Teller>) -> Result<Option<Arc<Pool>>, PoolError> {
        if self.config().upstreams.is_empty() {
            // Which headcount this is takes a look at the machine.
            return Ok(None);
        }
        let tell = teller.map(|teller| Box::new(move |rows: &[UpstreamRow]| teller.say("upstreams", &rows)) as Tell);
        let me = self.me();
        let upstreams = may_be_asked(&self.config().upstreams, me, &self.started_by);
        Pool::start(&upstreams, me, &self.clock, tell)
    }

    /// Which headcount this is.
    pub fn me(&self) -> Instance {
        self.instance(self.sampler().machine())
    }

    /// Which headcount it is that looks at this machine.
    fn instance(&self, machine: &Machine) -> Instance {
        let state = self.dirs.state.as_os_str().as_encoded_bytes();
        Instance::of(&[machine.boot_id.as_bytes(), machine.pid_namespace.as_bytes(), state])
    }

    fn observing(&self, sampler: Sampler, rosters: Rosters, readers: Readers) -> Result<Observer, KindError> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        sources.extend(rosters.files.into_iter().map(|file| Box::new(FileSource::new(file)) as Box<dyn Source>));
        sources.extend(rosters.given.map(|roster| Box::new(roster) as Box<dyn Source>));
        sources.push(Box::new(RegistrySource::new(Arc::clone(&self.store))));
        sources.extend(rosters.upstreams.iter().flat_map(|pool| pool.sources()));
        let instance = self.instance(sampler.machine());
        let observer = Observer::new(Arc::clone(&self.clock), sampler, self.config(), sources, readers)?;
        Ok(observer.known_as(instance))
    }

    /// Everything that one tick needs.
    ///
    /// # Errors
    /// When a configured kind of agent cannot be used, or no thread can be started.
    pub fn watcher(&self, rosters: Rosters) -> Result<Watcher, SetupError> {
        let sampling = &self.config().sampling;
        let history = history::Options {
            window: sampling.window.0,
            quiet_cpu_percent: sampling.quiet_cpu_percent,
            quiet_io: sampling.quiet_io,
        };
        let decisions = Decisions::open(&self.dirs.state, self.config().decisions);
        Ok(Watcher::new(self.observer(rosters)?, self.judge(), history, decisions, Arc::clone(&self.clock))?)
    }

    /// The same for one who looks a few times: the first look waits a while for the first answers of upstream servers.
    ///
    /// # Errors
    /// As [`Self::watcher`].
    pub fn patient_watcher(&self, rosters: Rosters) -> Result<Watcher, SetupError> {
        let (pool, patience) = (rosters.upstreams.clone(), self.config().sampling.upstream_deadline.0);
        let watcher = self.watcher(rosters)?;
        Ok(match pool {
            Some(pool) => watcher.waiting_for(move || pool.first_answers(patience)),
            None => watcher,
        })
    }

    /// Who says to those who look from outside what this process has.
    pub fn teller(&self) -> Teller {
        let serving = Serving::open(&self.dirs.state);
        let serving = serving.inspect_err(|error| tracing::warn!("this server is not seen from outside: {error}"));
        Teller(serving.ok().map(Arc::new))
    }

    /// How often to look.
    pub fn pace(&self) -> Pace {
        let sampling = &self.config().sampling;
        Pace { tick: sampling.tick.0, idle_tick: sampling.idle_tick.0 }
    }

    /// The ledger of clients, as a server writes it.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn ledger(&self) -> std::io::Result<Ledger> {
        let keep = self.config().clients.keep.0;
        Ledger::open(Arc::clone(&self.store), Arc::clone(&self.clock), self.dirs.state.clone(), keep)
    }

    /// The gate of a server: who may come in.
    pub fn gate(&self) -> Gate {
        let issuers = Issuers::new(&self.config().auth.issuers, Arc::clone(&self.clock));
        Gate::open(Arc::clone(&self.store), Arc::clone(&self.clock)).trusting(issuers)
    }

    /// The audit log.
    pub fn audit(&self) -> Audit {
        Audit::open(&self.dirs.state, self.config().audit)
    }
}

impl Teller {
    /// Says which policies it has.
    pub fn policies(&self, chain: &[Link]) {
        self.say("policies", &policy_rows(chain));
    }

    /// That nobody can hear it is no reason to stop.
    fn say(&self, part: &str, what: &impl Serialize) {
        let said = self.0.as_ref().map_or(Ok(()), |serving| serving.say(part, what));
        if let Err(error) = said {
            tracing::warn!("the {part} of this server are not seen from outside: {error}");
        }
    }
}

/// Who reads what agents say of themselves.
fn readers(machine: &Machine, state: &Path) -> Readers {
    Readers::new(vec![
        Box::<Aider>::default(),
        Box::<Claude>::default(),
        Box::<Codex>::default(),
        Box::<Copilot>::default(),
        Box::new(Qwen::new(machine.clone())),
        Box::<Gemini>::default(),
        Box::<Cursor>::default(),
        Box::<Databases>::default(),
        Box::<McpServers>::default(),
        Box::new(Hooks::new(state, machine.clone())),
    ])
    .complete()
}

/// This program, to be started once more. On Linux that is the very file that runs, also where another has its name by now.
fn program() -> Option<PathBuf> {
    if cfg!(target_os = "linux") { Some("/proc/self/exe".into()) } else { std::env::current_exe().ok() }
}
