//! Compiles the built-in policy to a component and hands its path to the library, which embeds it. Generates the bindings
//! that the library writes into projects of policies.

// A build script talks to cargo over stdout.
#![allow(clippy::print_stdout)]

#[path = "build/bindings.rs"]
mod bindings;
#[path = "build/component.rs"]
mod component;

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for path in ["guest/src", "guest/Cargo.toml", "wit", "Cargo.toml", "host/build", "host/build.rs"] {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    if let Err(error) = build(&workspace) {
        println!("cargo::error={error}");
    }
}

fn build(workspace: &Path) -> Result<(), String> {
    let policy = component::build(workspace, "headcount-policy")?;
    println!("cargo::rustc-env=HEADCOUNT_BUILTIN_POLICY={}", policy.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let wit = workspace.join("wit");
    bindings::rust(&wit, &out)?;
    bindings::c(&wit, &out)
}
