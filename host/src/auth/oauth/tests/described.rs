//! A client that nobody has registered: it describes itself on a site of its own.

use super::*;
use crate::auth::remote::{Fetcher, Reach};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A site on this machine that says the same of `/client.json` and `/other.json`, and who vouches for it.
async fn site() -> (u16, reqwest::Certificate) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let id = format!("https://localhost:{port}/client.json");
    let body = json!({"client_id": id, "client_name": "Agents", "redirect_uris": [REDIRECT]}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let answer = format!("{head}connection: close\r\n\r\n{body}");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut asked = [0; 4096];
            // A request is small enough to come at once.
            if stream.read(&mut asked).await.is_ok() {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    (port, reqwest::Certificate::from_der(made.cert.der()).unwrap())
}

#[tokio::test]
async fn a_client_is_who_its_own_site_says() {
    let mut home = Home::new();
    let (port, authority) = site().await;
    let at = |path: &str| format!("https://localhost:{port}{path}");
    let id = at("/client.json");
    // Strangers name no addresses on this machine.
    assert_eq!(home.server.find_client(&id).await.unwrap_err().code, ErrorCode::InvalidClient);
    let clock = Arc::clone(&home.clock) as Arc<dyn Clock>;
    home.server.documents = Fetcher::new(Reach::Anywhere, clock).trusting(authority);
    home.client = home.server.find_client(&id).await.unwrap();
    assert_eq!((home.client.id.as_str(), home.client.name.as_deref()), (&*id, Some("Agents")));
    // The same document does not describe whoever points at it.
    assert_eq!(home.server.find_client(&at("/other.json")).await.unwrap_err().code, ErrorCode::InvalidClient);
    let begun = home.begin(&home.asks()).unwrap();
    let row = AuthorizationServer::shown(&begun.request);
    assert_eq!((row.client_host.as_deref(), row.redirect_host.as_str()), (Some("localhost"), "127.0.0.1"));
    let issued = home.tokens();
    assert_eq!(home.admit(&issued).await.unwrap().client_id, Some(id));
    assert!(home.refresh(&issued.refresh).is_ok());
}
