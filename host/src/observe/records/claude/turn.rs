//! What follows from the lines of a transcript: whether a turn is open, and what it has cost so far.

use super::transcript::{Answer, Line, Tokens, What};
use crate::observe::facts::{Claim, Evidence, Source};
use crate::observe::records::{NO_PERMISSIONS, TURN_ENDED};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// How many calls of tools can be open at once.
const MOST_CALLS: usize = 256;

/// A process's start is derived, and may seem this much later than what it wrote first.
pub const DRIFT_MS: u64 = 2_000;

/// The last turn of a conversation.
#[derive(Debug, Default)]
pub struct Turn {
    open: bool,
    /// When it began, Unix milliseconds; `None` if its beginning was not read.
    began_ms: Option<u64>,
    /// When the last line of it was written.
    last_ms: Option<u64>,
    /// What that line was.
    word: String,
    /// Tools that were called and have not come back: id and name.
    calls: Vec<(String, String)>,
}

impl Turn {
    /// Takes up the next line.
    pub fn take(&mut self, line: &Line) {
        if line.aside {
            return;
        }
        match &line.what {
            What::Other => return,
            What::Prompt => {
                self.begin(line.at_ms, true);
                self.calls.clear();
                "prompt".clone_into(&mut self.word);
            }
            What::Results(ids) => {
                self.begin(line.at_ms, false);
                self.calls.retain(|(id, _)| !ids.contains(id));
                "tool_result".clone_into(&mut self.word);
            }
            What::Answer(answer) => self.answer(answer, line.at_ms),
            What::TurnEnd(how) => self.end(how),
        }
        self.last_ms = line.at_ms.or(self.last_ms);
    }

    fn answer(&mut self, answer: &Answer, at_ms: Option<u64>) {
        match answer.stop.as_deref() {
            // Whatever else a model stops for, nothing follows but what it is asked next.
            Some(stop) if !matches!(stop, "tool_use" | "pause_turn") => self.end(stop),
            stop => {
                self.begin(at_ms, false);
                stop.unwrap_or("answer").clone_into(&mut self.word);
                let room = MOST_CALLS.saturating_sub(self.calls.len());
                self.calls.extend(answer.calls.iter().take(room).cloned());
            }
        }
    }

    /// A turn is open. It begins with what is `asked`, or without it where the last one has ended; where reading began in
    /// the midst of it, its beginning is not known.
    fn begin(&mut self, at_ms: Option<u64>, asked: bool) {
        let has_ended = !self.open && !self.word.is_empty();
        if asked || has_ended {
            self.began_ms = at_ms;
        }
        self.open = true;
    }

    fn end(&mut self, how: &str) {
        self.open = false;
        how.clone_into(&mut self.word);
        self.calls.clear();
    }

    /// When its last line was written, Unix milliseconds.
    pub fn last_ms(&self) -> Option<u64> {
        self.last_ms
    }

    /// Whether it is open, for a process that started then: one that takes up an old conversation has no part in its turns.
    pub fn is_open_since(&self, started_at_ms: u64) -> bool {
        self.open && self.is_of(started_at_ms)
    }

    fn is_of(&self, started_at_ms: u64) -> bool {
        self.last_ms.is_some_and(|last| last.saturating_add(DRIFT_MS) >= started_at_ms)
    }

    /// The tool that was called last and has not come back.
    pub fn current_tool(&self) -> Option<&str> {
        self.calls.last().map(|(_, name)| name.as_str())
    }

    /// The calls that have not come back, and when its last line was written, where that is of a process which started then.
    /// `None` too where its beginning was not read: there may be others.
    pub fn calls(&self, started_at_ms: u64) -> Option<(Vec<String>, u64)> {
        let is_whole = !self.open || self.began_ms.is_some();
        let last_ms = self.last_ms.filter(|_| is_whole && self.is_of(started_at_ms))?;
        Some((self.calls.iter().map(|(id, _)| id.clone()).collect(), last_ms))
    }

    /// What it says of a process that started then. An open turn is dated twice: since when, and as late as when. Whether an
    /// open call runs or waits for a permission is not to be seen.
    pub fn evidence(&self, started_at_ms: u64) -> Vec<Evidence> {
        let Some(last_ms) = self.last_ms.filter(|_| self.is_of(started_at_ms)) else { return Vec::new() };
        let said = |claim, word: &str, detail: Option<&str>, at_ms| Evidence {
            source: Source::Transcript,
            claim,
            word: word.to_owned(),
            detail: detail.map(str::to_owned),
            at_ms,
        };
        if !self.open {
            let how = if self.word == "interrupted" { "interrupted" } else { TURN_ENDED };
            return vec![said(Claim::Idle, &self.word, Some(how), last_ms)];
        }
        let began = self.began_ms.filter(|began| *began < last_ms && began.saturating_add(DRIFT_MS) >= started_at_ms);
        let began = began.map(|began| said(Claim::Working, "prompt", Some(NO_PERMISSIONS), began));
        began.into_iter().chain([said(Claim::Working, &self.word, Some(NO_PERMISSIONS), last_ms)]).collect()
    }
}

/// What all messages of a conversation have cost. Each of a message's blocks is a line that has the whole message's figures,
/// as far as they were known then; one that is taken up repeats old messages; and the agent's own transcript may repeat those
/// of the agents inside it.
#[derive(Debug, Default)]
pub struct Ledger {
    messages: HashMap<u64, Tokens>,
    /// All of them.
    pub sum: Tokens,
}

impl Ledger {
    fn enter(&mut self, id: u64, tokens: Tokens) {
        let known = self.messages.entry(id).or_default();
        let now = known.and(tokens, u64::max);
        self.sum = self.sum.plus(now.and(*known, u64::saturating_sub));
        *known = now;
    }
}

/// What one thread has used so far, beside what stands in the ledger.
#[derive(Debug, Default)]
pub struct Sums {
    /// The model that answered last.
    pub model: Option<String>,
    /// The tokens that it was sent for that, of whatever kind.
    pub context: Option<u64>,
    /// Lines that were not understood, or not all of them.
    pub strange: u64,
    /// Messages without an id.
    pub unnamed: Tokens,
}

impl Sums {
    /// Takes up the next line.
    pub fn take(&mut self, line: &Line, ledger: &mut Ledger) {
        let What::Answer(answer) = &line.what else { return };
        self.strange += u64::from(answer.odd);
        if !line.aside && answer.model.is_some() {
            self.model.clone_from(&answer.model);
            self.context = answer.tokens.and_then(Tokens::sent);
        }
        let (Some(tokens), Some(_)) = (answer.tokens, &answer.model) else { return };
        match answer.id.as_deref().map(fingerprint) {
            Some(id) => ledger.enter(id, tokens),
            None => self.unnamed = self.unnamed.plus(tokens),
        }
    }
}

impl Tokens {
    /// Both, figure by figure.
    pub fn plus(self, other: Self) -> Self {
        self.and(other, u64::saturating_add)
    }

    /// All that was sent to the model, from the cache or not; `None`: not all is known.
    fn sent(self) -> Option<u64> {
        Some(self.input?.saturating_add(self.cache_read?).saturating_add(self.cache_write?))
    }

    /// Both, figure by figure; one that is not known in one of them is that of the other.
    fn and(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(join(a, b)),
            (a, b) => a.or(b),
        };
        Self {
            input: both(self.input, other.input),
            output: both(self.output, other.output),
            cache_read: both(self.cache_read, other.cache_read),
            cache_write: both(self.cache_write, other.cache_write),
        }
    }
}

/// Ids are long, and there are many.
fn fingerprint(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::transcript::parse;
    use super::*;

    /// Lines, each written a second after the one before.
    fn lines(lines: &[&str]) -> Vec<Line> {
        let line = |(second, line): (usize, &&str)| {
            let begin = format!(r#"{{"timestamp":"1970-01-01T00:00:{second:02}Z","#);
            parse((begin + line + "}").as_bytes()).unwrap()
        };
        lines.iter().enumerate().map(line).collect()
    }

    fn turn(of: &[&str]) -> Turn {
        let mut turn = Turn::default();
        lines(of).iter().for_each(|line| turn.take(line));
        turn
    }

    /// What these lines have used, and cost.
    fn sums(of: &[&str]) -> (Sums, Tokens) {
        let (mut sums, mut ledger) = (Sums::default(), Ledger::default());
        lines(of).iter().for_each(|line| sums.take(line, &mut ledger));
        let cost = ledger.sum.plus(sums.unnamed);
        (sums, cost)
    }

    const PROMPT: &str = r#""type":"user","message":{"content":"fix it"}"#;
    const CALL: &str = r#""type":"assistant","message":{"id":"m1","model":"m","stop_reason":"tool_use","content":
        [{"type":"tool_use","id":"t1","name":"Read"},{"type":"tool_use","id":"t2","name":"Bash"}]}"#;
    const RESULT: &str = r#""type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}"#;
    const END: &str = r#""type":"assistant","message":{"id":"m2","model":"m","stop_reason":"end_turn","content":[]}"#;
    const STOPPED: &str = r#""type":"user","message":{"content":"[Request interrupted by user for tool use]"}"#;

    #[test]
    fn a_turn_is_open_from_the_prompt_to_its_end() {
        let dates = |turn: &Turn| -> Vec<_> { turn.evidence(0).iter().map(|e| (e.claim, e.at_ms)).collect() };
        let open = turn(&[END, PROMPT, CALL, RESULT]);
        assert_eq!(dates(&open), [(Claim::Working, 1000), (Claim::Working, 3000)]);
        assert_eq!(open.current_tool(), Some("Read"), "Bash has come back");
        assert_eq!(dates(&turn(&[PROMPT, CALL, END])), [(Claim::Idle, 2000)]);
        let stopped = turn(&[PROMPT, CALL, STOPPED]);
        assert_eq!((stopped.evidence(0)[0].detail.as_deref(), stopped.current_tool()), (Some("interrupted"), None));
        assert_eq!(dates(&turn(&[])), []);
    }

    #[test]
    fn a_call_that_waits_for_a_permission_looks_like_one_that_runs() {
        let open = turn(&[PROMPT, CALL]);
        assert!(open.evidence(0).iter().all(|evidence| evidence.claim == Claim::Working));
        assert_eq!(open.current_tool(), Some("Bash"));
    }

    #[test]
    fn where_reading_began_in_the_midst_of_a_turn_its_beginning_is_not_known() {
        assert_eq!(turn(&[CALL, RESULT]).evidence(0).len(), 1);
        // One that goes on by itself after an end is another one.
        assert_eq!(turn(&[PROMPT, END, CALL, RESULT]).evidence(0)[0].at_ms, 2000);
    }

    #[test]
    fn a_turn_from_before_the_process_is_none_of_its() {
        let open = turn(&[PROMPT, CALL]);
        assert!(open.is_open_since(3000) && !open.is_open_since(3001));
        assert_eq!(open.evidence(3001), []);
    }

    #[test]
    fn what_subagents_wrote_into_it_changes_no_turn_and_is_paid_for() {
        let aside = format!(r#""isSidechain":true,{}"#, answer("a", 5, 1));
        assert_eq!(turn(&[PROMPT, END, &aside]).evidence(0)[0].claim, Claim::Idle);
        let (sums, cost) = sums(&[&aside]);
        assert_eq!((cost.input, sums.model), (Some(5), None));
    }

    fn answer(id: &str, input: u64, output: u64) -> String {
        format!(
            r#""type":"assistant","message":{{"id":"{id}","model":"m","usage":
            {{"input_tokens":{input},"output_tokens":{output}}}}}"#
        )
    }

    #[test]
    fn each_message_is_counted_once() {
        let [a1, a2, b] = [answer("a", 10, 1), answer("a", 10, 7), answer("b", 100, 20)];
        let (sums, cost) = sums(&[&a1, &b, &a2, &b, &a1]);
        let tokens = Tokens { input: Some(110), output: Some(27), ..Tokens::default() };
        assert_eq!((cost, sums.model.as_deref()), (tokens, Some("m")));
        let nameless = answer("a", 10, 1).replace(r#""id":"a","#, "");
        assert_eq!(super::tests::sums(&[&nameless, &nameless]).1.input, Some(20));
    }

    #[test]
    fn a_figure_that_is_not_there_is_not_zero_and_none_runs_over() {
        assert_eq!(sums(&[PROMPT, END]).1, Tokens::default());
        let most = answer("a", u64::MAX, 0);
        assert_eq!(sums(&[&most, &answer("b", 1, 2)]).1.input, Some(u64::MAX));
        let synthetic = answer("c", 7, 7).replace(r#""m""#, r#""<synthetic>""#);
        assert_eq!(sums(&[&synthetic]).1, Tokens::default());
    }
}
