//! Any facts and settings whatever are judged in the sandbox as they are natively, and the host accepts what is said of them.

#[path = "../../../../guest/tests/arbitrary/mod.rs"]
mod arbitrary;

use super::cases::{plain, snapshot};
use super::*;
use headcount_policy as native;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Values for a setting, of which the `n`th is taken: numbers in its range, durations or sizes as its default.
fn value(setting: &Value, n: u64) -> Value {
    let among = |texts: &[&str]| texts[n as usize % texts.len()].into();
    match (setting["minimum"].as_u64(), setting["maximum"].as_u64()) {
        (Some(least), Some(most)) => (least + n % (most - least + 1)).into(),
        _ if setting["default"].as_str().unwrap().ends_with('B') => {
            among(&["1B", "900KiB", "50MiB", "3GiB", "1024TiB"])
        }
        _ => among(&["1s", "1500ms", "90s", "10m", "49h", "7000d", "never"]),
    }
}

/// Settings that the policy takes. Of those that contradict each other, the ones it names are left out.
fn settings() -> impl Strategy<Value = String> {
    let schema: Value = serde_json::from_str(&native::describe().settings_schema).unwrap();
    let known: Vec<_> = schema["properties"].as_object().unwrap().clone().into_iter().collect();
    vec((any::<prop::sample::Index>(), any::<u64>()), 0..8).prop_map(move |chosen| {
        let set = |(index, n): (prop::sample::Index, u64)| {
            let (name, setting) = index.get(&known);
            (name.clone(), value(setting, n))
        };
        let mut settings: Map<_, _> = chosen.into_iter().map(set).collect();
        loop {
            let json = Value::Object(settings.clone()).to_string();
            let problems = native::validate_settings(&json);
            if problems.is_empty() {
                return json;
            }
            assert!(problems.iter().all(|p| settings.remove(&p.path[1..]).is_some()), "{json}: {problems:?}");
        }
    })
}

proptest! {
    #[test]
    fn whatever_is_seen_is_judged_in_the_sandbox_as_it_is_natively(
        facts in arbitrary::facts(0..=40), settings in settings()
    ) {
        let expected = native::judge(&facts, None, &settings).unwrap();
        let judgement = judge_of(load(BUILTIN, &settings, patient())).judge(&snapshot(&facts));
        prop_assert_eq!(&judgement.policies[0].outcome, &Outcome::Verdict);
        prop_assert_eq!(plain(&judgement.verdict.unwrap()), plain(&expected));
    }
}
