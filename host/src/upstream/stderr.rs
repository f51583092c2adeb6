//! What a server says on stderr goes to our log, a line at a time, and only so much of it.

use crate::text::clean;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe;

/// So many lines of one process are logged.
const MOST_LINES: usize = 1000;
/// So many bytes of a line are kept; what comes after them is passed over.
const MOST_BYTES: usize = 1024;

/// Reads all that comes, lest the server wait for a reader, and logs the beginning of it at INFO.
pub fn follow(stderr: pipe::Receiver, upstream: Arc<str>) {
    tokio::spawn(async move {
        let mut stderr = BufReader::new(stderr);
        let mut lines = Lines::default();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            lines.take(&buffer[..length], |line| tracing::info!("upstream {upstream} says: {line}"));
        }
        lines.end(|line| tracing::info!("upstream {upstream} says: {line}"));
    });
}

/// Cuts bytes into lines that are fit to be logged.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    told: usize,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(&str)) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end(&mut tell);
            } else if self.line.len() < MOST_BYTES && self.told < MOST_LINES {
                self.line.push(*byte);
            }
        }
    }

    fn end(&mut self, mut tell: impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() || self.told >= MOST_LINES {
            return;
        }
        self.told += 1;
        tell(&clean(&String::from_utf8_lossy(&line)));
        if self.told == MOST_LINES {
            tell("… and more, which is passed over");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8]) -> Vec<String> {
        let mut told = Vec::new();
        let mut lines = Lines::default();
        bytes.chunks(7).for_each(|chunk| lines.take(chunk, |line| told.push(line.to_owned())));
        lines.end(|line| told.push(line.to_owned()));
        told
    }

    #[test]
    fn lines_are_told_clean_and_the_last_one_too() {
        assert_eq!(told(b"one\n\n\x1b[2Jtwo\nthree"), ["one", "two", "three"]);
    }

    #[test]
    fn of_a_flood_the_beginning_is_told() {
        let all = told(&b"again\n".repeat(5000));
        assert_eq!((all.len(), all[MOST_LINES - 1].as_str()), (MOST_LINES + 1, "again"));
        let endless = told(&vec![b'x'; 1 << 20]);
        assert_eq!(endless.len(), 1);
        assert!(endless[0].len() < MOST_BYTES);
    }
}
