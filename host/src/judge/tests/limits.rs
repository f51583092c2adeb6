//! Each limit against a policy that fails because of it alone: with a higher limit the same policy judges, or runs as much
//! longer.

use super::*;
use headcount_tests::misbehaving::*;
use std::time::Instant;

const MIB: usize = 1 << 20;

/// The policy's first judgement of a session, or why it was not loaded.
fn judged(bytes: &[u8], limits: Limits, agents: usize) -> Outcome {
    load(bytes, "", limits).map_or_else(|refused| refused, |policy| outcome(&judge_of(Ok(policy)), &session(agents)))
}

/// How a misbehaving policy fares under `limits`, on a session of two agents.
fn misbehaved(what: &str, limits: Limits) -> Outcome {
    let settings = format!(r#"{{"do":"{what}"}}"#);
    outcome(&judge_of(load(MISBEHAVING_POLICY, &settings, limits)), &session(2))
}

/// What holds after any failure.
fn others_are_well() {
    let healthy = judge_of(builtin(""));
    assert_eq!(outcome(&healthy, &session(3)), Outcome::Verdict);
}

/// Limits of which starting, describing and looking at settings may take so long.
fn starting_within(load: Duration) -> Limits {
    Limits { load, ..Limits::default() }
}

/// Holds that `run` is ended by its deadline: soon after a short one, and not before one that is ten times as long.
fn ends_at_its_deadline(name: &str, run: impl Fn(Duration) -> Outcome) {
    let short = Duration::from_millis(100);
    let timed = |deadline| {
        let start = Instant::now();
        assert_eq!(run(deadline), Outcome::Deadline(deadline), "{name}");
        start.elapsed()
    };
    // On a busy machine a thread may sleep longer than it wants; not each time.
    let took: Vec<_> = (0..4).map(|_| timed(short)).collect();
    assert!(took.iter().all(|took| *took >= short), "{name}: {took:?}");
    assert!(took.iter().any(|took| *took < 2 * short), "{name}: {took:?}");
    assert!(timed(10 * short) >= 10 * short, "{name}");
    assert!(Outcome::Deadline(short).to_string().ends_with("its limit of 100ms"));
    others_are_well();
}

#[test]
fn a_policy_written_by_hand_judges() {
    let policy = load(HONEST, "", Limits::default()).unwrap();
    assert_eq!((policy.description.name.as_str(), policy.description.version.as_str()), ("hand-written", "1"));
    let judgement = judge_of(Ok(policy)).judge(&session(40));
    let verdict = judgement.verdict.unwrap();
    assert_eq!((verdict.agents.len(), verdict.totals.active, verdict.health), (40, 40, Health::Healthy));
}

#[test]
fn a_policy_that_never_starts_is_ended_in_time() {
    ends_at_its_deadline("start", |deadline| judged(LOOP_IN_START, starting_within(deadline), 1));
}

#[test]
fn a_policy_that_never_describes_itself_is_ended_in_time() {
    ends_at_its_deadline("describe", |deadline| judged(LOOP_IN_DESCRIBE, starting_within(deadline), 1));
}

#[test]
fn a_policy_that_never_judges_is_ended_in_time() {
    let policies = [("realloc", LOOP_IN_REALLOC), ("post-return", LOOP_IN_POST_RETURN)];
    for (name, bytes) in policies {
        ends_at_its_deadline(name, |deadline| judged(bytes, Limits { deadline, ..Limits::default() }, 1));
    }
}

#[test]
fn a_slow_policy_judges_if_its_deadline_allows() {
    let within = |deadline| misbehaved("slow", Limits { deadline, ..Limits::default() });
    // On a busy machine it may be through before anybody has looked at its deadline; not each time.
    assert!((0..4).any(|_| within(TICK) == Outcome::Deadline(TICK)));
    assert_eq!(within(Duration::from_secs(60)), Outcome::Verdict);
    others_are_well();
}

/// Holds that the policy, which takes 30 MiB beside the at most 2 that it begins with, judges only where it may have them.
fn is_held_to_its_memory(bytes: &[u8]) {
    let limits = Limits { memory: 20 * MIB, ..patient() };
    let outcome = judged(bytes, limits, 2);
    let Outcome::Memory { asked, limit } = outcome else { panic!("{outcome:?}") };
    assert!(limit == 20 * MIB && (30 * MIB..=32 * MIB).contains(&asked), "{outcome:?}");
    assert!(outcome.to_string().ends_with("its limit is 20MiB"), "{outcome}");
    assert_eq!(judged(bytes, patient(), 2), Outcome::Verdict);
    others_are_well();
}

#[test]
fn memory_that_grows_is_limited() {
    is_held_to_its_memory(GROW);
}

#[test]
fn memory_is_limited_in_all() {
    is_held_to_its_memory(COMPOSED);
}

#[test]
fn memory_that_is_there_from_the_start_is_limited() {
    is_held_to_its_memory(BEGIN_LARGE);
}

#[test]
fn memory_that_is_used_is_limited() {
    let limits = Limits { memory: 20 * MIB, ..patient() };
    let outcome = misbehaved("grow-20", limits);
    assert!(matches!(outcome, Outcome::Memory { limit, .. } if limit == limits.memory), "{outcome:?}");
    assert_eq!(misbehaved("grow-20", Limits { memory: 30 * MIB, ..limits }), Outcome::Verdict);
    others_are_well();
}

#[test]
fn tables_are_limited_in_all() {
    assert_eq!(judged(COMPOSED, patient(), 2), Outcome::Verdict);
    // Three times 10 000 elements are allowed in each of its tables, but not in both.
    let outcome = judged(COMPOSED, patient(), 3);
    assert!(matches!(&outcome, Outcome::Trap(why) if why.contains("table") && why.contains("40000")), "{outcome:?}");
    others_are_well();
}

#[test]
fn a_policy_of_too_many_memories_is_refused() {
    let outcome = judged(NINE_MEMORIES, Limits::default(), 2);
    assert!(matches!(&outcome, Outcome::NotAPolicy(why) if why.contains("memories")), "{outcome:?}");
    others_are_well();
}

#[test]
fn the_stack_is_limited_wherever_it_lies() {
    let outcome = judged(RECURSE, patient(), 2);
    assert_eq!(outcome, Outcome::Trap("it called itself too deeply".into()));
    others_are_well();
}

#[test]
fn an_answer_counts_as_often_as_it_is_copied() {
    let limits = patient();
    assert_eq!(judged(ALIASED_TEXT, limits, 2), Outcome::Flood(limits.result));
    assert_eq!(judged(ALIASED_TEXT, Limits { result: 10 * limits.result, ..limits }, 2), Outcome::Verdict);
    assert_eq!(Outcome::Flood(limits.result).to_string(), "its answer was larger than its limit of 32MiB");
    // Two million rows in the memory of 10 000; those of two agents are few enough to be counted.
    assert_eq!(judged(ALIASED_LISTS, limits, 200), Outcome::Flood(limits.result));
    let outcome = judged(ALIASED_LISTS, limits, 2);
    assert!(
        matches!(&outcome, Outcome::BadVerdict(why) if why.contains("10000 checks; 64 are allowed")),
        "{outcome:?}"
    );
    others_are_well();
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.wasm");
    let file = std::fs::File::create(&path).unwrap();
    let refused = |length: u64| {
        file.set_len(length).unwrap();
        let refused = Policy::load_file(&runtime(), &path, "", Limits::default()).err().unwrap();
        let LoadError::Policy { outcome: Outcome::NotAPolicy(why), .. } = refused else { panic!("{refused}") };
        why
    };
    assert_eq!(refused((64 << 20) + 1), "its file cannot be read: is larger than 64 MiB");
    // One of zeros that is smaller is read, and is no policy for another reason.
    assert_eq!(refused(1 << 20), "wanted a WebAssembly component, found something else");
}

/// The memory of this process at its highest, bytes.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_stays_near_the_limits() {
    const NAME: &str = "judge::tests::limits::this_process_stays_near_the_limits";
    if !alone(NAME) {
        return;
    }
    let Limits { memory, result, .. } = patient();
    for what in ["nothing", "grow"].into_iter().cycle().take(4) {
        misbehaved(what, patient());
    }
    let grown = peak();
    assert!(grown < memory + 64 * MIB, "{} MiB after memory was refused", grown / MIB);
    judged(ALIASED_LISTS, patient(), 200);
    judged(ALIASED_TEXT, patient(), 2);
    let flooded = peak() - grown;
    assert!(flooded < 2 * result, "{} MiB more after large answers", flooded / MIB);
}
