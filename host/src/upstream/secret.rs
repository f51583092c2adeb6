//! Secrets that stand in no configuration: where they are, and how they are read.

use crate::config::Environment;
use crate::files::{is_open_to_all, read_small_text};
use std::path::PathBuf;

/// The longest file with a secret.
const FILE_MAX: u64 = 64 << 10;

/// Where a secret is read anew each time it is needed, so that one that was exchanged is taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In a variable of this process.
    Variable(String),
    /// In a file that holds nothing else.
    File(PathBuf),
}

impl SecretPlace {
    /// The place that two settings name, of which one at most is set.
    pub fn of(variable: Option<&String>, file: Option<&PathBuf>) -> Option<Self> {
        variable.cloned().map(Self::Variable).or_else(|| file.cloned().map(Self::File))
    }

    /// The secret, which is to be `what`, without white space around it. Why there is none never shows what was found.
    ///
    /// # Errors
    /// In words.
    pub fn read(&self, what: &str) -> Result<String, String> {
        let found = match self {
            Self::Variable(name) => match Environment::of_process().get(name).map(|value| value.to_str()) {
                Some(Some(value)) => value.to_owned(),
                Some(None) => return Err(format!("{what} in {name} is not text")),
                None => return Err(format!("{name}, which is to hold {what}, is not set")),
            },
            Self::File(file) if is_open_to_all(file) => {
                let file = file.display();
                return Err(format!("all users may read or write {file}, which holds {what}: chmod o= {file}"));
            }
            Self::File(file) => read_small_text(file, FILE_MAX)
                .map_err(|error| format!("{}, which is to hold {what}: {error}", file.display()))?,
        };
        match found.trim() {
            "" => Err(format!("what is to be {what} is empty")),
            found => Ok(found.to_owned()),
        }
    }
}

/// Whether a header can hold this as a token. Why not never shows it.
///
/// # Errors
/// In words that follow what it is.
pub fn check_token(token: &str) -> Result<(), &'static str> {
    match token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true if !token.is_empty() => Ok(()),
        true => Err("is empty"),
        false => Err("holds other than visible ASCII"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_that_all_may_read_or_that_holds_nothing_is_no_place() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        let place = SecretPlace::File(file.clone());
        let read = |mode, text: &str| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            place.read("the token")
        };
        assert!(place.read("the token").unwrap_err().contains("which is to hold the token: No such file"));
        assert_eq!(read(0o640, " s3cret\n").unwrap(), "s3cret");
        for mode in [0o644, 0o602] {
            let why = read(mode, "s3cret").unwrap_err();
            assert!(why.contains("chmod o= ") && !why.contains("s3cret"), "{why}");
        }
        assert_eq!(read(0o600, " \n").unwrap_err(), "what is to be the token is empty");
    }

    #[test]
    fn a_variable_that_is_not_set_is_told_by_name() {
        let place = SecretPlace::of(Some(&"HEADCOUNT_NO_SUCH_VARIABLE".into()), None).unwrap();
        let why = "HEADCOUNT_NO_SUCH_VARIABLE, which is to hold the header x-a, is not set";
        assert_eq!(place.read("the header x-a").unwrap_err(), why);
    }
}
