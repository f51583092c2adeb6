//! Which headcount it is, and which agent: what keeps those from being listed twice that several tell of.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;

/// A name of sixteen hexadecimal digits that is made of what the thing is, so that nothing has to be kept. It is a mark, not
/// a secret and no proof: whoever likes can claim it.
macro_rules! fingerprint {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(u64);

        impl $name {
            /// What these parts are hashed to. None of them can be told from it.
            pub fn of(parts: &[&[u8]]) -> Self {
                Self(hash(parts))
            }

            /// Takes `text` as it is, if it can be one.
            pub fn parse(text: &str) -> Option<Self> {
                parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(to, "{:016x}", self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, &'static str> {
                Self::parse(&text).ok_or("wanted sixteen hexadecimal digits")
            }
        }

        impl From<$name> for String {
            fn from(print: $name) -> Self {
                print.to_string()
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
                json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
            }
        }
    };
}

fingerprint! {
    /// Which headcount it is: all of one machine, pid namespace and state directory are the same.
    Instance
}

fingerprint! {
    /// Which agent it is, whoever tells of it. What one process does, also as several conversations, is the same.
    Identity
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn parse(text: &str) -> Option<u64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_one = text.len() == 16 && text.bytes().all(is_digit);
    u64::from_str_radix(text, 16).ok().filter(|_| is_one)
}

#[cfg(test)]
mod tests {
    use super::{Identity, Instance};

    #[test]
    fn it_is_read_as_it_is_written() {
        let one = Instance::of(&[b"boot", b"pid:[1]"]);
        assert_eq!(Instance::parse(&one.to_string()), Some(one));
        assert_ne!(one, Instance::of(&[b"bootpid:[1]"]), "no part runs into the next");
        assert_ne!(one, Instance::of(&[b"bootp", b"id:[1]"]));
        for none in ["", "0", "00000000000000000", "+000000000000001", "000000000000000G", "ABCDEF0000000000"] {
            assert_eq!(Identity::parse(none), None, "{none}");
        }
        assert_eq!(serde_json::to_string(&Instance::default()).unwrap(), "\"0000000000000000\"");
    }
}
