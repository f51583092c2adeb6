//! Files of lines that somebody else appends to, read as they grow.
//!
//! A [`Tail`] hands each whole line once, however its bytes arrive. While nothing has changed it costs one `stat`, and
//! nothing is opened. How much is read in one tick is bounded by a [`Budget`] that all files share. What cannot be read
//! is looked for again only so often. Lines are bytes: what they mean, and whether they mean anything, is the caller's.
//! A file whose name ends with `.zst` is unpacked as it is read, always from its beginning.

use crate::clock::Moment;
use crate::files::{FileId, Stamp, open_itself};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;
use unpack::Unpack;

#[cfg(test)]
mod tests;
mod unpack;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// How many of the last bytes that were read must still stand where they stood: a file that was written anew in place has
/// the same inode.
const ANCHOR: usize = 64;

/// How many bytes a compressed file is taken to have.
const MOST_PACKED: u64 = 1 << 40;

/// How long it is kept ready to unpack more of a compressed file that does not grow.
const UNPACKED_FOR: Duration = Duration::from_secs(10);

/// How many bytes may still be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(u64);

impl Budget {
    /// So many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// How many are left.
    pub const fn left(self) -> u64 {
        self.0
    }

    /// Takes at most `most` of them as a budget of their own: for one file among many. What it leaves is to be given
    /// [back](Self::put_back).
    pub fn part(&mut self, most: u64) -> Self {
        let part = self.0.min(most);
        self.0 -= part;
        Self(part)
    }

    /// Takes back what a part has left.
    pub fn put_back(&mut self, part: Self) {
        self.0 += part.0;
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How much of the file's end is read when it is first seen; `None`: all of it, from the beginning.
    pub first: Option<u64>,
    /// The longest line that is handed, bytes. Longer ones are skipped whole, and counted.
    pub longest_line: usize,
    /// How soon a file that could not be read is looked for again.
    pub retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { first: Some(256 << 10), longest_line: 4 << 20, retry: Duration::from_secs(10) }
    }
}

/// What is handed to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A file begins: the first one, another one in its place, or one that was written anew. What was handed before is
    /// of no worth.
    Restart,
    /// One whole line without its end. It is never empty; it may be no text.
    Line(&'a [u8]),
}

/// How far a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All of it, and nothing is new.
    Unchanged,
    /// All of it, and something was new.
    Read,
    /// The budget ended before the file did: more comes with the next tick.
    Behind,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unreadable {
    /// There is none.
    pub missing: bool,
    why: String,
}

impl Unreadable {
    /// It is there, but this is wrong with it.
    pub fn because(why: impl Into<String>) -> Self {
        Self { missing: false, why: why.into() }
    }
}

impl From<&io::Error> for Unreadable {
    fn from(error: &io::Error) -> Self {
        use ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        let missing = matches!(error.kind(), NotFound | NotADirectory | InvalidFilename);
        Self { missing, why: if missing { "no such file".to_owned() } else { error.to_string() } }
    }
}

/// One file that is read as it grows.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    options: Options,
    /// Which file is being read; `None`: none yet.
    file: Option<FileId>,
    /// How much of it was read.
    offset: u64,
    /// Whether it did not begin to read at the file's beginning.
    cut: bool,
    /// The last bytes before `offset`.
    anchor: Vec<u8>,
    /// Where it is compressed.
    unpack: Option<Unpack>,
    lines: Lines,
    /// What the file was when all of it had been read.
    whole: Option<Stamp>,
    /// When anything of it was read last, on the steady clock.
    read_at: Duration,
    /// What the file was when what is in it could not be unpacked, and why.
    spoiled: Option<(Stamp, Unreadable)>,
    /// Until when it is not looked for again, on the steady clock, and why.
    failed: Option<(Duration, Unreadable)>,
}

impl Tail {
    /// A file that was not looked at yet.
    pub fn new(path: PathBuf, options: Options) -> Self {
        let lines = Lines::new(options.longest_line);
        Self {
            path,
            options,
            file: None,
            offset: 0,
            cut: false,
            anchor: Vec::new(),
            unpack: None,
            lines,
            whole: None,
            read_at: Duration::ZERO,
            spoiled: None,
            failed: None,
        }
    }

    /// Whether it is compressed, by its name.
    pub fn is_packed(&self) -> bool {
        is_packed(&self.path)
    }

    /// When the file was written that has been read to its end, Unix milliseconds.
    pub fn modified_ms(&self) -> Option<u64> {
        self.whole?.modified_ms()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many lines were too long, since the last restart.
    pub fn too_long(&self) -> u64 {
        self.lines.too_long
    }

    /// Whether what stands before a certain place of the file was left out.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// How many bytes there are to be read, as far as can be seen without opening the file. How many a compressed one has
    /// cannot be seen: as many as may be.
    pub fn behind(&self) -> u64 {
        match Stamp::of_itself(&self.path) {
            Ok(stamp) if self.is_packed() && self.whole != Some(stamp) => MOST_PACKED.max(stamp.size),
            Ok(stamp) => stamp.size.saturating_sub(self.offset),
            Err(_) => 0,
        }
    }

    /// Reads what is new, and hands it piece by piece.
    ///
    /// # Errors
    /// The file is missing, is a link or no plain file, or cannot be read. What was handed before still stands, and if it
    /// is the same file that comes back, reading goes on where it stopped.
    pub fn read(
        &mut self,
        budget: &mut Budget,
        now: Moment,
        mut hand: impl FnMut(Piece<'_>),
    ) -> Result<Progress, Unreadable> {
        if let Some((_, why)) = self.failed.as_ref().filter(|(until, _)| now.steady < *until) {
            return Err(why.clone());
        }
        let stamp = Stamp::of_itself(&self.path).ok();
        if let Some((_, why)) = self.spoiled.as_ref().filter(|(spoiled, _)| Some(*spoiled) == stamp) {
            return Err(why.clone());
        }
        let read = self.read_now(budget, &mut hand).map_err(|error| self.why(&error));
        match read {
            // What it remembers takes megabytes. If the file grows after all, it is unpacked anew.
            Ok(Progress::Unchanged) if now.steady >= self.read_at + UNPACKED_FOR => self.unpack = None,
            Ok(Progress::Unchanged) => {}
            _ => self.read_at = now.steady,
        }
        self.failed = read.as_ref().err().map(|why| (now.steady + self.options.retry, why.clone()));
        read
    }

    fn read_now(&mut self, budget: &mut Budget, hand: &mut impl FnMut(Piece<'_>)) -> io::Result<Progress> {
        if self.whole == Some(Stamp::of_itself(&self.path)?) {
            return Ok(Progress::Unchanged);
        }
        (self.whole, self.spoiled) = (None, None);
        if budget.left() == 0 {
            return Ok(Progress::Behind);
        }
        let (mut file, stamp) = open_itself(&self.path)?;
        let is_dropped = self.is_packed() && self.unpack.is_none();
        if is_dropped || !self.is_continued_by(&mut file, stamp)? {
            self.start_over(stamp);
            hand(Piece::Restart);
            if self.is_packed() {
                self.unpack = Some(Unpack::new()?);
            }
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let is_read = self.read_on(&mut file, budget, hand).inspect_err(|error| self.spoil(stamp, error))?;
        if !is_read {
            return Ok(Progress::Behind);
        }
        self.whole = Some(stamp);
        Ok(Progress::Read)
    }

    /// Whether this is the file that was read before, and what was read still stands in it.
    fn is_continued_by(&self, file: &mut File, stamp: Stamp) -> io::Result<bool> {
        if self.file != Some(stamp.id) || stamp.size < self.offset {
            return Ok(false);
        }
        let mut there = vec![0; self.anchor.len()];
        file.seek(SeekFrom::Start(self.offset - self.anchor.len() as u64))?;
        match file.read_exact(&mut there) {
            Ok(()) => Ok(there == self.anchor),
            // It has shrunk in this moment.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn start_over(&mut self, stamp: Stamp) {
        let torn = self.options.first.is_some_and(|first| stamp.size > first) && !self.is_packed();
        // One byte more: if a line ends there, the next one is whole.
        self.offset = if torn { stamp.size - self.options.first.unwrap_or_default() - 1 } else { 0 };
        self.cut = torn;
        self.file = Some(stamp.id);
        self.anchor.clear();
        self.lines = Lines { skipping: torn, ..Lines::new(self.options.longest_line) };
    }

    /// Who cannot be unpacked from here is to be read from the beginning, once something in the file has changed.
    fn spoil(&mut self, stamp: Stamp, error: &io::Error) {
        if self.unpack.take().is_some() {
            self.file = None;
            self.spoiled = Some((stamp, Unreadable::because(format!("cannot be unpacked: {error}"))));
        }
    }

    fn why(&self, error: &io::Error) -> Unreadable {
        self.spoiled.as_ref().map_or_else(|| Unreadable::from(error), |(_, why)| why.clone())
    }

    /// Reads to the end, or until the budget ends. Returns whether the end was reached.
    fn read_on(&mut self, file: &mut File, budget: &mut Budget, hand: &mut impl FnMut(Piece<'_>)) -> io::Result<bool> {
        let mut chunk = vec![0; CHUNK];
        while budget.left() > 0 {
            if let Some(unpack) = self.unpack.as_mut().filter(|unpack| unpack.is_pending()) {
                unpack.feed(&[], budget, |bytes| self.lines.feed(bytes, hand))?;
                continue;
            }
            let most = usize::try_from(budget.left()).map_or(CHUNK, |left| left.min(CHUNK));
            let read = match file.read(&mut chunk[..most]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else { return Ok(true) };
            budget.0 -= read as u64;
            let taken = match &mut self.unpack {
                Some(unpack) => unpack.feed(bytes, budget, |bytes| self.lines.feed(bytes, hand))?,
                None => {
                    self.lines.feed(bytes, hand);
                    read
                }
            };
            self.offset += taken as u64;
            self.anchor.extend_from_slice(&bytes[taken.saturating_sub(ANCHOR)..taken]);
            self.anchor.drain(..self.anchor.len().saturating_sub(ANCHOR));
            if taken < read {
                return Ok(false);
            }
        }
        Ok(false)
    }
}

/// Whether a file is compressed, by its name.
fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// The first line of a file, compressed or not, without its end. `None`: it has none yet.
///
/// # Errors
/// The file is missing, is a link or no plain file, or cannot be read; the line has more than `most` bytes.
pub fn first_line(path: &Path, most: usize) -> Result<Option<Vec<u8>>, Unreadable> {
    let options = Options { first: None, longest_line: most, ..Options::default() };
    let mut tail = Tail::new(path.to_owned(), options);
    let mut first = None;
    // By and by, for most first lines are short.
    for _ in 0..=most / CHUNK {
        let progress = tail.read_now(&mut Budget::new(2 * CHUNK as u64), &mut |piece| {
            if let (Piece::Line(line), None) = (piece, &first) {
                first = Some(line.to_vec());
            }
        });
        let progress = progress.map_err(|error| tail.why(&error))?;
        if tail.too_long() > 0 {
            return Err(Unreadable::because(format!("its first line has more than {most} bytes")));
        }
        if first.is_some() || progress != Progress::Behind {
            break;
        }
    }
    Ok(first)
}

/// Makes lines of bytes that arrive in pieces.
#[derive(Debug)]
pub(super) struct Lines {
    longest: usize,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// Whether the line that has begun is dropped: it is torn or too long.
    skipping: bool,
    too_long: u64,
}

impl Lines {
    /// Nothing has come yet. Lines longer than `longest` bytes are skipped.
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, begun: Vec::new(), skipping: false, too_long: 0 }
    }

    /// Hands each line that ends in these bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], hand: &mut impl FnMut(Piece<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.end(&bytes[..end], hand);
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// Hands the line that ends with these bytes.
    fn end(&mut self, bytes: &[u8], hand: &mut impl FnMut(Piece<'_>)) {
        if self.begun.is_empty() && !self.skipping && bytes.len() <= self.longest {
            return hand_line(bytes, hand);
        }
        self.keep(bytes);
        if !std::mem::take(&mut self.skipping) {
            hand_line(&self.begun, hand);
        }
        self.begun.clear();
        // Few lines are that long, and there are many files.
        self.begun.shrink_to(CHUNK);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.begun.len() + bytes.len() <= self.longest {
            return self.begun.extend_from_slice(bytes);
        }
        self.begun = Vec::new();
        self.skipping = true;
        self.too_long += 1;
    }
}

fn hand_line(bytes: &[u8], hand: &mut impl FnMut(Piece<'_>)) {
    let line = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if !line.is_empty() {
        hand(Piece::Line(line));
    }
}
