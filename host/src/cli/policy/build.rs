//! `headcount policy build`.

use crate::authoring::build::{Built, build};
use crate::authoring::check::refused;
use crate::cli::printer;
use crate::judge::digest;
use crate::report::no_verdict;
use crate::setup::Setup;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let built = build(&args.project)?;
    let Built { component, path } = &built;
    if let Some(outcome) = refused(setup, component)? {
        let detail = no_verdict(&outcome).detail;
        printer::line(&format!("{} is not written, because it would be refused: {detail}", path.display()))?;
        return Ok(ExitCode::FAILURE);
    }
    built.write()?;
    printer::line(&format!("{}  {} bytes  sha256 {}", path.display(), component.len(), digest(component)))?;
    Ok(ExitCode::SUCCESS)
}
