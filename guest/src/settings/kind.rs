//! What settings measure: how they are written, read and bounded.

use std::ops::RangeInclusive;

use serde_json::Value;

pub(super) const SECOND: u64 = 1000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// The duration that is never over, written `"never"`.
pub(super) const NEVER: u64 = u64::MAX;

/// What a setting measures, which says how it is written and how far it may go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Milliseconds, written with a unit.
    Duration,
    /// Bytes, written with a unit.
    Size,
    /// Percent of one core.
    Cpu,
    /// Percent of a whole.
    Share,
    Count,
    /// Points of a score.
    Points,
}

impl Kind {
    pub(super) const fn range(self) -> RangeInclusive<u64> {
        match self {
            Kind::Duration => SECOND..=NEVER,
            Kind::Size => 1..=1 << 50,
            Kind::Cpu => 1..=1_000_000,
            Kind::Share | Kind::Points => 0..=100,
            Kind::Count => 1..=u32::MAX as u64,
        }
    }

    /// The units a value is written in, the smallest first; none for plain numbers.
    pub(super) const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Kind::Duration => &[("ms", 1), ("s", SECOND), ("m", MINUTE), ("h", 60 * MINUTE), ("d", 24 * 60 * MINUTE)],
            Kind::Size => &[("B", 1), ("KiB", 1 << 10), ("MiB", MIB), ("GiB", GIB), ("TiB", 1 << 40)],
            Kind::Cpu | Kind::Share | Kind::Count | Kind::Points => &[],
        }
    }

    pub(super) const fn wanted(self) -> &'static str {
        match self {
            Kind::Duration => r#"a duration such as "90s" or "10m""#,
            Kind::Size => r#"a size such as "512MiB" or "8GiB""#,
            Kind::Cpu | Kind::Share | Kind::Count | Kind::Points => "a whole number",
        }
    }

    pub(super) fn read(self, value: &Value) -> Option<u64> {
        if self.units().is_empty() {
            return value.as_u64();
        }
        let text = value.as_str()?;
        if self == Kind::Duration && text == "never" {
            return Some(NEVER);
        }
        let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
        let (_, size) = self.units().iter().find(|(name, _)| *name == unit)?;
        number.parse::<u64>().ok()?.checked_mul(*size)
    }

    /// `value` as JSON, in the largest unit in which it is a whole number.
    pub(super) fn write(self, value: u64) -> String {
        match self.units().iter().rev().find(|(_, size)| value.is_multiple_of(*size)) {
            Some(_) if self == Kind::Duration && value == NEVER => r#""never""#.to_owned(),
            Some((unit, size)) => format!("\"{}{unit}\"", value / size),
            None => value.to_string(),
        }
    }
}
