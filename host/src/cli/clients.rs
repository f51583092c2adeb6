//! `headcount clients`.

use super::printer;
use super::table::{header, kept, plain, short, unbroken};
use crate::auth;
use crate::clients::{self, Asked, ClientRow, Clients, DEFAULT_LIMIT, State};
use crate::report::time;
use crate::setup::Setup;
use crate::store::Whose;
use comfy_table::Cell;
use std::collections::HashMap;
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
    let found = clients::list(&setup.store, &setup.dirs.state, &*setup.clock, Whose::Everybody, &asked)?;
    if args.json {
        printer::json(&found)?;
    } else if found.sessions.is_empty() {
        let none = if args.all { "No MCP client was ever connected." } else { "No MCP client is connected." };
        printer::line(none)?;
    } else {
        let now = time(setup.clock.now().unix_ms);
        printer::write(&table(&found, &grants(setup, &found)?, &setup.user, &now))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the grants are called that these clients work under, by their ids. One that is forgotten is not among them.
fn grants(setup: &Setup, clients: &Clients) -> anyhow::Result<HashMap<String, String>> {
    if clients.sessions.iter().all(|client| client.grant_id.is_none()) {
        return Ok(HashMap::new());
    }
    let all = auth::list(&setup.store, &*setup.clock, Whose::Everybody, true)?;
    Ok(all.grants.into_iter().map(|grant| (grant.id, grant.name)).collect())
}

/// The clients, a line each. A column in which nothing stands is left out, and whose they are where all are this user's.
fn table(clients: &Clients, grants: &HashMap<String, String>, user: &str, now: &str) -> String {
    let rows = &clients.sessions;
    let columns = [
        ("CLIENT", true),
        ("USER", rows.iter().any(|row| row.user_id != user)),
        ("GRANT", rows.iter().any(|row| row.grant_id.is_some())),
        ("VIA", true),
        ("SINCE", true),
        ("HEARD", true),
        ("CALLS", true),
        ("AGENTS", rows.iter().any(|row| row.agents_registered > 0)),
        ("ENDED", rows.iter().any(|row| row.ended)),
        ("ID", true),
    ];
    let copied = columns.iter().filter(|(_, shown)| *shown).enumerate();
    let copied: Vec<usize> =
        copied.filter(|(_, (name, _))| ["SINCE", "HEARD", "ID"].contains(name)).map(|(n, _)| n).collect();
    let (names, shown): (Vec<&str>, Vec<bool>) = columns.into_iter().unzip();
    let mut table = plain();
    table.set_header(kept(header(&names), &shown));
    for client in rows {
        table.add_row(kept(row(client, grants, now), &shown));
    }
    unbroken(&mut table, &copied);
    let mut out = format!("{table}\n");
    if let Some(cursor) = &clients.next_cursor {
        let _ = writeln!(out, "there are more: --cursor {cursor}");
    }
    out
}

fn row(client: &ClientRow, grants: &HashMap<String, String>, now: &str) -> Vec<Cell> {
    let grant = client.grant_id.as_ref().map(|id| cut(grants.get(id).unwrap_or(id))).unwrap_or_default();
    let name = cut(client.client_name.as_deref().unwrap_or("unknown client"));
    let version = client.client_version.as_deref().map(|version| format!(" {}", cut(version))).unwrap_or_default();
    let failed = if client.tool_failures > 0 { format!(" ({} failed)", client.tool_failures) } else { String::new() };
    let ended = client.ended_reason.map(|reason| reason.replace('_', " ")).unwrap_or_default();
    vec![
        Cell::new(format!("{name}{version}")),
        Cell::new(&client.user_id),
        Cell::new(grant),
        Cell::new(format!("{} {}", client.transport, client.protocol)),
        Cell::new(short(&client.connected_at, now)),
        Cell::new(short(&client.last_activity_at, now)),
        Cell::new(format!("{}{failed}", client.tool_calls)),
        Cell::new(client.agents_registered),
        Cell::new(ended),
        Cell::new(&client.id),
    ]
}

/// A word of somebody else's, no longer than it needs to be to know it again.
fn cut(word: &str) -> String {
    const LONGEST: usize = 32;
    let more = word.chars().nth(LONGEST).map(|_| '…');
    word.chars().take(LONGEST).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_what_is_empty_left_out() {
        let client = ClientRow {
            id: "4f2a-1".into(),
            user_id: "ada".into(),
            grant_id: None,
            client_id: None,
            client_name: Some("é".repeat(128)),
            client_version: None,
            protocol: "2025-11-25".into(),
            transport: "http".into(),
            connected_at: "2026-11-29T23:59:59.999Z".into(),
            last_activity_at: "2026-11-30T08:05:00.000Z".into(),
            tool_calls: 7,
            tool_failures: 2,
            calls_by_tool: std::collections::BTreeMap::new(),
            agents_registered: 0,
            ended: false,
            ended_at: None,
            ended_reason: None,
        };
        let mut clients = Clients { sessions: vec![client], next_cursor: Some("1.4f2a-1".into()) };
        let table = |clients: &Clients| {
            let grants = HashMap::from([("grt_1".to_owned(), "laptop".to_owned())]);
            super::table(clients, &grants, "ada", "2026-11-30T09:00:00.000Z")
        };
        let shown = table(&clients);
        let name = "é".repeat(32) + "…";
        for word in
            [&*name, "http 2025-11-25", " 2026-11-29 ", " 08:05Z ", "7 (2 failed)", "4f2a-1", "--cursor 1.4f2a-1"]
        {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        for column in ["AGENTS", "ENDED", "USER", "GRANT"] {
            assert!(!shown.contains(column), "{shown}");
        }
        let client = &mut clients.sessions[0];
        (client.agents_registered, client.ended, client.ended_reason) = (3, true, Some("server_stopped"));
        let shown = table(&clients);
        assert!(shown.contains("AGENTS") && shown.contains("server stopped"), "{shown}");
        clients.sessions[0].grant_id = Some("grt_1".into());
        let shown = table(&clients);
        assert!(shown.contains("GRANT") && shown.contains(" laptop ") && !shown.contains("USER"), "{shown}");
        let client = &mut clients.sessions[0];
        (client.user_id, client.grant_id) = ("bob".into(), Some("grt_2".into()));
        let shown = table(&clients);
        assert!(shown.contains("USER") && shown.contains(" bob ") && shown.contains(" grt_2 "), "{shown}");
    }
}
