//! The door for fuzzing: each parser of a record, and all that it lets out. One line for each parser.
//!
//! A record comes in pieces, as it does when it is read while somebody writes it. What is said of it must not depend on where
//! one piece ends and the next one begins.

use super::aider::history::History;
use super::claude::{jobs, session_file, transcript, turn};
use super::codex::rollout::Rollout;
use super::copilot::events::Events;
use super::cursor::transcript::Transcript;
use super::follow::Parser;
use super::gemini::chat::Chat as Gemini;
use super::hooks::event::Event;
use super::hooks::note::{Change, Note, change};
use super::hooks::{evidence, meaning::KINDS};
use super::mcp_servers::formats::{self, Format};
use super::qwen::{chat::Chat, registry};
use super::tail::{Lines, Options, Piece};
use crate::observe::processes::{Ancestor, Lineage, Machine, ProcessId};
use std::fmt::Debug;

/// The process that records are about.
const PROCESS: ProcessId = ProcessId { pid: 4242, start: 20_095_994 };

/// When the readers look, Unix milliseconds.
const NOW_MS: u64 = 1_800_000_000_000;

/// Each parser's name, and what it lets out of bytes that come in these pieces, as text.
pub const PARSERS: &[super::super::Parser] = &[
    ("claude-session", claude_session),
    ("claude-job", claude_job),
    ("claude-transcript", claude_transcript),
    ("codex-rollout", |pieces| lines(pieces, |said: Rollout| (said.statement().cloned(), said.usage(|_| true)))),
    ("copilot-events", |pieces| {
        lines(pieces, |said: Events| (said.statements().collect::<Vec<_>>(), said.usage(|_| true), said.is_whole()))
    }),
    ("cursor-transcript", |pieces| lines(pieces, |said: Transcript| said.last().cloned())),
    ("gemini-chat", |pieces| lines(pieces, |said: Gemini| (said.statement().cloned(), said.usage(|_| true)))),
    ("gemini-chat-whole", |pieces| {
        show(Gemini::whole(&pieces.concat()).map(|said| (said.statement().cloned(), said.usage(|_| true))))
    }),
    ("aider-history", |pieces| lines(pieces, |said: History| (said.turn().claim(), said.started(), said.usage()))),
    ("qwen-registry", |pieces| show(registry::session(&pieces.concat(), PROCESS, &machine()))),
    ("qwen-chat", |pieces| lines(pieces, |said: Chat| said.usage())),
    ("hook-events", hook_events),
];

/// The same for notes, which are headcount's own and have words of any length.
pub const NOTES: fn(&[&[u8]]) -> String =
    |pieces| show(serde_json::from_slice(&pieces.concat()).map(|note: Note| evidence(&note, &[])).ok());

/// The MCP servers that configurations name, whose command lines are held against processes.
pub const SERVERS: fn(&[&[u8]]) -> String = |pieces| {
    let servers = |format| formats::parse(&pieces.concat(), format);
    show([Format::Servers, Format::Codex, Format::OpenCode].map(servers))
};

fn show(said: impl Debug) -> String {
    format!("{said:?}")
}

fn machine() -> Machine {
    Machine { boot_id: "a1b2c3d4-boot".to_owned(), pid_namespace: "pid:[4026531836]".to_owned() }
}

fn each_line(pieces: &[&[u8]], mut take: impl FnMut(&[u8])) {
    let mut lines = Lines::new(Options::default().longest_line);
    for piece in pieces {
        lines.feed(piece, &mut |piece: Piece<'_>| {
            if let Piece::Line(line) = piece {
                take(line);
            }
        });
    }
}

fn lines<P: Parser, T: Debug>(pieces: &[&[u8]], said: impl Fn(P) -> T) -> String {
    let mut parser = P::default();
    each_line(pieces, |line| parser.line(line, NOW_MS));
    show(said(parser))
}

fn claude_session(pieces: &[&[u8]]) -> String {
    show(session_file::parse(&pieces.concat()).map(|said| {
        let dates = (said.status_updated_ms, said.updated_ms);
        (said.evidence(1), said.belongs_to(PROCESS), said.background, said.job.clone(), said.parked, dates)
    }))
}

fn claude_job(pieces: &[&[u8]]) -> String {
    show(jobs::parse(&pieces.concat()).map(|said| (said.blocked, said.updated_ms, said.is_of(None))))
}

fn claude_transcript(pieces: &[&[u8]]) -> String {
    let (mut turn, mut sums, mut faults) = (turn::Turn::default(), turn::Sums::default(), Vec::new());
    let mut ledger = turn::Ledger::default();
    each_line(pieces, |line| match transcript::parse(line) {
        Ok(line) => {
            turn.take(&line);
            sums.take(&line, &mut ledger);
        }
        Err(why) => faults = vec![why],
    });
    let tool = turn.current_tool().map(str::to_owned);
    show((
        turn.evidence(0),
        tool,
        turn.is_open_since(NOW_MS),
        ledger.sum.plus(sums.unnamed),
        sums.model,
        sums.context,
        faults,
    ))
}

/// What is noted of events, one in each line, as a desk notes them: each note is read from the last one's file.
fn hook_events(pieces: &[&[u8]]) -> String {
    let of_kind = |kind: &&str| {
        let (mut note, mut at_ms) = (None::<Note>, 0);
        each_line(pieces, |line| {
            let Some(event) = Event::parse(line) else { return };
            at_ms += 1;
            let ancestors = vec![Ancestor { id: PROCESS, comm: (*kind).to_owned() }];
            match change(note.as_ref(), kind, event, at_ms, Lineage { machine: machine(), ancestors }) {
                Change::Keep => {}
                Change::Forget => note = None,
                Change::Write(written) => note = read_again(&written),
            }
        });
        note.map(|note| (evidence(&note, &[]), note.open.questions.len()))
    };
    show(KINDS.iter().map(of_kind).collect::<Vec<_>>())
}

/// A note as it is read from its file: no part of what a file holds may get lost.
fn read_again(note: &Note) -> Option<Note> {
    let file = serde_json::to_vec(note).ok()?;
    let read: Note = serde_json::from_slice(&file).ok()?;
    assert_eq!(serde_json::to_vec(&read).ok(), Some(file), "a note is read as it was written");
    Some(read)
}
