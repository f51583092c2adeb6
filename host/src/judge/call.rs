//! One call of a policy: a fresh store and instance, dropped afterwards whatever happened.

use super::bindings::{HealthPolicyPre, exports::headcount::policy::policy as wit};
use super::engine::Runtime;
use super::limits::{Guard, Limits};
use super::outcome::{Outcome, SettingsProblem};
use wasmtime::Trap;

pub(super) fn describe(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
) -> Result<wit::Description, Outcome> {
    call(runtime, pre, limits, |policy, store| policy.call_describe(store))
}

pub(super) fn validate_settings(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
    settings: &str,
) -> Result<Vec<SettingsProblem>, Outcome> {
    let problems = call(runtime, pre, limits, |policy, store| policy.call_validate_settings(store, settings))?;
    Ok(problems.into_iter().map(|p| SettingsProblem { path: p.path, message: p.message }).collect())
}

pub(super) fn judge(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
    facts: &wit::Snapshot<'_>,
    so_far: Option<&wit::SessionVerdictParam<'_>>,
    settings: &str,
) -> Result<wit::SessionVerdictResult, Outcome> {
    let answer =
        call(runtime, pre, limits, |policy, store| policy.call_judge(store, facts.clone(), so_far.cloned(), settings))?;
    answer.map_err(Outcome::Declined)
}

fn call<T>(
    runtime: &Runtime,
    pre: &HealthPolicyPre<Guard>,
    limits: &Limits,
    function: impl FnOnce(&wit::Guest, &mut wasmtime::Store<Guard>) -> wasmtime::Result<T>,
) -> Result<T, Outcome> {
    let (mut store, _ticking) = runtime.store(limits);
    let instance = match pre.instantiate(&mut store) {
        Ok(instance) => instance,
        Err(error) if error.is::<Trap>() => return Err(explain(&error, &store, limits)),
        // Whether its interface is another or the machine has no room shows when only the second can be the reason.
        Err(error) => {
            drop(store);
            let (mut store, _ticking) = runtime.store(limits);
            return Err(match pre.instance_pre().instantiate(&mut store) {
                Ok(_) => Outcome::WrongVersion(format!("its interface has another shape: {error:#}")),
                Err(error) => Outcome::Trap(format!("there is no room to run it: {error:#}")),
            });
        }
    };
    function(instance.headcount_policy_policy(), &mut store).map_err(|error| explain(&error, &store, limits))
}

/// One sentence for each way in which a call can end badly.
fn explain(error: &wasmtime::Error, store: &wasmtime::Store<Guard>, limits: &Limits) -> Outcome {
    let refused = store.data().refused_memory;
    match (error.downcast_ref::<Trap>(), refused) {
        (Some(Trap::Interrupt), _) => Outcome::Deadline(limits.deadline),
        (_, Some(asked)) => Outcome::Memory { asked, limit: limits.memory },
        (Some(Trap::StackOverflow), _) => Outcome::Trap("it called itself too deeply".into()),
        (Some(Trap::MemoryOutOfBounds), _) => {
            Outcome::Trap("it reached outside its memory, or its stack is exhausted".into())
        }
        (Some(Trap::UnreachableCodeReached), _) => Outcome::Trap("it panicked".into()),
        (Some(trap), _) => Outcome::Trap(trap.to_string()),
        // wasmtime keeps the type of this error to itself, so its text is all there is; a test holds it to it.
        (None, _) if error.to_string().contains("allocated for hostcalls has been exhausted") => {
            Outcome::Flood(limits.result)
        }
        (None, _) => Outcome::BadVerdict(format!("{error:#}")),
    }
}
