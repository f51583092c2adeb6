//! The one-time code by which the owner consents: shown in the owner's terminal, typed into the page.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// Letters that nobody takes for each other, and that spell no words. Their number divides no power of two, so bytes beyond
/// [`FAIR`] are not used.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// Below this, each letter is as likely as any other.
const FAIR: u8 = 240;

/// So many letters: 34 bits, of which five may be tried.
const LENGTH: usize = 8;

/// A one-time code.
#[derive(Clone, PartialEq, Eq)]
pub struct UserCode(String);

impl UserCode {
    /// A new one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut code = String::new();
        while code.len() < LENGTH {
            let mut bytes = [0; LENGTH];
            getrandom::fill(&mut bytes)?;
            let fair = bytes.iter().filter(|byte| **byte < FAIR);
            code.extend(fair.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])));
        }
        code.truncate(LENGTH);
        Ok(Self(code))
    }

    /// What somebody has typed: nothing but letters and figures matters, nor does their case.
    pub fn typed(text: &str) -> Self {
        let letters = text.chars().filter(|c| c.is_alphanumeric()).take(LENGTH + 1);
        Self(letters.map(|c| c.to_ascii_uppercase()).collect())
    }

    /// Whether nothing was typed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is the same. How long that takes tells nothing of the code: digests are compared.
    pub fn is(&self, other: &Self) -> bool {
        Sha256::digest(&self.0) == Sha256::digest(&other.0)
    }
}

/// In two groups, as it is shown.
impl fmt::Display for UserCode {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_at_checked(LENGTH / 2) {
            Some((first, second)) => write!(to, "{first}-{second}"),
            None => to.write_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_typed_as_people_type() {
        let code = UserCode::generate().unwrap();
        let shown = code.to_string();
        assert_eq!((shown.len(), shown.find('-')), (9, Some(4)));
        for typed in [
            shown.replace('-', "\u{2013}"),
            shown.replace('-', "\u{a0}\u{2011}\u{200b}"),
            format!("{shown}."),
            shown.clone(),
            shown.to_lowercase(),
            shown.replace('-', ""),
            format!(" {} ", shown.replace('-', " - ")),
        ] {
            assert!(UserCode::typed(&typed).is(&code), "{typed}");
        }
        for wrong in ["", "-", &shown[..8], &format!("{shown}B"), &UserCode::generate().unwrap().to_string()] {
            assert!(!UserCode::typed(wrong).is(&code), "{wrong}");
        }
        assert!(!UserCode::typed("äöüßäöüß").is(&code));
    }

    #[test]
    fn each_letter_comes_up() {
        let all: String = (0..200).map(|_| UserCode::generate().unwrap().0).collect();
        assert!(LETTERS.iter().all(|letter| all.contains(char::from(*letter))), "{all}");
    }
}
