//! The monitor over this very machine; only that ticks come, and when, is looked at.

use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::config::{self, Config};
use crate::history;
use crate::judge::{self, Judge, Place};
use crate::observe::Observer;
use crate::observe::processes::{Options, Sampler};

fn watcher(clock: &Arc<SystemClock>) -> Watcher {
    let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
    let sampler = Sampler::new(Arc::clone(&clock), Options::default());
    let observer = Observer::new(Arc::clone(&clock), sampler, &Config::default(), vec![], Default::default()).unwrap();
    let judge_clock = Arc::clone(&clock);
    let history = history::Options { window: Duration::from_secs(600), quiet_cpu_percent: 2.0, quiet_io: 1 << 16 };
    Watcher::new(
        observer,
        move || Judge::new(vec![Place::builtin()], &judge::Options::default(), judge_clock),
        history,
        Decisions::open(std::path::Path::new("/nowhere"), config::Decisions::default()),
        clock,
    )
    .unwrap()
}

fn monitor(pace: Pace) -> Monitor {
    let clock = Arc::new(SystemClock::default());
    let for_thread = Arc::clone(&clock);
    Monitor::start(move || Ok::<_, String>(watcher(&for_thread)), pace, clock).unwrap()
}

/// Never by itself: only questions make it tick.
const NEVER: Pace = Pace { tick: Duration::from_secs(1000), idle_tick: Duration::from_secs(1000) };

#[tokio::test]
async fn answers_come_from_the_same_tick_until_something_changes() {
    let monitor = monitor(NEVER);
    let first = monitor.tick(&Sight::All).await.unwrap();
    assert!(Arc::ptr_eq(&first, &monitor.tick(&Sight::All).await.unwrap()));
    monitor.renew();
    let renewed = monitor.tick(&Sight::All).await.unwrap();
    assert!(renewed.begun > first.at.steady);
    assert!(Arc::ptr_eq(&renewed, &monitor.tick(&Sight::All).await.unwrap()));
}

#[tokio::test]
async fn while_somebody_asks_ticks_go_on() {
    let tick = Duration::from_millis(20);
    let monitor = monitor(Pace { tick, idle_tick: Duration::from_secs(1000) });
    let mut last = monitor.tick(&Sight::All).await.unwrap();
    for _ in 0..5 {
        let next = loop {
            let next = monitor.tick(&Sight::All).await.unwrap();
            if !Arc::ptr_eq(&next, &last) {
                break next;
            }
            tokio::task::yield_now().await;
        };
        assert!(next.at.steady - last.at.steady >= tick);
        last = next;
    }
}

#[tokio::test]
async fn those_who_follow_are_told_of_each_tick() {
    let monitor = monitor(Pace { tick: Duration::from_millis(20), idle_tick: Duration::from_secs(1000) });
    let (mut last, mut following) = monitor.follow(&Sight::All).await.unwrap();
    for _ in 0..5 {
        let next = following.next().await.unwrap();
        assert!(next.at.steady >= last.at.steady, "in their order");
        last = next;
    }
    drop(monitor);
    while following.next().await.is_ok() {}
}

#[test]
fn as_long_as_somebody_follows_the_pace_is_the_faster_one() {
    let clock = Arc::new(ManualClock::at(0));
    let tick = |at| Tick { begun: at, at: clock.now(), sessions: vec![], sources: vec![], timings: Timings::default() };
    let first = tick(Duration::ZERO);
    let (ask, asked) = mpsc::sync_channel(1);
    let pace = Pace { tick: Duration::from_secs(1), idle_tick: Duration::from_secs(1000) };
    let (renewed, attended, figures) = Default::default();
    let ticking = Ticking { asked, renewed, attended, pace, clock: Arc::clone(&clock) as _, figures };
    clock.advance(ATTENTIVE + Duration::from_secs(30));
    assert!(ticking.wait_for_next(&first, || true), "long after the last question one is due");
    drop(ask);
    assert!(!ticking.wait_for_next(&first, || false), "the next was not due yet");
}

#[tokio::test]
async fn who_only_glances_is_answered_and_does_not_keep_up_the_pace() {
    let clock = Arc::new(ManualClock::at(0));
    let looks = || Ok::<_, String>(watcher(&Arc::new(SystemClock::default())));
    let monitor = Monitor::start(looks, NEVER, Arc::clone(&clock) as _).unwrap();
    monitor.glance(&Sight::All).await.unwrap();
    let attended = read(&monitor.attended);
    clock.advance(ATTENTIVE);
    monitor.glance(&Sight::All).await.unwrap();
    assert_eq!(read(&monitor.attended), attended);
    monitor.tick(&Sight::All).await.unwrap();
    assert_eq!(read(&monitor.attended), ATTENTIVE);
}

#[tokio::test]
async fn why_nobody_can_look_is_said_to_everybody_who_asks() {
    let clock = Arc::new(SystemClock::default());
    let monitor = Monitor::start(|| Err::<Watcher, _>("no such kind"), NEVER, clock).unwrap();
    for _ in 0..2 {
        assert!(monitor.tick(&Sight::All).await.unwrap_err().to_string().contains("no such kind"));
    }
    assert!(monitor.ended().unwrap().to_string().contains("no such kind"));
}

#[tokio::test]
async fn whether_anybody_looks_is_known_without_asking_for_a_look() {
    let looks = monitor(NEVER);
    looks.tick(&Sight::All).await.unwrap();
    assert!(looks.ended().is_none());
    assert_eq!((looks.figures().observe.spread().count, looks.figures().judge.spread().count), (1, 1));
    assert!(looks.figures().processes() > 0);
    let breaks = || -> Result<Watcher, String> { panic!("on purpose") };
    let broken = Monitor::start(breaks, NEVER, Arc::new(SystemClock::default())).unwrap();
    assert!(broken.tick(&Sight::All).await.is_err());
    assert!(broken.ended().unwrap().to_string().contains("has broken"));
}

#[test]
fn a_first_look_has_watched_for_a_while() {
    let clock = Arc::new(SystemClock::default());
    let tick = watcher(&clock).look().unwrap();
    assert!(tick.begun >= FIRST_INTERVAL);
    assert!(tick.sources.iter().any(|source| source.name == "processes"));
}
