//! Who may see sessions of others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What in [`Access::sees`] stands for everybody.
const EVERYBODY: &str = "*";

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
    #[schemars(length(min = 1))]
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
