//! JSON in which no object names a member twice. Of two members with one name each reader takes another, so that what was
//! looked at would not be what is done.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// A value that was read so.
#[derive(Debug, Clone, PartialEq)]
pub struct Strict(pub Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.insert(name, value).is_some() {
                return Err(de::Error::custom("a member is named twice"));
            }
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<Value> {
        serde_json::from_str::<Strict>(text).ok().map(|strict| strict.0)
    }

    #[test]
    fn members_that_are_named_twice_are_refused_wherever_they_stand() {
        for twice in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"c":2,"\u0061":3}}]"#] {
            assert!(serde_json::from_str::<Value>(twice).is_ok() && read(twice).is_none(), "{twice}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(read(&deep), None);
    }

    proptest! {
        #[test]
        fn all_else_is_read_as_it_is_elsewhere(numbers in any::<(i64, u64, f64, bool)>(), text in ".*", name in ".*") {
            let (int, natural, float, truth) = numbers;
            let value = serde_json::json!({name: [int, natural, float, truth, null_of(&text)], "x-": {"y": text}});
            prop_assert_eq!(read(&value.to_string()), serde_json::from_str(&value.to_string()).ok());
        }
    }

    fn null_of(text: &str) -> Value {
        if text.is_empty() { Value::Null } else { text.into() }
    }
}
