//! Amounts of memory as text.

use super::as_text::as_text;
use std::fmt;
use std::str::FromStr;

/// An amount of memory, written as in "512KiB", "48MiB", "1GiB".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// The units, largest first.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Size {
    /// So many mebibytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib << 20)
    }
}

/// Not an amount of memory.
#[derive(Debug, thiserror::Error)]
#[error("it is not a whole number with one of the units B, KiB, MiB, GiB")]
pub struct NoSize;

impl FromStr for Size {
    type Err = NoSize;

    /// A whole number and its unit.
    ///
    /// # Errors
    /// When it is anything else, or does not fit 64 bits.
    fn from_str(text: &str) -> Result<Self, NoSize> {
        let (unit, size) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit)).ok_or(NoSize)?;
        let number: u64 = text[..text.len() - unit.len()].trim_end().parse().map_err(|_| NoSize)?;
        number.checked_mul(size).map(Self).ok_or(NoSize)
    }
}

impl fmt::Display for Size {
    /// In the largest unit that needs no fraction.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) =
            UNITS.into_iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)).unwrap_or(("B", 1));
        write!(to, "{}{unit}", self.0 / size)
    }
}

as_text!(Size, "size");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MiB", "48", "4.5MiB", "-1MiB", "48 MB", "48mib", "99999999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!("48 MiB".parse::<Size>().unwrap(), Size::from_mib(48));
    }

    proptest! {
        #[test]
        fn a_size_is_written_as_it_is_read(bytes in any::<u64>()) {
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>().unwrap(), Size(bytes));
        }
    }
}
