//! What the authorization server keeps: clients that have registered, requests that wait for the owner's consent, and the
//! codes and refresh tokens that came of it. Of codes and tokens only digests are here.
//!
//! Each step that gives something is one transaction, which looks whether the grant is alive, so that nothing is given out
//! beside a revocation.

mod clients;
mod requests;
mod tokens;

pub use clients::Client;
pub use requests::{Asked, Request};
pub use tokens::{Consent, Pair, Redeemed};

#[cfg(test)]
mod tests;
