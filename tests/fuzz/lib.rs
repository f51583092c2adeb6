//! Fuzz targets: every parser of bytes that somebody else has written, and what must hold whatever the bytes are.
//!
//! `cargo test` runs each over its seeds and some hundred changes of them; `main.rs` has a fuzzer make up more.

mod bridge;
pub mod mutation;
mod secrets;
mod tail;
#[cfg(test)]
mod tests;

use headcount::fuzzing::{RECORDS, SYSTEM, TEXTS};

/// The most that is said of a record, whatever stands in it: some words of 64 characters, of which each may be shown as ten.
const MOST_SAID: usize = 24 << 10;

/// One parser.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of the folder with its seeds.
    pub name: &'static str,
    kind: Kind,
}

/// A parser, and what it lets out of bytes that come in these pieces.
type Read = fn(&[&[u8]]) -> String;

/// What is to hold of it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// An agent's record: what is said of it is bounded, and nothing of the work is in it.
    Record(Read),
    /// Any other text: what is read of it grows with it at the most.
    Text(Read),
    /// The bytes are a script of what happens.
    Script(fn(&[u8])),
}

/// All targets. Those of parsers are made of the lists behind the program's own door.
pub fn targets() -> impl Iterator<Item = Target> {
    let target = |kind: fn(Read) -> Kind| move |&(name, read)| Target { name, kind: kind(read) };
    let records = RECORDS.iter().map(target(Kind::Record));
    let texts = SYSTEM.iter().chain(TEXTS).map(target(Kind::Text));
    let script = |name, run: fn(&[u8])| Target { name, kind: Kind::Script(run) };
    let scripts = [script("bridge-folder", bridge::run), script("tail", tail::run)];
    records.chain(texts).chain(scripts)
}

impl Target {
    /// Has these bytes read.
    ///
    /// # Panics
    /// The parser does, or something does not hold that is to hold.
    pub fn run(&self, bytes: &[u8]) {
        match self.kind {
            Kind::Record(read) => {
                let said = read_in_any_pieces(read, bytes);
                assert!(said.len() <= MOST_SAID, "{} bytes are said of {}", said.len(), bytes.len());
                if let Some(secret) = secrets::with_secrets(bytes) {
                    let said = read(&[&secret]);
                    assert!(!said.contains(secrets::MARK), "it lets out what it should not: {said}");
                }
            }
            Kind::Text(read) => {
                let said = read_in_any_pieces(read, bytes);
                assert!(said.len() <= MOST_SAID + 64 * bytes.len(), "{} bytes are said of {}", said.len(), bytes.len());
                if self.name == "proc-environ" && !secrets::has_mark(bytes) {
                    let secret = [bytes, b"\0API_KEY=", secrets::MARK.as_bytes()].concat();
                    assert!(!read(&[&secret]).contains(secrets::MARK), "a variable is kept that holds a secret");
                }
            }
            Kind::Script(run) => run(bytes),
        }
    }
}

/// What is said of the bytes: the same, wherever one piece of them ends and the next one begins.
fn read_in_any_pieces(read: Read, bytes: &[u8]) -> String {
    let said = read(&[bytes]);
    let sum: usize = bytes.iter().map(|&byte| usize::from(byte)).sum();
    let (begin, end) = bytes.split_at(sum % (bytes.len() + 1));
    assert_eq!(read(&[begin, end]), said, "it is read in two pieces");
    said
}
