//! A descriptor that is ready once for each new thing: a terminal that nobody has open at the other side is else always ready,
//! and has nothing to say.

use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What to wait at.
#[derive(Debug)]
pub struct Edge(OwnedFd);

impl Edge {
    /// Ready when `source` has something new to be read. All of that is to be read each time.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(source: &impl AsFd) -> io::Result<Self> {
        let edge = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&edge, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        Ok(Self(edge))
    }

    /// Makes it unready until the next is new. To be called before reading.
    pub fn clear(&self) {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = Vec::with_capacity(1);
        // What is not taken now is ready again.
        let _ = epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), Some(&at_once));
    }
}

impl AsFd for Edge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
