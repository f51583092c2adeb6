//! What a table knows of one process, whatever system it was read from.

use super::Process;
use std::collections::BTreeMap;
use std::time::Duration;

/// The table's rows by pid.
pub(super) type Rows = BTreeMap<u32, Row>;

/// A figure, or the system's reason for not giving it.
pub(super) type Measured<T> = Result<T, &'static str>;

/// One process and what it has used.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What others see of it.
    pub(super) process: Process,
    /// Its threads; 0 for a zombie.
    pub(super) threads: Measured<u32>,
    /// How it ended, as wait(2) puts it. Only for a zombie; 0 where it may not be read.
    pub(super) wait_status: i32,
    /// A number that changes when it runs another program.
    pub(super) image: u64,
    /// The CPU time at the last look.
    pub(super) cpu: CpuReading,
    /// The CPU time at the look before: nothing at all, for one that has started since; `None` where it had started
    /// before and was not seen.
    pub(super) before: Option<CpuReading>,
    /// Whether it has started since the look before.
    pub(super) newcomer: bool,
    /// The number of the last look that found that it had run, or that read it anyway.
    pub(super) ran: u64,
    /// The number of the look to which `usage` belongs; 0 before the first.
    pub(super) usage_of: u64,
    /// What is read of measured processes only.
    pub(super) usage: Usage,
    /// Its proportional set size, in its own rhythm.
    pub(super) pss: Pss,
}

/// CPU time of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CpuReading {
    /// Its own, nanoseconds.
    pub(super) own: u64,
    /// That of the children it has waited for, nanoseconds in steps of 20 ms.
    pub(super) waited: u64,
    /// When it was read, on the steady clock.
    pub(super) at: Duration,
}

/// Bytes that a process has moved, those of the children it waited for included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Io {
    /// From storage.
    pub(super) read: u64,
    /// To storage.
    pub(super) written: u64,
    /// By system calls, sockets and pipes included.
    pub(super) moved: u64,
}

/// What is read of measured processes only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// Bytes of its pages in memory.
    pub(super) resident: Measured<u64>,
    /// Those of them that belong to files or shared memory; `None` where the system does not tell.
    pub(super) shared: Option<u64>,
    /// Bytes moved.
    pub(super) io: Measured<Io>,
    /// Open descriptors.
    pub(super) fds: Measured<u32>,
    /// How many it may open: `Ok(None)` for no limit.
    pub(super) fd_limit: Measured<Option<u32>>,
}

impl Usage {
    /// The reason in place of every figure before the first reading.
    const UNREAD: &'static str = "not read yet";

    /// Nothing read yet.
    pub(super) const fn unread() -> Self {
        Self {
            resident: Err(Self::UNREAD),
            shared: None,
            io: Err(Self::UNREAD),
            fds: Err(Self::UNREAD),
            fd_limit: Err(Self::UNREAD),
        }
    }

    /// Bytes of pages that are its own: not a file's, not shared memory. A forked child's unwritten pages count
    /// as its own, too.
    pub(super) fn private(&self) -> u64 {
        self.resident.unwrap_or(0).saturating_sub(self.shared.unwrap_or(0))
    }
}

/// What is known of a proportional set size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pss {
    /// Not read yet.
    Unread,
    /// May not be read.
    Denied,
    /// Read once.
    Read {
        /// The size, bytes.
        bytes: u64,
        /// [`Usage::private`] at that time: what came on top since is added.
        private: u64,
        /// The number of the look after which it was read.
        look: u64,
        /// A relative that shared pages with it has come or gone since.
        shaken: bool,
    },
}

/// The path of a terminal, from the device number in `/proc/PID/stat` (proc(5), field 7).
///
/// `None` for 0, which means no terminal, and for devices that are no usual terminals.
pub fn terminal_name(tty_nr: u32) -> Option<String> {
    let major = (tty_nr >> 8) & 0xfff;
    let minor = (tty_nr & 0xff) | ((tty_nr >> 12) & 0xf_ff00);
    match (major, minor) {
        (136..=143, minor) => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        (4, minor @ 0..64) => Some(format!("/dev/tty{minor}")),
        (4, minor) => Some(format!("/dev/ttyS{}", minor - 64)),
        (5, 1) => Some("/dev/console".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::terminal_name;

    #[test]
    fn a_device_number_names_its_terminal() {
        assert_eq!(terminal_name(0), None);
        assert_eq!(terminal_name(136 << 8 | 4).as_deref(), Some("/dev/pts/4"));
        assert_eq!(terminal_name(137 << 8 | 1).as_deref(), Some("/dev/pts/257"));
        assert_eq!(terminal_name(136 << 8 | 300 << 12 & 0xfff0_0000 | 300 & 0xff).as_deref(), Some("/dev/pts/300"));
        assert_eq!(terminal_name(4 << 8 | 1).as_deref(), Some("/dev/tty1"));
        assert_eq!(terminal_name(4 << 8 | 64).as_deref(), Some("/dev/ttyS0"));
        assert_eq!(terminal_name(5 << 8 | 1).as_deref(), Some("/dev/console"));
    }
}
