//! The session at work: requests are taken in order of arrival and called one at a time, as whoever reads `active_tool` expects.

use super::folder::Unusable;
use super::mailbox::{Accepted, Mailbox};
use super::permit::Permit;
use super::request::{Id, Request};
use super::response::{Category, Done, Patterns, Response, judged};
use super::standing::{HEARTBEAT, Standing};
use super::watch::{POLL, Watch};
use crate::clock::Clock;
use crate::upstream::{Phase, Session, Tool, UpstreamError};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};

/// How long an idle session waits for a list of tools, while it could take requests.
const LIST_MAX: Duration = Duration::from_secs(1);

/// So old the list of tools may be by which it is decided whether one is called.
const LIST_AGE: Duration = Duration::from_secs(5);

/// The signals that end a session in order.
#[derive(Debug)]
pub struct Ends([Signal; 3]);

impl Ends {
    /// Hears them from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?]))
    }

    /// Waits for one.
    pub async fn come(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Why a session has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Somebody has closed it.
    Closed,
    /// Its folder cannot be used any more.
    Lost(Unusable),
}

/// How requests are treated.
#[derive(Debug)]
pub struct Work {
    /// Which tools may be called.
    pub permit: Arc<Permit>,
    /// What is made of what tools say of their failures.
    pub patterns: Patterns,
    /// How long the answer to a call is waited for.
    pub timeout: Duration,
    /// How long a response is kept that nobody fetches.
    pub keep: Duration,
}

/// A session that is connected.
pub struct Service {
    /// The requests.
    pub mailbox: Mailbox,
    /// How it stands.
    pub standing: Standing,
    session: Session,
    ends: Ends,
    clock: Arc<dyn Clock>,
    work: Work,
    /// The tools that may be called, as far as is known.
    tools: Vec<String>,
    listed_at: Duration,
    /// When the server was last asked for them: not each tells that they have changed.
    asked_at: Duration,
    /// Whether it has said that the system refuses.
    in_trouble: bool,
}

impl Service {
    /// A session of which has been told that it is ready.
    pub fn new(
        mailbox: Mailbox,
        standing: Standing,
        session: Session,
        ends: Ends,
        clock: Arc<dyn Clock>,
        work: Work,
        tools: Vec<String>,
    ) -> Self {
        let listed_at = clock.now().steady;
        Self { mailbox, standing, session, ends, clock, work, tools, listed_at, asked_at: listed_at, in_trouble: false }
    }

    /// Serves requests until it ends, for whatever reason.
    pub async fn serve(&mut self) -> End {
        let mut watch = Watch::over(self.mailbox.folder().path());
        loop {
            if let Err(end) = self.step(&mut watch).await {
                return end;
            }
        }
    }

    /// Does what there is to do, or waits for something.
    async fn step(&mut self, watch: &mut Watch) -> Result<(), End> {
        self.upkeep()?;
        self.mailbox.heard(watch.heard());
        let now = self.clock.now().steady;
        match self.mailbox.next(now) {
            Ok(Some(Accepted::Call(id, request))) => self.call(&id, request).await,
            Ok(Some(Accepted::Close(id))) => {
                self.deliver(&id, &Response::success()).await?;
                Err(End::Closed)
            }
            Ok(None) => {
                self.refresh().await;
                let most = self.mailbox.wake_at().map_or(POLL, |at| at.saturating_sub(now));
                tokio::select! {
                    () = watch.wait(most) => Ok(()),
                    () = self.ends.come() => Err(End::Closed),
                }
            }
            Err(error) => self.wait_out(&error).await,
        }
    }

    async fn call(&mut self, id: &Id, request: Request) -> Result<(), End> {
        let Request { tool, arguments } = request;
        let begun = self.clock.now().steady;
        let is_old = begun.saturating_sub(self.asked_at) >= LIST_AGE;
        let (session, permit) = (self.session.clone(), Arc::clone(&self.work.permit));
        let tools = match self.meanwhile(permitted(session, permit, tool.clone(), is_old, self.work.timeout)).await {
            Ok(Ok(tools)) => tools,
            Ok(Err(category)) => return self.deliver(id, &Response::error(category, Done::No)).await,
            Err(end) => return Err(self.cut_short(id, Category::TRANSPORT_LOST, Done::No, end)),
        };
        self.tools = self.work.permit.names(&tools);
        if is_old {
            self.asked_at = begun;
        }
        self.note(|service| service.standing.busy(service.mailbox.folder(), &tool));
        let rest = self.work.timeout.saturating_sub(self.clock.now().steady.saturating_sub(begun));
        let session = self.session.clone();
        let called = self.meanwhile(async move { session.call_tool_within(&tool, arguments, rest).await }).await;
        let called = match called {
            Ok(called) => called,
            Err(end) => return Err(self.cut_short(id, Category::UNKNOWN_OUTCOME, Done::Unknown, end)),
        };
        // Who has seen the response may expect that the next request is waited for.
        self.tell_ready();
        self.deliver(id, &Response::of(called, &self.work.patterns)).await
    }

    /// Answers what the end of the session cuts short, if that can be written at once. Else its mark says the same.
    fn cut_short(&mut self, id: &Id, category: Category, done: Done, end: End) -> End {
        let _ = self.mailbox.answer(id, &Response::error(category, done));
        end
    }

    /// Answers, and does nothing else before that could be written. Where the session ends before, it says at least what is
    /// shorter: that there was an answer.
    async fn deliver(&mut self, id: &Id, response: &Response) -> Result<(), End> {
        while let Err(error) = self.mailbox.answer(id, response) {
            self.note(|service| service.standing.held_up(service.mailbox.folder()));
            let ended = match self.wait_out(&error).await {
                Ok(()) => self.upkeep(),
                end => end,
            };
            if let Err(end) = ended {
                return Err(self.cut_short(id, Category::UNKNOWN_OUTCOME, Done::Yes, end));
            }
        }
        self.in_trouble = false;
        Ok(())
    }

    /// Waits for something, and does meanwhile what has to be done.
    async fn meanwhile<T>(&mut self, comes: impl Future<Output = T>) -> Result<T, End> {
        let mut comes = pin!(comes);
        loop {
            tokio::select! {
                come = &mut comes => return Ok(come),
                () = self.ends.come() => return Err(End::Closed),
                () = sleep(POLL) => self.upkeep()?,
            }
        }
    }

    /// What has to be done now and then: it ends with its folder, it says that it lives, it removes what nobody fetches.
    fn upkeep(&mut self) -> Result<(), End> {
        match self.mailbox.folder().check() {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(End::Lost(why)),
            Err(error) => self.complain(&error),
        }
        if self.standing.is_due() {
            self.note(|service| service.standing.beat(service.mailbox.folder()));
            let keep = u64::try_from(self.work.keep.as_millis()).unwrap_or(u64::MAX);
            let before = self.clock.now().unix_ms.saturating_sub(keep);
            self.note(|service| service.mailbox.forget(before));
        }
        Ok(())
    }

    /// Sees whether the tools, or the connection, are what was last told of them.
    async fn refresh(&mut self) {
        let now = self.clock.now().steady;
        let connected = self.session.status().phase == Phase::Ready;
        if connected
            && now.saturating_sub(self.listed_at) >= HEARTBEAT
            && let Ok(Ok(tools)) = timeout(LIST_MAX, self.session.list_tools()).await
        {
            (self.tools, self.listed_at) = (self.work.permit.names(&tools), now);
        }
        if !self.standing.says(&self.tools, connected) {
            self.tell_ready();
        }
    }

    fn tell_ready(&mut self) {
        let connected = self.session.status().phase == Phase::Ready;
        self.note(|service| service.standing.ready(service.mailbox.folder(), service.tools.clone(), connected));
    }

    /// Waits until what has failed may be tried again.
    async fn wait_out(&mut self, error: &io::Error) -> Result<(), End> {
        self.complain(error);
        tokio::select! {
            () = sleep(POLL) => Ok(()),
            () = self.ends.come() => Err(End::Closed),
        }
    }

    /// Does what may fail without anything being lost by that.
    fn note(&mut self, what: impl FnOnce(&mut Self) -> io::Result<()>) {
        if let Err(error) = what(self) {
            self.complain(&error);
        }
    }

    /// Says what the system refuses, once until something succeeds again.
    fn complain(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.in_trouble, true) {
            tracing::warn!("the folder cannot be read or written, and is tried again: {}", error.kind());
        }
    }
}

/// The tools that the server has, if the one of this name among them may be called now. One that is not known may be new.
async fn permitted(
    session: Session,
    permit: Arc<Permit>,
    tool: String,
    anew: bool,
    within: Duration,
) -> Result<Vec<Tool>, Category> {
    let category = |error: UpstreamError| judged(&error.failure).0;
    let looked = timeout(within, async {
        let tools = if anew { session.list_tools_anew().await } else { session.list_tools().await };
        let mut tools = tools.map_err(category)?;
        if !anew && permit.check(&tool, &tools) == Err(Category::UNKNOWN_TOOL) {
            tools = session.list_tools_anew().await.map_err(category)?;
        }
        permit.check(&tool, &tools).map(|()| tools)
    });
    looked.await.unwrap_or(Err(Category::TIMEOUT_RECHECK_STATE))
}
