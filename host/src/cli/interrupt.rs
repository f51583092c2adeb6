//! What Ctrl-C and SIGTERM end early, where something has to be put away first.

/// Exit code of who was ended by Ctrl-C or SIGTERM, as a shell has it.
pub(super) const INTERRUPTED: u8 = 130;

/// What comes of it, unless Ctrl-C or SIGTERM comes before.
pub(super) async fn uninterrupted<T>(asked: impl Future<Output = T>) -> anyhow::Result<Option<T>> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    #[cfg(unix)]
    let terminated = terminate.recv();
    #[cfg(not(unix))]
    let terminated = std::future::pending::<Option<()>>();
    tokio::select! {
        answer = asked => Ok(Some(answer)),
        pressed = tokio::signal::ctrl_c() => Ok(pressed.map(|()| None)?),
        _ = terminated => Ok(None),
    }
}
