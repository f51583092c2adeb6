//! Retained MCP sessions that are shown among the agents, and what their settings may say together.

use super::problem::{Origins, Problem, entry, item};
use crate::names::{AgentName, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where retained MCP sessions are. One that is not absolute stands beside the configuration file; `~/` is the home directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retained {
    /// The folder of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub dir: Option<PathBuf>,
    /// A folder in which each one has a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub scan: Option<PathBuf>,
    /// The session that shows them; that of the project in which the folder lies where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What to call the one in `dir`; as its folder where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
}

impl Retained {
    /// The folder that is named, be it of one or of many.
    pub fn folder(&self) -> Option<&Path> {
        self.dir.as_deref().or(self.scan.as_deref())
    }

    /// The same, to be changed.
    pub(super) fn folder_mut(&mut self) -> Option<&mut PathBuf> {
        self.dir.as_mut().or(self.scan.as_mut())
    }
}

/// What is wrong with them that no schema can say.
pub(super) fn problems(all: &[Retained], origins: &Origins) -> Vec<Problem> {
    let wrong = |(at, one): (usize, &Retained)| {
        let here = item("retained", at);
        match (&one.dir, &one.scan, &one.name) {
            (None, None, _) | (Some(_), Some(_), _) => {
                Some(origins.problem(&here, "wanted exactly one of dir and scan"))
            }
            (None, Some(_), Some(_)) => {
                let message = "only has a meaning together with dir: those in scan are called as their folders";
                Some(origins.problem(&entry(&here, "name"), message))
            }
            _ => None,
        }
    };
    all.iter().enumerate().filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, LoadError, load};

    /// What is said of a configuration with these settings of retained sessions.
    fn said(settings: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, format!("[[retained]]\n{settings}\n")).unwrap();
        match load(&Environment::default(), Some(&file), &[]) {
            Ok(_) => String::new(),
            Err(LoadError::Invalid(problems)) => {
                problems.0.iter().map(|p| format!("{}: {}", p.key, p.message)).collect()
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn it_is_one_folder_or_a_folder_of_many() {
        assert_eq!(said("dir = 'a'\nsession = 'shop'\nname = 'sheets'"), "");
        assert_eq!(said("scan = 'a'\nsession = 'shop'"), "");
        for both_or_none in ["session = 'shop'", "dir = 'a'\nscan = 'b'"] {
            assert_eq!(said(both_or_none), "retained[0]: wanted exactly one of dir and scan");
        }
        assert!(
            said("scan = 'a'\nname = 'sheets'").starts_with("retained[0].name: only has a meaning together with dir")
        );
        for wrong in ["dir = ''", "dir = 'a'\nsession = 'not one'", "dir = 'a'\nname = \"\\u001b\"", "folder = 'a'"] {
            assert!(!said(wrong).is_empty(), "{wrong}");
        }
    }
}
