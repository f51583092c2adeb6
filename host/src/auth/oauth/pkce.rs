//! Proof that who redeems a code is who asked for it (RFC 7636), by S256 alone: with `plain` whoever reads the request along
//! could redeem its code.

use super::error::{ErrorCode, OAuthError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The only method.
pub const METHOD: &str = "S256";

/// Checks a challenge that a client sends with its request.
///
/// # Errors
/// When there is none, its method is another, or it is no SHA-256.
pub fn challenge(challenge: Option<&str>, method: Option<&str>) -> Result<String, OAuthError> {
    let refused = |why| OAuthError::new(ErrorCode::InvalidRequest, why);
    let challenge = challenge.ok_or_else(|| refused("code_challenge is missing: PKCE is needed"))?;
    // One that is missing means `plain`.
    if method != Some(METHOD) {
        return Err(refused("code_challenge_method has to be S256"));
    }
    match URL_SAFE_NO_PAD.decode(challenge) {
        Ok(hash) if hash.len() == 32 => Ok(challenge.to_owned()),
        _ => Err(refused("code_challenge is no SHA-256 in base64url without padding")),
    }
}

/// Whether a verifier answers a challenge.
pub fn answers(challenge: &str, verifier: &str) -> bool {
    let is_one = (43..=128).contains(&verifier.len())
        && verifier.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    is_one && URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) == challenge
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn a_verifier_answers_its_own_challenge_alone() {
        assert!(answers(CHALLENGE, VERIFIER));
        let other = VERIFIER.replace('d', "e");
        for wrong in [CHALLENGE, &other, &VERIFIER[1..], &format!("{VERIFIER}="), "", &"a".repeat(129)] {
            assert!(!answers(CHALLENGE, wrong), "{wrong}");
        }
        assert!(!answers(VERIFIER, VERIFIER), "the challenge itself is no answer");
    }

    #[test]
    fn there_is_no_other_method_and_no_other_form() {
        assert_eq!(challenge(Some(CHALLENGE), Some("S256")).unwrap(), CHALLENGE);
        let padded = format!("{CHALLENGE}=");
        let short = &CHALLENGE[..40];
        for (sent, method) in [
            (None, Some("S256")),
            (Some(CHALLENGE), None),
            (Some(CHALLENGE), Some("plain")),
            (Some(CHALLENGE), Some("s256")),
            (Some(&*padded), Some("S256")),
            (Some(short), Some("S256")),
            (Some("+/+/"), Some("S256")),
        ] {
            assert_eq!(challenge(sent, method).unwrap_err().code, ErrorCode::InvalidRequest, "{sent:?} {method:?}");
        }
    }
}
