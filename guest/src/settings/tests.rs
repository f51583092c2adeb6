//! Reading, refusing, the schema.

use super::*;
use proptest::prelude::*;

/// The only problem of `json`.
fn refusal(json: &str) -> (String, String) {
    let mut problems = Settings::parse(json).expect_err("accepted");
    assert_eq!(problems.len(), 1, "{problems:?}");
    let Problem { path, message } = problems.remove(0);
    (path, message)
}

fn is(path: &str, message: &str) -> (String, String) {
    (path.to_owned(), message.to_owned())
}

/// An object of every setting with its default.
fn defaults() -> String {
    let pairs: Vec<_> = KEYS.iter().map(|key| format!("\"{}\":{}", key.name, key.kind.write(key.default))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[test]
fn nothing_given_means_the_defaults() {
    for json in ["", "{}", " {} ", &defaults()] {
        assert_eq!(Settings::parse(json), Ok(Settings::default()), "{json}");
    }
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let defaults = Settings::default();
    assert_eq!((defaults.stall_after, defaults.idle_after), (600_000, 30_000));
    assert_eq!((defaults.failed_share, defaults.degraded_share), (50, 30));
    assert_eq!(defaults.waiting_too_long_fail, NEVER);
    assert!(KEYS.iter().all(|key| key.range.contains(&key.default)));
}

#[test]
fn durations_and_sizes_have_units() {
    let read = |json: &str| Settings::parse(json).expect("refused");
    assert_eq!(read(r#"{"stall_after":"1500ms"}"#).stall_after, 1500);
    assert_eq!(read(r#"{"stall_after":"90s"}"#).stall_after, 90_000);
    assert_eq!(read(r#"{"stall_after":"2h"}"#).stall_after, 7_200_000);
    assert_eq!(read(r#"{"stall_after":"2d"}"#).stall_after, 172_800_000);
    assert_eq!(read(r#"{"stall_after":"never"}"#).stall_after, NEVER);
    assert_eq!(read(r#"{"memory_high_fail":"12GiB"}"#).memory_high_fail, 12 << 30);
    assert_eq!(read(r#"{"memory_high_warn":"512MiB"}"#).memory_high_warn, 512 << 20);
}

#[test]
fn what_cannot_be_read_is_refused_with_what_was_wanted_and_found() {
    let duration = r#"wanted a duration such as "90s" or "10m" from "1s" to "never", found"#;
    for (given, found) in [
        ("600", "600"),
        ("\"10\"", "\"10\""),
        ("\"m\"", "\"m\""),
        ("\"1.5h\"", "\"1.5h\""),
        ("\"-1m\"", "\"-1m\""),
        ("\"10 m\"", "\"10 m\""),
        ("\"99999999999999999999d\"", "\"99999999999999999999d\""),
        ("\"18446744073709551615d\"", "\"18446744073709551615d\""),
        ("\"999ms\"", "\"999ms\""),
        ("\"\\u001b[2Jx\"", "\"x\""),
        ("null", "null"),
        ("[1]", "an array"),
        ("{}", "an object"),
    ] {
        assert_eq!(
            refusal(&format!("{{\"stall_after\":{given}}}")),
            is("/stall_after", &format!("{duration} {found}"))
        );
    }
    assert_eq!(
        refusal(r#"{"thread_count_weight":101}"#),
        is("/thread_count_weight", "wanted a whole number from 0 to 100, found 101")
    );
    assert_eq!(
        refusal(r#"{"known_weight":49}"#),
        is("/known_weight", "wanted a whole number from 50 to 100, found 49")
    );
    assert_eq!(
        refusal(r#"{"memory_high_warn":"2PiB"}"#),
        is("/memory_high_warn", r#"wanted a size such as "512MiB" or "8GiB" from "1B" to "1024TiB", found "2PiB""#)
    );
}

#[test]
fn other_things_than_objects_are_refused() {
    assert_eq!(refusal("[]"), is("", "wanted an object, found an array"));
    assert_eq!(refusal("7"), is("", "wanted an object, found 7"));
    let (path, message) = refusal("{");
    assert!(path.is_empty() && message.starts_with("not JSON: "), "{message}");
    assert!(refusal(&"[".repeat(100_000)).1.starts_with("not JSON: "));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    assert_eq!(refusal(r#"{"stall_afer":1}"#), is("/stall_afer", "unknown setting; did you mean `stall_after`?"));
    assert_eq!(refusal(r#"{"stall-after":1}"#), is("/stall-after", "unknown setting; did you mean `stall_after`?"));
    assert_eq!(refusal(r#"{"a/b~c":1}"#).0, "/a~1b~0c");
    assert_eq!(refusal(r#"{"memory_gb":1}"#), is("/memory_gb", "unknown setting"), "near to nothing");
    let long = "x".repeat(1_000_000);
    assert_eq!(refusal(&format!("{{\"{long}\":1}}")), is(&format!("/{}…", "x".repeat(200)), "unknown setting"));
}

#[test]
fn a_warning_may_not_come_after_the_failure() {
    assert_eq!(
        refusal(r#"{"fd_near_limit_warn":95,"fd_near_limit_fail":90}"#),
        is("/fd_near_limit_warn", "fd_near_limit_warn 95 is above fd_near_limit_fail 90")
    );
    assert_eq!(
        refusal(r#"{"memory_high_fail":"2GiB"}"#),
        is("/memory_high_fail", "memory_high_warn \"4GiB\" is above memory_high_fail \"2GiB\", one of them by default")
    );
    assert!(Settings::parse(r#"{"memory_high_fail":"4GiB"}"#).is_ok());
}

#[test]
fn every_check_with_two_limits_has_both() {
    let checks = |end: &str| KEYS.iter().filter_map(|key| key.name.strip_suffix(end)).collect::<Vec<_>>();
    assert_eq!(checks("_warn"), checks("_fail"));
    assert!(checks("_warn").contains(&"waiting_too_long"));
}

#[test]
fn all_problems_are_told_in_the_order_of_their_paths_on_one_line() {
    let json = r#"{"thread_count_fail":0,"idle_after":30,"zzz":1}"#;
    let problems = Settings::parse(json).expect_err("accepted");
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["/idle_after", "/thread_count_fail", "/zzz"]);
    let line = one_line(&problems);
    assert!(line.starts_with("settings refused: /idle_after: wanted a duration"), "{line}");
    assert!(!line.contains('\n') && line.contains("; /thread_count_fail: wanted"), "{line}");
    assert_eq!(
        one_line(&Settings::parse("[]").expect_err("accepted")),
        "settings refused: wanted an object, found an array"
    );
}

#[test]
fn the_schema_describes_every_setting() {
    let schema: Value = serde_json::from_str(&schema()).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], false);
    let properties = schema["properties"].as_object().expect("properties");
    assert_eq!(properties.len(), KEYS.len());
    for key in KEYS {
        let property = &properties[key.name];
        assert!(
            property["description"].as_str().is_some_and(|about| about.len() > 20 && about.ends_with('.')),
            "{property}"
        );
        assert_eq!(key.kind.read(&property["default"]), Some(key.default), "{property}");
        assert_eq!(fits(property, &property["default"]), Ok(()));
    }
}

/// Whether `value` is as `property` of the schema wants it; of JSON schema's words it knows those that the schema uses.
fn fits(property: &Value, value: &Value) -> Result<(), String> {
    for (word, wanted) in property.as_object().expect("a property is an object") {
        let fits = match word.as_str() {
            "type" => {
                if wanted == "string" {
                    value.is_string()
                } else {
                    value.is_u64()
                }
            }
            "minimum" => value.as_u64() >= wanted.as_u64(),
            "maximum" => value.as_u64() <= wanted.as_u64(),
            "pattern" => matches(wanted.as_str().unwrap_or_default(), value.as_str().unwrap_or_default()),
            "description" | "default" => true,
            other => return Err(format!("unknown word {other}")),
        };
        if !fits {
            return Err(format!("{word} {wanted} refuses {value}"));
        }
    }
    Ok(())
}

/// Matches `^([0-9]+(a|b|c)|never)$` with any units and with or without `never`.
fn matches(pattern: &str, text: &str) -> bool {
    let inner =
        pattern.strip_prefix("^([0-9]+(").and_then(|rest| rest.strip_suffix(")$")).expect("the pattern's shape");
    let (units, rest) = inner.split_once(')').expect("the pattern's shape");
    let unit = text.trim_start_matches(|char: char| char.is_ascii_digit());
    (unit.len() < text.len() && units.split('|').any(|it| it == unit))
        || rest.split('|').any(|word| !word.is_empty() && word == text)
}

proptest! {
    // As WebAssembly there are no files in which failures could be kept.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A slip of a finger in any key: one letter left out, doubled or changed.
    #[test]
    fn every_misspelt_key_is_refused_with_the_nearest(index in 0..KEYS.len(), at in 0_usize..100, slip in 0..3) {
        let name = KEYS[index].name;
        let at = at % name.len();
        let (before, after) = name.split_at(at);
        let misspelt = match slip {
            0 => format!("{before}{}", &after[1..]),
            1 => format!("{before}{}{after}", &after[..1]),
            _ => format!("{before}Q{}", &after[1..]),
        };
        let nearest = format!("unknown setting; did you mean `{name}`?");
        prop_assert_eq!(refusal(&format!("{{\"{misspelt}\":1}}")), (format!("/{misspelt}"), nearest));
    }

    /// Whatever is written is read as the same, and fits the schema.
    #[test]
    fn values_survive_writing(index in 0..KEYS.len(), value: u64) {
        let key = &KEYS[index];
        let (from, to) = (*key.range.start(), *key.range.end());
        let value = from + value % (to - from);
        let json: Value = serde_json::from_str(&key.kind.write(value)).expect("JSON");
        prop_assert_eq!(key.kind.read(&json), Some(value));
        let schema: Value = serde_json::from_str(&schema()).expect("JSON");
        prop_assert_eq!(fits(&schema["properties"][key.name], &json), Ok(()));
    }

    #[test]
    fn no_text_makes_it_panic(json in any::<String>(), key in any::<String>(), value in any::<String>()) {
        let _ = Settings::parse(&json);
        let object = serde_json::json!({ key: value.clone(), "stall_after": value });
        prop_assert!(Settings::parse(&object.to_string()).is_err());
    }
}
