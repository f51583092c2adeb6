//! Agents whose records are SQLite databases: OpenCode, Goose and Crush. Many processes may have conversations in one
//! database, and nothing in it names a process.
//!
//! Whose a conversation is follows from its id, which the process's hooks have told or its own command line names; else from
//! the database itself, where one living process alone holds it open for writing: what was gone on with since it started is
//! its own. Everything else is not decided.
//!
//! All databases of a look share its time. Those that wait come first in the next one; what was found in them before stands
//! meanwhile, with the time that it has, and processes are not asked in its place.

mod crush;
mod goose;
mod opencode;
mod rows;
mod sums;
#[cfg(test)]
mod tests;
mod whose;

use super::{Records, Subject, Testimony, gap};
use crate::clock::{Clock as _, Moment, SystemClock};
use crate::observe::facts::{ACTIVITY, Claim, Evidence, Gap, Usage};
use crate::observe::processes::{ProcessId, Program};
use crate::store::foreign::{self, Opened, Row, Stamps, Unread};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sums::Sums;
use whose::{Ask, Whose, undecided};

/// So many sessions may have begun one another.
const DEEPEST: usize = 16;

/// So long the reading of all databases may take in one look. One of them is read in any case.
const BUDGET: Duration = Duration::from_millis(150);

/// What is said of a database whose turn has not come.
const WAITS: &str = "its database is still to be read";

/// All kinds of agents that keep databases.
const KINDS: [&dyn Kind; 3] = [&opencode::OpenCode, &goose::Goose, &crush::Crush];

/// How one kind of agent keeps its database.
trait Kind: Debug + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Whether it is one of its databases, by its path.
    fn is_database(&self, path: &Path) -> bool;

    /// Where a program keeps its database, for one that does not hold it open.
    fn place(&self, program: &Program) -> Result<PathBuf, String>;

    /// The options of its command line that name a conversation.
    fn options(&self) -> &'static [&'static str];

    /// Why there is no database at a place, where that can be seen.
    fn without(&self, _place: &Path) -> Option<&'static str> {
        None
    }

    /// A conversation, with the one that has begun it under this name.
    fn session(&self, db: &Opened, id: &str) -> Result<Option<Row>, Unread>;

    /// The column of a conversation that names the one which has begun it.
    fn parent(&self) -> &'static str;

    /// The conversations that were gone on with since then.
    fn gone_on_with(&self, db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread>;

    /// What is said of a conversation.
    fn said(&self, db: &Opened, session: &Row, id: &str, turn: &mut Turn) -> Result<Said, Unread>;
}

/// What a database says of a conversation, whoever has it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Said {
    statement: Option<Evidence>,
    usage: Usage,
    gaps: Vec<Gap>,
}

/// A conversation that was found, and what is said of it.
type Found = Result<(String, Said), String>;

/// What one look can do in a database.
#[derive(Debug)]
struct Turn {
    /// For how long it may be open, where what is done can be gone on with.
    until: Duration,
    /// What conversations have used, as far as it was summed up, by their ids.
    sums: HashMap<String, Sums>,
    /// Whether there is more to do.
    is_unfinished: bool,
}

/// A database, and what was asked of it.
#[derive(Debug, Default)]
struct Database {
    /// What it was when it was read, if it cannot have changed since without showing it.
    seen: Option<Stamps>,
    asked: Vec<Ask>,
    found: Vec<Found>,
    sums: HashMap<String, Sums>,
    /// The look in which it was read; 0: never.
    read_in: u64,
    /// Whether it has changed, and its turn has not come.
    waits: bool,
}

/// Reads the databases of agents.
#[derive(Debug)]
pub struct Databases {
    whose: Whose,
    databases: HashMap<PathBuf, Database>,
    looks: u64,
    budget: Duration,
}

impl Default for Databases {
    fn default() -> Self {
        Self { whose: Whose::default(), databases: HashMap::new(), looks: 0, budget: BUDGET }
    }
}

/// What is to be asked of a database in one look.
struct Question<'q> {
    kind: &'static dyn Kind,
    place: &'q Path,
    asks: Vec<Ask>,
    read_in: u64,
}

impl Records for Databases {
    fn kinds(&self) -> Vec<&'static str> {
        KINDS.into_iter().map(|kind| kind.name()).collect()
    }

    fn reads(&self, kind: &str) -> bool {
        kind_of(kind).is_some()
    }

    fn learn(&mut self, programs: &[ProcessId]) {
        self.whose.learn(programs);
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        let asked = self.whose.asked(subjects, now);
        let mut by_place: BTreeMap<&Path, Vec<(usize, &Ask)>> = BTreeMap::new();
        for (n, asked) in asked.iter().enumerate() {
            if let Ok((place, ask)) = asked {
                by_place.entry(place).or_default().push((n, ask));
            }
        }
        self.databases.retain(|place, _| by_place.contains_key(place.as_path()));
        let unasked = |asked: &Result<_, String>| asked.as_ref().err().map(|why| Err(why.clone()).into());
        let mut said: Vec<Testimony> = asked.iter().map(|asked| unasked(asked).unwrap_or_default()).collect();
        let questions = by_place.iter().filter_map(|(&place, theirs)| {
            let asks = theirs.iter().map(|(_, ask)| (*ask).clone()).collect();
            Some(Question { kind: kind_of(&subjects[theirs[0].0].kind)?, place, asks, read_in: 0 })
        });
        self.ask(questions, now);
        for (place, theirs) in by_place {
            let Some(database) = self.databases.get(place) else { continue };
            for (at, (n, _)) in theirs.into_iter().enumerate() {
                said[n] = database.answer(at).map(|said| testimony(subjects[n], said)).into();
                said[n].unmeasured.extend(database.waits.then(|| gap(ACTIVITY, WAITS)));
            }
        }
        said
    }
}

impl Databases {
    /// Finds what is asked for, as far as there is time: first in what was read the longest ago. They share the time evenly.
    fn ask<'q>(&mut self, questions: impl Iterator<Item = Question<'q>>, now: Moment) {
        let changed = |question: Question<'q>| {
            let database = self.databases.entry(question.place.to_owned()).or_default();
            let is_known = database.knows(question.place, &question.asks);
            (!is_known).then_some(Question { read_in: database.read_in, ..question })
        };
        let mut changed: Vec<Question> = questions.filter_map(changed).collect();
        changed.sort_by_key(|question| question.read_in);
        let (clock, many) = (SystemClock::default(), changed.len());
        self.looks += 1;
        for (nth, Question { kind, place, asks, .. }) in changed.into_iter().enumerate() {
            let Some(database) = self.databases.get_mut(place) else { continue };
            let left = self.budget.saturating_sub(clock.now().steady);
            if nth > 0 && left.is_zero() {
                database.wait(asks);
            } else {
                let share = left / u32::try_from(many - nth).unwrap_or(u32::MAX);
                database.ask(kind, place, asks, now, share);
                database.read_in = self.looks;
            }
        }
    }
}

impl Database {
    /// Whether it is known what is asked for: neither that nor the database has changed. It costs one look at the files.
    fn knows(&self, place: &Path, asks: &[Ask]) -> bool {
        self.asked == asks && self.seen.is_some() && self.seen == Stamps::of(place).ok()
    }

    /// Finds what is asked for.
    fn ask(&mut self, kind: &dyn Kind, place: &Path, asks: Vec<Ask>, now: Moment, until: Duration) {
        let stamps = Stamps::of(place);
        let mut turn = Turn { until, sums: self.sums.clone(), is_unfinished: false };
        let look = |db: &Opened| asks.iter().map(|ask| find(kind, db, ask, &mut turn)).collect::<Result<Vec<_>, _>>();
        let found = stamps.clone().and_then(|_| foreign::read(place, look));
        let will_show = !matches!(found, Err(Unread::Busy(_))) && !turn.is_unfinished;
        self.seen = stamps.ok().filter(|stamps| will_show && stamps.are_settled(now.unix_ms));
        // What was read while somebody wrote does not count, and is not added to either.
        if let Ok(found) = &found {
            let is_wanted = |id: &String| found.iter().flatten().any(|(wanted, _)| wanted == id);
            self.sums = turn.sums.into_iter().filter(|(id, _)| is_wanted(id)).collect();
        }
        self.found = found.unwrap_or_else(|why| vec![Err(format!("its database {why}")); asks.len()]);
        self.asked = asks;
        self.waits = false;
    }

    /// What was found before stands until its turn comes.
    fn wait(&mut self, asks: Vec<Ask>) {
        let before = |ask| self.asked.iter().position(|asked| asked == ask).map(|at| self.found[at].clone());
        self.found = asks.iter().map(|ask| before(ask).unwrap_or_else(|| Err(WAITS.to_owned()))).collect();
        self.asked = asks;
        self.seen = None;
        self.waits = true;
    }

    /// What was found by one of those that were asked for. No conversation is shown twice: if several agents ask for the same, it
    /// is that of the one with the best reason, and of nobody where that is not one alone.
    fn answer(&self, at: usize) -> Result<Said, String> {
        let (id, said) = self.found[at].clone()?;
        let is_other = |other: usize| other != at && self.found[other].as_ref().is_ok_and(|(same, _)| *same == id);
        let is_as_good = |other: usize| self.asked[other].strength() >= self.asked[at].strength();
        if (0..self.found.len()).any(|other| is_other(other) && is_as_good(other)) {
            return Err("another process has the same conversation".to_owned());
        }
        Ok(said)
    }
}

/// The conversation that is asked for, the one at the top if others have begun it, and what is said of it.
fn find(kind: &dyn Kind, db: &Opened, ask: &Ask, turn: &mut Turn) -> Result<Found, Unread> {
    let mut id = match ask {
        Ask::Told(id) | Ask::Argued(id) => id.clone(),
        Ask::Held(since_ms) => match kind.gone_on_with(db, *since_ms)?.as_slice() {
            [] => return Ok(Err("it has gone on with no conversation since it started".to_owned())),
            [one] => rows::word_of(one, "id").unwrap_or_default(),
            several => return Ok(Err(undecided(kind, &format!("it has {} conversations", several.len())))),
        },
    };
    for _ in 0..DEEPEST {
        let Some(session) = kind.session(db, &id)? else {
            return Ok(Err("its conversation is not in its database".to_owned()));
        };
        match rows::word_of(&session, kind.parent()) {
            Some(parent) => id = parent,
            None => return Ok(Ok((id.clone(), kind.said(db, &session, &id, turn)?))),
        }
    }
    Ok(Err("its conversation is deeper within others than is looked for".to_owned()))
}

/// What a conversation says of the agent that has it. What happened before it started, an earlier one has done.
fn testimony(agent: &Subject, said: Said) -> Testimony {
    let Said { statement, mut usage, gaps } = said;
    let evidence: Vec<Evidence> = statement.into_iter().filter(|said| agent.ran_at(said.at_ms)).collect();
    if !evidence.iter().any(|said| said.claim == Claim::Working) {
        usage.current_tool = None;
        usage.subagents = usage.subagents.map(|_| 0);
    }
    Testimony { evidence, usage: Some(usage), unmeasured: gaps, ..Testimony::default() }
}

fn kind_of(name: &str) -> Option<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name)
}
