//! A key that an issuer signs with: the half of it that everybody may know (RFC 7517).

use crate::config::SigningAlgorithm;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header};
use serde_json::Value;

/// So many keys of a set are looked at.
const MOST: usize = 64;

/// A key for signatures. One that both sides would know is none: whoever checked with it could sign, too.
pub(super) struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

impl Key {
    /// The keys of a JWK Set that serve here; others are passed over, as the format demands.
    pub fn of_set(set: &Value) -> Vec<Self> {
        let keys = set["keys"].as_array().into_iter().flatten().take(MOST);
        keys.filter_map(|key| Self::new(&serde_json::from_value(key.clone()).ok()?)).collect()
    }

    fn new(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let signs = common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => vec![Algorithm::ES256],
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => vec![Algorithm::ES384],
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => vec![Algorithm::EdDSA],
            _ => return None,
        };
        // Where it says what it is for, it is for nothing else.
        algorithms.retain(|algorithm| common.key_algorithm.is_none_or(|only| only == KeyAlgorithm::from(*algorithm)));
        if !signs || algorithms.is_empty() {
            return None;
        }
        Some(Self { id: common.key_id.clone(), algorithms, decoding: DecodingKey::from_jwk(jwk).ok()? })
    }

    /// Whether a token with this header may be signed with it. A header need not say by which key.
    pub fn may_have_signed(&self, header: &Header) -> bool {
        self.algorithms.contains(&header.alg) && (header.kid.is_none() || header.kid == self.id)
    }

    pub fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }
}

pub(super) fn algorithm(configured: SigningAlgorithm) -> Algorithm {
    match configured {
        SigningAlgorithm::RS256 => Algorithm::RS256,
        SigningAlgorithm::RS384 => Algorithm::RS384,
        SigningAlgorithm::RS512 => Algorithm::RS512,
        SigningAlgorithm::PS256 => Algorithm::PS256,
        SigningAlgorithm::PS384 => Algorithm::PS384,
        SigningAlgorithm::PS512 => Algorithm::PS512,
        SigningAlgorithm::ES256 => Algorithm::ES256,
        SigningAlgorithm::ES384 => Algorithm::ES384,
        SigningAlgorithm::EdDSA => Algorithm::EdDSA,
    }
}
