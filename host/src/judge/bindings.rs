//! What `wit/policy.wit` looks like in Rust. Facts go in borrowed (`…Param`), verdicts come out owned (`…Result`).
#![allow(missing_docs)]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "health-policy",
    ownership: Borrowing { duplicate_if_necessary: true },
});
