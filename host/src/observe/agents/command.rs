//! What a command line runs: a program, or the script or module that an interpreter was given, and with what.

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use std::path::Path;

/// What a command line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs<'a> {
    /// The program itself: no interpreter, or one without a script.
    Program,
    /// A script, as it was named.
    Script(&'a str),
    /// A module, by name.
    Module(&'a str),
}

/// A command line, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    /// The file name of the first slot.
    pub program: &'a str,
    /// What is run.
    pub runs: Runs<'a>,
    /// The first slot of what it is given.
    pub args_from: usize,
}

/// One interpreter: how to find the script among its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interpreter {
    /// Globs over its file name.
    program: Vec<String>,
    /// Words that come before the script and are no script (`run`).
    #[serde(default)]
    subcommands: Vec<String>,
    /// Options that take the next slot.
    #[serde(default)]
    values: Vec<String>,
    /// Options and words that mean: there is no script.
    #[serde(default)]
    inline: Vec<String>,
    /// Options whose next slot is a module.
    #[serde(default)]
    module: Vec<String>,
}

/// All interpreters that are looked through.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<Interpreter>")]
pub struct Interpreters {
    all: Vec<Interpreter>,
    globs: GlobSet,
    /// For each of `globs`, whose it is.
    owner: Vec<usize>,
}

impl TryFrom<Vec<Interpreter>> for Interpreters {
    type Error = globset::Error;

    fn try_from(all: Vec<Interpreter>) -> Result<Self, Self::Error> {
        let mut globs = GlobSetBuilder::new();
        let mut owner = Vec::new();
        for (index, interpreter) in all.iter().enumerate() {
            for program in &interpreter.program {
                globs.add(Glob::new(program)?);
                owner.push(index);
            }
        }
        Ok(Self { all, globs: globs.build()?, owner })
    }
}

impl Interpreters {
    /// Understands a command line. `exe` decides which interpreter it is where it is known, because a script may
    /// give its interpreter another name (`exec -a`); the first slot decides where `exe` is none (busybox).
    /// `None`: the command line is empty.
    pub fn understand<'a>(&self, argv: &'a [String], exe: Option<&Path>) -> Option<Command<'a>> {
        let program = file_name(argv.first()?);
        let by_exe = exe.and_then(Path::file_name).and_then(|name| self.named(Path::new(name)));
        let interpreter = by_exe.or_else(|| self.named(Path::new(program)));
        let (runs, args_from) = interpreter.and_then(|it| it.target(argv)).unwrap_or((Runs::Program, 1));
        Some(Command { program, runs, args_from })
    }

    fn named(&self, name: &Path) -> Option<&Interpreter> {
        let first = *self.globs.matches(name).first()?;
        self.all.get(*self.owner.get(first)?)
    }
}

impl Interpreter {
    /// The script or module, and the slot after it. `None`: there is none.
    fn target<'a>(&self, argv: &'a [String]) -> Option<(Runs<'a>, usize)> {
        let mut at = 1;
        loop {
            let slot = argv.get(at)?;
            let option = option_of(slot);
            if slot == "--" {
                return Some((Runs::Script(argv.get(at + 1)?), at + 2));
            } else if slot == "-" || has(&self.inline, option) {
                return None;
            } else if has(&self.module, option) {
                return Some((Runs::Module(argv.get(at + 1)?), at + 2));
            } else if has(&self.values, slot) {
                at += 2;
            } else if slot.starts_with(['-', '+']) || has(&self.subcommands, slot) {
                at += 1;
            } else {
                return Some((Runs::Script(slot), at + 1));
            }
        }
    }
}

/// The option that decides what a slot means: of `--eval=1` it is `--eval`, and of a cluster of letters the last,
/// which alone can take a value (`-Im` → `-m`).
fn option_of(slot: &str) -> &str {
    let name = slot.split_once('=').map_or(slot, |(name, _)| name);
    let is_cluster = name.len() > 2 && name.starts_with('-') && name[1..].bytes().all(|b| b.is_ascii_alphabetic());
    match (is_cluster, name.chars().next_back()) {
        (true, Some('m')) => "-m",
        (true, Some('c')) => "-c",
        _ => name,
    }
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|entry| entry == word)
}

/// What follows the last `/`.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
