//! Policies whose files change. A change is read whole, loaded and tried aside, and then takes the place; judgements that
//! run meanwhile end on the policy they began with. What cannot be loaded takes nobody's place.

use super::judgement::Stale;
use super::link::{Link, State};
use super::load::read;
use super::{Outcome, Policy, Runtime, digest, rows, sample};
use crate::clock::Clock;
use crate::config::Mode;
use notify::{Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// For how long a folder must be quiet before its files are read: writers take a few steps.
const QUIET: Duration = Duration::from_millis(200);
/// How often files are looked at where folders cannot be watched.
const POLL: Duration = Duration::from_secs(2);

/// Follows the files of a chain on a thread of its own, until it is dropped.
pub(super) struct Follower {
    /// The thread ends when nobody can tell it anything any more.
    _watcher: Box<dyn Watcher + Send + Sync>,
}

impl Follower {
    /// `None` where no policy has a file. Where nothing can be watched, that is said in the log.
    pub fn start(
        runtime: Runtime,
        chain: Arc<Vec<Link>>,
        clock: Arc<dyn Clock>,
        mut told: impl FnMut(&[Link]) + Send + 'static,
    ) -> Option<Self> {
        let folders = folders(&chain);
        if folders.is_empty() {
            return None;
        }
        let (changed, changes) = mpsc::channel();
        let watcher = watch(&folders, &names(&chain), &changed);
        drop(changed);
        let follow = move || {
            while wait(&changes) {
                for place in 0..chain.len() {
                    look(&runtime, &chain, place, clock.now().unix_ms);
                }
                runtime.keep();
                told(&chain);
            }
        };
        let started = thread::Builder::new().name("policy-files".into()).spawn(follow);
        match (watcher, started) {
            (Ok(watcher), Ok(_)) => Some(Self { _watcher: watcher }),
            (Err(error), _) => {
                tracing::warn!("changes of policies' files are not seen: {error}");
                None
            }
            (_, Err(error)) => {
                tracing::warn!("changes of policies' files are not seen: {error}");
                None
            }
        }
    }
}

/// The names of the files, and of the folders that they lie in: what happens to those concerns them too.
fn names(chain: &[Link]) -> BTreeSet<OsString> {
    let files = chain.iter().filter_map(|link| link.place.file.as_deref());
    let names = files.flat_map(|file| [file.file_name(), file.parent().and_then(Path::file_name)]);
    names.flatten().map(OsStr::to_owned).collect()
}

/// The folders, because a file that is replaced is another file.
fn folders(chain: &[Link]) -> BTreeSet<PathBuf> {
    let files = chain.iter().filter_map(|link| link.place.file.as_deref());
    files
        .filter_map(Path::parent)
        .map(|folder| if folder == Path::new("") { ".".into() } else { folder.into() })
        .collect()
}

/// Tells `changed` of all that may concern one of `files`; other files in their folders come and go.
fn watch(
    folders: &BTreeSet<PathBuf>,
    files: &BTreeSet<OsString>,
    changed: &Sender<()>,
) -> notify::Result<Box<dyn Watcher + Send + Sync>> {
    let tell = |changed: Sender<()>| {
        let files = files.clone();
        let concerns = move |event: &notify::Result<Event>| match event {
            Ok(Event { kind: EventKind::Access(_), .. }) => false,
            Ok(event) => {
                event.paths.is_empty()
                    || event.paths.iter().any(|path| path.file_name().is_none_or(|n| files.contains(n)))
            }
            Err(_) => true,
        };
        move |event: notify::Result<Event>| {
            if concerns(&event) {
                // The thread may have ended.
                let _ = changed.send(());
            }
        }
    };
    let told = RecommendedWatcher::new(tell(changed.clone()), notify::Config::default()).and_then(|mut watcher| {
        folders.iter().try_for_each(|folder| watcher.watch(folder, RecursiveMode::NonRecursive))?;
        Ok(watcher)
    });
    match told {
        Ok(watcher) => Ok(Box::new(watcher)),
        Err(error) => {
            tracing::warn!("folders of policies are looked at every {POLL:?}, because they cannot be watched: {error}");
            let config = notify::Config::default().with_poll_interval(POLL).with_compare_contents(true);
            let mut watcher = PollWatcher::new(tell(changed.clone()), config)?;
            for folder in folders {
                if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                    tracing::warn!("changes in {} are not seen: {error}", folder.display());
                }
            }
            Ok(Box::new(watcher))
        }
    }
}

/// Waits for a change, and until no more come; `false`: nobody watches any more.
fn wait(changes: &Receiver<()>) -> bool {
    if changes.recv().is_err() {
        return false;
    }
    loop {
        match changes.recv_timeout(QUIET) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Looks at the file of one place, and puts what is new there. A file that was refused is tried again, also with the same
/// bytes: what was missing may have been room to compile it.
pub(super) fn look(runtime: &Runtime, chain: &[Link], place: usize, now_ms: u64) {
    let link = &chain[place];
    let Some(file) = &link.place.file else { return };
    let State { policy, stale } = link.state();
    let Ok(old) = policy else {
        // Nobody has the place, so that there is nobody to keep.
        let loaded = read(file).and_then(|bytes| link.place.load(runtime, &bytes)).map(Arc::new);
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
    let new = chain[place].place.load(runtime, &bytes).map_err(|outcome| outcome.to_string())?;
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
