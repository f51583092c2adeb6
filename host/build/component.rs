//! Builds a guest crate to a component, for build scripts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles `package` of this workspace for WebAssembly and encodes the component to `OUT_DIR/NAME.wasm`.
///
/// The nested cargo has a target folder of its own, because the outer one is locked while build scripts run.
pub fn build(workspace: &Path, package: &str) -> PathBuf {
    ensure_target();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target_dir = out.join("guest-target");
    let status = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"))
        .args(["build", "--profile", "policy", "--locked", "--target", TARGET, "--package", package])
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", &target_dir)
        // What the outer cargo sets for the host (wrappers of clippy, flags of coverage tools) does not fit the guest.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the policy `{package}` does not compile for {TARGET}");

    let file = format!("{}.wasm", package.replace('-', "_"));
    let module = fs::read(target_dir.join(TARGET).join("policy").join(&file)).expect("the compiled policy is there");
    let component = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .expect("the compiled policy can be made a component");
    let imports = function_imports(&component);
    assert!(imports.is_empty(), "the policy `{package}` imports functions, and policies get none: {imports:?}");
    let path = out.join(file);
    fs::write(&path, component).expect("OUT_DIR is writable");
    path
}

/// Names of the instances that a component imports and that hold functions.
fn function_imports(component: &[u8]) -> Vec<String> {
    use wit_component::DecodedWasm;
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component).expect("a component decodes") else {
        panic!("the encoder made no component");
    };
    let holds_functions = |item: &wit_parser::WorldItem| match item {
        wit_parser::WorldItem::Interface { id, .. } => !resolve.interfaces[*id].functions.is_empty(),
        wit_parser::WorldItem::Function(_) => true,
        wit_parser::WorldItem::Type { .. } => false,
    };
    let imports = &resolve.worlds[world].imports;
    imports.iter().filter(|(_, item)| holds_functions(item)).map(|(key, _)| resolve.name_world_key(key)).collect()
}

/// Sees to it that the compiler knows the target, or says what to type.
fn ensure_target() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output().expect("rustc runs");
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    if sysroot.join("lib/rustlib").join(TARGET).is_dir() {
        return;
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    if !added.is_ok_and(|status| status.success()) {
        panic!("the Rust target for policies is missing and could not be added; type: rustup target add {TARGET}");
    }
}
