//! Whether SQLite may be let at a database. It opens the log of one with more than a reader needs: one that is missing it
//! makes, and run by root it gives log and index to the database's owner. It goes by paths, and opens no folder once for all.
//! So only what is beside a database by right may be there, and nobody else may be able to exchange it meanwhile.

use super::Unread;
use std::fs::File;
use std::path::Path;

/// What SQLite may open beside a database.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Checks a database that is open, and what stands around it.
///
/// # Errors
/// Somebody else may have, or put there, what is not meant.
#[cfg(unix)]
pub(super) fn check(path: &Path, database: &File) -> Result<(), Unread> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = database.metadata()?.uid();
    around(path, owner, nix::unistd::geteuid().as_raw())
}

/// Elsewhere SQLite takes over nothing.
#[cfg(not(unix))]
pub(super) fn check(_path: &Path, _database: &File) -> Result<(), Unread> {
    Ok(())
}

/// Checks what stands around a database of this owner's, for this user.
#[cfg(unix)]
fn around(path: &Path, owner: u32, user: u32) -> Result<(), Unread> {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::MetadataExt as _;
    let refused = |why: &str| Err(Unread::Refused(why.to_owned()));
    if user == 0 && owner != 0 {
        return refused(
            "belongs to another user, and SQLite, run by root, would take over files beside it: run headcount as that user",
        );
    }
    // What a folder far above leads to can be exchanged, too. For root that is the way to files that are closed to others.
    for folder in path.ancestors().skip(1).take(if user == 0 { usize::MAX } else { 1 }) {
        if !is_closed(&Access::of(&fs::metadata(folder)?), &[0, user, owner]) {
            return refused("is in a folder that others can write to, who might exchange what is in it meanwhile");
        }
    }
    for end in BESIDE {
        match fs::symlink_metadata(super::side(path, end)) {
            Ok(found) if !found.is_file() => return Err(crate::files::not_regular().into()),
            Ok(found) if found.uid() == owner && found.nlink() == 1 => {}
            Ok(_) => return refused(&format!("has a file beside it (*{end}) of another owner, or with a second name")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Who may write to a folder.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
struct Access {
    owner: u32,
    group: u32,
    mode: u32,
}

#[cfg(unix)]
impl Access {
    fn of(folder: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { owner: folder.uid(), group: folder.gid(), mode: folder.mode() }
    }
}

/// Whether nobody but these users can exchange what they have in a folder. In one with the sticky bit others can only add to
/// it. A user's own group, which many systems give everybody, has the user's number; and that of root is root's.
#[cfg(unix)]
fn is_closed(folder: &Access, trusted: &[u32]) -> bool {
    const STICKY: u32 = 0o1000;
    const GROUP_WRITES: u32 = 0o020;
    const OTHERS_WRITE: u32 = 0o002;
    let is_own_group = folder.group == 0 || folder.group == folder.owner;
    let is_open = folder.mode & OTHERS_WRITE != 0 || (folder.mode & GROUP_WRITES != 0 && !is_own_group);
    trusted.contains(&folder.owner) && (!is_open || folder.mode & STICKY != 0)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    /// A user that none of the files here belongs to.
    const OTHER: u32 = 54_321;

    /// An empty file in a folder of its own, and its owner.
    fn stage() -> (tempfile::TempDir, std::path::PathBuf, u32) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        fs::write(&path, "").unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        (folder, path, owner)
    }

    fn why(found: Result<(), Unread>) -> String {
        found.unwrap_err().to_string()
    }

    #[test]
    fn root_opens_nobody_elses_database() {
        let (_folder, path, _) = stage();
        assert!(why(around(&path, OTHER, 0)).contains("run headcount as that user"));
        let file = File::open(&path).unwrap();
        assert_eq!(check(&path, &file), Ok(()), "one's own");
    }

    #[test]
    fn what_is_beside_a_database_is_its_owners_and_has_no_second_name() {
        let (folder, path, owner) = stage();
        for end in BESIDE {
            let (beside, elsewhere) = (super::super::side(&path, end), folder.path().join("elsewhere"));
            fs::write(&beside, "").unwrap();
            assert_eq!(around(&path, owner, owner), Ok(()));
            fs::hard_link(&beside, &elsewhere).unwrap();
            assert!(why(around(&path, owner, owner)).contains("second name"), "{end}");
            fs::remove_file(&elsewhere).unwrap();
            if owner != 0 {
                assert!(around(&path, OTHER, owner).is_err(), "{end}");
            }
            fs::remove_file(&beside).unwrap();
            std::os::unix::fs::symlink(&path, &beside).unwrap();
            assert!(why(around(&path, owner, owner)).contains("not a regular file"), "{end}");
            fs::remove_file(&beside).unwrap();
        }
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_trusted() {
        let (folder, path, owner) = stage();
        for (mode, is_trusted) in [(0o700, true), (0o755, true), (0o777, false), (0o1777, true)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(around(&path, owner, owner).is_ok(), is_trusted, "{mode:o}");
        }
        let trusts = |owner, group, mode| is_closed(&Access { owner, group, mode }, &[0, 1000]);
        assert!(trusts(1000, 100, 0o755) && trusts(0, 0, 0o775) && trusts(1000, 0, 0o775));
        assert!(trusts(1000, 1000, 0o2775), "one's own group");
        assert!(!trusts(1000, 100, 0o775), "a group of many");
        assert!(!trusts(1001, 1001, 0o700), "somebody else's");
    }

    #[test]
    fn for_root_no_folder_above_may_be_exchanged_either() {
        let (folder, _, owner) = stage();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("a.db"), "").unwrap();
        assert_eq!(around(&inner.join("a.db"), owner, owner), Ok(()));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let found = around(&inner.join("a.db"), 0, 0);
        assert!(why(found).contains("a folder that others can write to"));
    }
}
