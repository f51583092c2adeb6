//! `headcount policy new`.

use crate::authoring::project::{self, LANGUAGES};
use crate::cli::printer;
use crate::report::clean;
use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy's name, and its folder's: small letters, digits, `-` and `_`
    name: String,
    /// The language it is written in
    #[arg(long, value_parser = languages(), default_value = LANGUAGES[0].name)]
    lang: String,
    /// The folder below which the project is written [default: this one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn languages() -> PossibleValuesParser {
    LANGUAGES.iter().map(|language| language.name).into()
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let language = LANGUAGES.iter().find(|language| language.name == args.lang).context("a language of the list")?;
    let project = project::write(&args.dir.clone().unwrap_or_default(), &args.name, language)?;
    let (shown, typed) = (clean(&project.display().to_string()), project::typed(&project));
    printer::line(&format!("{shown} is a policy that works; its README.md says what to edit. Next:"))?;
    printer::line(&format!("  headcount policy test {typed}     # builds it and tries it on its cases"))?;
    printer::line(&format!(
        "  headcount policy build {typed}    # makes {shown}/{}.wasm, for the configuration",
        args.name
    ))?;
    Ok(ExitCode::SUCCESS)
}
