//! Whose a process is.

use super::{row, table, tagged};
use crate::observe::processes::row::{Row, Rows};
use crate::observe::processes::tree::Attribution;
use crate::observe::processes::{NOBODYS_TAG, ProcessId};

const ROOT: ProcessId = ProcessId { pid: 100, start: 10 };

fn grouped(pid: u32, parent: u32, start: u64, group: u32, session: u32) -> Row {
    let mut row = row(pid, parent, start);
    row.process.group = group;
    row.process.session = session;
    row
}

/// The owner's pid of each row, by pid.
fn owners(attribution: &mut Attribution, rows: &Rows, roots: &[ProcessId]) -> Vec<(u32, Option<u32>)> {
    attribution.assign(rows, roots);
    rows.values().map(|row| (row.process.id.pid, attribution.owner(row.process.id).map(|root| root.pid))).collect()
}

#[test]
fn children_and_their_children_belong_to_the_root() {
    let rows = table([row(1, 0, 0), row(100, 1, 10), row(101, 100, 11), row(102, 101, 12), row(103, 1, 12)]);
    let found = owners(&mut Attribution::default(), &rows, &[ROOT]);
    assert_eq!(found, [(1, None), (100, Some(100)), (101, Some(100)), (102, Some(100)), (103, None)]);
}

/// Pids start again from below when they run out.
#[test]
fn a_child_may_have_the_lower_pid() {
    let rows = table([row(50, 100, 20), row(51, 50, 21), row(100, 1, 10)]);
    let found = owners(&mut Attribution::default(), &rows, &[ROOT]);
    assert_eq!(found, [(50, Some(100)), (51, Some(100)), (100, Some(100))]);
}

#[test]
fn a_parent_that_is_younger_than_its_child_is_a_stranger() {
    let rows = table([row(100, 1, 10), row(101, 100, 9)]);
    assert_eq!(owners(&mut Attribution::default(), &rows, &[ROOT]), [(100, Some(100)), (101, None)]);
}

#[test]
fn a_circle_of_parents_ends() {
    let rows = table([row(200, 201, 10), row(201, 200, 10), row(202, 202, 10)]);
    let found = owners(&mut Attribution::default(), &rows, &[ROOT]);
    assert_eq!(found, [(200, None), (201, None), (202, None)]);
}

#[test]
fn an_orphan_stays_with_its_agent_whoever_takes_it_in() {
    let mut attribution = Attribution::default();
    let rows = table([row(100, 1, 10), row(101, 100, 11), row(102, 101, 12)]);
    owners(&mut attribution, &rows, &[ROOT]);
    // 101 has ended; a subreaper that is not pid 1 has taken 102.
    let rows = table([row(7, 1, 1), row(100, 1, 10), row(102, 7, 12), row(103, 102, 13)]);
    let found = owners(&mut attribution, &rows, &[ROOT]);
    assert_eq!(found, [(7, None), (100, Some(100)), (102, Some(100)), (103, Some(100))]);
    // So it does when the root has ended, too.
    let rows = table([row(7, 1, 1), row(102, 7, 12)]);
    assert_eq!(owners(&mut attribution, &rows, &[ROOT]), [(7, None), (102, Some(100))]);
}

#[test]
fn a_reused_pid_inherits_nothing() {
    let mut attribution = Attribution::default();
    owners(&mut attribution, &table([row(100, 1, 10), row(101, 100, 11)]), &[ROOT]);
    let rows = table([row(100, 1, 90), row(101, 1, 91), row(102, 100, 92)]);
    assert_eq!(owners(&mut attribution, &rows, &[ROOT]), [(100, None), (101, None), (102, None)]);
}

#[test]
fn a_broken_chain_is_mended_by_the_group_or_the_session() {
    let mut attribution = Attribution::default();
    // The root leads its session; 101 leads a group of its own.
    let rows = table([grouped(100, 1, 10, 100, 100), grouped(101, 100, 11, 101, 100)]);
    owners(&mut attribution, &rows, &[ROOT]);
    // 101 has ended, and what it had started is first seen as an orphan.
    let rows = table([
        grouped(100, 1, 10, 100, 100),
        grouped(102, 1, 12, 101, 7),
        grouped(103, 1, 12, 9, 100),
        grouped(104, 103, 13, 104, 104),
        grouped(105, 1, 13, 105, 105),
    ]);
    let found = owners(&mut attribution, &rows, &[ROOT]);
    assert_eq!(found, [(100, Some(100)), (102, Some(100)), (103, Some(100)), (104, Some(100)), (105, None)]);
    // A group that has become empty is forgotten: its number may be given to others.
    owners(&mut attribution, &table([grouped(100, 1, 10, 100, 100)]), &[ROOT]);
    let rows = table([grouped(100, 1, 10, 100, 100), grouped(106, 1, 14, 101, 7)]);
    assert_eq!(owners(&mut attribution, &rows, &[ROOT]), [(100, Some(100)), (106, None)]);
}

#[test]
fn a_group_whose_leader_is_not_in_the_tree_ties_nobody() {
    let rows = table([grouped(90, 1, 5, 90, 90), grouped(100, 90, 10, 90, 90), grouped(101, 90, 11, 90, 90)]);
    assert_eq!(owners(&mut Attribution::default(), &rows, &[ROOT]), [(90, None), (100, Some(100)), (101, None)]);
}

#[test]
fn the_tag_finds_those_that_cut_every_other_tie() {
    let mut attribution = Attribution::default();
    let rows = table([
        tagged(row(90, 1, 5), "a"),
        tagged(row(100, 90, 10), "a"),
        tagged(grouped(101, 1, 11, 101, 101), "a"),
        tagged(grouped(102, 1, 11, 102, 102), "b"),
        tagged(grouped(103, 1, 11, 103, 103), ""),
        // Has dropped its environment, but its parent is found.
        grouped(104, 101, 12, 104, 104),
    ]);
    let expected = [(90, None), (100, Some(100)), (101, Some(100)), (102, None), (103, None), (104, Some(100))];
    assert_eq!(owners(&mut attribution, &rows, &[ROOT]), expected);
    // The tag stays the root's when the root has ended.
    let rows = table([tagged(grouped(105, 1, 13, 105, 105), "a")]);
    assert_eq!(owners(&mut attribution, &rows, &[ROOT]), [(105, Some(100))]);
}

#[test]
fn a_nested_agent_is_a_tree_of_its_own() {
    let nested = ProcessId { pid: 102, start: 12 };
    let rows = table([
        tagged(row(100, 1, 10), "a"),
        row(101, 100, 11),
        tagged(row(102, 101, 12), "a"),
        row(103, 102, 13),
        tagged(grouped(104, 1, 14, 104, 104), "a"),
    ]);
    let expected = [(100, Some(100)), (101, Some(100)), (102, Some(102)), (103, Some(102)), (104, Some(100))];
    assert_eq!(owners(&mut Attribution::default(), &rows, &[nested, ROOT]), expected);
    // Found later, it takes what is its own from the outer agent.
    let mut attribution = Attribution::default();
    assert_eq!(owners(&mut attribution, &rows, &[ROOT])[3], (103, Some(100)));
    assert_eq!(owners(&mut attribution, &rows, &[ROOT, nested]), expected);
    // And given up, it returns it.
    assert_eq!(owners(&mut attribution, &rows, &[ROOT])[3], (103, Some(100)));
}

/// What `headcount run` records of a root: its tag is nobody else's.
fn recorded(tag: &str, root: ProcessId) -> Attribution {
    let mut attribution = Attribution::default();
    attribution.know_tags([(tag.to_owned(), root)].into());
    attribution
}

#[test]
fn a_recorded_tag_finds_orphans_when_nothing_else_of_the_agent_is_left() {
    // The orphan is older than the root: an agent that was started again has the same tag.
    let rows = table([tagged(row(102, 1, 5), "t"), row(103, 102, 6), tagged(row(104, 1, 6), "other")]);
    let found = owners(&mut recorded("t", ROOT), &rows, &[ROOT]);
    assert_eq!(found, [(102, Some(100)), (103, Some(100)), (104, None)]);
    let found = owners(&mut recorded("t", ROOT), &rows, &[]);
    assert_eq!(found, [(102, None), (103, None), (104, None)], "it is no root now");
}

#[test]
fn an_orphan_of_an_agent_that_another_agent_runs_is_not_the_others() {
    const INNER: ProcessId = ProcessId { pid: 120, start: 20 };
    // 110 is the keeper that the outer agent has started: it takes in what the inner agent leaves behind.
    let rows = table([
        tagged(row(100, 1, 10), "outer"),
        tagged(row(110, 100, 15), "outer"),
        tagged(row(120, 110, 20), "inner"),
        tagged(row(121, 120, 21), "inner"),
        tagged(row(130, 110, 22), "inner"),
        row(131, 130, 23),
    ]);
    let found = owners(&mut recorded("inner", INNER), &rows, &[ROOT, INNER]);
    let inner = [(120, Some(120)), (121, Some(120)), (130, Some(120)), (131, Some(120))];
    assert_eq!(found, [&[(100, Some(100)), (110, Some(100))], &inner[..]].concat());
}

#[test]
fn what_says_that_it_is_nobodys_belongs_to_nobody() {
    let rows = table([
        grouped(100, 1, 10, 100, 100),
        tagged(grouped(101, 1, 11, 101, 100), NOBODYS_TAG),
        tagged(grouped(102, 101, 12, 100, 100), NOBODYS_TAG),
        grouped(103, 1, 12, 100, 100),
    ]);
    let found = owners(&mut Attribution::default(), &rows, &[ROOT]);
    assert_eq!(found, [(100, Some(100)), (101, None), (102, None), (103, Some(100))]);
}
