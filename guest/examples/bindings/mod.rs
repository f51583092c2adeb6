//! What `wit-bindgen` makes of `wit/policy.wit`, and the export of the policy. A project of `headcount policy new` has the
//! same code as a file: it needs no crate, because `support` has the little that it asks for at run time.
#![allow(unsafe_code, missing_docs, clippy::all)]

wit_bindgen::generate!({
    world: "health-policy",
    path: "../wit",
    runtime_path: "crate::support::rt",
    disable_custom_section_link_helpers: true,
});

// Built natively, as for tests, there is no host to export to.
#[cfg(target_family = "wasm")]
export!(Policy);
#[cfg(target_family = "wasm")]
use super::Policy;
