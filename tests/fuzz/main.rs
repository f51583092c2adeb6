//! Runs one target: again and again with what a fuzzer makes up, or once for each file that is given.
//!
//! `FUZZ=TARGET cargo +nightly fuzz run --fuzz-dir tests/fuzz parser CORPUS tests/fuzz/seeds/TARGET`, where findings are inputs
//! that `cargo run -p headcount-fuzz FILE…` runs again; one that was mended becomes a seed.

#![cfg_attr(fuzzing, no_main)]

use headcount_fuzz::Target;
use std::sync::LazyLock;

/// The target that `FUZZ` names.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ").unwrap_or_default();
    let names = || headcount_fuzz::targets().map(|target| target.name).collect::<Vec<_>>().join(", ");
    headcount_fuzz::targets()
        .find(|target| target.name == name)
        .unwrap_or_else(|| panic!("set FUZZ to one of {}", names()))
});

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.run(bytes));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    for file in std::env::args_os().skip(1) {
        TARGET.run(&std::fs::read(file)?);
    }
    Ok(())
}
