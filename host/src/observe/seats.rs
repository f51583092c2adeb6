//! Which row shows which of the conversations that one process holds.
//!
//! The row of the process itself shows one of them, so that a process with a single conversation is a single row; each of the
//! others has a row of its own. Who looks for the first time gives the process's row to the oldest. From then on each
//! conversation keeps its row until it is closed, because a row's id is all that those who wait for it know; a row that has
//! become free goes to the next conversation that begins. Two programs that have looked for different times may therefore
//! disagree about which row is which conversation's, but never about which conversations there are.

use super::processes::ProcessId;
use super::records::Conversation;
use std::collections::{HashMap, HashSet};

/// How many characters of a conversation's id are enough of a name, unless they are another one's too.
const SHORT: usize = 6;

/// Who sits where, by process.
#[derive(Debug, Default)]
pub struct Seats(HashMap<ProcessId, Seat>);

#[derive(Debug, Default)]
struct Seat {
    /// The conversation that the process's own row shows.
    own: Option<String>,
    /// Those that have rows of their own.
    others: HashSet<String>,
}

impl Seats {
    /// Forgets the processes that are not `wanted` any more.
    pub fn retain(&mut self, wanted: impl Fn(ProcessId) -> bool) {
        self.0.retain(|process, _| wanted(*process));
    }

    /// The id of the conversation that the process's own row shows, of those that it holds now; `None`: all of them have
    /// rows of their own. Where nothing is held, nothing is decided: it may be that they could not be read for once.
    pub fn own(&mut self, process: ProcessId, held: &[Conversation]) -> Option<&str> {
        let seat = self.0.entry(process).or_default();
        if held.is_empty() {
            return None;
        }
        let is_held = |id: &String| held.iter().any(|conversation| conversation.id == *id);
        seat.others.retain(is_held);
        seat.own = seat.own.take().filter(is_held);
        let mut by_age: Vec<&Conversation> = held.iter().collect();
        by_age.sort_by_key(|held| (held.started_at_ms.unwrap_or(u64::MAX), &held.id));
        for Conversation { id, .. } in by_age {
            let is_new = seat.own.as_ref() != Some(id) && !seat.others.contains(id);
            match &seat.own {
                _ if !is_new => {}
                None => seat.own = Some(id.clone()),
                Some(_) => drop(seat.others.insert(id.clone())),
            }
        }
        seat.own.as_deref()
    }
}

/// The end of a conversation's id by which it is called: as short as may be, but no other one's of those `held`.
pub fn short_id<'a>(id: &'a str, held: &[Conversation]) -> &'a str {
    let others = || held.iter().filter(|other| other.id != id);
    let ends = (SHORT..id.len()).filter_map(|length| id.get(id.len() - length..));
    let mut unique = ends.filter(|end| others().all(|other| !other.id.ends_with(end)));
    unique.next().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: ProcessId = ProcessId { pid: 7, start: 70 };

    fn held(ids: &[(&str, u64)]) -> Vec<Conversation> {
        let conversation = |(id, started): &(&str, u64)| Conversation {
            id: id.to_string(),
            started_at_ms: Some(*started),
            ..Conversation::default()
        };
        ids.iter().map(conversation).collect()
    }

    #[test]
    fn the_oldest_comes_first_and_everyone_keeps_their_place() {
        let mut seats = Seats::default();
        let [a, b, c, d] = [("a", 1), ("b", 2), ("c", 3), ("d", 0)];
        assert_eq!(seats.own(PROCESS, &held(&[c, a, b])), Some("a"));
        assert_eq!(seats.own(PROCESS, &held(&[d, c, a, b])), Some("a"), "one that is older came later");
        assert_eq!(seats.own(PROCESS, &held(&[b, c])), None, "they keep their own rows");
        assert_eq!(seats.own(PROCESS, &[]), None);
        assert_eq!(seats.own(PROCESS, &held(&[b])), None, "also when only one is left");
        assert_eq!(seats.own(PROCESS, &held(&[b, d])), Some("d"), "the free place goes to one that is new");
        let other = ProcessId { start: 71, ..PROCESS };
        assert_eq!(seats.own(other, &held(&[b])), Some("b"));
        seats.retain(|process| process == other);
        assert_eq!(seats.own(PROCESS, &held(&[b])), Some("b"), "who looks anew begins anew");
    }

    #[test]
    fn names_are_short_and_no_two_are_the_same() {
        let all = held(&[("0199-abcdef", 1), ("0198-abcdef", 2), ("x-123456", 3), ("123456", 4), ("é", 5)]);
        let short: Vec<_> = all.iter().map(|held| short_id(&held.id, &all)).collect();
        assert_eq!(short, ["9-abcdef", "8-abcdef", "-123456", "123456", "é"]);
    }
}
