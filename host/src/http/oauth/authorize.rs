//! The authorization endpoint: the page where the owner consents, and its form (RFC 6749, section 3.1).

use super::super::doors::Came;
use super::super::peers::Peer;
use super::page::Page;
use super::{AUTHORIZE, OAuth, form};
use crate::auth::oauth::{
    Answer, Answered, AuthorizationServer, ErrorCode, Issuer, OAuthError, Params, Redirect, Refused, RequestId,
};
use crate::auth::{Scope, Scopes};
use crate::names::short_hash;
use crate::store::oauth::Request as Waiting;
use axum::Router;
use axum::extract::{Extension, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<OAuth>> {
    // Who only looks whether there is a page does not ask anybody.
    let looked = || async { StatusCode::OK };
    Router::new().route(AUTHORIZE, get(ask).head(looked).post(answer))
}

/// Shows the page for a client's request.
async fn ask(
    State(oauth): State<Arc<OAuth>>,
    Extension(issuer): Extension<Issuer>,
    Extension(came): Extension<Came>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    // A web page that has it loaded as a picture, say, would make its owner be asked again and again (Fetch Metadata).
    if headers.get("sec-fetch-dest").is_some_and(|to| to != "document") {
        let error = OAuthError::new(ErrorCode::InvalidRequest, "this is a page to be opened in a window of its own");
        return Page::error(&error).into_response();
    }
    match begin(oauth, issuer, came.peer, query.unwrap_or_default()).await {
        Ok(response) => response,
        Err(refused) => refusal(refused, false),
    }
}

async fn begin(oauth: Arc<OAuth>, issuer: Issuer, peer: Peer, query: String) -> Result<Response, Refused> {
    oauth.requests.take(peer).map_err(|_| too_many())?;
    let params = Params::parse(query.as_bytes())?;
    let secure = is_secure(&issuer);
    let client = oauth.server.find_client(params.need("client_id")?).await?;
    let begun = Arc::clone(&oauth).run(move |server| server.begin(&client, &params, &issuer)).await??;
    let row = AuthorizationServer::shown(&begun.request);
    (oauth.tell)(&row);
    let cookie = format!(
        "{}={}; Path=/; Max-Age=600; HttpOnly; SameSite=Strict{}",
        cookie_name(&begun.id, secure),
        begun.id.reveal(),
        if secure { "; Secure" } else { "" }
    );
    let page = page(&begun.id, &begun.request, &AuthorizationServer::suggested(&begun.request))?;
    Ok(([(header::SET_COOKIE, cookie)], page).into_response())
}

/// Takes the owner's answer.
async fn answer(
    State(oauth): State<Arc<OAuth>>,
    Extension(issuer): Extension<Issuer>,
    Extension(came): Extension<Came>,
    request: Request,
) -> Response {
    match decide(oauth, issuer, came.peer, request).await {
        Ok(response) => response,
        Err(refused) => refusal(refused, true),
    }
}

async fn decide(oauth: Arc<OAuth>, issuer: Issuer, peer: Peer, request: Request) -> Result<Response, Refused> {
    oauth.tokens.take(peer).map_err(|_| too_many())?;
    let headers = request.headers().clone();
    let params = form(request).await?;
    let bad = |why| OAuthError::new(ErrorCode::InvalidRequest, why);
    let id = params.need("request")?;
    let id = RequestId::parse(id).ok_or_else(|| bad("this is no request that was shown here"))?;
    // The browser that was shown the page, and no other page in it.
    if !has_cookie(&headers, &id, is_secure(&issuer)) {
        return Err(bad("the form comes from a browser that was not shown it, or that keeps no cookies").into());
    }
    let denied = match params.need("decision")? {
        "approve" => false,
        "deny" => true,
        _ => return Err(bad("decision has to be approve or deny").into()),
    };
    let scopes: Scopes = Scope::ALL.into_iter().filter(|scope| params.get(scope.as_str()).is_some()).collect();
    let (code, of, chosen) = (params.get("code").unwrap_or_default().to_owned(), id.clone(), scopes.clone());
    let decide = move |server: &AuthorizationServer| {
        if denied { server.deny(&of, &issuer) } else { server.consent(&of, &Answer { code: &code, scopes }, &issuer) }
    };
    match oauth.run(decide).await?? {
        Answered::Granted(redirect) => Ok(see(&redirect)),
        Answered::Again(request, flaw) => Ok(page(&id, &request, &chosen)?.because(flaw.to_string()).into_response()),
    }
}

fn page(id: &RequestId, request: &Waiting, chosen: &Scopes) -> Result<Page, OAuthError> {
    let redirect = Redirect::checked(&request.redirect_uri)?;
    Ok(Page::consent(id, AuthorizationServer::shown(request), &redirect, chosen))
}

/// Tells the user, or the client by way of the browser. Before anybody has `answered` a page, browsers are sent to programs on
/// this machine alone: else a link to this server could lead to any page in the web.
fn refusal(refused: Refused, answered: bool) -> Response {
    match refused {
        Refused::ToUser(error) => Page::error(&error).into_response(),
        Refused::ToClient(_, redirect) if answered || redirect.is_on_this_machine() => see(&redirect),
        Refused::ToClient(error, redirect) => Page::error(&error).back(&redirect).into_response(),
    }
}

/// Sends a browser somewhere; whatever it has sent here it does not send there (RFC 9700, section 4.12).
fn see(redirect: &Redirect) -> Response {
    let headers = [
        (header::LOCATION, redirect.to_string()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn too_many() -> OAuthError {
    OAuthError::new(ErrorCode::TemporarilyUnavailable, "too much is asked for at a time; try again in a moment")
}

fn is_secure(issuer: &Issuer) -> bool {
    issuer.as_str().starts_with("https:")
}

/// Each request has a cookie of its own, so that two pages at a time do not disturb each other.
fn cookie_name(id: &RequestId, secure: bool) -> String {
    format!("{}headcount-{}", if secure { "__Host-" } else { "" }, short_hash(&id.digest()))
}

fn has_cookie(headers: &HeaderMap, id: &RequestId, secure: bool) -> bool {
    let name = cookie_name(id, secure);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|all| all.split("; ")).any(|cookie| cookie.split_once('=') == Some((&name, id.reveal())))
}
