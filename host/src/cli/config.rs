//! `headcount config check` and `headcount config print`.

use super::{ERROR, printer};
use crate::config::{Config, Environment, LoadError, Loaded, load};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Says whether the configuration is sound, and all that is wrong with it
    Check {
        /// Print JSON (schema headcount.config-check/1)
        #[arg(long)]
        json: bool,
    },
    /// Prints the configuration as it is in effect
    Print {
        /// Say of each value where it comes from
        #[arg(long)]
        origin: bool,
        /// Print JSON: the configuration under `config`, with --origin where each key was set under `origins`
        #[arg(long)]
        json: bool,
    },
}

/// What `config check` found.
#[derive(Serialize)]
struct Checked {
    schema: &'static str,
    ok: bool,
    file: Option<PathBuf>,
    problems: Vec<String>,
}

/// What `config print` shows.
#[derive(Serialize)]
struct Printed<'a> {
    schema: &'static str,
    config: &'a Config,
    #[serde(skip_serializing_if = "Option::is_none")]
    origins: Option<BTreeMap<&'a str, String>>,
}

pub fn run(file: Option<&Path>, command: &Command) -> anyhow::Result<ExitCode> {
    let loaded = load(&Environment::of_process(), file, &[]);
    match command {
        Command::Check { json: true } => check_as_json(loaded),
        Command::Check { json: false } => {
            match loaded?.file {
                Some(file) => printer::line(&format!("{} is sound", file.display()))?,
                None => {
                    printer::line("there is no configuration file; all settings are defaults or from the environment")?
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Print { origin, json } => {
            print(&loaded?, *origin, *json)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check_as_json(loaded: Result<Loaded, LoadError>) -> anyhow::Result<ExitCode> {
    let (file, problems) = match loaded {
        Ok(loaded) => (loaded.file, vec![]),
        Err(LoadError::Invalid(problems)) => (None, problems.0.iter().map(ToString::to_string).collect()),
        Err(unreadable) => return Err(unreadable.into()),
    };
    let ok = problems.is_empty();
    printer::json(&Checked { schema: "headcount.config-check/1", ok, file, problems })?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(ERROR) })
}

fn print(loaded: &Loaded, origin: bool, json: bool) -> anyhow::Result<()> {
    if !json {
        return Ok(printer::write(&loaded.print(origin)?)?);
    }
    let origins = origin.then(|| loaded.origins.iter().map(|(key, origin)| (key, origin.to_string())).collect());
    printer::json(&Printed { schema: "headcount.config/1", config: &loaded.config, origins })
}
