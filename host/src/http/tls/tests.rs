//! Certificates: good ones, and what is none.

use super::*;
use crate::clock::ManualClock;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::fs;

/// 2026-11-01, in the midst of what the certificates here are good for.
const NOW: u64 = 1_793_491_200_000;

/// A certificate for this machine, and its key.
fn issued() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn files(dir: &tempfile::TempDir, certificate: &str, key: &str) -> Files {
    let files = Files { certificate: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
    fs::write(&files.certificate, certificate).unwrap();
    put_key(&files, key);
    files
}

fn put_key(files: &Files, key: &str) {
    fs::write(&files.key, key).unwrap();
    #[cfg(unix)]
    close(&files.key, 0o640);
}

#[cfg(unix)]
fn close(file: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

fn load(files: &Files) -> Result<Arc<Tls>, String> {
    Tls::load(files.clone(), Arc::new(ManualClock::at(NOW))).map_err(|error| error.to_string())
}

#[test]
fn what_is_no_certificate_with_its_key_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let ((certificate, key), (other, _)) = (issued(), issued());
    assert!(load(&files(&dir, &certificate, &key)).is_ok());
    assert!(load(&files(&dir, &format!("{certificate}{other}"), &key)).is_ok(), "a chain");
    let both = format!("{key}{certificate}");
    assert!(load(&files(&dir, &both, &both)).is_ok(), "both in one file");
    let broken = certificate.replacen("MII", "MIJ", 1);
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (certificate, key, file, why) in [
        ("", &*key, "cert.pem", "has no whole certificate in PEM"),
        (&certificate[..200], &key, "cert.pem", "has no whole certificate in PEM"),
        (&*format!("{certificate}{}", &other[..200]), &key, "cert.pem", "has no whole certificate in PEM"),
        (&key, &key, "cert.pem", "has no whole certificate in PEM"),
        (&broken, &key, "cert.pem", "cannot be used"),
        (&*format!("{certificate}{broken}"), &key, "cert.pem", "cannot be used"),
        (&certificate, "", "key.pem", "has no whole and unencrypted private key in PEM"),
        (&certificate, &key[..60], "key.pem", "has no whole and unencrypted private key in PEM"),
        (&certificate, &encrypted, "key.pem", "has no whole and unencrypted private key in PEM"),
        (&certificate, no_key, "key.pem", "cannot be used"),
        (&other, &key, "cert.pem", "is not that of the certificate in"),
    ] {
        let refused = load(&files(&dir, certificate, key)).err().unwrap_or_else(|| panic!("{why}: {certificate}{key}"));
        assert!(refused.contains(file) && refused.contains(why), "{why}: {refused}");
        assert!(!refused.contains("BEGIN") && !refused.contains(&key[key.len() / 2..]) || key.is_empty(), "{refused}");
    }
    let gone = Files { certificate: dir.path().join("none.pem"), ..files(&dir, &certificate, &key) };
    assert!(load(&gone).is_err_and(|refused| refused.starts_with("cannot read ") && refused.contains("none.pem")));
}

#[cfg(unix)]
#[test]
fn a_key_that_everybody_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = issued();
    let files = files(&dir, &certificate, &key);
    for (mode, good) in [(0o600, true), (0o640, true), (0o644, false), (0o602, false)] {
        close(&files.key, mode);
        assert_eq!(load(&files).is_ok(), good, "{mode:o}");
    }
}

#[test]
fn what_holds_no_longer_or_not_yet_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = issued();
    let provider = aws_lc_rs::default_provider();
    let certified = Arc::new(files(&dir, &certificate, &key).load(&provider).unwrap());
    let year = 365 * 24 * 3_600_000;
    let said = |unix_ms| out_of_date(&certified, unix_ms, &provider);
    assert_eq!(said(NOW), None);
    assert_eq!(said(NOW + year).unwrap(), "it has expired at 2027-01-01T00:00:00.000Z");
    assert_eq!(said(NOW - year).unwrap(), "it is valid only from 2026-01-01T00:00:00.000Z on");
}

#[test]
fn a_renewal_takes_the_place_once_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let ((certificate, key), (new_certificate, new_key)) = (issued(), issued());
    let files = files(&dir, &certificate, &key);
    let tls = load(&files).unwrap();
    let shown = || tls.current.read().certified.cert[0].clone();
    let old = shown();
    assert!(!tls.renew().unwrap(), "nothing is new");
    fs::write(&files.certificate, &new_certificate[..new_certificate.len() / 2]).unwrap();
    assert!(matches!(tls.renew(), Err(TlsError::Missing { .. })));
    fs::write(&files.certificate, &new_certificate).unwrap();
    assert!(matches!(tls.renew(), Err(TlsError::Mismatch(_))), "the key is still the old one");
    assert_eq!(shown(), old);
    assert!(tls.renew().is_err(), "it is tried again, though nothing has changed");
    put_key(&files, &new_key);
    assert!(tls.renew().unwrap());
    assert_ne!(shown(), old);
    assert!(!tls.renew().unwrap());
    fs::remove_file(&files.key).unwrap();
    assert!(matches!(tls.renew(), Err(TlsError::Unreadable { .. })));
    assert_ne!(shown(), old);
}
