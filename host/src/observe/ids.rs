//! Names that stay the same as long as the thing lives, made from what cannot change about it.

use super::processes::ProcessId;
use crate::names::short_hash;
use std::path::Path;

/// A session id holds at most so many characters.
const LONGEST: usize = 64;

/// The id of a session that was found by itself: its folder's name, and six digits of its path's hash, because
/// folders of one name are common.
pub fn session_id(root: &Path) -> String {
    format!("{}-{}", safe(&folder_name(root), LONGEST - 7), short_hash(root.as_os_str().as_encoded_bytes()))
}

/// The id of what would be called so if that were not somebody else's already.
pub fn apart(id: &str, owner: &str) -> String {
    let begin: String = id.chars().take(LONGEST - 7).collect();
    format!("{begin}-{}", short_hash(format!("{id} of {owner}").as_bytes()))
}

/// The id of the session of those agents of an owner whose folder cannot be known.
pub fn unplaced_id(owner: &str) -> String {
    safe(&format!("unplaced-{owner}"), LONGEST)
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
        let id = session_id(Path::new("/srv/shop"));
        assert!(id.starts_with("shop-") && id.len() == "shop-".len() + 6, "{id}");
        assert_eq!(id, session_id(Path::new("/srv/shop")));
        assert_ne!(id, session_id(Path::new("/home/shop")));
    }

    #[test]
    fn every_id_keeps_to_the_alphabet() {
        let alphabet = regex::Regex::new("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$").unwrap();
        let long = "x".repeat(300);
        for folder in
            ["/", "/srv/.hidden", "/srv/日本", "/srv/a b\u{1b}]0;x\u{7}", "/srv/\u{202e}gpj", &long, "/srv/--"]
        {
            let id = session_id(Path::new(folder));
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
