//! headcount: who is working in this session, what is each one doing, what does it cost the machine, is it healthy?
//!
//! Data flows one way: [`observe`] gathers facts, [`history`] adds how they move, [`judge`] has sandboxed policies make a
//! verdict of them, [`report`] is the one view of both, and [`cli`], [`mcp`] and [`http`] show it. [`monitor`] drives this
//! each second. Nothing further up this list is used by anything further down:
//!
//! | module | what lives there |
//! |---|---|
//! | [`cli`], [`mcp`], [`http`] | surfaces; they decide nothing |
//! | [`authoring`], [`demo`], [`hooks`], [`registering`], [`waiting`], [`query`], [`monitor`], [`setup`] | what surfaces share |
//! | `run` | starting agents and standing by them; Linux |
//! | `bridge`, [`upstream`] | a retained session driven through files, Linux; MCP servers that we are a client of |
//! | [`clients`], [`auth`] | the ledger of MCP clients; who may: tokens, grants, and ending them |
//! | [`report`] | the one view model |
//! | [`judge`] | wasmtime, and nothing of it elsewhere |
//! | [`history`] | how figures move |
//! | [`observe`] | processes, agents, sessions, rosters |
//! | [`store`] | registry, ledger, grants, audit log; the door to agents' databases |
//! | [`config`], [`names`], [`clock`], [`files`], [`text`], [`figures`], [`stderr`] | the only readers of settings and clocks; what may be a name; files and texts that are not trusted; figures that grow; where prose goes |

pub mod auth;
pub mod authoring;
#[cfg(target_os = "linux")]
pub mod bridge;
pub mod cli;
pub mod clients;
pub mod clock;
pub mod config;
pub mod demo;
pub mod figures;
pub mod files;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub mod fuzzing;
pub mod history;
pub mod hooks;
pub mod http;
pub mod judge;
pub mod mcp;
pub mod monitor;
pub mod names;
pub mod observe;
pub mod query;
pub mod registering;
pub mod report;
#[cfg(target_os = "linux")]
pub mod run;
pub mod setup;
pub mod stderr;
pub mod store;
pub mod text;
pub mod upstream;
pub mod waiting;
