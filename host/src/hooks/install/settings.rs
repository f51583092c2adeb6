//! Hooks in the settings of an agent: where they stand, and how they are put in and taken out.

use super::json::{Inside, Place, append, remove};
use super::{InstallError, command};
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

/// What marks a list or table that was there and empty: a blank after its bracket. Only those that are not marked go with
/// the last that is in them.
const WAS_EMPTY: &str = " ";

/// `text` with the command at each of the events; the same where it is there already, also with what a person has put
/// before or after it. What an earlier install has put in for another path of headcount goes.
///
/// # Errors
/// It is no JSON, or something else stands where hooks should.
pub fn with_hooks(
    text: &str,
    kind: &str,
    shape: Shape,
    events: &[&str],
    program: &str,
) -> Result<String, InstallError> {
    let mut text =
        without(text, |command| command::is_ours(command, kind) && !command::runs_program(command, kind, program))?;
    let command = command::of(program, kind);
    for event in events {
        let root = Place::of(&text)?;
        if !matches!(root.inside, Inside::Object(_)) {
            return Err(InstallError::NoObject);
        }
        if has(&text, event, kind, program) {
            continue;
        }
        let Some(hooks) = root.member("hooks") else {
            text = append(&text, &root, Some("hooks"), &json!({ *event: [shape.entry(&command)] }));
            continue;
        };
        let (to, with) = match (hooks.member(event), &hooks.inside) {
            (Some(list), _) if list.items().is_some() => (list, append(&text, list, None, &shape.entry(&command))),
            (None, Inside::Object(_)) => (hooks, append(&text, hooks, Some(event), &json!([shape.entry(&command)]))),
            _ => return Err(InstallError::NoHooks((*event).to_owned())),
        };
        text = with;
        if to.is_empty() {
            text.insert_str(to.at.start + 1, WAS_EMPTY);
        }
    }
    Ok(text)
}

/// Whether this program is run at an event.
pub fn has(text: &str, event: &str, kind: &str, program: &str) -> bool {
    let Ok(settings) = serde_json::from_str::<Value>(text) else { return false };
    let is_ours = |hook: &Value| hook["command"].as_str().is_some_and(|text| command::runs(text, kind, program));
    let has = |entry: &Value| is_ours(entry) || entry["hooks"].as_array().into_iter().flatten().any(is_ours);
    settings["hooks"][event].as_array().is_some_and(|entries| entries.iter().any(has))
}

/// `text` without headcount's commands, and without the lists and tables that only they were in.
///
/// # Errors
/// It is no JSON.
pub fn without_hooks(text: &str, kind: &str) -> Result<String, InstallError> {
    without(text, |command| command::is_ours(command, kind))
}

fn without(text: &str, is_it: impl Fn(&str) -> bool) -> Result<String, InstallError> {
    let mut text = text.to_owned();
    if let Some(key) = Place::of(&text)?.repeated() {
        return Err(InstallError::Twice(key.to_owned()));
    }
    loop {
        let root = Place::of(&text)?;
        let Some(next) = without_first(&text, &root, &is_it) else { return Ok(text) };
        text = next;
    }
}

/// `text` without the first of the commands; `None`: there is none.
fn without_first(text: &str, root: &Place, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let is_it = |place: &Place| {
        let command = place.member("command").and_then(|command| text.get(command.at.clone()));
        command.and_then(|json| serde_json::from_str::<String>(json).ok()).is_some_and(|text| is_it(&text))
    };
    let stays = |place: &Place| text[place.at.start + 1..].starts_with(WAS_EMPTY);
    let (in_root, hooks) = member(root, "hooks")?;
    let Inside::Object(events) = &hooks.inside else { return None };
    for (in_hooks, (_, _, list)) in events.iter().enumerate() {
        for (in_list, entry) in list.items().unwrap_or_default().iter().enumerate() {
            let group = entry.member("hooks").and_then(|group| Some((group, group.items()?)));
            let inner = group.and_then(|(group, items)| Some((group, items.len(), items.iter().position(&is_it)?)));
            return Some(match inner {
                // Somebody has put another command beside it.
                Some((group, 2.., index)) => remove(text, group, index),
                None if !is_it(entry) => continue,
                _ if list.items().is_some_and(|items| items.len() > 1) || stays(list) => remove(text, list, in_list),
                _ if events.len() > 1 || stays(hooks) => remove(text, hooks, in_hooks),
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

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: Shape = Shape::Groups { timeout: 5 };
    const PROGRAM: &str = "/opt/headcount";
    const COMMAND: &str = "/opt/headcount hook claude";

    fn put(text: &str) -> String {
        with_hooks(text, "claude", GROUPS, &["Stop", "PreToolUse"], PROGRAM).unwrap()
    }

    #[test]
    fn hooks_are_put_in_once_and_taken_out_without_a_trace() {
        for text in [
            "{}\n",
            "{\n  \"model\": \"opus\",\n  \"env\": {\"A\": \"1\"}\n}\n",
            "{\"model\":\"opus\"}",
            "{\"hooks\": {}}\n",
            "{\n  \"hooks\": {\n  }\n}\n",
            "{\"hooks\": {\"Stop\": []}}\n",
            "{\n  \"hooks\": { \"Stop\": [ ], \"Other\": [] }\n}\n",
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
        let before = with_hooks("{}", "claude", GROUPS, &["Stop"], "/old place/headcount").unwrap();
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
        let refused = |text: &str| with_hooks(text, "claude", GROUPS, &["Stop"], PROGRAM).unwrap_err().to_string();
        assert!(refused("{ // why\n}").contains("no JSON"), "{}", refused("{ // why\n}"));
        assert!(refused("[]").contains("no JSON object"));
        for text in [r#"{"hooks": []}"#, r#"{"hooks": {"Stop": {}}}"#, r#"{"hooks": {"Stop": "x"}}"#] {
            assert!(refused(text).contains("hooks"), "{text}: {}", refused(text));
            assert_eq!(without_hooks(text, "claude").unwrap(), text);
        }
    }

    #[test]
    fn what_a_person_has_changed_in_our_entry_is_ours_and_not_doubled() {
        let installed = put("{\n  \"a\": 1\n}\n");
        for (from, to) in [
            ("hook claude", "hook claude 2>/dev/null"),
            ("hook claude", "hook claude "),
            ("/opt", "FOO=1 /opt"),
            ("\"timeout\": 5", "\"timeout\": 60, \"async\": true"),
        ] {
            let edited = installed.replace(from, to);
            assert_ne!(edited, installed);
            assert_eq!(put(&edited), edited, "it is installed");
            assert_eq!(without_hooks(&edited, "claude").unwrap(), "{\n  \"a\": 1\n}\n", "{to}");
        }
        let chained = installed.replace("hook claude", "hook claude; say done");
        assert_eq!((put(&chained), without_hooks(&chained, "claude").unwrap()), (chained.clone(), chained));
    }

    #[test]
    fn a_program_of_another_name_is_installed_once_too() {
        let put = |text: &str| with_hooks(text, "claude", GROUPS, &["Stop"], "/opt/hc").unwrap();
        assert_eq!(put(&put("{}")), put("{}"));
        // Whoever takes it out has another name, or none of it knows where it was.
        assert_eq!(without_hooks(&put("{}\n"), "claude").unwrap(), "{}\n");
        assert_eq!(super::tests::put(&put("{}")).matches("hook claude").count(), 2, "only one of both is run");
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        for text in [
            "{\"hooks\": {}, \"hooks\": {}}",
            "{\"hooks\": {\"Stop\": [], \"\\u0053top\": []}}",
            "{\"a\": [{\"b\": 1, \"b\": 1}]}",
        ] {
            for done in [with_hooks(text, "claude", GROUPS, &["Stop"], PROGRAM), without_hooks(text, "claude")] {
                let why = done.unwrap_err().to_string();
                assert!(why.contains("stands twice in it"), "{why}");
            }
        }
    }
}
