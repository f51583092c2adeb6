//! The table of the other systems, as far as it can be tried on this one.

use crate::clock::{Clock, SystemClock};
use crate::observe::processes::portable::Table;
use crate::observe::processes::{Details, Liveness, Options, ProcessId};
use std::process::Command;
use std::sync::Arc;

#[test]
fn a_process_is_found_and_ends() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let mut table = Table::new(clock, Options::default());
    table.refresh().unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    table.refresh().unwrap();
    table.read_usage(child.id());
    let row = &table.rows()[&child.id()];
    let id = row.process.id;
    assert_eq!(row.process.parent, std::process::id());
    assert!(row.newcomer && row.before.is_some());
    assert!(row.usage.resident.unwrap() > 0 && row.usage.shared.is_none());
    assert!(row.usage.fds.unwrap() >= 3);
    assert!(matches!(row.process.details, Details::Read(_)));
    assert_eq!(table.state_of(id), Liveness::Alive);
    assert_eq!(table.state_of(ProcessId { start: id.start - 1, ..id }), Liveness::Replaced);
    table.refresh().unwrap();
    assert!(!table.rows()[&child.id()].newcomer);
    child.kill().unwrap();
    child.wait().unwrap();
    table.refresh().unwrap();
    assert!(!table.rows().contains_key(&child.id()));
    assert_eq!(table.state_of(id), Liveness::Gone);
    assert!(table.abilities().iter().any(|ability| !ability.works));
    assert!(table.cores() > 0 && table.look() == 4 && !table.machine().boot_id.is_empty());
}
