//! Text that comes from agents is hostile: it may hold escape sequences, fake right-to-left order, or megabytes.

use std::fmt::{self, Display, Formatter, Write as _};
use std::time::Duration;

/// The longest text that a report passes on, in characters.
pub const MAX: usize = 256;

/// `text` without anything that could act on a terminal or turn the reading order, on one line, cut to a length
/// that fits a report. Escape sequences go with their bodies, so that no residue (`[2J`, `]0;title`) is left behind.
pub fn clean(text: &str) -> String {
    cleaned(text, MAX)
}

/// The same for a text of many lines: each is cleaned, none is cut.
pub fn lines(text: &str) -> String {
    text.lines().map(|line| cleaned(line, usize::MAX)).collect::<Vec<_>>().join("\n")
}

fn cleaned(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let c = match c {
            '\u{1b}' | '\u{9b}' | '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => {
                skip_sequence(c, &mut rest);
                continue;
            }
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() || is_invisible(c) => continue,
            c => c,
        };
        if length == most {
            out.push('…');
            break;
        }
        length += 1;
        out.push(c);
    }
    out
}

/// How long something still takes, as people say it: `40 ms`, `4 s`, `12 min`, `3 h`; never less than it is.
#[derive(Debug, Clone, Copy)]
pub struct Wait(pub Duration);

impl Display for Wait {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match ms.div_ceil(1000) {
            _ if ms < 1000 => write!(to, "{ms} ms"),
            s if s < 120 => write!(to, "{s} s"),
            s if s < 7200 => write!(to, "{} min", s.div_ceil(60)),
            s => write!(to, "{} h", s.div_ceil(3600)),
        }
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// How a process ended, in words; `code` is its exit code, or minus the signal's number.
pub fn ending(code: i32) -> String {
    if code < 0 { format!("signal {}", code.unsigned_abs()) } else { format!("exit code {code}") }
}

/// Drops the body of an escape sequence (ECMA-48): CSI to its final byte, strings (OSC, DCS, SOS, PM, APC) to BEL or ST.
fn skip_sequence(introducer: char, rest: &mut std::str::Chars<'_>) {
    let kind = if introducer == '\u{1b}' { rest.next() } else { Some(introducer) };
    match kind {
        Some('[' | '\u{9b}') => while rest.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        Some(']' | 'P' | 'X' | '^' | '_' | '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}') => {
            while let Some(c) = rest.next() {
                match c {
                    '\u{7}' | '\u{9c}' => break,
                    '\u{1b}' => {
                        rest.next();
                        break;
                    }
                    _ => {}
                }
            }
        }
        // Intermediate bytes and one final byte: charset selection and the like.
        Some(' '..='/') => while rest.next().is_some_and(|c| (' '..='/').contains(&c)) {},
        _ => {}
    }
}

/// Bidirectional controls, zero-width characters and tags: they show nothing and change what is shown.
/// The zero-width joiner stays, because emoji and Indic scripts are spelled with it.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{MAX, clean, hex, lines};
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_leave_no_residue() {
        assert_eq!(clean("a\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}b👩\u{200d}🔧"), "ab👩\u{200d}🔧");
        assert_eq!(clean("x\u{1b}]8;;http://e\u{1b}\\link\u{1b}]8;;\u{1b}\\y"), "xlinky");
        assert_eq!(clean("\u{9b}31mred\u{1b}(B"), "red");
        assert_eq!(clean("two\nlines\tand tab"), "two lines and tab");
        assert_eq!(clean("日本語"), "日本語");
    }

    #[test]
    fn an_open_sequence_takes_only_what_is_its_own() {
        assert_eq!(clean("\u{1b}[31"), "");
        assert_eq!(clean("\u{1b}"), "");
        assert_eq!(clean("a\u{1b}Mb"), "ab");
    }

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!((hex(&[0, 0x0a, 0xff]), hex(&[])), ("000aff".to_owned(), String::new()));
    }

    #[test]
    fn lines_stay_lines_and_whole() {
        let long = "x".repeat(MAX + 1);
        assert_eq!(lines(&format!("a\u{1b}[2Jb\r\n\tc\n{long}\n")), format!("ab\n c\n{long}"));
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        let cut = clean(&"x".repeat(MAX + 1));
        assert_eq!(cut.chars().count(), MAX + 1);
        assert!(cut.ends_with('…'));
        assert_eq!(clean(&"x".repeat(MAX)), "x".repeat(MAX));
    }

    proptest! {
        #[test]
        fn nothing_that_acts_comes_through(text in any::<String>()) {
            let clean = clean(&text);
            prop_assert!(!clean.chars().any(|c| c.is_control() || super::is_invisible(c)));
            prop_assert!(clean.chars().count() <= MAX + 1);
            let again = super::clean(&clean);
            prop_assert_eq!(again.trim_end_matches('…'), clean.trim_end_matches('…'));
        }
    }
}
