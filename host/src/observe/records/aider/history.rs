//! The parser of Aider's chat history: Markdown for people, in which a chat begins with a header, a prompt with `####`, and what Aider
//! itself says with `>`. Only the header has a time. All other lines are the model's, and may be anything, also what looks like a
//! header: one counts only if Aider itself speaks after it, if it is not older than the last one, and if it may be past. Whoever
//! knows all that can still forge one.

use crate::observe::facts::{Claim, Usage};
use crate::observe::records::follow::Parser;
use crate::observe::records::value::word;
use crate::observe::records::{NO_APPROVALS, TURN_ENDED};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The commands that ask the model something.
const ASKING: [&str; 4] = ["/ask ", "/code ", "/architect ", "/context "];

/// What stands in each question that was answered.
const QUESTION: &str = "(Y)es/(N)o";

/// What the chat that began last has said so far.
#[derive(Debug, Clone, Default)]
pub struct History {
    started: Option<DateTime>,
    /// When the chat before it began.
    before: Option<DateTime>,
    /// A header, as long as nobody has spoken after it.
    header: Option<DateTime>,
    usage: Usage,
    turn: Turn,
}

/// What is known of the turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turn {
    /// Nobody has asked anything.
    #[default]
    None,
    /// There is a prompt, and no answer to all of it.
    Open,
    /// It was answered.
    Answered,
    /// It was interrupted.
    Interrupted,
    /// Something has happened whose end is not recorded: a command, a question with its answer.
    Unsure,
}

impl Turn {
    /// What it claims, in which word, and more about it; `None`: nothing.
    pub fn claim(self) -> Option<(Claim, &'static str, Option<&'static str>)> {
        match self {
            Self::None | Self::Unsure => None,
            Self::Open => Some((Claim::Working, "prompt", Some(NO_APPROVALS))),
            Self::Answered => Some((Claim::Idle, "answered", Some(TURN_ENDED))),
            Self::Interrupted => Some((Claim::Idle, "interrupted", None)),
        }
    }
}

impl Parser for History {
    const END: Option<u64> = None;

    fn line(&mut self, line: &[u8], now_ms: u64) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if let Some(started) = self.header.take().filter(|_| line.starts_with('>')) {
            *self = Self { started: Some(started), before: self.started, ..Self::default() };
        }
        let header = line.strip_prefix("# aider chat started at ").and_then(date);
        self.header =
            header.filter(|header| self.started.is_none_or(|last| last <= *header) && may_be_past(*header, now_ms));
        if self.header.is_some() {
            // What follows will tell whether it is one.
        } else if let Some(prompt) = line.strip_prefix("#### ") {
            let is_command = prompt.starts_with(['/', '!']) && !ASKING.iter().any(|asking| prompt.starts_with(asking));
            self.turn = if is_command { Turn::Unsure } else { Turn::Open };
        } else if let Some(said) = line.strip_prefix("> ") {
            self.said(said);
        } else if self.turn == Turn::Answered && line != ">" {
            // It was asked something again, by itself.
            self.turn = Turn::Unsure;
        }
    }

    /// What is not understood is the model's, and may be anything.
    fn lost(&self) -> u64 {
        0
    }
}

impl History {
    /// When the chat began, by the clock on the wall of whoever wrote it.
    pub fn started(&self) -> Option<DateTime> {
        self.started
    }

    /// When the chat before it began, by the same clock.
    pub fn before(&self) -> Option<DateTime> {
        self.before
    }

    /// What it says of the turn.
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// What it says of the chat's work; `None`: nothing.
    pub fn usage(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then(|| self.usage.clone())
    }

    /// What Aider itself says.
    fn said(&mut self, said: &str) {
        let model = said.strip_prefix("Main model: ").or_else(|| said.strip_prefix("Model: "));
        if let Some(model) = model {
            self.usage.model = model.split(" with ").next().map(word);
        } else if let Some(report) = said.strip_prefix("Tokens: ") {
            self.count(report);
            self.turn = Turn::Answered;
        } else if said.starts_with("^C ") {
            self.turn = Turn::Interrupted;
        } else if said.contains(QUESTION) && self.turn != Turn::Open {
            self.turn = Turn::Unsure;
        }
    }

    /// What one answer has cost: `12k sent, 1.2k cache write, 3k cache hit, 340 received. Cost: …`. What was sent includes what
    /// went into the cache and came out of it.
    fn count(&mut self, report: &str) {
        let report = report.split(". ").next().unwrap_or_default().trim_end_matches('.');
        // A comma may also stand in a number.
        let figure = |of: &str| {
            let part = report.split(", ").find_map(|part| part.strip_suffix(of))?;
            tokens(part.trim_end())
        };
        let (Some(sent), Some(received)) = (figure("sent"), figure("received")) else { return };
        let (written, hit) = (figure("cache write"), figure("cache hit"));
        let fresh = sent.saturating_sub(written.unwrap_or(0)).saturating_sub(hit.unwrap_or(0));
        let usage = &mut self.usage;
        for (sum, more) in [
            (&mut usage.input_tokens, Some(fresh)),
            (&mut usage.output_tokens, Some(received)),
            (&mut usage.cache_write_tokens, written),
            (&mut usage.cache_read_tokens, hit),
        ] {
            *sum = more.map_or(*sum, |more| Some(sum.unwrap_or(0).saturating_add(more)));
        }
    }
}

/// `2026-09-06 10:00:00`, and nothing else.
fn date(text: &str) -> Option<DateTime> {
    DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok().filter(|_| text.len() == 19)
}

/// Whether it is past by any clock on a wall: none is further ahead of Greenwich than this.
fn may_be_past(wall: DateTime, now_ms: u64) -> bool {
    const AHEAD_MS: i64 = 14 * 3_600_000;
    as_utc_ms(wall).zip(i64::try_from(now_ms).ok()).is_some_and(|(wall, now)| wall <= now.saturating_add(AHEAD_MS))
}

/// The time that a clock on the wall would show in Greenwich, Unix milliseconds.
pub fn as_utc_ms(wall: DateTime) -> Option<i64> {
    TimeZone::UTC.to_timestamp(wall).ok().map(|time| time.as_millisecond())
}

/// `340`, `2,345`, `1.2k` or `12k`: Aider rounds what is more than a thousand.
fn tokens(text: &str) -> Option<u64> {
    let plain = text.replace(',', "");
    let (digits, scale) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => plain.strip_suffix('M').map_or((plain.as_str(), 1.0), |digits| (digits, 1e6)),
    };
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = digits.parse().ok().filter(|_| is_plain)?;
    let value = (value * scale).round();
    (value < 1e15).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "# aider chat started at 2026-09-06 10:00:03";
    const NOW_MS: u64 = 1_788_700_000_000;
    const TOKENS: &str = "> Tokens: 12k sent, 340 received. Cost: $0.02 message, $0.03 session.  ";

    fn history(lines: &[&str]) -> History {
        let mut history = History::default();
        lines.iter().for_each(|line| history.line(line.as_bytes(), NOW_MS));
        history
    }

    #[test]
    fn a_prompt_opens_a_turn_and_the_report_of_its_tokens_ends_it() {
        let turn = |lines: &[&str]| history(lines).turn();
        let answer = "Sure:\n";
        assert_eq!(turn(&[HEADER]), Turn::None);
        assert_eq!(turn(&[HEADER, "#### secret  "]), Turn::Open);
        assert_eq!(turn(&[HEADER, "#### secret  ", answer]), Turn::Open);
        assert_eq!(turn(&["#### /ask what  ", answer, TOKENS, "> Applied edit to a.rs  ", ">  "]), Turn::Answered);
        assert_eq!(turn(&["#### secret  ", TOKENS, "#### more  "]), Turn::Open);
        assert_eq!(turn(&["#### secret  ", "> ^C again to exit  "]), Turn::Interrupted);
        assert_eq!(turn(&["#### secret  ", "> Add a.rs to the chat? (Y)es/(N)o [Yes]: y  "]), Turn::Open);
        assert_eq!(turn(&["#### secret  ", TOKENS, HEADER, "> Aider v1"]), Turn::None, "another chat");
    }

    #[test]
    fn what_has_no_recorded_end_is_not_decided() {
        for lines in [
            &["#### /run make  "][..],
            &["#### !make  ", "> ok  "],
            &["#### x  ", TOKENS, "> Attempt to fix lint errors? (Y)es/(N)o [Yes]: y  "],
            &["#### x  ", TOKENS, "And another answer"],
        ] {
            assert_eq!(history(lines).turn(), Turn::Unsure, "{lines:?}");
        }
        assert_eq!((Turn::Unsure.claim(), Turn::None.claim()), (None, None));
    }

    #[test]
    fn usage_is_that_of_the_last_chat_as_exact_as_it_is_written() {
        let usage = history(&[
            HEADER,
            TOKENS,
            HEADER,
            "> Main model: claude-sonnet-5 with diff edit format  ",
            "> Weak model: claude-haiku-5  ",
            TOKENS,
            "> Tokens: 2,345 sent, 1.2k cache write, 100 cache hit, 60 received.  ",
        ]);
        let expected = Usage {
            model: Some("claude-sonnet-5".to_owned()),
            input_tokens: Some(12_000 + 1045),
            output_tokens: Some(400),
            cache_write_tokens: Some(1200),
            cache_read_tokens: Some(100),
            ..Usage::default()
        };
        assert_eq!(usage.usage(), Some(expected));
        for strange in ["> Tokens: many sent, 5 received.", "> Tokens: 5 sent.", "> Tokens: -5 sent, 5 received."] {
            assert_eq!(history(&[strange]).usage(), None, "{strange}");
        }
    }

    #[test]
    fn a_header_has_a_time_on_the_wall() {
        let started = |line: &str| history(&[line, "> Aider v1"]).started().and_then(as_utc_ms);
        assert_eq!(started(HEADER), Some(1_788_688_803_000));
        for none in [
            "# aider chat started at noon",
            "# aider chat started at 2026-13-06 10:00:00",
            "#### x",
            HEADER.trim_end_matches('3'),
        ] {
            assert_eq!(started(none), None, "{none}");
        }
    }

    #[test]
    fn what_only_looks_like_a_header_is_none() {
        let begun = |lines: &[&str]| {
            let history = history(&[&[HEADER, "> Model: mine with diff", "#### x  "], lines].concat());
            (history.started().unwrap().second(), history.usage().unwrap().model.unwrap(), history.turn())
        };
        let mine = (3, "mine".to_owned(), Turn::Open);
        let header = |time: &str| format!("# aider chat started at {time}");
        let [older, later, ahead] = ["2026-09-06 09:59:59", "2026-09-06 10:00:04", "2026-09-08 00:00:00"].map(header);
        let other = "> Model: other with diff";
        assert_eq!(begun(&["Sure:", &later, "is a header"]), mine);
        assert_eq!(begun(&["Sure:", &older, TOKENS]).2, Turn::Answered);
        for none in [&older, &ahead] {
            assert_eq!(begun(&["Sure:", none]), mine);
        }
        let next = history(&[HEADER, "> x", &later, other]);
        assert_eq!(next.before().map(|before| before.second()), Some(3));
        assert_eq!(begun(&[&later, other]), (4, "other".to_owned(), Turn::None));
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in proptest::collection::vec(any::<u8>(), 0..200), at in any::<usize>(), put in any::<u8>(), number in "[0-9.,kM]{0,30}") {
            let mut history = history(&[]);
            history.line(&line, 0);
            history.line(format!("> Tokens: {number} sent, {number} received.").as_bytes(), 0);
            for known in [HEADER, TOKENS, "#### secret", "> Model: x with y"] {
                let mut bytes = known.as_bytes().to_vec();
                let at = at % bytes.len();
                bytes[at] = put;
                history.line(&bytes, 0);
            }
            let model = history.usage().and_then(|usage| usage.model).unwrap_or_default();
            prop_assert!(model.chars().count() <= 64 && !model.contains("secret"));
        }
    }
}
