//! Arranging that an agent sends its events: an entry for each event in its settings, or a plugin. Nothing else in the file
//! changes, and what was put in can be taken out without a trace.

mod command;
mod difference;
mod json;
mod settings;
mod way;

use crate::config::Environment;
use crate::files::{read_small_text, replace, replace_private};
use crate::observe::records::hooks::meaning::KINDS;
pub use command::is_mark;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use way::Way;

/// The largest file of settings that is read.
const LARGEST: u64 = 4 << 20;

/// What is to be done to a file, decided and not done yet.
#[derive(Debug)]
pub struct Plan {
    /// The file, as it is named.
    pub file: PathBuf,
    /// The file itself, where the name is a link to it.
    pub target: PathBuf,
    /// What it holds; `None`: there is none.
    before: Option<String>,
    /// What it is to hold.
    after: Option<String>,
    /// The events of its settings that headcount is added to.
    pub events: Vec<&'static str>,
    /// How many of the folders that it is in go with it, if nothing else is in them.
    folders: usize,
}

/// Why nothing can be arranged.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Nobody knows how.
    #[error("no hooks are known of {0:?}, only of {known}", known = KINDS.join(", "))]
    Kind(String),
    /// Whose settings are meant is not known.
    #[error("no home directory is known: set HOME")]
    Home,
    /// The path of this program is not one that settings can hold.
    #[error("the path of this program cannot stand in settings: {0}")]
    Program(String),
    /// The file cannot be read.
    #[error("{file}: {error}", file = file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("{file} cannot be written: {error}", file = file.display())]
    Write {
        /// Which.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A link whose other end is gone.
    #[error("{file} is a link to a file that is not there", file = .0.display())]
    Dangling(PathBuf),
    /// Somebody else has written it while it was changed here.
    #[error("{file} was changed by somebody else at the same time; nothing was written", file = .0.display())]
    Changed(PathBuf),
    /// Changing it might break it.
    #[error("it is no JSON, so nothing is changed in it: {0}")]
    NoJson(#[from] serde_json::Error),
    /// Settings are always one.
    #[error("it holds no JSON object, so nothing is changed in it")]
    NoObject,
    /// Which of the two counts is not known.
    #[error("the key {0:?} stands twice in it, so nothing is changed in it")]
    Twice(String),
    /// Something else stands there.
    #[error("what stands under `hooks` in it for {0} is no list of hooks, so nothing is changed in it")]
    NoHooks(String),
    /// Somebody wants it to stay as it is.
    #[error("it may not be written, so nothing is changed in it")]
    ReadOnly,
    /// A plugin of the same name.
    #[error("it was not written by headcount, so it is left as it is")]
    Foreign,
    /// What is wrong with which file.
    #[error("{file}: {error}", file = file.display())]
    In {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        error: Box<InstallError>,
    },
}

/// Whether an agent of this kind sends its events, for all of the user's projects.
#[derive(Debug)]
pub struct State {
    /// Whether its folder is here: somebody uses it.
    pub configured: bool,
    /// Whether the hooks are in its settings; or why that cannot be said.
    pub installed: Result<bool, InstallError>,
}

impl State {
    /// How it is with this kind of agent.
    pub fn of(kind: &str, environment: &Environment) -> Self {
        let configured = Way::of(kind, false, environment).is_ok_and(|way| way.folder().is_dir());
        let installed = Plan::uninstall(kind, false, environment).map(|plan| plan.changes());
        Self { configured, installed }
    }
}

impl Plan {
    /// What is to be done so that an agent of this kind runs `program`.
    ///
    /// # Errors
    /// The kind has no hooks, or its file is none that can be changed.
    pub fn install(kind: &str, project: bool, environment: &Environment, program: &Path) -> Result<Self, InstallError> {
        let way = Way::of(kind, project, environment)?;
        let named = || InstallError::Program(program.display().to_string());
        let program = program.to_str().filter(|path| !path.contains(char::is_control)).ok_or_else(named)?;
        let mut plan = Self::new(&way)?;
        let missing = plan.target.ancestors().skip(1).take_while(|folder| !folder.exists()).count();
        let installed = way.installed(kind, plan.before.as_deref(), program, missing);
        let (after, events) = installed.map_err(|error| plan.refused(error))?;
        (plan.after, plan.events) = (Some(after), events);
        plan.checked()
    }

    /// What is to be done so that it does not any more.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn uninstall(kind: &str, project: bool, environment: &Environment) -> Result<Self, InstallError> {
        let way = Way::of(kind, project, environment)?;
        let is_linked = way.file().is_symlink();
        let mut plan = Self::new(&way)?;
        if let Some(before) = &plan.before {
            match way.uninstalled(kind, before, is_linked).map_err(|error| plan.refused(error))? {
                Ok(after) => plan.after = Some(after),
                Err(folders) => (plan.after, plan.folders) = (None, folders),
            }
        }
        plan.checked()
    }

    /// A plan that changes nothing yet.
    fn new(way: &Way) -> Result<Self, InstallError> {
        let file =
            std::path::absolute(way.file()).map_err(|error| InstallError::Read { file: way.file().clone(), error })?;
        let target = match fs::canonicalize(&file) {
            Ok(target) => target,
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(InstallError::Read { file, error }),
            Err(_) if file.is_symlink() => return Err(InstallError::Dangling(file)),
            Err(_) => file.clone(),
        };
        let before = read(&target)?;
        Ok(Self { file, target, after: before.clone(), before, events: Vec::new(), folders: 0 })
    }

    /// The same, if its file may be changed so.
    fn checked(self) -> Result<Self, InstallError> {
        if self.changes() && fs::metadata(&self.target).is_ok_and(|found| found.permissions().readonly()) {
            return Err(self.refused(InstallError::ReadOnly));
        }
        Ok(self)
    }

    fn refused(&self, error: InstallError) -> InstallError {
        InstallError::In { file: self.target.clone(), error: Box::new(error) }
    }

    /// Whether there is anything to do.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }

    /// What changes, as `diff -u` shows it.
    pub fn difference(&self) -> String {
        difference::unified(&self.target.display().to_string(), self.before.as_deref(), self.after.as_deref())
    }

    /// Does it: the file is whole at every moment, and keeps its owner, group and mode.
    ///
    /// # Errors
    /// It cannot be written, or is not any more what it was.
    pub fn apply(&self) -> Result<(), InstallError> {
        if read(&self.target)? != self.before {
            return Err(InstallError::Changed(self.target.clone()));
        }
        let done = match &self.after {
            Some(text) => put(&self.target, text),
            None if self.before.is_none() => Ok(()),
            None if self.file.is_symlink() => fs::remove_file(&self.target).and_then(|()| fs::remove_file(&self.file)),
            None => fs::remove_file(&self.target),
        };
        done.map_err(|error| InstallError::Write { file: self.target.clone(), error })?;
        // One that is not empty is somebody's by now, and so are those above it.
        let _ = self.file.ancestors().skip(1).take(self.folders).try_for_each(fs::remove_dir);
        Ok(())
    }
}

fn read(file: &Path) -> Result<Option<String>, InstallError> {
    match read_small_text(file, LARGEST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(InstallError::Read { file: file.to_owned(), error }),
    }
}

/// A file that is made here is this user's alone.
fn put(file: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(file.parent().ok_or(ErrorKind::NotFound)?)?;
    if file.exists() { replace(file, text.as_bytes()) } else { replace_private(file, text.as_bytes()) }
}
