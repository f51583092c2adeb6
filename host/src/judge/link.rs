//! One place in the chain, and the policy that has it now.

use super::call::{self, Called};
use super::judgement::{Evaluation, Stale};
use super::load::{Policy, read};
use super::rest::Rest;
use super::{
    BUILTIN, Limits, Outcome, Runtime, Trust, Verdict, bindings::exports::headcount::policy::policy::Snapshot as Rows,
    check, digest, rows, shown,
};
use crate::config::{self, Mode, OnError};
use crate::figures::{Count, Durations, Each};
use crate::observe::facts::{Session, Snapshot};
use globset::GlobSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// What the built-in policy is called, also where it could not be asked.
const BUILTIN_NAME: &str = "built-in";

/// What a policy is to do in the chain, as it is configured.
#[derive(Debug, Clone)]
pub struct Place {
    /// What it is called until it has told its name: its file, or `builtin`.
    pub name: String,
    /// Its file; `None`: the built-in policy.
    pub file: Option<PathBuf>,
    /// SHA-256 that the file must have, in hexadecimal.
    pub pinned: Option<String>,
    /// Its settings, a JSON object; empty = none.
    pub settings: Arc<str>,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// What its failure means.
    pub on_error: OnError,
    /// What it may use.
    pub limits: Limits,
    /// The sessions that it judges; empty = all.
    pub sessions: GlobSet,
    /// The same as it is configured.
    pub globs: Vec<String>,
}

impl Place {
    /// The place of a configured policy.
    ///
    /// # Errors
    /// When its globs are none, which a checked configuration has not.
    pub fn new(policy: &config::Policy, limits: config::Limits) -> Result<Self, globset::Error> {
        let mut sessions = globset::GlobSetBuilder::new();
        for glob in &policy.sessions {
            sessions.add(globset::Glob::new(glob)?);
        }
        let settings = match policy.settings.is_empty() {
            true => String::new(),
            false => serde_json::Value::Object(policy.settings.clone()).to_string(),
        };
        Ok(Self {
            name: if policy.is_builtin() { BUILTIN_NAME.to_owned() } else { shown(&policy.path) },
            file: (!policy.is_builtin()).then(|| policy.path.clone()),
            pinned: policy.digest.as_ref().map(|pinned| pinned.trim_start_matches("sha256:").to_ascii_lowercase()),
            settings: settings.into(),
            mode: policy.mode,
            on_error: policy.on_error,
            limits: limits.with(policy.limits).into(),
            sessions: sessions.build()?,
            globs: policy.sessions.clone(),
        })
    }

    /// The built-in policy with its defaults.
    pub fn builtin() -> Self {
        Self {
            name: BUILTIN_NAME.to_owned(),
            file: None,
            pinned: None,
            settings: "".into(),
            mode: Mode::default(),
            on_error: OnError::default(),
            limits: Limits::default(),
            sessions: GlobSet::empty(),
            globs: Vec::new(),
        }
    }

    /// Whether the policy judges this session.
    pub fn judges(&self, session: &Session) -> bool {
        self.sessions.is_empty() || self.sessions.is_match(&session.id) || self.sessions.is_match(&session.name)
    }

    /// Loads these bytes for this place.
    pub(super) fn load(&self, runtime: &Runtime, bytes: &[u8], trust: Trust) -> Result<Policy, Outcome> {
        let found = digest(bytes);
        if let Some(pinned) = self.pinned.as_ref().filter(|pinned| **pinned != found) {
            return Err(Outcome::WrongDigest { pinned: pinned.clone(), found });
        }
        let mut policy = Policy::load_by_steps(runtime, bytes, trust, &self.settings, self.limits, &mut |_, _| {})?;
        // It was wanted for the settings only, and may be large.
        policy.description.settings_schema = String::new();
        Ok(policy)
    }
}

/// One place in the chain, and the policy that has it now.
pub struct Link {
    /// What is configured.
    pub place: Place,
    state: RwLock<State>,
    rest: Mutex<Rest>,
    /// How those fared that had the place.
    pub record: Record,
}

/// How the policies fared that had a place.
#[derive(Debug, Default)]
pub struct Record {
    /// How often each [`Outcome`] came of a judgement, by its name.
    pub outcomes: Each<&'static str, Count>,
    /// How long judgements took.
    pub took: Durations,
    /// The memory that the policy had at the end of the last one, bytes.
    pub memory: AtomicUsize,
}

/// The policy that has a place, or why none has.
#[derive(Clone)]
pub struct State {
    /// The policy, or what became of it when it was loaded.
    pub policy: Result<Arc<Policy>, Outcome>,
    /// Since when a newer file has been refused.
    pub stale: Option<Stale>,
}

impl Link {
    /// Loads the policy of a place. Where it may be deferred, and would have to be compiled, it is not loaded yet.
    pub(super) fn load(runtime: &Runtime, place: Place, may_defer: bool) -> Self {
        let loaded = match &place.file {
            None => place.load(runtime, BUILTIN, Trust::Trusted),
            Some(file) => read(file).and_then(|bytes| match may_defer && !runtime.is_prepared(&bytes) {
                true => Err(Outcome::Loading),
                false => place.load(runtime, &bytes, Trust::Untrusted),
            }),
        };
        if let Err(outcome) = &loaded {
            tracing::debug!(policy = %place.name, "{outcome}");
        }
        Self::of(place, loaded)
    }

    /// A place and who has it.
    pub(super) fn of(place: Place, loaded: Result<Policy, Outcome>) -> Self {
        let state = State { policy: loaded.map(Arc::new), stale: None };
        Self { place, state: RwLock::new(state), rest: Mutex::default(), record: Record::default() }
    }

    /// The policy that has the place now. Who holds it, ends on it.
    pub fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the policy judge by `call`, unless it rests at `now`.
    pub(super) fn unless_resting(&self, now: Duration, call: impl FnOnce() -> Called<Verdict>) -> Called<Verdict> {
        let pause = self.rest().at(now);
        match pause {
            Some(pause) => {
                let resting = Outcome::Resting { limit: self.place.limits.deadline, pause };
                Called { answer: Err(resting), memory: 0 }
            }
            None => call(),
        }
    }

    /// Notes how the policy fared until `now`.
    pub(super) fn note(&self, called: &Called<Verdict>, now: Duration, took: Duration) {
        let outcome = called.answer.as_ref().err().map_or(Outcome::Verdict.name(), Outcome::name);
        self.record.outcomes.note(outcome, Count::add_one);
        self.record.took.note(took);
        self.record.memory.store(called.memory, Relaxed);
        if !matches!(called.answer, Err(Outcome::Resting { .. })) {
            self.rest().note(called.answer.as_ref().err(), now, took);
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, state: State) {
        *self.rest() = Rest::default();
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl State {
    pub(super) fn evaluate(
        &self,
        runtime: &Runtime,
        facts: &Snapshot,
        snapshot: &Rows<'_>,
        so_far: Option<&Verdict>,
    ) -> Called<Verdict> {
        let policy = match &self.policy {
            Ok(policy) => policy,
            Err(outcome) => return Called { answer: Err(outcome.clone()), memory: 0 },
        };
        let called = rows::with_verdict(so_far, |so_far| {
            call::judge(runtime, &policy.pre, &policy.limits, snapshot, so_far, &policy.settings)
        });
        called.and_then(|verdict| check::checked(facts, verdict).map_err(Outcome::BadVerdict))
    }

    /// An evaluation that has not been made yet.
    pub fn evaluation(self, place: &Place) -> Evaluation {
        let (name, version, digest) = match &self.policy {
            // Nobody else may be taken for the built-in policy.
            Ok(policy) if place.file.is_some() && policy.description.name == BUILTIN_NAME => {
                (place.name.clone(), policy.description.version.clone(), policy.digest.clone())
            }
            Ok(policy) => (policy.description.name.clone(), policy.description.version.clone(), policy.digest.clone()),
            Err(_) => (place.name.clone(), String::new(), String::new()),
        };
        Evaluation {
            name,
            version,
            digest,
            settings: Arc::clone(&place.settings),
            mode: place.mode,
            on_error: place.on_error,
            stale: self.stale,
            outcome: Outcome::Verdict,
            took: Duration::ZERO,
            memory: 0,
            shadow: None,
        }
    }
}
