//! Builds a guest crate to a component, for build scripts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles `package` of this workspace for WebAssembly and encodes the component to `OUT_DIR/NAME.wasm`.
///
/// # Errors
/// One line that says what is wrong, or what to type.
pub fn build(workspace: &Path, package: &str) -> Result<PathBuf, String> {
    let built = compile(workspace, package, &[])?;
    component(&built, package)
}

/// Compiles examples of `package`, and encodes each to `OUT_DIR/EXAMPLE.wasm`.
///
/// # Errors
/// As [`build`].
#[allow(dead_code, reason = "not every build script that has this file needs it")]
pub fn build_examples(workspace: &Path, package: &str, examples: &[&str]) -> Result<Vec<PathBuf>, String> {
    let arguments: Vec<_> = examples.iter().flat_map(|example| ["--example", example]).collect();
    let built = compile(workspace, package, &arguments)?.join("examples");
    examples.iter().map(|example| component(&built, example)).collect()
}

/// Has cargo compile a package and returns the folder with what it made.
///
/// The nested cargo has a target folder of its own, because the outer one is locked while build scripts run.
fn compile(workspace: &Path, package: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    ensure_target()?;
    let target_dir = out_dir()?.join("guest-target");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--profile", "policy", "--locked", "--target", TARGET, "--package", package])
        .args(arguments)
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", &target_dir)
        // What the outer cargo sets for the host (wrappers of clippy, flags of coverage tools) does not fit the guest.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .status()
        .map_err(|e| format!("cargo does not run: {e}"))?;
    if !status.success() {
        return Err(format!("the policy `{package}` does not compile for {TARGET}: see above"));
    }
    Ok(target_dir.join(TARGET).join("policy"))
}

/// Makes a component of the core module `NAME.wasm` in `built`, and returns its path.
fn component(built: &Path, name: &str) -> Result<PathBuf, String> {
    let file = format!("{}.wasm", name.replace('-', "_"));
    let module = built.join(&file);
    let component = fs::read(&module).map_err(|e| format!("{}: {e}", module.display())).and_then(|m| encode(&m))?;
    let imports = function_imports(&component)?;
    if !imports.is_empty() {
        return Err(format!("the policy `{name}` imports {}, and policies get nothing", imports.join(", ")));
    }
    let path = out_dir()?.join(file);
    fs::write(&path, component).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn out_dir() -> Result<PathBuf, String> {
    env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| "OUT_DIR is not set: this is for build scripts".into())
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = wit_component::ComponentEncoder::default();
    let encoded = encoder.validate(true).module(module).and_then(|encoder| encoder.encode());
    encoded.map_err(|e| format!("no component can be made of the policy: {e:#}"))
}

/// Names of the instances that a component imports and that hold functions.
fn function_imports(component: &[u8]) -> Result<Vec<String>, String> {
    use wit_component::DecodedWasm;
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component).map_err(|e| format!("{e:#}"))? else {
        return Err("the encoder made no component".into());
    };
    let holds_functions = |item: &wit_parser::WorldItem| match item {
        wit_parser::WorldItem::Interface { id, .. } => !resolve.interfaces[*id].functions.is_empty(),
        wit_parser::WorldItem::Function(_) => true,
        wit_parser::WorldItem::Type { .. } => false,
    };
    let imports = &resolve.worlds[world].imports;
    Ok(imports.iter().filter(|(_, item)| holds_functions(item)).map(|(key, _)| resolve.name_world_key(key)).collect())
}

/// Sees to it that the compiler knows the target, or says what to type.
fn ensure_target() -> Result<(), String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot =
        Command::new(rustc).args(["--print", "sysroot"]).output().map_err(|e| format!("rustc does not run: {e}"))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    if sysroot.join("lib/rustlib").join(TARGET).is_dir() {
        return Ok(());
    }
    match Command::new("rustup").args(["target", "add", TARGET]).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!(
            "policies need Rust's target {TARGET}, and it could not be added; type: rustup target add {TARGET}"
        )),
    }
}
