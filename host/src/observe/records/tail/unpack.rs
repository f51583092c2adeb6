//! Files that are compressed with zstd, unpacked as they are read.
//!
//! What comes out of a file is bounded by the same budget as what is read of it, so that one which unpacks to a thousand times
//! its size costs no tick more than any other. Blocks come out as soon as they are whole: a file that somebody still
//! writes to, or that breaks off, says what its whole blocks say.

use super::{Budget, CHUNK};
use std::fmt;
use std::io::{self, ErrorKind};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

/// So much of what came last must be remembered to unpack what comes next, as a power of two: 8 MiB. More is only asked for
/// by who compresses with the utmost effort.
const WINDOW: u32 = 23;

/// A file that unpacks to more than this is not read on, bytes.
const MOST: u64 = 512 << 20;

/// Unpacks one file.
pub(super) struct Unpack {
    decoder: Decoder<'static>,
    /// How much has come out of it.
    made: u64,
    /// Whether more may come out without anything more going in.
    pending: bool,
}

impl fmt::Debug for Unpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpack").field("made", &self.made).field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl Unpack {
    /// One that has unpacked nothing.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW))?;
        Ok(Self { decoder, made: 0, pending: false })
    }

    /// Whether more may come out though nothing more goes in.
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Unpacks `bytes` as far as the budget allows, and says how many of them it has taken.
    ///
    /// # Errors
    /// They are not what zstd makes, or what comes out is too much.
    pub(super) fn feed(&mut self, bytes: &[u8], budget: &mut Budget, mut hand: impl FnMut(&[u8])) -> io::Result<usize> {
        let mut input = InBuffer::around(bytes);
        let mut room = vec![0; CHUNK];
        loop {
            let most = usize::try_from(budget.left()).map_or(CHUNK, |left| left.min(CHUNK));
            self.pending = true;
            if most == 0 {
                return Ok(input.pos());
            }
            let mut output = OutBuffer::around(&mut room[..most]);
            // Where a frame ends, the next call begins another one.
            self.decoder.run(&mut input, &mut output)?;
            let made = output.pos();
            budget.0 -= made as u64;
            self.made += made as u64;
            if self.made > MOST {
                return Err(io::Error::new(
                    ErrorKind::FileTooLarge,
                    format!("unpacks to more than {} MiB", MOST >> 20),
                ));
            }
            hand(&room[..made]);
            if made < most && input.pos() == bytes.len() {
                self.pending = false;
                return Ok(input.pos());
            }
        }
    }
}
