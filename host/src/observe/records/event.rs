//! What all records of events have in common: lines of JSON with a time, and things that begin and end.

use super::value::{date, word};
use serde_json::Value;

/// So many things may be open at the same time; the oldest is forgotten for one more.
const MOST_OPEN: usize = 64;

/// The longest id that is kept, in characters: as long as those of the agents' hooks may be.
const LONGEST_ID: usize = 512;

fn whole(id: &str) -> String {
    id.chars().take(LONGEST_ID).collect()
}

/// The time that an event has under `timestamp`, Unix milliseconds.
pub(super) fn time(event: &Value) -> Option<u64> {
    date(event["timestamp"].as_str()?)
}

/// Something that has begun and not ended: a tool's call, a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun {
    id: String,
    /// What it is called.
    pub(super) name: String,
    /// When it began, Unix milliseconds.
    pub(super) at_ms: u64,
}

/// What has begun and not ended, in the order of its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Open(Vec<Begun>);

impl Open {
    /// Something begins. One that has begun already is the same.
    pub(super) fn begin(&mut self, id: &str, name: &str, at_ms: u64) {
        let id = whole(id);
        if self.0.iter().any(|begun| begun.id == id) {
            return;
        }
        if self.0.len() == MOST_OPEN {
            self.0.remove(0);
        }
        self.0.push(Begun { id, name: word(name), at_ms });
    }

    /// Something ends, if it has begun.
    pub(super) fn end(&mut self, id: &str) {
        let id = whole(id);
        self.0.retain(|begun| begun.id != id);
    }

    /// Everything ends.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The ids of all of it.
    pub(super) fn ids(&self) -> Vec<String> {
        self.0.iter().map(|begun| begun.id.clone()).collect()
    }

    /// All of it, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Begun> + ExactSizeIterator {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_time_is_read_where_it_is_one() {
        assert_eq!(time(&json!({"timestamp": "2026-09-06T10:00:00.250Z"})), Some(1_788_688_800_250));
        assert_eq!(time(&json!({"timestamp": "2026-09-06T12:00:00.250+02:00"})), Some(1_788_688_800_250));
        for none in [json!({}), json!({"timestamp": 7}), json!({"timestamp": "noon"}), json!([]), json!("x")] {
            assert_eq!(time(&none), None, "{none}");
        }
        assert_eq!(time(&json!({"timestamp": "1066-10-14T09:00:00Z"})), None, "before times are counted");
    }

    #[test]
    fn what_has_ended_is_open_no_more() {
        let mut open = Open::default();
        open.begin("a", "shell", 1);
        open.begin("b", "patch", 2);
        open.begin("a", "again", 3);
        open.end("c");
        let names = |open: &Open| open.iter().map(|begun| begun.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&open), ["shell", "patch"]);
        open.end("a");
        assert_eq!(names(&open), ["patch"]);
        open.clear();
        assert_eq!(open.iter().len(), 0);
    }

    #[test]
    fn no_record_fills_the_memory() {
        let mut open = Open::default();
        for i in 0..1000 {
            open.begin(&format!("{i}"), &"x".repeat(10_000), i);
        }
        assert_eq!(open.iter().len(), MOST_OPEN);
        assert!(open.iter().all(|begun| begun.name.len() == word(&"x".repeat(10_000)).len() && begun.at_ms >= 936));
    }
}
