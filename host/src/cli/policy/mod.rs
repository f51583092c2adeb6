//! `headcount policy`: policies of one's own.

mod build;
mod list;
mod new;

use crate::setup::Setup;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Writes a project to start from; it works as it is
    New(new::Args),
    /// Builds a project's policy
    Build(build::Args),
    /// Lists who judges, here and in the servers that run
    List(list::Args),
}

pub fn run(config: Option<&Path>, command: &Command) -> anyhow::Result<ExitCode> {
    let setup = || Setup::new(config);
    match command {
        Command::New(args) => new::run(args),
        Command::Build(args) => build::run(args),
        Command::List(args) => list::run(&setup()?, args),
    }
}
