//! The projects that `headcount policy new` writes. Each is the same policy, a budget, complete and with cases that it
//! passes: an author starts from what works.

use super::manifest::check_name;
use crate::report::clean;
use anyhow::{bail, ensure};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file of a project: its path there, and what is in it.
type File = (&'static str, &'static [u8]);

/// A language that policies can be written in.
#[derive(Debug)]
pub struct Language {
    /// What is typed for it.
    pub name: &'static str,
    files: &'static [File],
}

#[cfg(test)]
impl Language {
    /// A language whose projects have these files.
    pub(super) fn of(files: &'static [File]) -> Self {
        Self { name: "test", files }
    }
}

/// All languages; the first is the one that is taken where none is named.
pub const LANGUAGES: &[Language] = &[
    Language { name: "rust", files: RUST },
    Language { name: "python", files: PYTHON },
    Language { name: "js", files: JS },
    Language { name: "c", files: C },
];

/// A file below `host/templates/` under its own name or another.
macro_rules! template {
    ($language:literal, $path:literal) => {
        template!($language, $path, $path)
    };
    ($language:literal, $path:literal, $source:literal) => {
        ($path, include_bytes!(concat!("../../templates/", $language, "/", $source)))
    };
}

/// The example in `guest/examples` is the project's source, and what its tests prove is true of the project.
macro_rules! example {
    ($path:literal, $source:literal) => {
        ($path, include_bytes!(concat!("../../../guest/examples/", $source)))
    };
}

/// What was generated when headcount was built.
macro_rules! generated {
    ($path:literal, $source:literal) => {
        ($path, include_bytes!(concat!(env!("OUT_DIR"), "/", $source)))
    };
}

/// Cases of the budget below `tests/policies`, three files each.
macro_rules! cases {
    ($($case:literal)+) => { &[$(
        cases!(@ $case, "snapshot.json"),
        cases!(@ $case, "settings.json"),
        cases!(@ $case, "expected.json"),
    )+] };
    (@ $case:literal, $file:literal) => {(
        concat!("cases/", $case, "/", $file),
        include_bytes!(concat!("../../../tests/policies/budget/", $case, "/", $file)),
    )};
}

const RUST: &[File] = &[
    template!("rust", "Cargo.toml"),
    template!("rust", "policy.toml"),
    template!("rust", "README.md"),
    template!("rust", "rust-toolchain.toml"),
    template!("rust", ".gitignore", "gitignore"),
    example!("src/lib.rs", "budget.rs"),
    example!("src/support/mod.rs", "support/mod.rs"),
    example!("src/support/panic_text.rs", "support/panic_text.rs"),
    example!("src/support/rt.rs", "support/rt.rs"),
    example!("src/support/settings.rs", "support/settings.rs"),
    generated!("src/bindings.rs", "bindings.rs"),
];

const PYTHON: &[File] = &[
    template!("python", "policy.toml"),
    template!("python", "README.md"),
    template!("python", "requirements.txt"),
    template!("python", ".gitignore", "gitignore"),
    template!("python", "src/policy.py"),
];

const JS: &[File] = &[
    template!("js", "policy.toml"),
    template!("js", "README.md"),
    template!("js", "package.json"),
    template!("js", ".gitignore", "gitignore"),
    template!("js", "src/policy.js"),
];

const C: &[File] = &[
    template!("c", "policy.toml"),
    template!("c", "README.md"),
    template!("c", ".gitignore", "gitignore"),
    template!("c", "src/policy.c"),
    template!("c", "support/libc.c"),
    template!("c", "support/settings.c"),
    template!("c", "support/stdlib.h"),
    template!("c", "support/string.h"),
    template!("c", "support/support.c"),
    template!("c", "support/support.h"),
    generated!("bindings/policy.c", "policy.c"),
    generated!("bindings/policy.h", "policy.h"),
    generated!("bindings/policy_component_type.o", "policy_component_type.o"),
];

const WIT: File = ("wit/policy.wit", include_bytes!("../../../wit/policy.wit"));

const CASES: &[File] = cases! {
    "within_budget"
    "memory_over_budget"
    "memory_not_measured"
    "tokens_over_budget"
    "tokens_not_measured"
    "both_over_budget"
    "nobody_there"
    "wrong_settings"
    "no_settings"
};

/// The name of the policy in the templates; two spellings of it become the project's own.
const NAMED: [&str; 2] = ["\"budget\"", "budget.wasm"];

/// Writes a project called `name` in `language` to a folder of that name below `parent`, and returns its path.
///
/// # Errors
/// When the name cannot be one, there is something already, or it cannot be written; the text says what to do.
pub fn write(parent: &Path, name: &str, language: &Language) -> anyhow::Result<PathBuf> {
    check_name(name)?;
    let project = parent.join(name);
    let found = match fs::read_dir(&project) {
        Ok(entries) => entries.count(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => bail!("{} is in the way ({error}): take another name", project.display()),
    };
    ensure!(found == 0, "{} is there already and not empty: take another name, or remove it", project.display());
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err();
    let made = project.ancestors().take_while(is_missing).last();
    for (path, content) in language.files.iter().chain([&WIT]).chain(CASES) {
        let path = project.join(path);
        let folder = path.parent().unwrap_or(&project);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, named(content, name)));
        if let Err(error) = written {
            let left = remove(&project, made).err().map_or(String::new(), |e| format!("; parts of it are left: {e}"));
            bail!("{} cannot be written: {error}{left}", path.display());
        }
    }
    Ok(project)
}

/// Takes away half a project: the folders that were made for it, or all that is in the one that was there and empty.
fn remove(project: &Path, made: Option<&Path>) -> io::Result<()> {
    if let Some(made) = made {
        return if made.exists() { fs::remove_dir_all(made) } else { Ok(()) };
    }
    for entry in fs::read_dir(project)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}

/// A path as it is typed in a shell.
pub fn typed(path: &Path) -> String {
    let shown = clean(&path.display().to_string());
    let shown = if shown.starts_with('-') { format!("./{shown}") } else { shown };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !shown.is_empty() && shown.chars().all(plain) { shown } else { format!("'{}'", shown.replace('\'', r"'\''")) }
}

/// The content with the project's name in it; what is not text is left as it is.
fn named(content: &[u8], name: &str) -> Vec<u8> {
    match str::from_utf8(content) {
        Ok(text) => {
            NAMED.iter().fold(text.to_owned(), |text, old| text.replace(old, &old.replace("budget", name))).into()
        }
        Err(_) => content.to_vec(),
    }
}
