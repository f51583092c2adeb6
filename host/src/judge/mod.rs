//! The judge: the only place that knows wasmtime. Facts go in, a verdict and how each policy fared come out.

mod bindings;
mod cache;
mod call;
mod check;
mod code_size;
mod compile;
mod engine;
mod judgement;
mod limits;
mod link;
mod load;
mod outcome;
mod panic;
mod reload;
mod rest;
mod rows;
pub mod sample;
#[cfg(test)]
pub(crate) mod tests;

pub use bindings::exports::headcount::policy::policy::{
    Activity, AdviceResult as Advice, AgentVerdictResult as AgentVerdict, CheckResult as Check, Description, Health,
    Outcome as CheckOutcome, SessionVerdictResult as Verdict, Source, Status, Totals,
};
pub use cache::digest;
pub use compile::{Order as CompileOrder, REFUSED as COMPILE_REFUSED, Trust, compile_stdin};
pub use engine::{Runtime, TICK};
pub use judgement::{Evaluation, Judgement, Stale};
pub use limits::Limits;
pub use link::{Link, Place, Record};
pub use load::{MAX_FILE, Policy, Step, read};
pub use outcome::{LoadError, Outcome, SettingsProblem};

use crate::clock::Clock;
use crate::observe::facts::Snapshot;
use reload::Follower;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The built-in policy: a component of some 160 KB.
pub const BUILTIN: &[u8] = include_bytes!(env!("HEADCOUNT_BUILTIN_POLICY"));

/// A chain of policies that starts with the facts alone and hands each verdict on to the next.
pub struct Judge {
    runtime: Runtime,
    chain: Arc<Vec<Link>>,
    clock: Arc<dyn Clock>,
    /// Whether policies that are late again and again rest for a while.
    with_rests: bool,
    /// Loads policies again when their files change; ends with the judge.
    follower: Option<Follower>,
}

/// What a judge works with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where compiled policies are kept, if they may be.
    pub cache: Option<PathBuf>,
    /// The program that compiles what is not trusted, in a process of its own; without it, this process does.
    pub compiler: Option<PathBuf>,
    /// Whether a policy that cannot be loaded is an error.
    pub strict: bool,
    /// Whether policies that have to be compiled are left to [`Judge::follow_files`], so that nobody waits for them.
    pub defer: bool,
}

impl Judge {
    /// A judge with this chain. A policy that cannot be loaded keeps its place, and its outcome stands in every report.
    ///
    /// # Errors
    /// When WebAssembly cannot run here at all; where `strict`, also when a policy cannot be loaded.
    pub fn new(chain: Vec<Place>, options: &Options, clock: Arc<dyn Clock>) -> Result<Self, LoadError> {
        let memory = chain.iter().map(|place| place.limits.memory).max().unwrap_or_default();
        let runtime = Runtime::new(options.cache.as_deref(), options.compiler.as_deref(), memory)?;
        let mut judge = Self::with(runtime, chain, options.defer && !options.strict, clock);
        judge.with_rests = true;
        if options.strict {
            let refused = judge.refused().map(|(_, name, why)| format!("policy {name}: {why}"));
            let refused: Vec<String> = refused.collect();
            if !refused.is_empty() {
                return Err(LoadError::Refused(refused));
            }
        }
        Ok(judge)
    }

    /// A judge with this chain on an engine that there is already: who judges with one chain after the other needs but one.
    /// Its policies get no rest.
    pub fn on(runtime: Runtime, chain: Vec<Place>, clock: Arc<dyn Clock>) -> Self {
        Self::with(runtime, chain, false, clock)
    }

    fn with(runtime: Runtime, chain: Vec<Place>, may_defer: bool, clock: Arc<dyn Clock>) -> Self {
        let chain: Vec<Link> = chain.into_iter().map(|place| Link::load(&runtime, place, may_defer)).collect();
        runtime.keep();
        Self { runtime, chain: Arc::new(chain), clock, with_rests: false, follower: None }
    }

    /// The places of the chain.
    pub fn chain(&self) -> &Arc<Vec<Link>> {
        &self.chain
    }

    /// The policies that could not be loaded, by their place in the chain, and why.
    pub fn refused(&self) -> impl Iterator<Item = (usize, &str, Outcome)> {
        let places = self.chain.iter().enumerate();
        places.filter_map(|(n, link)| Some((n, link.place.name.as_str(), link.state().policy.err()?)))
    }

    /// From now on loads policies again when their files change, in the background, and first of all those that were deferred.
    /// Where folders cannot be watched, they are looked at now and then. After each change, `changed` is told.
    pub fn follow_files(&mut self, changed: impl FnMut(&Arc<Vec<Link>>) + Send + 'static) {
        let (runtime, chain) = (self.runtime.clone(), Arc::clone(&self.chain));
        self.follower = Follower::start(runtime, chain, Arc::clone(&self.clock), changed);
        if self.follower.is_none() {
            // Then they have to be waited for after all.
            for place in 0..self.chain.len() {
                if self.chain[place].state().policy.err() == Some(Outcome::Loading) {
                    reload::look(&self.runtime, &self.chain, place, self.clock.now().unix_ms);
                }
            }
        }
    }

    /// What the whole chain makes of a made-up session, whichever sessions its policies are for: one evaluation for each.
    pub fn try_out(&self) -> Judgement {
        self.run(&sample::session(sample::TRIAL), |_| true)
    }

    /// Runs the chain over one snapshot. Blocks for as long as the policies take: never call it on an async thread.
    pub fn judge(&self, facts: &Snapshot) -> Judgement {
        self.run(facts, |place| place.judges(&facts.session))
    }

    fn run(&self, facts: &Snapshot, takes_part: impl Fn(&Place) -> bool) -> Judgement {
        rows::with_snapshot(facts, |snapshot| {
            let mut judgement = Judgement::default();
            for link in self.chain.iter().filter(|link| takes_part(&link.place)) {
                let state = link.state();
                let start = self.clock.now().steady;
                let so_far = judgement.verdict.as_ref();
                let evaluate = || state.evaluate(&self.runtime, facts, snapshot, so_far);
                let called = if self.with_rests { link.unless_resting(start, evaluate) } else { evaluate() };
                let took = self.clock.now().steady.saturating_sub(start);
                link.note(&called, start + took, took);
                judgement.add(&link.place, state, called, took);
            }
            judgement
        })
    }
}

/// A path as policies are named by it until they have said their name.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
