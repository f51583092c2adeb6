//! The witness: a process in the caller's process group that has neither the front's name nor the keeper's, and so tells whether a
//! signal came to the whole group, and the agent has it, or to those two only.
//!
//! Without it, what is sent to the group would come to the agent twice. It sleeps but for signals and questions, and ends when
//! nobody is left who could ask.

use super::line::{self, Line};
use super::signals::Signals;
use super::stage::PROGRAM;
use crate::observe::processes::{AGENT_TAG, NOBODYS_TAG};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use rustix::stdio::{stdin, stdout};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What it is called, in lists of processes and by those who start it.
pub const NAME: &str = "witness";

/// One that does not answer for so long is stopped, and knows nothing yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whose question it is. Answers bring it back, so that nobody takes another's for its own; no signal has such a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The front.
    Front = 0x46,
    /// The keeper.
    Keeper = 0x4b,
}

/// The witness as those see it who ask.
#[derive(Debug)]
pub struct Witness {
    asker: Asker,
    ask: File,
    told: File,
    /// Questions that are not answered yet: an answer that is late is none to the next one.
    open: usize,
}

impl Witness {
    /// Starts it for the front, in this process's group. Its pid is told too.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start() -> io::Result<(Self, u32)> {
        let (questions, answers) = (Line::new()?, Line::new()?);
        let mut witness = Command::new(PROGRAM);
        witness.arg0(NAME).arg(NAME).env(AGENT_TAG, NOBODYS_TAG).current_dir("/");
        witness.stdin(questions.reader).stdout(answers.writer).stderr(Stdio::null());
        let pid = witness.spawn()?.id();
        let [ask, told] = [OwnedFd::from(questions.writer), OwnedFd::from(answers.reader)].map(File::from);
        Ok((Self { asker: Asker::Front, ask, told, open: 0 }, pid))
    }

    /// The same for the keeper, which has inherited both ends.
    ///
    /// # Errors
    /// When it has not.
    pub fn inherited(ask: i32, told: i32) -> io::Result<Self> {
        Ok(Self { asker: Asker::Keeper, ask: line::writing(ask)?, told: line::reading(told)?, open: 0 })
    }

    /// Both ends, to be passed on.
    pub fn ends(&self) -> [&File; 2] {
        [&self.ask, &self.told]
    }

    /// What has come to the whole group since it was last asked, as far as it says so in time. One that is gone knows nothing.
    pub fn heard(&mut self) -> Vec<Signal> {
        let mut heard = Vec::new();
        if let Err(error) = self.hear(&mut heard) {
            tracing::debug!("whether a signal came to all is not known: {error}");
        }
        heard
    }

    fn hear(&mut self, heard: &mut Vec<Signal>) -> io::Result<()> {
        self.ask.write_all(&[self.asker as u8])?;
        self.open += 1;
        while self.open > 0 {
            let mut fds = [PollFd::from_borrowed_fd(self.told.as_fd(), PollFlags::IN)];
            line::wait(&mut fds, Some(PATIENCE))?;
            if !line::is_ready(&fds[0]) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut byte = [0];
            self.told.read_exact(&mut byte)?;
            if byte[0] == self.asker as u8 {
                self.open -= 1;
            } else {
                heard.extend(Signal::try_from(i32::from(byte[0])));
            }
        }
        Ok(())
    }
}

/// Is the witness.
///
/// # Errors
/// When the system refuses.
pub fn run() -> io::Result<()> {
    line::close_callers()?;
    let mut signals = Signals::take()?;
    rustix::io::ioctl_fionbio(stdout(), true)?;
    loop {
        let mut fds = [PollFd::new(&signals, PollFlags::IN), PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        line::wait(&mut fds, None)?;
        let is_asked = line::is_ready(&fds[1]);
        while let Some(caught) = signals.next()? {
            tell(caught.signal as i32)?;
        }
        if is_asked {
            let mut question = [0];
            if rustix::io::read(stdin(), &mut question)? == 0 {
                return Ok(());
            }
            tell(i32::from(question[0]))?;
        }
    }
}

/// What nobody reads for so long that there is no room for more is told to nobody.
fn tell(number: i32) -> io::Result<()> {
    let byte = u8::try_from(number).unwrap_or_default();
    match rustix::io::write(stdout(), &[byte]) {
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_late_is_none_to_the_next_question() {
        let (mut ask, told) = (Line::new().unwrap(), Line::new().unwrap());
        let [asks, hears] = [OwnedFd::from(ask.writer), OwnedFd::from(told.reader)].map(File::from);
        let mut witness = Witness { asker: Asker::Keeper, ask: asks, told: hears, open: 0 };
        let mut answers = told.writer;
        assert_eq!(witness.heard(), [], "nobody answers");
        let [term, keeper] = [Signal::SIGTERM as u8, Asker::Keeper as u8];
        answers.write_all(&[term, keeper, Signal::SIGHUP as u8, keeper]).unwrap();
        assert_eq!(witness.heard(), [Signal::SIGTERM, Signal::SIGHUP]);
        answers.write_all(&[keeper]).unwrap();
        assert_eq!(witness.heard(), []);
        let mut questions = [0; 3];
        ask.reader.read_exact(&mut questions).unwrap();
        assert_eq!(questions, [keeper; 3]);
    }
}
