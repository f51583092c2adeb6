//! Text of the verdict: what agents said made harmless, and quantities as people read them.
//!
//! Quantities are whole numbers up to the last step, so that they read the same on every machine and the component
//! carries no code for printing floats.

use std::fmt::{self, Display, Formatter, Write as _};

/// How many characters of a foreign text are shown at most.
const SHOWN: usize = 200;

/// A text from an agent or a file, printed without control characters, terminal escapes, marks that turn the reading
/// direction or invisible tags, and cut after 200 characters.
pub(crate) struct Clean<'a>(pub &'a str);

impl Display for Clean<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.len() <= SHOWN && self.0.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return f.write_str(self.0);
        }
        let mut chars = self.0.chars().peekable();
        let mut shown = 0;
        while let Some(char) = chars.next() {
            match char {
                '\u{1b}' => skip_escape(&mut chars),
                '\u{9b}' => skip_control_sequence(&mut chars),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
                _ if is_hidden(char) => {}
                _ if shown == SHOWN => return f.write_char('…'),
                _ => {
                    shown += 1;
                    f.write_char(if is_break(char) { ' ' } else { char })?;
                }
            }
        }
        Ok(())
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn is_break(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_hidden(char: char) -> bool {
    let turns = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let invisible = matches!(char, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    turns || invisible || (char.is_control() && !is_break(char))
}

/// Skips what follows an ESC: a control sequence, a string such as a title, or one character.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        Some(' '..='/') => {
            chars.next();
            chars.next_if(|char| (' '..='~').contains(char));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Skips parameters and the final byte; anything that does not belong there ends the sequence and stays.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|char| (' '..='?').contains(char)).is_some() {}
    chars.next_if(|char| ('@'..='~').contains(char));
}

/// Skips to the string's end: BEL or ST.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(char) = chars.next() {
        if matches!(char, '\u{7}' | '\u{9c}') || (char == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
            return;
        }
    }
}

/// Milliseconds as people say them: `96 ms`, `1.3 s`, `45 s`, `12 min`, `3 h`, `2 d`; never rounded up.
pub(crate) struct Span(pub u64);

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const MINUTE: u64 = 60_000;
        const HOUR: u64 = 60 * MINUTE;
        match self.0 {
            ms if (1..1000).contains(&ms) => write!(f, "{ms} ms"),
            ms if ms < 10_000 && ms % 1000 >= 100 => {
                write!(f, "{}.{} s", ms / 1000, ms % 1000 / 100)
            }
            ms if ms < 2 * MINUTE => write!(f, "{} s", ms / 1000),
            ms if ms < 2 * HOUR => write!(f, "{} min", ms / MINUTE),
            ms if ms < 48 * HOUR => write!(f, "{} h", ms / HOUR),
            ms => write!(f, "{} d", ms / (24 * HOUR)),
        }
    }
}

/// Bytes with one decimal in the largest binary unit that fits: `512 B`, `1.5 GiB`; never rounded up.
pub(crate) struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (mut unit, mut size) = ("B", 1_u64);
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if self.0 / 1024 >= size {
                (unit, size) = (larger, size * 1024);
            }
        }
        write!(f, "{}", self.0 / size)?;
        match self.0 % size * 10 / size {
            0 => write!(f, " {unit}"),
            tenth => write!(f, ".{tenth} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_is_kept() {
        assert_eq!(Clean("permission prompt").to_string(), "permission prompt");
        assert_eq!(Clean("warten auf Größe 👩‍💻").to_string(), "warten auf Größe 👩‍💻");
    }

    #[test]
    fn escapes_go_with_their_bodies() {
        assert_eq!(Clean("a\u{1b}]0;x\u{7}b\u{1b}[2Jc\u{202e}d").to_string(), "abcd");
        assert_eq!(Clean("a\u{1b}]8;;http://x\u{1b}\\b\u{9b}31mc\u{1b}(Bd\u{1b}Me").to_string(), "abcde");
        assert_eq!(Clean("a\nb\u{0}c\u{1b}").to_string(), "a bc");
        assert_eq!(Clean("a\u{1b}[12").to_string(), "a");
        assert_eq!(Clean("hid\u{e0041}den").to_string(), "hidden");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(Clean(&"x".repeat(200)).to_string().len(), 200);
        let cut = Clean(&"ü".repeat(100_000)).to_string();
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (201, true));
    }

    #[test]
    fn quantities() {
        let said = |ms| Span(ms).to_string();
        assert_eq!([0, 96, 1_300, 9_950, 10_500].map(said), ["0 s", "96 ms", "1.3 s", "9.9 s", "10 s"]);
        assert_eq!([119_999, 120_000, 7_199_999, 7_200_000].map(said), ["119 s", "2 min", "119 min", "2 h"]);
        assert_eq!([172_799_999, 172_800_000, u64::MAX].map(said), ["47 h", "2 d", "213503982334 d"]);
        let sizes: Vec<_> = [0, 512, 1536, 8 << 30, u64::MAX].map(|bytes| Bytes(bytes).to_string()).into();
        assert_eq!(sizes, ["0 B", "512 B", "1.5 KiB", "8 GiB", "16777215.9 TiB"]);
    }
}
