//! Builds the misbehaving policy, so that `cargo test` alone is enough.

// A build script talks to cargo over stdout.
#![allow(clippy::print_stdout)]

#[path = "../host/build/component.rs"]
mod component;

use std::path::Path;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for path in ["tests/guest", "wit", "Cargo.toml", "host/build/component.rs", "tests/build.rs"] {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    match component::build(&workspace, "misbehaving-policy") {
        Ok(policy) => println!("cargo::rustc-env=HEADCOUNT_MISBEHAVING_POLICY={}", policy.display()),
        Err(error) => println!("cargo::error={error}"),
    }
}
