//! What each agent's events say of it.
//!
//! An event that is not known says nothing: most that agents add are about files and settings, and not about what the
//! agent does. Only where a known event tells a status in a word that is not known, what the agent does is unknown.

use super::event::Event;
use crate::observe::facts::Claim;
use crate::observe::records::{AT_WORK, CLOSED, TURN_ENDED};

/// The kinds of agents whose events are understood.
pub const KINDS: [&str; 5] = ["claude", "codex", "gemini", "cursor", "opencode"];

/// A conversation has begun or was taken up again, and nothing was asked in it.
const OPENED: &str = "conversation opened";
const PROMPTED: &str = "prompt given";
const INTERRUPTED: &str = "interrupted";

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// What the agent does.
    pub claim: Claim,
    /// The same in plain words, for those who do not know the agent's own.
    pub detail: Option<String>,
}

/// What `event` of an agent of this kind says of what the agent does; `None`: nothing.
pub fn meaning(kind: &str, event: &Event) -> Option<Meaning> {
    match kind {
        "claude" => claude(event),
        "codex" => codex(event),
        "gemini" => gemini(event),
        "cursor" => cursor(event),
        "opencode" => opencode(event),
        _ => None,
    }
}

/// Whether an event ends its conversation and not the agent, which has another one now.
pub fn leaves_conversation(event: &Event) -> bool {
    event.name == "SessionEnd" && matches!(event.about.as_deref(), Some("clear" | "resume"))
}

/// Whether an event tells that a tool has done what it was to do, or failed.
pub fn ends_tool(event: &Event) -> bool {
    ["PostToolUse", "PostToolUseFailure", "AfterTool", "tool.execute.after"].contains(&event.name.as_str())
}

/// Whether an event tells that a turn was broken off by an error. What comes after it by itself tells only that it is over.
pub fn breaks_off(event: &Event) -> bool {
    let is_stop = event.name == "stop" && event.about.as_deref() == Some("error");
    let is_abort = event.about.as_deref() == Some("MessageAbortedError");
    is_stop || event.name == "StopFailure" || (event.name == "session.error" && !is_abort)
}

/// Whether an event tells only that a turn is over, and not how: it comes by itself after each.
pub fn is_afterwards(event: &Event) -> bool {
    match event.name.as_str() {
        "session.idle" => true,
        "session.status" => event.about.as_deref() == Some("idle"),
        _ => event.about.as_deref() == Some("idle_prompt"),
    }
}

fn said(claim: Claim, detail: impl Into<String>) -> Option<Meaning> {
    Some(Meaning { claim, detail: Some(detail.into()) })
}

/// That an agent works: what it does with the event's tool.
fn uses(event: &Event, does: impl Fn(&str) -> String) -> Option<Meaning> {
    said(Claim::Working, does(event.tool.as_deref().unwrap_or("a tool")))
}

fn runs(event: &Event) -> Option<Meaning> {
    uses(event, |tool| format!("runs {tool}"))
}

fn has_run(event: &Event) -> Option<Meaning> {
    uses(event, |tool| format!("has run {tool}"))
}

fn has_failed(event: &Event) -> Option<Meaning> {
    uses(event, |tool| format!("{tool} has failed"))
}

/// What an agent waits for that wants to use a tool. Two of Claude's tools are questions themselves.
fn asks(event: &Event) -> Option<Meaning> {
    match event.tool.as_deref() {
        Some("AskUserQuestion") => said(Claim::Waiting, "asks a question"),
        Some("ExitPlanMode") => said(Claim::Waiting, "asks to approve its plan"),
        Some(tool) => said(Claim::Waiting, format!("permission: {tool}")),
        None => said(Claim::Waiting, "permission"),
    }
}

/// The turn has failed, the agent has not: it takes the next prompt, and does nothing more until somebody gives it one.
fn broken_off(event: &Event) -> Option<Meaning> {
    match event.about.as_deref().filter(|about| *about != "error") {
        Some(error) => said(Claim::Waiting, format!("stopped by an error: {error}")),
        None => said(Claim::Waiting, "stopped by an error"),
    }
}

fn claude(event: &Event) -> Option<Meaning> {
    match (event.name.as_str(), event.about.as_deref()) {
        // In the middle of a turn.
        ("SessionStart", Some("compact")) => None,
        ("SessionStart", _) => said(Claim::Idle, OPENED),
        ("UserPromptSubmit", _) => said(Claim::Working, PROMPTED),
        ("PreToolUse", _)
            if ["AskUserQuestion", "ExitPlanMode"].iter().any(|ask| event.tool.as_deref() == Some(ask)) =>
        {
            asks(event)
        }
        ("PreToolUse", _) => runs(event),
        ("PostToolUse", _) => has_run(event),
        ("PostToolUseFailure", _) => has_failed(event),
        ("PostToolBatch", _) => said(Claim::Working, AT_WORK),
        ("PermissionRequest", _) => asks(event),
        ("PermissionDenied", _) => said(Claim::Working, "permission denied"),
        ("Elicitation", _) | ("Notification", Some("elicitation_dialog")) => said(Claim::Waiting, "asks for input"),
        ("ElicitationResult", _) => said(Claim::Working, "was answered"),
        ("Notification", Some("permission_prompt")) => said(Claim::Waiting, "permission"),
        // It waits for a new prompt: its turn is over.
        ("Notification", Some("idle_prompt")) => said(Claim::Idle, TURN_ENDED),
        ("Stop", _) if event.tasks > 0 => {
            let plural = if event.tasks == 1 { "" } else { "s" };
            said(Claim::Working, format!("{} background task{plural}", event.tasks))
        }
        ("Stop", _) => said(Claim::Idle, TURN_ENDED),
        // When a subagent breaks off, its agent goes on.
        ("StopFailure", _) if event.subagent.is_none() => broken_off(event),
        ("SessionEnd", _) => said(Claim::Finished, CLOSED),
        _ => None,
    }
}

/// Its hooks are named as Claude's; `notify` has names of its own.
fn codex(event: &Event) -> Option<Meaning> {
    match event.name.as_str() {
        "Interrupt" => said(Claim::Idle, INTERRUPTED),
        "agent-turn-complete" => said(Claim::Idle, TURN_ENDED),
        "approval-requested" => asks(event),
        _ => claude(event),
    }
}

fn gemini(event: &Event) -> Option<Meaning> {
    match (event.name.as_str(), event.about.as_deref()) {
        ("SessionStart", _) => said(Claim::Idle, OPENED),
        ("BeforeAgent", _) => said(Claim::Working, PROMPTED),
        ("BeforeModel" | "AfterModel", _) => said(Claim::Working, AT_WORK),
        ("BeforeTool", _) => runs(event),
        ("AfterTool", _) => has_run(event),
        ("AfterAgent", _) => said(Claim::Idle, TURN_ENDED),
        // Of other notifications it is not known whether anybody waits.
        ("Notification", Some("ToolPermission")) => asks(event),
        ("SessionEnd", _) => said(Claim::Finished, CLOSED),
        _ => None,
    }
}

/// None of its events tells that a person is asked: those before a command or a tool come whether or not anybody is.
fn cursor(event: &Event) -> Option<Meaning> {
    match (event.name.as_str(), event.about.as_deref()) {
        ("sessionStart", _) => said(Claim::Idle, OPENED),
        ("beforeSubmitPrompt", _) => said(Claim::Working, PROMPTED),
        ("preToolUse" | "beforeMCPExecution", _) => runs(event),
        ("postToolUse" | "afterMCPExecution", _) => has_run(event),
        ("postToolUseFailure", _) => has_failed(event),
        ("beforeShellExecution" | "afterShellExecution", _)
        | ("beforeReadFile" | "afterFileEdit" | "afterAgentThought" | "afterAgentResponse", _) => {
            said(Claim::Working, AT_WORK)
        }
        ("stop", Some("error")) => broken_off(event),
        ("stop", Some("aborted")) => said(Claim::Idle, INTERRUPTED),
        ("stop", _) => said(Claim::Idle, TURN_ENDED),
        ("sessionEnd", _) => said(Claim::Finished, CLOSED),
        _ => None,
    }
}

/// The events of its plugins; the second edition of its interface marks some names.
fn opencode(event: &Event) -> Option<Meaning> {
    match (event.name.replace(".v2.", ".").as_str(), event.about.as_deref()) {
        ("session.created", _) => said(Claim::Idle, OPENED),
        ("session.idle", _) | ("session.status", Some("idle")) => said(Claim::Idle, TURN_ENDED),
        ("session.status", Some("busy")) => said(Claim::Working, AT_WORK),
        ("session.status", Some("retry")) => said(Claim::Working, "tries again"),
        ("session.status", _) => Some(Meaning { claim: Claim::Unknown, detail: None }),
        ("session.error", Some("MessageAbortedError")) => said(Claim::Idle, INTERRUPTED),
        ("session.error", _) => broken_off(event),
        ("permission.asked" | "permission.updated", _) => asks(event),
        ("question.asked", _) => said(Claim::Waiting, "asks a question"),
        ("permission.replied" | "question.replied" | "question.rejected", _) => said(Claim::Working, "was answered"),
        ("tool.execute.before", _) => runs(event),
        ("tool.execute.after", _) => has_run(event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Claim::{Finished, Idle, Unknown, Waiting, Working};

    /// The claim and the detail of `NAME`, `NAME(TOOL)` or `NAME=ABOUT`.
    fn of(kind: &str, text: &str) -> Option<(Claim, String)> {
        let (name, about) = text.split_once('=').map_or((text, None), |(name, about)| (name, Some(about.to_owned())));
        let (name, tool) = name.split_once('(').map_or((name, None), |(name, rest)| (name, rest.strip_suffix(')')));
        let event = Event { name: name.into(), about, tool: tool.map(Into::into), ..Event::default() };
        meaning(kind, &event).map(|meaning| (meaning.claim, meaning.detail.unwrap_or_default()))
    }

    fn check(kind: &str, cases: &[(&str, Claim, &str)]) {
        for (text, claim, detail) in cases {
            assert_eq!(of(kind, text), Some((*claim, (*detail).to_owned())), "{kind} {text}");
        }
    }

    #[test]
    fn events_of_claude() {
        check(
            "claude",
            &[
                ("SessionStart=startup", Idle, "conversation opened"),
                ("UserPromptSubmit", Working, "prompt given"),
                ("PreToolUse(Bash)", Working, "runs Bash"),
                ("PreToolUse", Working, "runs a tool"),
                ("PreToolUse(AskUserQuestion)", Waiting, "asks a question"),
                ("PreToolUse(ExitPlanMode)", Waiting, "asks to approve its plan"),
                ("PermissionRequest(Bash)", Waiting, "permission: Bash"),
                ("PermissionRequest(ExitPlanMode)", Waiting, "asks to approve its plan"),
                ("PermissionRequest", Waiting, "permission"),
                ("PostToolUse(Bash)", Working, "has run Bash"),
                ("PostToolUseFailure(Bash)", Working, "Bash has failed"),
                ("Notification=permission_prompt", Waiting, "permission"),
                ("Notification=elicitation_dialog", Waiting, "asks for input"),
                ("Notification=idle_prompt", Idle, "turn ended"),
                ("Stop", Idle, "turn ended"),
                ("StopFailure", Waiting, "stopped by an error"),
                ("StopFailure=rate_limit", Waiting, "stopped by an error: rate_limit"),
                ("SessionEnd=logout", Finished, "conversation closed"),
            ],
        );
        let silent = ["SubagentStop", "SubagentStart", "PreCompact", "PostCompact", "SessionStart=compact"];
        for silent in silent.iter().chain(&["Notification", "Notification=auth_success", "FileChanged", "stop", ""]) {
            assert_eq!(of("claude", silent), None, "{silent}");
        }
        for (tasks, detail) in [(1, "1 background task"), (2, "2 background tasks")] {
            let stop = Event { name: "Stop".into(), tasks, ..Event::default() };
            assert_eq!(meaning("claude", &stop), said(Working, detail));
        }
    }

    #[test]
    fn events_of_the_others() {
        check(
            "codex",
            &[
                ("agent-turn-complete", Idle, "turn ended"),
                ("PermissionRequest(Bash)", Waiting, "permission: Bash"),
                ("UserPromptSubmit", Working, "prompt given"),
                ("Interrupt", Idle, "interrupted"),
            ],
        );
        check(
            "gemini",
            &[
                ("BeforeAgent", Working, "prompt given"),
                ("BeforeTool(run_shell_command)", Working, "runs run_shell_command"),
                ("Notification=ToolPermission", Waiting, "permission"),
                ("AfterAgent", Idle, "turn ended"),
                ("SessionEnd=exit", Finished, "conversation closed"),
            ],
        );
        check(
            "cursor",
            &[
                ("beforeSubmitPrompt", Working, "prompt given"),
                ("beforeShellExecution", Working, "at work"),
                ("stop=completed", Idle, "turn ended"),
                ("stop=aborted", Idle, "interrupted"),
                ("stop=error", Waiting, "stopped by an error"),
            ],
        );
        check(
            "opencode",
            &[
                ("session.idle", Idle, "turn ended"),
                ("session.status=busy", Working, "at work"),
                ("session.status=frobnicating", Unknown, ""),
                ("permission.asked(bash)", Waiting, "permission: bash"),
                ("permission.v2.asked", Waiting, "permission"),
                ("permission.replied", Working, "was answered"),
                ("session.error=MessageAbortedError", Idle, "interrupted"),
                ("session.error=ProviderAuthError", Waiting, "stopped by an error: ProviderAuthError"),
            ],
        );
        for (kind, event) in [
            ("aider", "Stop"),
            ("gemini", "Notification"),
            ("gemini", "Notification=UpdateAvailable"),
            ("claude", "Notification=auth_success"),
            ("codex", "Notification=auth_success"),
            ("cursor", "Stop"),
            ("opencode", "x.y"),
        ] {
            assert_eq!(of(kind, event), None, "{kind} {event}");
        }
    }

    #[test]
    fn only_some_ends_are_of_the_conversation_alone() {
        let end = |about: &str| Event { name: "SessionEnd".into(), about: Some(about.into()), ..Event::default() };
        assert!(leaves_conversation(&end("clear")) && leaves_conversation(&end("resume")));
        assert!(!leaves_conversation(&end("logout")) && !leaves_conversation(&Event::default()));
    }
}
