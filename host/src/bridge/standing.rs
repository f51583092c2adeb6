//! How the session stands, for whoever reads `status.json`: with what tells its process from any other, and when it last lived.

use super::folder::{Content, Folder, Lasting};
use crate::clock::Clock;
use crate::observe::processes::{Machine, ProcessId, identify, may_live};
use crate::observe::roster::retained::{RetainedState, RetainedStatus, STATUS_FILE};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often it says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
/// The most that is read of an earlier one.
const STATUS_MAX: u64 = 4 << 20;

/// So many bytes of tools' names a status lists.
const TOOLS_MAX: usize = 64 << 10;

/// How the session stands, and who keeps it.
pub struct Standing {
    clock: Arc<dyn Clock>,
    process: (ProcessId, Machine),
    /// What the server says of itself.
    pub server: Option<String>,
    told: Option<RetainedStatus>,
    told_at: Duration,
}

/// What an earlier session has left in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It may still be there.
    MayLive,
    /// It has ended, and its marks are all there.
    Certain,
    /// It has ended, and the machine with it, or it kept no marks.
    Uncertain,
    /// Nothing that tells of one.
    Unknown,
}

impl Standing {
    /// Of this process.
    ///
    /// # Errors
    /// When the process cannot be told from others.
    pub fn of_this_process(clock: Arc<dyn Clock>) -> io::Result<Self> {
        let process = identify(std::process::id())?;
        Ok(Self { clock, process, server: None, told: None, told_at: Duration::ZERO })
    }

    /// What the session that was in `folder` before has left.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn left(&self, folder: &Folder) -> io::Result<Left> {
        let Content::File(content, _) = folder.read(STATUS_FILE, STATUS_MAX)? else { return Ok(Left::Unknown) };
        let Ok(status) = serde_json::from_slice::<RetainedStatus>(&content) else { return Ok(Left::Unknown) };
        if matches!(status.state, RetainedState::Closed | RetainedState::Failed) && status.boot_id.is_some() {
            return Ok(Left::Certain);
        }
        let (_, here) = &self.process;
        Ok(match status.process() {
            // Of another namespace nothing is seen here; the folder's lock tells where both are on one machine.
            Some((machine, id)) if machine == *here => match may_live(id) && id != self.process.0 {
                true => Left::MayLive,
                false => Left::Certain,
            },
            Some((machine, _)) if machine.boot_id == here.boot_id => Left::Certain,
            Some(_) => Left::Uncertain,
            // An older program: a process that has its pid may be it.
            None if matches!(status.state, RetainedState::Ready | RetainedState::Busy)
                && identify(status.pid).is_ok() =>
            {
                Left::MayLive
            }
            None => Left::Uncertain,
        })
    }

    /// Waits for requests.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn ready(&mut self, folder: &Folder, tools: Vec<String>, connected: bool) -> io::Result<()> {
        let (tools, more_tools) = shown(&tools);
        let ready = RetainedStatus { tools: Some(tools), more_tools, ..self.status(RetainedState::Ready) };
        self.tell(folder, RetainedStatus { connected: Some(connected), ..ready }, Lasting::Cached)
    }

    /// Is not connected yet. Whoever knows only of `ready` and `busy` waits.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn starting(&mut self, folder: &Folder) -> io::Result<()> {
        // The boot has to be known after a crash of the machine, too: by it is known that marks may be lost.
        self.tell(folder, self.status(RetainedState::Busy), Lasting::Synced)
    }

    /// Has an answer that cannot be written, and takes no request meanwhile.
    ///
    /// # Errors
    /// When this cannot be written either.
    pub fn held_up(&mut self, folder: &Folder) -> io::Result<()> {
        if self.told.as_ref().is_some_and(|told| told.state == RetainedState::Busy) {
            return Ok(());
        }
        self.tell(folder, self.status(RetainedState::Busy), Lasting::Cached)
    }

    /// Has called a tool.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn busy(&mut self, folder: &Folder, tool: &str) -> io::Result<()> {
        let busy = RetainedStatus { active_tool: Some(tool.to_owned()), ..self.status(RetainedState::Busy) };
        self.tell(folder, busy, Lasting::Cached)
    }

    /// Was ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn closed(&mut self, folder: &Folder) -> io::Result<()> {
        self.tell(folder, self.status(RetainedState::Closed), Lasting::Synced)
    }

    /// Has come to nothing, by one of few words.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn failed(&mut self, folder: &Folder, error: &'static str) -> io::Result<()> {
        let failed = RetainedStatus { error: Some(error.to_owned()), ..self.status(RetainedState::Failed) };
        self.tell(folder, failed, Lasting::Synced)
    }

    /// Says that it lives, and else what it has said last.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn beat(&mut self, folder: &Folder) -> io::Result<()> {
        self.told.clone().map_or(Ok(()), |told| self.tell(folder, told, Lasting::Cached))
    }

    /// Whether it has said that it waits for requests, and with what.
    pub fn says(&self, tools: &[String], connected: bool) -> bool {
        let (tools, more_tools) = shown(tools);
        self.told.as_ref().is_some_and(|told| {
            (told.state, told.connected) == (RetainedState::Ready, Some(connected))
                && (told.tools.as_ref(), told.more_tools) == (Some(&tools), more_tools)
        })
    }

    /// Whether it is time to say that it lives.
    pub fn is_due(&self) -> bool {
        self.clock.now().steady.saturating_sub(self.told_at) >= HEARTBEAT
    }

    fn status(&self, state: RetainedState) -> RetainedStatus {
        let (id, machine) = self.process.clone();
        RetainedStatus {
            state,
            pid: id.pid,
            tools: None,
            more_tools: None,
            active_tool: None,
            error: None,
            server: self.server.clone(),
            start: Some(id.start),
            boot_id: Some(machine.boot_id),
            pid_namespace: Some(machine.pid_namespace),
            since_ms: None,
            heartbeat_ms: None,
            connected: None,
        }
    }

    fn tell(&mut self, folder: &Folder, mut status: RetainedStatus, lasting: Lasting) -> io::Result<()> {
        let now = self.clock.now();
        let same = self.told.as_ref().filter(|told| told.state == status.state);
        status.since_ms = same.map_or(Some(now.unix_ms), |told| told.since_ms);
        status.heartbeat_ms = Some(now.unix_ms);
        folder.write(STATUS_FILE, &serde_json::to_vec(&status)?, lasting)?;
        (self.told, self.told_at) = (Some(status), now.steady);
        Ok(())
    }
}

/// The tools that a status lists, and how many more there are: whoever reads it reads no file without end.
fn shown(tools: &[String]) -> (Vec<String>, Option<usize>) {
    let mut room = TOOLS_MAX;
    let fits = |tool: &&String| {
        room = room.saturating_sub(tool.len() + 3);
        room > 0
    };
    let shown: Vec<String> = tools.iter().take_while(fits).cloned().collect();
    let more = tools.len() - shown.len();
    (shown, (more > 0).then_some(more))
}
