//! A certificate and its key, as files have them (PEM, RFC 7468).

use crate::files::{Stamp, is_open_to_all, read_small};
use crate::report::time;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};

/// The largest file that is read, bytes.
const LARGEST: u64 = 1 << 20;

/// Where the certificate and its key are.
#[derive(Debug, Clone)]
pub struct Files {
    /// The server's own certificate, and behind it those by which clients come to one they trust.
    pub certificate: PathBuf,
    /// The private key of the first.
    pub key: PathBuf,
}

/// Why TLS cannot be spoken with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// Which one.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Whoever has the key is taken for this server.
    #[error("the private key in {} is open to all users of this machine; chmod o= closes it", file.display())]
    Open {
        /// Where it is.
        file: PathBuf,
    },
    /// There is nothing of use in a file.
    #[error("{} has no {wanted} in PEM", file.display())]
    Missing {
        /// Which one.
        file: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// What is in a file is not what it says it is.
    #[error("{} cannot be used: {source}", file.display())]
    Unusable {
        /// Which one.
        file: PathBuf,
        /// What is wrong with it.
        source: Error,
    },
    /// The two do not belong together.
    #[error("the key in {} is not that of the certificate in {}", .0.key.display(), .0.certificate.display())]
    Mismatch(Files),
}

impl Files {
    /// What changes when they do; `None` for one that is not there.
    pub(super) fn stamps(&self) -> [Option<Stamp>; 2] {
        [&self.certificate, &self.key].map(|file| Stamp::of(file).ok())
    }

    /// Reads both. Whether the certificate holds now is for clients to say: [`out_of_date`] is said of it in the log.
    pub(super) fn load(&self, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
        let chain = self.chain()?;
        let unusable = |file: &Path, source| TlsError::Unusable { file: file.to_owned(), source };
        let key = provider.key_provider.load_private_key(self.private_key()?);
        let certified = CertifiedKey::new(chain, key.map_err(|source| unusable(&self.key, source))?);
        for certificate in &certified.cert {
            ParsedCertificate::try_from(certificate).map_err(|source| unusable(&self.certificate, source))?;
        }
        match certified.keys_match() {
            // A key that does not tell its public half: then clients find out.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
            Err(Error::InconsistentKeys(_)) => Err(TlsError::Mismatch(self.clone())),
            Err(source) => Err(unusable(&self.certificate, source)),
        }
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let bytes = read(&self.certificate)?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().unwrap_or_default();
        let missing = TlsError::Missing { file: self.certificate.clone(), wanted: "whole certificate" };
        if chain.is_empty() { Err(missing) } else { Ok(chain) }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let bytes = read(&self.key)?;
        if is_open_to_all(&self.key) {
            return Err(TlsError::Open { file: self.key.clone() });
        }
        let wanted = "whole and unencrypted private key";
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| TlsError::Missing { file: self.key.clone(), wanted })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    read_small(file, LARGEST).map_err(|source| TlsError::Unreadable { file: file.to_owned(), source })
}

/// Why clients will not take a certificate at this time, where that is so.
pub(super) fn out_of_date(certified: &Arc<CertifiedKey>, unix_ms: u64, provider: &CryptoProvider) -> Option<String> {
    let own = ParsedCertificate::try_from(certified.cert.first()?).ok()?;
    let now = UnixTime::since_unix_epoch(Duration::from_millis(unix_ms));
    // It is as a client does it, but for who has signed it: the time is looked at first.
    let algorithms = provider.signature_verification_algorithms.all;
    let told = verify_server_cert_signed_by_trust_anchor(&own, &RootCertStore::empty(), &[], now, algorithms);
    match told {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(format!("it has expired at {}", time(not_after.as_secs() * 1000)))
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            Some(format!("it is valid only from {} on", time(not_before.as_secs() * 1000)))
        }
        _ => None,
    }
}
