//! `headcount policy`: policies of one's own.

mod build;
mod new;

use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Writes a project to start from; it works as it is
    New(new::Args),
    /// Builds a project's policy
    Build(build::Args),
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::New(args) => new::run(args),
        Command::Build(args) => build::run(args),
    }
}
