//! The end of a child process: to be waited for, and read, without reaping the child.

use crate::text::ending;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::io;

/// The end of a child.
#[derive(Debug, Clone)]
pub struct End {
    pid: Pid,
    #[cfg(target_os = "linux")]
    fd: std::sync::Arc<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
}

impl End {
    /// The end of the child `pid`, which is not reaped yet.
    ///
    /// # Errors
    /// When the system does not let it be waited for.
    #[cfg(target_os = "linux")]
    #[expect(
        deprecated,
        reason = "an OwnedFd stays open and the same as long as it is held, which is all that is asked of it"
    )]
    pub fn of(pid: Pid) -> io::Result<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        let fd = tokio::io::unix::AsyncFd::new(pidfd_open(pid, PidfdFlags::empty())?)?;
        Ok(Self { pid, fd: fd.into() })
    }

    /// The end of the child `pid`, which is not reaped yet.
    ///
    /// # Errors
    /// Never here.
    #[cfg(not(target_os = "linux"))]
    pub fn of(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid })
    }

    /// Waits for it.
    #[cfg(target_os = "linux")]
    pub async fn come(&self) {
        if let Ok(mut ready) = self.fd.readable().await {
            // It stays ready: it is there for whoever waits next.
            ready.retain_ready();
        }
    }

    /// Waits for it.
    #[cfg(not(target_os = "linux"))]
    pub async fn come(&self) {
        while self.how().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// How it ended, in words; `None` as long as it has not.
    pub fn how(&self) -> Option<String> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), options).ok()??;
        Some(ending(status.exit_status().or_else(|| Some(-status.terminating_signal()?))?))
    }
}
