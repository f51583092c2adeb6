//! Policies that misbehave while they run: each is stopped, told apart, and leaves nothing behind.

use super::*;
use std::fs;
use std::time::Instant;

/// The policy that misbehaves so, on a session of two agents.
fn misbehave(what: &str) -> Outcome {
    outcome(&judge_of(Ok(misbehaving(what).unwrap())), &session(2))
}

#[test]
fn a_policy_that_behaves_is_heard() {
    assert_eq!(misbehave("nothing"), Outcome::Verdict);
}

#[test]
fn an_endless_loop_is_ended_soon_after_its_limit() {
    let deadline = Duration::from_millis(300);
    let limits = Limits { deadline, ..Limits::default() };
    let judge = judge_of(load(MISBEHAVING_POLICY, r#"{"do":"loop"}"#, limits));
    let mut took = Vec::new();
    // On a busy machine a thread may sleep longer than it wants; not each time.
    for _ in 0..3 {
        let start = Instant::now();
        assert_eq!(outcome(&judge, &session(1)), Outcome::Deadline(deadline));
        took.push(start.elapsed());
    }
    assert!(took.iter().all(|took| *took >= deadline), "{took:?}");
    assert!(took.iter().any(|took| *took < 2 * deadline), "{took:?}");
    let text = Outcome::Deadline(deadline).to_string();
    assert_eq!(text, "it ran longer than its limit of 300ms");
}

#[test]
fn an_endless_look_at_settings_is_ended_too() {
    assert_eq!(misbehaving("loop-in-settings").err(), Some(Outcome::Deadline(Limits::default().load)));
}

#[test]
fn a_broken_policy_is_told_how_it_broke() {
    for (what, how) in [("panic", "panicked"), ("recurse", "deeply")] {
        let outcome = misbehave(what);
        let Outcome::Trap(why) = &outcome else { panic!("{what}: {outcome:?}") };
        assert!(why.contains(how) || (what == "recurse" && why.contains("stack is exhausted")), "{what}: {why}");
        assert_eq!(outcome.name(), "trap");
    }
}

#[test]
fn memory_is_limited() {
    let Limits { memory, .. } = Limits::default();
    match misbehave("grow") {
        Outcome::Memory { asked, limit } => assert!(limit == memory && asked > limit, "{asked} of {limit}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_may_decline_in_its_own_words() {
    assert_eq!(misbehave("decline"), Outcome::Declined("not today".into()));
}

/// wasmtime's error for this has no type of its own, and is known by its text.
#[test]
fn an_answer_of_any_size_does_not_fill_this_process() {
    // Enough for the policy to make such an answer at all.
    let limits = Limits { memory: 64 << 20, deadline: Duration::from_secs(10), ..Limits::default() };
    for what in ["long-text", "many-rows"] {
        let judge = judge_of(load(MISBEHAVING_POLICY, &format!(r#"{{"do":"{what}"}}"#), limits));
        assert_eq!(outcome(&judge, &session(2)), Outcome::Flood(limits.result), "{what}");
    }
}

#[test]
fn a_verdict_that_cannot_be_true_is_refused_and_says_what() {
    for (what, named) in [
        ("nan", "cpu-percent is NaN"),
        ("infinity", "value is inf"),
        ("negative", "total threads is -1"),
        ("score-101", "score 101"),
        ("one-agent-more", "it has 3 agents, the facts have 2"),
        ("wrong-counts", "it counts 1 failed agents where its own list has 0"),
        ("advice-for-nobody", "advice for agent 2 of 2"),
        ("many-checks", "65 checks; 64 are allowed"),
    ] {
        let outcome = misbehave(what);
        let Outcome::BadVerdict(why) = &outcome else { panic!("{what}: {outcome:?}") };
        assert!(why.contains(named), "{what}: {why}");
    }
}

#[test]
fn settings_that_a_policy_refuses_are_named() {
    let problem = SettingsProblem { path: "/do".into(), message: "not this".into() };
    let outcome = misbehaving("refuse-settings").err().unwrap();
    assert_eq!(outcome, Outcome::BadSettings(vec![problem]));
    assert_eq!(outcome.to_string(), "its settings are wrong: /do: not this");
    let outcome = builtin(r#"{"stall_afer":"10m"}"#).err().unwrap();
    assert!(outcome.to_string().contains("stall_after"), "{outcome}");
}

#[test]
fn after_each_failure_the_next_judgement_is_sound() {
    let healthy = judge_of(builtin(""));
    let facts = session(3);
    let before = healthy.judge(&facts).verdict.unwrap();
    for what in ["panic", "recurse", "grow", "decline", "long-text", "nan", "one-agent-more"] {
        let bad = judge_of(misbehaving(what));
        assert_ne!(outcome(&bad, &facts), Outcome::Verdict);
        assert_ne!(outcome(&bad, &facts), Outcome::Verdict, "the same policy once more");
        let after = healthy.judge(&facts).verdict.unwrap();
        assert_eq!(format!("{before:?}"), format!("{after:?}"), "after {what}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_judgements_leave_no_memory_behind() {
    if !alone("judge::tests::misbehaviour::a_thousand_judgements_leave_no_memory_behind") {
        return;
    }
    let resident_pages = || -> u64 {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let (sound, broken) = (judge_of(builtin("")), judge_of(misbehaving("panic")));
    let facts = session(100);
    let round = || {
        sound.judge(&facts);
        broken.judge(&facts);
    };
    (0..20).for_each(|_| round());
    let before = resident_pages();
    (0..500).for_each(|_| round());
    // A single leaked store would be 48 KiB at the least, so 48 MiB in all.
    let grown = resident_pages().saturating_sub(before) * 4;
    assert!(grown < 16 << 10, "{grown} KiB more than before");
}
