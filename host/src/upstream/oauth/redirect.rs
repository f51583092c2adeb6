//! What the authorization server answers by way of the browser: an address of this machine, which the browser is sent to, or
//! which somebody brings over from another machine's browser.

use crate::text::clean;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

/// The path that the browser is sent to.
const PATH: &str = "/callback";
/// The longest head of a request, bytes.
const HEAD_MAX: usize = 16 << 10;
/// How long a browser may take to send it.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Browsers open connections that they may use later; others may open as many as they like.
const CONNECTIONS_MAX: usize = 32;

/// Where an answer is waited for.
pub struct Callback {
    listener: TcpListener,
    /// Its address.
    pub address: Url,
}

/// An answer to the request that was made.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Somebody has consented.
    Code {
        /// What tokens are given for.
        code: String,
        /// Who says so (RFC 9207).
        issuer: Option<String>,
    },
    /// It was refused, in words.
    Refused(String),
}

impl Answer {
    /// Reads the answer to the request with this `state`.
    ///
    /// # Errors
    /// In words, when it is none. What it holds is not shown.
    pub fn of(url: &Url, state: &str) -> Result<Self, &'static str> {
        let one = |name: &str| -> Result<Option<String>, &'static str> {
            let mut found = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            match (found.next(), found.next()) {
                (first, None) => Ok(first),
                _ => Err("the answer says a thing twice"),
            }
        };
        if one("state")?.as_deref() != Some(state) {
            return Err("this is not the answer that is waited for");
        }
        if let Some(error) = one("error")? {
            let words =
                one("error_description")?.map_or(error.clone(), |description| format!("{error}: {description}"));
            return Ok(Self::Refused(clean(&words)));
        }
        let code = one("code")?.ok_or("the answer holds no code")?;
        Ok(Self::Code { code, issuer: one("iss")? })
    }
}

impl Callback {
    /// Listens on this machine alone, at this port or any.
    ///
    /// # Errors
    /// In words, when it cannot.
    pub async fn open(port: Option<u16>) -> Result<Self, String> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
        let failed = |error| format!("the answer cannot be waited for at {wanted}: {error}");
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = format!("http://{}{PATH}", listener.local_addr().map_err(failed)?);
        let address = address.parse().map_err(|_| format!("{address} is no address"))?;
        Ok(Self { listener, address })
    }

    /// Waits for the answer to the request with this `state`. Whatever else comes is sent away: anybody on this machine may
    /// knock here.
    pub async fn answer(&self, state: &str) -> Answer {
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = self.listener.accept(), if visits.len() < CONNECTIONS_MAX => {
                    let (address, state) = (self.address.clone(), state.to_owned());
                    visits.spawn(async move { timeout(HEAD_TIME, visit(stream, &address, &state)).await.ok().flatten() });
                }
                Some(visit) = visits.join_next() => {
                    if let Ok(Some(answer)) = visit {
                        return answer;
                    }
                }
            }
        }
    }
}

/// Hears one request, and answers it.
async fn visit(mut stream: TcpStream, address: &Url, state: &str) -> Option<Answer> {
    let head = head(&mut stream).await?;
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    let url = address.join(target).ok().filter(|url| url.origin() == address.origin() && url.path() == PATH);
    let answer = url.map(|url| Answer::of(&url, state));
    let (status, words) = match &answer {
        None => ("404 Not Found", "There is nothing here."),
        Some(Err(why)) => ("400 Bad Request", *why),
        Some(Ok(Answer::Code { .. })) => {
            ("200 OK", "headcount has the answer and says in the terminal what came of it.")
        }
        Some(Ok(Answer::Refused(_))) => ("200 OK", "It was refused. headcount says more in the terminal."),
    };
    let length = words.len();
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{words}"
    );
    // Who does not stay to read it has sent the answer all the same.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    answer?.ok()
}

/// The head of a request, if it is one of a sensible size.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read_buf(&mut head).await.ok()?;
        if read == 0 || head.len() > HEAD_MAX {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(query: &str) -> Result<Answer, &'static str> {
        Answer::of(&format!("http://127.0.0.1:1/callback?{query}").parse().unwrap(), "its state")
    }

    #[test]
    fn only_the_answer_to_this_request_counts_and_says_each_thing_once() {
        let code = |issuer: Option<&str>| Answer::Code { code: "c".into(), issuer: issuer.map(str::to_owned) };
        assert_eq!(answer("state=its%20state&code=c"), Ok(code(None)));
        assert_eq!(answer("iss=https://a&state=its+state&code=c"), Ok(code(Some("https://a"))));
        for strange in ["", "code=c", "code=c&state=other", "error=access_denied", "code=c&state="] {
            assert_eq!(answer(strange), Err("this is not the answer that is waited for"));
        }
        assert_eq!(answer("state=its+state"), Err("the answer holds no code"));
        for twice in ["state=its+state", "code=d", "iss=a&iss=b"] {
            assert_eq!(answer(&format!("state=its+state&code=c&{twice}")), Err("the answer says a thing twice"));
        }
        let refused = answer("state=its+state&error=access_denied&error_description=no%1b[2J!");
        assert_eq!(refused, Ok(Answer::Refused("access_denied: no!".into())));
    }

    /// Sends this and reads what comes, until the connection ends.
    async fn knock(address: &Url, sent: &str) -> String {
        let mut stream = TcpStream::connect(address.socket_addrs(|| None).unwrap()[0]).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await.unwrap();
        heard
    }

    #[tokio::test]
    async fn whoever_else_knocks_is_sent_away_and_holds_nobody_up() {
        let callback = Callback::open(None).await.unwrap();
        let address = callback.address.clone();
        let waits = tokio::spawn(async move { callback.answer("s").await });
        let idle = TcpStream::connect(address.socket_addrs(|| None).unwrap()[0]).await.unwrap();
        for (target, status) in [
            ("/favicon.ico", "404"),
            ("/callback", "400"),
            ("/callback?code=c&state=t", "400"),
            ("http://elsewhere/callback?code=c&state=s", "404"),
            ("//elsewhere/callback?code=c&state=s", "404"),
        ] {
            let heard = knock(&address, &format!("GET {target} HTTP/1.1\r\n\r\n")).await;
            assert!(heard.starts_with(&format!("HTTP/1.1 {status}")), "{target}: {heard}");
        }
        assert_eq!(knock(&address, "POST /callback?code=c&state=s HTTP/1.1\r\n\r\n").await, "");
        let heard = knock(&address, "GET /callback?code=c&state=s HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(
            heard.starts_with("HTTP/1.1 200") && heard.contains("no-store") && !heard.contains("code=c"),
            "{heard}"
        );
        assert_eq!(waits.await.unwrap(), Answer::Code { code: "c".into(), issuer: None });
        drop(idle);
    }
}
