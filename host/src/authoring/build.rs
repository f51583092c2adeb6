//! From a project to a component: run its build command, and make a component of what that left.

use super::Manifest;
use anyhow::{Context as _, bail};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wit_component::ComponentEncoder;

/// The first bytes of every WebAssembly file, and those that tell a core module from a component.
const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = b"\x01\0\0\0";

/// Builds the project in `project` and writes the component to `NAME.wasm` in it; returns its path.
///
/// # Errors
/// One sentence that says what is wrong, and what to type.
pub fn component(project: &Path) -> anyhow::Result<PathBuf> {
    let manifest = Manifest::read(project)?;
    let output = project.join(&manifest.output);
    // Most tools do not make the folder that they write to.
    let folder = output.parent().unwrap_or(project);
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    run(project, &manifest)?;
    let built = fs::read(&output).with_context(|| {
        format!(
            "`{}` ended well, but what it should have made, {}, cannot be read: correct `output` in policy.toml",
            manifest.build.join(" "),
            output.display()
        )
    })?;
    let component = encode(built).with_context(|| format!("no policy can be made of {}", output.display()))?;
    let path = project.join(format!("{}.wasm", manifest.name));
    fs::write(&path, component).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// Runs the build command. What it prints goes to stderr: stdout is for results.
fn run(project: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let Some((program, arguments)) = manifest.build.split_first() else {
        bail!("policy.toml has no command in `build`: write there what builds the policy, for example [\"make\"]");
    };
    let command = manifest.build.join(" ");
    let install = manifest.install.as_ref().map(|install| format!("type `{install}` in {}", project.display()));
    let install = install.unwrap_or_else(|| "see the project's README.md".to_owned());
    let ran =
        Command::new(program).args(arguments).current_dir(project).stdin(Stdio::null()).stdout(io::stderr()).status();
    match ran {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            bail!("`{command}` failed ({status}) and says why above; if it lacks a tool, {install}")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`{program}` is not installed, and the policy is built with it: {install}")
        }
        Err(error) => Err(error).with_context(|| format!("`{command}` cannot be run")),
    }
}

/// Makes a component of a core module; a component stays as it is.
fn encode(built: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    match built.strip_prefix(MAGIC) {
        None => bail!("it is no WebAssembly: `output` in policy.toml must name what the build makes"),
        Some(rest) if rest.starts_with(CORE_MODULE) => {
            let mut encoder = ComponentEncoder::default();
            let encoded = encoder.validate(true).module(&built).and_then(ComponentEncoder::encode);
            encoded.context("it is a core module without the interface of a policy, or asks for something from outside")
        }
        Some(_) => Ok(built),
    }
}
