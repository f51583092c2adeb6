//! `headcount upstream login` and `logout`: access to upstream servers that a person consents to.

use super::configured;
use crate::cli::interrupt::{INTERRUPTED, uninterrupted};
use crate::cli::printer;
use crate::config::Span;
use crate::report::clean;
use crate::setup::Setup;
use crate::upstream::{Access, Asked, LoginRow, Revoked};
use std::io::{BufRead as _, Read as _};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The longest address that is pasted, bytes.
const PASTED_MAX: u64 = 16 << 10;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Asks for access to a server by OAuth: prints the address to open in a browser, and waits for the answer
    Login {
        /// The server's name in the configuration
        name: String,
        /// Ask for this scope, too, and keep those that were granted before
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// Wait so long for the answer
        #[arg(long, value_name = "TIME", default_value = "5m")]
        timeout: Span,
        /// The browser is on another machine: read the address that it ends at from stdin
        #[arg(long)]
        no_browser: bool,
    },
    /// Ends the access to a server, there, where it has a way to end it, and here
    Logout {
        /// The server's name in the configuration
        name: String,
    },
}

pub async fn run(setup: &Setup, command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Login { name, scope, timeout, no_browser } => {
            let access = access(setup, &name)?;
            uninterrupted(log_in(&name, &access, &scope, timeout, no_browser)).await?
        }
        Command::Logout { name } => {
            let access = access(setup, &name)?;
            uninterrupted(log_out(&name, &access)).await?
        }
    };
    Ok(done.transpose()?.unwrap_or(ExitCode::from(INTERRUPTED)))
}

/// The access to the server of this name.
fn access(setup: &Setup, name: &str) -> anyhow::Result<Arc<Access>> {
    let upstream = configured(setup, name)?;
    let access = Access::of(upstream).map_err(anyhow::Error::msg)?;
    access.map(Arc::new).ok_or_else(|| anyhow::anyhow!("upstream {name}: it has no `oauth` in the configuration"))
}

async fn log_in(
    name: &str,
    access: &Arc<Access>,
    scopes: &[String],
    timeout: Span,
    no_browser: bool,
) -> anyhow::Result<ExitCode> {
    let failed = |why: String| anyhow::anyhow!("upstream {name}: {why}");
    if access.needs_consent() {
        let asked = access.ask(scopes).await.map_err(failed)?;
        consent(asked, timeout, no_browser).await?.map_err(failed)?;
    } else {
        access.token(None).await.map_err(|error| failed(error.to_string()))?;
    }
    printer::line(&format!("Logged in to {name}: {}.", in_words(&access.row())))?;
    Ok(ExitCode::SUCCESS)
}

/// Has somebody open the address, and takes what the browser is answered.
async fn consent(asked: Asked, timeout: Span, no_browser: bool) -> anyhow::Result<Result<(), String>> {
    printer::line(&format!("Open this address in a browser, and consent there:\n\n{}\n", asked.url()))?;
    if !no_browser {
        return Ok(asked.answered(timeout.0).await);
    }
    printer::line(&format!(
        "The browser ends at an address that begins with {}, and finds nothing there. Paste all of that address here:",
        asked.redirect()
    ))?;
    Ok(match tokio::time::timeout(timeout.0, pasted()).await {
        Ok(Ok(text)) => asked.pasted(&text).await,
        Ok(Err(_)) => Err("nothing was pasted".into()),
        Err(_) => Err(format!("nothing was pasted within {timeout}")),
    })
}

/// A line of stdin. The thread that reads it is left behind when nobody waits any more: nothing could end it.
async fn pasted() -> Result<String, oneshot::error::RecvError> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        if std::io::stdin().lock().take(PASTED_MAX).read_line(&mut line).is_ok_and(|read| read > 0) {
            let _ = tell.send(line);
        }
    });
    told.await
}

async fn log_out(name: &str, access: &Access) -> anyhow::Result<ExitCode> {
    let revoked = access.log_out().await.map_err(|why| anyhow::anyhow!("upstream {name}: {why}"))?;
    printer::line(&match &revoked {
        Revoked::Nothing => format!("Nobody was logged in to {name}."),
        Revoked::Yes => format!("Logged out of {name}."),
        Revoked::NoWay => {
            format!("Logged out of {name} here; its authorization server has no way to end what it granted.")
        }
        Revoked::Unknown(why) => {
            format!("Logged out of {name} here; what was granted there may still hold: {}", clean(why))
        }
    })?;
    Ok(ExitCode::from(u8::from(matches!(revoked, Revoked::Unknown(_)))))
}

/// How a login stands, for a person.
pub fn in_words(login: &LoginRow) -> String {
    let mut words = vec![crate::report::word(&login.state).replace('_', " ")];
    words.extend(login.since.as_ref().map(|since| format!("since {since}")));
    words.extend(login.until.as_ref().map(|until| match login.renews {
        true => format!("until {until} and renewed then"),
        false => format!("until {until}"),
    }));
    words.extend((!login.scopes.is_empty()).then(|| login.scopes.join(" ")));
    words.extend(login.reason.clone());
    words.join(", ")
}
