//! Tests of the real executable, each in a home directory of its own. One binary, because each links everything.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod attention;
mod audit;
mod authoring;
mod cases;
mod clients;
mod command_line;
mod compiling;
mod decisions;
mod demo;
mod grants;
mod hook;
mod hook_install;
mod hooked;
mod hostile_names;
mod http;
mod http_client;
mod http_end;
mod http_mcp;
mod http_rest;
mod mcp;
mod mcp_client;
mod policies;
mod policy_edges;
mod policy_tools;
mod records;
mod records_by_pid;
mod records_codex;
mod records_conversations;
mod records_databases;
mod registering;
mod reload;
mod run;
mod run_registry;
mod run_signals;
mod run_terminal;
mod run_terminal_edges;
mod stand_ins;
mod status;
mod subscriptions;
mod tidy;
mod upstream;
mod upstream_cli;
mod upstream_http;
mod world;
