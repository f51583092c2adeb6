//! What a client is given to keep between two rounds, so that nobody but this server can have written it.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};

/// Seals words, and opens what it has sealed.
pub struct Seal {
    shut: EncodingKey,
    open: DecodingKey,
}

/// What is in a seal.
#[derive(Serialize, Deserialize)]
struct Sealed {
    word: String,
}

impl Seal {
    /// A seal of its own.
    pub fn new() -> anyhow::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("there is no randomness: {error}"))?;
        Ok(Self { shut: EncodingKey::from_secret(&secret)?, open: DecodingKey::from_secret(&secret)? })
    }

    /// Seals a word.
    pub fn seal(&self, word: &str) -> Result<String, ErrorData> {
        let sealed = encode(&Header::new(Algorithm::HS256), &Sealed { word: word.to_owned() }, &self.shut);
        sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// The word that was sealed.
    ///
    /// # Errors
    /// When it was tampered with.
    pub fn open(&self, sealed: &str) -> Result<String, ErrorData> {
        let mut rules = Validation::new(Algorithm::HS256);
        // It holds as long as the server runs.
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        let opened = decode::<Sealed>(sealed, &self.open, &rules);
        opened
            .map(|token| token.claims.word)
            .map_err(|_| ErrorData::invalid_params("requestState is not what was given out", None))
    }
}
