//! Ids of what is elsewhere: valid, the same as long as the server's are, and never one that something here has by nature.

use crate::names::{AgentName, BadName, SessionId, short_hash};
use crate::text::clean;
use std::collections::HashSet;

/// A session's id and an agent's name hold at most so many characters.
const SESSION_MAX: usize = 64;
const NAME_MAX: usize = 128;

/// So much of an upstream's name is in them.
const UPSTREAM_MAX: usize = 24;

/// The id of a server's session: `shop-1a2b3c.build-box`. Where letters are lost, digits of what was said keep it apart.
///
/// # Errors
/// Never, by construction; the type cannot say so.
pub fn session_id(said: &str, upstream: &str) -> Result<SessionId, BadName> {
    if said == upstream {
        return SessionId::parse(said);
    }
    let end = format!(".{}", cut(upstream, UPSTREAM_MAX, upstream));
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let spelled: String = said.chars().map(allowed).collect();
    let begun = spelled.trim_start_matches(['.', '_', '-']);
    let begun = if begun.is_empty() { "session" } else { begun };
    SessionId::parse(&(cut(begun, SESSION_MAX - end.len(), said) + &end))
}

/// The name that tells an agent from all others: `claude-4242-1a2b@build-box`.
///
/// # Errors
/// Never, by construction; the type cannot say so.
pub fn agent_name(said: &str, upstream: &str) -> Result<AgentName, BadName> {
    let end = format!("@{upstream}");
    let shown = clean(said);
    let begun = match shown.trim() {
        "" => "agent",
        shown => shown,
    };
    AgentName::parse(&(cut(begun, NAME_MAX - end.chars().count(), said) + &end))
}

/// `text` where it is what was `said` and short enough, else a part of it with digits of that.
fn cut(text: &str, most: usize, said: &str) -> String {
    if text == said && text.chars().count() <= most {
        return text.to_owned();
    }
    let begin: String = text.chars().take(most - 7).collect();
    format!("{begin}-{}", short_hash(said.as_bytes()))
}

/// Ids of one list that are taken.
#[derive(Debug, Default)]
pub struct Taken(HashSet<String>);

impl Taken {
    /// `id`, or where it stands in the list before, one that is made of it.
    pub fn free(&mut self, id: &str) -> String {
        let mut free = id.to_owned();
        while !self.0.insert(free.clone()) {
            // A list of the same again and again is no longer to be searched through for each.
            free = format!("{id}#{}", self.0.len());
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_can_be_read_and_keep_apart_what_reads_alike() {
        assert_eq!(session_id("shop-1a2b3c", "build-box").unwrap().as_str(), "shop-1a2b3c.build-box");
        assert_eq!(agent_name("claude-7-0001", "build-box").unwrap().as_str(), "claude-7-0001@build-box");
        let shops = ["a b", "a/b", "a-b", "-a-b", "a b\u{202e}"].map(|id| session_id(id, "u").unwrap());
        let agents = ["a", "a ", "a\n", "a\u{202e}", ""].map(|id| agent_name(id, "u").unwrap());
        assert_eq!(shops.iter().collect::<HashSet<_>>().len(), shops.len(), "{shops:?}");
        assert_eq!(agents.iter().collect::<HashSet<_>>().len(), agents.len(), "{agents:?}");
        let mut taken = Taken::default();
        let listed = ["a", "a", "a#1", "a"].map(|id| taken.free(id));
        assert_eq!(listed.iter().collect::<HashSet<_>>().len(), listed.len(), "{listed:?}");
    }

    proptest! {
        #[test]
        fn every_id_is_valid_and_stays(said in any::<String>(), upstream in "[A-Za-z0-9][A-Za-z0-9._-]{0,63}") {
            let session = session_id(&said, &upstream);
            prop_assert!(session.is_ok(), "{session:?}");
            prop_assert_eq!(session, session_id(&said, &upstream));
            let agent = agent_name(&said, &upstream);
            prop_assert!(agent.is_ok(), "{agent:?}");
            prop_assert_eq!(agent, agent_name(&said, &upstream));
        }
    }
}
