//! When to look into the folder: the system tells of what comes. Where it does not, a look now and then has to do, and that is
//! what finds whatever was missed.

use super::request::{Entry, Id};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How often the folder is looked into in any case.
pub const POLL: Duration = Duration::from_millis(500);

/// So much may come before somebody listens; of what comes beyond that is only known that it is there.
const MOST: usize = 1024;

/// Hears of what comes into a folder.
#[derive(Debug)]
pub struct Watch {
    /// Ends when it is dropped.
    _watcher: Option<RecommendedWatcher>,
    /// Held, so that there is never an end to what may be told.
    _tell: mpsc::Sender<Option<Id>>,
    told: mpsc::Receiver<Option<Id>>,
    heard: Vec<Id>,
}

impl Watch {
    /// Hears of what comes into `folder` from now on.
    pub fn over(folder: &Path) -> Self {
        let (tell, told) = mpsc::channel(MOST);
        let watcher = watcher(folder, tell.clone()).inspect_err(|_| {
            tracing::warn!("the folder cannot be watched, and is looked into every {} ms", POLL.as_millis());
        });
        Self { _watcher: watcher.ok(), _tell: tell, told, heard: Vec::new() }
    }

    /// Waits until something comes, or it is time to look in any case.
    pub async fn wait(&mut self, most: Duration) {
        // That time is up is as good a reason to look as any.
        if let Ok(Some(id)) = timeout(most.min(POLL), self.told.recv()).await {
            self.heard.extend(id);
        }
    }

    /// The requests that have come since it was last asked, in order.
    pub fn heard(&mut self) -> Vec<Id> {
        while let Ok(id) = self.told.try_recv() {
            self.heard.extend(id);
        }
        std::mem::take(&mut self.heard)
    }
}

fn watcher(folder: &Path, tell: mpsc::Sender<Option<Id>>) -> notify::Result<RecommendedWatcher> {
    let tell = move |event: notify::Result<Event>| {
        if let Some(told) = event.ok().and_then(meaning) {
            // Where there is no room somebody will look soon, and find it.
            let _ = tell.try_send(told);
        }
    };
    let mut watcher = RecommendedWatcher::new(tell, notify::Config::default())?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// The request that has come, as far as that is told; `None`: nothing of interest, as this process does most itself.
fn meaning(event: Event) -> Option<Option<Id>> {
    if matches!(event.kind, EventKind::Access(_) | EventKind::Remove(_)) {
        return None;
    }
    if event.paths.is_empty() {
        return Some(None);
    }
    // Of a renaming the last one is the new name.
    let name = event.paths.last().and_then(|path| path.file_name()).and_then(|name| name.to_str());
    match name.and_then(Entry::of) {
        Some(Entry::Request(id)) => Some(Some(id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn what_comes_is_told_at_once_and_in_order_and_what_is_not_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::over(dir.path());
        for name in ["status.json", "request-b.json", "response-c.json", "request-a.json", "request-g.json"] {
            std::fs::write(dir.path().join(name), "{}").unwrap();
        }
        let mut heard = Vec::new();
        let start = Instant::now();
        while heard.iter().collect::<std::collections::BTreeSet<_>>().len() < 2 {
            assert!(start.elapsed() < Duration::from_secs(30), "{heard:?}");
            watch.wait(POLL).await;
            heard.extend(watch.heard());
        }
        heard.dedup();
        assert_eq!(heard, ["b", "a"].map(|id| Id::parse(id).unwrap()));
    }

    #[tokio::test]
    async fn where_nothing_is_told_a_look_comes_all_the_same() {
        let mut watch = Watch::over(std::path::Path::new("/nowhere"));
        let start = Instant::now();
        watch.wait(Duration::MAX).await;
        assert!(start.elapsed() >= POLL && watch.heard().is_empty());
    }
}
