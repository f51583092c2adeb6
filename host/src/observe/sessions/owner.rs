//! Whose processes these are.

use std::collections::HashMap;

/// Names of users. Each is asked for once: the answer may come from a directory service.
#[derive(Debug, Default)]
pub struct Owners(HashMap<u32, String>);

impl Owners {
    /// The user's name; the number where no name is known, "unknown" where the number is not.
    pub fn name(&mut self, uid: Option<u32>) -> String {
        let Some(uid) = uid else { return "unknown".to_owned() };
        self.0.entry(uid).or_insert_with(|| look_up(uid).unwrap_or_else(|| uid.to_string())).clone()
    }

    /// The user that this program runs as.
    pub fn me(&mut self) -> String {
        self.name(own_uid())
    }
}

/// Whether this machine knows a user of this name, or number; `None`: it cannot be told.
#[cfg(unix)]
pub fn is_user(name: &str) -> Option<bool> {
    // By its number is called whom nobody has given a name.
    if name.parse::<u32>().is_ok() {
        return Some(true);
    }
    nix::unistd::User::from_name(name).ok().map(|user| user.is_some())
}

/// Whether this machine knows a user of this name: not told on this system.
#[cfg(not(unix))]
pub fn is_user(_: &str) -> Option<bool> {
    None
}

#[cfg(unix)]
fn look_up(uid: u32) -> Option<String> {
    nix::unistd::User::from_uid(uid.into()).ok().flatten().map(|user| user.name)
}

#[cfg(unix)]
fn own_uid() -> Option<u32> {
    Some(nix::unistd::geteuid().as_raw())
}

#[cfg(not(unix))]
fn look_up(_: u32) -> Option<String> {
    None
}

#[cfg(not(unix))]
fn own_uid() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::Owners;

    #[test]
    fn a_user_without_a_name_is_shown_by_number() {
        let mut owners = Owners::default();
        assert_eq!(owners.name(Some(3_999_999_999)), "3999999999");
        assert_eq!(owners.name(None), "unknown");
        #[cfg(unix)]
        assert_eq!(owners.name(Some(0)), "root");
    }
}
