//! The threads that answer requests. A connection stays with one of them: what a call does goes from task to task many times, and
//! to wake another thread for each would take longer than the task itself.

use super::END;
use std::io;
use std::thread::available_parallelism;
use tokio::runtime::{Builder, Handle, Runtime};

/// The most threads; those who look and judge have their own.
const MOST: usize = 4;

/// The threads, each with a runtime of its own.
pub(super) struct Workers(Vec<Runtime>);

impl Workers {
    /// As many as there are cores for.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start() -> io::Result<Self> {
        let cores = available_parallelism().map_or(1, usize::from);
        let mut workers = Self(Vec::new());
        for _ in 0..cores.min(MOST) {
            let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("http").enable_all().build();
            workers.0.push(runtime?);
        }
        Ok(workers)
    }

    /// The way to them.
    pub fn team(&self) -> Team {
        Team(self.0.iter().map(|runtime| runtime.handle().clone()).collect())
    }

    /// Ends what they do. What is still under way goes with it, unless that takes too long.
    pub async fn end(mut self) {
        let runtimes = std::mem::take(&mut self.0);
        let end = || runtimes.into_iter().for_each(|runtime| runtime.shutdown_timeout(END));
        if let Err(error) = tokio::task::spawn_blocking(end).await {
            tracing::warn!("those who answer requests do not end: {error}");
        }
    }
}

impl Drop for Workers {
    /// Where their end is not waited for, for nothing was begun: a task may not wait for a runtime.
    fn drop(&mut self) {
        self.0.drain(..).for_each(Runtime::shutdown_background);
    }
}

/// Whom to give work.
pub(super) struct Team(Vec<Handle>);

impl Team {
    /// Has the one do this who has least to do.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(idlest) = self.0.iter().min_by_key(|runtime| runtime.metrics().num_alive_tasks()) {
            idlest.spawn(work);
        }
    }
}
