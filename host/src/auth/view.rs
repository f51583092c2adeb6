//! The list of grants as every surface shows it. No secret is in it.

use super::Scopes;
use super::scope::Scope;
use crate::report::time;
use crate::store::grants::{Grant, GrantEnd};
use crate::text::clean;
use schemars::JsonSchema;
use serde::Serialize;

/// Grants, the newest first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Grants {
    /// `headcount.grants/1`.
    pub schema: &'static str,
    /// The grants.
    pub grants: Vec<GrantRow>,
}

/// One grant.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GrantRow {
    /// Its id.
    pub id: String,
    /// Whose grant it is.
    pub user_id: String,
    /// What people call it.
    pub name: String,
    /// The OAuth client that it was given to; null: a token of the user's own.
    pub client_id: Option<String>,
    /// What it permits.
    pub scopes: Vec<&'static str>,
    /// RFC 3339 in UTC.
    pub created_at: String,
    /// RFC 3339 in UTC; null: it does not expire.
    pub expires_at: Option<String>,
    /// RFC 3339 in UTC, to the minute; null: it never was.
    pub last_used_at: Option<String>,
    /// RFC 3339 in UTC; null: it was not.
    pub revoked_at: Option<String>,
    /// Whether it is alive, and else how it has ended.
    pub state: GrantState,
}

/// Whether a grant is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrantState {
    /// It is.
    Alive,
    /// Its time is over.
    Expired,
    /// Somebody has revoked it.
    Revoked,
}

/// Grants as they are shown.
pub(super) fn grants(grants: &[Grant], now_ms: u64) -> Grants {
    Grants { schema: "headcount.grants/1", grants: grants.iter().map(|grant| row(grant, now_ms)).collect() }
}

fn row(grant: &Grant, now_ms: u64) -> GrantRow {
    GrantRow {
        id: grant.id.clone(),
        user_id: grant.user_id.clone(),
        name: clean(&grant.name),
        client_id: grant.client_id.clone(),
        scopes: Scopes::of_text(&grant.scopes).iter().map(Scope::as_str).collect(),
        created_at: time(grant.created_at_ms),
        expires_at: grant.expires_at_ms.map(time),
        last_used_at: grant.last_used_at_ms.map(time),
        revoked_at: grant.revoked_at_ms.map(time),
        state: match grant.ended(now_ms) {
            None => GrantState::Alive,
            Some((_, GrantEnd::Expired)) => GrantState::Expired,
            Some((_, GrantEnd::Revoked)) => GrantState::Revoked,
        },
    }
}
