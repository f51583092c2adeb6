//! `headcount policy`: policies of one's own.

mod bench;
mod build;
mod check;
mod explanation;
mod list;
mod new;
mod run;
mod test;

use crate::setup::Setup;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Writes a project to start from; it works as it is
    New(new::Args),
    /// Builds a project's policy; what would be refused is not written
    Build(build::Args),
    /// Says whether a file is a policy that works, step by step, also after the built-in policy with its default settings
    Check(check::Args),
    /// Has a policy judge the facts of one session
    Run(run::Args),
    /// Tries a policy on cases: what it is to make of which facts
    Test(test::Args),
    /// Measures what a policy costs, beside the built-in policy with its default settings
    Bench(bench::Args),
    /// Lists who judges, here and in the servers that run
    List(list::Args),
}

/// What every help text says of the settings.
const SETTINGS: &str = "What it takes as settings: a JSON object, or @ and the file that holds one";

pub fn run(config: Option<&Path>, command: Command) -> anyhow::Result<ExitCode> {
    let setup = || Setup::new(config);
    match command {
        Command::New(args) => new::run(&args),
        Command::Build(args) => build::run(&setup()?, &args),
        Command::Check(args) => check::run(&setup()?, &args),
        Command::Run(args) => run::run(&setup()?.without_decisions(), args),
        Command::Test(args) => test::run(&setup()?, &args),
        Command::Bench(args) => bench::run(&setup()?.without_cache(), &args),
        Command::List(args) => list::run(&setup()?, &args),
    }
}
