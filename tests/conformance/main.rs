//! A server with the tools, prompts and resources that the official conformance suite of MCP asks for, behind the HTTP server
//! of headcount: what the suite says of the protocol, it says of doors, tokens, guests and sessions as users get them.
//!
//! `conformance-server --allow-origin ORIGIN` listens at a port of its own and says which on stderr. It lets in who has a token
//! from `headcount token create`, as `headcount serve` does.

#![expect(deprecated, reason = "the suite asks for what newer revisions have given up, too")]

mod asking;
mod content;
mod input;
mod prompts;
mod resources;
mod seal;
mod server;
mod tasks;
mod tools;

use anyhow::Context as _;
use headcount::auth::Gate;
use headcount::http::{self, Doors, Tell};
use headcount::mcp::{Service, http::Endpoint};
use headcount::setup::{Rosters, Setup};
use server::{Fixtures, Shared};
use std::env;
use std::sync::Arc;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [_, origin] = &arguments[..] else { anyhow::bail!("usage: conformance-server --allow-origin ORIGIN") };
    let doors = Doors { address: Some(([127, 0, 0, 1], 0).into()), origins: vec![origin.clone()], ..Doors::default() };
    let setup = Setup::new(None)?;
    let gate = Gate::open(Arc::clone(&setup.store), Arc::clone(&setup.clock));
    let service = Service::start(setup, Rosters::default()).context("nobody can look")?;
    let shared = Arc::new(Shared::new()?);
    let endpoint = Endpoint::serving(Arc::new(service), move || Fixtures::new(Arc::clone(&shared)));
    let opened = |place: &str| anstream::eprintln!("the fixtures are at {place}/mcp");
    let tell = Tell { opened: Box::new(opened), asked: Box::new(|_| ()) };
    tokio::runtime::Runtime::new()?.block_on(http::serve(endpoint, gate, doors, tell))
}
