//! Lengths of time as text.

use super::as_text::as_text;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time, written as in "250ms", "90s", "10m", "1h30m".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// A span of so many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }
}

/// Why a text is no length of time.
#[derive(Debug, thiserror::Error)]
pub enum NoSpan {
    /// A number alone, which may be of anything.
    #[error("{0} has no unit; write {0}s or {0}m")]
    NoUnit(String),
    /// Anything else.
    #[error(transparent)]
    Unread(#[from] jiff::Error),
}

impl FromStr for Span {
    type Err = NoSpan;

    /// Reads jiff's friendly format (and ISO 8601's).
    ///
    /// # Errors
    /// When the text is neither, or is negative.
    fn from_str(text: &str) -> Result<Self, NoSpan> {
        let number = text.trim();
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(NoSpan::NoUnit(number.to_owned()));
        }
        let signed: jiff::SignedDuration = text.parse()?;
        Ok(Self(Duration::try_from(signed)?))
    }
}

impl fmt::Display for Span {
    /// The shortest text that [`Span::from_str`] reads as the same span.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000)];
        let smaller = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let mut rest = nanos;
        for (unit, size) in units.into_iter().chain(smaller) {
            if rest >= size {
                write!(to, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        if nanos == 0 { to.write_str("0s") } else { Ok(()) }
    }
}

as_text!(Span, "span");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_told_how_to_get_one() {
        let said = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(said("5"), "5 has no unit; write 5s or 5m");
        assert_eq!(said(" 1.5 "), "1.5 has no unit; write 1.5s or 1.5m");
        assert!(!said("").contains("no unit") && !said("soon").contains("no unit"));
        assert_eq!("5s".parse::<Span>().unwrap(), Span::from_millis(5000));
    }
}
