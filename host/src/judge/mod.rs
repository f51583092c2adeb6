//! The judge: the only place that knows wasmtime. Facts go in, a verdict and how each policy fared come out.

mod bindings;
mod call;
mod check;
mod engine;
mod limits;
mod load;
mod outcome;
mod rows;

pub use bindings::exports::headcount::policy::policy::{
    Activity, AdviceResult as Advice, AgentVerdictResult as AgentVerdict, CheckResult as Check, Health, Outcome as CheckOutcome,
    SessionVerdictResult as Verdict, Source, Status, Totals,
};
use bindings::exports::headcount::policy::policy::Snapshot as Rows;
pub use engine::{Runtime, TICK};
pub use limits::Limits;
pub use load::Policy;
pub use outcome::{LoadError, Outcome, SettingsProblem};

use crate::clock::Clock;
use crate::observe::facts::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// The built-in policy: a component of some ten kilobytes, compiled at start.
const BUILTIN: &[u8] = include_bytes!(env!("HEADCOUNT_BUILTIN_POLICY"));

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
    /// A judge with the built-in policy alone.
    ///
    /// # Errors
    /// When WebAssembly cannot run here, or the settings are wrong.
    pub fn builtin(clock: Arc<dyn Clock>, settings: &str) -> Result<Self, LoadError> {
        let mut judge = Self::empty(Runtime::new()?, clock);
        let policy = judge.load_builtin(settings)?;
        judge.chain.push(Link { name: "builtin".into(), policy: Ok(policy) });
        Ok(judge)
    }

    /// A judge without any policy.
    pub fn empty(runtime: Runtime, clock: Arc<dyn Clock>) -> Self {
        Self { runtime, chain: Vec::new(), clock }
    }

    /// Compiles the built-in policy with these settings.
    ///
    /// # Errors
    /// When the settings are wrong.
    pub fn load_builtin(&self, settings: &str) -> Result<Policy, LoadError> {
        Policy::load(&self.runtime, "builtin", BUILTIN, settings, Limits::default())
    }

    /// Adds a policy at the end of the chain; one that could not be loaded has its place too, and its outcome in every report.
    ///
    /// # Errors
    /// Only where the engine itself fails.
    pub fn push(&mut self, name: &str, policy: Result<Policy, LoadError>) -> Result<(), LoadError> {
        let policy = match policy {
            Ok(policy) => Ok(policy),
            Err(LoadError::Policy { outcome, .. }) => Err(outcome),
            Err(engine @ LoadError::Engine(_)) => return Err(engine),
        };
        self.chain.push(Link { name: name.to_owned(), policy });
        Ok(())
    }

    /// The engine, for loading more policies.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
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
