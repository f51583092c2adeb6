//! Runs a program for `wasm32-wasip1`, such as the tests of the built-in policy, with its arguments: `wasm-runner FILE ARGUMENT…`.
//! It ends as the program does.
//!
//! The few functions of the system that Rust's standard library and its tests ask for stand in `wasi`. The crate that has
//! them all changes the features of wasmtime, and the whole workspace would compile that a second time.

mod wasi;

use std::env;
use std::process::ExitCode;
use wasi::{Exit, World};
use wasmtime::error::Context as _;
use wasmtime::{Engine, Linker, Module, Result, Store};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let file = arguments.first().context("usage: wasm-runner FILE ARGUMENTS")?;
    let engine = Engine::default();
    let module = Module::from_file(&engine, file).with_context(|| file.clone())?;
    let mut linker = Linker::new(&engine);
    wasi::link(&mut linker)?;
    // What else a module imports it does not call, or breaks with the function's name.
    linker.define_unknown_imports_as_traps(&module)?;
    let mut store = Store::new(&engine, World::new(arguments));
    let instance = linker.instantiate(&mut store, &module)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
    match start.call(&mut store, ()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => error.downcast::<Exit>().map(|Exit(code)| code),
    }
}
