//! Hooks in the settings of an agent: where they stand, and how they are put in and taken out.

use super::InstallError;
use super::json::{Inside, Place, append, remove};
use serde_json::{Value, json};

/// How an agent's settings name a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`.
    Groups {
        /// How long the agent waits for a hook, in the agent's own unit.
        timeout: u32,
    },
    /// `{"hooks": {EVENT: [{"command": …}]}}`.
    Commands,
}

impl Shape {
    fn entry(self, command: &str) -> Value {
        match self {
            Self::Groups { timeout } => {
                json!({ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] })
            }
            Self::Commands => json!({ "command": command }),
        }
    }
}

/// `text` with the command at each of the events; the same where it is there already. What an earlier install has put in
/// for another path of headcount goes.
///
/// # Errors
/// It is no JSON, or something else stands where hooks should.
pub fn with_hooks(
    text: &str,
    kind: &str,
    shape: Shape,
    events: &[&str],
    command: &str,
) -> Result<String, InstallError> {
    if events.iter().all(|event| has(text, event, command)) {
        return Ok(text.to_owned());
    }
    let mut text = without_hooks(text, kind)?;
    for event in events {
        let root = Place::of(&text)?;
        if !matches!(root.inside, Inside::Object(_)) {
            return Err(InstallError::NoObject);
        }
        let Some(hooks) = root.member("hooks") else {
            text = append(&text, &root, Some("hooks"), &json!({ *event: [shape.entry(command)] }));
            continue;
        };
        text = match (hooks.member(event), &hooks.inside) {
            (Some(list), _) if list.items().is_some() => append(&text, list, None, &shape.entry(command)),
            (None, Inside::Object(_)) => append(&text, hooks, Some(event), &json!([shape.entry(command)])),
            _ => return Err(InstallError::NoHooks((*event).to_owned())),
        };
    }
    Ok(text)
}

/// Whether the command is at an event.
fn has(text: &str, event: &str, command: &str) -> bool {
    let Ok(settings) = serde_json::from_str::<Value>(text) else { return false };
    let commands = |entry: &Value| {
        let own = entry["command"].as_str() == Some(command);
        own || (entry["hooks"].as_array().into_iter().flatten()).any(|hook| hook["command"].as_str() == Some(command))
    };
    settings["hooks"][event].as_array().is_some_and(|entries| entries.iter().any(commands))
}

/// `text` without headcount's commands, and without the lists and tables that only they were in.
///
/// # Errors
/// It is no JSON.
pub fn without_hooks(text: &str, kind: &str) -> Result<String, InstallError> {
    let mut text = text.to_owned();
    loop {
        let root = Place::of(&text)?;
        let Some(next) = without_first(&text, &root, kind) else { return Ok(text) };
        text = next;
    }
}

/// `text` without the first of the commands; `None`: there is none.
fn without_first(text: &str, root: &Place, kind: &str) -> Option<String> {
    let is_ours = |place: &Place| {
        let command = place.member("command").and_then(|command| text.get(command.at.clone()));
        command.and_then(|json| serde_json::from_str::<String>(json).ok()).is_some_and(|text| runs_us(&text, kind))
    };
    let (in_root, hooks) = member(root, "hooks")?;
    let Inside::Object(events) = &hooks.inside else { return None };
    for (in_hooks, (_, _, list)) in events.iter().enumerate() {
        for (in_list, entry) in list.items().unwrap_or_default().iter().enumerate() {
            let group = entry.member("hooks").and_then(|group| Some((group, group.items()?)));
            let inner = group.and_then(|(group, items)| Some((group, items.len(), items.iter().position(is_ours)?)));
            return Some(match inner {
                // Somebody has put another command beside it.
                Some((group, 2.., index)) => remove(text, group, index),
                None if !is_ours(entry) => continue,
                _ if list.items().is_some_and(|items| items.len() > 1) => remove(text, list, in_list),
                _ if events.len() > 1 => remove(text, hooks, in_hooks),
                _ => remove(text, root, in_root),
            });
        }
    }
    None
}

/// A member and its number.
fn member<'p>(of: &'p Place, key: &str) -> Option<(usize, &'p Place)> {
    let Inside::Object(members) = &of.inside else { return None };
    let index = members.iter().rposition(|(_, name, _)| name == key)?;
    members.get(index).map(|(_, _, place)| (index, place))
}

/// Whether a command is one that install has written, wherever headcount was then.
fn runs_us(command: &str, kind: &str) -> bool {
    let program = command.strip_suffix(&format!(" hook {kind}")).map(|program| program.trim_end_matches('\''));
    program.is_some_and(|program| {
        program.rsplit(['/', '\\']).next().is_some_and(|name| ["headcount", "headcount.exe"].contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: Shape = Shape::Groups { timeout: 5 };
    const COMMAND: &str = "/opt/headcount hook claude";

    fn put(text: &str) -> String {
        with_hooks(text, "claude", GROUPS, &["Stop", "PreToolUse"], COMMAND).unwrap()
    }

    #[test]
    fn hooks_are_put_in_once_and_taken_out_without_a_trace() {
        for text in [
            "{}\n",
            "{\n  \"model\": \"opus\",\n  \"env\": {\"A\": \"1\"}\n}\n",
            "{\"model\":\"opus\"}",
            "{\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n\t\t]\n\t}\n}",
            "{\"hooks\": {\"Notification\": [{\"hooks\": [{\"command\": \"other hook claude\"}]}]}, \"z\": 1.50}\n",
        ] {
            let with = put(text);
            let settings: Value = serde_json::from_str(&with).unwrap();
            for event in ["Stop", "PreToolUse"] {
                let entries = settings["hooks"][event].as_array().unwrap();
                let ours = json!({"hooks": [{"type": "command", "command": COMMAND, "timeout": 5}]});
                assert_eq!(entries.last(), Some(&ours), "{with}");
            }
            assert_eq!(put(&with), with, "twice is once");
            assert_eq!(without_hooks(&with, "claude").unwrap(), text);
            assert_eq!(without_hooks(&with, "codex").unwrap(), with, "another kind's stay");
        }
    }

    #[test]
    fn a_headcount_that_was_moved_takes_its_own_place() {
        let before = with_hooks("{}", "claude", GROUPS, &["Stop"], "'/old place/headcount' hook claude").unwrap();
        let after = put(&before);
        assert_eq!(after, put("{}"));
    }

    #[test]
    fn a_command_that_was_put_beside_ours_stays() {
        let text = r#"{"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "/x/headcount hook claude"}]}]}}"#;
        assert_eq!(without_hooks(text, "claude").unwrap(), r#"{"hooks": {"Stop": [{"hooks": [{"command": "a"}]}]}}"#);
    }

    #[test]
    fn what_is_nothing_of_the_kind_is_refused() {
        let refused = |text: &str| with_hooks(text, "claude", GROUPS, &["Stop"], COMMAND).unwrap_err().to_string();
        assert!(refused("{ // why\n}").contains("no JSON"), "{}", refused("{ // why\n}"));
        assert!(refused("[]").contains("no JSON object"));
        for text in [r#"{"hooks": []}"#, r#"{"hooks": {"Stop": {}}}"#, r#"{"hooks": {"Stop": "x"}}"#] {
            assert!(refused(text).contains("hooks"), "{text}: {}", refused(text));
            assert_eq!(without_hooks(text, "claude").unwrap(), text);
        }
    }

    #[test]
    fn only_our_own_commands_are_ours() {
        for ours in [
            "headcount hook claude",
            "/a/headcount hook claude",
            "'/a b/headcount' hook claude",
            "C:\\headcount.exe hook claude",
        ] {
            assert!(runs_us(ours, "claude"), "{ours}");
        }
        for other in
            ["headcount hook codex", "myheadcount hook claude", "headcount hook claude; rm -rf /", "echo hook claude"]
        {
            assert!(!runs_us(other, "claude"), "{other}");
        }
    }
}
