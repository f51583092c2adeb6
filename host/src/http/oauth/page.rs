//! The page that asks for consent or says why not. No script is in it, and nothing is fetched for it.

use super::{AUTHORIZE, status};
use crate::auth::oauth::{OAuthError, Redirect, RequestId, RequestRow};
use crate::auth::{Scope, Scopes};
use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page.css");

/// The page.
#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct Page {
    style: &'static str,
    action: &'static str,
    /// What is the matter.
    message: Option<String>,
    /// Where the user can go on to.
    back: Option<Back>,
    /// What there is to consent to.
    asked: Option<Asked>,
    /// What its form may lead to.
    #[template(skip)]
    form_action: String,
    #[template(skip)]
    status: StatusCode,
}

struct Back {
    to: String,
    host: String,
}

struct Asked {
    id: String,
    label: String,
    name: Option<String>,
    client_host: Option<String>,
    redirect_host: String,
    redirect_is_local: bool,
    scopes: Vec<Wanted>,
}

struct Wanted {
    name: &'static str,
    words: &'static str,
    chosen: bool,
}

impl Page {
    fn empty(status: StatusCode) -> Self {
        let (message, back, asked) = (None, None, None);
        Self { style: STYLE, action: AUTHORIZE, message, back, asked, form_action: "'none'".to_owned(), status }
    }

    /// Asks for consent to a request that leads to `redirect`; what is `chosen` of it is ticked.
    pub fn consent(id: &RequestId, row: RequestRow, redirect: &Redirect, chosen: &Scopes) -> Self {
        let wanted = Scope::ALL.into_iter().filter(|scope| row.scopes.contains(&scope.as_str()));
        let asked = Asked {
            id: id.reveal().to_owned(),
            label: row.request,
            name: row.client_name,
            client_host: row.client_host,
            redirect_host: row.redirect_host,
            redirect_is_local: row.redirect_is_local,
            scopes: wanted
                .map(|scope| Wanted { name: scope.as_str(), words: words(scope), chosen: chosen.permit(scope) })
                .collect(),
        };
        // Browsers look at where an answer to the form leads, too, and on from there: clients show pages of theirs at the end.
        let form_action = format!("'self' {} https:", redirect.source());
        Self { asked: Some(asked), form_action, ..Self::empty(StatusCode::OK) }
    }

    /// Says what is the matter.
    pub fn error(error: &OAuthError) -> Self {
        Self { message: Some(error.description.to_string()), ..Self::empty(status(error.code)) }
    }

    /// The same page with a word on why it is shown again.
    pub fn because(self, message: String) -> Self {
        Self { message: Some(message), status: StatusCode::FORBIDDEN, ..self }
    }

    /// The same page with a way to go on.
    pub fn back(self, to: &Redirect) -> Self {
        Self { back: Some(Back { to: to.to_string(), host: to.host() }), ..self }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let Ok(html) = self.render() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
        let style = STANDARD.encode(Sha256::digest(self.style));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action {}; frame-ancestors 'none'; base-uri 'none'",
            self.form_action
        );
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, &policy),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // With `no-referrer` browsers would not say either that the form comes from here.
            (header::REFERRER_POLICY, "same-origin"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (self.status, headers, html).into_response()
    }
}

/// What a scope permits, for people.
fn words(scope: Scope) -> &'static str {
    match scope {
        Scope::StatusRead => "see your sessions and their agents",
        Scope::RosterWrite => "declare agents, and take them off the list",
        Scope::ClientsRead => "see who is connected, and what each has called",
        Scope::GrantsRevoke => "see who was granted access, and revoke it",
        Scope::MetricsRead => "see what this server counts, of the whole machine",
    }
}
