//! What a grant permits.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// One thing that may be permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Seeing sessions and their agents.
    StatusRead,
    /// Declaring agents, and taking them off the list.
    RosterWrite,
    /// Seeing who is connected.
    ClientsRead,
    /// Seeing grants, and revoking them.
    GrantsRevoke,
    /// Seeing what the server counts: how many there are of everything, and what it costs.
    MetricsRead,
}

/// A text that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no such scope; there are {}", Scope::ALL.map(Scope::as_str).join(", "))]
pub struct UnknownScope;

impl Scope {
    /// All there are.
    pub const ALL: [Self; 5] =
        [Self::StatusRead, Self::RosterWrite, Self::ClientsRead, Self::GrantsRevoke, Self::MetricsRead];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StatusRead => "status:read",
            Self::RosterWrite => "roster:write",
            Self::ClientsRead => "clients:read",
            Self::GrantsRevoke => "grants:revoke",
            Self::MetricsRead => "metrics:read",
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// What a grant permits, all in all. As text it is what OAuth calls `scope`: names with a space between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// What a text of names permits. A name that is not known here, as a newer headcount may have written, permits nothing.
    pub fn of_text(text: &str) -> Self {
        text.split(' ').filter_map(|name| name.parse().ok()).collect()
    }

    /// Whether this is permitted.
    pub fn permit(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them, in the order of [`Scope::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Scope::as_str).collect();
        to.write_str(&names.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scopes_are_what_their_text_says(which in proptest::sample::subsequence(Scope::ALL.to_vec(), 0..=5)) {
            let scopes: Scopes = which.iter().copied().collect();
            prop_assert_eq!(Scopes::of_text(&scopes.to_string()), scopes.clone());
            prop_assert!(Scope::ALL.iter().all(|scope| scopes.permit(*scope) == which.contains(scope)));
        }

        #[test]
        fn no_other_text_permits_anything(text in "[a-z: ]{0,40}") {
            let scopes = Scopes::of_text(&text);
            prop_assert!(scopes.iter().all(|scope| text.split(' ').any(|word| word == scope.as_str())));
        }
    }

    #[test]
    fn what_is_not_known_permits_nothing() {
        let scopes = Scopes::of_text("status:write clients:read status:read2");
        assert_eq!(scopes.iter().collect::<Vec<_>>(), [Scope::ClientsRead]);
        let known =
            "there is no such scope; there are status:read, roster:write, clients:read, grants:revoke, metrics:read";
        assert_eq!("status".parse::<Scope>().unwrap_err().to_string(), known);
    }
}
