//! `headcount token`.

use super::grants::{self, ListArgs};
use super::printer;
use crate::auth::{self, NewToken, Scope};
use crate::setup::Setup;
use crate::store::Whose;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Makes a token to use your servers with; it is shown this one time, alone on stdout
    Create(CreateArgs),
    /// Lists your tokens, without the secrets
    List(ListArgs),
    /// Ends a token at once: who uses it is cut off in every server that runs
    Revoke {
        /// Its name or id, as `token list` shows them
        #[arg(value_name = "NAME|ID")]
        which: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// What to call it
    name: String,
    /// What it permits; may be given several times: status:read sees sessions, roster:write registers agents, clients:read sees
    /// who is connected, grants:revoke sees grants and revokes them, metrics:read reads what the server counts
    #[arg(long = "scope", value_name = "SCOPE", default_value = Scope::StatusRead.as_str())]
    scopes: Vec<Scope>,
    /// For how long it holds, as in 30d or 12h, or never
    #[arg(long, value_name = "TIME", value_parser = lifetime, default_value = "90d")]
    expires: Lifetime,
}

/// How long a token holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Limited(Duration),
    Unlimited,
}

fn lifetime(text: &str) -> Result<Lifetime, &'static str> {
    if text == "never" {
        return Ok(Lifetime::Unlimited);
    }
    let span = text.parse::<jiff::Span>();
    let lasts = span.and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()));
    let lasts = lasts.map_err(|_| "it is a time as in 30d, 12h or 1h30m, or never")?;
    match Duration::try_from(lasts) {
        Ok(lasts) if lasts >= Duration::from_secs(1) => Ok(Lifetime::Limited(lasts)),
        _ => Err("it has to hold for a second at least"),
    }
}

pub fn run(setup: &Setup, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Create(args) => create(setup, args),
        Command::List(args) => grants::list(setup, &args, Whose::User(&setup.user), |grant| grant.client_id.is_none()),
        Command::Revoke { which } => {
            let grant = auth::revoke_token(&setup.store, &*setup.clock, &setup.user, &which)?;
            printer::line(&format!("revoked: {} ({})", grant.name, grant.id))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn create(setup: &Setup, args: CreateArgs) -> anyhow::Result<ExitCode> {
    let lifetime = match args.expires {
        Lifetime::Limited(lifetime) => Some(lifetime),
        Lifetime::Unlimited => None,
    };
    let new =
        NewToken { user_id: setup.user.clone(), name: args.name, scopes: args.scopes.into_iter().collect(), lifetime };
    let (grant, token) = auth::create_token(&setup.store, &*setup.clock, new)?;
    if let Err(error) = printer::line(token.reveal()) {
        // Nobody has seen it, and nobody ever will.
        auth::revoke(&setup.store, &*setup.clock, &setup.user, &grant.id)?;
        return Err(error.into());
    }
    let id = &grant.id;
    crate::stderr::line(&format!(
        "This is the only time that the token is shown. `headcount token revoke {id}` ends it."
    ));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_token_holds_is_said_in_days_too() {
        let seconds = |n| Ok(Lifetime::Limited(Duration::from_secs(n)));
        assert_eq!(lifetime("90d"), seconds(90 * 86_400));
        assert_eq!(lifetime("2w"), seconds(14 * 86_400));
        assert_eq!(lifetime("1h30m"), seconds(5400));
        assert_eq!(lifetime("never"), Ok(Lifetime::Unlimited));
        for bad in ["", "0s", "-1h", "1 month", "10ms", "30", "Never", "999999999999999d"] {
            assert!(lifetime(bad).is_err(), "{bad}");
        }
    }
}
