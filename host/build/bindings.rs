//! Generates what policies are bound to the interface with, for projects of `headcount policy new`: so their authors need
//! no generator.

use std::fs;
use std::path::Path;
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator};

const WORLD: &str = "health-policy";

/// Stands before the bindings for Rust.
const RUST_HEAD: &str = "\
//! What `wit-bindgen` makes of `wit/policy.wit`, and the export of the policy. There is nothing to change here.
#![allow(unsafe_code, unused_imports, missing_docs, clippy::all)]

// Built natively, as for tests, there is no host to export to.
#[cfg(target_family = \"wasm\")]
export!(Policy);
#[cfg(target_family = \"wasm\")]
use super::Policy;

";

/// Writes the bindings for Rust to `FOLDER/bindings.rs`.
///
/// # Errors
/// One line that says what is wrong.
pub fn rust(wit: &Path, folder: &Path) -> Result<(), String> {
    let options = wit_bindgen_rust::Opts {
        format: true,
        runtime_path: Some("crate::support::rt".into()),
        disable_custom_section_link_helpers: true,
        ..Default::default()
    };
    let files = generate(&mut options.build(), wit)?;
    for (_, source) in files.iter() {
        write(&folder.join("bindings.rs"), &[RUST_HEAD.as_bytes(), source].concat())?;
    }
    Ok(())
}

/// Writes the bindings for C to `policy.h`, `policy.c` and `policy_component_type.o` in `FOLDER`.
///
/// # Errors
/// One line that says what is wrong.
pub fn c(wit: &Path, folder: &Path) -> Result<(), String> {
    let options = wit_bindgen_c::Opts { rename_world: Some("policy".into()), ..Default::default() };
    for (name, content) in generate(&mut *options.build(), wit)?.iter() {
        let content = match str::from_utf8(content) {
            // There is one interface, and it is exported: names need not say so.
            Ok(source) if !name.ends_with(".o") => source
                .replace("exports_headcount_policy_policy_", "policy_")
                .replace("EXPORTS_HEADCOUNT_POLICY_POLICY_", "POLICY_")
                .into_bytes(),
            _ => content.to_vec(),
        };
        write(&folder.join(name), &content)?;
    }
    Ok(())
}

fn generate(generator: &mut dyn WorldGenerator, wit: &Path) -> Result<Files, String> {
    let (mut resolve, world) = world(wit)?;
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files).map_err(|e| format!("no bindings: {e:#}"))?;
    Ok(files)
}

fn world(wit: &Path) -> Result<(Resolve, WorldId), String> {
    let mut resolve = Resolve::default();
    let parsed = resolve.push_path(wit).and_then(|(package, _)| resolve.select_world(&[package], Some(WORLD)));
    let world = parsed.map_err(|e| format!("{}: {e:#}", wit.display()))?;
    Ok((resolve, world))
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|e| format!("{}: {e}", path.display()))
}
