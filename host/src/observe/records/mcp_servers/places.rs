//! Where each kind of agent keeps the configuration of its MCP servers: one file of the user's, and those of the projects
//! that its working directory is in.

use super::formats::Format;
use crate::observe::processes::Program;
use crate::observe::records::home_of;
use std::path::{Path, PathBuf};

/// So many folders are gone up from the working directory: projects lie in each other.
const MOST_FOLDERS: usize = 12;

/// One file of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// How it is written.
    pub format: Format,
}

/// How an agent is given servers on its command line: those are not read.
const OPTIONS: [&str; 3] = ["--mcp-config", "--additional-mcp-config", "mcp_servers"];

/// Where one kind keeps it.
struct Kind {
    name: &'static str,
    /// The variable that names the user's folder, that folder below the home directory, and the files in it.
    variable: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
    /// The files in a project.
    in_project: &'static [&'static str],
    format: Format,
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "claude",
        variable: "CLAUDE_CONFIG_DIR",
        folder: "",
        files: &[".claude.json"],
        in_project: &[".mcp.json"],
        format: Format::Servers,
    },
    Kind {
        name: "codex",
        variable: "CODEX_HOME",
        folder: ".codex",
        files: &["config.toml"],
        in_project: &[".codex/config.toml"],
        format: Format::Codex,
    },
    Kind {
        name: "gemini",
        variable: "",
        folder: ".gemini",
        files: &["settings.json"],
        in_project: &[".gemini/settings.json"],
        format: Format::Servers,
    },
    Kind {
        name: "qwen",
        variable: "QWEN_HOME",
        folder: ".qwen",
        files: &["settings.json"],
        in_project: &[".qwen/settings.json"],
        format: Format::Servers,
    },
    Kind {
        name: "cursor",
        variable: "",
        folder: ".cursor",
        files: &["mcp.json"],
        in_project: &[".cursor/mcp.json"],
        format: Format::Servers,
    },
    Kind {
        name: "copilot",
        variable: "COPILOT_HOME",
        folder: ".copilot",
        files: &["mcp-config.json"],
        in_project: &[".mcp.json", ".github/mcp.json"],
        format: Format::Servers,
    },
    Kind {
        name: "opencode",
        variable: "XDG_CONFIG_HOME",
        folder: ".config",
        files: &["opencode/opencode.json", "opencode/opencode.jsonc"],
        in_project: &["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"],
        format: Format::OpenCode,
    },
];

/// The kinds of agents of which it is known where they keep it.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|known| known.name)
}

/// Whether it is known where agents of this kind keep it.
pub fn is_known(kind: &str) -> bool {
    KINDS.iter().any(|known| known.name == kind)
}

/// The files that name the servers of an agent which runs this program, and the folder that it works in.
///
/// # Errors
/// That cannot be known, or they are not all.
pub fn places(kind: &str, program: &Program) -> Result<(Vec<Place>, PathBuf), String> {
    let Some(kind) = KINDS.iter().find(|known| known.name == kind) else { return Ok((Vec::new(), PathBuf::new())) };
    let argv = program.argv.as_ref().map_err(|why| format!("its command line cannot be read: {why}"))?;
    if argv.iter().any(|slot| OPTIONS.iter().any(|option| slot.starts_with(option))) {
        return Err("it was given servers on its command line, which are not read".to_owned());
    }
    let cwd = program.cwd.clone().map_err(|why| format!("its working directory is not known: {why}"))?;
    let home = home_of(program, kind.variable, kind.folder)?;
    let place = |folder: &Path, file: &&str| Place { file: folder.join(file), format: kind.format };
    let of_user = kind.files.iter().map(|file| place(&home, file));
    let folders = cwd.ancestors().take(MOST_FOLDERS);
    let of_projects = folders.flat_map(|folder| kind.in_project.iter().map(move |file| place(folder, file)));
    let all = of_user.chain(of_projects).collect();
    Ok((all, cwd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::records::tests::{home, subject};

    fn program(kind: &str, argv: &[&str]) -> Program {
        let program = Program::clone(&subject(kind, home(Path::new("/home/me"))).processes[0].1);
        Program { argv: Ok(argv.iter().map(ToString::to_string).collect()), cwd: Ok("/w/app".into()), ..program }
    }

    #[test]
    fn each_kind_has_its_files() {
        for (kind, expected) in [
            ("claude", "/home/me/.claude.json /w/app/.mcp.json /w/.mcp.json /.mcp.json"),
            (
                "codex",
                "/home/me/.codex/config.toml /w/app/.codex/config.toml /w/.codex/config.toml /.codex/config.toml",
            ),
            ("cursor", "/home/me/.cursor/mcp.json /w/app/.cursor/mcp.json /w/.cursor/mcp.json /.cursor/mcp.json"),
        ] {
            let (places, cwd) = places(kind, &program(kind, &[kind])).unwrap();
            let files: Vec<&str> = places.iter().map(|place| place.file.to_str().unwrap()).collect();
            assert_eq!((files.join(" "), cwd), (expected.to_owned(), "/w/app".into()));
        }
        let elsewhere = Program {
            env: Ok(vec![("HOME".into(), "/home/me".into()), ("CLAUDE_CONFIG_DIR".into(), "/x".into())]),
            ..program("claude", &["claude"])
        };
        assert_eq!(places("claude", &elsewhere).unwrap().0[0].file, Path::new("/x/.claude.json"));
    }

    #[test]
    fn what_the_command_line_adds_is_said_not_to_be_read() {
        for (kind, option) in [
            ("claude", "--mcp-config=x.json"),
            ("codex", "mcp_servers.a.command=x"),
            ("copilot", "--additional-mcp-config"),
        ] {
            assert!(places(kind, &program(kind, &[kind, option])).unwrap_err().contains("command line"), "{option}");
        }
    }
}
