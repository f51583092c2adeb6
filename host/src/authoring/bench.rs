//! What a policy costs: rounds in which it and the built-in policy judge the same facts in turn.

use super::trial::{builtin, bytes};
use crate::clock::Clock;
use crate::judge::{Evaluation, Judge, LoadError, Outcome, Place, Policy, Runtime};
use crate::observe::facts::Snapshot;
use crate::report::no_verdict;
use crate::setup::Setup;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Rounds that are not counted: the first ones pay for what is there afterwards.
const WARM_UP: u32 = 20;

/// What a policy was found to cost.
#[derive(Debug, Serialize)]
pub struct Costs {
    /// `headcount.policy-bench/1`.
    pub schema: &'static str,
    /// The policy's name.
    pub policy: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its file.
    pub digest: String,
    /// Agents of the session that was judged.
    pub agents: usize,
    /// Rounds that were counted.
    pub rounds: u32,
    /// Loading it, microseconds.
    pub load_micros: LoadTimes,
    /// One judgement of it, microseconds.
    pub micros: Times,
    /// One judgement of the built-in policy, microseconds.
    pub builtin_micros: Times,
    /// How many times as long as the built-in policy it took: the median of all rounds. It also gets that one's verdict,
    /// which takes its time to hand over: the built-in policy itself, measured so, has a ratio above 1. Null where that one
    /// did not come to a verdict each time: what it took until it failed is no measure.
    pub ratio: Option<f64>,
    /// The most memory that it had, bytes.
    pub memory_bytes: usize,
    /// How its judgements ended, and how often.
    pub outcomes: BTreeMap<&'static str, u32>,
    /// What went wrong the last time that it came to no verdict.
    pub detail: Option<String>,
    /// How the judgements of the built-in policy ended, and how often.
    pub builtin_outcomes: BTreeMap<&'static str, u32>,
    /// What this process's own resident memory grew by over the rounds, bytes; null where that cannot be read.
    pub resident_growth_bytes: Option<i64>,
}

impl Costs {
    /// Whether both policies came to a verdict each time.
    pub fn is_well(&self) -> bool {
        [&self.outcomes, &self.builtin_outcomes].into_iter().all(all_verdicts)
    }
}

/// Whether a policy came to nothing but verdicts.
pub fn all_verdicts(outcomes: &BTreeMap<&'static str, u32>) -> bool {
    outcomes.keys().all(|&outcome| outcome == Outcome::Verdict.name())
}

/// What loading a policy takes.
#[derive(Debug, Serialize)]
pub struct LoadTimes {
    /// The first time, when it has to be compiled.
    pub compiled_anew: u64,
    /// Once more, when what was compiled is there.
    pub compiled_before: u64,
}

/// Two percentiles.
#[derive(Debug, Serialize)]
pub struct Times {
    /// Half of them took no longer.
    pub p50: u64,
    /// 99 of 100 took no longer.
    pub p99: u64,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum NoCosts {
    /// WebAssembly cannot run here.
    #[error(transparent)]
    Engine(#[from] LoadError),
    /// The policy cannot be loaded.
    #[error("the policy cannot be loaded: {0}")]
    Policy(Outcome),
}

/// Measures the policy of a place on facts. What is compiled is kept nowhere, so that loading it anew is measured too.
///
/// # Errors
/// When the policy cannot be loaded at all. One that fails to judge is measured all the same.
pub fn run(setup: &Setup, place: Place, facts: &Snapshot, rounds: u32) -> Result<Costs, NoCosts> {
    let runtime = setup.runtime()?;
    let clock = Arc::clone(&setup.clock);
    let (policy, load_micros) = load(&runtime, &place, clock.as_ref()).map_err(NoCosts::Policy)?;
    let first = builtin(setup, "");
    let judge = Judge::on(runtime, vec![first, place], clock);
    let mut rounds_made = Rounds::default();
    for _ in 0..WARM_UP {
        judge.judge(facts);
    }
    let before = resident();
    for _ in 0..rounds {
        let mut policies = judge.judge(facts).policies.into_iter();
        if let (Some(builtin), Some(policy)) = (policies.next(), policies.next()) {
            rounds_made.add(&builtin, &policy);
        }
    }
    let resident_growth_bytes = before.zip(resident()).map(|(before, after)| after - before);
    let Rounds { mut times, mut builtin, mut ratios, memory, outcomes, detail, builtin_outcomes } = rounds_made;
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = ratios.get(ratios.len() / 2).copied().filter(|_| all_verdicts(&builtin_outcomes));
    Ok(Costs {
        schema: "headcount.policy-bench/1",
        policy: crate::report::clean(&policy.description.name),
        version: crate::report::clean(&policy.description.version),
        digest: policy.digest,
        agents: facts.agents.len(),
        rounds,
        load_micros,
        micros: percentiles(&mut times),
        builtin_micros: percentiles(&mut builtin),
        ratio: ratio.map(|ratio| (ratio * 1000.0).round() / 1000.0),
        memory_bytes: memory,
        outcomes,
        detail,
        builtin_outcomes,
        resident_growth_bytes,
    })
}

/// Loads a policy twice.
fn load(runtime: &Runtime, place: &Place, clock: &dyn Clock) -> Result<(Policy, LoadTimes), Outcome> {
    let (bytes, trust) = bytes(place)?;
    let timed = || {
        let start = clock.now().steady;
        let policy = Policy::load_by_steps(runtime, &bytes, trust, &place.settings, place.limits, &mut |_, _| {})?;
        Ok((policy, micros(clock.now().steady.saturating_sub(start))))
    };
    let (policy, compiled_anew) = timed()?;
    let (_, compiled_before) = timed()?;
    Ok((policy, LoadTimes { compiled_anew, compiled_before }))
}

/// What the rounds have shown so far.
#[derive(Default)]
struct Rounds {
    times: Vec<Duration>,
    builtin: Vec<Duration>,
    ratios: Vec<f64>,
    memory: usize,
    outcomes: BTreeMap<&'static str, u32>,
    detail: Option<String>,
    builtin_outcomes: BTreeMap<&'static str, u32>,
}

impl Rounds {
    fn add(&mut self, builtin: &Evaluation, policy: &Evaluation) {
        self.times.push(policy.took);
        self.builtin.push(builtin.took);
        self.ratios.push(policy.took.as_secs_f64() / builtin.took.as_secs_f64().max(f64::MIN_POSITIVE));
        self.memory = self.memory.max(policy.memory);
        *self.outcomes.entry(policy.outcome.name()).or_default() += 1;
        *self.builtin_outcomes.entry(builtin.outcome.name()).or_default() += 1;
        if policy.outcome != Outcome::Verdict {
            self.detail = Some(no_verdict(&policy.outcome).detail);
        }
    }
}

/// By the nearest rank.
fn percentiles(times: &mut [Duration]) -> Times {
    times.sort_unstable();
    let rank = |percent: usize| (times.len() * percent).div_ceil(100).saturating_sub(1);
    let at = |percent| times.get(rank(percent)).copied().map_or(0, micros);
    Times { p50: at(50), p99: at(99) }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What this process takes up in memory now, bytes.
#[cfg(target_os = "linux")]
fn resident() -> Option<i64> {
    use nix::unistd::{SysconfVar, sysconf};
    let statm = crate::files::read_small_text("/proc/self/statm".as_ref(), 4096).ok()?;
    let pages: i64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * sysconf(SysconfVar::PAGE_SIZE).ok()??)
}

#[cfg(not(target_os = "linux"))]
fn resident() -> Option<i64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_by_rank() {
        let mut times: Vec<_> = (1..=200).rev().map(Duration::from_micros).collect();
        let Times { p50, p99 } = percentiles(&mut times);
        assert_eq!((p50, p99), (100, 198));
        let Times { p50, p99 } = percentiles(&mut [Duration::from_micros(7)]);
        assert_eq!((p50, p99), (7, 7));
    }

    #[test]
    fn only_verdicts_are_well() {
        assert!(all_verdicts(&BTreeMap::from([("verdict", 20)])));
        assert!(!all_verdicts(&BTreeMap::from([("deadline", 1), ("verdict", 19)])));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_is_held_shows() {
        let before = resident().unwrap();
        let held = std::hint::black_box(vec![1_u8; 256 << 20]);
        let grown = resident().unwrap() - before;
        drop(held);
        assert!(grown > 128 << 20, "{grown}");
    }
}
