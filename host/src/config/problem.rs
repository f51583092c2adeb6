//! What is wrong with a setting, and where it was set.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the built-in default.
    Default,
    /// In a file.
    File {
        /// The file, as it was named.
        file: Arc<Path>,
        /// The line, from 1.
        line: usize,
        /// The character within the line, from 1.
        column: usize,
    },
    /// In an environment variable.
    Variable(String),
    /// By a flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => to.write_str("default"),
            Self::File { file, line, .. } => write!(to, "{}:{line}", file.display()),
            Self::Variable(name) => to.write_str(name),
            Self::Flag(name) => to.write_str(name),
        }
    }
}

/// One thing that is wrong. Its text names the place, the key, what was wanted and what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Where the value was set.
    pub origin: Origin,
    /// The key's whole path, as in `kind[1].name`; empty if the problem is not about a key.
    pub key: String,
    /// What was wanted and what was found.
    pub message: String,
    /// The line of the file, shown where the text could not even be read as TOML.
    pub excerpt: Option<String>,
}

impl Problem {
    /// Orders problems as a reader of the file meets them, those from elsewhere first.
    pub(super) fn position(&self) -> (usize, usize) {
        match self.origin {
            Origin::File { line, column, .. } => (line, column),
            _ => (0, 0),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.origin)?;
        if let Origin::File { column, .. } = self.origin {
            write!(to, ":{column}")?;
        }
        if !self.key.is_empty() {
            write!(to, ": {}", self.key)?;
        }
        write!(to, ": {}", self.message)?;
        if let Some(excerpt) = &self.excerpt {
            write!(to, "\n{excerpt}")?;
        }
        Ok(())
    }
}

/// So many problems are told at once: a file that is garbage has one for each of its lines.
pub(super) const MOST_TOLD: usize = 20;

/// Everything that is wrong, one line each: a user mends a file once, not once for each mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<_> = self.0.iter().take(MOST_TOLD).map(ToString::to_string).collect();
        to.write_str(&told.join("\n"))?;
        match self.0.len().saturating_sub(MOST_TOLD) {
            0 => Ok(()),
            more => write!(to, "\nand {more} more"),
        }
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// Where each value was set, by the path of its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Every key that has a value, and where it was set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.0.iter().map(|(key, origin)| (key.as_str(), origin))
    }

    /// Where the value of `key` itself was set.
    pub fn get(&self, key: &str) -> Option<&Origin> {
        self.0.get(key)
    }

    /// Where the value of `key` was set; if it was not, where the table or list that lacks it was.
    pub fn of(&self, key: &str) -> Origin {
        let mut key = key;
        loop {
            if let Some(origin) = self.0.get(key) {
                return origin.clone();
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None if key.is_empty() => return Origin::Default,
                None => key = "",
            }
        }
    }

    /// A problem with `key`, at the place where its value was set.
    pub fn problem(&self, key: &str, message: impl Into<String>) -> Problem {
        Problem { origin: self.of(key), key: key.into(), message: message.into(), excerpt: None }
    }

    pub(super) fn insert(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.into(), origin);
    }

    /// Takes over what a higher layer has set.
    pub(super) fn extend(&mut self, higher: Self) {
        self.0.extend(higher.0);
    }
}

/// The path of `name` in the table at `path`; a name that is not a bare TOML key is quoted.
pub(super) fn entry(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let dot = if path.is_empty() { "" } else { "." };
    if bare { format!("{path}{dot}{name}") } else { format!("{path}{dot}{name:?}") }
}

/// The path of one item of the list at `path`.
pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}
