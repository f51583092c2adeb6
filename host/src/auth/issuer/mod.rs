//! Tokens of other authorization servers: JWTs (RFC 7519, as RFC 9068 has them for access). What such a token says of who
//! shows it counts as far as the configuration lets it; that a grant is alive is still for this machine's own ledger to say.

mod claims;
mod discovery;
mod key;
mod keys;
#[cfg(test)]
mod tests;

use super::{Denied, Scopes};
use crate::clock::{Clock, Moment};
use crate::config;
use crate::store::grants::{Digest, Grant};
use claims::Claims;
use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, TokenData, Validation, decode};
use key::Key;
use keys::{Keys, NoKey};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest token, bytes.
const MAX_BYTES: usize = 8 << 10;

/// By how much clocks may differ.
const LEEWAY_MS: u64 = 60_000;

/// So many tokens are remembered as good.
const REMEMBERED: usize = 1024;

/// For how long one is: a key may be withdrawn.
const GOOD: Duration = Duration::from_secs(5 * 60);

/// What is wrong with a token that none of the keys known has signed.
const WRONG: &str = "its signature is wrong";

/// What a token for access may call itself (RFC 9068, and what many say who do not heed it).
const TYPES: [&str; 3] = ["at+jwt", "application/at+jwt", "jwt"];

/// The issuers whose tokens let in.
pub struct Issuers {
    issuers: Vec<Issuer>,
    clock: Arc<dyn Clock>,
    good: Mutex<HashMap<Digest, Arc<Verified>>>,
}

/// One of them.
struct Issuer {
    name: String,
    keys: Arc<Keys>,
    /// What every token of it has to be; the algorithm is each one's own.
    validation: Validation,
    algorithms: Vec<Algorithm>,
    grant_claim: Option<String>,
    user_claim: String,
    users: BTreeMap<String, String>,
}

/// What a good token says.
#[derive(Debug, Clone)]
pub(super) struct Verified {
    /// The grant as it stands in the ledger, if nobody else has said more of it.
    pub grant: Grant,
    /// What this token permits.
    pub scopes: Scopes,
    /// When it expires, Unix milliseconds, the difference of clocks included.
    pub expires_at_ms: u64,
    /// When it is to be looked at again, on the steady clock.
    until: Duration,
}

impl Issuers {
    /// These; nothing is fetched until somebody shows a token.
    pub fn new(configured: &[config::Issuer], clock: Arc<dyn Clock>) -> Self {
        let issuers = configured.iter().map(|issuer| Issuer::new(issuer, &clock)).collect();
        Self { issuers, clock, good: Mutex::default() }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// What they are called: the addresses at which clients find out how to get a token (RFC 9728, `authorization_servers`).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.name.as_str())
    }

    /// What a token says, if it is a good one.
    pub(super) async fn verify(&self, token: &str) -> Result<Arc<Verified>, Denied> {
        if token.len() > MAX_BYTES {
            return Err(Denied::Refused("it is too long"));
        }
        let digest: Digest = Sha256::digest(token).into();
        let now = self.clock.now();
        let known = self.good().get(&digest).filter(|known| now.steady < known.until).cloned();
        let verified = match known {
            Some(known) => known,
            None => {
                let verified = Arc::new(self.look_at(token).await?);
                self.remember(digest, Arc::clone(&verified));
                verified
            }
        };
        if verified.expires_at_ms <= now.unix_ms { Err(Denied::Expired) } else { Ok(verified) }
    }

    async fn look_at(&self, token: &str) -> Result<Verified, Denied> {
        let said: TokenData<Claims> = insecure_decode(token).map_err(|_| Denied::Refused("it is none known here"))?;
        let issuer = said.claims.text("iss").and_then(|iss| self.issuers.iter().find(|issuer| issuer.name == iss));
        let issuer = issuer.ok_or(Denied::Refused("its issuer is not one of ours"))?;
        let claims = issuer.signed(token, &said.header).await?;
        issuer.read(&claims, self.clock.now())
    }

    /// Remembers a token. Where there are too many, the one that was looked at first makes room.
    fn remember(&self, digest: Digest, verified: Arc<Verified>) {
        let mut good = self.good();
        if good.len() >= REMEMBERED && !good.contains_key(&digest) {
            let oldest = good.iter().min_by_key(|(_, known)| known.until).map(|(digest, _)| *digest);
            oldest.map(|digest| good.remove(&digest));
        }
        good.insert(digest, verified);
    }

    fn good(&self) -> MutexGuard<'_, HashMap<Digest, Arc<Verified>>> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Issuer {
    fn new(configured: &config::Issuer, clock: &Arc<dyn Clock>) -> Self {
        let mut validation = Validation {
            required_spec_claims: HashSet::from(["iss", "aud"].map(str::to_owned)),
            // Times are compared with our own clock.
            validate_exp: false,
            ..Validation::default()
        };
        validation.set_issuer(&[&configured.issuer]);
        validation.set_audience(&configured.audience);
        Self {
            name: configured.issuer.clone(),
            keys: Arc::new(Keys::new(configured, Arc::clone(clock))),
            validation,
            algorithms: configured.algorithms.iter().map(|algorithm| key::algorithm(*algorithm)).collect(),
            grant_claim: configured.grant_claim.clone(),
            user_claim: configured.user_claim.clone(),
            users: configured.users.clone(),
        }
    }

    /// The claims of a token that this issuer has signed for this server. Keys that the token brings along, or says where to
    /// find, are no keys.
    async fn signed(&self, token: &str, header: &Header) -> Result<Claims, Denied> {
        let kind = header.typ.as_deref().unwrap_or("JWT");
        if !TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
            return Err(Denied::Refused("its type is none of a token for access"));
        }
        if !self.algorithms.contains(&header.alg) {
            return Err(Denied::Refused("its algorithm is not allowed"));
        }
        let missing = |missing| match missing {
            NoKey::Unknown => Denied::Refused("its key is none of its issuer's"),
            NoKey::CannotTell(why) => Denied::Unavailable(format!("the keys of {}: {why}", self.name)),
        };
        let keys = self.keys.matching(header).await.map_err(missing)?;
        match self.signed_by(&keys, token, header) {
            Err(WRONG) if header.kid.is_none() => {
                let keys = self.keys.newer(header).await.map_err(missing)?;
                self.signed_by(&keys, token, header)
            }
            tried => tried,
        }
        .map_err(Denied::Refused)
    }

    /// The claims of a token that one of these keys has signed, or why there are none.
    fn signed_by(&self, keys: &[Arc<Key>], token: &str, header: &Header) -> Result<Claims, &'static str> {
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let mut why = WRONG;
        for key in keys {
            match decode(token, key.decoding(), &validation) {
                Ok(data) => return Ok(data.claims),
                Err(error) => why = fault(error.kind()),
            }
        }
        Err(why)
    }

    /// Whose token it is, and what it permits.
    fn read(&self, claims: &Claims, now: Moment) -> Result<Verified, Denied> {
        let expires_at_ms = claims.times(now.unix_ms, LEEWAY_MS)?;
        let subject = claims.text(&self.user_claim).ok_or(Denied::Refused("it does not name its user"))?;
        let user_id = self.users.get(subject).ok_or(Denied::Stranger)?;
        let client_id = claims.client()?;
        // What names the grant is only what the issuer says it is; so that one issuer, or user, cannot name another's, they
        // are part of its id.
        let named = match &self.grant_claim {
            Some(claim) => claims.text(claim).ok_or(Denied::Refused("it does not name its grant"))?,
            None => "",
        };
        let scopes = claims.scopes();
        // Nothing is granted by it, so that there is nothing to take up.
        if scopes.iter().next().is_none() {
            return Err(Denied::Scopeless);
        }
        let grant = Grant {
            id: super::grants::id_of(&[&self.name, user_id, subject, client_id, named]),
            user_id: user_id.clone(),
            name: claims::grant_name(subject, &self.name),
            client_id: Some(client_id.to_owned()),
            scopes: scopes.to_string(),
            created_at_ms: now.unix_ms,
            expires_at_ms: Some(expires_at_ms),
            last_used_at_ms: None,
            revoked_at_ms: None,
        };
        Ok(Verified { grant, scopes, expires_at_ms, until: now.steady + GOOD })
    }
}

/// What is wrong with a token that a key of its issuer's was tried on.
fn fault(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => WRONG,
        ErrorKind::InvalidAudience => "it is not for this server",
        ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => "it does not say what it is for",
        _ => "it is none known here",
    }
}
