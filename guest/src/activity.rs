//! What an agent does, by the best evidence there is.
//!
//! The order of evidence: the process itself (an agent whose process has ended is dead, whatever its records say; what comes of
//! it says whoever stands by the process); then
//! what the agent's own record or a hook says; then its transcript; then an upstream; then what its processes use.
//! Within one rank the newest statement counts. No event tells of an interruption, so an event from before the end of a turn
//! in the transcript counts no more. Waiting does not expire; work that is claimed but not to be seen for
//! long is a stall. As long as the facts say that records are still to be read, processes are not asked in their place.
//!
//! A statement in an unknown word makes the activity unknown. It hides no problem, though: the checks go on by what is
//! known without it, so that a word which nobody understands never makes an agent look healthier.

use std::cmp::Reverse;
use std::fmt::{self, Display, Formatter};

use crate::settings::Settings;
use crate::text::{Clean, Span};
use crate::{Activity, Agent, Claim, Evidence, ProcessState, Source, Trend};

/// The word for an end that is made good by whoever has seen it.
const STARTS_AGAIN: &str = "starts again";

/// The words of those who stand by an agent for its end. Others of the same rank are guesses, as from a terminal's title.
const ENDS: [&str; 4] = ["ended", "ended on request", STARTS_AGAIN, "gave up"];

/// The words of another headcount for what it has found itself: one that claims to work and does not, and one whose process has
/// ended, which starts again by itself where it says that word.
const STALLED: &str = "stalled";
const DEAD: &str = "dead";

/// What is known of an agent, and the statement that nobody understands, if it is the newest.
pub(crate) struct Finding<'a> {
    /// What follows from everything but unknown words.
    pub(crate) known: State<'a>,
    pub(crate) unknown_word: Option<&'a Evidence>,
}

/// An activity with its reason.
pub(crate) struct State<'a> {
    pub(crate) activity: Activity,
    pub(crate) why: Why<'a>,
    pub(crate) since_ms: Option<u64>,
    pub(crate) decided_by: Source,
    pub(crate) inferred: bool,
    /// The agent has ended badly, by its own account or its process's. One that is started again by itself is dead meanwhile,
    /// but has not failed.
    pub(crate) failed: bool,
}

/// The reason of an activity; its text is made when it is shown.
pub(crate) enum Why<'a> {
    /// The statement's own word.
    Word(&'a Evidence),
    /// What the statement says beyond its word.
    Detail(&'a Evidence),
    /// A turn that has begun and not ended, and what the statement says beyond that: mostly what its transcript does not record.
    OpenTurn(&'a Evidence),
    UnknownWord(&'a Evidence),
    Ended {
        zombie: bool,
        exit_code: Option<i32>,
        /// How that is known, where it was not seen.
        known_by: Option<&'a str>,
    },
    Stopped,
    /// Work is claimed, yet nothing was to be seen for so many milliseconds.
    Silent(u64),
    /// CPU or IO was seen so many milliseconds ago.
    Active(u64),
    /// Percent of one core, seen once.
    Cpu(u64),
    /// No CPU or IO for so many milliseconds.
    Quiet(u64),
    /// No CPU or IO, but watched for so many milliseconds only.
    Watched(u64),
    Unreadable,
    NotLocal(Option<&'a str>),
    NotMeasured(Option<&'a str>),
}

/// Finds out what `agent` does at `now_ms`.
pub(crate) fn find<'a>(agent: &'a Agent, now_ms: u64, settings: &Settings) -> Finding<'a> {
    if let Some(known) = ended(agent, now_ms) {
        return Finding { known, unknown_word: None };
    }
    let turn_end = turn_end(agent, now_ms);
    let newest = |known_only: bool| {
        let candidates = agent.evidence.iter().filter(|evidence| {
            let is_over =
                evidence.source == Source::Hook && turn_end.is_some_and(|end| evidence.at_ms.min(now_ms) < end);
            !is_over && (!known_only || evidence.claim != Claim::Unknown)
        });
        // Of equals the last is taken, hence the reversal: it is to be the first in the list.
        candidates.rev().max_by_key(|evidence| {
            // Nothing is said in the future; a clock that is ahead must not make its statements last.
            (Reverse(rank(evidence.source)), evidence.at_ms.min(now_ms), evidence.source == Source::OwnRecord)
        })
    };
    let unknown_word = newest(false).filter(|evidence| evidence.claim == Claim::Unknown);
    let known = newest(true)
        .map_or_else(|| observed(agent, now_ms, settings), |evidence| stated(agent, evidence, now_ms, settings));
    Finding { known, unknown_word }
}

/// When the last turn ended by the agent's transcript, if that is the last the transcript says. An end that is dated ahead
/// is none: nobody can tell what came after it.
fn turn_end(agent: &Agent, now_ms: u64) -> Option<u64> {
    let is_known = |evidence: &&Evidence| evidence.source == Source::Transcript && evidence.claim != Claim::Unknown;
    let transcript = agent.evidence.iter().filter(is_known);
    let last = transcript.rev().max_by_key(|evidence| evidence.at_ms.min(now_ms))?;
    let has_ended = matches!(last.claim, Claim::Idle | Claim::Finished | Claim::Failed);
    (has_ended && last.at_ms <= now_ms).then_some(last.at_ms)
}

fn rank(source: Source) -> u8 {
    match source {
        Source::OwnRecord | Source::Hook => 0,
        Source::Transcript => 1,
        Source::Upstream => 2,
        Source::Process => 3,
    }
}

/// The state of an agent whose process has ended.
fn ended(agent: &Agent, now_ms: u64) -> Option<State<'_>> {
    let zombie = agent.process == ProcessState::Zombie;
    let gone = agent.process == ProcessState::Gone;
    let seen = witnessed(agent);
    let well = match seen {
        Some(evidence) => evidence.claim == Claim::Finished,
        None => agent.exit_code == Some(0),
    };
    let mends_itself = seen.is_some_and(|evidence| evidence.word == STARTS_AGAIN);
    (zombie || gone).then(|| State {
        activity: if well { Activity::Finished } else { Activity::Dead },
        why: match seen.filter(|evidence| evidence.detail.is_some()) {
            Some(evidence) => Why::Detail(evidence),
            None => Why::Ended { zombie, exit_code: agent.exit_code, known_by: gap(agent, &["process"]) },
        },
        since_ms: seen.map(|evidence| evidence.at_ms.min(now_ms)),
        decided_by: Source::Process,
        inferred: false,
        failed: !well && !mends_itself,
    })
}

/// What whoever stands by an agent says of its end: whether that was asked for, and what comes of it.
fn witnessed(agent: &Agent) -> Option<&Evidence> {
    let is_end = |evidence: &&Evidence| {
        evidence.source == Source::Process
            && matches!(evidence.claim, Claim::Finished | Claim::Failed)
            && ENDS.contains(&evidence.word.as_str())
    };
    agent.evidence.iter().filter(is_end).max_by_key(|evidence| evidence.at_ms)
}

/// The state that follows from `newest`, the statement that decides.
fn stated<'a>(agent: &'a Agent, newest: &'a Evidence, now_ms: u64, settings: &Settings) -> State<'a> {
    let is_over = matches!(newest.claim, Claim::Finished | Claim::Failed);
    if agent.process == ProcessState::Stopped && !is_over {
        // Whatever it says, it can neither work nor take an answer.
        return stopped();
    }
    if newest.claim == Claim::Working
        && let Some(state) = stalled(agent, newest, now_ms, settings)
    {
        return state;
    }
    let open_turn = newest.claim == Claim::Working && newest.source == Source::Transcript;
    let found_elsewhere = |words: &[&str]| newest.source == Source::Upstream && words.contains(&newest.word.as_str());
    State {
        activity: match newest.claim {
            Claim::Working if found_elsewhere(&[STALLED]) => Activity::Stalled,
            Claim::Failed if found_elsewhere(&[DEAD, STARTS_AGAIN]) => Activity::Dead,
            Claim::Working => Activity::Working,
            Claim::Waiting => Activity::WaitingForInput,
            Claim::Idle => Activity::Idle,
            Claim::Finished | Claim::Failed => Activity::Finished,
            Claim::Unknown => Activity::Unknown,
        },
        why: match &newest.detail {
            _ if open_turn => Why::OpenTurn(newest),
            detail if detail.as_ref().is_none_or(|detail| detail.is_empty()) => Why::Word(newest),
            _ => Why::Detail(newest),
        },
        since_ms: Some(since(agent, newest, now_ms)),
        decided_by: newest.source,
        inferred: open_turn || newest.source == Source::Process,
        failed: newest.claim == Claim::Failed && !found_elsewhere(&[STARTS_AGAIN]),
    }
}

/// The state that is shown in place of what is known when `word`, the newest statement, is not understood.
pub(crate) fn unknown<'a>(agent: &'a Agent, word: &'a Evidence, now_ms: u64) -> State<'a> {
    State {
        activity: Activity::Unknown,
        why: Why::UnknownWord(word),
        since_ms: Some(since(agent, word, now_ms)),
        decided_by: word.source,
        inferred: false,
        failed: false,
    }
}

/// When the unbroken run of statements began that `newest` ends: same rank, same claim. Unknown words break no run.
fn since(agent: &Agent, newest: &Evidence, now_ms: u64) -> u64 {
    let peers = || agent.evidence.iter().filter(|evidence| rank(evidence.source) == rank(newest.source));
    let other = |claim| claim != newest.claim && claim != Claim::Unknown;
    let changed = peers().filter(|evidence| other(evidence.claim)).map(|evidence| evidence.at_ms.min(now_ms)).max();
    let run = peers().filter(|evidence| evidence.claim == newest.claim).map(|evidence| evidence.at_ms.min(now_ms));
    run.filter(|at_ms| changed.is_none_or(|changed| *at_ms > changed)).min().unwrap_or(newest.at_ms.min(now_ms))
}

/// The state of an agent that claims to work and does not.
fn stalled<'a>(agent: &Agent, claim: &Evidence, now_ms: u64, settings: &Settings) -> Option<State<'a>> {
    let age_ms = now_ms.saturating_sub(claim.at_ms);
    let silent_ms = watched(agent)?.quiet_ms.min(age_ms);
    (silent_ms >= settings.stall_after).then(|| State {
        activity: Activity::Stalled,
        why: Why::Silent(silent_ms),
        since_ms: Some(now_ms - silent_ms),
        decided_by: Source::Process,
        inferred: true,
        failed: false,
    })
}

fn stopped<'a>() -> State<'a> {
    State {
        activity: Activity::Stalled,
        why: Why::Stopped,
        since_ms: None,
        decided_by: Source::Process,
        inferred: false,
        failed: false,
    }
}

/// The trend, where it covers any time at all.
fn watched(agent: &Agent) -> Option<&Trend> {
    agent.trend.as_ref().filter(|trend| trend.window_ms > 0)
}

/// The state that follows from the processes alone.
fn observed<'a>(agent: &'a Agent, now_ms: u64, settings: &Settings) -> State<'a> {
    let inferred = |activity, why, since_ms| State {
        activity,
        why,
        since_ms,
        decided_by: Source::Process,
        inferred: true,
        failed: false,
    };
    let unknown = |why| State { inferred: false, ..inferred(Activity::Unknown, why, None) };
    if agent.process == ProcessState::Stopped {
        return stopped();
    }
    // What would say it is there and not read yet. Who is only quiet meanwhile need not be idle.
    if let Some(why) = gap(agent, &["activity"]) {
        return unknown(Why::NotMeasured(Some(why)));
    }
    match agent.process {
        ProcessState::Unreadable => return unknown(Why::Unreadable),
        ProcessState::NotLocal => return unknown(Why::NotLocal(gap(agent, &["process"]))),
        _ => {}
    }
    let Some(trend) = watched(agent) else {
        return match agent.metrics.cpu_percent.filter(|cpu| cpu.is_finite()) {
            Some(cpu) if cpu >= settings.busy_cpu as f64 => inferred(Activity::Working, Why::Cpu(cpu as u64), None),
            Some(_) => inferred(Activity::Idle, Why::Watched(0), None),
            None => unknown(Why::NotMeasured(gap(agent, &["cpu-percent"]))),
        };
    };
    let quiet_ms = trend.quiet_ms;
    if quiet_ms < settings.idle_after && quiet_ms < trend.window_ms {
        return inferred(Activity::Working, Why::Active(quiet_ms), None);
    }
    let why = if quiet_ms < settings.idle_after { Why::Watched(trend.window_ms) } else { Why::Quiet(quiet_ms) };
    inferred(Activity::Idle, why, Some(now_ms.saturating_sub(quiet_ms)))
}

/// Why one of `fields` could not be measured, where the facts say so.
pub(crate) fn gap<'a>(agent: &'a Agent, fields: &[&str]) -> Option<&'a str> {
    let gap = agent.unmeasured.iter().find(|gap| fields.contains(&gap.field.as_str()));
    gap.map(|gap| gap.reason.as_str())
}

impl Display for Why<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Why::Word(evidence) => Clean(&evidence.word).fmt(f),
            Why::Detail(evidence) => Clean(evidence.detail.as_deref().unwrap_or_default()).fmt(f),
            Why::OpenTurn(evidence) => match evidence.detail.as_deref().unwrap_or_default() {
                "" => f.write_str("open turn"),
                detail => write!(f, "open turn; {}", Clean(detail)),
            },
            Why::UnknownWord(evidence) => write!(f, "unknown word \"{}\"", Clean(&evidence.word)),
            Why::Ended { zombie, exit_code, known_by } => {
                match (exit_code, known_by) {
                    (Some(code @ 0..), _) => write!(f, "ended with exit code {code}")?,
                    (Some(signal), _) => write!(f, "ended by signal {}", signal.unsigned_abs())?,
                    (None, Some(how)) => write!(f, "ended, exit code unknown: {}", Clean(how))?,
                    (None, None) => f.write_str("ended, exit code unknown")?,
                }
                f.write_str(if *zombie { " (zombie)" } else { "" })
            }
            Why::Stopped => f.write_str("stopped by a signal; SIGCONT continues it"),
            Why::Silent(ms) => write!(f, "claims to work, but no CPU or IO for {}", Span(*ms)),
            Why::Active(0) => f.write_str("CPU or IO just now"),
            Why::Active(ms) => write!(f, "CPU or IO {} ago", Span(*ms)),
            Why::Cpu(percent) => write!(f, "{percent} % CPU, measured once"),
            Why::Quiet(ms) => write!(f, "no CPU or IO for {}", Span(*ms)),
            Why::Watched(0) => f.write_str("no CPU, measured once"),
            Why::Watched(ms) => write!(f, "no CPU or IO in the {} watched", Span(*ms)),
            Why::Unreadable => f.write_str("its process cannot be read"),
            Why::NotLocal(None) => f.write_str("no process here, and nothing else is known"),
            Why::NotLocal(Some(reason)) => write!(f, "{}", Clean(reason)),
            Why::NotMeasured(None) => f.write_str("not measured yet"),
            Why::NotMeasured(Some(reason)) => write!(f, "not measured: {}", Clean(reason)),
        }
    }
}

#[cfg(test)]
mod tests;
