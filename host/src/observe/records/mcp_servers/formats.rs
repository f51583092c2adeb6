//! The MCP servers that a configuration names. Only programs and their arguments are kept: environments and headers beside
//! them hold secrets.

use super::super::value;
use super::command::Command;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with `mcpServers`, and perhaps others for each of several `projects`: Claude, Gemini, Qwen, Cursor, Copilot.
    Servers,
    /// TOML with `mcp_servers`: Codex.
    Codex,
    /// JSON with `mcp`, or `mcp.servers` of the second edition: OpenCode.
    OpenCode,
}

/// What a configuration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Servers {
    everywhere: Vec<Command>,
    /// What counts only below a folder.
    below: BTreeMap<PathBuf, Vec<Command>>,
}

impl Servers {
    /// What an agent that works in `folder` may start.
    pub fn in_folder<'s>(&'s self, folder: &'s Path) -> impl Iterator<Item = &'s Command> {
        self.everywhere.iter().chain(folder.ancestors().filter_map(|above| self.below.get(above)).flatten())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithServers {
    mcp_servers: Option<BTreeMap<String, Server>>,
    projects: Option<BTreeMap<PathBuf, Project>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    mcp_servers: Option<BTreeMap<String, Server>>,
}

#[derive(Deserialize)]
struct OfCodex {
    mcp_servers: Option<BTreeMap<String, Server>>,
}

#[derive(Deserialize)]
struct Server {
    command: Option<String>,
    args: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct OfOpenCode {
    mcp: Option<Value>,
}

/// Reads a configuration.
///
/// # Errors
/// It is not understood; what stands in it is not told.
pub fn parse(bytes: &[u8], format: Format) -> Result<Servers, String> {
    let everywhere = match format {
        Format::Servers => {
            let read: WithServers = json(bytes)?;
            let of_project = |(folder, project): (PathBuf, Project)| (folder, commands(project.mcp_servers));
            let below = read.projects.unwrap_or_default().into_iter().map(of_project);
            let below = below.filter(|(_, commands)| !commands.is_empty()).collect();
            return Ok(Servers { everywhere: commands(read.mcp_servers), below });
        }
        Format::Codex => {
            let text = std::str::from_utf8(bytes).map_err(|_| "is no text".to_owned())?;
            let read: OfCodex = toml::from_str(text).map_err(|_| "is not understood".to_owned())?;
            commands(read.mcp_servers)
        }
        Format::OpenCode => open_code(&json::<OfOpenCode>(bytes)?.mcp.unwrap_or_default()),
    };
    Ok(Servers { everywhere, below: BTreeMap::new() })
}

/// Those that are programs here; others are only spoken to.
fn commands(servers: Option<BTreeMap<String, Server>>) -> Vec<Command> {
    let command = |server: Server| Some(Command { program: server.command?, args: server.args.unwrap_or_default() });
    servers.into_iter().flatten().filter_map(|(_, server)| command(server)).collect()
}

fn open_code(mcp: &Value) -> Vec<Command> {
    let command = |server: &Value| {
        let mut words = server["command"].as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
        Some(Command { program: words.next()??, args: words.collect::<Option<_>>()? })
    };
    let of_both = [mcp, &mcp["servers"]].into_iter().filter_map(Value::as_object);
    of_both.flat_map(|servers| servers.values()).filter_map(command).collect()
}

/// Reads JSON, also with the comments and last commas that some agents take.
fn json<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, String> {
    // The parser's own message might quote what stands there.
    let strict = value::json(bytes);
    strict.or_else(|_| value::json(&strict_json(bytes))).map_err(|_| "is not understood".to_owned())
}

/// The same without comments, and without commas that nothing follows.
fn strict_json(bytes: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        let length = match (byte, after) {
            (b'"', _) => string(rest),
            (b'/', [b'/', ..]) => {
                rest = &rest[memchr::memchr(b'\n', rest).unwrap_or(rest.len())..];
                continue;
            }
            (b'/', [b'*', inside @ ..]) => {
                let end = inside.windows(2).position(|two| two == b"*/");
                rest = end.map_or(&[], |end| &inside[end + 2..]);
                continue;
            }
            (b'}' | b']', _) => {
                let last = out.iter().rposition(|byte| !byte.is_ascii_whitespace());
                if let Some(at) = last.filter(|at| out[*at] == b',') {
                    out.truncate(at);
                }
                1
            }
            _ => 1,
        };
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// How long the text in quotes is that stands at the beginning.
fn string(bytes: &[u8]) -> usize {
    let mut escaped = false;
    let is_end = |byte: &u8| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    };
    bytes[1..].iter().position(is_end).map_or(bytes.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(text: &str, format: Format, folder: &str) -> Vec<String> {
        let servers = parse(text.as_bytes(), format).unwrap();
        let line = |command: &Command| format!("{} {}", command.program, command.args.join(" "));
        servers.in_folder(Path::new(folder)).map(line).collect()
    }

    #[test]
    fn servers_of_the_user_and_of_the_project_are_named() {
        let text = r#"{
            "numStartups": 7, "oauthAccount": {"token": "secret"},
            "mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"KEY": "secret"}}, "far": {"type": "http", "url": "https://x"}},
            "projects": {"/w/app": {"mcpServers": {"b": {"command": "b"}}, "history": []}, "/w/other": {"mcpServers": {"c": {"command": "c"}}}, "/": {}}
        }"#;
        assert_eq!(named(text, Format::Servers, "/w/app/deep"), ["npx -y a", "b "]);
        assert_eq!(named(text, Format::Servers, "/w"), ["npx -y a"]);
        assert!(!format!("{:?}", parse(text.as_bytes(), Format::Servers)).contains("secret"));
        assert_eq!(named("{}", Format::Servers, "/"), Vec::<String>::new());
    }

    #[test]
    fn servers_of_codex_and_opencode_are_named() {
        let text = "model = \"x\"\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"a\"]\nenv = { K = \"secret\" }\n[mcp_servers.b]\nurl = \"https://x\"\n";
        assert_eq!(named(text, Format::Codex, "/"), ["npx a"]);
        let first =
            r#"{"mcp": {"a": {"type": "local", "command": ["npx", "a"], "enabled": true}, "b": {"type": "remote"}}}"#;
        assert_eq!(named(first, Format::OpenCode, "/"), ["npx a"]);
        let second = r#"{"mcp": {"servers": {"a": {"type": "local", "command": ["npx", "a"]}}}}"#;
        assert_eq!(named(second, Format::OpenCode, "/"), ["npx a"]);
        assert_eq!(named("{}", Format::OpenCode, "/"), Vec::<String>::new());
    }

    #[test]
    fn comments_and_last_commas_are_read_over() {
        let text = r#"{ // mine
            "mcpServers": { "a": { "command": "a // b", "args": ["/* c */", "\"}",], /* more
            */ }, },
        } // end"#;
        assert_eq!(named(text, Format::Servers, "/"), [r#"a // b /* c */ "}"#]);
    }

    #[test]
    fn what_is_not_understood_is_not_told() {
        for (text, format) in [
            (r#"{"mcpServers": "secret"}"#, Format::Servers),
            (r#"{"mcpServers": {"a": {"command": ["secret"]}}}"#, Format::Servers),
            ("secret", Format::OpenCode),
            ("secret", Format::Codex),
        ] {
            assert_eq!(parse(text.as_bytes(), format).unwrap_err(), "is not understood", "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), text in r#"[\[\]{}",:/*\\ a\n]{0,60}"#) {
            for format in [Format::Servers, Format::Codex, Format::OpenCode] {
                let _ = (parse(&bytes, format), parse(text.as_bytes(), format));
            }
        }

        #[test]
        fn strict_json_stays_as_it_is(text in ".*", numbers in prop::collection::vec(any::<i32>(), 0..5)) {
            let value = serde_json::json!({ "a": text, "b": numbers, &text: {} });
            let bytes = serde_json::to_vec_pretty(&value).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&strict_json(&bytes)).unwrap(), value);
        }
    }
}
