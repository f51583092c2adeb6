//! The shared cases: what is said of each.

use headcount_policy::{SessionVerdict, cases, describe, judge, validate_settings};

/// A verdict in one line: health and score, then each agent's activity, status and score.
fn line(verdict: &SessionVerdict) -> String {
    let agents =
        verdict.agents.iter().map(|agent| format!(", {:?} {:?} {}", agent.activity, agent.status, agent.score));
    format!("{:?} {}{}", verdict.health, verdict.score, agents.collect::<String>())
        .replace("Activity::", "")
        .replace("Status::", "")
        .replace("Health::", "")
}

#[test]
fn each_case_is_judged_as_it_should() {
    let expected = include_str!("cases.txt");
    let mut actual = String::new();
    for (name, facts, settings) in cases::all() {
        if facts.agents.len() > 3 {
            continue;
        }
        let verdict = judge(&facts, None, &settings).map_or_else(|error| error, |verdict| line(&verdict));
        actual.push_str(&format!("{name}: {verdict}\n"));
    }
    assert_eq!(actual, expected, "{actual}");
}

#[test]
fn names_are_unique_and_a_crowd_has_every_kind() {
    let mut names: Vec<_> = cases::all().into_iter().map(|(name, ..)| name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    let totals = judge(&cases::crowd(40), None, "").expect("no settings").totals;
    assert_eq!((totals.active, totals.degraded, totals.waiting), (38, 2, 4));
}

#[test]
fn a_judgement_refuses_what_the_validation_refuses() {
    for (name, facts, settings) in cases::all() {
        assert_eq!(judge(&facts, None, &settings).is_err(), !validate_settings(&settings).is_empty(), "{name}");
    }
}

#[test]
fn the_description_names_the_crate_version() {
    let description = describe();
    assert_eq!((description.name.as_str(), description.version.as_str()), ("built-in", env!("CARGO_PKG_VERSION")));
    assert!(description.settings_schema.starts_with('{') && !description.summary.is_empty());
}
