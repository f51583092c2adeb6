//! Small files that somebody else writes anew, read when they have changed.

use super::tail::Unreadable;
use crate::files::{Stamp, read_small_itself};
use std::io;
use std::path::{Path, PathBuf};

/// One small file and what was made of it. While it has not changed it costs one `stat`, and nothing is opened.
#[derive(Debug)]
pub struct Small<T> {
    path: PathBuf,
    cap: u64,
    /// What the file was when it was read.
    seen: Option<Stamp>,
    known: Option<T>,
    /// Why what is in the file now is not understood.
    doubt: Option<String>,
}

impl<T> Small<T> {
    /// A file of at most `cap` bytes that was not looked at yet.
    pub fn new(path: PathBuf, cap: u64) -> Self {
        Self { path, cap, seen: None, known: None, doubt: None }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When the file was written, Unix milliseconds.
    pub fn modified_ms(&self) -> Option<u64> {
        self.seen.as_ref()?.modified_ms()
    }

    /// What the file says, as `parse` understands it. What cannot be understood may be half written: what was known
    /// before holds once more, and only then it is an error.
    ///
    /// # Errors
    /// The file is missing, is a link or no plain file, is too large, or is not understood.
    pub fn read(&mut self, parse: impl FnOnce(&[u8]) -> Result<T, String>) -> Result<&T, Unreadable> {
        let at_first = self.doubt.is_none();
        if let Err(error) = self.look(parse) {
            (self.seen, self.known, self.doubt) = (None, None, None);
            return Err(Unreadable::from(&error));
        }
        match (&self.known, &self.doubt) {
            (Some(known), None) => Ok(known),
            (Some(known), Some(_)) if at_first => Ok(known),
            (_, doubt) => Err(Unreadable::because(doubt.clone().unwrap_or_default())),
        }
    }

    fn look(&mut self, parse: impl FnOnce(&[u8]) -> Result<T, String>) -> io::Result<()> {
        if self.seen == Some(Stamp::of_itself(&self.path)?) {
            return Ok(());
        }
        let (bytes, stamp) = read_small_itself(&self.path, self.cap)?;
        self.seen = Some(stamp);
        match parse(&bytes) {
            Ok(value) => (self.known, self.doubt) = (Some(value), None),
            Err(why) => self.doubt = Some(why),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn number(bytes: &[u8]) -> Result<u32, String> {
        std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| "is no number".to_owned())
    }

    #[test]
    fn a_file_is_read_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let mut small = Small::new(dir.path().join("n"), 8);
        assert!(small.read(number).unwrap_err().missing);
        fs::write(small.path(), "12").unwrap();
        assert_eq!(small.read(number), Ok(&12));
        assert_eq!(small.read(|_| panic!("it has not changed")), Ok(&12));
        fs::write(small.path(), "345").unwrap();
        assert_eq!(small.read(number), Ok(&345));
        fs::write(small.path(), "123456789").unwrap();
        assert_eq!(small.read(number).unwrap_err().to_string(), "is larger than 8 bytes");
        fs::remove_file(small.path()).unwrap();
        assert!(small.read(number).unwrap_err().missing);
    }

    #[test]
    fn what_is_half_written_does_not_hide_what_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut small = Small::new(dir.path().join("n"), 8);
        fs::write(small.path(), "x").unwrap();
        assert_eq!(small.read(number).unwrap_err().to_string(), "is no number");
        fs::write(small.path(), "12").unwrap();
        assert_eq!(small.read(number), Ok(&12));
        fs::write(small.path(), "").unwrap();
        assert_eq!(small.read(number), Ok(&12));
        let gone = small.read(|_| panic!("it has not changed")).unwrap_err();
        assert_eq!((gone.missing, gone.to_string().as_str()), (false, "is no number"));
    }
}
