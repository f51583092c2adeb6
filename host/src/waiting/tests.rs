//! Waiting on this very machine, for agents that are declared and are not there.

use super::*;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config};
use crate::history;
use crate::judge::{self, Judge, Place};
use crate::monitor::{Decisions, Pace, Watcher};
use crate::observe::Observer;
use crate::observe::processes::{Options, Sampler};
use crate::observe::roster::{FileSource, Source};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// A pid that no process has: beyond the highest that the kernel gives.
const NO_PID: u32 = 4_194_304 + 17;

/// Writes a roster with the session `s` and these agents, of which only `me` is there; no session where there are none.
fn declare(roster: &Path, agents: &[&str]) {
    let pid = |name: &str| if name == "me" { std::process::id() } else { NO_PID };
    let agent = |name: &&str| format!("[[session.agent]]\nname = \"{name}\"\npid = {}\n", pid(name));
    let session = if agents.is_empty() { "" } else { "[[session]]\nid = \"s\"\nname = \"The shop\"\n" };
    std::fs::write(roster, session.to_owned() + &agents.iter().map(agent).collect::<String>()).unwrap();
}

/// A monitor that ticks this often while somebody follows, and never else.
fn monitor(roster: &Path, tick: Duration) -> Monitor {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let (for_thread, roster) = (Arc::clone(&clock), roster.to_owned());
    let watcher = move || {
        let sampler = Sampler::new(Arc::clone(&for_thread), Options::default());
        let sources: Vec<Box<dyn Source>> = vec![Box::new(FileSource::new(roster))];
        let config = Config::default();
        let observer = Observer::new(Arc::clone(&for_thread), sampler, &config, sources, Default::default()).unwrap();
        let judge_clock = Arc::clone(&for_thread);
        let history = history::Options { window: Duration::from_secs(600), quiet_cpu_percent: 2.0, quiet_io: 1 << 16 };
        Watcher::new(
            observer,
            move || Judge::new(vec![Place::builtin()], &judge::Options::default(), judge_clock),
            history,
            Decisions::open(Path::new("/nowhere"), config::Decisions::default()),
            for_thread,
        )
    };
    Monitor::start(watcher, Pace { tick, idle_tick: Duration::from_secs(1000) }, clock).unwrap()
}

const TICK: Duration = Duration::from_millis(20);

const PATIENCE: Duration = Duration::from_secs(30);

fn names(waited: &Waited) -> Vec<&str> {
    waited.attention.needs.iter().filter_map(|need| need.agent_name.as_deref()).collect()
}

#[tokio::test]
async fn one_who_waits_is_told_at_once_and_then_only_of_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let roster = dir.path().join("r.toml");
    declare(&roster, &["one"]);
    let monitor = monitor(&roster, TICK);
    let first = Waiting::begin(&monitor, &Sight::All, "The shop", None).await.unwrap().until_needed().await.unwrap();
    assert_eq!((names(&first), first.timed_out, first.session_ended), (vec!["one"], false, false));
    let mark = first.attention.mark.clone();
    let mut second = Waiting::begin(&monitor, &Sight::All, "s", Some(mark)).await.unwrap();
    assert!(timeout(Duration::from_millis(200), second.until_needed()).await.is_err(), "there is nothing new");
    let nothing = second.timed_out();
    assert_eq!((names(&nothing), nothing.timed_out), (vec![], true));
    assert_eq!(nothing.attention.mark, first.attention.mark);
    declare(&roster, &["one", "two"]);
    let told = timeout(PATIENCE, second.until_needed()).await.unwrap().unwrap();
    assert_eq!(names(&told), ["two"]);
    let words = told.summary("--since");
    assert!(words.contains("two") && words.contains(&format!("--since {}\n", told.attention.mark)), "{words}");
}

#[tokio::test]
async fn the_end_of_the_session_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let roster = dir.path().join("r.toml");
    declare(&roster, &["one"]);
    let monitor = monitor(&roster, TICK);
    let now =
        Waiting::begin(&monitor, &Sight::All, "s", None).await.unwrap().until_needed().await.unwrap().attention.mark;
    let mut waiting = Waiting::begin(&monitor, &Sight::All, "s", Some(now)).await.unwrap();
    declare(&roster, &[]);
    let told = timeout(PATIENCE, waiting.until_needed()).await.unwrap().unwrap();
    assert_eq!((names(&told), told.timed_out, told.session_ended), (vec![], false, true));
    let error = Waiting::begin(&monitor, &Sight::All, "s", None).await.unwrap_err();
    assert!(matches!(error, QueryError::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn a_session_that_is_gone_for_one_look_has_not_ended() {
    let dir = tempfile::tempdir().unwrap();
    let roster = dir.path().join("r.toml");
    declare(&roster, &["one"]);
    // There is time enough between two looks to write the roster anew.
    let monitor = monitor(&roster, Duration::from_secs(1));
    let now =
        Waiting::begin(&monitor, &Sight::All, "s", None).await.unwrap().until_needed().await.unwrap().attention.mark;
    let mut waiting = Waiting::begin(&monitor, &Sight::All, "s", Some(now)).await.unwrap();
    declare(&roster, &[]);
    let gone_once = async {
        while waiting.absent == 0 {
            assert!(timeout(Duration::from_millis(100), waiting.until_needed()).await.is_err(), "it was gone once");
        }
    };
    timeout(PATIENCE, gone_once).await.unwrap();
    declare(&roster, &["one", "two"]);
    let told = timeout(PATIENCE, waiting.until_needed()).await.unwrap().unwrap();
    assert_eq!((names(&told), told.session_ended), (vec!["two"], false));
    let mut waiting = Waiting::begin(&monitor, &Sight::All, "s", Some(told.attention.mark)).await.unwrap();
    std::fs::write(&roster, "[[sess").unwrap();
    let unread = timeout(Duration::from_secs(4), waiting.until_needed());
    assert!(unread.await.is_err(), "a roster that cannot be read says nothing of its end");
}

#[tokio::test]
async fn an_agent_that_is_gone_for_one_look_has_not_left() {
    let dir = tempfile::tempdir().unwrap();
    let roster = dir.path().join("r.toml");
    declare(&roster, &["one", "me"]);
    // There is time enough between two looks to write the roster anew.
    let monitor = monitor(&roster, Duration::from_secs(1));
    let now =
        Waiting::begin(&monitor, &Sight::All, "s", None).await.unwrap().until_needed().await.unwrap().attention.mark;
    let mut waiting = Waiting::begin(&monitor, &Sight::All, "s", Some(now)).await.unwrap();
    declare(&roster, &["one"]);
    let missing = async |waiting: &mut Waiting, how_many: usize| {
        while waiting.missing.len() != how_many {
            let told = timeout(Duration::from_millis(100), waiting.until_needed()).await;
            assert!(told.is_err(), "it was gone once: {told:?}");
        }
    };
    timeout(PATIENCE, missing(&mut waiting, 1)).await.unwrap();
    declare(&roster, &["one", "me"]);
    timeout(PATIENCE, missing(&mut waiting, 0)).await.unwrap();
    assert!(
        timeout(Duration::from_millis(100), waiting.until_needed()).await.is_err(),
        "it is no news that it is back"
    );
    declare(&roster, &["one"]);
    let told = timeout(PATIENCE, waiting.until_needed()).await.unwrap().unwrap();
    assert_eq!((names(&told), told.attention.needs[0].kind), (vec!["me"], crate::report::NeedKind::Left));
    assert_eq!(told.attention.needs[0].why, "is in the session no more: it is declared no more");
}

#[tokio::test]
async fn many_who_wait_make_no_work_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let roster = dir.path().join("r.toml");
    declare(&roster, &["one"]);
    let monitor = monitor(&roster, Duration::from_secs(1000));
    let first = Waiting::begin(&monitor, &Sight::All, "s", None).await.unwrap();
    for _ in 0..50 {
        let other = Waiting::begin(&monitor, &Sight::All, "s", None).await.unwrap();
        // Of one tick, and so is what is found out of it.
        assert!(Arc::ptr_eq(&first.last, &other.last));
    }
}
