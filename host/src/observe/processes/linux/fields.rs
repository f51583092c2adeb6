//! The texts of procfs's short files: proc(5). What is not of the form that the kernel gives them says nothing.

use crate::observe::processes::row::Io;

/// Pages in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pages {
    /// All.
    pub(super) resident: u64,
    /// Those of files and shared memory.
    pub(super) shared: u64,
}

/// `statm`.
pub(super) fn pages(statm: &[u8]) -> Option<Pages> {
    let mut pages = statm.split(u8::is_ascii_whitespace).skip(1).map_while(number);
    Some(Pages { resident: pages.next()?, shared: pages.next()? })
}

/// `io`. Of its lines four are needed, and all of them.
pub(super) fn io(text: &[u8]) -> Option<Io> {
    let value = |name: &str| number(after(text, name)?.trim_ascii());
    let moved = value("rchar:")?.saturating_add(value("wchar:")?);
    Some(Io { moved, read: value("read_bytes:")?, written: value("write_bytes:")? })
}

/// How many descriptors may be open, by `limits`: the soft limit, `None` for no limit.
pub(super) fn fd_limit(limits: &[u8]) -> Option<Option<u32>> {
    match first_word(after(limits, "Max open files")?)? {
        b"unlimited" => Some(None),
        soft => number(soft).map(|limit| Some(u32::try_from(limit).unwrap_or(u32::MAX))),
    }
}

/// The proportional set size in `smaps_rollup`, bytes.
pub(super) fn pss(rollup: &[u8]) -> Option<u64> {
    let kib = number(first_word(after(rollup, "Pss:")?)?)?;
    Some(kib.saturating_mul(1024))
}

/// The process that a thread belongs to, by its `status`.
pub(super) fn thread_group(status: &[u8]) -> Option<u32> {
    u32::try_from(number(first_word(after(status, "Tgid:")?)?)?).ok()
}

/// The real user id in `status`.
pub(super) fn user(status: &[u8]) -> Option<u32> {
    u32::try_from(number(first_word(after(status, "Uid:")?)?)?).ok()
}

/// Whether a descriptor is open for writing, by its `fdinfo`: `flags`, in octal digits, end with the access mode.
pub(super) fn is_writing(fdinfo: &[u8]) -> bool {
    const ACCESS_MODE: u32 = 0o3;
    const READ_ONLY: u32 = 0o0;
    let flags = after(fdinfo, "flags:").and_then(first_word).and_then(|word| std::str::from_utf8(word).ok());
    let flags = flags.and_then(|digits| u32::from_str_radix(digits, 8).ok());
    flags.is_some_and(|flags| flags & ACCESS_MODE != READ_ONLY)
}

/// Seconds since the boot, by `/proc/uptime`.
pub(super) fn uptime(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(first_word(text)?).ok()?.parse().ok()
}

/// What follows `name` in the first line that begins with it.
fn after<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name.as_bytes()))
}

fn first_word(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_start().split(u8::is_ascii_whitespace).next()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_read_by_its_names_and_in_part_says_nothing() {
        assert_eq!(pages(b"100 50 20 1 0 30 0\n"), Some(Pages { resident: 50, shared: 20 }));
        assert_eq!(pages(b"100 50\n"), None);
        let text = b"rchar: 5\nwchar: 6\nsyscr: 0\nsyscw: 0\nread_bytes: 7\nwrite_bytes: 8\ncancelled_write_bytes: 9\n";
        assert_eq!(io(text), Some(Io { moved: 11, read: 7, written: 8 }));
        assert_eq!(io(b"rchar: 5\nwchar: 6\nread_bytes: 7\n"), None, "one is missing");
        assert_eq!(io(b"rchar: 5\nwchar: x\nread_bytes: 7\nwrite_bytes: 8\n"), None);
        let limits = |soft: &str| fd_limit(format!("Limit\nMax open files   {soft}   4096   files\n").as_bytes());
        assert_eq!((limits("1024"), limits("unlimited"), limits("none")), (Some(Some(1024)), Some(None), None));
        assert_eq!(pss(b"00-01 [rollup]\nRss: 200 kB\nPss:  120 kB\nPss_Dirty: 9 kB\n"), Some(120 << 10));
        assert_eq!(pss(b"Pss: 18446744073709551615 kB"), Some(u64::MAX));
        let status = b"Name:\tx\nTgid:\t42\nUid:\t1000\t0\t0\t0\n";
        assert_eq!((thread_group(status), user(status), user(b"Uid:\t-1")), (Some(42), Some(1000), None));
        let mode = |flags: &str| is_writing(format!("pos:\t0\nflags:\t{flags}\n").as_bytes());
        assert_eq!([mode("0100000"), mode("0100001"), mode("02100002"), mode("9")], [false, true, true, false]);
        assert_eq!((uptime(b"12.50 3.00\n"), uptime(b"")), (Some(12.5), None));
    }
}
