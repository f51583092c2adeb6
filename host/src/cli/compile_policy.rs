//! `headcount compile-policy`: the process that compiles what is not trusted. Headcount starts it itself.

use super::ERROR;
use crate::judge::{COMPILE_REFUSED, CompileOrder, LoadError, compile_stdin};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long)]
    cache: PathBuf,
    #[arg(long)]
    largest: usize,
    #[arg(long, action = clap::ArgAction::Set)]
    pooled: bool,
    #[arg(long)]
    cpu: u64,
    #[arg(long)]
    memory: u64,
}

pub fn run(args: Args) -> ExitCode {
    let Args { cache, largest, pooled, cpu, memory } = args;
    match compile_stdin(&CompileOrder { cache, largest, pooled, cpu, memory }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(LoadError::Policy { outcome, .. }) => {
            crate::stderr::line(&outcome.to_string());
            ExitCode::from(COMPILE_REFUSED)
        }
        Err(other) => {
            crate::stderr::line(&other.to_string());
            ExitCode::from(ERROR)
        }
    }
}
