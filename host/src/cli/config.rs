//! `headcount config check` and `headcount config print`.

use super::printer;
use crate::config::{Environment, load};
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Says whether the configuration is sound, and all that is wrong with it
    Check,
    /// Prints the configuration as it is in effect
    Print {
        /// Say of each value where it comes from
        #[arg(long)]
        origin: bool,
    },
}

pub fn run(file: Option<&Path>, command: &Command) -> anyhow::Result<ExitCode> {
    let loaded = load(&Environment::of_process(), file, &[])?;
    match command {
        Command::Print { origin } => printer::write(&loaded.print(*origin)?)?,
        Command::Check => match &loaded.file {
            Some(file) => printer::line(&format!("{} is sound", file.display()))?,
            None => printer::line(
                "there is no configuration file; everything has its default or comes from the environment",
            )?,
        },
    }
    Ok(ExitCode::SUCCESS)
}
