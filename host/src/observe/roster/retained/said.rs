//! What a status says of its session, as facts of an agent.

use super::{RetainedState, RetainedStatus};
use crate::observe::facts::{ACTIVITY, Claim, Evidence, Gap, Source, Usage};
use crate::observe::processes::Machine;
use crate::observe::roster::{Locator, Said, Written};
use crate::text::{Wait, clean};
use std::time::Duration;

/// What kind of agent it is.
const KIND: &str = "retained";

/// The judge's word for an end of which the one who has ended has told.
const ENDED: &str = "ended";

/// A status, and what is known of the file that it was read from.
pub struct Seen<'a> {
    pub status: &'a RetainedStatus,
    /// Whose it is.
    pub uid: Option<u32>,
    /// When it was written, Unix milliseconds.
    pub written_at_ms: u64,
    /// When the session's folder was made, Unix milliseconds.
    pub made_at_ms: Option<u64>,
    /// For how long it could not be read since, where that is too long.
    pub unread_ms: Option<u64>,
    /// How old its last heartbeat is, where that is too old.
    pub silent_ms: Option<u64>,
}

/// How the process is found, and what is to be said of the session besides.
pub fn said(seen: &Seen<'_>, here: &Machine) -> (Locator, Said) {
    let Seen { status, uid, written_at_ms, made_at_ms, .. } = *seen;
    let process = match status.process() {
        Some((machine, _)) if machine.boot_id == here.boot_id && machine.pid_namespace != here.pid_namespace => {
            Locator::Elsewhere
        }
        Some((machine, id)) => Locator::Exactly { machine, id },
        None => {
            let written = Written { at_ms: Some(written_at_ms), uid };
            Locator::Pid { pid: status.pid, start: status.start, written }
        }
    };
    let is_elsewhere = process == Locator::Elsewhere;
    let mut unmeasured = Vec::new();
    if is_elsewhere {
        unmeasured.push(Gap::new("process", format!("process {} of another pid namespace", status.pid)));
    }
    let unknown = match (seen.unread_ms, seen.silent_ms.filter(|_| is_elsewhere && !is_over(status))) {
        (Some(ms), _) => Some(format!("its status could not be read for {}", span(ms))),
        (_, Some(ms)) => Some(format!("no heartbeat for {}, and its process is in another pid namespace", span(ms))),
        _ => None,
    };
    let evidence = if unknown.is_none() { evidence(seen) } else { Vec::new() };
    unmeasured.extend(unknown.map(|why| Gap::new(ACTIVITY, why)));
    let said = Said {
        kind: Some(KIND.to_owned()),
        created_at_ms: made_at_ms,
        evidence,
        usage: status
            .active_tool
            .as_deref()
            .filter(|_| status.state == RetainedState::Busy)
            .map(|tool| Usage { current_tool: Some(clean(tool)), ..Usage::default() }),
        unmeasured,
        ..Said::default()
    };
    (process, said)
}

/// Whether a session says that it has ended.
pub(super) fn is_over(status: &RetainedStatus) -> bool {
    matches!(status.state, RetainedState::Closed | RetainedState::Failed)
}

fn span(ms: u64) -> Wait {
    Wait(Duration::from_millis(ms))
}

/// What the session says that it does; of its end also as those say it that have seen one, so that it counts when the process
/// is gone.
fn evidence(seen: &Seen<'_>) -> Vec<Evidence> {
    let status = seen.status;
    let named = |name: &Option<String>| name.as_deref().map(clean).filter(|name| !name.is_empty());
    let (claim, word, mut detail) = match status.state {
        RetainedState::Ready => (Claim::Idle, "ready", ready(status)),
        RetainedState::Busy => {
            (Claim::Working, "busy", named(&status.active_tool).map_or("busy".into(), |tool| format!("calls {tool}")))
        }
        RetainedState::Closed => (Claim::Finished, "closed", "closed".into()),
        RetainedState::Failed => {
            (Claim::Failed, "failed", named(&status.error).map_or("failed".into(), |error| format!("failed: {error}")))
        }
    };
    if let Some(ms) = seen.silent_ms.filter(|_| !is_over(status)) {
        detail = format!("{detail}; no heartbeat for {}", span(ms));
    }
    let at_ms = status.since_ms.unwrap_or(seen.written_at_ms);
    let detail = Some(clean(&detail));
    let told = Evidence { source: Source::OwnRecord, claim, word: word.to_owned(), detail, at_ms };
    let end = is_over(status).then(|| Evidence { source: Source::Process, word: ENDED.to_owned(), ..told.clone() });
    std::iter::once(told).chain(end).collect()
}

/// `ready, 3 tools`.
fn ready(status: &RetainedStatus) -> String {
    let ready = match status.tools.as_deref().map(<[String]>::len) {
        None => "ready".to_owned(),
        Some(1) => "ready, 1 tool".to_owned(),
        Some(n) => format!("ready, {n} tools"),
    };
    // The next request has it connect again: nobody is needed for that.
    if status.connected == Some(false) { ready + "; not connected" } else { ready }
}

/// What a status says, as text: the door for fuzzing.
#[doc(hidden)]
pub fn read_text(bytes: &[u8]) -> String {
    let Ok(status) = serde_json::from_slice(bytes) else { return String::new() };
    let seen = Seen {
        status: &status,
        uid: Some(0),
        written_at_ms: 0,
        made_at_ms: None,
        unread_ms: None,
        silent_ms: status.heartbeat_ms,
    };
    let here = Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() };
    format!("{:?} {:?}", said(&seen, &here), specialization(&status))
}

/// What the session is for: the server that it is kept with.
pub fn specialization(status: &RetainedStatus) -> Option<String> {
    status.server.as_deref().map(clean).filter(|server| !server.trim().is_empty())
}
