//! The only place that writes to stdout. Colour follows NO_COLOR, CLICOLOR, CLICOLOR_FORCE and whether it is a terminal.

use serde::Serialize;
use std::io::{self, Write as _};

/// Writes `text` and a line end. A reader that has gone away is no error: it has seen what it wanted.
///
/// # Errors
/// When stdout cannot be written to for any other reason.
pub fn line(text: &str) -> io::Result<()> {
    write(&format!("{text}\n"))
}

/// Writes prose, its lines broken between words where stdout is a terminal; those after the first begin with `indent`.
///
/// # Errors
/// As [`line`].
pub fn prose(text: &str, indent: &str) -> io::Result<()> {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(width), _)) => {
            let options = textwrap::Options::new(usize::from(width.max(20))).subsequent_indent(indent);
            line(&textwrap::fill(text, options))
        }
        None => line(text),
    }
}

/// Writes `text` as it is.
///
/// # Errors
/// As [`line`].
pub fn write(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes `value` as JSON, indented for people where it is a terminal.
///
/// # Errors
/// As [`line`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    use std::io::IsTerminal as _;
    let text =
        if io::stdout().is_terminal() { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
    Ok(line(&text)?)
}
