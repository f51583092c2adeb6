//! The door for fuzzing: what is made of any JSON that a server answers.

use super::listing::Listing;
use super::report::{self, Schema};
use super::{Taker, map};
use crate::clock::Moment;
use crate::config::{AgentMap, AgentsFrom, Join, Meaning, Span};
use crate::names::Instance;
use serde_json::Value;
use std::time::Duration;

/// What is declared of `text` as a server's answer, as text.
pub fn read(text: &str) -> String {
    let Ok(answer) = serde_json::from_str::<Value>(text) else { return String::new() };
    let taker = taker();
    let mut listing = Listing::default();
    let taken = match Schema::of(&answer) {
        Some(Schema::Report) => report::take(&answer, &taker, &mut listing).map(|_| ()),
        _ => map::take(&answer, &pointers(), &taker, &mut listing),
    };
    let heard = Moment { unix_ms: 1_800_000_000_000, steady: Duration::ZERO };
    format!("{taken:?} {:?} {:?}", listing.left_out(), taker.roster(&listing, heard, heard))
}

/// A taker for a server that is called `u`.
pub(super) fn taker() -> Taker {
    let from = AgentsFrom {
        tool: "list_agents".into(),
        arguments: serde_json::Map::new(),
        map: None,
        every: Span::from_millis(5_000),
        stale_after: Span::from_millis(60_000),
        sessions: Join::Own,
        session: None,
    };
    Taker { upstream: "u".into(), from, me: Instance::of(&[b"me"]), heard: Default::default() }
}

/// Pointers for a list `agents` with keys as in a report.
pub(super) fn pointers() -> AgentMap {
    let at = |key: &str| Some(format!("/{key}"));
    AgentMap {
        agents: "/agents".into(),
        id: "/id".into(),
        name: at("name"),
        specialization: at("specialization"),
        kind: at("kind"),
        activity: at("state"),
        reason: at("reason"),
        since: at("since"),
        created_at: at("created_at"),
        pid: at("pid"),
        session_id: at("session"),
        session_name: at("session_name"),
        root_path: at("root"),
        words: [("busy".to_owned(), Meaning::Working)].into(),
    }
}
