//! Who may see sessions of others.

use super::problem::{Origins, Problem, entry, item};
use super::types::Config;
use super::words::quoted;
use crate::names::https_url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What in [`Access::sees`] stands for everybody.
pub const EVERYBODY: &str = "*";

/// Lets somebody who comes over HTTP see sessions of others beside those of its own user. It applies to whom all that it names
/// is true of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-need-one" = ["user", "grant", "client"]))]
pub struct Access {
    /// Whose token it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub user: Option<String>,
    /// The id of its grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "grant-id"))]
    pub grant: Option<String>,
    /// The id of its OAuth client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub client: Option<String>,
    /// The users whose sessions it sees; `"*"` stands for everybody.
    #[schemars(length(min = 1))]
    pub sees: Vec<String>,
}

impl Access {
    /// Whether it applies to whoever shows this user's token, under this grant, as this OAuth client.
    pub fn applies(&self, user: &str, grant: &str, client: Option<&str>) -> bool {
        let is = |named: &Option<String>, found| named.as_deref().is_none_or(|named| Some(named) == found);
        is(&self.user, Some(user)) && is(&self.grant, Some(grant)) && is(&self.client, client)
    }

    /// Whether it is for the sessions of everybody.
    pub fn sees_all(&self) -> bool {
        self.sees.iter().any(|user| user == EVERYBODY)
    }
}

/// What is wrong with who may see what, beyond what the schema says: an id that no client can have. Other authorization servers
/// call theirs as they like.
pub(super) fn problems(config: &Config, origins: &Origins) -> Vec<Problem> {
    let is_id = |id: &str| {
        let digits = id.strip_prefix("hci_").unwrap_or_default();
        let is_registered = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_registered || https_url(id).is_ok() || !config.auth.issuers.is_empty()
    };
    let clients = config.access.iter().map(|access| access.client.as_deref()).enumerate();
    let wrong = clients.filter_map(|(n, id)| Some((n, id.filter(|id| !is_id(id))?)));
    let problem = |(n, id): (usize, &str)| {
        let wanted = "wanted the id of a client, hci_ and hexadecimal digits or an https URL, as `headcount grants list --json` shows it";
        origins.problem(&entry(&item("access", n), "client"), format!("{wanted}, found {}", quoted(id)))
    };
    wrong.map(problem).collect()
}
