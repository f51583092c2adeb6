//! The environment, and the directories that it names. Nothing else in the crate reads it.

use crate::names::Instance;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Names the file to read as the configuration.
pub(super) const CONFIG: &str = "HEADCOUNT_CONFIG";
const STATE_DIR: &str = "HEADCOUNT_STATE_DIR";
const CACHE_DIR: &str = "HEADCOUNT_CACHE_DIR";
/// Marks an agent that was started by `headcount run`.
const AGENT: &str = "HEADCOUNT_AGENT";

/// The headcounts that have started this program as an upstream server, one through the other, parted by commas.
pub const STARTED_BY: &str = "HEADCOUNT_STARTED_BY";

/// Variables that begin like a setting's and are none.
pub(super) const NOT_SETTINGS: [&str; 5] = [CONFIG, STATE_DIR, CACHE_DIR, AGENT, STARTED_BY];

/// Where files are put that nobody keeps.
pub fn temp_dir() -> PathBuf {
    env::temp_dir()
}

/// The environment variables, as a value: what depends on them can be tested without changing the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of this process. A missing `HOME` is filled in from the user database.
    pub fn of_process() -> Self {
        let mut variables: BTreeMap<_, _> = env::vars_os().collect();
        if let Some(home) = env::home_dir() {
            variables.entry("HOME".into()).or_insert(home.into());
        }
        Self(variables)
    }

    /// A variable's value; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Every variable that is set, its value as text where it is text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let set = self.0.iter().filter(|(_, value)| !value.is_empty());
        set.filter_map(|(name, value)| Some((name.to_str()?, value.to_str())))
    }

    /// The headcounts that have started this program as an upstream server, the first one first.
    pub fn started_by(&self) -> Vec<Instance> {
        let named = self.get(STARTED_BY).and_then(OsStr::to_str).unwrap_or_default();
        named.split(',').filter_map(Instance::parse).collect()
    }

    /// The home directory.
    pub fn home(&self) -> Option<&Path> {
        self.get("HOME").map(Path::new)
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// The words that this program was started with, its own name first.
pub fn command_line() -> Vec<OsString> {
    env::args_os().collect()
}

/// Where headcount keeps its files. None need exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// What must last: the registry and the audit log.
    pub state: PathBuf,
    /// What can be made again: compiled policies.
    pub cache: PathBuf,
    /// What the user writes: `config.toml`.
    pub config: PathBuf,
}

/// Neither the variable that names a directory nor `HOME` is set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no place for headcount's {what}: set {variable} or HOME")]
pub struct NoDirectory {
    what: &'static str,
    variable: &'static str,
}

impl Dirs {
    /// The directories that `environment` names: headcount's own variables first, then those of the XDG base directory
    /// specification (on macOS too, where command-line tools follow it), then its defaults below `HOME`.
    ///
    /// # Errors
    /// When none of them is set.
    pub fn of(environment: &Environment) -> Result<Self, NoDirectory> {
        let own = |variable| Some(absolute(environment.get(variable)?));
        let missing = |what, variable| NoDirectory { what, variable };
        let state = own(STATE_DIR).or_else(|| xdg(environment, "XDG_STATE_HOME", ".local/state"));
        let cache = own(CACHE_DIR).or_else(|| xdg(environment, "XDG_CACHE_HOME", ".cache"));
        Ok(Self {
            state: state.ok_or_else(|| missing("state", STATE_DIR))?,
            cache: cache.ok_or_else(|| missing("cache", CACHE_DIR))?,
            config: config_dir(environment).ok_or_else(|| missing("configuration", "XDG_CONFIG_HOME"))?,
        })
    }
}

/// Where the configuration file is looked for.
pub(super) fn config_dir(environment: &Environment) -> Option<PathBuf> {
    xdg(environment, "XDG_CONFIG_HOME", ".config")
}

/// Makes a directory and those above it, for this user alone (0700). One that exists is left as it is.
///
/// # Errors
/// Those of the file system.
pub fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)
}

/// The specification says that a path which is not absolute is to be ignored.
fn xdg(environment: &Environment, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(environment.home()?.join(below_home)))?;
    Some(base.join("headcount"))
}

/// The path as seen from the working directory, so that it means the same after that has changed.
pub(super) fn absolute(path: impl AsRef<Path>) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_owned())
}
