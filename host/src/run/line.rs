//! One-way lines between a process and one that it starts: pipes that are found by number below `/proc`.
//!
//! What a child inherits it passes on to its own children, unless it closes it; and a number alone cannot be closed
//! without `unsafe`. So the child inherits nothing, and opens its end by the path of its parent's.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd as _};
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
pub fn number(end: &impl AsFd) -> i32 {
    end.as_fd().as_raw_fd()
}

/// Opens the reading end of the parent's line with this number.
///
/// # Errors
/// When the parent is gone, or has no such line.
pub fn reading(parent: u32, number: i32) -> io::Result<File> {
    File::open(path(parent, number))
}

/// Opens the writing end of the parent's line with this number.
///
/// # Errors
/// When the parent is gone, or has no such line.
pub fn writing(parent: u32, number: i32) -> io::Result<File> {
    OpenOptions::new().write(true).open(path(parent, number))
}

fn path(parent: u32, number: i32) -> String {
    format!("/proc/{parent}/fd/{number}")
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
