//! `headcount stand-in KIND` and `headcount stand-in-server`: hidden, because they are of use only to `demo` and to tests.

use crate::demo::server::{self, Manners};
use crate::demo::stand_in::{self, Behaviour};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it does
    #[arg(value_parser = PossibleValuesParser::new(Behaviour::ALL.map(|(word, _)| word)).map(behaviour))]
    behaviour: Behaviour,
    /// The process that started it and with which it ends; the one whose child it is, if left out
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,
}

fn behaviour(word: String) -> Behaviour {
    Behaviour::ALL.iter().find(|(known, _)| *known == word).map_or(Behaviour::Idle, |(_, b)| *b)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    stand_in::run(args.behaviour, args.parent)
}

/// How a stand-in MCP server misbehaves.
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// Answers no handshake
    #[arg(long)]
    hangs: bool,
    /// Goes on when its input ends, and at SIGTERM
    #[arg(long)]
    stays: bool,
    /// Knows nothing of `server/discover`
    #[arg(long)]
    legacy: bool,
    /// Starts a process that holds its output open
    #[arg(long)]
    leaves_child: bool,
    /// Notes each call of a tool here
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

pub fn serve(args: ServerArgs) -> anyhow::Result<ExitCode> {
    let ServerArgs { hangs, stays, legacy, leaves_child, journal } = args;
    server::run(Manners { hangs, stays, legacy, leaves_child, journal })
}
