//! The sessions that a running program keeps, and who asks over them for agents.
//!
//! They live on a thread of their own: whoever looks at this machine is a plain thread, which reads what was heard last
//! ([`source`]) and waits for nobody. An upstream is asked again when its answer is old and somebody has looked since: while
//! nobody watches, looks are rare, and so are questions.

mod heard;
mod kept;
mod source;

pub use heard::Heard;

use super::BadServer;
use super::status::Status;
use super::view::UpstreamRow;
use crate::clock::Clock;
use crate::config::Upstream;
use crate::names::Instance;
use crate::observe::roster::Source;
use kept::Kept;
use source::AgentSource;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// For how long changes are gathered before they are told: a call is several of them.
const GATHER: Duration = Duration::from_millis(200);

/// Who is told how the kept sessions stand, whenever that changes.
pub type Tell = Box<dyn Fn(&[UpstreamRow]) + Send>;

/// The kept sessions. When it is dropped, nothing is left of them.
pub struct Pool {
    kept: Arc<[Kept]>,
    end: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is counted of a kept session.
#[derive(Debug)]
pub struct Figures<'a> {
    /// The upstream's name.
    pub name: &'a str,
    /// How the session stands.
    pub status: Status,
    /// How old the last answer about agents is; `None`: there is none.
    pub age: Option<Duration>,
}

/// Why no sessions can be kept.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A server that cannot be configured so.
    #[error(transparent)]
    Server(#[from] BadServer),
    /// There is no thread, or nothing that it could wait with.
    #[error("no sessions with upstream servers can be kept: {0}")]
    Thread(#[from] io::Error),
}

impl Debug for Pool {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.kept.iter().map(Kept::name)).finish()
    }
}

impl Pool {
    /// Keeps a session with each of `upstreams` that has agents to tell of, and begins to ask; `None`: none has, and nothing is
    /// started. `me` is which headcount this is.
    ///
    /// # Errors
    /// When a server cannot be configured so, or no thread can be started.
    pub fn start(
        upstreams: &[Upstream],
        me: Instance,
        clock: &Arc<dyn Clock>,
        tell: Option<Tell>,
    ) -> Result<Option<Arc<Self>>, PoolError> {
        if upstreams.iter().all(|upstream| upstream.agents_from.is_none()) {
            return Ok(None);
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let changed = Arc::new(Notify::new());
        let kept = {
            let _inside = runtime.enter();
            let all = upstreams.iter().filter_map(|upstream| Kept::new(upstream, me, clock, &changed).transpose());
            all.collect::<Result<Arc<[Kept]>, BadServer>>()?
        };
        let end = CancellationToken::new();
        let keeping = Keeping { kept: Arc::clone(&kept), end: end.clone(), changed, tell };
        let thread = thread::Builder::new().name("upstream".into()).spawn(move || keeping.run(runtime))?;
        Ok(Some(Arc::new(Self { kept, end, thread: Mutex::new(Some(thread)) })))
    }

    /// What there is to read for who looks: the agents of each upstream.
    pub fn sources(&self) -> impl Iterator<Item = Box<dyn Source>> {
        let each = 0..self.kept.len();
        each.map(|place| Box::new(AgentSource::new(Arc::clone(&self.kept), place)) as Box<dyn Source>)
    }

    /// Waits until each upstream has answered or failed for the first time, but for no longer than this.
    pub fn first_answers(&self, patience: Duration) {
        let mut left = patience;
        for kept in &*self.kept {
            left = kept.first_answer(left, patience);
        }
    }

    /// How the sessions stand now, in the order of the configuration.
    pub fn rows(&self) -> Vec<UpstreamRow> {
        self.kept.iter().map(Kept::row).collect()
    }

    /// The figures of the sessions, in the order of the configuration.
    pub fn figures(&self) -> impl Iterator<Item = Figures<'_>> {
        self.kept.iter().map(Kept::figures)
    }

    /// Begins to end them, which takes a while where a server pays no heed.
    pub fn close(&self) {
        self.end.cancel();
    }

    /// Ends them all, and waits until nothing is left of them. It is bounded in time, and may be called any number of times.
    pub fn end(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the upstream sessions has broken");
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread's side.
struct Keeping {
    kept: Arc<[Kept]>,
    end: CancellationToken,
    changed: Arc<Notify>,
    tell: Option<Tell>,
}

impl Keeping {
    fn run(self, runtime: Runtime) {
        runtime.block_on(async {
            let mut asking = JoinSet::new();
            for place in 0..self.kept.len() {
                let kept = Arc::clone(&self.kept);
                asking.spawn(async move { kept[place].ask_again_and_again().await });
            }
            tokio::select! {
                () = self.end.cancelled() => {}
                () = self.tell_of_changes() => {}
            }
            drop(asking);
            let mut closing = JoinSet::new();
            for session in self.kept.iter().map(|kept| kept.session().clone()) {
                closing.spawn(async move { session.close().await });
            }
            closing.join_all().await;
        });
        // A name that is still being looked up would keep it from ending.
        runtime.shutdown_background();
    }

    /// Never ends.
    async fn tell_of_changes(&self) {
        let Some(tell) = &self.tell else { return std::future::pending().await };
        let mut told = Vec::new();
        loop {
            let rows: Vec<UpstreamRow> = self.kept.iter().map(Kept::row).collect();
            if rows != told {
                tell(&rows);
                told = rows;
            }
            self.changed.notified().await;
            tokio::time::sleep(GATHER).await;
        }
    }
}
