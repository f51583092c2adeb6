//! Compiled policies on disk. wasmtime's cache runs what it finds there without a check of its own, and one flipped bit of
//! machine code is a crash or, worse, another verdict. So every file is sealed with its SHA-256 when it was made, and what
//! does not bear its seal is removed before wasmtime sees it, and compiled anew.

use crate::config::make_private;
use crate::files::read_small;
use crate::text::hex;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wasmtime::{Cache, CacheConfig};

/// What the seals are kept in, beside wasmtime's own folder.
const SEALS: &str = "seals.json";
/// wasmtime's own folder.
const MODULES: &str = "modules";
/// Whoever changes seals or files holds it.
const LOCK: &str = "lock";
/// Largest file of seals.
const MAX_SEALS: u64 = 16 << 20;
/// How the folders begin in which another process compiles; whose they are follows.
const WORKSHOP: &str = "new-";

/// A folder of compiled policies.
#[derive(Debug, Clone)]
pub(super) struct SealedCache {
    folder: PathBuf,
}

/// What is known of a folder. Paths are below it.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Seals {
    /// SHA-256 in hexadecimal of each file.
    files: BTreeMap<PathBuf, String>,
    /// The files of each policy that another process has compiled.
    compiled: BTreeMap<String, BTreeSet<PathBuf>>,
    /// Why a policy could not be compiled within the limits that compiling has.
    refused: BTreeMap<String, String>,
}

impl SealedCache {
    /// Opens the folder, made where it is missing, and removes all that bears no seal or another.
    ///
    /// # Errors
    /// When it cannot be used, or others could write to it: what lies there would be run.
    pub fn open(folder: &Path) -> Result<(Self, Cache), String> {
        let folder = std::path::absolute(folder).map_err(|e| e.to_string())?;
        make_private(&folder).map_err(|e| e.to_string())?;
        only_ours(&folder)?;
        let cache = Self { folder };
        cache.clear().map_err(|e| e.to_string())?;
        let opened = opened(&cache.folder).map_err(|e| format!("{e:#}"))?;
        Ok((cache, opened))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether all that was compiled of this policy is there and as it was.
    pub fn has(&self, policy: &str) -> bool {
        let seals = self.seals();
        let is_sound = |file: &PathBuf| seals.files.get(file).is_some_and(|seal| self.bears(file, seal));
        seals.compiled.get(policy).is_some_and(|files| !files.is_empty() && files.iter().all(is_sound))
    }

    /// Why this policy could not be compiled when that was tried last.
    pub fn refusal(&self, policy: &str) -> Option<String> {
        self.seals().refused.remove(policy)
    }

    /// Remembers why a policy cannot be compiled.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn refuse(&self, policy: &str, why: &str) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut seals = self.seals();
        seals.refused.insert(policy.to_owned(), why.to_owned());
        self.write(&seals)
    }

    /// A folder in which another process can compile.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn workshop(&self) -> io::Result<TempDir> {
        folder_of_ours(&self.folder, WORKSHOP)
    }

    /// Takes in and seals what was compiled of a policy.
    ///
    /// # Errors
    /// When the folder cannot be read or written; what has no seal is compiled again.
    pub fn take_in(&self, policy: &str, workshop: &TempDir) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut seals = self.seals();
        let mut files = BTreeSet::new();
        for file in compiled_files(workshop.path())? {
            let (from, to) = (workshop.path().join(&file), self.folder.join(&file));
            seals.files.insert(file.clone(), digest(&fs::read(&from)?));
            fs::create_dir_all(to.parent().unwrap_or(&self.folder))?;
            fs::rename(from, to)?;
            files.insert(file);
        }
        seals.compiled.insert(policy.to_owned(), files);
        seals.refused.remove(policy);
        self.write(&seals)
    }

    /// Seals what this process has compiled since.
    ///
    /// # Errors
    /// As [`Self::take_in`].
    pub fn seal(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut seals = self.seals();
        let files = compiled_files(&self.folder)?;
        if files.iter().all(|file| seals.files.contains_key(file)) && seals.files.len() == files.len() {
            return Ok(());
        }
        seals.files.retain(|file, _| files.contains(file));
        for file in files {
            // wasmtime cleans up now and then.
            if !seals.files.contains_key(&file)
                && let Some(bytes) = there(fs::read(self.folder.join(&file)))?
            {
                seals.files.insert(file, digest(&bytes));
            }
        }
        let Seals { files, compiled, .. } = &mut seals;
        compiled.retain(|_, of| of.iter().all(|file| files.contains_key(file)));
        self.write(&seals)
    }

    /// Removes what bears no seal or another, and folders that nobody compiles in any more.
    fn clear(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        let seals = self.seals();
        for file in compiled_files(&self.folder)? {
            if !seals.files.get(&file).is_some_and(|seal| self.bears(&file, seal)) {
                there(fs::remove_file(self.folder.join(&file)))?;
            }
        }
        remove_abandoned(&self.folder, WORKSHOP);
        Ok(())
    }

    fn bears(&self, file: &Path, seal: &str) -> bool {
        fs::read(self.folder.join(file)).is_ok_and(|bytes| digest(&bytes) == *seal)
    }

    fn lock(&self) -> io::Result<File> {
        let lock = File::options().create(true).append(true).open(self.folder.join(LOCK))?;
        lock.lock()?;
        Ok(lock)
    }

    /// What is sealed; nothing where the seals themselves cannot be read.
    fn seals(&self) -> Seals {
        let read = read_small(&self.folder.join(SEALS), MAX_SEALS);
        read.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(&self, seals: &Seals) -> io::Result<()> {
        let new = self.folder.join(format!("{SEALS}.{}", std::process::id()));
        fs::write(&new, serde_json::to_vec(seals)?)?;
        fs::rename(&new, self.folder.join(SEALS))
    }
}

/// wasmtime's cache in a folder.
pub(super) fn opened(folder: &Path) -> wasmtime::Result<Cache> {
    let mut config = CacheConfig::new();
    config.with_directory(folder);
    Cache::new(config)
}

/// A folder in `folder` of which others see by its name whose it is.
pub(super) fn folder_of_ours(folder: &Path, prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(&format!("{prefix}{}-{}-", pid_namespace(), std::process::id())).tempdir_in(folder)
}

/// Removes those of the folders made by [`folder_of_ours`] whose process has ended. Only processes of the same pid namespace can be
/// told to have: containers may share the place.
pub(super) fn remove_abandoned(folder: &Path, prefix: &str) {
    let prefix = format!("{prefix}{}-", pid_namespace());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.split('-').next());
        if rest.and_then(|pid| pid.parse().ok()).is_some_and(has_ended) {
            // Somebody else may be faster, and another user's cannot be removed.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The number of this process's pid namespace; empty where there is none.
fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

#[cfg(unix)]
fn has_ended(pid: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH)
}

#[cfg(not(unix))]
fn has_ended(_: i32) -> bool {
    false
}

/// All files that wasmtime has made below a folder. Its statistics of use are no code, and what begins as a file that is being
/// written is none yet.
fn compiled_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join(MODULES)];
    while let Some(within) = folders.pop() {
        let Some(entries) = there(fs::read_dir(&within))? else { continue };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let Some(kind) = there(entry.file_type())? else { continue };
            let is_code = path.extension().is_none_or(|e| e != "stats" && !e.to_string_lossy().contains("wip"));
            if kind.is_dir() {
                folders.push(path);
            } else if is_code {
                files.extend(path.strip_prefix(folder).map(Path::to_owned));
            }
        }
    }
    Ok(files)
}

/// What is there; `None` where it has gone meanwhile, because other processes use the same folder.
fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Whoever can write to the folder can write seals too.
#[cfg(unix)]
fn only_ours(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(folder).map_err(|e| e.to_string())?;
    let me = nix::unistd::geteuid().as_raw();
    if found.uid() != me {
        return Err("it belongs to another user".into());
    }
    if found.mode() & 0o022 != 0 {
        return Err("others may write to it".into());
    }
    Ok(())
}

#[cfg(not(unix))]
fn only_ours(_: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_process_of_this_pid_namespace_has_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let ours = folder_of_ours(place.path(), WORKSHOP).unwrap();
        // No pid is as high as this one.
        let [left, theirs] =
            [pid_namespace(), "1".to_owned()].map(|of| place.path().join(format!("{WORKSHOP}{of}-2000000000-x")));
        for folder in [&left, &theirs] {
            fs::create_dir(folder).unwrap();
        }
        remove_abandoned(place.path(), WORKSHOP);
        assert_eq!((ours.path().exists(), left.exists(), theirs.exists()), (true, false, true));
    }
}
