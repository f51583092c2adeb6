//! An explanation as a person likes to read it: a tree of what was said, and the facts below it.

use crate::authoring::explain::{AgentExplanation, Because, Explained, Explanation, MAX_TIME, Stopped};
use crate::report::{SessionHealth, word};
use owo_colors::OwoColorize as _;
use std::fmt::Write as _;

/// How explanations come about, for the help text.
pub const LEGEND: &str = "--explain finds out by trying which facts led to what the policy says: it takes away one fact at a time (a number, \
    a piece of evidence, an agent of the session) and asks the policy again. `because` names the facts without which a check would be gone \
    or come out otherwise, or the status or activity would be another; `together` those that have a part in its value, where no single one decides. Not tried are the time and the policy's settings. The worst agents come first; \
    at most 20 are explained, by at most 300 facts of each, 2000 judgements in all and in 20 s.\n\n\
    Exit codes: 0 the policy came to a verdict; 1 it did not; 2 error; 64 wrong usage.";

/// Facts that only together lead to a check, of which no more are shown.
const TOGETHER: usize = 10;

/// The tree, with a line end after each line.
pub fn text(explanation: &Explanation) -> String {
    let Explanation { session_id, session_health, session_score, .. } = explanation;
    let mut out = format!("{}  {} {session_score}\n", session_id.bold(), word(session_health));
    let calm = matches!(session_health, SessionHealth::Healthy | SessionHealth::Empty);
    let partly = explanation.session_facts_left_out > 0;
    if !calm || !explanation.because.is_empty() {
        because(&mut out, "  ", &explanation.because, partly);
    }
    checks(&mut out, "  ", &explanation.session_checks, partly);
    for agent in &explanation.agents {
        self::agent(&mut out, agent);
    }
    if explanation.agents.is_empty() && explanation.agents_left_out == 0 {
        let _ = writeln!(out, "  every agent is active, and passes every check");
    }
    let left_out = left_out(explanation);
    if !left_out.is_empty() {
        let _ = writeln!(out, "  {} {}", "not all:".yellow(), left_out.join("; "));
    }
    let tried = explanation.judgements;
    if explanation.without_verdict > 0 {
        let none = explanation.without_verdict;
        let _ = writeln!(out, "  of {tried} judgements {none} came to no verdict and say nothing");
    }
    out
}

/// What was not tried of the whole, and why.
fn left_out(explanation: &Explanation) -> Vec<String> {
    let Explanation { stopped, judgements, agents, agents_left_out, session_facts_left_out, .. } = explanation;
    let mut said = Vec::new();
    match stopped {
        Some(Stopped::Judgements) => said.push(format!("stopped after {judgements} judgements")),
        Some(Stopped::Time) => said.push(format!("stopped after {} s", MAX_TIME.as_secs())),
        Some(Stopped::Agents) | None => {}
    }
    if *agents_left_out > 0 {
        let all = agents.len() + agents_left_out;
        said.push(format!("{} of {all} agents explained, the worst first", agents.len()));
    }
    if *session_facts_left_out > 0 {
        said.push(format!("of the session {session_facts_left_out} agents or sources not taken away"));
    }
    said
}

fn agent(out: &mut String, agent: &AgentExplanation) {
    let (status, activity) = (word(&agent.status), word(&agent.activity).replace('_', " "));
    let _ = writeln!(out, "  {}  {status} {activity}: {}", agent.agent_name.bold(), agent.reason);
    let left_out = agent.facts_left_out;
    because(out, "    ", &agent.because, left_out > 0);
    checks(out, "    ", &agent.checks, left_out > 0);
    if left_out > 0 {
        let _ = writeln!(out, "    {} {left_out} of its facts were not tried", "not all:".yellow());
    }
}

fn checks(out: &mut String, indent: &str, checks: &[Explained], partly: bool) {
    for Explained { check, because: facts, together } in checks {
        let _ = write!(out, "{indent}{} {}: {}", check.name.bold(), word(&check.outcome), check.detail);
        let figures = [("value", check.value), ("limit", check.limit)];
        let figures = figures.into_iter().filter_map(|(name, figure)| Some(format!("{name} {}", figure?)));
        let figures = figures.collect::<Vec<_>>().join(", ");
        let _ = if figures.is_empty() { writeln!(out) } else { writeln!(out, " ({figures})") };
        if together.is_empty() {
            because(out, &format!("{indent}  "), facts, partly);
        }
        for Because { fact, shown, .. } in together.iter().take(TOGETHER) {
            let _ = writeln!(out, "{indent}  {} {fact} = {shown}", "together".dimmed());
        }
        if together.len() > TOGETHER {
            let _ = writeln!(out, "{indent}  … and {} more", together.len() - TOGETHER);
        }
    }
}

fn because(out: &mut String, indent: &str, facts: &[Because], partly: bool) {
    for Because { fact, shown, .. } in facts {
        let _ = writeln!(out, "{indent}{} {fact} = {shown}", "because".dimmed());
    }
    if facts.is_empty() {
        let none = if partly {
            "no single fact of those that were tried"
        } else {
            "no single fact: it takes several together, or others than these"
        };
        let _ = writeln!(out, "{indent}{}", none.dimmed());
    }
}
