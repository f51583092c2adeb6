//! Policies whose files change. A change is read whole, loaded and tried aside, and then takes the place; judgements that
//! run meanwhile end on the policy they began with. What cannot be loaded takes nobody's place.

use super::judgement::Stale;
use super::link::{Link, State};
use super::load::read;
use super::{Outcome, Policy, Runtime, Trust, digest, rows, sample};
use crate::clock::Clock;
use crate::config::Mode;
use crate::files::Stamp;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// For how long nothing must happen before files are read: writers take a few steps. But no longer than [`PATIENCE`].
const QUIET: Duration = Duration::from_millis(200);
/// How long a writer that never stops is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often files are looked at in any case: what is linked to, moved in or on another machine is not told of.
const POLL: Duration = Duration::from_secs(2);

/// Follows the files of a chain on a thread of its own, until it is dropped.
pub(super) struct Follower {
    /// The thread ends when nobody can tell it anything any more.
    _watcher: Option<RecommendedWatcher>,
    _told: Sender<()>,
}

impl Follower {
    /// `None` where no policy has a file, or no thread can be started.
    pub fn start(
        runtime: Runtime,
        chain: Arc<Vec<Link>>,
        clock: Arc<dyn Clock>,
        mut told: impl FnMut(&Arc<Vec<Link>>) + Send + 'static,
    ) -> Option<Self> {
        if chain.iter().all(|link| link.place.file.is_none()) {
            return None;
        }
        let (changed, changes) = mpsc::channel();
        let watcher = watch(&chain, &changed);
        let mut files = Files::of(&chain);
        let follow = move || {
            // Those that were not waited for, and those whose files may have changed since they were read.
            let is_due = |&place: &usize| chain[place].state().policy.err().is_none_or(|why| why == Outcome::Loading);
            let mut due: Vec<usize> = (0..chain.len()).filter(is_due).collect();
            loop {
                if !due.is_empty() {
                    for &place in &due {
                        look(&runtime, &chain, place, clock.now().unix_ms);
                    }
                    runtime.keep();
                    told(&chain);
                }
                if !wait(&changes, clock.as_ref()) {
                    return;
                }
                due = files.changed(&chain);
            }
        };
        let started = thread::Builder::new().name("policy-files".into()).spawn(follow);
        let started = started.inspect_err(|error| tracing::warn!("changes of policies' files are not seen: {error}"));
        started.ok().map(|_| Self { _watcher: watcher, _told: changed })
    }
}

/// What is remembered of the file of each place.
struct Files(Vec<Option<Stamp>>);

impl Files {
    fn of(chain: &[Link]) -> Self {
        let stamp = |link: &Link| Stamp::of(link.place.file.as_ref()?).ok();
        Self(chain.iter().map(stamp).collect())
    }

    /// The places whose files are others than they were.
    fn changed(&mut self, chain: &[Link]) -> Vec<usize> {
        let now = Self::of(chain);
        let changed = (0..chain.len()).filter(|&place| now.0[place] != self.0[place]).collect();
        *self = now;
        changed
    }
}

/// Tells `changed` of what happens in the files' folders, because a file that is replaced is another file. A folder that
/// cannot be watched is only looked at now and then.
fn watch(chain: &[Link], changed: &Sender<()>) -> Option<RecommendedWatcher> {
    let changed = changed.clone();
    let tell = move |event: notify::Result<Event>| {
        if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
            // The thread may have ended.
            let _ = changed.send(());
        }
    };
    let unwatched = |what: &str, error: &notify::Error| {
        tracing::warn!("{what} cannot be watched, and is looked at every {POLL:?}: {error}");
    };
    let watcher = RecommendedWatcher::new(tell, notify::Config::default());
    let mut watcher = watcher.inspect_err(|error| unwatched("no folder", error)).ok()?;
    for folder in folders(chain) {
        if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
            unwatched(&folder.display().to_string(), &error);
        }
    }
    Some(watcher)
}

fn folders(chain: &[Link]) -> BTreeSet<PathBuf> {
    let files = chain.iter().filter_map(|link| link.place.file.as_deref());
    let folder =
        |file: &Path| file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")).to_owned();
    files.map(folder).collect()
}

/// Waits until something happens and no more comes, or it is time to look; `false`: nobody follows any more.
fn wait(changes: &Receiver<()>, clock: &dyn Clock) -> bool {
    match changes.recv_timeout(POLL) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => return true,
        Err(RecvTimeoutError::Disconnected) => return false,
    }
    let first = clock.now().steady;
    while clock.now().steady.saturating_sub(first) < PATIENCE {
        match changes.recv_timeout(QUIET) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

/// Looks at the file of one place, and puts what is new there. A file that was refused is tried again, also with the same
/// bytes: what was missing may have been room to compile it.
pub(super) fn look(runtime: &Runtime, chain: &[Link], place: usize, now_ms: u64) {
    let link = &chain[place];
    let Some(file) = &link.place.file else { return };
    let State { policy, stale } = link.state();
    let Ok(old) = policy else {
        // Nobody has the place, so that there is nobody to keep.
        let loaded = read(file).and_then(|bytes| link.place.load(runtime, &bytes, Trust::UntrustedAgain)).map(Arc::new);
        return link.set(State { policy: loaded, stale: None });
    };
    match newer(runtime, chain, place, file, &old) {
        Ok(Some(new)) => {
            tracing::info!(policy = %link.place.name, digest = %new.digest, "loaded anew");
            link.set(State { policy: Ok(new), stale: None });
        }
        Ok(None) if stale.is_some() => {
            tracing::info!(policy = %link.place.name, "its file is again the one that is in use");
            link.set(State { policy: Ok(old), stale: None });
        }
        Ok(None) => {}
        Err(reason) => {
            if stale.as_ref().is_none_or(|stale| stale.reason != reason) {
                tracing::warn!(policy = %link.place.name, "the last good file stays in use: {reason}");
            }
            // The first of several refusals counts.
            let since_ms = stale.map_or(now_ms, |stale| stale.since_ms);
            link.set(State { policy: Ok(old), stale: Some(Stale { since_ms, reason }) });
        }
    }
}

/// The policy in the file, loaded and tried; `None`: it is the one that is in use.
fn newer(
    runtime: &Runtime,
    chain: &[Link],
    place: usize,
    file: &Path,
    old: &Policy,
) -> Result<Option<Arc<Policy>>, String> {
    let bytes = read(file).map_err(|outcome| outcome.to_string())?;
    if old.digest == digest(&bytes) {
        return Ok(None);
    }
    let new = chain[place].place.load(runtime, &bytes, Trust::UntrustedAgain).map_err(|outcome| outcome.to_string())?;
    let new = Arc::new(new);
    try_out(runtime, &chain[..place], &new)?;
    Ok(Some(new))
}

/// Has the policy judge a made-up session after those `before` it. That it declines is its own affair.
fn try_out(runtime: &Runtime, before: &[Link], policy: &Arc<Policy>) -> Result<(), String> {
    let facts = sample::session(sample::TRIAL);
    rows::with_snapshot(&facts, |snapshot| {
        let mut verdict = None;
        for link in before.iter().filter(|link| link.place.mode == Mode::Enforce) {
            if let Ok(sound) = link.state().evaluate(runtime, &facts, snapshot, verdict.as_ref()).answer {
                verdict = Some(sound);
            }
        }
        let state = State { policy: Ok(Arc::clone(policy)), stale: None };
        match state.evaluate(runtime, &facts, snapshot, verdict.as_ref()).answer {
            Ok(_) | Err(Outcome::Declined(_)) => Ok(()),
            Err(outcome) => Err(format!("on trial {outcome}")),
        }
    })
}
