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

impl FromStr for Span {
    type Err = jiff::Error;

    /// Reads jiff's friendly format (and ISO 8601's).
    ///
    /// # Errors
    /// When the text is neither, or is negative.
    fn from_str(text: &str) -> Result<Self, jiff::Error> {
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
