//! `headcount serve`: MCP over stdin and stdout, or over HTTP.

use super::grants::sentence;
use crate::auth::oauth::RequestRow;
use crate::http::{self, Doors, Tell, TlsFiles};
use crate::mcp::{self, http::Endpoint};
use crate::setup::{Rosters, Setup};
use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// How long the end of what was cut is waited for.
const END: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("door").args(["http", "unix"]).multiple(true))]
pub struct Args {
    /// Read this roster too; may be given several times
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
    /// Do not start with a policy that cannot be loaded
    #[arg(long)]
    strict: bool,
    /// Serve HTTP at this address instead, for whoever has a token (`headcount token create`)
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// Speak TLS there, with the certificates in this PEM file, the server's own first; followed as it changes
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file that others cannot read
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve HTTP at this socket, which only you can open (0600), beside --http or alone; a token is needed here, too
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Listen also where other machines can reach it: a proxy stands before it that speaks TLS with them
    #[arg(long, requires = "http")]
    behind_proxy: bool,
    /// Serve requests for this host name, too, as a proxy may send them; may be given several times
    #[arg(long, value_name = "NAME", value_parser = host, requires = "door")]
    allow_host: Vec<String>,
    /// Serve requests of web pages of this origin, such as https://example.org; may be given several times
    #[arg(long, value_name = "ORIGIN", value_parser = origin, requires = "door")]
    allow_origin: Vec<String>,
}

pub fn run(setup: Setup, args: Args) -> anyhow::Result<ExitCode> {
    let setup = setup.strict(args.strict);
    let over_http = args.http.is_some() || args.unix.is_some();
    if !over_http && std::io::stdin().is_terminal() {
        crate::stderr::line("headcount serves MCP on stdin and stdout, and waits for a client; Ctrl-C ends it.");
    }
    if args.strict {
        // Once before anybody is answered; what was compiled is kept for the second time.
        setup.judge()()?;
    }
    let gate = setup.gate();
    let service = mcp::Service::start(setup, Rosters { files: args.roster, ..Rosters::default() })?;
    let upstreams = service.upstreams().cloned();
    // One thread: what a call does goes from task to task many times, and to wake another one for each would take longer than
    // the task itself. Over HTTP others answer, each its own connections; whatever takes long has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if over_http {
        let doors = Doors {
            address: args.http,
            tls: args.tls_cert.zip(args.tls_key).map(|(certificate, key)| TlsFiles { certificate, key }),
            socket: args.unix,
            behind_proxy: args.behind_proxy,
            hosts: args.allow_host,
            origins: args.allow_origin,
        };
        let all = args.http.filter(|address| address.ip().is_unspecified()).map(|address| address.ip());
        let all = all.map(|ip| format!(" ({ip}: so it does at every address of this machine)")).unwrap_or_default();
        let opened = move |place: &str| {
            // A socket is at no address.
            let all = if place.starts_with("http") { &*all } else { "" };
            crate::stderr::line(&format!("headcount serves MCP at {place}/mcp, and REST at {place}/v1{all}"));
        };
        let endpoint = Endpoint::new(Arc::new(service));
        let tell = Tell { opened: Box::new(opened), asked: Box::new(asked) };
        runtime.block_on(http::serve(endpoint, gate, doors, tell))?;
        // What is still under way goes, and with it the last who hold the ledger and the audit log: then these are complete.
        runtime.shutdown_timeout(END);
    } else {
        runtime.block_on(mcp::serve_stdio(service))?;
        // A read of stdin that is still waiting would keep the runtime from ending.
        runtime.shutdown_background();
    }
    if let Some(upstreams) = upstreams {
        upstreams.end();
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the code that consents to a request, where a person sees it and no file keeps it.
fn asked(request: &RequestRow) {
    if std::io::stderr().is_terminal() {
        crate::stderr::line(&sentence(request));
    }
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "an IP address and a port are wanted, as in 127.0.0.1:7878")
}

/// A host as clients write it, without its port. What none of them would send would only seem to let somebody in.
fn host(text: &str) -> Result<String, &'static str> {
    let wanted = "a host name or an IP address is wanted, without scheme, port and path, as in agents.example";
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    match Host::parse(text) {
        Ok(Host::Domain(name)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) => Ok(name),
        _ => Err(wanted),
    }
}

/// An origin as browsers write it (RFC 6454). What they would never send would only seem to let somebody in.
fn origin(text: &str) -> Result<String, String> {
    let wanted = "the scheme and host of the pages are wanted, as in https://example.org; there is no `*`";
    let url = Url::parse(text).map_err(|_| wanted)?;
    let host = url.host_str().ok_or(wanted)?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let origin = format!("{}://{host}{port}", url.scheme());
    let is_more = !matches!(url.path(), "" | "/") || url.query().or(url.fragment()).is_some() || text.contains('@');
    if is_more { Err(format!("an origin has nothing but scheme, host and port, as {origin}")) } else { Ok(origin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_clients_send_and_an_address_has_a_port() {
        for (text, sent) in [
            ("Agents.Example", "agents.example"),
            ("my_box", "my_box"),
            ("10.0.0.7", "10.0.0.7"),
            ("[FE80::1]", "fe80::1"),
            ("::1", "::1"),
            ("bücher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(host(text).as_deref(), Ok(sent), "{text}");
        }
        for none in
            ["", " ", "*", "*.example", "https://a", "a:80", "a/b", "a b", "a,b", "u@a", "10.0.0.7:80", "[::1]:80"]
        {
            assert!(host(none).is_err(), "{none}");
        }
        assert_eq!(address("[::1]:80").unwrap().port(), 80);
        for none in ["localhost:7878", "7878", ":7878", "127.0.0.1", "http://127.0.0.1:80"] {
            assert!(address(none).is_err_and(|why| why.contains("127.0.0.1:7878")), "{none}");
        }
    }

    #[test]
    fn an_origin_is_what_browsers_call_one() {
        for (text, as_sent) in [
            ("https://Agents.Example", "https://agents.example"),
            ("https://agents.example:443/", "https://agents.example"),
            ("http://localhost:6274", "http://localhost:6274"),
            ("http://[::1]:80", "http://[::1]"),
            ("vscode-webview://abc", "vscode-webview://abc"),
        ] {
            assert_eq!(origin(text).as_deref(), Ok(as_sent), "{text}");
        }
        for none in ["*", "null", "agents.example", "https://a/b", "https://a?b", "https://u@a", "file:///a", "data:x"]
        {
            assert!(origin(none).is_err(), "{none}");
        }
    }
}
