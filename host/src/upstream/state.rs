//! What the owner of a session decides, without doing any of it: events come in, actions come out, time is an argument.
//!
//! The promises that hold whatever happens in whatever order, and that the tests drive it with: each call is settled exactly
//! once, none is left when the session has closed, none is sent twice unless it may be, and there is one connection at most.

use super::backoff::delay;
use super::error::Failure;
use crate::text::Wait;
use std::collections::BTreeMap;
use std::time::Duration;

/// Names one call among those of a session.
pub type CallId = u64;

/// What the owner has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Begin to connect.
    Connect,
    /// Stop connecting, or end the connection; tell by [`State::disconnected`] when nothing of it is left.
    Disconnect,
    /// Send a call over the connection.
    Send(CallId),
    /// Stop waiting for the answer to a call that was sent.
    Abort(CallId),
    /// Hand the answer that has come to who called.
    Deliver(CallId),
    /// Tell who called that it has failed.
    Fail(CallId, Failure),
    /// Stop: nothing is left to do.
    Finish,
}

/// Where the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// There is none, and nobody needs one.
    Idle,
    /// There is none, and it is too early to try again.
    Waiting,
    /// It is being made.
    Connecting,
    /// It is there.
    Ready,
    /// It is being ended.
    Ending,
    /// It is gone for good.
    Closed,
}

/// What a session allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many calls may be unanswered.
    pub queue: usize,
    /// How long connecting may take.
    pub connect: Duration,
}

#[derive(Debug)]
struct Call {
    begun: Duration,
    deadline: Duration,
    /// Whether it may have reached the server.
    sent: bool,
    /// Whether it was sent on an earlier connection, too.
    again: bool,
}

/// The decisions of one session.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    phase: Phase,
    closing: bool,
    calls: BTreeMap<CallId, Call>,
    /// Connections in a row that came to nothing.
    failures: u32,
    /// Whether this connection has answered a call.
    useful: bool,
    /// When to try again at the earliest, and why not before.
    not_before: Option<(Duration, String)>,
    /// When to stop connecting.
    connect_by: Duration,
    actions: Vec<Action>,
}

impl State {
    /// A session that is not connected.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            phase: Phase::Idle,
            closing: false,
            calls: BTreeMap::new(),
            failures: 0,
            useful: false,
            not_before: None,
            connect_by: Duration::ZERO,
            actions: Vec::new(),
        }
    }

    /// Where the connection is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it is being closed, or is.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Why it is not connected again at once, where it would be too early.
    pub fn setback(&self) -> Option<&str> {
        self.not_before.as_ref().map(|(_, reason)| &**reason)
    }

    /// What is to be done, in this order.
    pub fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// When [`Self::tick`] has something to do next.
    pub fn wake_at(&self) -> Option<Duration> {
        let connection = match self.phase {
            Phase::Connecting => Some(self.connect_by),
            Phase::Waiting => self.not_before.as_ref().map(|(until, _)| *until),
            _ => None,
        };
        self.calls.values().map(|call| call.deadline).chain(connection).min()
    }

    /// Somebody calls, and waits until `deadline`.
    pub fn call(&mut self, id: CallId, now: Duration, deadline: Duration) {
        if self.closing {
            return self.actions.push(Action::Fail(id, Failure::Closed));
        }
        if self.calls.len() >= self.limits.queue {
            return self.actions.push(Action::Fail(id, Failure::QueueFull { limit: self.limits.queue }));
        }
        if let (Phase::Idle | Phase::Waiting, Some((until, reason))) = (self.phase, &self.not_before)
            && *until > now
            && deadline <= *until
        {
            let failure = Failure::Backoff { reason: reason.clone(), retry_in: *until - now };
            return self.actions.push(Action::Fail(id, failure));
        }
        self.calls.insert(id, Call { begun: now, deadline, sent: false, again: false });
        match self.phase {
            Phase::Ready => self.send(id),
            Phase::Idle => self.connect_when_due(now),
            _ => {}
        }
    }

    /// Who called no longer waits.
    pub fn abandoned(&mut self, id: CallId) {
        if self.calls.remove(&id).is_some_and(|call| call.sent) {
            self.actions.push(Action::Abort(id));
        }
        if self.phase == Phase::Waiting && self.calls.is_empty() {
            self.phase = Phase::Idle;
        }
    }

    /// The connection is there.
    pub fn connected(&mut self) {
        if self.phase != Phase::Connecting {
            return;
        }
        self.phase = Phase::Ready;
        self.useful = false;
        for id in self.calls.keys().copied().collect::<Vec<_>>() {
            self.send(id);
        }
    }

    /// No connection could be made, and nothing of the attempt is left.
    pub fn connect_failed(&mut self, now: Duration, chance: u32, reason: &str) {
        if self.phase == Phase::Connecting {
            self.came_to_nothing(now, chance, reason);
            self.fail_all(&Failure::Connect(reason.to_owned()));
        }
        self.disconnected(now);
    }

    /// A call has its answer. A server that dies on each call connects well, and lists its tools, too: only what is `useful`
    /// beyond that makes up for failures.
    pub fn answered(&mut self, id: CallId, useful: bool) {
        if self.calls.remove(&id).is_none() {
            return;
        }
        if useful {
            self.useful = true;
            self.failures = 0;
            self.not_before = None;
        }
        self.actions.push(Action::Deliver(id));
    }

    /// A call has failed, which says nothing of the connection.
    pub fn fail(&mut self, id: CallId, failure: Failure) {
        if self.calls.remove(&id).is_some() {
            self.actions.push(Action::Fail(id, failure));
        }
    }

    /// What has become of this call cannot be told, though the connection goes on.
    pub fn lost(&mut self, id: CallId, reason: &str, may_repeat: bool) {
        match self.calls.get_mut(&id) {
            Some(call) if may_repeat && !call.again && self.phase == Phase::Ready => {
                call.again = true;
                self.send(id);
            }
            _ => self.fail(id, Failure::Lost(reason.to_owned())),
        }
    }

    /// The server has certainly not got this call: it may be sent once more over the next connection.
    pub fn not_delivered(&mut self, id: CallId, reason: &str) {
        match self.calls.get_mut(&id) {
            Some(call) if !call.again => {
                call.sent = false;
                call.again = true;
            }
            Some(_) => self.fail(id, Failure::Connect(reason.to_owned())),
            None => {}
        }
    }

    /// The connection has ended. Those calls that `may_repeat` are sent once more over the next one.
    pub fn ended(&mut self, now: Duration, chance: u32, reason: &str, may_repeat: impl Fn(CallId) -> bool) {
        if self.phase != Phase::Ready {
            return;
        }
        if !self.useful {
            self.came_to_nothing(now, chance, reason);
        }
        let sent: Vec<CallId> = self.calls.iter().filter(|(_, call)| call.sent).map(|(id, _)| *id).collect();
        for id in sent {
            self.actions.push(Action::Abort(id));
            match self.calls.get_mut(&id) {
                Some(call) if !call.again && may_repeat(id) => {
                    call.sent = false;
                    call.again = true;
                }
                _ => self.fail(id, Failure::Lost(reason.to_owned())),
            }
        }
        self.phase = Phase::Ending;
        self.actions.push(Action::Disconnect);
    }

    /// Nothing is left of the connection.
    pub fn disconnected(&mut self, now: Duration) {
        if self.closing {
            if self.phase != Phase::Closed {
                self.phase = Phase::Closed;
                self.actions.push(Action::Finish);
            }
            return;
        }
        self.connect_when_due(now);
    }

    /// Somebody closes the session.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closing, true) {
            return;
        }
        self.fail_all(&Failure::Closed);
        match self.phase {
            Phase::Connecting | Phase::Ready => {
                self.phase = Phase::Ending;
                self.actions.push(Action::Disconnect);
            }
            Phase::Idle | Phase::Waiting => {
                self.phase = Phase::Closed;
                self.actions.push(Action::Finish);
            }
            Phase::Ending | Phase::Closed => {}
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration, chance: u32) {
        let late: Vec<CallId> = self.calls.iter().filter(|(_, call)| call.deadline <= now).map(|(id, _)| *id).collect();
        for id in late {
            let Some(call) = self.calls.get(&id) else { continue };
            let (sent, after) = (call.sent, call.deadline.saturating_sub(call.begun));
            if sent {
                self.actions.push(Action::Abort(id));
            }
            self.fail(id, Failure::Timeout { after, sent });
        }
        match self.phase {
            Phase::Connecting if self.connect_by <= now => {
                let reason = format!("no connection within {}", Wait(self.limits.connect));
                self.came_to_nothing(now, chance, &reason);
                self.fail_all(&Failure::Connect(reason));
                self.phase = Phase::Ending;
                self.actions.push(Action::Disconnect);
            }
            Phase::Waiting => self.connect_when_due(now),
            _ => {}
        }
    }

    fn send(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.sent = true;
            self.actions.push(Action::Send(id));
        }
    }

    /// Connects, or waits until it may, if anybody calls.
    fn connect_when_due(&mut self, now: Duration) {
        self.phase = match &self.not_before {
            _ if self.calls.is_empty() => Phase::Idle,
            Some((until, _)) if *until > now => Phase::Waiting,
            _ => {
                self.connect_by = now.saturating_add(self.limits.connect);
                self.actions.push(Action::Connect);
                Phase::Connecting
            }
        };
    }

    fn came_to_nothing(&mut self, now: Duration, chance: u32, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some((now.saturating_add(delay(self.failures, chance)), reason.to_owned()));
    }

    fn fail_all(&mut self, failure: &Failure) {
        for (id, call) in std::mem::take(&mut self.calls) {
            if call.sent {
                self.actions.push(Action::Abort(id));
            }
            self.actions.push(Action::Fail(id, failure.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
