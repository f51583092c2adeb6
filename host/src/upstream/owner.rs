//! The one task that holds a session's connection: it hears what happens, has [`State`] decide, and does that.

use super::Server;
use super::allow::Allow;
use super::asking::Asking;
use super::calls::{Answer, Request, Unanswered};
use super::connect::{Connection, connect};
use super::error::Failure;
use super::state::{Action, CallId, Limits, Phase, State};
use super::status::Status;
use crate::clock::Clock;
use rmcp::model::Tool;
use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A call on its way to the owner.
#[derive(Debug)]
pub struct Order {
    /// Its name among the session's calls.
    pub id: CallId,
    /// What is asked.
    pub request: Request,
    /// How long the answer is waited for.
    pub patience: Duration,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Answer, Failure>>,
}

/// The owner's end of what the handles hold.
#[derive(Debug)]
pub struct Lines {
    /// The calls; bounded.
    pub orders: mpsc::Receiver<Order>,
    /// The calls that nobody waits for any more. There are never more of them than calls.
    pub gone: mpsc::UnboundedReceiver<CallId>,
    /// Cancelled when the session is to be closed.
    pub close: CancellationToken,
    /// Tells that it is, when the owner is gone, for whatever reason.
    #[expect(dead_code, reason = "it acts by being dropped")]
    pub closed: DropGuard,
    /// How it stands.
    pub status: watch::Sender<Status>,
}

/// What a call came to, and the sending that it came of.
type Done = ((CallId, u64), Result<Answer, Unanswered>);

enum Event {
    Order(Order),
    Gone(CallId),
    Close,
    Done(Done),
    Connected(Result<Result<Connection, String>, JoinError>),
    Ended(String),
    Disconnected,
    Changed,
    Time,
}

struct Call {
    request: Request,
    answer: oneshot::Sender<Result<Answer, Failure>>,
    /// The last sending of it, while that goes on.
    sending: Option<u64>,
    result: Option<Result<Answer, Failure>>,
}

/// The owner of one session.
pub struct Owner {
    server: Arc<Server>,
    allow: Arc<Allow>,
    clock: Arc<dyn Clock>,
    lines: Lines,
    state: State,
    calls: HashMap<CallId, Call>,
    asking: Asking<(CallId, u64), Result<Answer, Unanswered>>,
    sendings: u64,
    connecting: Option<(JoinHandle<Result<Connection, String>>, CancellationToken)>,
    connection: Option<Connection>,
    ended: Option<Pin<Box<dyn Future<Output = String> + Send>>>,
    ending: Option<JoinHandle<()>>,
    changes: (mpsc::Sender<()>, mpsc::Receiver<()>),
    tools: Option<Arc<[Tool]>>,
    /// Whether the server may offer other tools by now.
    stale: bool,
    warned: BTreeSet<String>,
    /// When time is to be heard of.
    timer: Option<(Duration, Pin<Box<Sleep>>)>,
    finished: bool,
}

impl Owner {
    /// An owner that does nothing yet.
    pub fn new(server: Arc<Server>, allow: Arc<Allow>, clock: Arc<dyn Clock>, lines: Lines) -> Self {
        let limits = Limits { queue: server.queue, connect: server.connect };
        Self {
            server,
            allow,
            clock,
            lines,
            state: State::new(limits),
            calls: HashMap::new(),
            asking: Asking::default(),
            sendings: 0,
            connecting: None,
            connection: None,
            ended: None,
            ending: None,
            changes: mpsc::channel(1),
            tools: None,
            stale: false,
            warned: BTreeSet::new(),
            timer: None,
            finished: false,
        }
    }

    /// Works until the session is closed, or nobody holds it any more.
    pub async fn run(mut self) {
        while !self.finished {
            let event = self.next().await;
            self.hear(event);
            // Doing one thing may decide another.
            while let Some(actions) = Some(self.state.actions()).filter(|actions| !actions.is_empty()) {
                actions.into_iter().for_each(|action| self.act(action));
            }
            self.tell();
        }
    }

    async fn next(&mut self) -> Event {
        self.arm();
        let open = !self.state.is_closing();
        tokio::select! {
            order = self.lines.orders.recv(), if open => order.map_or(Event::Close, Event::Order),
            Some(id) = self.lines.gone.recv() => Event::Gone(id),
            () = self.lines.close.cancelled(), if open => Event::Close,
            done = self.asking.next() => Event::Done(done),
            made = of(self.connecting.as_mut().map(|(task, _)| task)) => Event::Connected(made),
            why = of(self.ended.as_mut()) => Event::Ended(why),
            _ = of(self.ending.as_mut()) => Event::Disconnected,
            Some(()) = self.changes.1.recv() => Event::Changed,
            () = of(self.timer.as_mut().map(|(_, timer)| timer)) => Event::Time,
        }
    }

    /// Sees to it that time is heard of no later than it has to be. That it comes too early, because the call that waited is
    /// answered, is cheaper than a timer for each call.
    fn arm(&mut self) {
        let Some(at) = self.state.wake_at() else { return };
        if self.timer.as_ref().is_none_or(|(armed, _)| at < *armed) {
            let wait = at.saturating_sub(self.clock.now().steady);
            self.timer = Some((at, Box::pin(tokio::time::sleep(wait))));
        }
    }

    fn hear(&mut self, event: Event) {
        let now = self.clock.now().steady;
        match event {
            Event::Order(order) => self.order(order, now),
            Event::Gone(id) => {
                if let Some(sending) = self.calls.remove(&id).and_then(|call| call.sending) {
                    self.asking.give_up((id, sending));
                }
                self.state.abandoned(id);
            }
            Event::Close => self.close(),
            Event::Done(done) => self.done(done, now),
            Event::Connected(made) => self.connected(made, now),
            Event::Ended(why) => {
                // Answers that have come count, whatever came after them.
                while let Some(done) = self.asking.ready() {
                    self.done(done, now);
                }
                self.ended(&why, now);
            }
            Event::Disconnected => {
                self.ending = None;
                self.state.disconnected(now);
            }
            Event::Changed => self.stale = true,
            Event::Time => {
                self.timer = None;
                let before = self.state.phase();
                self.state.tick(now, chance());
                if (before, self.state.phase()) == (Phase::Connecting, Phase::Ending) {
                    self.note(self.state.setback().unwrap_or("given up"));
                }
            }
        }
    }

    fn order(&mut self, order: Order, now: Duration) {
        let Order { id, request, patience, answer } = order;
        let allowed = match &request {
            Request::CallTool { name, .. } => self.allow.check(name),
            _ => Ok(()),
        };
        if !matches!(request, Request::ListTools { .. }) {
            self.lines.status.send_modify(|status| status.calls += 1);
        }
        self.calls.insert(id, Call { request, answer, sending: None, result: None });
        match allowed {
            Ok(()) => self.state.call(id, now, now.saturating_add(patience)),
            Err(refusal) => self.settle(id, Err(refusal)),
        }
    }

    fn close(&mut self) {
        self.state.close();
        self.lines.orders.close();
        while let Ok(order) = self.lines.orders.try_recv() {
            let _ = order.answer.send(Err(Failure::Closed));
        }
    }

    fn done(&mut self, ((id, sending), result): Done, now: Duration) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.sending.take_if(|last| *last == sending).is_none() {
            return;
        }
        let is_list = matches!(call.request, Request::ListTools { .. });
        self.stale |= result.as_ref().is_err_and(Unanswered::hints_at_change);
        match result {
            Ok(answer) => {
                if let Answer::Tools(tools) = &answer {
                    self.take_tools(Arc::clone(tools));
                }
                call_result(&mut self.calls, id, Ok(answer));
                self.state.answered(id, !is_list);
            }
            Err(Unanswered::Refused(failure)) => {
                call_result(&mut self.calls, id, Err(failure));
                self.state.answered(id, !is_list);
            }
            Err(Unanswered::Failed(failure)) => self.state.fail(id, failure),
            // That is told of the connection, too, and better.
            Err(Unanswered::Cut) if self.connection.as_ref().is_some_and(Connection::ends_whole) => {}
            Err(lost @ (Unanswered::Lost(_) | Unanswered::Cut)) => {
                let ours =
                    self.connection.as_ref().filter(|_| matches!(lost, Unanswered::Cut)).and_then(Connection::take_cut);
                let why = ours.map_or_else(|| lost.why(), str::to_owned);
                let repeatable = self.may_repeat(id);
                self.state.lost(id, &why, repeatable);
            }
            Err(Unanswered::NotDelivered(why)) => {
                self.state.not_delivered(id, &why);
                self.ended(&why, now);
            }
        }
    }

    fn connected(&mut self, made: Result<Result<Connection, String>, JoinError>, now: Duration) {
        self.connecting = None;
        let made = made.unwrap_or_else(|error| Err(format!("connecting was cut short: {error}")));
        match made {
            Ok(connection) if self.state.phase() == Phase::Connecting => {
                self.ended = Some(Box::pin(connection.watch().end()));
                self.take_tools(connection.tools.clone().into());
                self.stale = false;
                let about = connection.about.clone();
                self.lines.status.send_modify(|status| status.connected(about));
                self.connection = Some(connection);
                self.state.connected();
            }
            // It was given up at the moment when it came.
            Ok(connection) => self.ending = Some(tokio::spawn(connection.close())),
            Err(why) => {
                if self.state.phase() == Phase::Connecting {
                    self.note(&why);
                }
                self.state.connect_failed(now, chance(), &why);
            }
        }
    }

    fn ended(&mut self, why: &str, now: Duration) {
        if self.state.phase() != Phase::Ready {
            return;
        }
        self.note(why);
        let repeatable: BTreeSet<CallId> = self.calls.keys().copied().filter(|id| self.may_repeat(*id)).collect();
        self.state.ended(now, chance(), why, |id| repeatable.contains(&id));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Connect => {
                let cancel = CancellationToken::new();
                let (server, changed, token) = (Arc::clone(&self.server), self.changes.0.clone(), cancel.clone());
                let task = tokio::spawn(async move { connect(&server, changed, &token).await });
                self.connecting = Some((task, cancel));
            }
            Action::Disconnect => {
                self.ended = None;
                if let Some((_, cancel)) = &self.connecting {
                    cancel.cancel();
                }
                self.ending = self.connection.take().map(|connection| tokio::spawn(connection.close()));
            }
            Action::Send(id) => self.send(id),
            Action::Abort(id) => {
                if let Some(sending) = self.calls.get_mut(&id).and_then(|call| call.sending.take()) {
                    self.asking.give_up((id, sending));
                }
            }
            Action::Deliver(id) => {
                let result = self.calls.get_mut(&id).and_then(|call| call.result.take());
                self.settle(id, result.unwrap_or(Err(Failure::Closed)));
            }
            Action::Fail(id, failure) => self.settle(id, Err(failure)),
            Action::Finish => self.finished = true,
        }
    }

    fn send(&mut self, id: CallId) {
        let (Some(call), Some(connection)) = (self.calls.get_mut(&id), &self.connection) else { return };
        let request = call.request.clone();
        match (&request, &self.tools) {
            // The list may have changed since the call was made.
            (Request::CallTool { name, .. }, _) => {
                if let Err(refusal) = self.allow.check(name) {
                    return self.state.fail(id, refusal);
                }
            }
            (Request::ListTools { anew: false }, Some(tools)) if !self.stale => {
                call.result = Some(Ok(Answer::Tools(Arc::clone(tools))));
                return self.state.answered(id, false);
            }
            (Request::ListTools { .. }, _) => self.stale = false,
            _ => {}
        }
        self.sendings += 1;
        let (sending, peer) = (self.sendings, connection.peer());
        self.asking.add((id, sending), async move { request.ask(&peer).await });
        call.sending = Some(sending);
    }

    fn take_tools(&mut self, tools: Arc<[Tool]>) {
        for name in self.allow.unknown(&tools) {
            if self.warned.insert(name.clone()) {
                tracing::warn!(
                    "upstream {}: the tool {name} is allowed, but the server has none of this name",
                    self.server.name
                );
            }
        }
        self.tools = Some(tools);
    }

    /// Whether a call may be sent once more though the server may have done it already: where that changes nothing, or the
    /// tool says that it changes nothing more.
    fn may_repeat(&self, id: CallId) -> bool {
        match self.calls.get(&id).map(|call| &call.request) {
            Some(Request::CallTool { name, .. }) => {
                let tool = self.tools.iter().flat_map(|tools| tools.iter()).find(|tool| tool.name == **name);
                let says = tool.and_then(|tool| tool.annotations.as_ref());
                says.is_some_and(|says| says.read_only_hint == Some(true) || says.idempotent_hint == Some(true))
            }
            Some(_) => true,
            None => false,
        }
    }

    fn settle(&mut self, id: CallId, result: Result<Answer, Failure>) {
        let Some(call) = self.calls.remove(&id) else { return };
        if result.is_err() {
            self.lines.status.send_modify(|status| status.failures += 1);
        }
        let _ = call.answer.send(result);
    }

    /// Remembers what went wrong with the connection.
    fn note(&self, why: &str) {
        let now = self.clock.now().unix_ms;
        self.lines.status.send_modify(|status| status.went_wrong(why, now));
    }

    /// Says to who watches how the session stands.
    fn tell(&self) {
        let (phase, now) = (self.state.phase(), self.clock.now().unix_ms);
        let tools = self.tools.as_ref().map(|tools| self.allow.count(tools));
        self.lines.status.send_if_modified(|status| status.is(phase, now, tools));
    }
}

/// A future that may be there, to be waited for among others.
async fn of<F: Future + Unpin>(future: Option<&mut F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

fn call_result(calls: &mut HashMap<CallId, Call>, id: CallId, result: Result<Answer, Failure>) {
    if let Some(call) = calls.get_mut(&id) {
        call.result = Some(result);
    }
}

/// Spreads the attempts of many. Where there is no randomness they come together, which is no harm.
fn chance() -> u32 {
    getrandom::u32().unwrap_or_default()
}
