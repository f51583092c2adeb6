//! The owner's decisions, driven by whatever may happen in whatever order.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: Limits = Limits { queue: 4, connect: Duration::from_secs(3) };

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A session with these calls waiting for a connection.
fn connecting(calls: std::ops::Range<CallId>) -> State {
    let mut state = State::new(LIMITS);
    calls.for_each(|id| state.call(id, Duration::ZERO, seconds(60)));
    assert_eq!(state.actions(), [Action::Connect], "once, however many come together");
    state
}

#[test]
fn what_was_lost_is_not_sent_again_unless_it_may_be() {
    let mut state = connecting(0..2);
    state.connected();
    assert_eq!(state.actions(), [Action::Send(0), Action::Send(1)]);
    state.ended(seconds(1), 0, "gone", |id| id == 1);
    let lost = Action::Fail(0, Failure::Lost("gone".into()));
    assert_eq!(state.actions(), [Action::Abort(0), lost, Action::Abort(1), Action::Disconnect]);
    state.disconnected(seconds(1));
    assert_eq!(state.phase(), Phase::Waiting, "the connection was of no use: not at once");
    state.tick(state.wake_at().unwrap(), 0);
    assert_eq!(state.actions(), [Action::Connect]);
    state.connected();
    assert_eq!(state.actions(), [Action::Send(1)]);
    state.ended(seconds(5), 0, "again", |_| true);
    assert_eq!(state.actions()[1], Action::Fail(1, Failure::Lost("again".into())), "no third time");
}

#[test]
fn only_an_answer_makes_up_for_failures() {
    let mut state = State::new(LIMITS);
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    for id in 0..4 {
        state.call(id, now, now + seconds(60));
        now = now.max(state.not_before.as_ref().map_or(now, |(until, _)| *until));
        state.tick(now, u32::MAX);
        state.connected();
        state.ended(now, u32::MAX, "dies on each call", |_| false);
        state.disconnected(now);
        waits.push((state.not_before.as_ref().unwrap().0 - now).as_millis());
    }
    assert_eq!(waits, [250, 500, 1000, 2000]);
    state.call(9, now, now + seconds(1));
    let told = Failure::Backoff { reason: "dies on each call".into(), retry_in: seconds(2) };
    assert_eq!(state.actions().last(), Some(&Action::Fail(9, told)));
    state.call(10, now, now + seconds(60));
    now += seconds(2);
    state.tick(now, 0);
    state.connected();
    state.answered(10, true);
    state.ended(now, 0, "ends", |_| false);
    state.disconnected(now);
    state.actions();
    state.call(11, now, now + seconds(60));
    assert_eq!(state.actions(), [Action::Connect], "at once");
}

#[test]
fn a_handshake_that_hangs_is_given_up() {
    let mut state = connecting(0..1);
    assert_eq!(state.wake_at(), Some(seconds(3)));
    state.tick(seconds(3), 0);
    let failed = Action::Fail(0, Failure::Connect("no connection within 3 s".into()));
    assert_eq!(state.actions(), [failed, Action::Disconnect]);
    state.call(1, seconds(3), seconds(90));
    state.connected();
    assert_eq!(state.actions(), [], "too late");
    state.disconnected(seconds(4));
    assert_eq!(state.actions(), [Action::Connect]);
    state.close();
    assert_eq!(state.actions(), [Action::Fail(1, Failure::Closed), Action::Disconnect]);
    state.disconnected(seconds(5));
    assert_eq!(state.actions(), [Action::Finish]);
}

#[derive(Debug, Clone)]
enum Event {
    Call { patience_ms: u64 },
    Abandon(usize),
    Connected,
    ConnectFailed,
    Answered(usize),
    Refused(usize),
    NotDelivered(usize),
    Lost(usize),
    Ended,
    Disconnected,
    Pass { ms: u64 },
    Close,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..20_000_u64).prop_map(|patience_ms| Event::Call { patience_ms }),
        1 => (0..8_usize).prop_map(Event::Abandon),
        5 => Just(Event::Connected),
        2 => Just(Event::ConnectFailed),
        4 => (0..8_usize).prop_map(Event::Answered),
        1 => (0..8_usize).prop_map(Event::Refused),
        1 => (0..8_usize).prop_map(Event::NotDelivered),
        1 => (0..8_usize).prop_map(Event::Lost),
        3 => Just(Event::Ended),
        4 => Just(Event::Disconnected),
        4 => (0..4_000_u64).prop_map(|ms| Event::Pass { ms }),
        1 => Just(Event::Close),
    ]
}

/// The world around a state: what there is of a connection, and what has become of each call.
#[derive(Default)]
struct World {
    now: Duration,
    /// Whether a connection, or an attempt at one, exists.
    exists: bool,
    /// Whether it is to be ended.
    to_end: bool,
    finished: bool,
    /// Calls not settled yet, with how often each was sent, and whether it was told not to have arrived.
    open: BTreeMap<CallId, (u32, bool)>,
    in_flight: BTreeSet<CallId>,
    calls: CallId,
}

/// Calls with an odd id may be repeated.
fn may_repeat(id: CallId) -> bool {
    id % 2 == 1
}

impl World {
    fn nth(&self, n: usize) -> Option<CallId> {
        self.in_flight.iter().nth(n).copied()
    }

    /// Whether the thing can happen in a world like this; if so it does.
    fn happen(&mut self, event: &Event, state: &mut State) {
        match *event {
            Event::Call { patience_ms } => {
                self.open.insert(self.calls, (0, false));
                state.call(self.calls, self.now, self.now + Duration::from_millis(patience_ms));
                self.calls += 1;
            }
            Event::Abandon(n) => {
                if let Some(id) = self.open.keys().nth(n).copied() {
                    self.open.remove(&id);
                    state.abandoned(id);
                }
            }
            Event::Connected if self.exists && state.phase() == Phase::Connecting => state.connected(),
            Event::ConnectFailed if self.exists && state.phase() == Phase::Connecting => {
                (self.exists, self.to_end) = (false, false);
                state.connect_failed(self.now, 7, "refused");
            }
            Event::Answered(n) => self.nth(n).into_iter().for_each(|id| {
                self.in_flight.remove(&id);
                state.answered(id, id % 3 > 0);
            }),
            Event::Refused(n) => self.nth(n).into_iter().for_each(|id| {
                self.in_flight.remove(&id);
                state.fail(id, Failure::Unsupported("x"));
            }),
            Event::NotDelivered(n) if state.phase() == Phase::Ready => self.nth(n).into_iter().for_each(|id| {
                self.in_flight.remove(&id);
                if let Some(call) = self.open.get_mut(&id) {
                    call.1 = true;
                }
                state.not_delivered(id, "not there");
                state.ended(self.now, 7, "not there", may_repeat);
            }),
            Event::Lost(n) => self.nth(n).into_iter().for_each(|id| {
                self.in_flight.remove(&id);
                state.lost(id, "cut", may_repeat(id));
            }),
            Event::Ended => state.ended(self.now, 7, "gone", may_repeat),
            Event::Disconnected if self.to_end => {
                (self.exists, self.to_end) = (false, false);
                state.disconnected(self.now);
            }
            Event::Pass { ms } => {
                self.now += Duration::from_millis(ms);
                state.tick(self.now, 7);
            }
            Event::Close => state.close(),
            _ => {}
        }
    }

    fn obey(&mut self, action: Action) {
        let refuses = matches!(action, Action::Fail(_, Failure::Closed));
        assert!(!self.finished || refuses, "nothing after the end, but {action:?}");
        match action {
            Action::Connect => {
                assert!(!self.exists, "a second connection");
                self.exists = true;
            }
            Action::Disconnect => {
                assert!(self.exists && !self.to_end, "there is nothing to end");
                self.to_end = true;
            }
            Action::Send(id) => {
                assert!(self.exists && !self.to_end, "there is nothing to send over");
                assert!(self.in_flight.insert(id), "{id} is on its way already");
                let (sent, not_arrived) = self.open.get_mut(&id).expect("it is not settled");
                *sent += 1;
                let most = if may_repeat(id) || *not_arrived { 2 } else { 1 };
                assert!(*sent <= most, "{id} was sent {sent} times");
            }
            Action::Abort(id) => assert!(self.in_flight.remove(&id), "{id} is not on its way"),
            Action::Deliver(id) | Action::Fail(id, _) => {
                assert!(self.open.remove(&id).is_some(), "{id} is settled a second time");
                assert!(!self.in_flight.contains(&id), "{id} is still on its way");
            }
            Action::Finish => {
                assert!(!self.exists, "a connection is left");
                self.finished = true;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_settled_once_whatever_happens(events in prop::collection::vec(event(), 0..120)) {
        let mut state = State::new(LIMITS);
        let mut world = World::default();
        let end = [Event::Close, Event::Disconnected];
        for event in events.iter().chain(&end) {
            world.happen(event, &mut state);
            state.actions().into_iter().for_each(|action| world.obey(action));
            prop_assert!(world.open.len() <= LIMITS.queue, "more wait than may");
            let waits = !world.open.is_empty();
            prop_assert!(!waits || state.wake_at().is_some(), "somebody waits for nothing");
            prop_assert!(!waits || world.exists || state.phase() == Phase::Waiting, "nobody sees to who waits");
        }
        prop_assert!(world.finished && world.open.is_empty(), "left hanging: {:?}", world.open);
    }

    /// Whatever has happened, when nothing more does, time alone settles every call.
    #[test]
    fn nobody_waits_longer_than_to_the_deadline(events in prop::collection::vec(event(), 0..60)) {
        let mut state = State::new(LIMITS);
        let mut world = World::default();
        for event in &events {
            world.happen(event, &mut state);
            state.actions().into_iter().for_each(|action| world.obey(action));
        }
        world.happen(&Event::Pass { ms: 20_000 }, &mut state);
        state.actions().into_iter().for_each(|action| world.obey(action));
        prop_assert_eq!(world.open.len(), 0);
    }
}
