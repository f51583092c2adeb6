//! From a line of `stat` to a row of the table.

use super::Look;
use super::stat::Stat;
use crate::observe::facts::ProcessState;
use crate::observe::processes::row::{CpuReading, Pss, Row, Usage};
use crate::observe::processes::{Details, Process, ProcessId};

/// The row of a process that was not in the table.
pub(super) fn newcomer(pid: u32, stat: &Stat<'_>, cpu: CpuReading, now: &Look, before: Option<&Look>) -> Row {
    // Not to be in the list before is not enough: it may have been hidden. One tick for the rounding.
    let newcomer = before.filter(|before| before.ticks.is_none_or(|ticks| stat.start + 1 >= ticks));
    let id = ProcessId { pid, start: stat.start };
    let process = Process {
        id,
        parent: stat.parent,
        group: stat.group,
        session: stat.session,
        tty_nr: stat.tty_nr,
        comm: String::from_utf8_lossy(stat.comm).into_owned(),
        state: state(stat),
        started_at_ms: now.started_at_ms(stat.start),
        details: Details::Pending,
    };
    Row {
        process,
        threads: Ok(threads(stat)),
        wait_status: stat.exit_code,
        image: stat.arg_start,
        cpu,
        before: newcomer.map(|before| CpuReading { own: 0, waited: 0, at: before.at.steady }),
        newcomer: newcomer.is_some(),
        ran: now.number,
        usage_of: 0,
        usage: Usage::unread(),
        pss: Pss::Unread,
    }
}

/// Takes a new reading into a row. Whether what it runs is to be read: it is another program than before, or the one
/// read was not complete.
pub(super) fn renew(row: &mut Row, stat: &Stat<'_>, cpu: CpuReading) -> bool {
    row.process.parent = stat.parent;
    row.process.group = stat.group;
    row.process.session = stat.session;
    row.process.tty_nr = stat.tty_nr;
    row.process.state = state(stat);
    row.threads = Ok(threads(stat));
    row.wait_status = stat.exit_code;
    row.cpu = cpu;
    let renamed = row.process.comm.as_bytes() != stat.comm && row.process.comm != String::from_utf8_lossy(stat.comm);
    if renamed {
        row.process.comm = String::from_utf8_lossy(stat.comm).into_owned();
    }
    // A zombie has no command line any more; what it ran stays known.
    let moved = row.image != stat.arg_start && row.process.state != ProcessState::Zombie;
    if moved {
        row.image = stat.arg_start;
        row.pss = Pss::Unread;
    }
    renamed || moved || is_begun(row)
}

/// Whether the program was read in the middle of exec(2): the command line's place is known a moment before its length.
fn is_begun(row: &Row) -> bool {
    let Details::Read(program) = &row.process.details else { return false };
    row.process.state != ProcessState::Zombie && program.argv.as_ref().is_ok_and(Vec::is_empty)
}

fn threads(stat: &Stat<'_>) -> u32 {
    if state(stat) == ProcessState::Zombie { 0 } else { stat.threads }
}

/// The state by its letter in proc(5).
pub(super) fn state(stat: &Stat<'_>) -> ProcessState {
    match stat.state {
        b'R' => ProcessState::Running,
        b'T' | b't' => ProcessState::Stopped,
        b'D' => ProcessState::Uninterruptible,
        // Where only the first thread has ended, the process lives on.
        b'Z' if stat.threads <= 1 => ProcessState::Zombie,
        b'X' | b'x' => ProcessState::Zombie,
        // S, I (idle kernel threads) and what is to come.
        _ => ProcessState::Sleeping,
    }
}
