//! From a project to a component: run its build command, and make a component of what that left.

use super::{MANIFEST, Manifest};
use crate::files::{read_small, replace};
use crate::judge::MAX_FILE;
use anyhow::{anyhow, bail};
use std::fs::{self, File};
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

/// What a build has come to.
pub struct Built {
    /// The component.
    pub component: Vec<u8>,
    /// Where it belongs: `NAME.wasm` in the project.
    pub path: PathBuf,
}

impl Built {
    /// Puts the component in its place, where a server that follows it finds it whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        replace(&self.path, &self.component).map_err(|e| anyhow!("{} cannot be written: {e}", self.path.display()))
    }
}

/// Builds the project in `project`. Its `NAME.wasm`, which may be in use, stays as it is.
///
/// # Errors
/// One sentence that says what is wrong, and what to type.
pub fn build(project: &Path) -> anyhow::Result<Built> {
    let manifest = Manifest::read(project)?;
    // Two builds at a time would take each other's output away. Not every file system has locks.
    let lock = File::open(project.join(MANIFEST))?;
    lock.lock().or_else(|e| if e.kind() == ErrorKind::Unsupported { Ok(()) } else { Err(e) })?;
    let output = project.join(&manifest.output);
    make_folder(project, output.parent().unwrap_or(project))?;
    let mut aside = Aside::of(&output).map_err(|e| anyhow!("{} cannot be moved aside: {e}", output.display()))?;
    run(project, &manifest)?;
    aside.is_replaced = output.exists();
    let built = read_small(&output, MAX_FILE).map_err(|e| {
        let (command, output) = (manifest.build.join(" "), manifest.output.display());
        match e.kind() {
            ErrorKind::NotFound => anyhow!("`{command}` did not make {output}; correct `output` in policy.toml"),
            _ => anyhow!("what `{command}` makes cannot be read: {output}: {e}; correct `output` in policy.toml"),
        }
    })?;
    drop(aside);
    let component = encode(built).map_err(|e| anyhow!("{} {e}", output.display()))?;
    Ok(Built { component, path: manifest.component(project) })
}

/// Builds the project for a trial, in a file that is gone afterwards.
///
/// # Errors
/// As [`build`].
pub fn for_trial(project: &Path) -> anyhow::Result<NamedTempFile> {
    let built = build(project)?;
    let mut file = tempfile::Builder::new().prefix("headcount-").suffix(".wasm").tempfile()?;
    file.write_all(&built.component)?;
    Ok(file)
}

/// Makes the folder of the output, because most compilers do not; where links lead out of the project, that is left to them.
fn make_folder(project: &Path, folder: &Path) -> anyhow::Result<()> {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(project);
    let inside = fs::canonicalize(there)?.starts_with(fs::canonicalize(project)?);
    if inside {
        fs::create_dir_all(folder).map_err(|e| anyhow!("{} cannot be made: {e}", folder.display()))?;
    }
    Ok(())
}

/// What an earlier build has left, moved aside so that it is not taken for what this one makes. Unless this one makes
/// something, it comes back.
struct Aside {
    path: PathBuf,
    aside: PathBuf,
    is_replaced: bool,
}

impl Aside {
    fn of(output: &Path) -> io::Result<Self> {
        // A link to the output is the author's own.
        let path = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = path.with_file_name(format!(".{name}.before"));
        match fs::rename(&path, &aside) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(Self { path, aside, is_replaced: false }),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Where a link led to it, what is new may be in the place of the link.
        let is_replaced = self.is_replaced && self.path.exists();
        let done = if is_replaced { fs::remove_file(&self.aside) } else { fs::rename(&self.aside, &self.path) };
        match done {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!("{} is left of an earlier build: {error}", self.aside.display());
            }
            _ => {}
        }
    }
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
