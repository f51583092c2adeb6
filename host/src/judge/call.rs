//! One call of a policy: a fresh store and instance, dropped afterwards whatever happened.

use super::bindings::{HealthPolicyPre, exports::headcount::policy::policy as wit};
use super::engine::Runtime;
use super::limits::{Guard, Limits, TABLE_ELEMENTS};
use super::outcome::{Outcome, SettingsProblem};
use super::panic;
use crate::text::clean;
use wasmtime::{Store, Trap};

/// How many problems of its settings a policy can tell at once.
const MAX_PROBLEMS: usize = 64;

/// What came of a call.
pub(super) struct Called<T> {
    /// Its answer, or how it ended.
    pub answer: Result<T, Outcome>,
    /// The memory that the policy had at the end, bytes.
    pub memory: usize,
}

impl<T> Called<T> {
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Result<U, Outcome>) -> Called<U> {
        Called { answer: self.answer.and_then(next), memory: self.memory }
    }
}

/// Starts the policy and asks nothing of it.
pub(super) fn start(runtime: &Runtime, pre: &HealthPolicyPre<Guard>, limits: &Limits) -> Called<()> {
    call(runtime, pre, limits, |_, _| Ok(()))
}

pub(super) fn describe(runtime: &Runtime, pre: &HealthPolicyPre<Guard>, limits: &Limits) -> Called<wit::Description> {
    before_a_verdict(call(runtime, pre, limits, |policy, store| policy.call_describe(store))).and_then(|said| {
        Ok(wit::Description {
            name: clean(&said.name),
            version: clean(&said.version),
            summary: clean(&said.summary),
            settings_schema: said.settings_schema,
        })
    })
}

pub(super) fn validate_settings(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
    settings: &str,
) -> Called<Vec<SettingsProblem>> {
    let problem = |p: wit::Problem| SettingsProblem { path: clean(&p.path), message: clean(&p.message) };
    before_a_verdict(call(runtime, pre, limits, |policy, store| policy.call_validate_settings(store, settings)))
        .and_then(|problems| Ok(problems.into_iter().take(MAX_PROBLEMS).map(problem).collect()))
}

pub(super) fn judge(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
    facts: &wit::Snapshot<'_>,
    so_far: Option<&wit::SessionVerdictParam<'_>>,
    settings: &str,
) -> Called<wit::SessionVerdictResult> {
    call(runtime, pre, limits, |policy, store| policy.call_judge(store, facts.clone(), so_far.cloned(), settings))
        .and_then(|answer| answer.map_err(|why| Outcome::Declined(clean(&why))))
}

/// What cannot be read of a policy that has not been asked for a verdict is no bad one.
fn before_a_verdict<T>(called: Called<T>) -> Called<T> {
    let answer = called.answer.map_err(|outcome| match outcome {
        Outcome::BadVerdict(why) => Outcome::Trap(format!("what it says cannot be read: {why}")),
        other => other,
    });
    Called { answer, ..called }
}

fn call<T>(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
    function: impl FnOnce(&wit::Guest, &mut Store<Guard>) -> wasmtime::Result<T>,
) -> Called<T> {
    let (mut store, _ticking) = runtime.store(limits);
    let answer = match pre.instantiate(&mut store) {
        Ok(instance) => {
            function(instance.headcount_policy_policy(), &mut store).map_err(|error| explain(&error, &store, limits))
        }
        Err(error) if error.is::<Trap>() || store.data().refused_anything() => Err(explain(&error, &store, limits)),
        // Whether its interface is another or the machine has no room shows when only the second can be the reason.
        Err(error) => {
            let (mut store, _ticking) = runtime.store(limits);
            Err(match pre.instance_pre().instantiate(&mut store) {
                Ok(_) => Outcome::WrongVersion(format!("its interface has another shape: {error:#}")),
                Err(error) => Outcome::Trap(format!("there is no room to run it: {error:#}")),
            })
        }
    };
    Called { answer, memory: store.data().in_memories }
}

/// One sentence for each way in which a call can end badly.
fn explain(error: &wasmtime::Error, store: &Store<Guard>, limits: &Limits) -> Outcome {
    let guard = store.data();
    match (error.downcast_ref::<Trap>(), guard.refused_memory) {
        (Some(Trap::Interrupt), _) => Outcome::Deadline(limits.deadline),
        (_, Some(asked)) => Outcome::Memory { asked, limit: limits.memory },
        (_, None) if guard.refused_table.is_some() => Outcome::Trap(format!(
            "it asked for {} table elements; {TABLE_ELEMENTS} are allowed",
            guard.refused_table.unwrap_or_default()
        )),
        (Some(Trap::StackOverflow), _) => Outcome::Trap("it called itself too deeply".into()),
        (Some(Trap::MemoryOutOfBounds), _) => {
            Outcome::Trap("it reached outside its memory, or its stack is exhausted".into())
        }
        (Some(Trap::UnreachableCodeReached), _) => Outcome::Trap(match panic::text(error, store) {
            Some(text) => format!("it panicked: {}", clean(&text)),
            None => "it panicked".into(),
        }),
        (Some(trap), _) => Outcome::Trap(trap.to_string()),
        // wasmtime keeps the type of this error to itself, so its text is all there is; a test holds it to it.
        (None, _) if error.to_string().contains("allocated for hostcalls has been exhausted") => {
            Outcome::Flood(limits.result)
        }
        (None, _) => Outcome::BadVerdict(format!("{error:#}")),
    }
}
