//! A sign of life that ends with its process, however it ends: a file that is locked for as long as it lives.

use crate::config::make_private;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use tempfile::TempPath;

/// The folder of these files, below the state directory.
const FOLDER: &str = "servers";

/// What their names begin with. The rest makes each its own, also where pids are used again or mean nothing, as in containers
/// that share a state directory.
const PREFIX: &str = "srv-";

/// How long the part of a name is that makes it unique.
const UNIQUE: usize = 16;

/// This server's sign of life.
#[derive(Debug)]
pub struct Lease {
    id: String,
    // Locked, and removed with the lease.
    _file: (File, TempPath),
}

impl Lease {
    /// Takes a lease below the state directory `state`.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn take(state: &Path) -> io::Result<Self> {
        let folder = state.join(FOLDER);
        make_private(&folder)?;
        let (file, path) = loop {
            let made = tempfile::Builder::new().prefix(PREFIX).rand_bytes(UNIQUE).tempfile_in(&folder)?;
            let (file, path) = made.into_parts();
            file.lock()?;
            // Whoever looks for the living may have taken it for a left one before it was locked.
            if path.exists() {
                break (file, path);
            }
        };
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { id, _file: (file, path) })
    }

    /// The server's id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// The servers that live. Files of those that do not are removed on the way.
///
/// # Errors
/// The folder cannot be read.
pub fn living(state: &Path) -> io::Result<HashSet<String>> {
    let entries = match fs::read_dir(state.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(error),
    };
    let mut living = HashSet::new();
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name)) else { continue };
        match File::open(&path) {
            Ok(file) if is_held(&file, &path) => {
                living.insert(name.to_owned());
            }
            Ok(_) => {}
            // It has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(living)
}

/// Whether somebody holds the lock. What nobody holds is removed.
fn is_held(file: &File, path: &Path) -> bool {
    let held = file.try_lock_shared().is_err();
    if !held {
        // Locked by us, so that nobody takes it for theirs meanwhile.
        let _ = fs::remove_file(path);
    }
    held
}

fn is_id(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == UNIQUE && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_lives_as_long_as_its_lease() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(living(state.path()).unwrap(), HashSet::new());
        let (one, two) = (Lease::take(state.path()).unwrap(), Lease::take(state.path()).unwrap());
        assert_eq!(living(state.path()).unwrap(), HashSet::from([one.id().to_owned(), two.id().to_owned()]));
        drop(one);
        assert_eq!(living(state.path()).unwrap(), HashSet::from([two.id().to_owned()]));
        assert_eq!(fs::read_dir(state.path().join(FOLDER)).unwrap().count(), 1);
    }

    #[test]
    fn nobody_is_taken_for_dead_while_it_begins() {
        let state = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let looker = scope.spawn(|| (0..2000).for_each(|_| drop(living(state.path()).unwrap())));
            while !looker.is_finished() {
                let lease = Lease::take(state.path()).unwrap();
                assert!(living(state.path()).unwrap().contains(lease.id()));
            }
        });
    }

    #[test]
    fn what_a_killed_server_leaves_is_no_sign_of_life() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let (left, other) = (folder.join("srv-0123456789abcdef"), folder.join("README"));
        for file in [&left, &other] {
            File::create(file).unwrap();
        }
        assert_eq!(living(state.path()).unwrap(), HashSet::new());
        assert!(!left.exists() && other.exists(), "what is not ours is left alone");
    }
}
