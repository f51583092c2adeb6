//! A site on this machine, and what is fetched from it and what is not.

use super::*;
use crate::clock::ManualClock;
use reqwest::Certificate;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Answers each request with what its path has, and says nothing at all to `/silent`.
struct Site {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Site {
    async fn open(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    match acceptor {
                        Some(acceptor) => answer(acceptor.accept(stream).await.ok()?, &counted).await,
                        None => answer(stream, &counted).await,
                    }
                });
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> Url {
        format!("http://127.0.0.1:{}{path}", self.port).parse().unwrap()
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, counted: &AtomicUsize) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let lower = head.to_ascii_lowercase();
    assert!(!lower.contains("authorization:") && !lower.contains("cookie:") && !lower.contains("referer:"), "{head}");
    counted.fetch_add(1, Ordering::SeqCst);
    let json = "content-type: application/json\r\n";
    let (headers, body) = match head.split(' ').nth(1)? {
        "/silent" => std::future::pending().await,
        "/keys" => ("content-type: application/jwk-set+json; charset=utf-8\r\n".to_owned(), "{\"a\": 1}".to_owned()),
        "/hour" => (format!("{json}cache-control: public, max-age=3600\r\n"), "1".into()),
        "/year" => (format!("{json}cache-control: max-age=31536000\r\n"), "1".into()),
        "/never" => (format!("{json}cache-control: no-store\r\n"), "1".into()),
        "/html" => ("content-type: text/html\r\n".into(), "{}".into()),
        "/untyped" => (String::new(), "{}".into()),
        "/garbage" => (json.into(), "{\"a\": ".into()),
        "/just-fits" => (json.into(), format!("\"{}\"", "x".repeat(MAX_BYTES - 2))),
        "/too-large" => (json.into(), format!("\"{}\"", "x".repeat(MAX_BYTES - 1))),
        "/elsewhere" => {
            let moved = "HTTP/1.1 302 Found\r\nlocation: /keys\r\ncontent-length: 0\r\n\r\n";
            return stream.write_all(moved.as_bytes()).await.ok();
        }
        "/broken-off" => {
            let half = format!("HTTP/1.1 200 OK\r\n{json}content-length: 100\r\n\r\n{{");
            return stream.write_all(half.as_bytes()).await.ok();
        }
        path if path.starts_with("/any") => (json.into(), "{}".into()),
        _ => return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await.ok(),
    };
    // Its length is not said before.
    let response = format!("HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\n{body}");
    stream.write_all(response.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

fn fetcher(reach: Reach) -> (Fetcher, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(0));
    (Fetcher::new(reach, Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

#[tokio::test]
async fn what_strangers_name_is_public_and_https_or_is_not_gone_to() {
    let site = Site::open(None).await;
    let (fetcher, _) = fetcher(Reach::Public);
    let port = site.port;
    for (url, why) in [
        (format!("http://127.0.0.1:{port}/keys"), RemoteError::Refused("it is not https")),
        ("http://example.org/".into(), RemoteError::Refused("it is not https")),
        ("ftp://example.org/".into(), RemoteError::Refused("it is not https")),
        ("data:application/json,{}".into(), RemoteError::Refused("it names no host")),
        ("file:///etc/passwd".into(), RemoteError::Refused("it names no host")),
        ("https://a:b@example.org/".into(), RemoteError::Refused("it has a user name or password in it")),
        (format!("https://example.org/{}", "x".repeat(MAX_BYTES)), RemoteError::Refused("it is too long")),
        (format!("https://127.0.0.1:{port}/keys"), RemoteError::NotPublic),
        (format!("https://localhost:{port}/keys"), RemoteError::NotPublic),
        // As the system's own resolver would read them, too.
        (format!("https://2130706433:{port}/keys"), RemoteError::NotPublic),
        (format!("https://0x7f.1:{port}/keys"), RemoteError::NotPublic),
        (format!("https://0177.0.0.1:{port}/keys"), RemoteError::NotPublic),
        (format!("https://[::1]:{port}/keys"), RemoteError::NotPublic),
        (format!("https://[::ffff:127.0.0.1]:{port}/keys"), RemoteError::NotPublic),
        (format!("https://[64:ff9b::7f00:1]:{port}/keys"), RemoteError::NotPublic),
        ("https://169.254.169.254/latest/meta-data".into(), RemoteError::NotPublic),
    ] {
        assert_eq!(fetcher.json(&url.parse().unwrap()).await.unwrap_err(), why, "{url}");
    }
    assert_eq!(site.requests(), 0);
}

#[tokio::test]
async fn what_the_owner_names_may_be_near_but_is_https_elsewhere() {
    let site = Site::open(None).await;
    let (fetcher, _) = fetcher(Reach::Anywhere);
    assert_eq!(fetcher.json(&site.url("/keys")).await.unwrap().value, serde_json::json!({ "a": 1 }));
    for url in ["http://10.0.0.1/", "http://example.org/", "http://localhost.example.org/"] {
        let refused = RemoteError::Refused("it is not https");
        assert_eq!(fetcher.json(&url.parse().unwrap()).await.unwrap_err(), refused, "{url}");
    }
}

#[tokio::test]
async fn only_a_json_document_of_bounded_size_that_is_really_there_counts() {
    let site = Site::open(None).await;
    let (fetcher, _) = fetcher(Reach::Anywhere);
    assert!(fetcher.json(&site.url("/just-fits")).await.is_ok());
    for (path, why) in [
        ("/too-large", RemoteError::TooLarge(MAX_BYTES)),
        ("/html", RemoteError::NotJson),
        ("/untyped", RemoteError::NotJson),
        ("/garbage", RemoteError::NotJson),
        ("/elsewhere", RemoteError::Status(302)),
        ("/nowhere", RemoteError::Status(404)),
    ] {
        assert_eq!(fetcher.json(&site.url(path)).await.unwrap_err(), why, "{path}");
    }
    let broken = fetcher.json(&site.url("/broken-off")).await;
    assert!(matches!(broken, Err(RemoteError::Unreachable(_))), "{broken:?}");
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nobody = fetcher.json(&format!("http://{nobody}/").parse().unwrap()).await;
    assert!(matches!(&nobody, Err(RemoteError::Unreachable(why)) if !why.contains("http")), "{nobody:?}");
}

#[tokio::test]
async fn who_says_nothing_is_not_waited_for_long() {
    let site = Site::open(None).await;
    let (fetcher, _) = fetcher(Reach::Anywhere);
    assert_eq!(fetcher.json(&site.url("/silent")).await.unwrap_err(), RemoteError::TimedOut);
}

#[tokio::test]
async fn a_document_is_fetched_once_while_it_holds_however_many_want_it() {
    let site = Site::open(None).await;
    let (fetcher, clock) = fetcher(Reach::Anywhere);
    let url = site.url("/hour");
    let wanted: Vec<_> = (0..20).map(|_| fetcher.json(&url)).collect();
    for wanted in wanted {
        assert_eq!(wanted.await.unwrap().lifetime, Duration::from_secs(3600));
    }
    clock.advance(Duration::from_secs(3599));
    fetcher.json(&url).await.unwrap();
    assert_eq!(site.requests(), 1);
    clock.advance(Duration::from_secs(1));
    fetcher.json(&url).await.unwrap();
    assert_eq!(site.requests(), 2);
    for (path, lifetime) in [("/year", BOUNDS.1), ("/never", BOUNDS.0), ("/keys", FRESH)] {
        assert_eq!(fetcher.json(&site.url(path)).await.unwrap().lifetime, lifetime, "{path}");
    }
}

#[tokio::test]
async fn those_who_want_it_at_once_wait_for_one_fetch() {
    let site = Site::open(None).await;
    let (fetcher, _) = fetcher(Reach::Anywhere);
    let (fetcher, url) = (Arc::new(fetcher), site.url("/keys"));
    let wanted: Vec<_> = (0..20)
        .map(|_| {
            let (fetcher, url) = (Arc::clone(&fetcher), url.clone());
            tokio::spawn(async move { fetcher.json(&url).await })
        })
        .collect();
    for wanted in wanted {
        wanted.await.unwrap().unwrap();
    }
    assert_eq!(site.requests(), 1);
}

#[tokio::test]
async fn what_cannot_be_fetched_is_left_alone_for_a_while() {
    let site = Site::open(None).await;
    let (fetcher, clock) = fetcher(Reach::Anywhere);
    for _ in 0..5 {
        assert_eq!(fetcher.json(&site.url("/nowhere")).await.unwrap_err(), RemoteError::Status(404));
    }
    assert_eq!(site.requests(), 1);
    clock.advance(FAILED);
    fetcher.json(&site.url("/nowhere")).await.unwrap_err();
    assert_eq!(site.requests(), 2);
}

#[tokio::test]
async fn a_flood_of_addresses_is_no_flood_of_requests_and_takes_no_memory() {
    let site = Site::open(None).await;
    let (fetcher, clock) = fetcher(Reach::Anywhere);
    fetcher.json(&site.url("/hour")).await.unwrap();
    for n in 0..1000 {
        let got = fetcher.json(&site.url(&format!("/any{n}"))).await;
        assert_eq!(got.err(), (n + 1 >= RATE.1 as usize).then_some(RemoteError::Busy), "{n}");
    }
    assert_eq!(site.requests(), RATE.1 as usize);
    assert!(fetcher.known.lock().unwrap().len() <= REMEMBERED);
    fetcher.json(&site.url("/hour")).await.expect("what is known needs no fetch");
    clock.advance(Duration::from_secs(2));
    assert!(fetcher.json(&site.url("/any1")).await.is_ok());
}

#[tokio::test]
async fn so_many_are_fetched_at_once_and_no_more() {
    let site = Site::open(None).await;
    let (fetcher, _) = fetcher(Reach::Anywhere);
    let fetcher = Arc::new(fetcher);
    let silent: Vec<_> = (0..AT_ONCE)
        .map(|n| {
            let (fetcher, url) = (Arc::clone(&fetcher), site.url("/silent"));
            let url = url.join(&format!("/silent?{n}")).unwrap();
            tokio::spawn(async move { fetcher.json(&url).await })
        })
        .collect();
    while fetcher.at_once.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fetcher.json(&site.url("/keys")).await.unwrap_err(), RemoteError::Busy);
    silent.iter().for_each(tokio::task::JoinHandle::abort);
    for silent in silent {
        assert!(silent.await.unwrap_err().is_cancelled());
    }
    assert!(fetcher.json(&site.url("/keys")).await.is_ok(), "whoever goes away makes room");
}

#[tokio::test]
async fn a_certificate_is_looked_at() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let site = Site::open(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let authority = Certificate::from_der(made.cert.der()).unwrap();
    let url = |host: &str| format!("https://{host}:{}/keys", site.port).parse::<Url>().unwrap();
    let trusting = Getter::new(Reach::Anywhere, MAX_BYTES).trusting(authority.clone());
    assert_eq!(trusting.get(&url("localhost")).await.map(|got| got.max_age), Ok(None));
    // Another name than the certificate's, and nobody who vouches for it.
    for (getter, host) in [(trusting, "127.0.0.1"), (Getter::new(Reach::Anywhere, MAX_BYTES), "localhost")] {
        let got = getter.get(&url(host)).await.map(|got| got.value);
        assert!(matches!(got, Err(RemoteError::Unreachable(_))), "{host}: {got:?}");
    }
    // A name is looked at when it is resolved, whoever has a certificate for it.
    let public = Getter::new(Reach::Public, MAX_BYTES).trusting(authority);
    assert_eq!(public.get(&url("localhost")).await.map(|got| got.value), Err(RemoteError::NotPublic));
    assert_eq!(site.requests(), 1);
}
