//! Puts the layers together: defaults, the file, the environment, the command line's flags; each wins over those before it.

use super::access;
use super::auth::Issuer;
use super::environment::{CONFIG, Environment, absolute, config_dir};
use super::layers::{Flag, defaults};
use super::problem::{Origins, Problems};
use super::retained::{self, Retained};
use super::toml::{parse, typed};
use super::types::Config;
use super::upstreams::{self, Upstream};
use crate::files::read_small_text;
use schemars::{Schema, schema_for};
use std::io;
use std::path::{Path, PathBuf};

/// Largest configuration file.
const MAX_FILE: u64 = 1 << 20;

/// The effective configuration.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// Where each setting was set.
    pub origins: Origins,
}

/// Why there is no configuration to work with.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the configuration {} (named by {named_by}): {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Who named it: a flag, a variable, or nobody.
        named_by: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Some settings are wrong.
    #[error(transparent)]
    Invalid(#[from] Problems),
}

/// The JSON schema of the configuration.
pub fn schema() -> Schema {
    schema_for!(Config)
}

/// Reads the configuration. `file` is what `--config` names; without it, `HEADCOUNT_CONFIG` and then the default place count.
///
/// # Errors
/// When a file that somebody named does not exist, a file cannot be read, or any setting is wrong.
pub fn load(environment: &Environment, file: Option<&Path>, flags: &[Flag]) -> Result<Loaded, LoadError> {
    let schema = schema();
    let mut document = defaults(&Config::default())?;
    let found = find(environment, file)?;
    if let Some((file, text)) = &found {
        document.overlay(parse(text, file)?);
    }
    document.overlay_environment(schema.as_value(), environment);
    document.overlay_flags(schema.as_value(), flags);
    let checked = typed::<Config>(document)?;
    let mut config = checked.value;
    let mut problems = upstreams::problems(&config.upstreams, &checked.origins);
    problems.extend(access::problems(&config, &checked.origins));
    problems.extend(retained::problems(&config.retained, &checked.origins));
    if !problems.is_empty() {
        return Err(Problems(problems).into());
    }
    let file = found.map(|(file, _)| file);
    if let Some(dir) = file.as_deref().and_then(Path::parent) {
        anchor(&mut config, dir, environment.home());
    }
    Ok(Loaded { config, file, origins: checked.origins })
}

/// The configuration file and its text. Only the default one may be missing.
fn find(environment: &Environment, file: Option<&Path>) -> Result<Option<(PathBuf, String)>, LoadError> {
    let (file, named_by) = if let Some(file) = file {
        (absolute(file), "--config")
    } else if let Some(file) = environment.get(CONFIG) {
        (absolute(file), CONFIG)
    } else if let Some(dir) = config_dir(environment) {
        (dir.join("config.toml"), "default")
    } else {
        return Ok(None);
    };
    match read_small_text(&file, MAX_FILE) {
        Ok(text) => Ok(Some((file, text))),
        // Also where a home is no directory, as `/dev/null` is for users of services.
        Err(error)
            if named_by == "default"
                && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(source) => Err(LoadError::Unreadable { file, named_by, source }),
    }
}

/// Makes paths in the file mean the same wherever headcount is started.
fn anchor(config: &mut Config, dir: &Path, home: Option<&Path>) {
    let files = config.policies.iter_mut().filter(|policy| !policy.is_builtin());
    let policies = files.map(|policy| &mut policy.path);
    let secrets = config.upstreams.iter_mut().flat_map(Upstream::secret_files);
    let keys = config.auth.issuers.iter_mut().filter_map(Issuer::jwks_file);
    let retained = config.retained.iter_mut().filter_map(Retained::folder_mut);
    for path in config.rosters.iter_mut().chain(policies).chain(secrets).chain(keys).chain(retained) {
        *path = match (path.strip_prefix("~"), home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => dir.join(&path),
        };
    }
}
