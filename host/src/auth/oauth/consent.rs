//! The owner's answer to a request. Whoever types the code that stands in the owner's terminal is the owner.

use super::authorize::refused;
use super::error::{ErrorCode, OAuthError, Refused};
use super::redirect::Redirect;
use super::user_code::UserCode;
use super::{AuthorizationServer, Code, Issuer, RequestId};
use crate::auth::{Scope, Scopes};
use crate::store::oauth::Request;
use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

/// So many codes may be tried for a request.
pub const MOST_TRIES: u32 = 5;

/// An answer as it was typed.
#[derive(Debug)]
pub struct Answer<'a> {
    /// What was typed as the one-time code.
    pub code: &'a str,
    /// What is consented to.
    pub scopes: Scopes,
}

/// What came of an answer.
#[derive(Debug)]
pub enum Answered {
    /// The client gets its code: the browser goes there.
    Granted(Redirect),
    /// It is asked again.
    Again(Box<Request>, Flaw),
}

/// Why an answer is none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// No code was typed.
    NoCode,
    /// Nothing was chosen of what the client asks for.
    NothingChosen,
    /// It was not the code.
    WrongCode {
        /// So many may still be tried.
        left: u32,
    },
}

/// What the owner is told.
impl fmt::Display for Flaw {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCode => to.write_str("The code is missing."),
            Self::NothingChosen => to.write_str("Tick what the client may do, or deny it all."),
            Self::WrongCode { left: 1 } => to.write_str("That is not the code. There is one more try."),
            Self::WrongCode { left } => write!(to, "That is not the code. There are {left} more tries."),
        }
    }
}

/// For how long a consent that comes again is answered again: a form is sent twice, and browsers show the second answer.
const AGAIN: Duration = Duration::from_secs(10);

/// What was consented to last, and where it has led. It is nowhere else: only the code's digest is kept.
pub(super) struct Consented {
    id: RequestId,
    user_code: UserCode,
    redirect: Redirect,
    /// On the steady clock.
    at: Duration,
}

impl AuthorizationServer {
    /// What is chosen of a request before its owner has chosen: all of it, but that power over other grants is given on purpose
    /// alone.
    pub fn suggested(request: &Request) -> Scopes {
        let wanted = Scopes::of_text(&request.scopes);
        let suggested: Scopes = wanted.iter().filter(|scope| *scope != Scope::GrantsRevoke).collect();
        if suggested.is_empty() { wanted } else { suggested }
    }

    /// Consents to a request, if the code is right: the client gets an authorization code, which is on the disk then.
    ///
    /// # Errors
    /// When there is no such request, too many codes were wrong, or nothing can be written.
    pub fn consent(&self, id: &RequestId, answer: &Answer<'_>, issuer: &Issuer) -> Result<Answered, Refused> {
        let now = self.clock.now().steady;
        let typed = UserCode::typed(answer.code);
        // One at a time: the same one that comes beside the first waits for what that is told.
        let mut consented = self.consented.lock().unwrap_or_else(PoisonError::into_inner);
        consented.retain(|one| now.saturating_sub(one.at) < AGAIN);
        if let Some(again) = consented.iter().find(|one| one.id == *id && one.user_code.is(&typed)) {
            return Ok(Answered::Granted(again.redirect.clone()));
        }
        let waiting = self.waiting();
        let wanted = |request: &Request| {
            let wanted = Scopes::of_text(&request.scopes);
            answer.scopes.iter().filter(|scope| wanted.permit(*scope)).collect::<Scopes>()
        };
        // What cannot be an answer costs no try.
        let asked = self.store.request(&id.digest(), &waiting)?.ok_or_else(gone)?;
        if wanted(&asked).is_empty() {
            return Ok(Answered::Again(Box::new(asked), Flaw::NothingChosen));
        }
        if typed.is_empty() {
            return Ok(Answered::Again(Box::new(asked), Flaw::NoCode));
        }
        // It counts before it is looked at: who sends many at a time has no more tries.
        let request = self.store.try_request(&id.digest(), &waiting, MOST_TRIES)?.ok_or_else(gone)?;
        if !typed.is(&UserCode::typed(&request.user_code)) {
            return match MOST_TRIES.saturating_sub(request.tries) {
                0 => self.end(id, "too many wrong codes were typed", issuer),
                left => Ok(Answered::Again(Box::new(request), Flaw::WrongCode { left })),
            };
        }
        let scopes = wanted(&request);
        let code = Code::generate()?;
        if !self.store.consent(&id.digest(), &waiting, &code.digest(), &scopes.to_string(), self.now_ms())? {
            return Err(gone().into());
        }
        let redirect = Redirect::checked(&request.redirect_uri)?.with(&[
            ("code", Some(code.reveal())),
            ("state", request.state.as_deref()),
            ("iss", Some(issuer.as_str())),
        ]);
        consented.push(Consented { id: id.clone(), user_code: typed, redirect: redirect.clone(), at: now });
        Ok(Answered::Granted(redirect))
    }

    /// Refuses a request. Nobody needs a code for that.
    ///
    /// # Errors
    /// Always: the client is told, or the user where there is no such request.
    pub fn deny(&self, id: &RequestId, issuer: &Issuer) -> Result<Answered, Refused> {
        self.end(id, "the owner does not consent", issuer)
    }

    fn end(&self, id: &RequestId, why: &'static str, issuer: &Issuer) -> Result<Answered, Refused> {
        let request = self.store.take_request(&id.digest(), &self.waiting())?.ok_or_else(gone)?;
        let redirect = Redirect::checked(&request.redirect_uri)?;
        Err(refused(OAuthError::new(ErrorCode::AccessDenied, why), redirect, request.state.as_deref(), issuer))
    }
}

fn gone() -> OAuthError {
    OAuthError::new(
        ErrorCode::InvalidRequest,
        "this request was answered already, its time is over, or it has made room for others: begin again in the client",
    )
}
