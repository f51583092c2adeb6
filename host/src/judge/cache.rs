//! Compiled policies on disk. wasmtime's cache runs what it finds there without a check of its own, and one flipped bit of
//! machine code is a crash or, worse, another verdict. So every file is sealed with its SHA-256 when it was made, and what
//! does not bear its seal is removed before wasmtime sees it, and compiled anew.

use crate::config::make_private;
use sha2::{Digest as _, Sha256};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wasmtime::{Cache, CacheConfig};

/// What the seals are kept in, beside wasmtime's own folders.
const SEALS: &str = "seals.json";

/// A folder of compiled policies.
#[derive(Debug, Clone)]
pub(super) struct SealedCache {
    folder: PathBuf,
}

/// What is known of a folder.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Seals {
    /// SHA-256 in hexadecimal by the file's path below the folder.
    files: BTreeMap<PathBuf, String>,
    /// Policies that have been compiled within the limits that compiling has, by their SHA-256 and the engine's.
    compiled: BTreeSet<String>,
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
        cache.remove_unsealed().map_err(|e| e.to_string())?;
        let mut config = CacheConfig::new();
        config.with_directory(&cache.folder);
        let opened = Cache::new(config).map_err(|e| format!("{e:#}"))?;
        Ok((cache, opened))
    }

    /// Where compiled policies lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether this policy is known to compile within the limits that compiling has.
    pub fn has_compiled(&self, policy: &str) -> bool {
        self.seals().compiled.contains(policy)
    }

    /// Seals what has been compiled since, and remembers that `policies` have been.
    ///
    /// # Errors
    /// When the folder cannot be read or written; what has no seal is compiled again at the next start.
    pub fn seal(&self, policies: &[String]) -> io::Result<()> {
        let mut seals = self.seals();
        let files = self.files()?;
        let known = files.iter().all(|file| seals.files.contains_key(file)) && seals.files.len() == files.len();
        if known && policies.iter().all(|policy| seals.compiled.contains(policy)) {
            return Ok(());
        }
        seals.files.retain(|file, _| files.contains(file));
        for file in files {
            let path = self.folder.join(&file);
            if let Entry::Vacant(unsealed) = seals.files.entry(file) {
                unsealed.insert(digest(&fs::read(path)?));
            }
        }
        seals.compiled.extend(policies.iter().cloned());
        let new = self.folder.join(format!("{SEALS}.{}", std::process::id()));
        fs::write(&new, serde_json::to_vec(&seals)?)?;
        fs::rename(&new, self.folder.join(SEALS))
    }

    fn remove_unsealed(&self) -> io::Result<()> {
        let seals = self.seals();
        for file in self.files()? {
            let path = self.folder.join(&file);
            let sound =
                seals.files.get(&file).is_some_and(|seal| fs::read(&path).is_ok_and(|bytes| digest(&bytes) == *seal));
            if !sound {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// What is sealed; nothing where the seals themselves cannot be read.
    fn seals(&self) -> Seals {
        let read = fs::read(self.folder.join(SEALS));
        read.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// All files in wasmtime's folders, by their path below ours. Its statistics of use are no code.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let path = entry.path();
                if entry.file_type()?.is_dir() {
                    folders.push(path);
                } else if folder != self.folder && path.extension().is_none_or(|e| e != "stats") {
                    files.extend(path.strip_prefix(&self.folder).map(Path::to_owned));
                }
            }
        }
        Ok(files)
    }
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
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
