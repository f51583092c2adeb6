//! The owner's answer to a request. Whoever types the code that stands in the owner's terminal is the owner.

use super::authorize::refused;
use super::error::{ErrorCode, OAuthError, Refused};
use super::redirect::Redirect;
use super::user_code::UserCode;
use super::{AuthorizationServer, Code, Issuer, RequestId};
use crate::auth::Scopes;
use crate::store::oauth::Request;
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
    /// It was not the code. So many may still be tried.
    WrongCode(Box<Request>, u32),
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
    /// Consents to a request, if the code is right: the client gets an authorization code, which is on the disk then.
    ///
    /// # Errors
    /// When there is no such request, too many codes were wrong, or nothing can be written.
    pub fn consent(&self, id: &RequestId, answer: &Answer<'_>, issuer: &Issuer) -> Result<Answered, Refused> {
        let now = self.clock.now().steady;
        // One at a time: the same one that comes beside the first waits for what that is told.
        let mut consented = self.consented.lock().unwrap_or_else(PoisonError::into_inner);
        consented.retain(|one| now.saturating_sub(one.at) < AGAIN);
        let is_again = |one: &&Consented| one.id == *id && one.user_code.is(&UserCode::typed(answer.code));
        if let Some(again) = consented.iter().find(is_again) {
            return Ok(Answered::Granted(again.redirect.clone()));
        }
        let waiting = self.waiting();
        // It counts before it is looked at: who sends many at a time has no more tries.
        let request = self.store.try_request(&id.digest(), &waiting, MOST_TRIES)?.ok_or_else(gone)?;
        if !UserCode::typed(answer.code).is(&UserCode::typed(&request.user_code)) {
            return match MOST_TRIES.saturating_sub(request.tries) {
                0 => self.end(id, "too many wrong codes were typed", issuer),
                left => Ok(Answered::WrongCode(Box::new(request), left)),
            };
        }
        let wanted = Scopes::of_text(&request.scopes);
        let scopes: Scopes = answer.scopes.iter().filter(|scope| wanted.permit(*scope)).collect();
        if scopes.iter().next().is_none() {
            return self.end(id, "the owner consents to none of it", issuer);
        }
        let code = Code::generate()?;
        if !self.store.consent(&id.digest(), &waiting, &code.digest(), &scopes.to_string(), self.now_ms())? {
            return Err(gone().into());
        }
        let redirect = Redirect::checked(&request.redirect_uri)?.with(&[
            ("code", Some(code.reveal())),
            ("state", request.state.as_deref()),
            ("iss", Some(issuer.as_str())),
        ]);
        let user_code = UserCode::typed(answer.code);
        consented.push(Consented { id: id.clone(), user_code, redirect: redirect.clone(), at: now });
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
        "this request was answered already, or its time is over: begin again in the client",
    )
}
