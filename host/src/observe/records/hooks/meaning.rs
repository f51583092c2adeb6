//! What each agent's events say of it.
//!
//! An event that is not known says nothing: most that agents add are about files and settings, and not about what the
//! agent does. Only where a known event tells a status in a word that is not known, what the agent does is unknown.

use super::event::Event;
use crate::observe::facts::Claim;

/// The kinds of agents whose events are understood.
pub const KINDS: [&str; 5] = ["claude", "codex", "gemini", "cursor", "opencode"];

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// What the agent does.
    pub claim: Claim,
    /// More about it.
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

fn plain(claim: Claim) -> Option<Meaning> {
    Some(Meaning { claim, detail: None })
}

fn detailed(claim: Claim, detail: impl Into<String>) -> Option<Meaning> {
    Some(Meaning { claim, detail: Some(detail.into()) })
}

/// What an agent waits for that wants to use a tool. Two of Claude's tools are questions themselves.
fn asks(event: &Event) -> Option<Meaning> {
    match event.tool.as_deref() {
        Some("AskUserQuestion") => detailed(Claim::Waiting, "asks a question"),
        Some("ExitPlanMode") => detailed(Claim::Waiting, "asks to approve its plan"),
        Some(tool) => detailed(Claim::Waiting, format!("permission: {tool}")),
        None => detailed(Claim::Waiting, "permission"),
    }
}

fn stopped_by_error(event: &Event) -> Option<Meaning> {
    match &event.about {
        Some(error) => detailed(Claim::Idle, format!("stopped by an error: {error}")),
        None => detailed(Claim::Idle, "stopped by an error"),
    }
}

fn claude(event: &Event) -> Option<Meaning> {
    match (event.name.as_str(), event.about.as_deref()) {
        // In the middle of a turn.
        ("SessionStart", Some("compact")) => None,
        ("SessionStart", _) => plain(Claim::Idle),
        ("PreToolUse", _)
            if ["AskUserQuestion", "ExitPlanMode"].iter().any(|ask| event.tool.as_deref() == Some(ask)) =>
        {
            asks(event)
        }
        ("UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch", _)
        | ("PermissionDenied" | "ElicitationResult", _) => plain(Claim::Working),
        ("PermissionRequest", _) => asks(event),
        ("Elicitation", _) | ("Notification", Some("elicitation_dialog")) => detailed(Claim::Waiting, "asks for input"),
        ("Notification", Some("permission_prompt")) => detailed(Claim::Waiting, "permission"),
        // It waits for a new prompt: its turn is over.
        ("Notification", Some("idle_prompt")) => plain(Claim::Idle),
        ("Stop", _) if event.tasks > 0 => {
            let plural = if event.tasks == 1 { "" } else { "s" };
            detailed(Claim::Working, format!("{} background task{plural}", event.tasks))
        }
        ("Stop", _) => plain(Claim::Idle),
        // The turn has failed, the agent has not: it takes the next prompt.
        ("StopFailure", _) => stopped_by_error(event),
        ("SessionEnd", _) => plain(Claim::Finished),
        _ => None,
    }
}

/// Its hooks are named as Claude's; `notify` has names of its own.
fn codex(event: &Event) -> Option<Meaning> {
    match event.name.as_str() {
        "Interrupt" => detailed(Claim::Idle, "interrupted"),
        "agent-turn-complete" => plain(Claim::Idle),
        "approval-requested" => asks(event),
        _ => claude(event),
    }
}

fn gemini(event: &Event) -> Option<Meaning> {
    match (event.name.as_str(), event.about.as_deref()) {
        ("SessionStart" | "AfterAgent", _) => plain(Claim::Idle),
        ("BeforeAgent" | "BeforeModel" | "AfterModel" | "BeforeTool" | "AfterTool", _) => plain(Claim::Working),
        // Of other notifications it is not known whether anybody waits.
        ("Notification", Some("ToolPermission")) => asks(event),
        ("SessionEnd", _) => plain(Claim::Finished),
        _ => None,
    }
}

fn cursor(event: &Event) -> Option<Meaning> {
    match (event.name.as_str(), event.about.as_deref()) {
        ("sessionStart", _) => plain(Claim::Idle),
        ("beforeSubmitPrompt" | "preToolUse" | "postToolUse" | "postToolUseFailure", _)
        | ("beforeShellExecution" | "afterShellExecution" | "beforeMCPExecution" | "afterMCPExecution", _)
        | ("beforeReadFile" | "afterFileEdit" | "afterAgentThought" | "afterAgentResponse", _) => plain(Claim::Working),
        ("stop", Some("error")) => detailed(Claim::Idle, "stopped by an error"),
        ("stop", Some("aborted")) => detailed(Claim::Idle, "interrupted"),
        ("stop", _) => plain(Claim::Idle),
        ("sessionEnd", _) => plain(Claim::Finished),
        _ => None,
    }
}

/// The events of its plugins; the second edition of its interface marks some names.
fn opencode(event: &Event) -> Option<Meaning> {
    match (event.name.replace(".v2.", ".").as_str(), event.about.as_deref()) {
        ("session.created" | "session.idle", _) | ("session.status", Some("idle")) => plain(Claim::Idle),
        ("session.status", Some("busy")) => plain(Claim::Working),
        ("session.status", Some("retry")) => detailed(Claim::Working, "tries again"),
        ("session.status", _) => plain(Claim::Unknown),
        ("session.error", _) => stopped_by_error(event),
        ("permission.asked" | "permission.updated", _) => asks(event),
        ("question.asked", _) => detailed(Claim::Waiting, "asks a question"),
        ("permission.replied" | "question.replied" | "question.rejected", _)
        | ("tool.execute.before" | "tool.execute.after", _) => plain(Claim::Working),
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
                ("SessionStart=startup", Idle, ""),
                ("UserPromptSubmit", Working, ""),
                ("PreToolUse(Bash)", Working, ""),
                ("PreToolUse(AskUserQuestion)", Waiting, "asks a question"),
                ("PreToolUse(ExitPlanMode)", Waiting, "asks to approve its plan"),
                ("PermissionRequest(Bash)", Waiting, "permission: Bash"),
                ("PermissionRequest(ExitPlanMode)", Waiting, "asks to approve its plan"),
                ("PermissionRequest", Waiting, "permission"),
                ("PostToolUse(Bash)", Working, ""),
                ("PostToolUseFailure(Bash)", Working, ""),
                ("Notification=permission_prompt", Waiting, "permission"),
                ("Notification=elicitation_dialog", Waiting, "asks for input"),
                ("Notification=idle_prompt", Idle, ""),
                ("Stop", Idle, ""),
                ("StopFailure=rate_limit", Idle, "stopped by an error: rate_limit"),
                ("SessionEnd=logout", Finished, ""),
            ],
        );
        let silent = ["SubagentStop", "SubagentStart", "PreCompact", "PostCompact", "SessionStart=compact"];
        for silent in silent.iter().chain(&["Notification", "Notification=auth_success", "FileChanged", "stop", ""]) {
            assert_eq!(of("claude", silent), None, "{silent}");
        }
        for (tasks, detail) in [(1, "1 background task"), (2, "2 background tasks")] {
            let stop = Event { name: "Stop".into(), tasks, ..Event::default() };
            assert_eq!(meaning("claude", &stop), detailed(Working, detail));
        }
    }

    #[test]
    fn events_of_the_others() {
        check(
            "codex",
            &[
                ("agent-turn-complete", Idle, ""),
                ("PermissionRequest(Bash)", Waiting, "permission: Bash"),
                ("UserPromptSubmit", Working, ""),
                ("Interrupt", Idle, "interrupted"),
            ],
        );
        check(
            "gemini",
            &[
                ("BeforeAgent", Working, ""),
                ("BeforeTool(run_shell_command)", Working, ""),
                ("Notification=ToolPermission", Waiting, "permission"),
                ("AfterAgent", Idle, ""),
                ("SessionEnd=exit", Finished, ""),
            ],
        );
        check(
            "cursor",
            &[
                ("beforeSubmitPrompt", Working, ""),
                ("stop=completed", Idle, ""),
                ("stop=aborted", Idle, "interrupted"),
                ("stop=error", Idle, "stopped by an error"),
            ],
        );
        check(
            "opencode",
            &[
                ("session.idle", Idle, ""),
                ("session.status=busy", Working, ""),
                ("session.status=frobnicating", Unknown, ""),
                ("permission.asked(bash)", Waiting, "permission: bash"),
                ("permission.v2.asked", Waiting, "permission"),
                ("permission.replied", Working, ""),
                ("session.error=ProviderAuthError", Idle, "stopped by an error: ProviderAuthError"),
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
