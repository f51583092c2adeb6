//! `headcount policy build`.

use crate::authoring::build::component;
use crate::cli::printer;
use crate::judge::digest;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let path = component(&args.project)?;
    let bytes = fs::read(&path).map_err(|e| anyhow::anyhow!("{} cannot be read: {e}", path.display()))?;
    printer::line(&format!("{}  {} bytes  sha256 {}", path.display(), bytes.len(), digest(&bytes)))?;
    Ok(ExitCode::SUCCESS)
}
