//! A folder of the file bridge that somebody has filled: files with any names and any content.
//!
//! What comes between zero bytes is a file each: its name, a line feed, its content.

use headcount::bridge::fuzzing::serve;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// The most files of a folder.
const MOST_FILES: usize = 40;

/// Fills a folder and has it served. Nobody is called who was not asked for by a request, each request is answered, and no other
/// file is touched.
pub fn run(script: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    let mut others = Vec::new();
    let mut asked = Vec::new();
    for file in script.split(|&byte| byte == 0).take(MOST_FILES) {
        let end = file.iter().position(|&byte| byte == b'\n').unwrap_or(file.len());
        let (Ok(name), content) = (std::str::from_utf8(&file[..end]), file.get(end + 1..).unwrap_or_default()) else {
            continue;
        };
        let path = folder.path().join(name);
        // Names that are none, or lead elsewhere, nobody can give to a file of this folder.
        if name.is_empty() || name.contains('/') || path.exists() || fs::write(&path, content).is_err() {
            continue;
        }
        match id(name, "request-") {
            Some(id) => asked.push((id.to_owned(), tool(content))),
            None if id(name, "accepted-").is_none() && id(name, "response-").is_none() && !name.starts_with('.') => {
                others.push((path, content.to_owned()));
            }
            None => {}
        }
    }
    let called = serve(folder.path()).expect("the folder can be served");
    let mut may: Vec<&str> = asked.iter().filter_map(|(_, tool)| tool.as_deref()).collect();
    for tool in &called {
        let place = may.iter().position(|asked| asked == tool);
        may.remove(place.unwrap_or_else(|| panic!("nobody has asked for {tool:?}")));
    }
    for (id, _) in asked {
        let response = fs::read(folder.path().join(format!("response-{id}.json"))).expect("each request is answered");
        let response: Value = serde_json::from_slice(&response).expect("an answer is JSON");
        assert!(response["is_error"].is_boolean(), "{response}");
        assert!(!folder.path().join(format!("request-{id}.json")).exists(), "it is done with {id}");
    }
    for (path, content) in others {
        assert_eq!(fs::read(&path).ok(), Some(content), "{} is nobody's", path.display());
    }
}

/// What a name has between `kind` and its ending, where that was meant as an id.
fn id<'n>(name: &'n str, kind: &str) -> Option<&'n str> {
    let id = name.strip_prefix(kind)?.strip_suffix(".json")?;
    let is_one = (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_one.then_some(id)
}

/// The tool that a request asks for, as another reader sees it.
fn tool(content: &[u8]) -> Option<String> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let request: Value = serde_json::from_slice(content).ok()?;
    Some(request["tool"].as_str()?.to_owned())
}
