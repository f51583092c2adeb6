//! `headcount clients`.

use super::printer;
use super::table::{header, plain};
use crate::clients::{self, Asked, ClientRow, Clients, DEFAULT_LIMIT, State};
use crate::setup::Setup;
use comfy_table::Cell;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Those that have ended, too
    #[arg(long)]
    all: bool,
    /// List this many, the newest first
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
    /// Go on where the page before ended: its `next_cursor`
    #[arg(long)]
    cursor: Option<String>,
    /// Print JSON, as `list_clients` answers
    #[arg(long)]
    json: bool,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let state = if args.all { State::All } else { State::Active };
    let asked = Asked { state, limit: args.limit, cursor: args.cursor.clone() };
    let found = clients::list(&setup.store, &setup.dirs.state, &*setup.clock, &setup.user, &asked)?;
    if args.json {
        printer::json(&found)?;
    } else if found.sessions.is_empty() {
        let none = if args.all { "No MCP client was ever connected." } else { "No MCP client is connected." };
        printer::line(none)?;
    } else {
        printer::write(&table(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The clients, a line each.
fn table(clients: &Clients) -> String {
    let mut table = plain();
    table.set_header(header(&[
        "CLIENT",
        "USER",
        "PROTOCOL",
        "CONNECTED",
        "LAST HEARD",
        "CALLS",
        "AGENTS",
        "ENDED",
        "ID",
    ]));
    for client in &clients.sessions {
        table.add_row(row(client));
    }
    let mut out = format!("{table}\n");
    if let Some(cursor) = &clients.next_cursor {
        let _ = writeln!(out, "there are more: --cursor {cursor}");
    }
    out
}

fn row(client: &ClientRow) -> Vec<Cell> {
    let name = client.client_name.as_deref().unwrap_or("unknown client");
    let version = client.client_version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let failed = if client.tool_failures > 0 { format!(" ({} failed)", client.tool_failures) } else { String::new() };
    let ended = client.ended_reason.map(|reason| reason.replace('_', " ")).unwrap_or_default();
    vec![
        Cell::new(format!("{name}{version}")),
        Cell::new(&client.user_id),
        Cell::new(format!("{} {}", client.transport, client.protocol)),
        Cell::new(&client.connected_at),
        Cell::new(&client.last_activity_at),
        Cell::new(format!("{}{failed}", client.tool_calls)),
        Cell::new(client.agents_registered),
        Cell::new(ended),
        Cell::new(&client.id),
    ]
}
