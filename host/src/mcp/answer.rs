//! What all tools answer from: the latest tick, each report written out once.

use crate::clients::Ledger;
use crate::figures::Count;
use crate::judge::Link;
use crate::monitor::{self, Ended, Following, Monitor, Seen, Sight, Tick};
use crate::query::{Queries, QueryError};
use crate::report::{self, Mark, Rendered, View};
use crate::setup::{Rosters, Setup, SetupError};
use crate::store::audit::{Audit, AuditLine, RefusedLine};
use crate::store::log::LogStats;
use crate::upstream::Pool;
use crate::waiting::Waiting;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Everything that tools need.
pub struct Service {
    setup: Arc<Setup>,
    /// The roster files that declare agents beside those that are configured.
    rosters: Vec<PathBuf>,
    monitor: Monitor,
    upstreams: Option<Arc<Pool>>,
    audit: Audit,
    ledger: Arc<Ledger>,
    written: Mutex<Written>,
    /// The places of the chain, once policies were loaded.
    chain: Arc<OnceLock<Arc<Vec<Link>>>>,
    queries: Queries,
    flow: Arc<Flow>,
}

/// What becomes of what is sent to clients.
#[derive(Debug, Default)]
pub struct Flow {
    /// Changes of sessions that subscribers were told of.
    pub told: Count,
    /// Changes that were told later, with what came after them.
    pub coalesced: Count,
    /// Prepared answers that were kept no more when they were to be sent.
    pub forgotten: Count,
}

/// The reports of one tick that somebody has asked for.
#[derive(Default)]
struct Written {
    /// When it began, which tells it from all others, however much of it somebody sees.
    begun: Option<Duration>,
    reports: HashMap<Key, Arc<Writing>>,
}

/// Of which session, whether for one whom its sources do not concern, and as which view.
type Key = (String, bool, View);

/// A report that whoever wants it first has written; all others wait for that.
type Writing = OnceCell<Arc<Rendered>>;

/// Views of one tick that are kept written out; there are more only where somebody makes up views.
const KEPT: usize = 64;

impl Service {
    /// Begins to watch.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(setup: Setup, rosters: Rosters) -> Result<Self, SetupError> {
        let setup = Arc::new(setup.deferring());
        let audit = setup.audit();
        let ledger = Arc::new(setup.ledger()?);
        let teller = setup.teller();
        let upstreams = setup.pool(Some(teller.clone()))?;
        let files = rosters.files.clone();
        let rosters = Rosters { upstreams: upstreams.clone(), ..rosters };
        let for_thread = Arc::clone(&setup);
        let chain = Arc::new(OnceLock::new());
        let known = Arc::clone(&chain);
        let watcher = move || {
            let tell = move |chain: &Arc<Vec<Link>>| {
                known.get_or_init(|| Arc::clone(chain));
                teller.policies(chain);
            };
            Ok::<_, SetupError>(for_thread.watcher(rosters)?.following_policies(tell))
        };
        let monitor = Monitor::start(watcher, setup.pace(), Arc::clone(&setup.clock))?;
        let (written, queries, flow) = Default::default();
        Ok(Self { setup, rosters: files, monitor, upstreams, audit, ledger, written, chain, queries, flow })
    }

    /// The latest tick, as somebody sees it.
    ///
    /// # Errors
    /// When nobody looks any more.
    pub async fn tick(&self, sight: &Sight) -> Result<Arc<Tick>, Ended> {
        self.monitor.tick(sight).await
    }

    /// The same for one who asks whether or not anybody wants to know.
    ///
    /// # Errors
    /// When nobody looks any more.
    pub async fn glance(&self, sight: &Sight) -> Result<Arc<Tick>, Ended> {
        self.monitor.glance(sight).await
    }

    /// The latest tick that there is, however old it is.
    pub fn latest(&self, sight: &Sight) -> Option<Arc<Tick>> {
        self.monitor.latest(sight)
    }

    /// The latest tick, and those that come after it, as somebody sees them.
    ///
    /// # Errors
    /// When nobody looks any more.
    pub async fn follow(&self, sight: &Sight) -> Result<(Arc<Tick>, Following), Ended> {
        self.monitor.follow(sight).await
    }

    /// One who waits until somebody in a session needs somebody.
    ///
    /// # Errors
    /// When there is no such session, or nobody looks any more.
    pub async fn wait(&self, sight: &Sight, session: &str, since: Option<Mark>) -> Result<Waiting, QueryError> {
        Waiting::begin(&self.monitor, sight, session, since).await
    }

    /// Has the next answer look anew.
    pub fn renew(&self) {
        self.monitor.renew();
    }

    /// A session's report, written out, and how old it is in milliseconds. Written on another thread, because that of a thousand
    /// agents takes milliseconds in which no other client would be answered.
    ///
    /// # Errors
    /// When the report cannot be written as JSON, which would be a defect.
    pub async fn report(&self, tick: &Tick, seen: &Arc<Seen>, view: View) -> anyhow::Result<(u64, Arc<Rendered>)> {
        let age = u64::try_from(self.monitor.age(tick).as_millis()).unwrap_or(u64::MAX);
        let key = (seen.facts.session.id.clone(), seen.is_withheld, view);
        let (of, view) = (Arc::clone(seen), key.2.clone());
        let write = move || Rendered::new(&report::report(&of.facts, &of.judgement, &view, age));
        let report = self.writing(tick, key);
        let written = async || anyhow::Ok(Arc::new(tokio::task::spawn_blocking(write).await??));
        Ok((age, Arc::clone(report.get_or_try_init(written).await?)))
    }

    /// Where a report of this tick is or will be. What was written of an earlier one is forgotten.
    fn writing(&self, tick: &Tick, key: Key) -> Arc<Writing> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.begun < Some(tick.begun) {
            *written = Written { begun: Some(tick.begun), reports: HashMap::new() };
        }
        let is_latest = written.begun == Some(tick.begun);
        if is_latest && (written.reports.len() < KEPT || written.reports.contains_key(&key)) {
            return Arc::clone(written.reports.entry(key).or_default());
        }
        Arc::default()
    }

    /// What it was set up from.
    pub fn setup(&self) -> &Arc<Setup> {
        &self.setup
    }

    /// The roster files beside those that are configured.
    pub fn rosters(&self) -> &[PathBuf] {
        &self.rosters
    }

    /// The sessions that are kept with upstream servers; `None`: there are none.
    pub fn upstreams(&self) -> Option<&Arc<Pool>> {
        self.upstreams.as_ref()
    }

    /// The ledger of clients.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// The time on the steady clock.
    pub fn steady(&self) -> Duration {
        self.setup.clock.now().steady
    }

    /// The wall clock's time, Unix milliseconds.
    pub fn unix_ms(&self) -> u64 {
        self.setup.clock.now().unix_ms
    }

    /// Notes who asked for what and what became of it. Never fails and never waits.
    pub fn note(&self, line: AuditLine) {
        self.queries.note(&line);
        self.audit.record(line);
    }

    /// Notes what was refused. Never fails and never waits.
    pub fn note_refused(&self, line: RefusedLine) {
        self.audit.record_refused(line);
    }

    /// How queries fared so far.
    pub fn queries(&self) -> &Queries {
        &self.queries
    }

    /// What became of what was sent to clients so far.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// What became of the audit log's lines so far.
    pub fn audited(&self) -> LogStats {
        self.audit.stats()
    }

    /// What ticks have cost so far.
    pub fn ticks(&self) -> &monitor::Figures {
        self.monitor.figures()
    }

    /// Why nobody looks any more; `None`: somebody does.
    pub fn ended(&self) -> Option<Ended> {
        self.monitor.ended()
    }

    /// How old a tick is now.
    pub fn age(&self, tick: &Tick) -> Duration {
        self.monitor.age(tick)
    }

    /// The places of the chain; none before the policies were loaded.
    pub fn chain(&self) -> &[Link] {
        self.chain.get().map_or(&[], |chain| chain.as_slice())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let stats = self.audit.stats();
        if stats.dropped + stats.failed > 0 {
            let error = stats.last_error.as_deref().unwrap_or("the queue was full");
            tracing::warn!(dropped = stats.dropped, failed = stats.failed, "the audit log is incomplete: {error}");
        }
    }
}
