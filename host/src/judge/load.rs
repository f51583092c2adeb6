//! From bytes to a policy that is known to work: every wrong file is told apart here, before it is asked to judge.

use super::bindings::{HealthPolicyPre, exports::headcount::policy::policy as wit};
use super::cache::digest;
use super::call::{describe, validate_settings};
use super::engine::Runtime;
use super::limits::{Guard, Limits};
use super::outcome::{LoadError, Outcome};
use crate::files::read_small;
use std::path::Path;
use wasmtime::component::{Component, Linker, types::ComponentItem};

/// The name under which a policy exports its functions, version included.
const EXPORT: &str = "headcount:policy/policy@0.1.0";
/// Largest policy file; interpreters with a standard library take some 20 MiB.
const MAX_FILE: u64 = 64 << 20;
const EXPORT_UNVERSIONED: &str = "headcount:policy/policy";

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
        Self::try_load(runtime, bytes, settings, limits)
            .map_err(|outcome| LoadError::Policy { name: name.to_owned(), outcome })
    }

    /// Loads a policy from its file.
    ///
    /// # Errors
    /// As [`Policy::load`]; a file that cannot be read is [`Outcome::NotAPolicy`] too.
    pub fn load_file(runtime: &Runtime, path: &Path, settings: &str, limits: Limits) -> Result<Self, LoadError> {
        let name = path.display().to_string();
        match read_small(path, MAX_FILE) {
            Ok(bytes) => Self::load(runtime, &name, &bytes, settings, limits),
            Err(error) => {
                let why = format!("its file cannot be read: {error}");
                Err(LoadError::Policy { name, outcome: Outcome::NotAPolicy(why) })
            }
        }
    }

    fn try_load(runtime: &Runtime, bytes: &[u8], settings: &str, limits: Limits) -> Result<Self, Outcome> {
        look_at_header(bytes)?;
        let component = Component::new(runtime.engine(), bytes).map_err(|e| {
            Outcome::NotAPolicy(format!("the file is damaged or asks for more than policies get: {e:#}"))
        })?;
        look_at_world(&component, runtime)?;
        let linked = Linker::<Guard>::new(runtime.engine()).instantiate_pre(&component);
        let pre = linked.and_then(HealthPolicyPre::new).map_err(|e| Outcome::NotAPolicy(format!("{e:#}")))?;
        // A record with another shape passes until the first instantiation, which both of these make.
        let description = describe(runtime, &pre, &limits)?;
        let problems = validate_settings(runtime, &pre, &limits, settings)?;
        if !problems.is_empty() {
            return Err(Outcome::BadSettings(problems));
        }
        let digest = digest(bytes);
        Ok(Self { pre, settings: settings.to_owned(), limits, description, digest })
    }
}

/// The first eight bytes tell a component, a core module, text and machine code apart.
fn look_at_header(bytes: &[u8]) -> Result<(), Outcome> {
    let what = match bytes {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => return Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            "this is a core WebAssembly module, not a component; `wasm-tools component new` makes one of it"
        }
        [0, b'a', b's', b'm', ..] => "this is WebAssembly of another version than components have",
        [] => "the file is empty",
        [0x7f, b'E', b'L', b'F', ..] => "this is machine code (ELF); policies are given as WebAssembly components",
        [b'(', ..] => "this is WebAssembly as text; `wasm-tools parse` makes a component of it",
        _ => "this is no WebAssembly component",
    };
    Err(Outcome::NotAPolicy(what.to_owned()))
}

/// Names every import at once, and tells another version of the interface from another interface.
fn look_at_world(component: &Component, runtime: &Runtime) -> Result<(), Outcome> {
    let world = component.component_type();
    let holds_something = |item: &ComponentItem| match item {
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(runtime.engine()).any(|(_, e)| !matches!(e.ty, ComponentItem::Type(_)))
        }
        ComponentItem::Type(_) => false,
        _ => true,
    };
    let imports: Vec<&str> = world
        .imports(runtime.engine())
        .filter(|(_, import)| holds_something(&import.ty))
        .map(|(name, _)| name)
        .collect();
    if !imports.is_empty() {
        let hint = if imports.iter().any(|name| name.starts_with("wasi:")) {
            "; it was built for a WASI target: build for wasm32-unknown-unknown"
        } else {
            ""
        };
        let list = imports.join(", ");
        return Err(Outcome::NotAPolicy(format!("it asks for {list}, and policies get nothing from outside{hint}")));
    }
    let exports: Vec<&str> = world.exports(runtime.engine()).map(|(name, _)| name).collect();
    match exports.iter().find(|name| name.split('@').next() == Some(EXPORT_UNVERSIONED)) {
        Some(found) if !same_track(found) => {
            Err(Outcome::WrongVersion(format!("it is built for {found}; this host speaks {EXPORT}")))
        }
        Some(_) => Ok(()),
        None => Err(Outcome::NotAPolicy(format!("it does not export {EXPORT}"))),
    }
}

/// 0.1.x loads 0.1.y; pre-releases and other tracks do not.
fn same_track(export: &str) -> bool {
    let version = export.split('@').nth(1).unwrap_or_default();
    version.strip_prefix("0.1.").is_some_and(|patch| patch.bytes().all(|b| b.is_ascii_digit()) && !patch.is_empty())
}
