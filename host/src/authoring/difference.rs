//! In what a verdict differs from the one that was expected.

use crate::config::nearest;
use crate::report::clean;
use serde::Serialize;
use serde_json::Value;

/// Numbers that are as near as this are the same: a report rounds to hundredths.
const NEAR: f64 = 0.005;

/// One place in which a verdict is another than expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The place, as in `agents[0].status`.
    pub path: String,
    /// What was wanted there, and what was found.
    pub message: String,
}

/// All in which `found` differs from `wanted`. Members that `wanted` leaves out are not compared; lists are compared
/// whole.
pub fn differences(wanted: &Value, found: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("", wanted, found, &mut all);
    all
}

fn compare(path: &str, wanted: &Value, found: &Value, all: &mut Vec<Difference>) {
    let mut differs = |path: &str, message: String| all.push(Difference { path: clean(path), message });
    match (wanted, found) {
        (Value::Object(members), Value::Object(there)) => {
            for (name, wanted) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match there.get(name) {
                    Some(found) => compare(&path, wanted, found, all),
                    None => {
                        let near = nearest(name, there.keys().map(String::as_str));
                        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                        all.push(Difference {
                            path: clean(&path),
                            message: format!("a verdict has no such member{hint}"),
                        });
                    }
                }
            }
        }
        (Value::Array(items), Value::Array(there)) => {
            for n in 0..items.len().max(there.len()) {
                let path = format!("{path}[{n}]");
                match (items.get(n), there.get(n)) {
                    (Some(wanted), Some(found)) => compare(&path, wanted, found, all),
                    (wanted, found) => all.push(Difference {
                        path,
                        message: format!("wanted {}, found {}", shown(wanted), shown(found)),
                    }),
                }
            }
        }
        _ if same(wanted, found) => {}
        _ => differs(path, format!("wanted {}, found {}", shown(Some(wanted)), shown(Some(found)))),
    }
}

fn same(wanted: &Value, found: &Value) -> bool {
    match (wanted.as_f64(), found.as_f64()) {
        // A little more, for what is exactly as near in decimals.
        (Some(wanted), Some(found)) => (wanted - found).abs() <= NEAR + 1e-9,
        _ => wanted == found,
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or("nothing".to_owned(), |value| clean(&value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(wanted: &Value, found: &Value) -> Vec<String> {
        differences(wanted, found).iter().map(|d| format!("{}: {}", d.path, d.message)).collect()
    }

    #[test]
    fn what_is_left_out_is_not_compared_and_numbers_need_be_near() {
        let found = json!({"a": 33.33, "b": [{"c": 1, "d": 2}], "e": null});
        for wanted in [json!({}), json!({"a": 33.333_333}), json!({"b": [{"c": 1.004}]}), json!({"e": null})] {
            assert_eq!(lines(&wanted, &found), Vec::<String>::new(), "{wanted}");
        }
        assert_eq!(lines(&json!({"a": 33.34}), &found), ["a: wanted 33.34, found 33.33"]);
    }

    #[test]
    fn every_difference_is_named_with_its_place() {
        let found = json!({"status": "ACTIVE", "checks": [{"name": "a", "value": 1}, {"name": "b"}], "e": null});
        for (wanted, said) in [
            (json!({"status": "FAILED"}), "status: wanted \"FAILED\", found \"ACTIVE\""),
            (json!({"stauts": "ACTIVE"}), "stauts: a verdict has no such member; did you mean `status`?"),
            (json!({"zzz": 1}), "zzz: a verdict has no such member"),
            (json!({"checks": [{"value": 2}, {}]}), "checks[0].value: wanted 2, found 1"),
            (json!({"checks": [{}]}), "checks[1]: wanted nothing, found {\"name\":\"b\"}"),
            (json!({"checks": [{}, {}, {"name": "c"}]}), "checks[2]: wanted {\"name\":\"c\"}, found nothing"),
            (json!({"checks": {}}), "checks: wanted {}, found ["),
            (json!({"e": 0}), "e: wanted 0, found null"),
        ] {
            let lines = lines(&wanted, &found);
            assert!(lines.len() == 1 && lines[0].starts_with(said), "{wanted}: {lines:?}");
        }
    }
}
