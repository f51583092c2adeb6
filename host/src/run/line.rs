//! One-way lines between a process and one that it starts: pipes that the child inherits.
//!
//! A descriptor is a number only, of which nothing can be made without `unsafe`. So the child opens its own descriptor anew, by
//! its path below `/proc/self`, and closes the number: what it starts itself inherits neither.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command};
use std::time::Duration;

/// A line, and both of its ends.
#[derive(Debug)]
pub struct Line {
    /// Where it is read.
    pub reader: PipeReader,
    /// Where it is written.
    pub writer: PipeWriter,
}

impl Line {
    /// A new line.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }
}

/// The number by which a child finds an end of a line.
pub fn number(end: &impl AsFd) -> String {
    end.as_fd().as_raw_fd().to_string()
}

/// Starts a child that inherits these ends, below the same numbers.
///
/// # Errors
/// When the system refuses.
pub fn spawn(command: &mut Command, ends: &[BorrowedFd<'_>]) -> io::Result<Child> {
    let pass = |flags| ends.iter().try_for_each(|end| fcntl_setfd(end, flags));
    pass(FdFlags::empty())?;
    let child = command.spawn();
    pass(FdFlags::CLOEXEC)?;
    child
}

/// Opens the reading end that was inherited below this number.
///
/// # Errors
/// When there is none, or `/proc` is missing.
pub fn reading(number: i32) -> io::Result<File> {
    inherited(number, OpenOptions::new().read(true))
}

/// Opens the writing end that was inherited below this number.
///
/// # Errors
/// When there is none, nobody reads any more, or `/proc` is missing.
pub fn writing(number: i32) -> io::Result<File> {
    inherited(number, OpenOptions::new().write(true))
}

fn inherited(number: i32, how: &mut OpenOptions) -> io::Result<File> {
    // Or it would wait for somebody at the other end.
    let patience = OFlags::NONBLOCK.bits().cast_signed();
    let end = how.custom_flags(patience).open(format!("/proc/self/fd/{number}"))?;
    rustix::io::ioctl_fionbio(&end, false)?;
    nix::unistd::close(number)?;
    Ok(end)
}

/// Closes what the caller left open beside the standard three. All else is closed by itself where a program is executed, which
/// what was inherited cannot be.
///
/// # Errors
/// When `/proc` is missing.
pub fn close_callers() -> io::Result<()> {
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fdinfo")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2 && is_callers(number))
        .collect();
    for number in numbers {
        nix::unistd::close(number)?;
    }
    Ok(())
}

fn is_callers(number: i32) -> bool {
    // One that is gone by now was the directory itself.
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| !OFlags::from_bits_retain(flags).contains(OFlags::CLOEXEC))
}

/// Waits until one of `fds` is ready, or for so long. `None`: for ever. A wait that was interrupted has ended.
///
/// # Errors
/// When the system refuses.
pub fn wait(fds: &mut [PollFd<'_>], patience: Option<Duration>) -> io::Result<()> {
    let patience = patience.map(|patience| Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    });
    match poll(fds, patience.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether something is to be read, or the other end is gone.
pub fn is_ready(fd: &PollFd<'_>) -> bool {
    fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
}
