//! What headcount has sent a server in confidence, taken out of the server's own words: gateways repeat the headers of a request
//! that they refuse, and authorization servers the request.

use crate::text::{hex, lines};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::{HashSet, VecDeque};
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, PoisonError};
use url::form_urlencoded::byte_serialize;

/// A shorter secret is no secret, and stands in many a word.
const SHORTEST: usize = 4;
/// A piece of this length gives a longer secret away.
const PIECE: usize = 8;
/// So many secrets are remembered, the last ones: tokens are renewed for as long as a program runs.
const MOST: usize = 32;
/// What stands where a secret stood.
const MASKED: &str = "***";

/// Secrets that were sent, to be hidden. Clones know the same ones.
#[derive(Clone, Default)]
pub struct Mask(Arc<Mutex<VecDeque<String>>>);

impl Debug for Mask {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str("Mask")
    }
}

impl Mask {
    /// Hides this from now on.
    pub fn add(&self, secret: &str) {
        let mut secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if secret.len() < SHORTEST || secrets.iter().any(|known| known == secret) {
            return;
        }
        if secrets.len() == MOST {
            secrets.pop_front();
        }
        secrets.push_back(secret.to_owned());
    }

    /// `words` without the secrets, however they are encoded, and without long pieces of them. Control characters are taken out,
    /// too, which could hide them from us and not from who reads.
    pub fn hide(&self, words: &str) -> String {
        let words = lines(words);
        let secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut hidden = vec![false; words.len()];
        // Letters have the same length, large and small.
        let small = words.to_ascii_lowercase().into_bytes();
        for form in secrets.iter().flat_map(|secret| forms(secret)) {
            let form = form.to_ascii_lowercase().into_bytes();
            let length = form.len().clamp(1, PIECE);
            let pieces: HashSet<&[u8]> = form.windows(length).collect();
            for (at, _) in small.windows(length).enumerate().filter(|(_, window)| pieces.contains(window)) {
                hidden[at..at + length].fill(true);
            }
        }
        let mut out = String::with_capacity(words.len());
        let mut was_hidden = false;
        for (at, letter) in words.char_indices() {
            let is_hidden = hidden[at..at + letter.len_utf8()].contains(&true);
            match (was_hidden, is_hidden) {
                (_, false) => out.push(letter),
                (false, true) => out.push_str(MASKED),
                (true, true) => {}
            }
            was_hidden = is_hidden;
        }
        out
    }
}

/// A secret as it is, and as others may write it.
fn forms(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let mut forms = vec![secret.to_owned(), byte_serialize(bytes).collect(), hex(bytes)];
    for before in 0..3 {
        // In base64, what stands before it moves it; the letters at either end are not its own alone.
        let moved = [vec![0; before], bytes.to_vec()].concat();
        let (first, own) = ((before * 8).div_ceil(6), moved.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&moved), URL_SAFE_NO_PAD.encode(&moved)] {
            forms.extend(encoded.get(first..own).filter(|form| form.len() >= SHORTEST).map(str::to_owned));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    const SECRET: &str = "hct_pa55+wörd/42";

    fn mask() -> Mask {
        let mask = Mask::default();
        ["abc", "pin1", SECRET].iter().for_each(|secret| mask.add(secret));
        mask
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_written() {
        let mask = mask();
        let encoded: String = byte_serialize(SECRET.as_bytes()).collect();
        for written in [SECRET, &SECRET.to_uppercase().replace('Ö', "ö"), &encoded, "hct_\u{200b}pa55+wörd/42", "pin1"]
        {
            assert_eq!(mask.hide(&format!("no: {written}!")), "no: ***!", "{written}");
        }
        for before in ["", "m", "me", "me:"] {
            let shown = mask.hide(&STANDARD.encode(format!("{before}{SECRET}; and more")));
            assert!(shown.contains("***") && shown.len() < 30, "{shown}");
        }
        assert_eq!(mask.hide("cut off: hct_pa55+w"), "cut off: ***");
        assert_eq!(mask.hide("abc, pin2, hct_, wörter"), "abc, pin2, hct_, wörter");
        assert_eq!(Mask::default().hide("plain"), "plain");
    }

    #[test]
    fn it_shows_itself_to_nobody_and_does_not_grow_for_ever() {
        let mask = mask();
        assert!(!format!("{mask:?}").contains("pa55"));
        (0..2 * MOST).for_each(|n| mask.add(&format!("token-number-{n:03}")));
        assert_eq!(mask.0.lock().unwrap().len(), MOST);
        assert_eq!(mask.hide("token-number-063"), "***");
    }
}
