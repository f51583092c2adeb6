//! The door for fuzzing: the parsers of procfs's files, and all that they let out.

use super::{fields, program, stat};
use crate::observe::Parser;
use std::fmt::Debug;

/// Each parser's name, and what it lets out of bytes, as text.
pub const PARSERS: &[Parser] = &[
    ("proc-stat", |pieces| show(stat::parse(&pieces.concat()))),
    ("proc-fields", |pieces| each_field(&pieces.concat())),
    ("proc-environ", |pieces| show(program::kept(&pieces.concat()))),
];

fn show(said: impl Debug) -> String {
    format!("{said:?}")
}

/// The files of named fields, each read as all of them: none may trip over another's text.
fn each_field(text: &[u8]) -> String {
    let sizes = (fields::pages(text), fields::io(text), fields::fd_limit(text), fields::pss(text));
    let ids = (fields::thread_group(text), fields::user(text), fields::is_writing(text), fields::uptime(text));
    show((sizes, ids))
}

/// The slots of a command line.
pub fn command_line(bytes: &[u8]) -> Vec<String> {
    program::slots(bytes)
}
