//! The judge: the only place that knows wasmtime. Facts go in, a verdict and how each policy fared come out.

mod bindings;
mod cache;
mod call;
mod check;
mod engine;
mod limits;
mod load;
mod outcome;
mod rows;
#[cfg(test)]
mod tests;

use bindings::exports::headcount::policy::policy::Snapshot as Rows;
pub use bindings::exports::headcount::policy::policy::{
    Activity, AdviceResult as Advice, AgentVerdictResult as AgentVerdict, CheckResult as Check, Health,
    Outcome as CheckOutcome, SessionVerdictResult as Verdict, Source, Status, Totals,
};
pub use cache::digest;
pub use engine::{Runtime, TICK};
pub use limits::Limits;
pub use load::Policy;
pub use outcome::{LoadError, Outcome, SettingsProblem};

use crate::clock::Clock;
use crate::config;
use crate::observe::facts::Snapshot;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The built-in policy: a component of some 160 KB.
pub const BUILTIN: &[u8] = include_bytes!(env!("HEADCOUNT_BUILTIN_POLICY"));

/// A chain of policies that starts with the facts alone and hands each verdict on to the next.
pub struct Judge {
    runtime: Runtime,
    chain: Vec<Link>,
    clock: Arc<dyn Clock>,
}

/// One place in the chain: a policy, or what became of it when it was loaded.
struct Link {
    name: String,
    policy: Result<Policy, Outcome>,
}

/// What the chain made of one snapshot.
#[derive(Debug)]
pub struct Judgement {
    /// The last sound verdict; `None` where no policy came to one.
    pub verdict: Option<Verdict>,
    /// How each policy fared, in the chain's order.
    pub policies: Vec<Evaluation>,
}

/// How one policy fared.
#[derive(Debug)]
pub struct Evaluation {
    /// The policy's name, or its file where it has not told.
    pub name: String,
    /// Its version; empty where it has not told.
    pub version: String,
    /// SHA-256 of its file; empty where it was not loaded.
    pub digest: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

impl Judge {
    /// A judge with the chain that is configured; without any, the built-in policy with its defaults. A policy that cannot
    /// be loaded keeps its place, and its outcome stands in every report.
    ///
    /// `cache` is where compiled policies are kept, if they may be.
    ///
    /// # Errors
    /// When WebAssembly cannot run here at all.
    pub fn new(policies: &[config::Policy], cache: Option<&Path>, clock: Arc<dyn Clock>) -> Result<Self, LoadError> {
        let builtin = [config::Policy::builtin()];
        let policies = if policies.is_empty() { &builtin } else { policies };
        let runtime = Runtime::new(cache)?;
        let chain = policies.iter().map(|policy| Link::load(&runtime, policy)).collect::<Result<_, _>>()?;
        runtime.keep();
        Ok(Self { runtime, chain, clock })
    }

    /// The policies that could not be loaded, by their place in the configuration, and why.
    pub fn refused(&self) -> impl Iterator<Item = (usize, &str, &Outcome)> {
        let places = self.chain.iter().enumerate();
        places.filter_map(|(place, link)| Some((place, link.name.as_str(), link.policy.as_ref().err()?)))
    }

    /// Runs the chain over one snapshot. Blocks for as long as the policies take: never call it on an async thread.
    pub fn judge(&self, facts: &Snapshot) -> Judgement {
        rows::with_snapshot(facts, |snapshot| {
            let mut verdict: Option<Verdict> = None;
            let mut policies = Vec::with_capacity(self.chain.len());
            for link in &self.chain {
                let start = self.clock.now().steady;
                let outcome = match link.evaluate(&self.runtime, facts, snapshot, verdict.as_ref()) {
                    Ok(sound) => {
                        verdict = Some(sound);
                        Outcome::Verdict
                    }
                    Err(outcome) => outcome,
                };
                policies.push(link.evaluation(outcome, self.clock.now().steady.saturating_sub(start)));
            }
            Judgement { verdict, policies }
        })
    }
}

impl Link {
    fn load(runtime: &Runtime, policy: &config::Policy) -> Result<Self, LoadError> {
        let name = policy.path.display().to_string();
        let settings = if policy.settings.is_empty() {
            String::new()
        } else {
            serde_json::Value::Object(policy.settings.clone()).to_string()
        };
        let loaded = if policy.is_builtin() {
            Policy::load(runtime, &name, BUILTIN, &settings, Limits::default())
        } else {
            Policy::load_file(runtime, &policy.path, &settings, Limits::default())
        };
        match loaded {
            Ok(policy) => Ok(Self { name, policy: Ok(policy) }),
            Err(LoadError::Policy { outcome, .. }) => {
                tracing::debug!(policy = %name, "{outcome}");
                Ok(Self { name, policy: Err(outcome) })
            }
            Err(engine @ LoadError::Engine(_)) => Err(engine),
        }
    }

    fn evaluate(
        &self,
        runtime: &Runtime,
        facts: &Snapshot,
        snapshot: &Rows<'_>,
        so_far: Option<&Verdict>,
    ) -> Result<Verdict, Outcome> {
        let policy = self.policy.as_ref().map_err(Outcome::clone)?;
        let verdict = rows::with_verdict(so_far, |so_far| {
            call::judge(runtime, &policy.pre, &policy.limits, snapshot, so_far, &policy.settings)
        })?;
        check::check(facts, &verdict).map_err(Outcome::BadVerdict)?;
        Ok(verdict)
    }

    fn evaluation(&self, outcome: Outcome, took: Duration) -> Evaluation {
        let (name, version, digest) = match &self.policy {
            Ok(policy) => (policy.description.name.clone(), policy.description.version.clone(), policy.digest.clone()),
            Err(_) => (self.name.clone(), String::new(), String::new()),
        };
        Evaluation { name, version, digest, outcome, took }
    }
}
