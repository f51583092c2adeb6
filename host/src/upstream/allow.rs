//! Which tools of a server may be called: exact names, or all where none is named.

use super::error::Failure;
use rmcp::model::Tool;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The longest name that is taken.
const NAME_MAX: usize = 256;

/// The names that are allowed, which may change while calls are made.
#[derive(Debug, Default)]
pub struct Allow(RwLock<BTreeSet<String>>);

/// Why a list of names cannot be an allow-list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no tool's name: it is empty, too long or holds control characters")]
pub struct BadToolName(pub String);

impl Allow {
    /// Allows these, or all if there are none.
    ///
    /// # Errors
    /// When one of them can be no tool's name.
    pub fn new(names: &[String]) -> Result<Self, BadToolName> {
        let allow = Self::default();
        allow.set(names)?;
        Ok(allow)
    }

    /// Allows these from now on, or all if there are none; tells whether that changes anything.
    ///
    /// # Errors
    /// When one of them can be no tool's name. Nothing has changed then.
    pub fn set(&self, names: &[String]) -> Result<bool, BadToolName> {
        let bad =
            |name: &&String| name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control);
        if let Some(bad) = names.iter().find(bad) {
            return Err(BadToolName(bad.chars().take(80).collect()));
        }
        let names: BTreeSet<String> = names.iter().cloned().collect();
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *held != names;
        *held = names;
        Ok(changed)
    }

    /// The names that are allowed, sorted; `None`: all.
    pub fn names(&self) -> Option<Vec<String>> {
        let held = self.held();
        (!held.is_empty()).then(|| held.iter().cloned().collect())
    }

    /// Whether a tool may be called.
    ///
    /// # Errors
    /// When it may not, with those that may.
    pub fn check(&self, tool: &str) -> Result<(), Failure> {
        let held = self.held();
        if held.is_empty() || held.contains(tool) {
            return Ok(());
        }
        Err(Failure::NotAllowed { allowed: held.iter().cloned().collect() })
    }

    /// Those of `tools` that may be called.
    pub fn of(&self, tools: &[Tool]) -> Vec<Tool> {
        let held = self.held();
        tools.iter().filter(|tool| held.is_empty() || held.contains(&*tool.name)).cloned().collect()
    }

    /// How many of `tools` may be called.
    pub fn count(&self, tools: &[Tool]) -> usize {
        let held = self.held();
        tools.iter().filter(|tool| held.is_empty() || held.contains(&*tool.name)).count()
    }

    /// The names that are allowed, and that none of `tools` has.
    pub fn unknown(&self, tools: &[Tool]) -> Vec<String> {
        self.held().iter().filter(|name| !tools.iter().any(|tool| tool.name == **name)).cloned().collect()
    }

    fn held(&self) -> RwLockReadGuard<'_, BTreeSet<String>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn tool(name: &'static str) -> Tool {
        Tool::new(name, "", Arc::default())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn without_names_all_is_allowed() {
        let allow = Allow::new(&[]).unwrap();
        assert_eq!((allow.names(), allow.check("x"), allow.of(&[tool("a")]).len()), (None, Ok(()), 1));
    }

    #[test]
    fn with_names_only_exactly_these_are() {
        let allow = Allow::new(&names(&["b", "a", "a"])).unwrap();
        assert_eq!(allow.check("a"), Ok(()));
        for other in ["A", "a ", "ab", ""] {
            let told = allow.check(other).unwrap_err().to_string();
            assert_eq!(told, "the tool is not allowed; allowed are a, b");
        }
        assert_eq!(allow.of(&[tool("a"), tool("c")]).len(), 1);
        assert_eq!(allow.unknown(&[tool("a"), tool("c")]), ["b"]);
    }

    #[test]
    fn a_change_tells_whether_it_is_one() {
        let allow = Allow::new(&names(&["a"])).unwrap();
        assert_eq!(allow.set(&names(&["a", "a"])), Ok(false));
        assert_eq!(allow.set(&names(&["b"])), Ok(true));
        assert!(allow.set(&names(&["c", "x\u{1b}"])).is_err());
        assert_eq!(allow.names(), Some(names(&["b"])), "a bad list changes nothing");
        assert_eq!((allow.set(&[]), allow.names()), (Ok(true), None));
    }
}
