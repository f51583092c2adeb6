//! `headcount completions SHELL`.

use super::{Cli, printer};
use clap::CommandFactory as _;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "headcount", &mut script);
    printer::write(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
