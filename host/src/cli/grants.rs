//! `headcount grants`.

use super::printer;
use super::table::{header, kept, plain, short, unbroken};
use crate::auth::oauth::{self, RequestRow};
use crate::auth::{self, GrantRow, GrantState, Grants};
use crate::report::time;
use crate::setup::Setup;
use crate::store::Whose;
use crate::text::clean;
use comfy_table::Cell;
use std::collections::HashSet;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Lists who may use your servers, whatever way that was granted, and whoever it was granted to
    List(ListArgs),
    /// Lists the clients that ask for access and wait for your consent, with the code for each
    Requests(RequestsArgs),
    /// Ends a grant at once: its clients are cut off in every server that runs
    Revoke {
        /// Its id, as `grants list` shows it
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Those that have expired or were revoked, too
    #[arg(long)]
    all: bool,
    /// Print JSON (schema headcount.grants/1)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RequestsArgs {
    #[command(subcommand)]
    command: Option<RequestsCommand>,
    /// Go on, and say each that comes, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Print JSON (schema headcount.grant_requests/1)
    #[arg(long, conflicts_with = "watch")]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum RequestsCommand {
    /// Sends requests away: their pages lead to nothing any more
    Deny(DenyArgs),
}

#[derive(Debug, clap::Args)]
#[group(required = true)]
struct DenyArgs {
    /// What `grants requests` calls it
    request: Option<String>,
    /// All that wait
    #[arg(long, conflicts_with = "request")]
    all: bool,
}

/// How often is looked for further requests.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(setup: &Setup, command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list(setup, args, Whose::Everybody, |_| true),
        Command::Requests(args) => requests(setup, args),
        Command::Revoke { id } => {
            // Who owns the state directory may end whatever lets somebody into a server of it.
            let revoked = auth::revoke(&setup.store, &*setup.clock, Whose::Everybody, id)?;
            let grant = revoked.ok_or_else(|| {
                anyhow::anyhow!("there is no grant of this id; `headcount grants list --all` shows all")
            })?;
            printer::line(&format!("revoked: {}", grant.id))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Lists those of the grants that are `wanted`.
pub fn list(
    setup: &Setup,
    args: &ListArgs,
    whose: Whose<'_>,
    wanted: impl Fn(&GrantRow) -> bool,
) -> anyhow::Result<ExitCode> {
    let mut found = auth::list(&setup.store, &*setup.clock, whose, args.all)?;
    found.grants.retain(wanted);
    if args.json {
        printer::json(&found)?;
    } else if found.grants.is_empty() {
        printer::line(if args.all {
            "There never was any."
        } else {
            "There is none; --all shows those that have ended."
        })?;
    } else {
        printer::line(&table(&found, &setup.user, &time(setup.clock.now().unix_ms)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends away who waits for consent.
fn deny(setup: &Setup, args: &DenyArgs) -> anyhow::Result<ExitCode> {
    let is_meant = |asked: &RequestRow| args.all || args.request.as_ref() == Some(&asked.request);
    let denied = oauth::deny(&setup.store, &*setup.clock, is_meant)?;
    for asked in &denied {
        printer::line(&format!("denied: {}", asked.request))?;
    }
    anyhow::ensure!(args.all || !denied.is_empty(), "no such request waits; `headcount grants requests` shows them");
    Ok(ExitCode::SUCCESS)
}

/// Lists who waits for consent.
fn requests(setup: &Setup, args: &RequestsArgs) -> anyhow::Result<ExitCode> {
    if let Some(RequestsCommand::Deny(args)) = &args.command {
        return deny(setup, args);
    }
    let look = || oauth::requests(&setup.store, &*setup.clock);
    if args.watch {
        let mut said: HashSet<String> = HashSet::new();
        loop {
            for asked in look()?.requests {
                if said.insert(asked.request.clone()) {
                    printer::line(&sentence(&asked))?;
                }
            }
            thread::sleep(LOOK);
        }
    }
    let found = look()?;
    if args.json {
        printer::json(&found)?;
    } else if found.requests.is_empty() {
        printer::line("Nobody waits for your consent.")?;
    } else {
        let now = time(setup.clock.now().unix_ms);
        let mut table = plain();
        table.set_header(header(&["REQUEST", "CODE", "CLIENT", "ANSWER GOES TO", "SCOPES", "UNTIL"]));
        for asked in &found.requests {
            table.add_row(vec![
                Cell::new(&asked.request),
                Cell::new(&asked.code),
                Cell::new(client(asked)),
                Cell::new(answers_to(asked)),
                Cell::new(asked.scopes.join(" ")),
                Cell::new(short(&asked.expires_at, &now)),
            ]);
        }
        printer::line(&table.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a client calls itself, and on a line of its own who it is: its site, or else its id.
fn client(asked: &RequestRow) -> String {
    let who = asked.client_host.as_deref().unwrap_or(&asked.client_id);
    asked.client_name.as_ref().map_or_else(|| who.to_owned(), |name| format!("{name}\nof {who}"))
}

/// Where the answer goes, and what that means for who the client is.
fn answers_to(asked: &RequestRow) -> String {
    let host = &asked.redirect_host;
    if asked.redirect_is_local { format!("{host}: any program on this machine can ask so") } else { host.clone() }
}

/// A request in one line.
pub fn sentence(asked: &RequestRow) -> String {
    // Quoted, so that a name which goes on like this sentence is seen to be one.
    let name = asked.client_name.as_ref().map_or("a client".to_owned(), |name| format!("{name:?}"));
    let of = asked.client_host.as_deref().map(|host| format!(" of {host}")).unwrap_or_default();
    let (host, scopes) = (answers_to(asked), asked.scopes.join(" "));
    format!("{}: {name}{of} (answers go to {host}) asks for {scopes}; type {} to consent", asked.request, asked.code)
}

/// The grants, a line each; whose they are where not all are this user's.
fn table(grants: &Grants, user: &str, now: &str) -> String {
    let others = grants.grants.iter().any(|grant| grant.user_id != user);
    let shown = [true, others, true, true, true, true];
    let mut table = plain();
    table.set_header(kept(header(&["NAME", "USER", "HOLDS", "SCOPES", "LAST USED", "ID"]), &shown));
    for grant in &grants.grants {
        let cells = vec![
            // A client's own word is not to be taken for the name of a token.
            Cell::new(match &grant.client_id {
                Some(client) => format!("{}\nof {}", grant.name, clean(client)),
                None => grant.name.clone(),
            }),
            Cell::new(&grant.user_id),
            Cell::new(holds(grant, now)),
            Cell::new(grant.scopes.join(" ")),
            Cell::new(grant.last_used_at.as_deref().map_or_else(|| "never".to_owned(), |at| short(at, now))),
            Cell::new(&grant.id),
        ];
        table.add_row(kept(cells, &shown));
    }
    unbroken(&mut table, &[if others { 5 } else { 4 }]);
    table.to_string()
}

/// Until when a grant holds, or how it has ended.
fn holds(grant: &GrantRow, now: &str) -> String {
    let at = |time: &Option<String>| time.as_deref().map(|at| short(at, now)).unwrap_or_default();
    match grant.state {
        GrantState::Alive if grant.expires_at.is_none() => "until revoked".to_owned(),
        GrantState::Alive => format!("until {}", at(&grant.expires_at)),
        GrantState::Expired => format!("expired {}", at(&grant.expires_at)),
        GrantState::Revoked => format!("revoked {}", at(&grant.revoked_at)),
    }
}
