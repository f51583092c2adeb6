//! Calls a server's tool, and goes on calling where another headcount has more to tell. All of it is bounded.

use super::answer::{form, json};
use super::listing::Listing;
use super::report::{self, Part, Schema};
use super::{Taker, map};
use crate::config::AgentsFrom;
use crate::upstream::{JsonObject, Session};
use serde_json::{Value, json};

/// One list may take so many calls.
const CALLS_MAX: usize = 400;

/// So many agents are asked for at once.
const PAGE: u32 = 500;

/// Whoever asks with these alone wants all agents; with others perhaps only some.
const ASK_FOR_ALL: [&str; 2] = ["session_id", "limit"];

/// Asks for the list, with everything that belongs to it.
///
/// # Errors
/// In words, cleaned.
pub async fn ask(session: &Session, taker: &Taker) -> Result<Listing, String> {
    let mut asking = Asking { session, taker, listing: Listing::default(), calls: 0 };
    let answer = asking.call(&taker.from.tool, taker.from.arguments.clone()).await?;
    if let Some(map) = &taker.from.map {
        map::take(&answer, map, taker, &mut asking.listing)?;
        return Ok(asking.listing);
    }
    match Schema::of(&answer) {
        Some(Schema::Report) => {
            asking.pages(&taker.from.tool, &taker.from.arguments, answer).await?;
        }
        Some(Schema::Reports) => asking.reports(&answer)?,
        Some(Schema::Sessions) => asking.sessions(&answer).await?,
        None => return Err(not_understood(&taker.from.tool, &answer)),
    }
    Ok(asking.listing)
}

fn not_understood(tool: &str, answer: &Value) -> String {
    format!(
        "{tool} answers with {}, which is no report of a headcount: `agents_from.map` has to say where in it the agents are",
        form(answer)
    )
}

struct Asking<'a> {
    session: &'a Session,
    taker: &'a Taker,
    listing: Listing,
    calls: usize,
}

impl Asking<'_> {
    async fn call(&mut self, tool: &str, arguments: JsonObject) -> Result<Value, String> {
        self.calls += 1;
        let result = self.session.call_tool(tool, Some(arguments)).await;
        let result = result.map_err(|error| format!("{}: {}", error.operation, error.failure))?;
        Ok(json(&result).map_err(|why| format!("call of {tool}: {why}"))?.into_owned())
    }

    /// A report, and the pages after it.
    async fn pages(&mut self, tool: &str, arguments: &JsonObject, first: Value) -> Result<(), String> {
        let (mut page, mut told, mut listed, mut count) = (first, None, 0, None);
        loop {
            let part = report::take(&page, self.taker, &mut self.listing)?;
            told = told.or(part.session);
            listed += part.listed;
            // Agents may come and go between two pages.
            count = part.count.into_iter().chain(count).min();
            part.leave_out_the_rest(&mut self.listing);
            let is_last = part.next.is_none();
            let Some(next) = part.next.filter(|_| !self.is_enough()) else {
                if is_last && arguments.keys().all(|key| ASK_FOR_ALL.contains(&key.as_str())) {
                    Part::leave_out_beyond(listed, count, &mut self.listing);
                }
                told.into_iter().for_each(|session| self.listing.drop_if_nobody_is_left(session));
                return Ok(());
            };
            let mut arguments = arguments.clone();
            arguments.insert("cursor".into(), next.into());
            page = self.call(tool, arguments).await?;
        }
    }

    /// Several reports at once. Those that are in pages cannot be gone on with.
    fn reports(&mut self, answer: &Value) -> Result<(), String> {
        let reports = answer["reports"].as_array().ok_or("`reports` is no list")?;
        for one in reports {
            let part = report::take(one, self.taker, &mut self.listing)?;
            part.leave_out_the_rest(&mut self.listing);
            part.session.into_iter().for_each(|session| self.listing.drop_if_nobody_is_left(session));
            if part.next.is_some() {
                self.listing.leave_out("of a session with many agents only the first page is told");
            }
        }
        Ok(())
    }

    /// The sessions of a list, one after the other. One that cannot be told of harms no other, unless nobody answers at all.
    async fn sessions(&mut self, answer: &Value) -> Result<(), String> {
        let sessions = answer["sessions"].as_array().ok_or("`sessions` is no list")?;
        for id in sessions.iter().filter_map(|session| session["session_id"].as_str()) {
            if self.is_enough() {
                break;
            }
            let Value::Object(arguments) = json!({ "session_id": id, "limit": PAGE }) else { continue };
            self.calls += 1;
            let result = self.session.call_tool(AgentsFrom::STATUS, Some(arguments.clone())).await;
            let result = result.map_err(|error| format!("{}: {}", error.operation, error.failure))?;
            match json(&result) {
                Ok(page) => self.pages(AgentsFrom::STATUS, &arguments, page.into_owned()).await?,
                Err(why) => self.listing.leave_out(format!("session {id}: {why}")),
            }
        }
        Ok(())
    }

    /// Whether nothing more is asked for, although there is more; then that is said.
    fn is_enough(&mut self) -> bool {
        self.listing.is_own() || self.listing.is_full() || self.is_too_long()
    }

    fn is_too_long(&mut self) -> bool {
        let is_too_long = self.calls >= CALLS_MAX;
        if is_too_long {
            self.listing.leave_out(format!("only what {CALLS_MAX} calls tell is taken up"));
        }
        is_too_long
    }
}
