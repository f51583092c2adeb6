//! From a project to a component: run its build command, and make a component of what that left.

use super::Manifest;
use anyhow::{anyhow, bail};
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;
use wit_component::{ComponentEncoder, DecodedWasm};

/// The first bytes of every WebAssembly file, and those after them in a core module.
const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = b"\x01\0\0\0";

/// What every policy exports, whatever the version.
const INTERFACE: &str = "headcount:policy/policy";

/// Builds the project in `project` and writes the component to `NAME.wasm` in it; returns its path.
///
/// # Errors
/// One sentence that says what is wrong, and what to type.
pub fn component(project: &Path) -> anyhow::Result<PathBuf> {
    let manifest = Manifest::read(project)?;
    let component = build(project, &manifest)?;
    let path = manifest.component(project);
    fs::write(&path, component).map_err(|e| anyhow!("{} cannot be written: {e}", path.display()))?;
    Ok(path)
}

/// Builds the project for a trial: its `NAME.wasm`, which may be in use, stays as it is.
///
/// # Errors
/// As [`component`].
pub fn for_trial(project: &Path) -> anyhow::Result<NamedTempFile> {
    let component = build(project, &Manifest::read(project)?)?;
    let mut file = tempfile::Builder::new().prefix("headcount-").suffix(".wasm").tempfile()?;
    file.write_all(&component)?;
    Ok(file)
}

fn build(project: &Path, manifest: &Manifest) -> anyhow::Result<Vec<u8>> {
    let output = project.join(&manifest.output);
    // Most compilers do not make the folder that they write to.
    let folder = output.parent().unwrap_or(project);
    fs::create_dir_all(folder).map_err(|e| anyhow!("{} cannot be made: {e}", folder.display()))?;
    run(project, manifest)?;
    let built = fs::read(&output).map_err(|e| {
        let command = manifest.build.join(" ");
        anyhow!("`{command}` did not make {}: {e}; correct `output` in policy.toml", output.display())
    })?;
    encode(built).map_err(|e| anyhow!("{} {e}", output.display()))
}

/// Runs the build command. What it prints goes to stderr: stdout is for results.
fn run(project: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let Some((program, arguments)) = manifest.build.split_first() else {
        bail!("policy.toml has no command in `build`: write there what builds the policy, for example [\"make\"]");
    };
    let command = manifest.build.join(" ");
    let install = manifest.install.as_deref().unwrap_or("as the project's README.md says");
    // A path is one below the project; systems differ in what it is to them.
    let found = if program.contains('/') { path::absolute(project.join(program))? } else { program.into() };
    let mut builder = Command::new(found);
    builder.args(arguments).current_dir(project).stdin(Stdio::null()).stdout(io::stderr());
    match builder.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            bail!("`{command}` failed ({status}) and says why above; if a tool is missing: {install}")
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            bail!(
                "the policy is built with `{program}`, which is not installed; what it needs is installed so: {install}"
            )
        }
        Err(e) => bail!("`{command}` cannot be run: {e}"),
    }
}

/// Makes a component of a core module; a component stays as it is. An error goes on after the file's name.
fn encode(built: Vec<u8>) -> Result<Vec<u8>, String> {
    let component = match built.strip_prefix(MAGIC) {
        None => return Err("is no WebAssembly: `output` in policy.toml must name what the build makes".into()),
        Some(rest) if rest.starts_with(CORE_MODULE) => {
            let mut encoder = ComponentEncoder::default();
            let component = encoder.validate(true).module(&built).and_then(ComponentEncoder::encode);
            component.map_err(|e| format!("is a core module of which no component can be made: {e:#}"))?
        }
        Some(_) => built,
    };
    if !is_policy(&component).map_err(|e| format!("is damaged: {e:#}"))? {
        return Err(format!("does not export {INTERFACE}: build it for the world in wit/policy.wit"));
    }
    Ok(component)
}

fn is_policy(component: &[u8]) -> anyhow::Result<bool> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component)? else { return Ok(false) };
    let mut exports = resolve.worlds[world].exports.keys().map(|key| resolve.name_world_key(key));
    Ok(exports.any(|export| export.split('@').next() == Some(INTERFACE)))
}
