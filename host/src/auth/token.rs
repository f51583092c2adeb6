//! Secrets that are handed out: a prefix and 48 letters, which are 32 random bytes and a checksum over them. Scanners for
//! secrets know one by its beginning, and one that was mistyped is refused without anybody being asked.

use crate::store::grants::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::marker::PhantomData;

/// What a secret is for. Each kind has a beginning of its own, so that none is ever taken for another.
pub trait Kind {
    /// What a secret of this kind begins with.
    const PREFIX: &'static str;
}

/// Lets somebody in: a token of the user's own, or an access token of OAuth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {}

impl Kind for Access {
    const PREFIX: &'static str = "hct_";
}

/// A token: it lets in who shows it.
pub type Token = Secret<Access>;

/// So many random bytes are in one.
const SECRET: usize = 32;

/// So many of them are the same in a family.
const FAMILY: usize = SECRET / 2;

/// So many bytes are in one, with the checksum. Being a multiple of three, they are letters without any rest.
const ALL: usize = SECRET + 4;

/// A secret: it shows itself to nobody but who calls [`Secret::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<K>(String, PhantomData<K>);

impl<K: Kind> Secret<K> {
    /// A new one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut secret = [0; SECRET];
        getrandom::fill(&mut secret)?;
        Ok(Self::of(secret))
    }

    /// Another of the same [family](Self::family).
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn sibling(&self) -> Result<Self, getrandom::Error> {
        let mut secret = [0; SECRET];
        secret[..FAMILY].copy_from_slice(&self.first_half());
        getrandom::fill(&mut secret[FAMILY..])?;
        Ok(Self::of(secret))
    }

    fn of(secret: [u8; SECRET]) -> Self {
        let mut bytes = [0; ALL];
        bytes[..SECRET].copy_from_slice(&secret);
        bytes[SECRET..].copy_from_slice(&crc32fast::hash(&secret).to_be_bytes());
        Self(format!("{}{}", K::PREFIX, URL_SAFE_NO_PAD.encode(bytes)), PhantomData)
    }

    /// The secret that a text is; `None`: it is none of this kind that was ever given out.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; ALL];
        // A longer one does not fit, and letters that stand for no bytes are refused: each secret has one spelling.
        let length = URL_SAFE_NO_PAD.decode_slice(text.strip_prefix(K::PREFIX)?, &mut bytes).ok()?;
        let (secret, sum) = bytes.split_at(SECRET);
        let is_one = length == ALL && sum == crc32fast::hash(secret).to_be_bytes();
        is_one.then(|| Self(text.to_owned(), PhantomData))
    }

    /// What is kept of it, and what it is found by. How long a search takes tells at most how a digest begins, and from
    /// there no way leads to a secret.
    pub fn digest(&self) -> Digest {
        Sha256::digest(&self.0).into()
    }

    /// What is kept of all that descend from one: the digest of the half that siblings share. Nobody knows that half who has
    /// never had one of them, so a secret with it that is not known any more was one of them once.
    pub fn family(&self) -> Digest {
        Sha256::new().chain_update(K::PREFIX).chain_update(self.first_half()).finalize().into()
    }

    fn first_half(&self) -> [u8; FAMILY] {
        let letters = self.0.as_bytes()[K::PREFIX.len()..].as_chunks::<4>().0;
        let mut bytes = [0; ALL];
        // It was made or read here: its letters are those of so many bytes.
        let _ = URL_SAFE_NO_PAD.decode_slice(letters.as_flattened(), &mut bytes);
        std::array::from_fn(|at| bytes[at])
    }

    /// The secret itself, for the one time that it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl<K: Kind> fmt::Debug for Secret<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}…", K::PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_is_recognised_and_tells_nothing() {
        let token = Token::generate().unwrap();
        assert!(token.reveal().starts_with("hct_") && token.reveal().len() == 52, "{}", token.reveal());
        assert_eq!(Token::parse(token.reveal()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "hct_…");
        assert_ne!(token, Token::generate().unwrap());
    }

    #[test]
    fn the_digest_is_what_anybody_computes() {
        let token = Token::parse("hct_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh-RJn6K").unwrap();
        let hex = crate::text::hex(token.digest().as_slice());
        assert_eq!(Token::parse(token.reveal()), Some(token));
        assert_eq!(hex, "2cc37a44afe6099f921855a14212d4cc5edb6e4dc9548e43b27c3a0d65581796");
    }

    #[test]
    fn siblings_are_known_by_what_they_share() {
        let token = Token::generate().unwrap();
        let sibling = token.sibling().unwrap();
        assert_eq!(Token::parse(sibling.reveal()), Some(sibling.clone()));
        assert_eq!(sibling.sibling().unwrap().family(), token.family());
        assert!(sibling != token && token.sibling().unwrap() != sibling);
        assert_ne!(Token::generate().unwrap().family(), token.family());
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange_to_be_refused(text in any::<String>(), letters in "(hct_)?[A-Za-z0-9_-]{0,60}=?") {
            prop_assert_eq!(Token::parse(&text), None);
            prop_assert_eq!(Token::parse(&letters), None);
        }

        #[test]
        fn a_token_with_any_other_letter_is_none(at in 0..52_usize, letter in any::<char>()) {
            let token = Token::generate().unwrap();
            let mut letters: Vec<char> = token.reveal().chars().collect();
            letters[at] = letter;
            let text: String = letters.into_iter().collect();
            prop_assert_eq!(Token::parse(&text).is_some(), text == token.reveal());
        }

        #[test]
        fn a_token_with_more_or_less_is_none(more in "[A-Za-z0-9_= \n-]{1,9}", less in 1..52_usize) {
            let token = Token::generate().unwrap();
            let text = token.reveal();
            for other in [format!("{text}{more}"), format!("{more}{text}"), text[less..].into(), text[..52 - less].into()] {
                prop_assert_eq!(Token::parse(&other), None);
            }
        }
    }
}
