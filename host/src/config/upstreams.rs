//! MCP servers that headcount is a client of, and what their settings may say together.

mod agents;

pub use agents::{AgentMap, AgentsFrom, Join, Meaning};

use super::headers;
use super::problem::{Origins, Problem, entry, item};
use super::span::Span;
use super::upstream_oauth::{self, OAuthSetting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use url::Url;

/// A server that is started (`command`), or is there already (`url`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// What to call it.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"), length(max = 64))]
    pub name: String,
    /// The program to start; one without a slash is looked for in `PATH`. It has the environment of headcount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that it has beside those.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where a server over streamable HTTP is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers that it is sent. None of them may be a secret: for those there are `headers_env` and `headers_file`, and for a
    /// token `token_env` and `token_file`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are in variables of headcount's environment that have these names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
    /// Headers whose values are in these files, each with nothing else. They are named as `token_file` is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_file: BTreeMap<String, PathBuf>,
    /// The variable of headcount's environment that holds its bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub token_env: Option<String>,
    /// The file that holds its bearer token, and nothing else. One that is not absolute stands beside the configuration file;
    /// `~/` is the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub token_file: Option<PathBuf>,
    /// Whether access is asked for by OAuth, and how; `true`: as the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthSetting>,
    /// The tools that may be called, by exact name; empty = all.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub allow: Vec<String>,
    /// How the protocol is agreed on.
    #[serde(default)]
    pub handshake: Handshake,
    /// How long connecting may take, its start and the list of its tools included (100 ms to 1 h).
    #[serde(default = "connect_timeout")]
    #[schemars(extend("x-least" = "100ms", "x-most" = "1h"))]
    pub connect_timeout: Span,
    /// How long the answer to a call is waited for (1 ms to 24 h).
    #[serde(default = "timeout")]
    #[schemars(extend("x-least" = "1ms", "x-most" = "24h"))]
    pub timeout: Span,
    /// How long a program is given to end after its input is closed, and then again after SIGTERM (at most 1 min).
    #[serde(default = "close_grace")]
    #[schemars(extend("x-most" = "1m"))]
    pub close_grace: Span,
    /// How many calls may be unanswered; one more is an error (1 to 4096).
    #[serde(default = "queue")]
    #[schemars(range(min = 1, max = 4096))]
    pub queue: u32,
    /// The agents that it knows of, taken up into the sessions here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_from: Option<AgentsFrom>,
}

/// How the protocol is agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Handshake {
    /// By `server/discover` of revision 2026-07-28, and by `initialize` where the server knows nothing of that.
    #[default]
    Auto,
    /// By `initialize` alone: for older servers that `server/discover` upsets.
    Initialize,
    /// By `server/discover` alone.
    Discover,
}

impl Upstream {
    /// The files that hold its secrets.
    pub(super) fn secret_files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let client = self.oauth.as_mut().and_then(OAuthSetting::secret_file);
        self.token_file.iter_mut().chain(self.headers_file.values_mut()).chain(client)
    }

    /// Whether it is sent what nobody else may see.
    fn has_secrets(&self) -> bool {
        self.token_env.is_some()
            || self.token_file.is_some()
            || !self.headers_env.is_empty()
            || !self.headers_file.is_empty()
            || self.oauth.as_ref().is_some_and(|oauth| oauth.oauth().is_some())
    }
}

fn connect_timeout() -> Span {
    Span::from_millis(30_000)
}

fn timeout() -> Span {
    Span::from_millis(60_000)
}

fn close_grace() -> Span {
    Span::from_millis(2_000)
}

fn queue() -> u32 {
    64
}

/// Whether a URL leads to this machine, by its host.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// What is wrong with the servers, beyond what their schema says.
pub(super) fn problems(upstreams: &[Upstream], origins: &Origins) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, upstream) in upstreams.iter().enumerate() {
        let at = item("upstream", index);
        let found = faults(upstream).into_iter();
        problems.extend(found.map(|(key, message)| match key.is_empty() {
            true => origins.problem(&at, message),
            false => origins.problem(&key.iter().fold(at.clone(), |at, name| entry(&at, name)), message),
        }));
    }
    problems
}

type Fault<'u> = (Vec<&'u str>, String);

fn faults(upstream: &Upstream) -> Vec<Fault<'_>> {
    let mut faults: Vec<Fault<'_>> = Vec::new();
    if upstream.command.is_some() == upstream.url.is_some() {
        faults.push((vec![], "wanted either `command` or `url`".into()));
    }
    let of_command = [("args", !upstream.args.is_empty()), ("env", !upstream.env.is_empty())];
    let of_url = [
        ("headers", !upstream.headers.is_empty()),
        ("headers_env", !upstream.headers_env.is_empty()),
        ("headers_file", !upstream.headers_file.is_empty()),
        ("token_env", upstream.token_env.is_some()),
        ("token_file", upstream.token_file.is_some()),
        ("oauth", upstream.oauth.is_some()),
    ];
    for (keys, with, is_there) in
        [(&of_command[..], "command", upstream.command.is_some()), (&of_url[..], "url", upstream.url.is_some())]
    {
        let stray = keys.iter().filter(|(_, is_set)| *is_set && !is_there);
        faults.extend(stray.map(|(key, _)| (vec![*key], format!("means nothing without `{with}`"))));
    }
    if upstream.token_env.is_some() && upstream.token_file.is_some() {
        faults.push((vec!["token_file"], "wanted one place for the token, and `token_env` is another".into()));
    }
    faults.extend(upstream_oauth::faults(upstream).into_iter().map(|(key, fault)| {
        let keys = ["oauth", key].into_iter().filter(|key| !key.is_empty());
        (keys.collect(), fault.to_owned())
    }));
    faults.extend(headers::faults(upstream).into_iter().map(|(key, name, fault)| (vec![key, name], fault)));
    for name in upstream
        .env
        .iter()
        .filter(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
    {
        faults.push((vec!["env", name.0.as_str()], "is no variable".into()));
    }
    if let Some(url) = &upstream.url {
        faults.extend(url_fault(url, upstream.has_secrets()).map(|fault| (vec!["url"], fault.to_owned())));
    }
    if let Some(from) = &upstream.agents_from {
        faults.extend(from.too_impatient().map(|fault| (vec!["agents_from", "stale_after"], fault)));
        faults.extend(from.not_allowed(&upstream.allow).map(|fault| (vec!["agents_from", "tool"], fault)));
    }
    let no_name = |name: &&String| name.is_empty() || name.chars().count() > 256 || name.chars().any(char::is_control);
    if let Some(name) = upstream.allow.iter().find(no_name) {
        let shown: String = name.chars().take(40).collect();
        faults.push((vec!["allow"], format!("{shown:?} is no tool's name")));
    }
    faults
}

fn url_fault(url: &str, has_secrets: bool) -> Option<&'static str> {
    let Ok(url) = Url::parse(url) else { return Some("is no URL") };
    if !["http", "https"].contains(&url.scheme()) {
        return Some("wanted http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some("holds a user or password: name where the token is by token_env or token_file");
    }
    (has_secrets && url.scheme() == "http" && !is_loopback(&url))
        .then_some("would send secrets in the clear: wanted https://, or a server on this machine")
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, LoadError, load};

    /// What is said of a configuration with one server that has these settings.
    fn said(settings: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, format!("[[upstream]]\nname = \"x\"\n{settings}\n")).unwrap();
        match load(&Environment::default(), Some(&file), &[]) {
            Ok(_) => String::new(),
            Err(LoadError::Invalid(problems)) => {
                let told: Vec<_> = problems.0.iter().map(|p| format!("{}: {}", p.key, p.message)).collect();
                told.join("\n")
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_server_is_started_or_is_there() {
        let either = "upstream[0]: wanted either `command` or `url`";
        assert_eq!(said(""), either);
        assert_eq!(said("command = 'a'\nurl = 'https://e.org'"), either);
        assert_eq!(said("command = 'a'\nargs = ['b']\nenv = { C = 'd' }"), "");
        assert_eq!(said("url = 'https://e.org/mcp'\nheaders = { X-Team = 'a' }\ntoken_env = 'T'"), "");
        assert_eq!(said("url = 'https://e.org'\nargs = ['b']"), "upstream[0].args: means nothing without `command`");
        assert_eq!(said("command = 'a'\ntoken_env = 'T'"), "upstream[0].token_env: means nothing without `url`");
    }

    #[test]
    fn secrets_are_refused_with_the_reason_and_not_shown() {
        for name in ["Authorization", "authorization", "Cookie", "X-API-Key"] {
            let told = said(&format!("url = 'https://e.org'\nheaders = {{ {name} = 'Bearer s3cret' }}"));
            assert!(told.contains("not kept in this file") && told.contains("headers_file"), "{told}");
            assert!(!told.contains("s3cret"));
            for table in ["headers_env", "headers_file"] {
                assert_eq!(said(&format!("url = 'https://e.org'\n{table} = {{ {name} = 'PLACE' }}")), "");
            }
        }
        let clear = said("url = 'http://e.org'\nheaders_env = { X-Api-Key = 'KEY' }");
        assert!(clear.contains("in the clear"), "{clear}");
        let told = said("url = 'https://me:s3cret@e.org'");
        assert!(told.contains("holds a user or password") && !told.contains("s3cret"), "{told}");
    }

    #[test]
    fn a_token_goes_in_the_clear_to_this_machine_at_most() {
        for url in ["https://e.org", "http://127.0.0.1:1/mcp", "http://[::1]:1", "http://localhost:1"] {
            assert_eq!(said(&format!("url = '{url}'\ntoken_env = 'T'")), "", "{url}");
        }
        for url in ["http://e.org", "http://localhost.e.org", "http://127.0.0.1.e.org", "http://10.0.0.1"] {
            assert!(said(&format!("url = '{url}'\ntoken_env = 'T'")).contains("in the clear"), "{url}");
        }
        assert_eq!(said("url = 'http://e.org'"), "");
    }

    #[test]
    fn agents_are_asked_for_by_tools_that_may_be_called() {
        let said =
            |allow: &str, from: &str| said(&format!("command = 'a'\nallow = [{allow}]\nagents_from = {{ {from} }}"));
        assert_eq!(said("", "tool = 'list_sessions'"), "");
        assert_eq!(said("'list_sessions', 'get_session_status'", "tool = 'list_sessions'"), "");
        let told = said("'list_sessions'", "tool = 'list_sessions'");
        assert_eq!(told, "upstream[0].agents_from.tool: needs \"get_session_status\", which is not in `allow`");
        assert_eq!(said("'list_sessions'", "tool = 'list_sessions', map = { id = '/id' }"), "");
        assert!(said("'b'", "tool = 'c'").contains("needs \"c\""));
        let told = said("", "tool = 'c', map = { id = 'id' }");
        assert!(told.starts_with("upstream[0].agents_from.map.id: wanted text of the form"), "{told}");
        assert!(said("", "tool = 'c', map = { id = '/a~2b' }").contains("wanted text of the form"));
        assert_eq!(said("", "tool = 'c', map = { id = '/a~1b/0', words = { busy = 'working' } }"), "");
        assert!(
            said("", "tool = 'c', map = { id = '', words = { busy = 'workin' } }")
                .contains("did you mean \"working\"?")
        );
        let told = said("", "tool = 'list_sessions', every = '2m'");
        assert_eq!(told, "upstream[0].agents_from.stale_after: wanted at least `every` (2m), found 1m");
        assert!(said("", "tool = 'c', sessions = 'by-path'").contains("\"by-root-path\""));
    }

    #[test]
    fn oauth_has_what_its_grant_needs_and_nothing_beside() {
        let oauth = |settings: &str| said(&format!("url = 'https://e.org/mcp'\noauth = {settings}"));
        let client = "client_id = 'c', client_secret_env = 'S'";
        for settings in ["true", "false", "{}", "{ scopes = ['a', 'b'], redirect_port = 7 }"] {
            assert_eq!(oauth(settings), "", "{settings}");
        }
        assert_eq!(oauth(&format!("{{ grant = 'client_credentials', {client} }}")), "");
        assert_eq!(oauth("{ client_metadata_url = 'https://me.example/client.json' }"), "");
        for (settings, told) in [
            ("3", "upstream[0].oauth: wanted"),
            ("{ scope = ['a'] }", "upstream[0].oauth.scope: unknown key; did you mean `scopes`?"),
            ("{ grant = 'implicit' }", "upstream[0].oauth.grant: wanted"),
            (
                "{ grant = 'client_credentials', client_id = 'c' }",
                "upstream[0].oauth.grant: wanted `client_id` and its secret",
            ),
            ("{ client_secret_env = 'S' }", "upstream[0].oauth: the secret of a client means nothing"),
            (&*format!("{{ {client}, client_secret_file = 'f' }}"), "oauth.client_secret_file: wanted one place"),
            ("{ client_metadata_url = 'http://e.org/a' }", "upstream[0].oauth.client_metadata_url: "),
            ("{ client_metadata_url = 'https://e.org' }", "client_metadata_url: wanted an address with a path"),
            ("{ scopes = ['a b'] }", "upstream[0].oauth.scopes: wanted scopes"),
            ("{ redirect_port = 0 }", "upstream[0].oauth.redirect_port: wanted at least 1"),
            ("true\ntoken_env = 'T'", "upstream[0].oauth: wanted one place for the token"),
            ("{}\nheaders_file = { authorization = 'f' }", "upstream[0].oauth: wanted one place for the token"),
        ] {
            let said = oauth(settings);
            assert!(said.contains(told), "{settings}: {said}");
        }
        assert_eq!(said("command = 'a'\noauth = true"), "upstream[0].oauth: means nothing without `url`");
        assert!(said("url = 'http://e.org'\noauth = true").contains("in the clear"));
    }

    #[test]
    fn what_cannot_be_sent_is_said_at_once() {
        assert!(said("url = 'file:///etc/passwd'").ends_with("wanted http:// or https://"));
        assert!(said("url = 'nowhere'").ends_with("is no URL"));
        let header =
            |name: &str, value: &str| said(&format!("url = 'https://e.org'\nheaders = {{ {name} = {value} }}"));
        assert!(header("Mcp-Session-Id", "'x'").ends_with("is set by the transport itself"));
        assert!(header("'a b'", "'x'").ends_with("is no name of a header"));
        assert!(header("X-A", "\"a\\nb\"").ends_with("it holds control characters"));
        let two = said("url = 'https://e.org'\nheaders = { X-A = 'b' }\nheaders_env = { x-a = 'B', X-C = '' }");
        let each = "upstream[0].headers_env.X-C: names no variable\nupstream[0].headers_env.x-a: is set twice";
        assert_eq!(two, each);
        let token =
            said("url = 'https://e.org'\ntoken_env = 'T'\nheaders_file = { Authorization = 'f', Accept = 'g' }");
        assert!(token.contains("Authorization: is set twice") && token.contains("Accept: is set by the transport"));
        assert!(said("command = 'a'\nenv = { 'A=B' = 'c' }").ends_with("is no variable"));
        assert!(said("command = 'a'\nallow = ['']").ends_with("\"\" is no tool's name"));
        assert!(said("url = 'https://e.org'\ntoken_env = 'T'\ntoken_file = 'f'").contains("one place for the token"));
    }
}
