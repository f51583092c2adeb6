//! An event from stdin: at most so many bytes, and for so long. What has come by then is the event: some agents never
//! close the pipe, and some send a whole file along.

use crate::clock::{Clock as _, SystemClock};
use std::io::{self, Read};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

/// The most that is read.
const MOST: usize = 1 << 20;

/// Reads stdin until its end, or until the clock shows `until`.
pub fn read(clock: &SystemClock, until: Duration) -> Vec<u8> {
    read_from(io::stdin(), clock, until)
}

fn read_from(source: impl Read + Send + 'static, clock: &SystemClock, until: Duration) -> Vec<u8> {
    let (chunk, chunks) = mpsc::channel();
    let mut all = Vec::new();
    // Reading cannot be interrupted; the thread ends with the program.
    if thread::Builder::new().spawn(move || pass_on(source, &chunk)).is_err() {
        return all;
    }
    while all.len() < MOST
        && let Ok(bytes) = chunks.recv_timeout(until.saturating_sub(clock.now().steady))
    {
        all.extend::<Vec<u8>>(bytes);
    }
    all.truncate(MOST);
    all
}

fn pass_on(mut source: impl Read, chunk: &Sender<Vec<u8>>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) if chunk.send(buffer[..length].to_vec()).is_err() => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says something and then nothing for a long time.
    struct Slow(Option<&'static [u8]>);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(mut bytes) = self.0.take() else {
                thread::sleep(Duration::from_secs(60));
                return Ok(0);
            };
            bytes.read(buffer)
        }
    }

    #[test]
    fn what_has_come_in_time_is_the_event() {
        let clock = SystemClock::default();
        assert_eq!(read_from(&b"{}"[..], &clock, Duration::from_secs(30)), b"{}");
        assert!(clock.now().steady < Duration::from_secs(20), "the end of the input is not waited for");
        let until = clock.now().steady + Duration::from_millis(100);
        assert_eq!(read_from(Slow(Some(b"{}")), &clock, until), b"{}");
        assert!(clock.now().steady >= until);
    }

    #[test]
    fn what_is_too_much_is_not_read() {
        let clock = SystemClock::default();
        assert_eq!(read_from(io::repeat(b'x'), &clock, Duration::from_secs(30)).len(), MOST);
    }
}
