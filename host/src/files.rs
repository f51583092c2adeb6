//! Small files that somebody else has written. A name may stand for anything: a pipe nobody writes to would never open,
//! a device would never end. Only a plain file of a sensible size is read, and what is written is there whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    /// Inodes are used again, often at once.
    born: Option<SystemTime>,
}

/// What changes when a plain file's content does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which file it is.
    pub id: FileId,
    /// Its size in bytes.
    pub size: u64,
    /// Whose it is: the number of a user; `None` where the system does not tell.
    pub uid: Option<u32>,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// The stamp of a plain file, or of the one that a link leads to.
    ///
    /// # Errors
    /// There is none, or it is something else: a pipe would never end.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::new(&fs::metadata(path)?)
    }

    /// The same, but a link is no plain file.
    ///
    /// # Errors
    /// There is none, or it is something else.
    pub fn of_itself(path: &Path) -> io::Result<Self> {
        Self::new(&fs::symlink_metadata(path)?)
    }

    fn new(found: &Metadata) -> io::Result<Self> {
        if !found.is_file() {
            return Err(not_regular());
        }
        #[cfg(unix)]
        let (device, inode) = {
            use std::os::unix::fs::MetadataExt as _;
            (found.dev(), found.ino())
        };
        #[cfg(not(unix))]
        let (device, inode) = (0, 0);
        let id = FileId { device, inode, born: found.created().ok() };
        Ok(Self { id, size: found.len(), uid: owner(found), modified: found.modified().ok() })
    }

    /// When the file was written, Unix milliseconds.
    pub fn modified_ms(&self) -> Option<u64> {
        unix_ms(self.modified?)
    }
}

/// A file's time, Unix milliseconds; `None` where it is before that.
pub fn unix_ms(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Whose a file or folder is: the number of a user; `None` where the system does not tell.
pub fn owner(found: &Metadata) -> Option<u32> {
    #[cfg(unix)]
    let owner = Some(std::os::unix::fs::MetadataExt::uid(found));
    #[cfg(not(unix))]
    let owner = None;
    owner
}

/// Reads a whole file of at most `cap` bytes.
///
/// # Errors
/// It cannot be read, is no plain file, or is larger.
pub fn read_small(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    read_up_to(open(path, Links::Followed)?, cap)
}

/// The same, but a link is not followed; with what the file was when it was opened.
///
/// # Errors
/// As [`read_small`]; it is a link.
pub fn read_small_itself(path: &Path, cap: u64) -> io::Result<(Vec<u8>, Stamp)> {
    let (file, stamp) = open_itself(path)?;
    Ok((read_up_to((file, stamp), cap)?, stamp))
}

/// Opens a plain file to read it from anywhere in it. A link is not followed: it may lead to what is not meant.
///
/// # Errors
/// It cannot be opened, is a link or no plain file.
pub fn open_itself(path: &Path) -> io::Result<(File, Stamp)> {
    open(path, Links::Refused)
}

fn read_up_to((file, stamp): (File, Stamp), cap: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if stamp.size <= cap {
        // A size is only what the file system says: it may grow meanwhile, and that of a file in procfs is 0.
        file.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if stamp.size.max(bytes.len() as u64) > cap {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("is larger than {}", size(cap))));
    }
    Ok(bytes)
}

/// Reads a whole text of at most `cap` bytes.
///
/// # Errors
/// As [`read_small`]; it is not UTF-8.
pub fn read_small_text(path: &Path, cap: u64) -> io::Result<String> {
    let bytes = read_small(path, cap)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// Whether all users may read a file that holds a secret, or put another there. A group may: that is how services share one.
#[cfg(unix)]
pub fn is_open_to_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o006 != 0)
}

/// Whether all users may read a file: not told on this system.
#[cfg(not(unix))]
pub fn is_open_to_all(_: &Path) -> bool {
    false
}

/// Refuses what is there and is no plain file. Others may open what passes: it is asked again when it is opened.
///
/// # Errors
/// It is something else, or cannot be looked at.
pub fn regular_or_missing(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(not_regular()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Puts `bytes` in a file's place: whoever reads it meanwhile finds all of the old or all of the new. The file keeps its
/// owner and its mode, and a link that leads to it stays one.
///
/// # Errors
/// It cannot be written, or something else than a plain file has its name.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, false)
}

/// The same, for this user alone (0600), whatever mode the file had.
///
/// # Errors
/// As [`replace`].
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, true)
}

fn put(path: &Path, bytes: &[u8], private: bool) -> io::Result<()> {
    let (path, old) = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
        // Renaming would put a file in the place of the link, and leave what it leads to as it was.
        Ok(_) => {
            let path = fs::canonicalize(path)?;
            let found = fs::metadata(&path)?;
            if !found.is_file() {
                return Err(not_regular());
            }
            (path, Some(found))
        }
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(folder)?;
    // Its errors name the temporary file, of which nobody has heard.
    let new = builder(private).tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    if let Some(old) = old.filter(|_| !private) {
        keep_owner(new.as_file(), &old)?;
        new.as_file().set_permissions(old.permissions())?;
    }
    new.as_file().write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Gives a new file the owner and the group of the one whose place it takes, where they are not the same.
#[cfg(unix)]
fn keep_owner(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let made = new.metadata()?;
    if (made.uid(), made.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_new: &File, _old: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Makes temporary files as others are made, with what the umask leaves, unless they are `private`.
fn builder(private: bool) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".headcount-");
    #[cfg(unix)]
    if !private {
        builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    }
    builder
}

/// What is said of a pipe, a device or a folder in a file's place.
pub fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "is not a regular file")
}

/// What is done about a name that is a link.
enum Links {
    Followed,
    Refused,
}

/// Opens a plain file without waiting for the other end of a pipe.
fn open(path: &Path, links: Links) -> io::Result<(File, Stamp)> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use nix::fcntl::OFlag;
        let follow = if matches!(links, Links::Refused) { OFlag::O_NOFOLLOW } else { OFlag::empty() };
        let flags = OFlag::O_NONBLOCK | follow;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits());
    }
    #[cfg(not(unix))]
    if matches!(links, Links::Refused) {
        Stamp::of_itself(path)?;
    }
    let file = options.read(true).open(path)?;
    let stamp = Stamp::new(&file.metadata()?)?;
    Ok((file, stamp))
}

/// `64 MiB`, `4 KiB` or `100 bytes`: the largest unit that divides it.
fn size(bytes: u64) -> String {
    match bytes {
        whole if whole > 0 && whole.is_multiple_of(1 << 20) => format!("{} MiB", whole >> 20),
        whole if whole > 0 && whole.is_multiple_of(1 << 10) => format!("{} KiB", whole >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// Makes `path` a pipe that nobody writes to, for tests.
#[cfg(all(unix, test))]
pub(crate) fn make_pipe(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_cap() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "1234").unwrap();
        assert_eq!(read_small(&file, 4).unwrap(), b"1234");
        assert_eq!(read_small_text(&file, 4).unwrap(), "1234");
        assert_eq!(read_small(&file, 3).unwrap_err().to_string(), "is larger than 3 bytes");
        fs::write(&file, vec![0xff; 4097]).unwrap();
        assert_eq!(read_small(&file, 4096).unwrap_err().to_string(), "is larger than 4 KiB");
        assert_eq!(read_small_text(&file, 1 << 20).unwrap_err().to_string(), "is not UTF-8 text");
        assert_eq!(read_small(&dir.path().join("none"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_small(dir.path(), 10).unwrap_err().to_string(), "is not a regular file");
        assert!(regular_or_missing(dir.path()).is_err());
        assert!(regular_or_missing(&dir.path().join("none")).is_ok());
        #[cfg(unix)]
        {
            let pipe = dir.path().join("pipe");
            make_pipe(&pipe);
            for special in [pipe.as_path(), Path::new("/dev/zero")] {
                assert_eq!(read_small(special, 10).unwrap_err().to_string(), "is not a regular file");
                assert!(regular_or_missing(special).is_err());
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_only_where_that_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "1234").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_small(&link, 4).unwrap(), b"1234");
        let (bytes, stamp) = read_small_itself(&file, 4).unwrap();
        assert_eq!((bytes.as_slice(), stamp), (&b"1234"[..], Stamp::of(&link).unwrap()));
        assert!(read_small_itself(&link, 4).is_err() && Stamp::of_itself(&link).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_a_size_is_read_and_capped_all_the_same() {
        let file = Path::new("/proc/self/status");
        assert!(read_small_text(file, 1 << 20).unwrap().starts_with("Name:"));
        assert_eq!(read_small(file, 10).unwrap_err().to_string(), "is larger than 10 bytes");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode_and_its_links() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
        let dir = tempfile::tempdir().unwrap();
        let [file, link, usual] = ["file", "link", "usual"].map(|name| dir.path().join(name));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::write(&usual, "as all programs write it").unwrap();
        replace(&file, b"new").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), mode(&usual)));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        // Who has the old file open goes on reading it.
        let (mut reader, before) = (File::open(&file).unwrap(), fs::metadata(&file).unwrap().ino());
        replace(&link, b"newer").unwrap();
        let mut old = String::new();
        reader.read_to_string(&mut old).unwrap();
        assert_eq!((old.as_str(), fs::read(&file).unwrap(), mode(&file)), ("new", b"newer".to_vec(), 0o640));
        assert!(fs::metadata(&file).unwrap().ino() != before && fs::symlink_metadata(&link).unwrap().is_symlink());
        replace_private(&file, b"mine").unwrap();
        assert_eq!((fs::read(&link).unwrap(), mode(&file)), (b"mine".to_vec(), 0o600));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing else is left");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced_and_the_reason_names_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let [pipe, link, lost, nowhere] = ["pipe", "link", "lost", "no/file"].map(|name| dir.path().join(name));
        make_pipe(&pipe);
        std::os::unix::fs::symlink("pipe", &link).unwrap();
        std::os::unix::fs::symlink("gone", &lost).unwrap();
        for (path, said) in [
            (&pipe, "is not a regular file"),
            (&link, "is not a regular file"),
            (&dir.path().to_owned(), "is not a regular file"),
            (&lost, "No such file or directory (os error 2)"),
            (&nowhere, "No such file or directory (os error 2)"),
        ] {
            assert_eq!(replace(path, b"x").unwrap_err().to_string(), said);
            assert_eq!(replace_private(path, b"x").unwrap_err().to_string(), said);
        }
        assert!(fs::symlink_metadata(&lost).unwrap().is_symlink());
    }
}
