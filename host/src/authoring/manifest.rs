//! `policy.toml`: how a policy is built. The build itself is the author's affair, so any language and tool will do.

use crate::files::read_small_text;
use anyhow::{anyhow, ensure};
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};

/// The file's name.
pub const MANIFEST: &str = "policy.toml";
/// Its largest size.
const MAX_FILE: u64 = 64 << 10;

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
        let text = read_small_text(&path, MAX_FILE).map_err(|e| {
            anyhow!("{file} cannot be read: {e}; `headcount policy new NAME` writes a project that has one")
        })?;
        let manifest: Self = toml::from_str(&text).map_err(|e| anyhow!("{file}: {}", e.message()))?;
        check_name(&manifest.name).map_err(|e| anyhow!("{file}: {e}"))?;
        manifest.check_output().map_err(|e| anyhow!("{file}: {e}"))?;
        Ok(manifest)
    }

    /// What is built is moved aside and read: nothing but a file of the project's own may be.
    fn check_output(&self) -> anyhow::Result<()> {
        let output = &self.output;
        let below = output.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        ensure!(
            below && output.file_name().is_some(),
            "`output` is {output:?}: it must be a file below the project's folder, as in \"target/policy.wasm\", without `..`"
        );
        let component = self.component(Path::new(""));
        ensure!(
            !output.components().filter(|part| *part != Component::CurDir).eq(component.components()),
            "`output` must be another file than {}, which is made of it and may be in use",
            component.display()
        );
        Ok(())
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
