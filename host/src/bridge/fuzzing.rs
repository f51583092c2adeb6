//! The door for fuzzing: what is read of requests that others have written, and what becomes of a folder that they have filled.

use super::folder::Folder;
use super::mailbox::{Accepted, Mailbox};
use super::request::{CLOSE, Request};
use super::response::Response;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What is read of a request.
pub fn request(pieces: &[&[u8]]) -> String {
    format!("{:?}", Request::parse(&pieces.concat()))
}

/// Answers all that is in a folder, until nothing in it may yet become a request, and tells which tools were asked for.
///
/// # Errors
/// When the folder cannot be used.
pub fn serve(folder: &Path) -> io::Result<Vec<String>> {
    let folder = Folder::open(folder)?.map_err(io::Error::other)?;
    let mut mailbox = Mailbox::new(folder);
    mailbox.resume(true)?;
    let (mut now, mut tools) = (Duration::ZERO, Vec::new());
    loop {
        while let Some(accepted) = mailbox.next(now)? {
            let (id, tool) = match accepted {
                Accepted::Call(id, request) => (id, request.tool),
                Accepted::Close(id) => (id, CLOSE.to_owned()),
            };
            mailbox.answer(&id, &Response::success())?;
            tools.push(tool);
        }
        match mailbox.wake_at() {
            Some(at) => now = at,
            None => return Ok(tools),
        }
    }
}
