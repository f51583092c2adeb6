//! Names that stay the same as long as the thing lives, made from what cannot change about it.

use super::processes::ProcessId;
use crate::names::short_hash;
use std::path::Path;

/// A session id holds at most so many characters.
const LONGEST: usize = 64;

/// How ids of sessions begin whose folder cannot be known.
const UNPLACED: &str = "unplaced-";

/// The id of a session that was found by itself: its folder's name, and six digits of its path's hash, because
/// folders of one name are common. Agents of several users in one folder are sessions of their own: those of `other` than
/// the user of this program have its name in the hash.
pub fn session_id(root: &Path, other: Option<&str>) -> String {
    let mut hashed = root.as_os_str().as_encoded_bytes().to_vec();
    if let Some(owner) = other {
        // No path holds a NUL.
        hashed.push(0);
        hashed.extend(owner.as_bytes());
    }
    format!("{}-{}", safe(&folder_name(root), LONGEST - 7), short_hash(&hashed))
}

/// Whether an id is like those of sessions that are found by themselves.
pub fn is_found(id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_hash = |end: &str| end.len() == 6 && end.bytes().all(is_digit);
    id.starts_with(UNPLACED) || id.rsplit_once('-').is_some_and(|(_, end)| is_hash(end))
}

/// `id`, or where that is somebody else's already, one that is made of it for `owner` and is free.
pub fn free(id: &str, owner: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut id = id.to_owned();
    while !is_free(&id) {
        let begin: String = id.chars().take(LONGEST - 7).collect();
        id = format!("{begin}-{}", short_hash(format!("{id} of {owner}").as_bytes()));
    }
    id
}

/// The id of the session of those agents of an owner whose folder cannot be known.
pub fn unplaced_id(owner: &str) -> String {
    safe(&format!("{UNPLACED}{owner}"), LONGEST)
}

/// The id of an agent that was found by itself. The digits of its start tell it from the next process with its pid.
pub fn agent_id(kind: &str, process: ProcessId) -> String {
    format!("{kind}-{}-{:04x}", process.pid, process.start & 0xffff)
}

/// The last part of a path, as people call a project.
pub fn folder_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// `text` in the alphabet of session ids, `[A-Za-z0-9][A-Za-z0-9._-]*`, at most `longest` characters of it.
fn safe(text: &str, longest: usize) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let spelled: String = text.chars().map(allowed).collect();
    let begun: String = spelled.trim_start_matches(['.', '_', '-']).chars().take(longest).collect();
    if begun.is_empty() { "root".to_owned() } else { begun }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_called_after_its_folder() {
        let id = session_id(Path::new("/srv/shop"), None);
        assert!(id.starts_with("shop-") && id.len() == "shop-".len() + 6, "{id}");
        assert_eq!(id, session_id(Path::new("/srv/shop"), None));
        assert_ne!(id, session_id(Path::new("/home/shop"), None));
    }

    #[test]
    fn an_id_that_is_somebody_elses_is_not_taken() {
        let folder = Path::new("/srv/shop");
        let ids = [None, Some("ada"), Some("bob")].map(|other| session_id(folder, other));
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
        assert!(ids.iter().all(|id| is_found(id)) && is_found(&unplaced_id("ada")));
        assert!(["shop", "shop-2", "shop-rewrite", "shop-ABCDEF"].iter().all(|id| !is_found(id)));
        assert_eq!(free("shop", "ada", |_| true), "shop");
        let first = free("shop", "ada", |id| id != "shop");
        let second = free("shop", "ada", |id| id != "shop" && id != first);
        assert!(first != second && first.starts_with("shop-") && second.starts_with("shop-"), "{first} {second}");
        assert_ne!(first, free("shop", "bob", |id| id != "shop"));
    }

    #[test]
    fn every_id_keeps_to_the_alphabet() {
        let alphabet = regex::Regex::new("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$").unwrap();
        let long = "x".repeat(300);
        for folder in
            ["/", "/srv/.hidden", "/srv/日本", "/srv/a b\u{1b}]0;x\u{7}", "/srv/\u{202e}gpj", &long, "/srv/--"]
        {
            let id = session_id(Path::new(folder), None);
            assert!(alphabet.is_match(&id), "{id}");
        }
        assert!(alphabet.is_match(&unplaced_id("DOMAIN\\user")));
        assert!(alphabet.is_match(&unplaced_id(&long)));
    }

    #[test]
    fn an_agent_with_a_used_pid_is_another_agent() {
        let first = agent_id("claude", ProcessId { pid: 7, start: 1 });
        assert_eq!(first, "claude-7-0001");
        assert_ne!(first, agent_id("claude", ProcessId { pid: 7, start: 2 }));
    }
}
