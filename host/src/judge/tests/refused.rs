//! Components that are no policies of this version, and policies whose answers cannot be read.

use super::*;
use headcount_tests::misbehaving::*;

fn refusal(bytes: &[u8]) -> Outcome {
    load(bytes, "", Limits::default()).err().expect("it is refused")
}

#[test]
fn a_policy_for_a_later_patch_judges() {
    let judge = judge_of(load(PATCH, "", Limits::default()));
    assert_eq!(outcome(&judge, &session(2)), Outcome::Verdict);
}

#[test]
fn a_policy_for_another_version_is_told_both() {
    for (bytes, version) in [(NEXT_VERSION, "@0.2.0"), (PRE_RELEASE, "@0.1.1-rc.1")] {
        let outcome = refusal(bytes);
        let Outcome::WrongVersion(why) = &outcome else { panic!("{outcome:?}") };
        assert!(why.contains("wanted headcount:policy/policy@0.1.0") && why.contains(&format!("{version}:")), "{why}");
    }
}

#[test]
fn a_record_that_has_grown_is_another_interface() {
    let outcome = refusal(ADDED_FIELD);
    let Outcome::WrongVersion(why) = &outcome else { panic!("{outcome:?}") };
    assert!(why.contains("another shape") && why.contains("2 fields, found 3"), "{why}");
}

#[test]
fn whatever_a_policy_asks_for_is_named() {
    let outcome = refusal(ADDED_IMPORT);
    assert!(
        matches!(&outcome, Outcome::NotAPolicy(why) if why.starts_with("wanted a policy without imports, found now; ")),
        "{outcome:?}"
    );
    let outcome = refusal(WASI_IMPORTS);
    let Outcome::NotAPolicy(why) = &outcome else { panic!("{outcome:?}") };
    assert!(why.contains("found wasi:io/poll@0.2.6, wasi:cli/environment@0.2.6; "), "{why}");
    assert!(why.contains("wasm32-unknown-unknown"), "{why}");
}

#[test]
fn a_module_that_is_no_component_yet_is_told_how_it_becomes_one() {
    // The header of a core module before what follows that of a component.
    let module = [b"\0asm\x01\0\0\0", &HONEST[8..]].concat();
    let outcome = refusal(&module);
    let said = |why: &str| why.contains("found a core module") && why.contains("wasm-tools component new");
    assert!(matches!(&outcome, Outcome::NotAPolicy(why) if said(why)), "{outcome:?}");
}

#[test]
fn a_file_that_ends_early_is_damaged_wherever_it_ends() {
    for length in (8..HONEST.len()).step_by(97) {
        let outcome = refusal(&HONEST[..length]);
        assert!(matches!(outcome, Outcome::NotAPolicy(_)), "{length} bytes: {outcome:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_a_bad_verdict() {
    for (bytes, said) in [(BROKEN_TEXT, "utf-8"), (BROKEN_ENUM, "discriminant"), (BROKEN_LIST, "out of bounds")] {
        let judge = judge_of(load(bytes, "", Limits::default()));
        for _ in 0..2 {
            let outcome = outcome(&judge, &session(1));
            assert!(matches!(&outcome, Outcome::BadVerdict(why) if why.contains(said)), "{said}: {outcome:?}");
        }
    }
}

/// Neither has come to a verdict yet.
#[test]
fn what_cannot_be_read_before_the_verdict_is_a_broken_policy() {
    for (name, bytes) in [("description", BROKEN_DESCRIPTION), ("realloc", BROKEN_REALLOC)] {
        let outcome = refusal(bytes);
        assert!(matches!(&outcome, Outcome::Trap(_)), "{name}: {outcome:?}");
    }
}

#[test]
fn a_policy_that_breaks_on_one_session_judges_the_others() {
    let settings = r#"{"do":"panic-on-two"}"#;
    let judge = judge_of(load(MISBEHAVING_POLICY, settings, Limits::default()));
    let healthy = judge_of(builtin(""));
    for agents in [2, 3, 2, 2, 0, 1, 2] {
        let expected = if agents == 2 { "trap" } else { "verdict" };
        assert_eq!(outcome(&judge, &session(agents)).name(), expected, "{agents} agents");
        assert_eq!(outcome(&healthy, &session(agents)), Outcome::Verdict);
    }
}

#[test]
fn every_figure_and_count_of_a_verdict_is_checked() {
    for (what, said) in [
        ("nan-since", "agent a-0: since is NaN"),
        ("nan-value", "check c: value is NaN"),
        ("nan-limit", "check c: limit is NaN"),
        ("agent-score-101", "agent a-0: score 101"),
        ("one-agent-less", "it has 1 agents, the facts have 2"),
        ("no-agents", "it has 0 agents, the facts have 2"),
        ("empty", "health is empty with 2 agents"),
        ("dead-and-active", "agent a-0: it is dead and active"),
        ("much-advice", "1000 advices for 2 agents"),
        ("too-many-waiting", "more agents waiting or unmeasured"),
        ("too-many-unmeasured", "more agents waiting or unmeasured"),
    ] {
        let outcome = outcome(&judge_of(misbehaving(what)), &session(2));
        assert!(matches!(&outcome, Outcome::BadVerdict(why) if why.contains(said)), "{what}: {outcome:?}");
    }
}

#[test]
fn texts_are_kept_no_longer_than_anybody_shows_them() {
    let judgement = judge_of(misbehaving("long-reasons")).judge(&session(2));
    let lengths: Vec<_> = judgement.verdict.unwrap().agents.iter().map(|agent| agent.reason.len()).collect();
    assert_eq!(lengths, [4096, 4096]);
}
