//! What is kept of a login: a file for this user alone, below the state directory, whole or not at all.

use crate::config::make_private;
use crate::files::{is_open_to_all, read_small_itself, replace_private};
use crate::upstream::secret::check_token;
use rmcp::transport::StoredCredentials;
use rmcp::transport::auth::AuthorizationMetadata;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// The folder of these files.
const FOLDER: &str = "upstream-logins";
/// The longest of them.
const FILE_MAX: u64 = 1 << 20;
/// How long another process may be at it.
const LOCK_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether it still is.
const LOCK_TICK: Duration = Duration::from_millis(20);

/// A login: what was granted, by whom, and for what.
#[derive(Clone, Serialize, Deserialize)]
pub struct Kept {
    /// Where the server was when it was asked for.
    pub url: Url,
    /// What the tokens are for (RFC 8707).
    pub resource: String,
    /// Since when, in Unix milliseconds.
    pub since: u64,
    /// The secret that the client was given when it was registered.
    pub client_secret: Option<String>,
    /// What the authorization server said of itself. Nobody else is asked to renew it.
    pub metadata: AuthorizationMetadata,
    /// The client, the tokens, and when they came.
    pub credentials: StoredCredentials,
    /// Why it is never renewed again.
    pub ended: Option<String>,
}

/// The part of an answer with tokens that matters here (RFC 6749, section 5.1).
#[derive(Deserialize)]
pub struct Tokens {
    /// What is shown to the server.
    pub access_token: String,
    /// How long it holds, in seconds.
    pub expires_in: Option<u64>,
    /// What it is renewed by.
    pub refresh_token: Option<String>,
}

impl Kept {
    /// Its tokens.
    pub fn tokens(&self) -> Option<Tokens> {
        let response = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        serde_json::from_value(response).ok()
    }

    /// Itself, if its access token is one that can be shown to a server.
    ///
    /// # Errors
    /// In words, which do not show it.
    pub fn checked(self) -> Result<Self, String> {
        let token = self.tokens().map(|tokens| tokens.access_token).unwrap_or_default();
        check_token(&token)
            .map_err(|why| format!("its authorization server gives no token that can be used: it {why}"))?;
        Ok(self)
    }

    /// Until when the access token holds, in Unix milliseconds; `None`: nobody has said.
    pub fn until(&self, tokens: &Tokens) -> Option<u64> {
        let since = self.credentials.token_received_at?;
        Some(since.saturating_add(tokens.expires_in?).saturating_mul(1000))
    }
}

/// Why a login cannot be kept, or what is kept cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// All users may read or write it.
    #[error("all users may read or write {file}, which holds the login: chmod o= {file}", file = .0.display())]
    OpenToAll(PathBuf),
    /// It cannot be read.
    #[error("the login that is kept in {file} cannot be read: {1}", file = .0.display())]
    Unreadable(PathBuf, io::Error),
    /// It cannot be written.
    #[error("the login cannot be kept in {file}: {1}", file = .0.display())]
    Unwritable(PathBuf, io::Error),
    /// Another process does not let go of it.
    #[error("another process has been renewing the login for 30 s")]
    Locked,
}

/// The place of one login.
#[derive(Debug)]
pub struct Keep {
    folder: PathBuf,
    file: PathBuf,
    lock: PathBuf,
}

/// Held by who changes a login. It is let go of when it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Keep {
    /// The place below the state directory for a server of this name.
    pub fn of(state: &Path, upstream: &str) -> Self {
        let folder = state.join(FOLDER);
        let (file, lock) = (folder.join(format!("{upstream}.json")), folder.join(format!("{upstream}.lock")));
        Self { folder, file, lock }
    }

    /// What is there; `None`: nothing.
    pub fn read(&self) -> Result<Option<Kept>, KeptError> {
        let bytes = match read_small_itself(&self.file, FILE_MAX) {
            Ok((bytes, _)) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(KeptError::Unreadable(self.file.clone(), error)),
        };
        if is_open_to_all(&self.file) {
            return Err(KeptError::OpenToAll(self.file.clone()));
        }
        // What a parser says of it could show what it holds.
        let kept = serde_json::from_slice(&bytes).map_err(|_| io::ErrorKind::InvalidData.into());
        kept.map(Some).map_err(|error| KeptError::Unreadable(self.file.clone(), error))
    }

    /// Puts it there. Who does so holds the lock.
    pub fn write(&self, kept: &Kept, _: &Lock) -> Result<(), KeptError> {
        let written = serde_json::to_vec(kept).map_err(io::Error::from);
        let written = written.and_then(|bytes| replace_private(&self.file, &bytes));
        written.map_err(|error| KeptError::Unwritable(self.file.clone(), error))
    }

    /// Removes it.
    pub fn remove(&self, _: &Lock) -> Result<(), KeptError> {
        match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(KeptError::Unwritable(self.file.clone(), error))
            }
            _ => Ok(()),
        }
    }

    /// Waits until no other process, and nobody else in this one, changes it.
    pub async fn lock(&self) -> Result<Lock, KeptError> {
        let failed = |error| KeptError::Unwritable(self.lock.clone(), error);
        make_private(&self.folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.create(true).truncate(false).write(true).open(&self.lock).map_err(failed)?;
        let locking = async {
            loop {
                match file.try_lock() {
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_TICK).await,
                    Err(TryLockError::Error(error)) => return Err(failed(error)),
                    Ok(()) => return Ok(()),
                }
            }
        };
        tokio::time::timeout(LOCK_MAX, locking).await.map_err(|_| KeptError::Locked)??;
        Ok(Lock { _file: file })
    }
}
