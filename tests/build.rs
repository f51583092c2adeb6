//! Builds the policies that tests are made with, so that `cargo test` alone is enough.

// A build script talks to cargo over stdout.
#![allow(clippy::print_stdout)]

#[path = "../host/build/component.rs"]
mod component;
#[path = "build/handwritten.rs"]
mod handwritten;

use std::env;
use std::path::{Path, PathBuf};

/// The policies in `guest/examples`.
const EXAMPLES: [&str; 3] = ["budget", "night_watch", "leak"];

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = [
        "tests/guest",
        "tests/misbehaving",
        "tests/build",
        "guest/examples",
        "guest/Cargo.toml",
        "wit",
        "Cargo.toml",
        "host/build/component.rs",
        "tests/build.rs",
    ];
    for path in sources {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    if let Err(error) = build(&workspace) {
        println!("cargo::error={error}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let built = handwritten::build(&workspace.join("tests/misbehaving"), &workspace.join("wit/policy.wit"), &out);
    if let Err(error) = built {
        println!("cargo::error={error:#}");
    }
}

fn build(workspace: &Path) -> Result<(), String> {
    let misbehaving = component::build(workspace, "misbehaving-policy")?;
    println!("cargo::rustc-env=HEADCOUNT_MISBEHAVING_POLICY={}", misbehaving.display());
    let examples = component::build_examples(workspace, "headcount-policy", &EXAMPLES)?;
    for (name, policy) in EXAMPLES.iter().zip(examples) {
        println!("cargo::rustc-env=HEADCOUNT_EXAMPLE_{}={}", name.to_uppercase(), policy.display());
    }
    Ok(())
}
