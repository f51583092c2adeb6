//! TLS 1.2 and 1.3, with a certificate that may be renewed while it is in use.

mod certificate;
#[cfg(test)]
mod tests;

pub use certificate::{Files, TlsError};

use super::connection::patient;
use super::patient::Patient;
use crate::clock::Clock;
use crate::config::service_manager::{Told, tell};
use crate::files::Stamp;
use certificate::out_of_date;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::server::TlsStream;

/// How often the files are looked at: who renews them replaces what links lead to, in folders that nobody has named.
const LOOK: Duration = Duration::from_secs(2);

/// What is needed to speak TLS.
pub(super) struct Tls {
    files: Files,
    provider: Arc<CryptoProvider>,
    clock: Arc<dyn Clock>,
    current: Arc<Current>,
    acceptor: TlsAcceptor,
}

/// The certificate in use.
#[derive(Debug)]
struct Current(RwLock<Read>);

/// What was read, and what the files were just before.
#[derive(Debug, Clone)]
struct Read {
    certified: Arc<CertifiedKey>,
    stamps: [Option<Stamp>; 2],
}

impl Current {
    fn read(&self) -> Read {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.read().certified)
    }
}

impl Tls {
    /// TLS with these files.
    ///
    /// # Errors
    /// When they are of no use.
    pub fn load(files: Files, clock: Arc<dyn Clock>) -> Result<Arc<Self>, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let current = Arc::new(Current(RwLock::new(read(&files, &provider, clock.as_ref())?)));
        let versions = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let versions = versions.map_err(|source| TlsError::Unusable { file: files.certificate.clone(), source })?;
        let mut config = versions.with_no_client_auth().with_cert_resolver(Arc::clone(&current) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Arc::new(Self { files, provider, clock, current, acceptor }))
    }

    /// What comes of whoever has come.
    pub fn shake_hands(
        &self,
        came: std::net::TcpStream,
    ) -> impl Future<Output = io::Result<TlsStream<Patient<TcpStream>>>> + Send + 'static {
        let acceptor = self.acceptor.clone();
        async move { acceptor.accept(patient(TcpStream::from_std(came)?)).await }
    }

    /// Takes a new certificate whenever there is one. Files that are of no use, for they are still being written or only one is
    /// new, change nothing; they are tried again.
    pub async fn follow(self: Arc<Self>) {
        let mut said = String::new();
        loop {
            sleep(LOOK).await;
            let tls = Arc::clone(&self);
            let renewed = tokio::task::spawn_blocking(move || tls.renew()).await;
            match renewed {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => {
                    // Whoever has read that the old one stays is told of its end, too.
                    if said.is_empty() {
                        tracing::info!("there is a new certificate");
                    } else {
                        tracing::warn!("the new certificate is in use now");
                    }
                    tell(Told::Reloaded);
                    said.clear();
                }
                Ok(Err(error)) if error.to_string() == said => {}
                Ok(Err(error)) => {
                    said = error.to_string();
                    tracing::warn!("the certificate that was there before stays in use: {said}");
                }
                Err(error) => tracing::error!("the certificate cannot be renewed: {error}"),
            }
        }
    }

    /// Whether there was a new certificate, which is in use now.
    fn renew(&self) -> Result<bool, TlsError> {
        if self.files.stamps() == self.current.read().stamps {
            return Ok(false);
        }
        let read = read(&self.files, &self.provider, self.clock.as_ref())?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(true)
    }
}

fn read(files: &Files, provider: &CryptoProvider, clock: &dyn Clock) -> Result<Read, TlsError> {
    // Before they are read: what changes meanwhile is read again.
    let stamps = files.stamps();
    let certified = Arc::new(files.load(provider)?);
    if let Some(why) = out_of_date(&certified, clock.now().unix_ms, provider) {
        tracing::warn!("clients will refuse the certificate in {}: {why}", files.certificate.display());
    }
    Ok(Read { certified, stamps })
}
