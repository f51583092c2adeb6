//! What is kept of a conversation's events: the last that said anything, since when it is so, what is open, and whose it was.

use super::event::Event;
use super::meaning::{self, Meaning, meaning};
use super::open::Open;
use crate::observe::facts::Claim;
use crate::observe::processes::{Lineage, Machine, ProcessId};
use crate::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The folder of the notes, below the state directory.
pub const FOLDER: &str = "hooks";

/// The largest note that is read, bytes.
pub const LARGEST: u64 = 64 << 10;

/// An event that is as far ahead as this shows that the clock was turned back since, milliseconds.
const AHEAD: u64 = 60_000;

/// One conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What kind of agent sends the events.
    pub kind: String,
    /// Where and when the processes below are what they are.
    pub machine: Machine,
    /// The conversation's id: by it records are found that name no process.
    #[serde(default)]
    pub conversation: Option<String>,
    /// The processes that the sender of the last event descends from, the nearest first: one of them is the agent.
    pub ancestors: Vec<ProcessId>,
    /// The nearest of them that does not merely run the command.
    pub sender: Option<ProcessId>,
    /// The first event that said what the last one says, if none between them said anything else.
    pub first: Said,
    /// The last event that said anything; while questions are open, the newest of them, and `first` is the oldest.
    pub last: Said,
    /// What is open.
    #[serde(default)]
    pub open: Open,
}

/// An event, and when it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The event.
    pub event: Event,
    /// Unix milliseconds.
    pub at_ms: u64,
}

/// What an event makes of a note.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: it says nothing new.
    Keep,
    /// The conversation is over, the agent has another one.
    Forget,
    /// This is the note now.
    Write(Box<Note>),
}

/// What `event` makes of what was noted `before`.
pub fn change(before: Option<&Note>, kind: &str, event: Event, at_ms: u64, from: Lineage) -> Change {
    if meaning::leaves_conversation(&event) {
        return Change::Forget;
    }
    let Some(now) = meaning(kind, &event) else { return Change::Keep };
    let conversation = event.conversation.clone();
    let said = Said { event, at_ms };
    // Nobody else's: neither another machine's nor, by chance, another kind's.
    let before = before.filter(|before| before.machine == from.machine && before.kind == kind);
    let then = before.and_then(|before| Some((before, meaning(kind, &before.last.event)?)));
    // Questions that are asked at once may come in any order.
    let asks_beside = now.claim == Claim::Waiting && then.as_ref().is_some_and(|(_, then)| then.claim == now.claim);
    if let Some((before, _)) = &then
        && before.last.at_ms > at_ms
        && before.last.at_ms - at_ms < AHEAD
        && !asks_beside
    {
        return Change::Keep;
    }
    let mut open = before.map(|before| before.open.clone()).unwrap_or_default();
    open.take(&said, &now);
    let (first, last) = match (&open.questions[..], &then) {
        ([first, .., last], _) => (first.clone(), last.clone()),
        ([only], _) => (only.clone(), only.clone()),
        ([], Some((before, then))) if says_less(&said.event, &now, &before.last.event, then) => {
            (before.first.clone(), before.last.clone())
        }
        ([], Some((before, then))) if then.claim == now.claim && !meaning::breaks_off(&said.event) => {
            (before.first.clone(), said)
        }
        ([], _) => (said.clone(), said),
    };
    let sender = sender(&from);
    let ancestors = from.ancestors.into_iter().map(|ancestor| ancestor.id).collect();
    let (kind, machine) = (kind.to_owned(), from.machine);
    let note = Note { kind, machine, conversation, ancestors, sender, first, last, open };
    let says_nothing_new = before.is_some_and(|before| (&before.last, &before.open) == (&note.last, &note.open));
    if says_nothing_new { Change::Keep } else { Change::Write(Box::new(note)) }
}

/// Whether an event leaves what was known before as it is, where nothing is asked.
fn says_less(event: &Event, now: &Meaning, before: &Event, then: &Meaning) -> bool {
    match (then.claim, now.claim) {
        // A subagent in the background begins no turn.
        (Claim::Idle | Claim::Finished, Claim::Working) => event.subagent.is_some(),
        // Its own turn is over, but what it started goes on.
        (Claim::Working, Claim::Idle) => before.tasks > 0 && event.about.as_deref() == Some("idle_prompt"),
        // That the turn is over is known already, and why.
        (Claim::Waiting, Claim::Idle) => meaning::breaks_off(before) && meaning::is_afterwards(event),
        _ => false,
    }
}

/// The name of a conversation's file. Two processes may have the same conversation, each has a file of its own then. The
/// name says who the sender is, so that files of those that are gone need not be read.
pub fn file_name(kind: &str, event: &Event, from: &Lineage) -> String {
    let what = match &event.conversation {
        Some(id) => format!("{kind}\0{id}"),
        None => kind.to_owned(),
    };
    let sender = sender(from).map_or_else(String::new, |id| format!("{}-{}-", id.pid, id.start));
    format!("{}-{sender}{}.json", digest(&machine_name(&from.machine), 4), digest(&what, 16))
}

/// The sender that a file's name tells, if it is on this machine.
pub fn sender_in(file_name: &str, machine: &Machine) -> Option<ProcessId> {
    let mut parts = file_name.strip_suffix(".json")?.split('-');
    let is_here = parts.next()? == digest(&machine_name(machine), 4);
    let id = ProcessId { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
    (is_here && parts.next().is_some()).then_some(id)
}

fn machine_name(machine: &Machine) -> String {
    format!("{}\0{}", machine.boot_id, machine.pid_namespace)
}

/// So many bytes of a text's digest.
fn digest(text: &str, bytes: usize) -> String {
    hex(&Sha256::digest(text)[..bytes])
}

/// The nearest ancestor that is no shell and no script of a person's: agents run their hooks by those, and they live no longer
/// than the hook.
fn sender(from: &Lineage) -> Option<ProcessId> {
    from.ancestors.iter().find(|ancestor| !only_runs(&ancestor.comm)).map(|ancestor| ancestor.id)
}

/// Whether a program of this name does nothing but run others, or interprets a language that no agent with hooks is written in.
/// Of a script for Node it cannot be said: it might be an agent.
fn only_runs(comm: &str) -> bool {
    let runs_others =
        ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "timeout", "time", "sudo", "flock", "env", "nice"];
    let interprets = ["python", "ruby", "perl", "php", "lua", "awk", "gawk", "mawk"];
    let is_version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    runs_others.contains(&comm) || interprets.iter().any(|name| comm.strip_prefix(name).is_some_and(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::processes::Ancestor;

    fn from(agent: u32) -> Lineage {
        let ancestor = |pid, comm: &str| Ancestor { id: ProcessId { pid, start: 7 }, comm: comm.to_owned() };
        Lineage {
            machine: Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() },
            ancestors: vec![ancestor(agent + 1, "sh"), ancestor(agent, "claude"), ancestor(1, "init")],
        }
    }

    #[test]
    fn who_sends_is_no_script_around_the_command() {
        let ancestor = |pid, comm: &str| Ancestor { id: ProcessId { pid, start: 7 }, comm: comm.to_owned() };
        for around in ["sh", "python3.12", "python", "ruby3.2", "perl"] {
            let mut from = from(42);
            from.ancestors.insert(0, ancestor(99, around));
            assert_eq!(sender(&from).map(|id| id.pid), Some(42), "{around}");
        }
        for agent in ["node", "2.1.236", "pythonic", "MainThread"] {
            let mut from = from(42);
            from.ancestors.insert(0, ancestor(99, agent));
            assert_eq!(sender(&from).map(|id| id.pid), Some(99), "{agent}");
        }
    }

    /// The event `NAME`, `NAME(TOOL)`, `NAME=ABOUT`, each perhaps with `@SUBAGENT`.
    fn event(text: &str) -> Event {
        let (text, subagent) =
            text.split_once('@').map_or((text, None), |(text, agent)| (text, Some(agent.to_owned())));
        let (name, about) = text.split_once('=').map_or((text, None), |(name, about)| (name, Some(about.to_owned())));
        let (name, tool) = name.split_once('(').map_or((name, None), |(name, rest)| (name, rest.strip_suffix(')')));
        Event { name: name.into(), about, tool: tool.map(Into::into), subagent, ..Event::default() }
    }

    /// What is noted after these events, a second apart: `NAME since SECOND`.
    fn after(events: &[&str]) -> String {
        after_of("claude", events)
    }

    fn after_of(kind: &str, events: &[&str]) -> String {
        let mut note = None;
        for (second, text) in events.iter().enumerate() {
            match change(note.as_ref(), kind, event(text), second as u64 * 1000, from(42)) {
                Change::Keep => {}
                Change::Forget => note = None,
                Change::Write(new) => note = Some(*new),
            }
        }
        note.map_or("nothing".to_owned(), |note| format!("{} since {}", note.last.event.name, note.first.at_ms / 1000))
    }

    #[test]
    fn a_state_lasts_since_the_first_event_that_told_it() {
        assert_eq!(after(&["UserPromptSubmit", "PreToolUse(Bash)", "PostToolUse(Bash)"]), "PostToolUse since 0");
        let asked = ["UserPromptSubmit", "PreToolUse(Bash)", "PermissionRequest(Bash)"];
        assert_eq!(after(&asked), "PermissionRequest since 2");
        assert_eq!(after(&[&asked[..], &["PostToolUse(Bash)"]].concat()), "PostToolUse since 3");
        assert_eq!(after(&[&asked[..], &["Stop", "Notification=idle_prompt"]].concat()), "Notification since 3");
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        assert_eq!(after(&["SubagentStop", "PreCompact", "Whatever"]), "nothing");
        assert_eq!(after(&["UserPromptSubmit", "PreCompact", "SessionStart=compact"]), "UserPromptSubmit since 0");
    }

    #[test]
    fn a_conversation_that_is_left_is_forgotten_and_one_that_ends_is_not() {
        assert_eq!(after(&["Stop", "SessionEnd=clear"]), "nothing");
        assert_eq!(after(&["Stop", "SessionEnd=logout"]), "SessionEnd since 1");
    }

    #[test]
    fn a_prompt_hides_behind_nothing_that_goes_on_beside_it() {
        let asked = ["UserPromptSubmit", "PermissionRequest(Bash)"];
        for beside in [
            "Notification=permission_prompt",
            "PreToolUse(Read)",
            "PostToolUse(Read)",
            "PreToolUse(Bash)@sub",
            "PostToolUse(Bash)@sub",
        ] {
            assert_eq!(after(&[&asked[..], &[beside]].concat()), "PermissionRequest since 1", "{beside}");
        }
        for answer in ["PostToolUse(Bash)", "PostToolUseFailure(Bash)", "UserPromptSubmit", "Stop"] {
            let name = event(answer).name;
            assert_eq!(after(&[&asked[..], &[answer]].concat()), format!("{name} since 2"));
        }
        let asked = ["session.status=busy", "permission.asked(bash)", "tool.execute.before(read)"];
        assert_eq!(after_of("opencode", &asked), "permission.asked since 1");
        let answered = [&asked[..], &["permission.replied"]].concat();
        assert_eq!(after_of("opencode", &answered), "permission.replied since 3");
        let of_a_subagent = ["PermissionRequest(Bash)@sub", "PostToolUse(Bash)@sub"];
        assert_eq!(after(&of_a_subagent), "PostToolUse since 1");
        let begun = ["PermissionRequest(Bash)", "UserPromptSubmit@sub"];
        assert_eq!(after(&begun), "PermissionRequest since 0");
    }

    #[test]
    fn that_an_error_has_stopped_it_stands_until_somebody_prompts_it_again() {
        let broken = ["UserPromptSubmit", "PermissionRequest(Bash)", "StopFailure=rate_limit"];
        assert_eq!(after(&broken), "StopFailure since 2", "and what it has asked is asked no more");
        assert_eq!(after(&[&broken[..], &["Notification=idle_prompt"]].concat()), "StopFailure since 2");
        assert_eq!(after(&[&broken[..], &["UserPromptSubmit"]].concat()), "UserPromptSubmit since 3");
        assert_eq!(after(&[&broken[..], &["PermissionRequest(Edit)"]].concat()), "PermissionRequest since 3");
        let broken = ["session.status=busy", "session.error=APIError"];
        for over in ["session.idle", "session.status=idle"] {
            assert_eq!(after_of("opencode", &[&broken[..], &[over]].concat()), "session.error since 1", "{over}");
        }
        let aborted = ["session.status=busy", "session.error=MessageAbortedError", "session.idle"];
        assert_eq!(after_of("opencode", &aborted), "session.idle since 1");
        assert_eq!(after(&["UserPromptSubmit", "StopFailure=rate_limit@sub"]), "UserPromptSubmit since 0");
    }

    #[test]
    fn background_work_neither_begins_a_turn_nor_ends_one() {
        assert_eq!(after(&["Stop", "PostToolUse(Bash)@sub"]), "Stop since 0");
        let mut stop = event("Stop");
        stop.tasks = 2;
        let Change::Write(note) = change(None, "claude", stop, 0, from(42)) else { panic!("is noted") };
        let later = change(Some(&note), "claude", event("Notification=idle_prompt"), 60_000, from(42));
        assert_eq!(later, Change::Keep);
        assert!(matches!(change(Some(&note), "claude", event("Stop"), 1, from(42)), Change::Write(_)));
    }

    #[test]
    fn an_event_that_comes_late_is_passed_over_unless_the_clock_was_turned() {
        let Change::Write(note) = change(None, "claude", event("Stop"), 100_000, from(42)) else { panic!("is noted") };
        let at = |ms| change(Some(&note), "claude", event("PreToolUse(Bash)"), ms, from(42));
        assert_eq!(at(99_999), Change::Keep);
        assert!(matches!(at(100_000), Change::Write(_)));
        assert!(matches!(at(40_000), Change::Write(_)), "a minute back is no order of events");
    }

    #[test]
    fn a_note_tells_whose_conversation_it_is() {
        let asked = Event { conversation: Some("ses_1".to_owned()), ..event("session.idle") };
        let Change::Write(note) = change(None, "opencode", asked, 0, from(42)) else { panic!("is noted") };
        let kept: Note = serde_json::from_slice(&serde_json::to_vec(&note).unwrap()).unwrap();
        assert_eq!(kept.conversation.as_deref(), Some("ses_1"));
    }

    #[test]
    fn the_agent_and_not_its_shell_is_the_sender() {
        let Change::Write(note) = change(None, "claude", event("Stop"), 0, from(42)) else { panic!("is noted") };
        assert_eq!(note.sender, Some(ProcessId { pid: 42, start: 7 }));
        assert_eq!(note.ancestors.iter().map(|id| id.pid).collect::<Vec<_>>(), [43, 42, 1]);
    }

    #[test]
    fn each_conversation_has_a_file_of_its_own() {
        let with_id = |id: &str| Event { conversation: Some(id.to_owned()), ..event("Stop") };
        let names = [
            file_name("claude", &with_id("a"), &from(42)),
            file_name("claude", &with_id("b"), &from(42)),
            file_name("codex", &with_id("a"), &from(42)),
            file_name("claude", &event("Stop"), &from(42)),
            file_name("claude", &event("Stop"), &from(52)),
            file_name("claude", &with_id("a"), &from(52)),
        ];
        let different: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        let machine = from(42).machine;
        let senders = names.each_ref().map(|name| sender_in(name, &machine).unwrap().pid);
        assert_eq!(senders, [42, 42, 42, 42, 52, 52], "{names:?}");
        let other = Machine { boot_id: "another".to_owned(), ..machine.clone() };
        assert_eq!(sender_in(&names[0], &other), None);
        for hostile in ["", ".json", "x.json", "a-b-c-d.json", "0123-1-2.json"] {
            assert_eq!(sender_in(hostile, &machine), None, "{hostile:?}");
        }
    }
}
