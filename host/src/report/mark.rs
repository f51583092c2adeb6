//! What a caller has been told of already, as a text that it keeps: any process can tell by it what is new, and none has to
//! remember who asked.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How the text begins.
const OPENING: &str = "m";

/// The needs that stood at one moment, each as eight digits of a hash: `m.1f3b5d79.89abcdef`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark(BTreeSet<u32>);

/// Not one of ours.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a mark; take `mark` of the answer before as it is")]
pub struct BadMark(String);

impl Mark {
    /// What a need is known by that these words tell from others, the same in every process.
    pub(super) fn key(words: &[&str]) -> u32 {
        let mut hash = Sha256::new();
        for word in words {
            hash.update(word.as_bytes());
            hash.update([0]);
        }
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.finalize());
        u32::from_be_bytes([a, b, c, d])
    }

    /// Whether the need with this key is one of them.
    pub(super) fn contains(&self, key: u32) -> bool {
        self.0.contains(&key)
    }

    /// Forgets what stands no more, so that it is new when it begins again.
    pub fn keep_only(&mut self, standing: &Self) {
        self.0.retain(|key| standing.0.contains(key));
    }
}

impl FromIterator<u32> for Mark {
    fn from_iter<I: IntoIterator<Item = u32>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(OPENING)?;
        self.0.iter().try_for_each(|key| write!(to, ".{key:08x}"))
    }
}

impl FromStr for Mark {
    type Err = BadMark;

    fn from_str(text: &str) -> Result<Self, BadMark> {
        let key = |digits: &str| {
            let all_digits = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            u32::from_str_radix(digits, 16).ok().filter(|_| all_digits)
        };
        let mut parts = text.trim().split('.');
        let keys = (parts.next() == Some(OPENING)).then(|| parts.map(key).collect::<Option<_>>()).flatten();
        keys.map(Self).ok_or_else(|| BadMark(super::clean(text)))
    }
}

impl Serialize for Mark {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl JsonSchema for Mark {
    fn schema_name() -> Cow<'static, str> {
        "Mark".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_mark_is_refused() {
        for bad in
            ["", "x", "m.", "m.1", "m.1f3b5d7g", "m.+f3b5d79", "m1f3b5d79", "m.1f3b5d79.", "2026-01-01T00:00:00Z"]
        {
            assert!(bad.parse::<Mark>().is_err(), "{bad}");
        }
        assert_eq!("m".parse::<Mark>().unwrap(), Mark::default());
    }

    #[test]
    fn keys_are_the_same_in_every_process() {
        assert_eq!(Mark::key(&["shop", "a"]), 0xd75e_2975);
        assert_ne!(Mark::key(&["ab", "c"]), Mark::key(&["a", "bc"]));
    }

    proptest! {
        #[test]
        fn a_mark_comes_back_as_it_was(keys: BTreeSet<u32>) {
            let mark = Mark(keys);
            prop_assert_eq!(mark.to_string().parse::<Mark>().unwrap(), mark);
        }
    }
}
