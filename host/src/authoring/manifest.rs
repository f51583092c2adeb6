//! `policy.toml`: how a policy is built. The build itself is the author's affair, so any language and tool will do.

use anyhow::{anyhow, ensure};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The file's name.
pub const MANIFEST: &str = "policy.toml";

/// What `policy.toml` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The policy's name; the component is called so too.
    pub name: String,
    /// The command that builds it, run in the project's folder.
    pub build: Vec<String>,
    /// What the command makes, below that folder: a component, or a core module of which one is made.
    pub output: PathBuf,
    /// How the tools that the command needs are installed.
    #[serde(default)]
    pub install: Option<String>,
}

impl Manifest {
    /// Where the component of a project is.
    pub fn component(&self, project: &Path) -> PathBuf {
        project.join(format!("{}.wasm", self.name))
    }

    /// Reads the manifest of a project.
    ///
    /// # Errors
    /// When there is none, or it says something else than it may; the text names the key.
    pub fn read(project: &Path) -> anyhow::Result<Self> {
        let path = project.join(MANIFEST);
        let file = path.display();
        let text = fs::read_to_string(&path).map_err(|e| {
            anyhow!("{file} cannot be read: {e}; `headcount policy new NAME` writes a project that has one")
        })?;
        let manifest: Self = toml::from_str(&text).map_err(|e| anyhow!("{file}: {}", e.message()))?;
        check_name(&manifest.name).map_err(|e| anyhow!("{file}: {e}"))?;
        Ok(manifest)
    }
}

/// Whether this can be the name of a policy: it becomes a folder, a file and a package in every language.
///
/// # Errors
/// When it cannot; the text says what can.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    let others = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    let sound = name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(others);
    ensure!(
        sound,
        "{name:?} cannot be the name of a policy: take a small letter and up to 39 more, digits, `-` or `_`"
    );
    Ok(())
}
