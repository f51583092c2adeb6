//! A policy on trial: with which settings, and after whom it judges.

use super::json::parse;
use super::project::typed;
use super::{MANIFEST, Manifest};
use crate::config::{self, nearest};
use crate::files::read_small;
use crate::judge::{BUILTIN, Judge, Judgement, Outcome, Place, Runtime, Trust, Verdict, read};
use crate::observe::facts::Snapshot;
use crate::report::clean;
use crate::setup::Setup;
use anyhow::Context as _;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest file of settings.
const MAX_SETTINGS: u64 = 1 << 20;

/// A chain that ends with the policy on trial.
pub struct Trial {
    judge: Judge,
}

/// The policy before the one on trial came to no verdict, so that there is nothing to try it on.
#[derive(Debug, thiserror::Error)]
#[error("the policy before it, {name}, came to no verdict: {outcome}")]
pub struct NothingBefore {
    name: String,
    outcome: Outcome,
}

impl Trial {
    /// Loads the policy, and the one `before` it. The built-in policy is always alone.
    pub fn new(setup: &Setup, runtime: Runtime, policy: Place, before: Option<Place>) -> Self {
        let before = before.filter(|_| policy.file.is_some());
        let chain = before.into_iter().chain([policy]).collect();
        Self { judge: Judge::on(runtime, chain, Arc::clone(&setup.clock)) }
    }

    /// Why the policy could not be loaded.
    pub fn refused(&self) -> Option<Outcome> {
        let last = self.judge.chain().len() - 1;
        self.judge.refused().find(|(n, ..)| *n == last).map(|(.., outcome)| outcome)
    }

    /// Has the chain judge.
    ///
    /// # Errors
    /// When the policy before it has failed.
    pub fn judge(&self, facts: &Snapshot) -> Result<Judgement, NothingBefore> {
        let mut judgement = self.judge.judge(facts);
        let before = judgement.policies.len() - 1;
        match judgement.policies[..before].iter().position(|policy| policy.outcome != Outcome::Verdict) {
            None => Ok(judgement),
            Some(n) => {
                let failed = judgement.policies.swap_remove(n);
                Err(NothingBefore { name: clean(&failed.name), outcome: failed.outcome })
            }
        }
    }

    /// The verdict of the policy on trial, if it comes to one.
    pub fn verdict(&self, facts: &Snapshot) -> Option<Verdict> {
        let judgement = self.judge(facts).ok().filter(|judgement| answer(judgement).is_ok());
        judgement?.verdict
    }
}

/// What the policy on trial, the last of the chain, came to.
///
/// # Errors
/// The outcome that is no verdict.
pub fn answer(judgement: &Judgement) -> Result<&Verdict, &Outcome> {
    match (&judgement.verdict, judgement.policies.last()) {
        (Some(verdict), Some(last)) if last.outcome == Outcome::Verdict => Ok(verdict),
        (_, Some(last)) => Err(&last.outcome),
        (_, None) => unreachable!("every chain ends with the policy on trial"),
    }
}

/// The place of the built-in policy before the one on trial, with these settings.
pub fn builtin(setup: &Setup, settings: &str) -> Place {
    Place { limits: setup.config().limits.into(), settings: settings.into(), ..Place::builtin() }
}

/// The settings that the built-in policy has in the chain as it is configured; none where it has no place there.
///
/// # Errors
/// None that is known: the configuration has been checked.
pub fn configured_builtin(setup: &Setup) -> anyhow::Result<Arc<str>> {
    let chain = setup.config().chain();
    let builtin = chain.iter().map(|(_, policy)| policy).find(|policy| policy.is_builtin());
    let place = builtin.map(|policy| Place::new(policy, setup.config().limits)).transpose()?;
    Ok(place.map_or_else(|| "".into(), |place| place.settings))
}

/// The place of a policy that is not in the configuration: its file, the project that it is built in, or `builtin`.
///
/// # Errors
/// When it is a project that has not been built.
pub fn place(setup: &Setup, file: &Path, settings: Map<String, Value>) -> anyhow::Result<Place> {
    let file = if file.join(MANIFEST).exists() { built(file)? } else { file.to_owned() };
    let policy = config::Policy { settings, ..config::Policy::at(file) };
    Ok(Place::new(&policy, setup.config().limits)?)
}

fn built(project: &Path) -> anyhow::Result<PathBuf> {
    let component = Manifest::read(project)?.component(project);
    let (shown, typed) = (clean(&project.display().to_string()), typed(project));
    anyhow::ensure!(component.exists(), "{shown} has not been built: type `headcount policy build {typed}`");
    Ok(component)
}

/// Refuses a policy whose file is not there.
///
/// # Errors
/// A sentence that says so, and what was probably meant.
pub fn must_exist(place: &Place) -> anyhow::Result<()> {
    let Some(error) = place.file.as_ref().and_then(|file| file.metadata().err()) else { return Ok(()) };
    let builtin = nearest(&place.name, [config::Policy::BUILTIN].into_iter());
    let hint = builtin.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    anyhow::bail!("the policy {} cannot be read: {error}{hint}", clean(&place.name))
}

/// The bytes of the policy that is to have a place, and where they are from.
///
/// # Errors
/// When its file cannot be read.
pub fn bytes(place: &Place) -> Result<(Vec<u8>, Trust), Outcome> {
    match &place.file {
        None => Ok((BUILTIN.to_vec(), Trust::Trusted)),
        Some(file) => Ok((read(file)?, Trust::UntrustedAgain)),
    }
}

/// Settings as they are typed: a JSON object, or `@` and the file that holds one.
///
/// # Errors
/// When they are anything else.
pub fn settings(typed: Option<&str>) -> anyhow::Result<Map<String, Value>> {
    match typed {
        None => Ok(Map::new()),
        Some(typed) => match typed.strip_prefix('@') {
            Some(file) => settings_in(Path::new(file)),
            None => parse(typed.as_bytes()).map_err(|what| {
                anyhow::anyhow!("--settings wants a JSON object, or @ and the file that holds one: {what}")
            }),
        },
    }
}

/// The settings in a file.
///
/// # Errors
/// When it cannot be read or holds anything but a JSON object.
pub fn settings_in(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let name = || clean(&file.display().to_string());
    let bytes = read_small(file, MAX_SETTINGS).map_err(anyhow::Error::from).with_context(name);
    let bytes = bytes.map_err(|error| anyhow::anyhow!("{error:#}"))?;
    parse(&bytes).map_err(|what| anyhow::anyhow!("{}: wanted a JSON object of settings: {what}", name()))
}
