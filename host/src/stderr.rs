//! The only place that writes to stderr beside the log. What cannot be written there is lost: who has closed it, or has filled
//! the disk that it goes to, ends nobody's session by it.

use std::io::Write as _;

/// Writes `text` and a line end. Colour follows NO_COLOR, CLICOLOR, CLICOLOR_FORCE and whether it is a terminal.
pub fn line(text: &str) {
    write(&format!("{text}\n"));
}

/// Writes `text` as it is.
pub fn write(text: &str) {
    // At once, lest a line of another process come between.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
