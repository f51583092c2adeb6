//! The one line of `/proc/PID/stat`: proc(5).

/// The fields that headcount uses, as the kernel gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat<'a> {
    /// The name, at most 15 bytes, any of them but NUL.
    pub(super) comm: &'a [u8],
    /// The state's letter.
    pub(super) state: u8,
    /// The parent's pid.
    pub(super) parent: u32,
    /// The process group.
    pub(super) group: u32,
    /// The session.
    pub(super) session: u32,
    /// The controlling terminal's device number.
    pub(super) tty_nr: u32,
    /// `PF_…` of the kernel's `sched.h`.
    pub(super) flags: u32,
    /// CPU time of its own, in user and kernel mode, clock ticks.
    pub(super) own_ticks: u64,
    /// CPU time of the children it has waited for, clock ticks.
    pub(super) waited_ticks: u64,
    /// Threads.
    pub(super) threads: u32,
    /// When it started, clock ticks after the boot.
    pub(super) start: u64,
    /// Where its command line lies: moves when it runs another program. 0 where it may not be read.
    pub(super) arg_start: u64,
    /// How it ended, as wait(2) puts it. 0 where it may not be read.
    pub(super) exit_code: i32,
}

/// The kernel's mark of a thread of its own.
const PF_KTHREAD: u32 = 0x0020_0000;

impl Stat<'_> {
    /// Whether this is a thread of the kernel's own.
    pub(super) fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }
}

/// Reads one line. `None` if it is not such a line.
///
/// The name may hold spaces, parentheses and line ends; it ends at the *last* closing parenthesis, since none of the
/// numbers after it has one.
pub(super) fn parse(line: &[u8]) -> Option<Stat<'_>> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let comm = line.get(open + 1..close)?;
    let mut fields = line.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    // The numbers of proc(5): the next field is the third, and `skip` goes past that many.
    let mut next = |skip: usize| fields.nth(skip);
    let state = *next(0)?.first()?;
    let parent = number(next(0)?)?;
    let group: i64 = number(next(0)?)?;
    let session: i64 = number(next(0)?)?;
    let tty_nr: i64 = number(next(0)?)?;
    let flags = number(next(1)?)?; // 9
    let utime: u64 = number(next(4)?)?; // 14
    let stime: u64 = number(next(0)?)?;
    let cutime: i64 = number(next(0)?)?;
    let cstime: i64 = number(next(0)?)?;
    let threads = number(next(2)?)?; // 20
    let start = number(next(1)?)?; // 22
    let arg_start = next(25).and_then(number).unwrap_or(0); // 48, since Linux 3.5
    let exit_code = next(3).and_then(number).unwrap_or(0); // 52, since Linux 3.5
    Some(Stat {
        comm,
        state,
        parent,
        // A process of another pid namespace has group or session 0 or -1 as seen from here.
        group: u32::try_from(group).unwrap_or(0),
        session: u32::try_from(session).unwrap_or(0),
        tty_nr: u32::try_from(tty_nr).unwrap_or(0),
        flags,
        own_ticks: utime.saturating_add(stime),
        waited_ticks: ticks(cutime).saturating_add(ticks(cstime)),
        threads,
        start,
        arg_start,
        exit_code,
    })
}

/// The children's times are signed in the kernel's format, though never below zero.
fn ticks(signed: i64) -> u64 {
    u64::try_from(signed).unwrap_or(0)
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    /// A real line with another name in it.
    fn line(comm: &[u8]) -> Vec<u8> {
        let mut line = b"4242 (".to_vec();
        line.extend_from_slice(comm);
        line.extend_from_slice(
            b") S 4200 4242 4199 34816 4242 4194304 100 0 0 0 11 12 13 14 20 0 30 0 111875 3133440 382 \
              18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 5 6 7 140730335787542 9 10 11 256\n",
        );
        line
    }

    #[test]
    fn hostile_names_move_no_field() {
        let names: [&[u8]; 10] = [
            b"sleep",
            b"tmux: server",
            b"sleep (2) .sh",
            b") R 1 2 (",
            b")",
            b"",
            b"a\nb",
            b"\x1b[31m",
            "日本語日本".as_bytes(),
            b"\xe6\x97",
        ];
        for name in names {
            let line = line(name);
            let stat = parse(&line).unwrap();
            assert_eq!(stat.comm, name);
            assert_eq!((stat.state, stat.parent, stat.group, stat.session), (b'S', 4200, 4242, 4199));
            assert_eq!((stat.tty_nr, stat.flags, stat.threads, stat.start), (34816, 4_194_304, 30, 111_875));
            assert_eq!((stat.own_ticks, stat.waited_ticks), (23, 27));
            assert_eq!((stat.arg_start, stat.exit_code), (140_730_335_787_542, 256));
            assert!(!stat.is_kernel_thread());
        }
    }

    #[test]
    fn an_old_kernel_has_fewer_fields() {
        let line = b"7 (init) S 0 -1 -1 0 -1 0 0 0 0 0 1 2 -3 4 20 0 1 0 5 0 0";
        let stat = parse(line).unwrap();
        assert_eq!((stat.group, stat.session, stat.waited_ticks), (0, 0, 4));
        assert_eq!((stat.start, stat.arg_start, stat.exit_code), (5, 0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_name_is_read_back(name in prop::collection::vec(1..=u8::MAX, 0..16)) {
            let line = line(&name);
            prop_assert_eq!(parse(&line).unwrap().comm, &name[..]);
        }

        #[test]
        fn a_line_cut_short_is_refused_or_read_right(at in 0_usize..200) {
            let line = line(b"sleep");
            if let Some(stat) = parse(&line[..at.min(line.len())]) {
                prop_assert_eq!((stat.parent, stat.threads), (4200, 30));
            }
        }
    }
}
