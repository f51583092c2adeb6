//! From bytes to a policy that is known to work, step by step: every wrong file is told apart here, before it is asked to
//! judge.

use super::bindings::{HealthPolicyPre, exports::headcount::policy::policy as wit};
use super::cache::digest;
use super::call::{describe, start, validate_settings};
use super::compile::Trust;
use super::engine::Runtime;
use super::limits::{Guard, Limits};
use super::outcome::{LoadError, Outcome};
use crate::files::read_small;
use std::path::Path;
use wasmtime::component::{Component, Linker, types::ComponentItem};

/// The name under which a policy exports its functions, version included.
const EXPORT: &str = "headcount:policy/policy@0.1.0";
const EXPORT_UNVERSIONED: &str = "headcount:policy/policy";
/// Largest policy file, bytes; interpreters with a standard library take some 20 MiB.
pub const MAX_FILE: u64 = 64 << 20;

/// A policy that was compiled, linked, tried and given its settings.
pub struct Policy {
    pub(super) pre: HealthPolicyPre<Guard>,
    pub(super) settings: String,
    pub(super) limits: Limits,
    /// What it says of itself.
    pub description: wit::Description,
    /// SHA-256 of its file, in hexadecimal.
    pub digest: String,
}

/// What a policy has to pass to be loaded, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The file begins as a component does.
    Component,
    /// It compiles within the limits that compiling has.
    Compile,
    /// It imports no function.
    Imports,
    /// It exports the interface in a version that is spoken here.
    Version,
    /// It starts, and its interface has the right shape.
    Start,
    /// It says what it is.
    Describe,
    /// It accepts its settings.
    Settings,
}

impl Step {
    /// All of them, in their order.
    pub const ALL: [Self; 7] =
        [Self::Component, Self::Compile, Self::Imports, Self::Version, Self::Start, Self::Describe, Self::Settings];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Compile => "compile",
            Self::Imports => "imports",
            Self::Version => "version",
            Self::Start => "start",
            Self::Describe => "describe",
            Self::Settings => "settings",
        }
    }
}

impl Policy {
    /// Compiles `bytes`, links them to nothing, instantiates once, and has the policy check `settings` (a JSON object or empty).
    ///
    /// # Errors
    /// [`LoadError::Policy`] with the outcome that says what the file is instead, or what is wrong with its settings.
    pub fn load(
        runtime: &Runtime,
        name: &str,
        bytes: &[u8],
        settings: &str,
        limits: Limits,
    ) -> Result<Self, LoadError> {
        Self::load_by_steps(runtime, bytes, Trust::Untrusted, settings, limits, &mut |_, _| {})
            .map_err(|outcome| LoadError::Policy { name: name.to_owned(), outcome })
    }

    /// Loads a policy from its file.
    ///
    /// # Errors
    /// As [`Policy::load`]; a file that cannot be read is [`Outcome::NotAPolicy`] too.
    pub fn load_file(runtime: &Runtime, path: &Path, settings: &str, limits: Limits) -> Result<Self, LoadError> {
        let name = path.display().to_string();
        match read(path) {
            Ok(bytes) => Self::load(runtime, &name, &bytes, settings, limits),
            Err(outcome) => Err(LoadError::Policy { name, outcome }),
        }
    }

    /// Loads a policy and tells of each step that it has passed, with what was found.
    ///
    /// # Errors
    /// What is wrong, in the first step that it does not pass.
    pub fn load_by_steps(
        runtime: &Runtime,
        bytes: &[u8],
        trust: Trust,
        settings: &str,
        limits: Limits,
        passed: &mut dyn FnMut(Step, String),
    ) -> Result<Self, Outcome> {
        look_at_header(bytes)?;
        passed(Step::Component, format!("a WebAssembly component of {} KiB", bytes.len().div_ceil(1024)));
        let component = runtime.compile(bytes, trust)?;
        passed(Step::Compile, "compiles".into());
        look_at_imports(&component, runtime)?;
        passed(Step::Imports, "imports no function".into());
        passed(Step::Version, look_at_exports(&component, runtime)?);
        let linked = Linker::<Guard>::new(runtime.engine()).instantiate_pre(&component);
        let pre = linked.and_then(HealthPolicyPre::new).map_err(|e| Outcome::NotAPolicy(format!("{e:#}")))?;
        let loading = limits.while_loading();
        // A record with another shape passes until the first instantiation.
        let started = start(runtime, &pre, &loading);
        started.answer?;
        passed(Step::Start, format!("starts, with {} KiB of memory", started.memory / 1024));
        let description = describe(runtime, &pre, &loading).answer?;
        passed(Step::Describe, format!("{} {}: {}", description.name, description.version, description.summary));
        let problems = validate_settings(runtime, &pre, &loading, settings).answer?;
        if !problems.is_empty() {
            return Err(Outcome::BadSettings(problems));
        }
        passed(Step::Settings, if settings.is_empty() { "needs no settings" } else { "accepts its settings" }.into());
        let digest = digest(bytes);
        Ok(Self { pre, settings: settings.to_owned(), limits, description, digest })
    }
}

/// Reads a policy's file whole.
///
/// # Errors
/// [`Outcome::NotAPolicy`] where it is no plain file of a sensible size, or cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, Outcome> {
    read_small(path, MAX_FILE).map_err(|error| Outcome::NotAPolicy(format!("its file cannot be read: {error}")))
}

/// The first eight bytes tell a component, a core module, text and machine code apart.
fn look_at_header(bytes: &[u8]) -> Result<(), Outcome> {
    let what = match bytes {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => return Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            "wanted a WebAssembly component, found a core module; `headcount policy build` or `wasm-tools component new` makes one of it"
        }
        [0, b'a', b's', b'm', ..] => {
            "wanted a WebAssembly component, found WebAssembly of another version than components have"
        }
        [] => "wanted a WebAssembly component, found an empty file",
        [0x7f, b'E', b'L', b'F', ..] => "wanted a WebAssembly component, found machine code (ELF)",
        [b'(', ..] => {
            "wanted a WebAssembly component, found WebAssembly as text; `wasm-tools parse` makes a component of it"
        }
        _ => "wanted a WebAssembly component, found something else",
    };
    Err(Outcome::NotAPolicy(what.to_owned()))
}

/// Names every import at once.
fn look_at_imports(component: &Component, runtime: &Runtime) -> Result<(), Outcome> {
    let holds_something = |item: &ComponentItem| match item {
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(runtime.engine()).any(|(_, e)| !matches!(e.ty, ComponentItem::Type(_)))
        }
        ComponentItem::Type(_) => false,
        _ => true,
    };
    let world = component.component_type();
    let imports = world.imports(runtime.engine()).filter(|(_, import)| holds_something(&import.ty));
    let imports: Vec<&str> = imports.map(|(name, _)| name).collect();
    if imports.is_empty() {
        return Ok(());
    }
    let hint = if imports.iter().any(|name| name.starts_with("wasi:")) {
        "; it was built for wasm32-wasip2: build for wasm32-unknown-unknown"
    } else {
        ""
    };
    let list = imports.join(", ");
    Err(Outcome::NotAPolicy(format!(
        "wanted a policy without imports, found {list}; policies get nothing from outside{hint}"
    )))
}

/// Tells another version of the interface from another interface.
fn look_at_exports(component: &Component, runtime: &Runtime) -> Result<String, Outcome> {
    let world = component.component_type();
    let exports: Vec<&str> = world.exports(runtime.engine()).map(|(name, _)| name).collect();
    match exports.iter().find(|name| name.split('@').next() == Some(EXPORT_UNVERSIONED)) {
        Some(found) if same_track(found) => Ok(format!("exports {found}")),
        Some(found) => Err(Outcome::WrongVersion(format!("wanted {EXPORT}, found {found}: {}", advice(found)))),
        None if exports.is_empty() => Err(Outcome::NotAPolicy(format!("wanted an export {EXPORT}, found none"))),
        None => Err(Outcome::NotAPolicy(format!("wanted an export {EXPORT}, found {}", exports.join(", ")))),
    }
}

fn advice(found: &str) -> &'static str {
    if found.contains('-') { "pre-releases are not loaded" } else { "build it against this host's wit/policy.wit" }
}

/// 0.1.x loads 0.1.y; pre-releases and other tracks do not.
fn same_track(export: &str) -> bool {
    let version = export.split('@').nth(1).unwrap_or_default();
    version.strip_prefix("0.1.").is_some_and(|patch| patch.bytes().all(|b| b.is_ascii_digit()) && !patch.is_empty())
}
