//! Nothing is lost and nothing counted twice, whatever forks, ends and waits.

use crate::observe::processes::ProcessId;
use crate::observe::processes::accounts::{Accounts, Seen};
use crate::observe::processes::row::{CpuReading, Io};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const MS: u64 = 1_000_000;
const ROOT: ProcessId = ProcessId { pid: 2, start: 0 };

/// What may happen to the processes; numbers choose among those that live.
#[derive(Debug, Clone)]
enum Event {
    Fork(usize),
    Run(usize, u64),
    Move(usize, u64),
    /// A process without children ends, and its parent waits for it.
    EndWaited(usize),
    /// It ends, and nobody is told its times.
    EndUnseen(usize),
    Sample,
}

fn event(waited_only: bool) -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => any::<usize>().prop_map(Event::Fork),
        4 => (any::<usize>(), 1..200 * MS).prop_map(|(who, time)| Event::Run(who, time)),
        1 => (any::<usize>(), 1..5000_u64).prop_map(|(who, bytes)| Event::Move(who, bytes)),
        3 => any::<usize>().prop_map(Event::EndWaited),
        u32::from(!waited_only) => any::<usize>().prop_map(Event::EndUnseen),
        3 => Just(Event::Sample),
    ]
    .prop_filter("only waited ends", move |event| !waited_only || !matches!(event, Event::EndUnseen(_)))
}

#[derive(Debug, Clone, Default)]
struct Truth {
    parent: u32,
    start: u64,
    own: u64,
    waited: u64,
    io: u64,
}

/// The kernel's side of the story.
struct World {
    alive: BTreeMap<u32, Truth>,
    next: u32,
    now: u64,
    /// All CPU time used, and all bytes moved.
    used: u64,
    moved: u64,
    parents: u64,
    /// CPU time of those whose end nobody was told.
    lost: u64,
}

impl World {
    fn new() -> Self {
        let alive = BTreeMap::from([(ROOT.pid, Truth { parent: 1, ..Truth::default() })]);
        Self { alive, next: 3, now: 0, used: 0, moved: 0, parents: 1, lost: 0 }
    }

    fn who(&self, choice: usize) -> u32 {
        *self.alive.keys().nth(choice % self.alive.len()).unwrap()
    }

    /// One that may end: not the root, and without children.
    fn leaf(&self, choice: usize) -> Option<u32> {
        let leaves: Vec<u32> = (self.alive.keys().copied())
            .filter(|pid| *pid != ROOT.pid && !self.alive.values().any(|other| other.parent == *pid))
            .collect();
        (!leaves.is_empty()).then(|| leaves[choice % leaves.len()])
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::Fork(who) => {
                let parent = self.who(who);
                self.now += 1;
                self.parents += 1;
                self.alive.insert(self.next, Truth { parent, start: self.now, ..Truth::default() });
                self.next += 1;
            }
            Event::Run(who, time) => {
                let pid = self.who(who);
                self.alive.get_mut(&pid).unwrap().own += time;
                self.used += time;
            }
            Event::Move(who, bytes) => {
                let pid = self.who(who);
                self.alive.get_mut(&pid).unwrap().io += bytes;
                self.moved += bytes;
            }
            Event::EndWaited(who) => {
                let Some(ended) = self.leaf(who).and_then(|pid| self.alive.remove(&pid)) else {
                    return;
                };
                let parent = self.alive.get_mut(&ended.parent).unwrap();
                parent.waited += ended.own + ended.waited;
                parent.io += ended.io;
            }
            Event::EndUnseen(who) => {
                if let Some(ended) = self.leaf(who).and_then(|pid| self.alive.remove(&pid)) {
                    self.lost += ended.own + ended.waited;
                }
            }
            Event::Sample => self.now += 100,
        }
    }

    fn seen(&self, last: u64) -> Vec<Seen> {
        self.alive
            .iter()
            .map(|(&pid, truth)| {
                let newcomer = pid != ROOT.pid && truth.start > last;
                // `cutime` and `cstime` are shown in whole ticks: a third in user mode, say.
                let shown = |time: u64| time / (10 * MS) * (10 * MS);
                let waited = shown(truth.waited / 3) + shown(truth.waited - truth.waited / 3);
                Seen {
                    id: ProcessId { pid, start: truth.start },
                    root: ROOT,
                    parent: truth.parent,
                    image: 1,
                    cpu: CpuReading { own: truth.own, waited, at: Duration::from_millis(self.now) },
                    before: newcomer.then(|| CpuReading { at: Duration::from_millis(last), ..CpuReading::default() }),
                    newcomer,
                    io: Some(Io { moved: truth.io, ..Io::default() }),
                }
            })
            .collect()
    }
}

/// What was counted, and the world it was counted in.
struct Played {
    cpu: u64,
    moved: u64,
    world: World,
}

impl Played {
    /// How far the rounding of the children's times may part the figures from the truth.
    fn rounding(&self) -> u64 {
        20 * MS * self.world.parents
    }
}

/// Plays the events and samples in between.
fn play(events: &[Event]) -> Played {
    let (mut world, mut accounts) = (World::new(), Accounts::default());
    let (mut cpu, mut moved, mut last) = (0, 0, 0);
    let mut sample = |world: &World| {
        let seen = world.seen(last);
        last = world.now;
        let alive = |id: ProcessId| world.alive.get(&id.pid).is_some_and(|truth| truth.start == id.start);
        let spent = accounts.settle(&seen, alive)[&ROOT];
        cpu += spent.cpu;
        moved += spent.io.moved;
        assert!(spent.cores >= 0.0);
    };
    sample(&world);
    // Twice at the end, for those that are expected once more.
    for event in events.iter().chain(&[Event::Sample, Event::Sample]) {
        world.apply(event);
        if matches!(event, Event::Sample) {
            sample(&world);
        }
    }
    Played { cpu, moved, world }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn with_every_child_waited_for_the_sum_is_the_truth(events in prop::collection::vec(event(true), 0..120)) {
        let played = play(&events);
        let used = played.world.used;
        prop_assert!(played.cpu.abs_diff(used) <= played.rounding(), "{} of {used}", played.cpu);
        prop_assert_eq!(played.moved, played.world.moved);
    }

    /// Who was waited for is a guess then, and may be as far off as what was lost.
    #[test]
    fn children_that_nobody_waits_for_make_no_spike(events in prop::collection::vec(event(false), 0..120)) {
        let played = play(&events);
        let most = played.world.used + played.world.lost + played.rounding();
        prop_assert!(played.cpu <= most, "{} of {most}", played.cpu);
    }
}

fn seen(pid: u32, parent: u32, own: u64, waited: u64, at: u64) -> Seen {
    Seen {
        id: ProcessId { pid, start: u64::from(pid) },
        root: ProcessId { pid: 2, start: 2 },
        parent,
        image: 1,
        cpu: CpuReading { own: own * MS, waited: waited * MS, at: Duration::from_millis(at) },
        before: None,
        newcomer: false,
        io: None,
    }
}

/// What the tree of 2 has used, in ms and in percent.
fn settle(accounts: &mut Accounts, now: &[Seen]) -> (u64, u64) {
    let spent = accounts.settle(now, |id| now.iter().any(|seen| seen.id == id))[&ProcessId { pid: 2, start: 2 }];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
    let percent = (spent.cores * 100.0).round() as u64;
    (spent.cpu / MS, percent)
}

#[test]
fn what_a_child_used_after_it_was_last_seen_comes_through_its_parent() {
    let mut accounts = Accounts::default();
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 100, 0, 0), seen(3, 2, 500, 0, 0)]), (0, 0));
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 100, 0, 1000), seen(3, 2, 600, 0, 1000)]), (100, 10));
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 100, 900, 2000)]), (300, 30));
}

#[test]
fn a_child_that_is_waited_for_just_after_its_parent_was_read_counts_once() {
    let mut accounts = Accounts::default();
    settle(&mut accounts, &[seen(2, 1, 0, 0, 0), seen(3, 2, 500, 0, 0)]);
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 0, 0, 1000)]), (0, 0));
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 0, 510, 2000)]), (10, 1));
}

#[test]
fn a_child_whose_parent_ended_too_counts_once() {
    let mut accounts = Accounts::default();
    settle(&mut accounts, &[seen(2, 1, 0, 0, 0), seen(3, 2, 300, 0, 0), seen(4, 3, 500, 0, 0)]);
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 0, 800, 1000)]), (0, 0));
}

#[test]
fn a_nested_agent_that_ends_does_not_count_for_the_outer_one() {
    let mut accounts = Accounts::default();
    let nested = Seen { root: ProcessId { pid: 3, start: 3 }, ..seen(3, 2, 60_000, 0, 0) };
    settle(&mut accounts, &[seen(2, 1, 0, 0, 0), nested]);
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 0, 60_000, 1000)]), (0, 0));
}

#[test]
fn a_counter_that_falls_is_not_counted_again() {
    let mut accounts = Accounts::default();
    settle(&mut accounts, &[seen(2, 1, 500, 100, 0)]);
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 100, 0, 1000)]), (0, 0));
    assert_eq!(settle(&mut accounts, &[seen(2, 1, 520, 100, 2000)]), (20, 2));
}
