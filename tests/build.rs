//! Builds the policies that misbehave, so that `cargo test` alone is enough.

// A build script talks to cargo over stdout.
#![allow(clippy::print_stdout)]

#[path = "../host/build/component.rs"]
mod component;
#[path = "build/handwritten.rs"]
mod handwritten;

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for path in ["guest", "misbehaving", "build.rs", "build", "../wit", "../Cargo.toml", "../host/build/component.rs"] {
        println!("cargo::rerun-if-changed={}", workspace.join("tests").join(path).display());
    }
    match component::build(&workspace, "misbehaving-policy") {
        Ok(policy) => println!("cargo::rustc-env=HEADCOUNT_MISBEHAVING_POLICY={}", policy.display()),
        Err(error) => println!("cargo::error={error}"),
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let built = handwritten::build(&workspace.join("tests/misbehaving"), &workspace.join("wit/policy.wit"), &out);
    if let Err(error) = built {
        println!("cargo::error={error:#}");
    }
}
