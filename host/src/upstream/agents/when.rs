//! Times as servers write them.

use serde_json::Value;

/// Numbers below are seconds, others milliseconds: the year 5138 in the one, 1973 in the other.
const SECONDS_BELOW: f64 = 1e11;

/// Unix milliseconds of RFC 3339 text, or of a number of seconds or milliseconds since 1970, also as text.
pub fn unix_ms(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => match text.parse::<jiff::Timestamp>() {
            Ok(time) => u64::try_from(time.as_millisecond()).ok(),
            Err(_) => of_number(text.parse().ok()?),
        },
        _ => None,
    }
}

fn of_number(number: f64) -> Option<u64> {
    let ms = if number < SECONDS_BELOW { number * 1000.0 } else { number };
    // Beyond that floats are not exact any more, and no clock shows it.
    (0.0..9e15).contains(&ms).then_some(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::unix_ms;
    use serde_json::{Value, json};

    #[test]
    fn times_are_read_in_every_usual_form() {
        let expected = Some(1_800_000_000_500);
        for value in [
            json!("2027-01-15T08:00:00.5Z"),
            json!("2027-01-15T09:00:00.500+01:00"),
            json!(1_800_000_000.5),
            json!(1_800_000_000_500_u64),
            json!("1800000000500"),
        ] {
            assert_eq!(unix_ms(&value), expected, "{value}");
        }
        assert_eq!(unix_ms(&json!(0)), Some(0));
        for none in [json!("soon"), json!(-1), json!(1e300), json!("NaN"), json!("inf"), json!([]), Value::Null] {
            assert_eq!(unix_ms(&none), None, "{none}");
        }
        assert_eq!(unix_ms(&json!("1960-01-01T00:00:00Z")), None);
    }
}
