//! Compiles the built-in policy to a component and hands its path to the library, which embeds it.

// A build script talks to cargo over stdout.
#![allow(clippy::print_stdout)]

#[path = "build/component.rs"]
mod component;

use std::path::Path;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for path in ["guest/src", "guest/Cargo.toml", "wit", "Cargo.toml", "host/build", "host/build.rs"] {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    match component::build(&workspace, "headcount-policy") {
        Ok(policy) => println!("cargo::rustc-env=HEADCOUNT_BUILTIN_POLICY={}", policy.display()),
        Err(error) => println!("cargo::error={error}"),
    }
}
