//! The agents that can be told: in which file, and how.

use super::InstallError;
use super::settings::{Shape, has, with_hooks, without_hooks};
use crate::config::Environment;
use std::path::{Path, PathBuf};

/// The plugin for OpenCode; `{{program}}` is this program's path as a string of JavaScript.
const PLUGIN: &str = include_str!("opencode.js");

/// How the first line of the plugin begins, also of other versions.
const MARK: &str = "// Tells headcount what OpenCode does.";

/// How a file ends that install has made: with a blank for the file and one for each folder that was made for it, which nobody
/// else writes there.
fn made(folders: usize) -> String {
    format!("{}\n", " ".repeat(folders + 1))
}

/// How many folders were made for a file, if install has made it.
fn folders_made(text: &str) -> Option<usize> {
    let line = text.strip_suffix('\n')?;
    (line.len() - line.trim_end_matches(' ').len()).checked_sub(1)
}

/// How an agent is told.
pub enum Way {
    /// By its settings.
    Settings {
        /// Their file.
        file: PathBuf,
        /// How they name a command.
        shape: Shape,
        /// At what the command is run.
        events: &'static [&'static str],
        /// What a new file begins with.
        empty: &'static str,
    },
    /// By a plugin, a file of its own.
    Plugin {
        /// That file.
        file: PathBuf,
    },
}

const CLAUDE: [&str; 10] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

const CODEX: [&str; 6] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop"];

const GEMINI: [&str; 7] =
    ["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "Notification", "AfterAgent", "SessionEnd"];

/// Of those that ask whether something may be done only the one that each turn begins with: an answer is expected of them, and they
/// come whether or not a person is asked. No event of Cursor's tells of that.
const CURSOR: [&str; 6] =
    ["sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "stop", "sessionEnd"];

/// Seconds that Claude and Codex wait for a hook.
const SECONDS: Shape = Shape::Groups { timeout: 5 };

/// Milliseconds that Gemini does.
const MILLISECONDS: Shape = Shape::Groups { timeout: 5000 };

impl Way {
    /// `project`: for the project in the working directory, not for all of the user's.
    ///
    /// # Errors
    /// There is none for this kind, or no home directory is known.
    pub fn of(kind: &str, project: bool, environment: &Environment) -> Result<Self, InstallError> {
        let home = || environment.home().ok_or(InstallError::Home);
        let named = |variable: &str| environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        // In the project, or below the folder that a variable names, or else below the home directory.
        let file =
            |in_project: &str, variable: &str, own_folder: &str, in_folder: &str| -> Result<PathBuf, InstallError> {
                Ok(match named(variable) {
                    _ if project => PathBuf::from(in_project),
                    Some(folder) => folder.join(in_folder),
                    None => home()?.join(own_folder).join(in_folder),
                })
            };
        let settings = |file, shape, events| Ok(Self::Settings { file, shape, events, empty: "{}" });
        match kind {
            // The path of this program is of this machine: the project's settings that are not shared.
            "claude" => {
                let file = file(".claude/settings.local.json", "CLAUDE_CONFIG_DIR", ".claude", "settings.json")?;
                settings(file, SECONDS, &CLAUDE)
            }
            "codex" => settings(file(".codex/hooks.json", "CODEX_HOME", ".codex", "hooks.json")?, SECONDS, &CODEX),
            "gemini" => settings(file(".gemini/settings.json", "", ".gemini", "settings.json")?, MILLISECONDS, &GEMINI),
            "cursor" => {
                let file = file(".cursor/hooks.json", "", ".cursor", "hooks.json")?;
                Ok(Self::Settings { file, shape: Shape::Commands, events: &CURSOR, empty: "{\n  \"version\": 1\n}" })
            }
            "opencode" => {
                let own = "opencode/plugins/headcount.js";
                Ok(Self::Plugin { file: file(".opencode/plugins/headcount.js", "XDG_CONFIG_HOME", ".config", own)? })
            }
            other => Err(InstallError::Kind(other.to_owned())),
        }
    }

    /// The file; not absolute in a project.
    pub fn file(&self) -> &PathBuf {
        let (Self::Settings { file, .. } | Self::Plugin { file }) = self;
        file
    }

    /// The agent's own folder.
    pub fn folder(&self) -> &Path {
        let own = match self {
            Self::Settings { file, .. } => file.parent(),
            Self::Plugin { file } => file.ancestors().nth(2),
        };
        own.unwrap_or(Path::new(""))
    }

    /// What the file is to hold so that the agent runs `program`, and at which events of its settings that is new. `folders` have to be
    /// made for a new file.
    ///
    /// # Errors
    /// The file is none that can be changed.
    pub fn installed(
        &self,
        kind: &str,
        before: Option<&str>,
        program: &str,
        folders: usize,
    ) -> Result<(String, Vec<&'static str>), InstallError> {
        match self {
            Self::Settings { shape, events, empty, .. } => {
                let made = format!("{empty}{}", made(folders));
                let before = before.unwrap_or(&made);
                let after = with_hooks(before, kind, *shape, events, program)?;
                Ok((after, events.iter().filter(|event| !has(before, event, kind, program)).copied().collect()))
            }
            Self::Plugin { .. } if before.is_some_and(|text| !text.starts_with(MARK)) => Err(InstallError::Foreign),
            Self::Plugin { .. } => {
                let folders = before.map_or(folders, |text| folders_made(text).unwrap_or_default());
                let text = PLUGIN.replace("{{program}}", &serde_json::Value::from(program).to_string());
                Ok((format!("{}{}", text.trim_end(), made(folders)), Vec::new()))
            }
        }
    }

    /// What the file is to hold so that it does not any more; or how many of its folders are to go with it. Of settings a file goes that
    /// install has made and nobody has changed; unless it `is_linked`, and so is kept elsewhere by the user.
    ///
    /// # Errors
    /// As [`installed`](Self::installed).
    pub fn uninstalled(
        &self,
        kind: &str,
        before: &str,
        is_linked: bool,
    ) -> Result<Result<String, usize>, InstallError> {
        match self {
            Self::Settings { empty, .. } => {
                let after = without_hooks(before, kind)?;
                let is_made = after.trim_end() == *empty && !is_linked && after != before;
                Ok(folders_made(&after).filter(|_| is_made).map_or(Ok(after), Err))
            }
            Self::Plugin { .. } if before.starts_with(MARK) => Ok(Err(folders_made(before).unwrap_or_default())),
            Self::Plugin { .. } => Err(InstallError::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::records::hooks::meaning::KINDS;

    fn file(kind: &str, project: bool, variables: &[(&str, &str)]) -> PathBuf {
        let environment = Environment::from_iter(variables.iter().copied());
        Way::of(kind, project, &environment).unwrap().file().clone()
    }

    #[test]
    fn each_kind_has_its_file_where_the_agent_looks_for_it() {
        let home = [("HOME", "/home/me")];
        let files = KINDS.map(|kind| file(kind, false, &home));
        let expected = [
            "/home/me/.claude/settings.json",
            "/home/me/.codex/hooks.json",
            "/home/me/.gemini/settings.json",
            "/home/me/.cursor/hooks.json",
            "/home/me/.config/opencode/plugins/headcount.js",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
        for (kind, variable, expected) in [
            ("claude", "CLAUDE_CONFIG_DIR", "/x/settings.json"),
            ("codex", "CODEX_HOME", "/x/hooks.json"),
            ("opencode", "XDG_CONFIG_HOME", "/x/opencode/plugins/headcount.js"),
        ] {
            assert_eq!(file(kind, false, &[(variable, "/x")]), Path::new(expected));
            assert!(file(kind, true, &[(variable, "/x")]).is_relative(), "{kind}");
        }
        assert!(matches!(Way::of("claude", false, &Environment::default()), Err(InstallError::Home)));
        assert!(matches!(Way::of("aider", false, &Environment::default()), Err(InstallError::Kind(_))));
    }
}
