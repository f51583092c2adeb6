//! The policies to learn from. What each says of which facts stands in `tests/policies`; here is what all have in common.

use super::*;
use headcount_tests::{BUDGET_POLICY, LEAK_POLICY, NIGHT_WATCH_POLICY};

/// Each with settings that it takes.
const EXAMPLES: [(&[u8], &str); 3] = [
    (BUDGET_POLICY, r#"{"memory_gb":0.001,"tokens_millions":1}"#),
    (NIGHT_WATCH_POLICY, r#"{"after_minutes":5}"#),
    (LEAK_POLICY, r#"{"ceiling_gb":4}"#),
];

#[test]
fn they_stand_behind_another_policy_and_say_so_where_there_is_none() {
    for (example, settings) in EXAMPLES {
        let declined = outcome(&judge_of(load(example, settings, Limits::default())), &session(2));
        assert_eq!(declined, Outcome::Declined("it needs the verdict of a policy before it".into()));
    }
}

#[test]
fn they_add_to_a_verdict_and_it_stays_sound() {
    let mut policies = vec![builtin("")];
    policies.extend(EXAMPLES.map(|(example, settings)| load(example, settings, Limits::default())));
    let facts = session(9);
    let before = judge_of(builtin("")).judge(&facts).verdict.unwrap();
    let judgement = chain(policies).judge(&facts);
    assert!(judgement.policies.iter().all(|policy| policy.outcome == Outcome::Verdict), "{:?}", judgement.policies);
    let after = judgement.verdict.unwrap();
    // Nothing is known of these agents' memory and tokens, which costs nothing.
    let added: Vec<_> = after.checks[before.checks.len()..].iter().map(|c| (c.name.as_str(), c.outcome)).collect();
    assert_eq!(added, [("memory-budget", CheckOutcome::Unknown), ("token-budget", CheckOutcome::Unknown)]);
    assert_eq!((after.health, after.score), (before.health, before.score));
    assert_eq!(format!("{:?}", after.agents), format!("{:?}", before.agents));
}

#[test]
fn their_settings_are_as_their_schemas_say() {
    for (example, settings) in EXAMPLES {
        let description = load(example, settings, Limits::default()).unwrap().description;
        let schema: serde_json::Value = serde_json::from_str(&description.settings_schema).unwrap();
        for name in schema["properties"].as_object().unwrap().keys() {
            assert!(load(example, &format!(r#"{{"{name}":1}}"#), Limits::default()).is_ok(), "{name}");
            for wrong in ["0", "-1", "1000001", "\"1\"", "true", "null", "[1]", "{\"a\":1}"] {
                let problem = SettingsProblem {
                    path: format!("/{name}"),
                    message: "must be a number above 0 and at most 1000000".into(),
                };
                let refused = load(example, &format!(r#"{{"{name}":{wrong}}}"#), Limits::default()).err();
                assert_eq!(refused, Some(Outcome::BadSettings(vec![problem])), "{name}: {wrong}");
            }
        }
    }
}

#[test]
fn what_is_no_object_is_no_settings() {
    let not_an_object = SettingsProblem { path: String::new(), message: "must be a JSON object".into() };
    for wrong in
        ["[]", "1", "{", "{}}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":1 \"b\":2}", "{\"\\u12\":1}", " ", "nul"]
    {
        let refused = load(LEAK_POLICY, wrong, Limits::default()).err();
        assert_eq!(refused, Some(Outcome::BadSettings(vec![not_an_object.clone()])), "{wrong}");
    }
    assert!(load(LEAK_POLICY, " { \"mb_per_minute\" : 2.5e1 } ", Limits::default()).is_ok());
    let escaped = load(LEAK_POLICY, r#"{"\u006d\ud83d\ude00\n~/":[{}]}"#, Limits::default()).err().unwrap();
    assert!(matches!(&escaped, Outcome::BadSettings(p) if p[0].path == "/m😀 ~0~1"), "{escaped:?}");
}

/// The host looks for the mark in the policy's memory, and must find nothing else there.
#[test]
fn the_mark_before_the_text_of_a_panic_stands_in_each_once() {
    let policies = EXAMPLES.map(|(example, _)| example).into_iter().chain([MISBEHAVING_POLICY]);
    for policy in policies {
        assert_eq!(policy.windows(16).filter(|bytes| *bytes == b"headcount-panic\0").count(), 1);
    }
}
