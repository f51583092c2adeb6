//! Shared pages count once.

use super::{row, table};
use crate::observe::facts::{MemoryMethod, ProcessState};
use crate::observe::processes::memory::{Budget, of, turns};
use crate::observe::processes::row::{Pss, Row};
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn sized(pid: u32, resident: u64, shared: Option<u64>, pss: Pss) -> Row {
    let mut row = row(pid, 1, 1);
    row.usage.resident = Ok(resident * MIB);
    row.usage.shared = shared.map(|shared| shared * MIB);
    row.pss = pss;
    row
}

fn read(bytes: u64, private: u64, look: u64) -> Pss {
    Pss::Read { bytes: bytes * MIB, private: private * MIB, look, shaken: false }
}

#[test]
fn without_a_proportional_size_the_largest_shared_part_counts_once() {
    let rows = [sized(1, 301, Some(300), Pss::Unread), sized(2, 302, Some(300), Pss::Denied)];
    assert_eq!(of(rows.iter(), 1), (Ok(303 * MIB), MemoryMethod::Estimate));
}

#[test]
fn the_unread_share_as_much_as_those_of_their_program_that_were_read() {
    // Of 100 copies that share 200 MiB two have been read, 2 MiB each.
    let copy = |pid| sized(pid, 201, Some(1), if pid < 2 { read(2, 200, 1) } else { Pss::Unread });
    let rows: Vec<Row> = (0..100).map(copy).collect();
    assert_eq!(of(rows.iter(), 1), (Ok(200 * MIB), MemoryMethod::Estimate));
    // Another program shares nothing with them for all that is known.
    let mut other = sized(100, 50, Some(10), Pss::Unread);
    other.process.comm = "other".into();
    let rows = rows.iter().chain([&other]);
    assert_eq!(of(rows, 1), (Ok(250 * MIB), MemoryMethod::Estimate));
}

#[test]
fn a_proportional_size_is_carried_on_by_what_has_come_on_top() {
    let rows = [sized(1, 40, Some(10), read(25, 20, 7)), sized(2, 12, Some(10), read(5, 4, 7))];
    assert_eq!(of(rows.iter(), 8), (Ok(38 * MIB), MemoryMethod::Pss));
    // But not for ever.
    assert_eq!(of(rows.iter(), 68).1, MemoryMethod::Estimate);
}

#[test]
fn a_sum_is_never_more_than_all_resident_pages_and_never_negative() {
    let rows = [sized(1, 10, Some(2), read(50, 0, 1)), sized(2, 1, Some(1), read(5, 90, 1))];
    assert_eq!(of(rows.iter(), 1), (Ok(10 * MIB), MemoryMethod::Pss));
}

#[test]
fn where_shared_pages_are_not_told_the_sum_is_an_upper_bound() {
    let rows = [sized(1, 10, None, Pss::Denied), sized(2, 20, None, Pss::Denied)];
    assert_eq!(of(rows.iter(), 1), (Ok(30 * MIB), MemoryMethod::Resident));
}

#[test]
fn the_unread_come_first_then_the_shaken_then_the_changed_then_the_old() {
    let zombie = {
        let mut row = sized(9, 1, Some(1), Pss::Unread);
        row.process.state = ProcessState::Zombie;
        row
    };
    let shaken = Pss::Read { bytes: MIB, private: MIB, look: 30, shaken: true };
    let rows = table([
        sized(1, 2, Some(1), read(1, 1, 1)),
        sized(2, 9, Some(1), read(1, 1, 40)),
        sized(3, 2, Some(1), shaken),
        sized(4, 2, Some(1), Pss::Unread),
        sized(5, 2, Some(1), read(1, 1, 40)),
        sized(6, 2, Some(1), Pss::Denied),
        zombie,
    ]);
    let order: Vec<u32> = turns(&rows, rows.keys().copied(), 46).iter().map(|turn| turn.pid).collect();
    assert_eq!(order, [4, 3, 2, 1]);
}

#[test]
fn the_budget_holds_and_the_dear_get_their_turn_now_and_then() {
    let rows = table([
        sized(1, 4096, Some(1), Pss::Unread),
        sized(2, 20, Some(1), Pss::Unread),
        sized(3, 400, Some(1), Pss::Unread),
    ]);
    let turns = turns(&rows, rows.keys().copied(), 1);
    let (mut budget, allowed) = (Budget::default(), Duration::from_millis(1));
    assert_eq!(budget.choose(&turns, allowed, 1), [2]);
    assert_eq!(budget.choose(&turns, allowed, 10), [1]);
    assert_eq!(budget.choose(&turns, allowed, 11), [2]);
    assert_eq!(budget.choose(&turns, allowed, 20), [1]);
}
