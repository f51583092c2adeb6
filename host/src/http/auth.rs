//! Who may come in: the right host, no web page, and a token that holds. Whoever may not learns nothing else, and nothing is
//! made for them.

use super::app::{App, problem};
use super::cors::{self, is_preflight, preflight};
use super::doors::Came;
use super::oauth::{AUTHORIZE, METADATA};
use super::origin::origin;
use super::problem::Problem;
use super::rest::ROUTES;
use super::traffic::{Holder, route};
use crate::auth::oauth::Issuer;
use crate::auth::{Admitted, Denied, Principal, Scope, Scopes};
use crate::mcp::Tool;
use axum::extract::{Extension, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;
use std::time::Duration;

/// Lets requests in that are meant for this server and come from no web page. A page that has made its name stand for this
/// machine's address is still called by that name.
pub(super) async fn meant_for_us(
    State(app): State<Arc<App>>,
    Extension(came): Extension<Came>,
    mut request: Request,
    next: Next,
) -> Response {
    let issuer = match reached(&app, came, &request) {
        Ok(issuer) => issuer,
        Err(problem) => return problem.into_response(),
    };
    if is_preflight(&request) {
        return preflight(request.headers());
    }
    let metadata = app.says_who_gives_access().then(|| issuer.with(METADATA));
    request.extensions_mut().insert(issuer);
    let mut response = next.run(request).await;
    if let Some(metadata) = metadata {
        say_where_access_is_given(&mut response, &metadata);
    }
    response
}

/// By which origin a request reaches this server, if it may.
fn reached(app: &App, came: Came, request: &Request) -> Result<Issuer, Problem> {
    let bad = |why: &str| Problem::new(StatusCode::BAD_REQUEST, why).because("host");
    let refused = |why: &str| Problem::new(StatusCode::FORBIDDEN, why);
    let host = one(request.headers(), header::HOST).and_then(|host| host.parse::<Authority>().ok());
    let host = host.ok_or_else(|| bad("a request needs one Host"))?;
    let meant = request.uri().authority().unwrap_or(&host);
    if [&host, meant].iter().any(|named| named.as_str().contains('@')) {
        return Err(bad("a Host has no user"));
    }
    if !app.is_ours(host.host(), came.at) || !app.is_ours(meant.host(), came.at) {
        return Err(refused("this server is not reached by this Host; see --allow-host").because("host"));
    }
    let issuer = origin(meant, came.scheme).ok_or_else(|| bad("the Host is none of a URI"))?;
    // The page that asks for consent is this server's own, and nobody else sends its form.
    let may = |origin: &str| match request.uri().path() {
        AUTHORIZE => origin == issuer.as_str(),
        _ => app.is_allowed_origin(origin),
    };
    if request.headers().contains_key(header::ORIGIN) && !cors::origin(request.headers()).is_some_and(may) {
        return Err(refused("web pages may not use this server; see --allow-origin").because("origin"));
    }
    Ok(issuer)
}

/// Where a token is wanted, names the document that says who gives one (RFC 9728, section 5.1).
fn say_where_access_is_given(response: &mut Response, metadata: &str) {
    let Some(challenge) = response.headers_mut().get_mut(header::WWW_AUTHENTICATE) else { return };
    let Ok(bearer) = challenge.to_str() else { return };
    if let (true, Ok(value)) =
        (bearer.starts_with("Bearer "), format!(r#"{bearer}, resource_metadata="{metadata}""#).parse())
    {
        *challenge = value;
    }
}

/// Lets requests in whose token holds; what is known of its holder goes with the request. When the grant ends while a request
/// is served, it is as if it had come after that.
pub(super) async fn admitted(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let needed = needed(&request);
    let admitted = match app.gate.admit(bearer(request.headers())).await {
        // A token for another server is none here.
        Ok(admitted) if !is_for_us(&admitted, &request) => return refusal(Denied::Elsewhere, &needed).into_response(),
        Ok(admitted) => admitted,
        Err(denied) => return refusal(denied, &needed).into_response(),
    };
    if let Err(refusal) = app.endpoint.count(&admitted) {
        return problem(&admitted.principal, &refusal).into_response();
    }
    let (ended, user) = (admitted.ended.clone(), admitted.principal.user_id.clone());
    request.extensions_mut().insert(admitted);
    // What may itself be what ends the grant is told so.
    let may_be_cut = request.method() != Method::DELETE;
    let mut response = tokio::select! {
        // What is answered because the grant has ended is no answer.
        biased;
        () = ended.cancelled(), if may_be_cut => refusal(Denied::Revoked, &needed).into_response(),
        response = next.run(request) => response,
    };
    if response.status() == StatusCode::FORBIDDEN {
        response.extensions_mut().insert(Holder(user));
    }
    // It is for this token's holder alone.
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// What a client has to ask for that is to have all of what is at the address of a request. Many never ask for more than the
/// first 401 names.
fn needed(request: &Request) -> Scopes {
    match route(request.uri().path()) {
        "/mcp" => Tool::ALL.into_iter().map(Tool::scope).collect(),
        at => ROUTES.iter().filter(|route| route.path == at).filter_map(|route| route.scope).collect(),
    }
}

/// Whether a token is for the resource that a request was sent to (RFC 8707).
fn is_for_us(admitted: &Admitted, request: &Request) -> bool {
    let Some(resource) = &admitted.resource else { return true };
    request.extensions().get::<Issuer>().is_some_and(|issuer| issuer.resource() == *resource)
}

/// The only value of a header that stands once.
pub(super) fn one(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

/// The token that a request carries; an empty one where it carries several.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    if headers.get_all(header::AUTHORIZATION).iter().count() > 1 {
        return Some("");
    }
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Why somebody is not let in, and which scopes are needed.
fn refusal(denied: Denied, needed: &Scopes) -> Problem {
    let reason = match &denied {
        Denied::Missing => "no_token",
        Denied::Invalid | Denied::Refused(_) | Denied::Elsewhere => "invalid_token",
        Denied::Stranger => "stranger",
        Denied::Scopeless => "scope",
        Denied::Expired => "expired",
        Denied::Revoked => "revoked",
        Denied::Unavailable(_) => "cannot_tell",
    };
    let mut challenge = match &denied {
        // The gate has said why, once for all that are sent away.
        Denied::Unavailable(_) => {
            let detail = "whether the token holds cannot be told now; the server's log says why";
            return Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .again_after(Duration::from_secs(1))
                .because(reason);
        }
        Denied::Scopeless => {
            let challenge = insufficient(&Scopes::from_iter([Scope::StatusRead]));
            return Problem::new(StatusCode::FORBIDDEN, denied.to_string())
                .with(header::WWW_AUTHENTICATE, &challenge)
                .because(reason);
        }
        Denied::Stranger => return Problem::new(StatusCode::FORBIDDEN, denied.to_string()).because(reason),
        Denied::Missing => r#"Bearer realm="headcount""#.to_owned(),
        Denied::Invalid | Denied::Refused(_) | Denied::Elsewhere | Denied::Expired | Denied::Revoked => {
            format!(r#"Bearer realm="headcount", error="invalid_token", error_description="{denied}""#)
        }
    };
    if !needed.is_empty() {
        challenge += &format!(r#", scope="{needed}""#);
    }
    Problem::new(StatusCode::UNAUTHORIZED, denied.to_string())
        .with(header::WWW_AUTHENTICATE, &challenge)
        .because(reason)
}

/// The grant of this principal does not permit what needs this scope. Named is all that a client has to ask for to have that,
/// too: what it has already is not to be lost.
pub(super) fn not_permitted(principal: &Principal, needed: Scope) -> Problem {
    let scopes: Scopes = principal.scopes.iter().chain([needed]).collect();
    let challenge = insufficient(&scopes);
    let needed = needed.as_str();
    Problem::new(StatusCode::FORBIDDEN, format!("the token does not permit this: it needs the scope {needed}"))
        .with(header::WWW_AUTHENTICATE, &challenge)
        .because("scope")
}

/// Asks for a token that permits this (RFC 6750, section 3.1).
fn insufficient(scopes: &Scopes) -> String {
    format!(r#"Bearer realm="headcount", error="insufficient_scope", scope="{scopes}""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_the_word_bearer_and_nowhere_else() {
        let headers = |values: &[&str]| {
            values.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap())).collect::<HeaderMap>()
        };
        for (values, token) in [
            (&["Bearer abc"][..], Some("abc")),
            (&["bEARER  abc "], Some("abc")),
            (&["Basic abc"], None),
            (&["Bearer"], None),
            (&["abc"], None),
            (&[], None),
            (&["Bearer abc", "Bearer abc"], Some("")),
        ] {
            assert_eq!(bearer(&headers(values)), token, "{values:?}");
        }
    }
}
