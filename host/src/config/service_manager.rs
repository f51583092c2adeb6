//! The service manager that has started this program, where it wants to be told how it goes (systemd's sd_notify(3)). The
//! environment says how it is reached; where it says nothing, nobody is told.

use std::time::Duration;

/// What a service manager is told.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// The program does what it was started for; the text is shown to whoever asks the service manager.
    Ready(&'a str),
    /// It has taken something new, and goes on.
    Reloaded,
    /// It lives; for [`watchdog`].
    Alive,
    /// It has begun to end.
    Stopping,
}

/// Tells the service manager, if there is one. That it cannot be told is no reason not to go on.
#[cfg(unix)]
pub fn tell(told: Told<'_>) {
    use sd_notify::{NotifyState, notify};
    let notified = match told {
        Told::Ready(status) => notify(&[NotifyState::Ready, NotifyState::Status(status)]),
        // Two messages: what is reloaded is ready again.
        Told::Reloaded => NotifyState::monotonic_usec_now()
            .and_then(|now| notify(&[NotifyState::Reloading, now]))
            .and_then(|()| notify(&[NotifyState::Ready])),
        Told::Alive => notify(&[NotifyState::Watchdog]),
        Told::Stopping => notify(&[NotifyState::Stopping]),
    };
    if let Err(error) = notified {
        tracing::warn!("the service manager cannot be told {told:?}: {error}");
    }
}

#[cfg(not(unix))]
pub fn tell(_: Told<'_>) {}

/// How long the program may be silent before it is taken for hung; `None`: nobody listens.
#[cfg(unix)]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero())
}

#[cfg(not(unix))]
pub fn watchdog() -> Option<Duration> {
    None
}
