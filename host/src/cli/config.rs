//! `headcount config check` and `headcount config print`.

use super::{ERROR, printer};
use crate::config::{Config, EVERYBODY, Environment, LoadError, Loaded, load};
use crate::judge::Outcome;
use crate::observe::roster::retained::{name, nothing_yet};
use crate::observe::roster::{FileSource, Source as _};
use crate::observe::sessions::is_user;
use crate::report::clean;
use crate::setup::Setup;
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
    /// What may be meant so, and is more likely a slip.
    warnings: Vec<String>,
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
    match command {
        Command::Check { json } => check(file, *json),
        Command::Print { origin, json } => {
            print(&load(&Environment::of_process(), file, &[])?, *origin, *json)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(file: Option<&Path>, json: bool) -> anyhow::Result<ExitCode> {
    let (file, problems, warnings) = match Setup::new(file).map_err(|error| error.downcast::<LoadError>()) {
        Ok(setup) => (setup.loaded.file.clone(), problems(&setup)?, warnings(&setup.loaded)),
        Err(Ok(LoadError::Invalid(problems))) => {
            (None, problems.0.iter().map(|p| plain(&p.to_string())).collect(), Vec::new())
        }
        Err(Ok(unreadable)) => return Err(unreadable.into()),
        Err(Err(other)) => return Err(other),
    };
    let ok = problems.is_empty();
    if json {
        printer::json(&Checked { schema: "headcount.config-check/1", ok, file, problems, warnings })?;
        return Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(ERROR) });
    }
    for warning in warnings {
        crate::stderr::line(&format!("warning: {warning}"));
    }
    if !ok {
        anyhow::bail!(problems.join("\n"));
    }
    if let Some(file) = file {
        printer::line(&format!(
            "{} is sound, and so are the policies and rosters that it names",
            clean(&file.display().to_string())
        ))?;
    } else {
        printer::line("there is no configuration file; all settings are defaults or from the environment")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What may be meant so, and is more likely a slip.
fn warnings(loaded: &Loaded) -> Vec<String> {
    let retained = loaded.config.retained.iter().enumerate().filter_map(|(n, setting)| {
        let (why, place) = (nothing_yet(setting)?, loaded.origins.of(&format!("retained[{n}]")));
        Some(format!("{}: {}: {why}", clean(&place.to_string()), clean(&name(setting))))
    });
    strangers(loaded).into_iter().chain(retained).collect()
}

/// Where users are named that this machine does not know. Who comes by another authorization server may be one of them: then it is
/// said there alone.
fn strangers(loaded: &Loaded) -> Vec<String> {
    let config = &loaded.config;
    let issuers = config.auth.issuers.iter().enumerate();
    let mapped = issuers
        .flat_map(|(n, issuer)| issuer.users.values().map(move |user| (format!("auth.issuer[{n}].users"), user)));
    let mapped: Vec<(String, &String)> = mapped.collect();
    let accesses = config.access.iter().enumerate();
    let named = accesses.flat_map(|(n, access)| {
        let user = access.user.iter().map(move |user| (format!("access[{n}].user"), user));
        user.chain(access.sees.iter().map(move |user| (format!("access[{n}].sees"), user)))
    });
    let named = named.filter(|(_, user)| *user != EVERYBODY && mapped.iter().all(|(_, known)| known != user));
    let all = mapped.iter().cloned().chain(named);
    let unknown = all.filter(|(_, user)| is_user(user) == Some(false));
    let said = unknown.map(|(key, user)| {
        format!("{}: {key}: this machine knows no user {:?}", clean(&loaded.origins.of(&key).to_string()), clean(user))
    });
    said.collect()
}

/// A problem's lines without what would reach the terminal. Word by word, because they may be longer than a text of an agent's.
fn plain(text: &str) -> String {
    let line = |line: &str| line.split(' ').map(clean).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What is wrong with the policies and rosters that a sound configuration names.
fn problems(setup: &Setup) -> anyhow::Result<Vec<String>> {
    let place = |key: String| setup.loaded.origins.of(&key);
    let judge = setup.judge()()?;
    let chain = setup.config().chain();
    let named =
        |n: usize| chain[n].0.map_or("the built-in policy".into(), |n| place(format!("policy[{n}]")).to_string());
    let tried = judge.try_out().policies;
    let failed = tried.into_iter().enumerate().filter(|(_, policy)| policy.outcome != Outcome::Verdict);
    let policies = failed.map(|(n, policy)| {
        let loaded = if policy.digest.is_empty() { "" } else { "on trial " };
        format!("{}: policy {}: {loaded}{}", clean(&named(n)), clean(&policy.name), clean(&policy.outcome.to_string()))
    });
    let rosters = setup.config().rosters.iter().enumerate().filter_map(|(n, file)| {
        let error = FileSource::new(file.clone()).read().1?;
        let (place, file) = (place(format!("rosters[{n}]")).to_string(), file.display().to_string());
        Some(format!("{}: roster {}: {}", clean(&place), clean(&file), clean(&error)))
    });
    Ok(policies.chain(rosters).collect())
}

fn print(loaded: &Loaded, origin: bool, json: bool) -> anyhow::Result<()> {
    if !json {
        return Ok(printer::write(&loaded.print(origin)?)?);
    }
    let origins = origin.then(|| loaded.origins.iter().map(|(key, origin)| (key, origin.to_string())).collect());
    printer::json(&Printed { schema: "headcount.config/1", config: &loaded.config, origins })
}
