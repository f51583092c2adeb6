//! Tests of what does not depend on the system, over made-up rows.

mod accounts;
mod memory;
mod portable;
mod tree;

use super::row::{CpuReading, Io, Pss, Row, Rows, Usage};
use super::{Details, Process, ProcessId, Program};
use crate::observe::facts::ProcessState;
use std::sync::Arc;

/// A process that does nothing.
fn row(pid: u32, parent: u32, start: u64) -> Row {
    let process = Process {
        id: ProcessId { pid, start },
        parent,
        group: 1,
        session: 1,
        tty_nr: 0,
        comm: "actor".to_owned(),
        state: ProcessState::Sleeping,
        started_at_ms: start * 10,
        details: Details::Pending,
    };
    Row {
        process,
        threads: Ok(1),
        wait_status: 0,
        image: 1,
        cpu: CpuReading::default(),
        before: None,
        newcomer: false,
        ran: 1,
        usage_of: 1,
        usage: Usage {
            resident: Ok(3 << 20),
            shared: Some(2 << 20),
            io: Ok(Io::default()),
            fds: Ok(3),
            fd_limit: Ok(Some(1024)),
        },
        pss: Pss::Unread,
    }
}

fn table(rows: impl IntoIterator<Item = Row>) -> Rows {
    rows.into_iter().map(|row| (row.process.id.pid, row)).collect()
}

fn tagged(mut row: Row, tag: &str) -> Row {
    let none = || Err("not asked".to_owned());
    let env = Ok(vec![(super::AGENT_TAG.to_owned(), tag.to_owned())]);
    row.process.details =
        Details::Read(Arc::new(Program { exe: none(), argv: Err(String::new()), cwd: none(), env, uid: None }));
    row
}

#[test]
fn a_sampler_may_be_given_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<super::Sampler>();
    is_send::<super::portable::Table>();
}
