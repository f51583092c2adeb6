//! The kinds of agents: a table of data (`kinds.toml`, then the user's), and how a program is held against it.

use super::command::{Command, Interpreters, Runs};
use crate::config::Kind;
use crate::observe::processes::Program;
use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A kind that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// A pattern is not a glob.
    #[error("kind {kind:?}: {field}: {source}")]
    Glob {
        /// The kind's name.
        kind: String,
        /// The key in the configuration.
        field: &'static str,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// It names nothing to recognise it by, so it would never be found.
    #[error("kind {kind:?}: needs at least one of exe, program, script and module")]
    Nothing {
        /// The kind's name.
        kind: String,
    },
}

/// All kinds, ready for use. Their order is their precedence: the user's first, as written.
#[derive(Debug)]
pub struct Kinds {
    all: Vec<Compiled>,
    interpreters: Interpreters,
    exe: Patterns,
    program: Patterns,
    script: Patterns,
    module: HashMap<String, Vec<usize>>,
    /// Programs by exact name, for processes that show nothing but their name.
    by_name: HashMap<String, usize>,
    /// What is no agent of any kind.
    exclude: Vec<Run>,
    /// What launches agents of any kind.
    launcher: GlobSet,
}

/// What a program was recognised as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// The kind's name.
    pub kind: Arc<str>,
    /// Whether it only starts the agent.
    pub launcher: bool,
    /// The first slot of what the program, script or module is given.
    pub args_from: usize,
    /// Why this rests on the process's name alone, where it does.
    pub doubt: Option<String>,
}

/// `kinds.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    exclude: Vec<Vec<String>>,
    launcher: Vec<String>,
    #[serde(rename = "interpreter")]
    interpreters: Interpreters,
    #[serde(rename = "kind")]
    kinds: Vec<Kind>,
}

/// What is left of a [`Kind`] when the patterns that find it stand in the common sets.
#[derive(Debug)]
struct Compiled {
    name: Arc<str>,
    exclude: Vec<Run>,
    launcher: GlobSet,
}

/// Adjoining slots.
type Run = Vec<GlobMatcher>;

/// One field's globs of all kinds: one look finds every kind that matches.
#[derive(Debug)]
struct Patterns {
    globs: GlobSet,
    /// For each of `globs`, whose it is.
    owner: Vec<usize>,
}

impl Kinds {
    /// The built-in kinds after the user's own; one of the user's with a built-in's name replaces it.
    ///
    /// # Errors
    /// A pattern of the user's that is no glob, or a kind without patterns.
    pub fn new(own: &[Kind]) -> Result<Self, KindError> {
        let table: Table = toml::from_str(include_str!("kinds.toml")).expect("the built-in table is read by a test");
        let built_in = table.kinds.iter().filter(|kind| own.iter().all(|mine| mine.name != kind.name));
        let kinds: Vec<&Kind> = own.iter().chain(built_in).collect();

        let mut module: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_name = HashMap::new();
        for (index, kind) in kinds.iter().enumerate() {
            if [&kind.exe, &kind.program, &kind.script, &kind.module].iter().all(|patterns| patterns.is_empty()) {
                return Err(KindError::Nothing { kind: kind.name.clone() });
            }
            for name in &kind.module {
                module.entry(name.clone()).or_default().push(index);
            }
            for name in kind.program.iter().filter(|name| !name.contains(['*', '?', '[', '{', '\\'])) {
                by_name.entry(name.clone()).or_insert(index);
            }
        }
        Ok(Self {
            exe: Patterns::new(&kinds, "exe", |kind| &kind.exe)?,
            program: Patterns::new(&kinds, "program", |kind| &kind.program)?,
            script: Patterns::new(&kinds, "script", |kind| &kind.script)?,
            all: kinds.into_iter().map(Compiled::new).collect::<Result<_, _>>()?,
            exclude: runs("every kind", &table.exclude)?,
            launcher: path_globs("every kind", "launcher", &table.launcher)?,
            interpreters: table.interpreters,
            module,
            by_name,
        })
    }

    /// What kind of agent this program is; `None`: not an agent. `comm` is the kernel's name of the process. It may
    /// be a version (`2.1.236`) or a thread's name (`MainThread`), so it counts only where nothing else can be read,
    /// and then only if it is exactly a kind's program.
    pub fn recognise(&self, program: &Program, comm: &str) -> Option<Recognised> {
        let exe = program.exe.as_deref().ok();
        let argv = match &program.argv {
            Ok(argv) if !argv.is_empty() => argv.as_slice(),
            _ => return self.recognise_by_path(exe).or_else(|| self.recognise_by_name(program, comm)),
        };
        let command = self.interpreters.understand(argv, exe)?;
        let words = Words { command, given: argv.get(command.args_from..).unwrap_or_default() };
        if words.any(&self.exclude) {
            return None;
        }
        // A path in the first slot stands in for an executable that may not be looked at.
        let exe = exe.or_else(|| argv.first().filter(|slot| slot.contains('/')).map(Path::new));
        let mut candidates = self.candidates(exe, &command);
        candidates.sort_unstable();
        let kind =
            candidates.into_iter().filter_map(|index| self.all.get(index)).find(|kind| !words.any(&kind.exclude))?;
        let path = match command.runs {
            Runs::Script(script) => Some(Path::new(script)),
            Runs::Program | Runs::Module(_) => exe,
        };
        let launcher = path.is_some_and(|path| self.launcher.is_match(path) || kind.launcher.is_match(path));
        Some(Recognised { kind: Arc::clone(&kind.name), launcher, args_from: command.args_from, doubt: None })
    }

    /// Whether this is an agent's program, be it at work as an agent or not: its servers and helpers are, too.
    pub fn is_program(&self, program: &Program) -> bool {
        let exe = program.exe.as_deref().ok();
        let argv = program.argv.as_deref().unwrap_or_default();
        match self.interpreters.understand(argv, exe) {
            Some(command) => {
                let exe = exe.or_else(|| argv.first().filter(|slot| slot.contains('/')).map(Path::new));
                !self.candidates(exe, &command).is_empty()
            }
            None => exe.is_some_and(|exe| !self.exe.kinds(exe).is_empty()),
        }
    }

    /// Every kind that the command matches.
    fn candidates(&self, exe: Option<&Path>, command: &Command<'_>) -> Vec<usize> {
        let mut found = self.program.kinds(Path::new(command.program));
        if let Some(exe) = exe {
            found.extend(self.exe.kinds(exe));
        }
        match command.runs {
            Runs::Program => {}
            Runs::Script(script) => found.extend(self.script.kinds(Path::new(script))),
            Runs::Module(name) => found.extend(self.module.get(name).into_iter().flatten()),
        }
        found
    }

    /// For a process whose executable can be seen and whose command line cannot.
    fn recognise_by_path(&self, exe: Option<&Path>) -> Option<Recognised> {
        let index = self.exe.kinds(exe?).into_iter().min()?;
        Some(self.doubtful(index, "recognised by its executable alone: its command line cannot be read".to_owned()))
    }

    /// For a process that shows nothing but its name.
    fn recognise_by_name(&self, program: &Program, comm: &str) -> Option<Recognised> {
        let why = program.argv.as_ref().err()?;
        let index = *self.by_name.get(comm)?;
        Some(self.doubtful(index, format!("recognised by the process's name alone: {why}")))
    }

    fn doubtful(&self, index: usize, doubt: String) -> Recognised {
        let kind = Arc::clone(&self.all[index].name);
        Recognised { kind, launcher: false, args_from: 0, doubt: Some(doubt) }
    }
}

impl Compiled {
    fn new(kind: &Kind) -> Result<Self, KindError> {
        Ok(Self {
            name: kind.name.as_str().into(),
            exclude: runs(&kind.name, &kind.exclude)?,
            launcher: path_globs(&kind.name, "launcher", &kind.launcher)?,
        })
    }
}

impl Patterns {
    fn new(kinds: &[&Kind], field: &'static str, of: fn(&Kind) -> &Vec<String>) -> Result<Self, KindError> {
        let mut globs = GlobSetBuilder::new();
        let mut owner = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            for pattern in of(kind) {
                globs.add(path_glob(pattern).map_err(glob_error(&kind.name, field))?);
                owner.push(index);
            }
        }
        Ok(Self { globs: globs.build().map_err(glob_error("all", field))?, owner })
    }

    fn kinds(&self, path: &Path) -> Vec<usize> {
        self.globs.matches(path).into_iter().map(|glob| self.owner[glob]).collect()
    }
}

/// The words that can exclude a command: its program's name, then what it is given.
struct Words<'a> {
    command: Command<'a>,
    given: &'a [String],
}

impl Words<'_> {
    fn any(&self, runs: &[Run]) -> bool {
        runs.iter().any(|run| self.contain(run))
    }

    /// Whether adjoining slots match the run, each slot as a whole. What follows `--` is text, not an option. A run
    /// that begins with a plain word is a subcommand and counts only where no other plain word came before it:
    /// `opencode serve` is a server, `opencode run serve` an agent with a short prompt.
    fn contain(&self, run: &[GlobMatcher]) -> bool {
        let Some(first) = run.first() else { return false };
        if run.len() == 1 && first.is_match(self.command.program) {
            return true;
        }
        let options = self.given.iter().position(|slot| slot == "--").unwrap_or(self.given.len());
        let mut after_option = false;
        for (at, slot) in self.given[..options].iter().enumerate() {
            let is_option = slot.starts_with('-');
            let rest = &self.given[at..options];
            if rest.len() >= run.len() && run.iter().zip(rest).all(|(glob, slot)| glob.is_match(slot)) {
                return true;
            }
            if !is_option && !after_option && !first.glob().glob().starts_with('-') {
                return false;
            }
            after_option = is_option;
        }
        false
    }
}

fn runs(kind: &str, runs: &[Vec<String>]) -> Result<Vec<Run>, KindError> {
    let matcher = |slot: &String| Ok(Glob::new(slot).map_err(glob_error(kind, "exclude"))?.compile_matcher());
    runs.iter().map(|run| run.iter().map(matcher).collect()).collect()
}

fn path_globs(kind: &str, field: &'static str, patterns: &[String]) -> Result<GlobSet, KindError> {
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        globs.add(path_glob(pattern).map_err(glob_error(kind, field))?);
    }
    globs.build().map_err(glob_error(kind, field))
}

/// A glob whose `*` stays within a folder.
fn path_glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

fn glob_error(kind: &str, field: &'static str) -> impl Fn(globset::Error) -> KindError {
    move |source| KindError::Glob { kind: kind.to_owned(), field, source }
}
