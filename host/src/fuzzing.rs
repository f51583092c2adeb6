//! The door for fuzzing: every parser of bytes that somebody else has written. For `tests/fuzz` alone; it promises nothing.

use crate::bridge;
use crate::config::{Config, check_toml};
use crate::observe::agents::Kinds;
use crate::observe::processes::{Program, fuzzing as processes};
use crate::observe::{Parser, records, roster};
use crate::upstream::agents;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Readers of agents' records: what they let out is bounded, and nothing of the work is in it.
pub const RECORDS: &[Parser] = records::fuzzing::PARSERS;

/// Readers of the system's files.
pub const SYSTEM: &[Parser] = processes::PARSERS;

/// Readers of texts that people write, of command lines, and of notes.
pub const TEXTS: &[Parser] = &[
    ("bridge-request", bridge::fuzzing::request),
    ("hook-note", records::fuzzing::NOTES),
    ("mcp-servers", records::fuzzing::SERVERS),
    ("config", |pieces| {
        text(pieces, |text| match check_toml::<Config>(text, Path::new("config.toml")) {
            Ok(checked) => format!("{:?}", checked.value),
            Err(problems) => problems.to_string(),
        })
    }),
    ("roster", |pieces| text(pieces, roster::read_text)),
    ("upstream-agents", |pieces| text(pieces, agents::fuzzing::read)),
    ("retained-status", |pieces| roster::retained::read_text(&pieces.concat())),
    ("command-line", command_line),
];

fn text(pieces: &[&[u8]], read: impl Fn(&str) -> String) -> String {
    String::from_utf8(pieces.concat()).map_or_else(|_| String::new(), |text| read(&text))
}

/// Which agent a command line runs. The first slot is the executable's path, the rest the line itself.
fn command_line(pieces: &[&[u8]]) -> String {
    static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds::new(&[]).expect("the built-in table is read by a test"));
    let mut slots = processes::command_line(&pieces.concat()).into_iter();
    let nothing = || "not read".to_owned();
    let exe = slots.next().filter(|exe| !exe.is_empty()).map(PathBuf::from).ok_or_else(nothing);
    let argv = Ok(slots.collect());
    let program = Program { exe, argv, cwd: Err(nothing()), env: Ok(Vec::new()), uid: None };
    let recognised = KINDS.recognise(&program, "MainThread");
    assert!(recognised.is_none() || KINDS.is_program(&program), "an agent runs an agent's program");
    format!("{recognised:?}")
}
