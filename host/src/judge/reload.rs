//! Policies whose files change. A change is read whole, loaded and tried aside, and then takes the place; judgements that
//! run meanwhile end on the policy they began with. What cannot be loaded takes nobody's place.

use super::judgement::Stale;
use super::link::{Link, State};
use super::load::read;
use super::{Outcome, Runtime, digest};
use crate::clock::Clock;
use notify::{Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
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
        let watcher = watch(&folders, &changed);
        drop(changed);
        let follow = move || {
            while wait(&changes) {
                for link in chain.iter() {
                    look(&runtime, link, clock.now().unix_ms);
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

/// The folders, because a file that is replaced is another file.
fn folders(chain: &[Link]) -> BTreeSet<PathBuf> {
    let files = chain.iter().filter_map(|link| link.place.file.as_deref());
    files
        .filter_map(Path::parent)
        .map(|folder| if folder == Path::new("") { ".".into() } else { folder.into() })
        .collect()
}

fn watch(folders: &BTreeSet<PathBuf>, changed: &Sender<()>) -> notify::Result<Box<dyn Watcher + Send + Sync>> {
    let tell = |changed: Sender<()>| {
        move |event: notify::Result<Event>| {
            if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
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

/// Looks at one file, and puts what is new in its place. A file that was refused is tried again, also with the same bytes:
/// what was missing may have been room to compile it.
pub(super) fn look(runtime: &Runtime, link: &Link, now_ms: u64) {
    let Some(file) = &link.place.file else { return };
    let State { policy, stale } = link.state();
    let loaded = read(file).and_then(|bytes| match &policy {
        Ok(current) if current.digest == digest(&bytes) => Ok(Arc::clone(current)),
        _ => link.place.load(runtime, &bytes).map(Arc::new),
    });
    match (loaded, policy) {
        (Ok(new), Ok(old)) if new.digest == old.digest => {
            if stale.is_some() {
                tracing::info!(policy = %link.place.name, "its file is again the one that is in use");
                link.set(State { policy: Ok(old), stale: None });
            }
        }
        (Ok(new), _) => {
            tracing::info!(policy = %link.place.name, digest = %new.digest, "loaded anew");
            link.set(State { policy: Ok(new), stale: None });
        }
        (Err(outcome), Ok(old)) => {
            let stale = refused(&outcome, stale, now_ms);
            tracing::warn!(policy = %link.place.name, "its new file is not used: {}", stale.reason);
            link.set(State { policy: Ok(old), stale: Some(stale) });
        }
        (Err(outcome), Err(_)) => link.set(State { policy: Err(outcome), stale: None }),
    }
}

/// Since when: the first of several refusals counts.
fn refused(outcome: &Outcome, before: Option<Stale>, now_ms: u64) -> Stale {
    Stale { since_ms: before.map_or(now_ms, |stale| stale.since_ms), reason: outcome.to_string() }
}
