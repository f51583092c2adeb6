//! Names that users and agents give: what they may be, said once for every door that they come in by.

mod fingerprint;

pub use fingerprint::{Identity, Instance};

use crate::text::{clean, hex};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use url::{Host, Url};

/// The longest session name, in characters.
pub const SESSION_NAME_MAX: usize = 256;
/// The longest agent name, in characters.
const NAME_MAX: usize = 128;

/// The longest address, in bytes.
const URL_MAX: usize = 2048;

/// Why something cannot be a name. Its text says what can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Not of a session id's form.
    #[error(
        "{0:?} is no session id: it begins with an ASCII letter or digit and goes on with at most 63 of letters, digits, `.`, `_` and `-`"
    )]
    SessionId(String),
    /// Nothing but blanks.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// Too long.
    #[error("{what} has {found} characters: at most {most} are allowed")]
    TooLong {
        /// What the text was to be.
        what: &'static str,
        /// Its length in characters.
        found: usize,
        /// The greatest length.
        most: usize,
    },
    /// Line breaks, escapes and the like.
    #[error("{0} holds a control character")]
    Control(&'static str),
}

/// A session's id: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, so that it can stand in a path, an address and a shell unquoted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Takes `text` as it is, if it is a session id.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins_well && text.len() <= 64 && text.bytes().all(inner) {
            Ok(Self(text.into()))
        } else {
            Err(BadName::SessionId(text.chars().take(80).collect()))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a declared agent is called: 1 to 128 characters without control characters, blanks at its ends removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// Takes `text` without the blanks at its ends.
    ///
    /// # Errors
    /// When nothing is left, it is too long, or it holds a control character.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        match line("the agent's name", text, NAME_MAX)? {
            "" => Err(BadName::Empty("the agent's name")),
            name => Ok(Self(name.into())),
        }
    }

    /// A name after that of a file, which may hold anything. One that cannot stand as it is gets six digits that keep it apart
    /// from others that read alike then.
    pub fn after(file: &OsStr) -> Self {
        let shown = file.to_str().map(clean).filter(|shown| file == OsStr::new(shown));
        shown.and_then(|shown| Self::parse(&shown).ok().filter(|name| name.0 == shown)).unwrap_or_else(|| {
            let readable: String = clean(&file.to_string_lossy()).trim().chars().take(NAME_MAX - 7).collect();
            let digits = short_hash(file.as_encoded_bytes());
            Self(if readable.is_empty() { digits } else { format!("{readable}-{digits}") })
        })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of a declared agent of this name: readable, made of `[a-z0-9-]` only, and the same wherever and whenever it
    /// is made. The digest keeps names apart that read alike.
    pub fn agent_id(&self) -> String {
        let mut id = String::new();
        for c in self.0.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() {
                id.push(c);
            } else if !id.is_empty() && !id.ends_with('-') {
                id.push('-');
            }
            if id.len() == 40 {
                break;
            }
        }
        let stem = match id.trim_end_matches('-') {
            "" => "agent",
            stem => stem,
        };
        format!("{stem}-{}", short_hash(self.0.as_bytes()))
    }
}

/// The first six digits of the SHA-256 of `bytes`: what keeps ids apart that read alike.
pub fn short_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..3])
}

/// An address that may be gone to for what must not be forged: `https`, or `http` within this machine, without a user name or
/// password, of at most 2048 bytes.
///
/// # Errors
/// Why it is none.
pub fn https_url(text: &str) -> Result<Url, &'static str> {
    let url: Url = text.parse().map_err(|_| "it is no URL")?;
    check_https(&url)?;
    Ok(url)
}

/// The same for what is a URL already.
///
/// # Errors
/// Why it is none.
pub fn check_https(url: &Url) -> Result<(), &'static str> {
    let is_near = match url.host().ok_or("it names no host")? {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => name == "localhost",
    };
    match url.scheme() {
        "https" => {}
        "http" if is_near => {}
        _ => return Err("it is not https"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a user name or password in it");
    }
    if url.as_str().len() > URL_MAX {
        return Err("it is too long");
    }
    Ok(())
}

/// Checks what a session may be asked for by: its id, or a name of at most [`SESSION_NAME_MAX`] characters.
///
/// # Errors
/// When it can be neither.
pub fn check_session_name(asked: &str) -> Result<(), BadName> {
    match line("the session's id or name", asked, SESSION_NAME_MAX)? {
        "" => Err(BadName::Empty("the session's id or name")),
        _ => Ok(()),
    }
}

/// One line of text without the blanks at its ends. `what` names it in errors.
///
/// # Errors
/// When it has more than `most` characters or holds a control character.
pub fn line<'t>(what: &'static str, text: &'t str, most: usize) -> Result<&'t str, BadName> {
    let found = text.chars().count();
    if found > most {
        return Err(BadName::TooLong { what, found, most });
    }
    if text.contains(char::is_control) {
        return Err(BadName::Control(what));
    }
    Ok(text.trim())
}

/// What both kinds of name need to be read, written, shown and described.
macro_rules! text_type {
    ($name:ident, $schema:expr) => {
        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, BadName> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

text_type!(SessionId, json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }));
text_type!(AgentName, json_schema!({ "type": "string", "minLength": 1, "maxLength": NAME_MAX }));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_says_what_is_allowed() {
        let error = |text| SessionId::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("-x"),
            "\"-x\" is no session id: it begins with an ASCII letter or digit and goes on with at most 63 of letters, digits, `.`, `_` and `-`"
        );
        let error = |text: &str| AgentName::parse(text).unwrap_err().to_string();
        assert_eq!(error("  "), "the agent's name is empty");
        assert_eq!(error("a\u{1b}b"), "the agent's name holds a control character");
        let most = "the agent's name has 129 characters: at most 128 are allowed";
        assert_eq!(error(&"ä".repeat(129)), most);
        let error = |text: &str| check_session_name(text).unwrap_err().to_string();
        assert_eq!(error(" "), "the session's id or name is empty");
        assert_eq!(error("shop\n"), "the session's id or name holds a control character");
        assert_eq!(check_session_name("Shop rewrite"), Ok(()));
        assert_eq!(AgentName::parse(" a b ").unwrap().as_str(), "a b");
    }

    #[test]
    fn an_agent_id_is_readable_and_never_changes() {
        let id = |name| AgentName::parse(name).unwrap().agent_id();
        assert_eq!(id("Backend dev #2"), "backend-dev-2-2d5cce");
        assert_eq!(id("后端"), "agent-9b8263");
        assert_ne!(id("a b"), id("a-b"));
    }

    proptest! {
        #[test]
        fn a_session_id_is_what_its_schema_says(text in "[A-Za-z0-9._ä/\n-]{0,66}|[A-Za-z0-9._-]{60,66}") {
            // `\z`, because `$` of some engines also matches before a last line break.
            let pattern = regex::Regex::new(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\z").unwrap();
            prop_assert_eq!(SessionId::parse(&text).is_ok(), pattern.is_match(&text));
        }

        #[test]
        fn an_agent_id_is_a_session_ids_like(name in any::<String>()) {
            if let Ok(name) = AgentName::parse(&name) {
                prop_assert!(SessionId::parse(&name.agent_id()).is_ok());
            }
        }
    }
}
