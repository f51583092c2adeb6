//! How many connections there may be: as many as files can be open for, and some must be left for looking at processes.

/// The most connections.
const MOST: u32 = 1024;

/// Files that are for other things: processes, databases, logs.
#[cfg(unix)]
const OTHERS: u64 = 256;

/// How many connections there may be at a time. More files are asked for where there are too few.
#[cfg(unix)]
pub(super) fn connections() -> u32 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let wanted = u64::from(MOST) + OTHERS;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return MOST / 8 };
    if soft >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).is_ok() {
        let files = soft.max(wanted.min(hard));
        return u32::try_from(files.saturating_sub(OTHERS)).map_or(MOST, |left| left.clamp(16, MOST));
    }
    u32::try_from(soft.saturating_sub(OTHERS)).map_or(MOST, |left| left.clamp(16, MOST))
}

#[cfg(not(unix))]
pub(super) fn connections() -> u32 {
    MOST
}
