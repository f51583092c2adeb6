//! Compiling what is not trusted. It is the one thing that wasmtime sets no limit to: a file of 200 KB can take seconds and
//! most of a gigabyte. So it happens in a process of our own with limits on CPU time and memory, which leaves the machine
//! code in the cache; this process then only fetches it from there.

use super::cache::{SealedCache, digest, folder_of_ours, opened, remove_abandoned};
use super::code_size::code_size;
use super::engine::{Layout, config};
use super::outcome::{LoadError, Outcome};
use crate::config::temp_dir;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use wasmtime::component::Component;
use wasmtime::{Cache, Engine};

/// The hidden command that compiles, see [`compile_stdin`].
const COMMAND: &str = "compile-policy";

/// Where a policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Built with this program.
    Trusted,
    /// A file of anybody's. If it could not be compiled before, it cannot be now.
    Untrusted,
    /// The same, but it is tried again.
    UntrustedAgain,
}

/// What compiling one policy may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowance {
    /// Seconds of CPU time. Python with its library, 18 MB, takes eight to fifteen.
    cpu: u64,
    /// Bytes. It takes about forty times the file.
    memory: u64,
}

impl Allowance {
    /// More for more code: what honest compilers make takes time and memory in proportion to it. No more than two minutes.
    fn of(component: &[u8]) -> Self {
        let mib = code_size(component).div_ceil(1 << 20) as u64;
        Self { cpu: (4 + 3 * mib).min(120), memory: (256 + 64 * mib) << 20 }
    }
}

/// Where compiled policies are kept, and who compiles.
#[derive(Clone)]
pub(super) struct Compiler {
    program: Option<PathBuf>,
    cache: Option<SealedCache>,
    opened: Option<Cache>,
    /// Where nothing can be kept, the other process still has to hand over what it has compiled.
    _exchange: Option<Arc<tempfile::TempDir>>,
}

/// How the folders begin in which processes hand over what cannot be kept; a pid follows.
const EXCHANGE: &str = "headcount-exchange-";

impl Compiler {
    pub fn open(folder: Option<&Path>, program: Option<&Path>) -> (Self, Option<Cache>) {
        let kept = folder.and_then(|folder| {
            let opened = SealedCache::open(folder);
            opened
                .inspect_err(|error| tracing::warn!("compiled policies are not kept in {}: {error}", folder.display()))
                .ok()
        });
        let exchange = match (&kept, program) {
            (None, Some(_)) => exchange().ok(),
            _ => None,
        };
        let open = kept.or_else(|| exchange.as_ref().and_then(|dir| SealedCache::open(dir.path()).ok()));
        let (cache, opened) = open.unzip();
        let compiler = Self {
            program: program.map(Path::to_owned),
            cache,
            opened: opened.clone(),
            _exchange: exchange.map(Arc::new),
        };
        (compiler, opened)
    }

    /// Whether what is not trusted is compiled in another process.
    pub fn is_apart(&self) -> bool {
        self.program.is_some()
    }

    /// How often something was compiled here, because it was not in the cache.
    pub fn misses(&self) -> usize {
        self.opened.as_ref().map_or(0, Cache::cache_misses)
    }

    /// Whether loading these bytes takes no compiling.
    pub fn is_prepared(&self, engine: &Engine, bytes: &[u8]) -> bool {
        self.program.is_none() || self.cache.as_ref().is_some_and(|cache| cache.has(&key(engine, bytes)))
    }

    /// Sees to it that compiling `bytes` takes nothing any more, or no more than it may.
    pub fn prepare(&self, engine: &Engine, layout: Layout, bytes: &[u8], again: bool) -> Result<(), Outcome> {
        let Some(program) = &self.program else { return Ok(()) };
        let policy = key(engine, bytes);
        let Some(cache) = &self.cache else {
            let why = "there is no folder in which what was compiled could be handed over; see HEADCOUNT_CACHE_DIR";
            return Err(Outcome::Compile(why.into()));
        };
        if cache.has(&policy) {
            return Ok(());
        }
        if let Some(why) = cache.refusal(&policy).filter(|_| !again) {
            return Err(Outcome::Compile(format!("{why} (before; `headcount policy check` tries again)")));
        }
        let workshop = cache.workshop().map_err(|error| {
            Outcome::Compile(format!("there is no room for what is compiled in {}: {error}", cache.folder().display()))
        })?;
        let compiled = run(program, layout, workshop.path(), bytes);
        let noted = match &compiled {
            Ok(()) => cache.take_in(&policy, &workshop),
            Err(Outcome::Compile(why)) => cache.refuse(&policy, why),
            Err(_) => Ok(()),
        };
        if let Err(error) = noted {
            tracing::warn!("compiled policies are not kept: {error}");
        }
        compiled
    }

    pub fn keep(&self) {
        if let Some(cache) = &self.cache
            && let Err(error) = cache.seal()
        {
            tracing::warn!("compiled policies are not kept: {error}");
        }
    }
}

/// A policy for one engine: code that was compiled for another does not run on it.
fn key(engine: &Engine, bytes: &[u8]) -> String {
    format!("{}-{:016x}", digest(bytes), compatibility(engine))
}

fn exchange() -> io::Result<tempfile::TempDir> {
    let folder = temp_dir();
    remove_abandoned(&folder, EXCHANGE);
    folder_of_ours(&folder, EXCHANGE)
}

/// What is said of a file that the compiler refuses.
pub(super) fn not_compiled(error: &wasmtime::Error) -> Outcome {
    Outcome::NotAPolicy(format!("the file is damaged or asks for more than policies get: {error:#}"))
}

fn compatibility(engine: &Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

/// Has the other process compile, and waits for it. It ends itself in time: see [`compile_stdin`].
fn run(program: &Path, layout: Layout, cache: &Path, bytes: &[u8]) -> Result<(), Outcome> {
    let failed = |error: io::Error| Outcome::Compile(format!("the process that compiles does not run: {error}"));
    let allowance = Allowance::of(bytes);
    let mut child = Command::new(program)
        .arg(COMMAND)
        .arg("--cache")
        .arg(cache)
        .args(["--largest", &layout.largest.to_string(), "--pooled", &layout.pooled.to_string()])
        .args(["--cpu", &allowance.cpu.to_string(), "--memory", &allowance.memory.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let said = hand_over(&mut child, bytes);
    let status = child.wait().map_err(failed)?;
    ended(status, &said, allowance)
}

/// Gives the policy to the child and takes what it says. A child that has ended early reads no more; why it has ended counts.
fn hand_over(child: &mut Child, bytes: &[u8]) -> String {
    let mut said = Vec::new();
    std::thread::scope(|scope| {
        if let Some(mut stdin) = child.stdin.take() {
            scope.spawn(move || drop(stdin.write_all(bytes)));
        }
        if let Some(stderr) = child.stderr.take() {
            // Errors of wasmtime are short; no more is wanted of anything else.
            let _ = stderr.take(64 << 10).read_to_end(&mut said);
        }
    });
    String::from_utf8_lossy(&said).trim().to_owned()
}

fn ended(status: ExitStatus, said: &str, Allowance { cpu, memory }: Allowance) -> Result<(), Outcome> {
    match (status.code(), signal(status)) {
        (Some(0), _) => Ok(()),
        (Some(code), _) if code == i32::from(REFUSED) => Err(Outcome::NotAPolicy(said.to_owned())),
        (_, Some("SIGXCPU" | "SIGKILL" | "SIGALRM")) => Err(Outcome::Compile(format!(
            "compiling it took more than the {cpu} s of CPU time that a file of its size may take"
        ))),
        (_, Some("SIGABRT")) if said.contains("memory allocation") => {
            let memory = crate::config::Size(memory);
            Err(Outcome::Compile(format!(
                "compiling it took more than the {memory} of memory that a file of its size may take"
            )))
        }
        _ => Err(Outcome::Compile(format!("the process that compiles has broken ({status}): {said}"))),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<&'static str> {
    use std::os::unix::process::ExitStatusExt as _;
    nix::sys::signal::Signal::try_from(status.signal()?).ok().map(nix::sys::signal::Signal::as_str)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<&'static str> {
    None
}

/// Exit code of the process that compiles when the file cannot be compiled; what is wrong stands on stderr.
pub const REFUSED: u8 = 65;

/// What the process that compiles is told.
#[derive(Debug, Clone)]
pub struct Order {
    /// Where the machine code goes.
    pub cache: PathBuf,
    /// The engine's largest memory, bytes.
    pub largest: usize,
    /// Whether the engine has a pool.
    pub pooled: bool,
    /// CPU time that it may take, seconds.
    pub cpu: u64,
    /// Memory that it may take, bytes.
    pub memory: u64,
}

/// Compiles the policy on standard input into the cache: what the other process does.
///
/// # Errors
/// [`LoadError::Policy`] when the file cannot be compiled, [`LoadError::Engine`] for everything else.
pub fn compile_stdin(order: &Order) -> Result<(), LoadError> {
    let layout = Layout { pooled: order.pooled, largest: order.largest };
    let engine = opened(&order.cache).and_then(|cache| Engine::new(&config(layout, Some(cache))));
    let engine = engine.map_err(|error| LoadError::Engine(format!("{error:#}")))?;
    let mut bytes = Vec::new();
    limit(order.cpu, order.memory)
        .and_then(|()| io::stdin().lock().take(super::load::MAX_FILE).read_to_end(&mut bytes))
        .map_err(|error| LoadError::Engine(error.to_string()))?;
    match Component::new(&engine, &bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(LoadError::Policy { name: "stdin".into(), outcome: not_compiled(&error) }),
    }
}

/// Limits this process. The engine exists already: its pool is address space, not memory, and does not count.
#[cfg(unix)]
fn limit(cpu: u64, memory: u64) -> io::Result<()> {
    use nix::sys::resource::{Resource, setrlimit};
    // Nobody waits for it when its parent has gone.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_CPU, cpu, cpu + 1)?;
    #[cfg(target_os = "linux")]
    setrlimit(Resource::RLIMIT_DATA, memory, memory)?;
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
    // What neither computes nor ends, ends too.
    nix::unistd::alarm::set(u32::try_from(4 * cpu).unwrap_or(u32::MAX));
    Ok(())
}

#[cfg(not(unix))]
fn limit(_: u64, _: u64) -> io::Result<()> {
    Ok(())
}
