//! What can be seen of processes here: every way is tried on the processes there are.

use super::{Table, clock, files::Files};
use crate::observe::processes::{Ability, Details, ProcessState};
use nix::errno::Errno;

/// Tries everything.
pub(super) fn probe(table: &Table) -> Vec<Ability> {
    let root = table.options.proc_root.display();
    let mut files = match Files::open(&table.options.proc_root) {
        Ok(files) => files,
        Err(errno) => {
            let detail = format!("{root} cannot be opened ({}): mount procfs there", errno.desc());
            return vec![Ability { name: "list processes", works: false, detail }];
        }
    };
    let living: Vec<u32> = (table.rows.values())
        .filter(|row| row.process.state != ProcessState::Zombie)
        .map(|row| row.process.id.pid)
        .collect();
    let mut pids = Vec::new();
    let listed = files.list(&mut pids);
    let mut found = vec![match listed {
        Ok(()) if table.closed.is_empty() && pids.contains(&1) => {
            Ability { name: "list processes", works: true, detail: format!("{} in {root}", table.rows.len()) }
        }
        Ok(()) => Ability {
            name: "list processes",
            works: false,
            detail: format!(
                "only {} are shown; {root} hides those of other users (hidepid): mount it without hidepid, or run as \
                 a member of its gid",
                table.rows.len()
            ),
        },
        Err(errno) => Ability { name: "list processes", works: false, detail: errno.desc().to_owned() },
    }];
    found.push(if table.time.cpu_clocks {
        Ability {
            name: "CPU time to the nanosecond",
            works: clock::cpu_time(1).is_some(),
            detail: "from each process's CPU clock".to_owned(),
        }
    } else {
        Ability {
            name: "CPU time to the nanosecond",
            works: false,
            detail: "this kernel has no CPU clocks of other processes, or the tree is not its own: CPU time comes in \
                     steps of 10 ms, and every process is read at every sample"
                .to_owned(),
        }
    });
    let rights = "the others belong to other users or are protected by the kernel: run as their user, or as root with CAP_SYS_PTRACE";
    found.push(share("storage and system call IO", &living, rights, |pid| files.io(pid).map(drop)));
    found.push(share("memory with shared pages split (PSS)", &living, rights, |pid| files.pss(pid).map(drop)));
    let count = if files.fd_size_is_count() { "" } else { "; kernel older than 6.2: counted one by one" };
    found.push(share("open descriptors", &living, rights, |pid| files.fds(pid).map(drop)));
    if let Some(last) = found.last_mut() {
        last.detail.push_str(count);
    }
    found.push(share("command lines and environments", &living, rights, |pid| {
        match table.rows.get(&pid).map(|row| &row.process.details) {
            Some(Details::Read(program)) if program.argv.is_ok() && program.env.is_ok() => Ok(()),
            _ => Err(Errno::EACCES),
        }
    }));
    found
}

/// Of how many of the processes something can be read.
fn share(name: &'static str, pids: &[u32], otherwise: &str, mut read: impl FnMut(u32) -> Result<(), Errno>) -> Ability {
    let (mut works, mut fails) = (0, 0);
    for &pid in pids {
        match read(pid) {
            Ok(()) => works += 1,
            // Ended since the last look.
            Err(Errno::ESRCH) => {}
            Err(_) => fails += 1,
        }
    }
    let help = if fails == 0 { String::new() } else { format!("; {otherwise}") };
    Ability { name, works: works > 0, detail: format!("of {works} of {} processes{help}", works + fails) }
}
