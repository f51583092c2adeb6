//! A client that asks for access over a plain socket, and the browser and the terminal of the owner.

use crate::http_client::{Connection, Response, Server};
use crate::world::World;
use headcount::auth::Scope;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use url::{Url, form_urlencoded};

/// Of RFC 7636, appendix B.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Where the client listens, or would.
pub const REDIRECT: &str = "http://127.0.0.1:4711/callback";

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// Parameters by name; an empty one is not sent.
pub type Sent = BTreeMap<&'static str, String>;

/// The same parameters with one more, or one changed.
pub fn with(sent: &Sent, name: &'static str, value: &str) -> Sent {
    let mut sent = sent.clone();
    sent.insert(name, value.to_owned());
    sent
}

pub fn encoded(sent: &Sent) -> String {
    let there = sent.iter().filter(|(_, value)| !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(there).finish()
}

/// What an address carries behind its `?`.
pub fn query(url: &str) -> BTreeMap<String, String> {
    Url::parse(url).unwrap_or_else(|error| panic!("{error}: {url:?}")).query_pairs().into_owned().collect()
}

pub fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let headers = [&[FORM], headers].concat();
    Connection::to(server.address, None).request("POST", path, &headers, body.as_bytes())
}

/// A client that has registered.
pub struct Client<'w> {
    pub world: &'w World,
    pub server: &'w Server,
    pub id: String,
}

/// The page that a browser was shown.
pub struct Page {
    pub answer: Response,
    pub id: String,
    /// What the page calls its request.
    pub label: String,
    pub cookie: String,
}

/// Tokens that were given out.
#[derive(Debug, Clone)]
pub struct Tokens {
    pub access: String,
    pub refresh: String,
    pub scope: String,
}

impl Tokens {
    pub fn of(answer: &Response) -> Self {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body = answer.json();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Self { access: text("access_token"), refresh: text("refresh_token"), scope: text("scope") }
    }
}

pub fn register(server: &Server, metadata: &Value) -> Response {
    let kind = [("content-type", "application/json")];
    Connection::to(server.address, None).request("POST", "/oauth/register", &kind, metadata.to_string().as_bytes())
}

impl<'w> Client<'w> {
    pub fn register(world: &'w World, server: &'w Server) -> Self {
        let answer = register(server, &json!({"client_name": "Agent", "redirect_uris": [REDIRECT]}));
        assert_eq!(answer.status, 201, "{}", answer.text());
        Self { world, server, id: answer.json()["client_id"].as_str().unwrap().to_owned() }
    }

    /// A request for authorization that is as it should be.
    pub fn asks(&self, scope: &str) -> Sent {
        [
            ("client_id", &*self.id),
            ("redirect_uri", REDIRECT),
            ("response_type", "code"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("resource", "http://localhost/mcp"),
            ("scope", scope),
            ("state", "its state"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
    }

    /// What a browser is answered that a client has sent here.
    pub fn open(&self, sent: &Sent) -> Response {
        Connection::to(self.server.address, None).get(&format!("/oauth/authorize?{}", encoded(sent)))
    }

    pub fn page(&self, scope: &str) -> Page {
        let answer = self.open(&self.asks(scope));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let between = |from: &str, to| text.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        Page { id: between(r#"name="request" value=""#, '"'), label: between("request <code>", '<'), cookie, answer }
    }

    /// The requests that the owner's terminal shows.
    pub fn requests(&self) -> Vec<Value> {
        let ran = self.world.run(&["grants", "requests", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(ran.json()["schema"], "headcount.grant_requests/1");
        ran.json()["requests"].as_array().unwrap().clone()
    }

    /// The one-time code for a page.
    pub fn one_time_code(&self, page: &Page) -> String {
        let requests = self.requests();
        let found: Vec<_> = requests.iter().filter(|request| request["request"] == page.label).collect();
        assert_eq!(found.len(), 1, "{requests:#?}");
        found[0]["code"].as_str().unwrap().to_owned()
    }

    /// A form that consents to all.
    pub fn approves(&self, page: &Page) -> Sent {
        let mut sent: Sent = Scope::ALL.map(|scope| (scope.as_str(), "on".to_owned())).into();
        let code = self.one_time_code(page);
        sent.extend([("request", page.id.clone()), ("code", code), ("decision", "approve".into())]);
        sent
    }

    /// Sends the form as the browser does that was shown the page.
    pub fn answer(&self, page: &Page, sent: &Sent) -> Response {
        let headers = [("cookie", page.cookie.as_str()), ("origin", "http://localhost")];
        post(self.server, "/oauth/authorize", &headers, &encoded(sent))
    }

    /// The code that comes of a request which the owner consents to.
    pub fn code(&self, scope: &str) -> String {
        let page = self.page(scope);
        let answer = self.answer(&page, &self.approves(&page));
        assert_eq!(answer.status, 303, "{}", answer.text());
        query(answer.header("location"))["code"].clone()
    }

    /// A request for tokens that is as it should be.
    pub fn redeems(&self, code: &str) -> Sent {
        [
            ("grant_type", "authorization_code"),
            ("client_id", &*self.id),
            ("redirect_uri", REDIRECT),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("resource", "http://localhost/mcp"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
    }

    pub fn refreshes(&self, token: &str) -> Sent {
        [("grant_type", "refresh_token"), ("client_id", &*self.id), ("refresh_token", token)]
            .map(|(name, value)| (name, value.to_owned()))
            .into()
    }

    pub fn token(&self, sent: &Sent) -> Response {
        post(self.server, "/oauth/token", &[], &encoded(sent))
    }

    pub fn tokens(&self, scope: &str) -> Tokens {
        Tokens::of(&self.token(&self.redeems(&self.code(scope))))
    }

    pub fn refresh(&self, tokens: &Tokens) -> Response {
        self.token(&self.refreshes(&tokens.refresh))
    }

    pub fn revoke(&self, token: &str) -> Response {
        post(self.server, "/oauth/revoke", &[], &encoded(&[("token", token.to_owned())].into()))
    }
}

/// The error of an answer to a program.
pub fn error(answer: &Response) -> String {
    assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("application/json", "no-store"));
    answer.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {}", answer.text())).to_owned()
}
