//! What a token says, by the names that issuers have for it.

use super::super::{Denied, Scopes};
use crate::text::clean;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Where the client's id may stand: RFC 9068, OpenID Connect, and two large issuers.
const CLIENT: [&str; 4] = ["client_id", "azp", "appid", "cid"];

/// Where scopes may stand: RFC 9068, and what some have instead.
const SCOPE: [&str; 2] = ["scope", "scp"];

/// The longest name of a grant, in characters.
const NAME_MAX: usize = 64;

/// The claims of a token (RFC 7519).
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// A claim that is a text which is not empty.
    pub fn text(&self, claim: &str) -> Option<&str> {
        self.0.get(claim)?.as_str().filter(|text| !text.is_empty())
    }

    /// When the token expires, Unix milliseconds, if its time has come; with what clocks may differ by.
    pub fn times(&self, now_ms: u64, leeway_ms: u64) -> Result<u64, Denied> {
        let expires_at_ms = self.date("exp")?.ok_or(Denied::Refused("it does not say when it expires"))?;
        for claim in ["nbf", "iat"] {
            if self.date(claim)?.is_some_and(|at| at > now_ms.saturating_add(leeway_ms)) {
                return Err(Denied::Refused("its time has not come"));
            }
        }
        match expires_at_ms.saturating_add(leeway_ms) {
            expired if expired <= now_ms => Err(Denied::Expired),
            // What is too large for the database is beyond all times.
            expires => Ok(expires.min(i64::MAX.cast_unsigned())),
        }
    }

    /// A date, Unix milliseconds: whole or broken seconds, and nothing else.
    fn date(&self, claim: &str) -> Result<Option<u64>, Denied> {
        let Some(value) = self.0.get(claim) else { return Ok(None) };
        let seconds = value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        let seconds = seconds.ok_or(Denied::Refused("its dates are none"))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative, and saturates"
        )]
        Ok(Some((seconds * 1000.0) as u64))
    }

    /// The client that it was given to. It is shown in lists.
    pub fn client(&self) -> Result<&str, Denied> {
        let client = CLIENT.iter().find_map(|claim| self.text(claim));
        let client = client.ok_or(Denied::Refused("it does not name its client"))?;
        if clean(client) == client { Ok(client) } else { Err(Denied::Refused("its client's id cannot be one")) }
    }

    /// What it permits: names with spaces between, or a list of them.
    pub fn scopes(&self) -> Scopes {
        match SCOPE.iter().find_map(|claim| self.0.get(*claim)) {
            Some(Value::String(text)) => Scopes::of_text(text),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).flat_map(str::parse).collect(),
            _ => Scopes::default(),
        }
    }
}

/// What people call a grant that an issuer has given: who it is there, and where that is.
pub(super) fn grant_name(subject: &str, issuer: &str) -> String {
    let place = issuer.split_once("://").map_or(issuer, |(_, place)| place);
    clean(&format!("{subject} at {place}")).chars().take(NAME_MAX).collect()
}
