//! Roster files and the registry.

use super::*;
use crate::store::Store;
use crate::store::registry::{RegisteredProcess, Registration};
use std::fs;

fn read(text: &str) -> (Arc<Roster>, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.toml");
    fs::write(&file, text).unwrap();
    FileSource::new(file).read()
}

fn complaint(text: &str) -> String {
    let (roster, error) = read(text);
    assert!(roster.sessions.is_empty());
    error.unwrap()
}

#[test]
fn a_roster_file_declares_sessions_and_agents() {
    let (roster, error) = read(
        r#"
        [[session]]
        id = "shop"
        name = "Shop rewrite"
        root_path = "/srv/shop"
          [[session.agent]]
          name = "backend"
          specialization = "backend"
          pid = 4242
          start = 99
          [[session.agent]]
          name = "tests"
          match = "pytest .*shop"
          [[session.agent]]
          name = "docs"
          pid_file = "docs.pid"
        [[session]]
        id = "empty"
        "#,
    );
    assert_eq!(error, None);
    let [shop, empty] = roster.sessions.as_slice() else { panic!("{roster:?}") };
    assert_eq!((shop.id.as_str(), shop.name.as_deref()), ("shop", Some("Shop rewrite")));
    assert_eq!(shop.root_path.as_deref(), Some(std::path::Path::new("/srv/shop")));
    assert_eq!(empty.agents, []);
    let [backend, tests, docs] = shop.agents.as_slice() else { panic!("{shop:?}") };
    assert_eq!(backend.process, Locator::Pid { pid: 4242, start: Some(99), written: Written::default() });
    assert!(matches!(backend.process, Locator::Pid { written: Written { at_ms: Some(_), uid: None }, .. }));
    assert_eq!(backend.specialization.as_deref(), Some("backend"));
    assert_eq!(tests.process, Locator::Match(Regex::new("pytest .*shop").unwrap()));
    assert!(matches!(&docs.process, Locator::PidFile(file) if file.is_absolute() && file.ends_with("docs.pid")));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let agent = |keys: &str| format!("[[session]]\nid = \"shop\"\n[[session.agent]]\nname = \"a\"\n{keys}\n");
    let cases = [
        ("[[sessoin]]\nid = \"x\"\n".to_owned(), "team.toml:1", "session"),
        ("[[session]]\nid = \"-x\"\n".to_owned(), "team.toml:2", "session[0].id"),
        ("[[session]]\nid = \"a\"\n[[session]]\nid = \"a\"\n".to_owned(), "team.toml:4", "id"),
        (agent(""), "team.toml:3", "exactly one of pid, pid_file and match"),
        (agent("pid = 1\nmatch = \"x\""), "team.toml:3", "exactly one of"),
        (agent("match = \"(\""), "team.toml:5", "unclosed group"),
        (agent("match = \"x\"\nstart = 5"), "team.toml:6", "together with pid"),
        (agent("pid = 0"), "team.toml:5", "pid"),
        (agent("pid = \"7\""), "team.toml:5", "pid"),
        (agent("pid = 7\n[[session.agent]]\nname = \"a\"\npid = 8"), "team.toml:7", "name"),
        ("[[session]".to_owned(), "team.toml:1", "TOML"),
    ];
    for (text, place, what) in cases {
        let said = complaint(&text);
        assert!(said.contains(place) && said.contains(what), "{text}\n{said}");
    }
}

#[test]
fn a_roster_is_read_again_only_when_its_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.toml");
    let mut source = FileSource::new(file.clone());
    assert!(source.read().1.is_some(), "no file");
    fs::write(&file, "[[session]]\nid = \"a\"\n").unwrap();
    let first = source.read().0;
    assert!(Arc::ptr_eq(&first, &source.read().0));
    let other = folder.path().join("other");
    fs::write(&other, "[[session]]\nid = \"b\"\n").unwrap();
    fs::rename(&other, &file).unwrap();
    assert_eq!(source.read().0.sessions[0].id.as_str(), "b");
    assert!(FileSource::new(folder.path().to_owned()).read().1.is_some(), "a folder is no roster");
    fs::write(&file, vec![b'#'; (16 << 20) + 1]).unwrap();
    let (roster, error) = source.read();
    assert_eq!((roster.sessions.len(), error.as_deref()), (1, Some("is larger than 16 MiB")));
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_roster() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("team.toml");
    crate::files::make_pipe(&pipe);
    for special in [pipe, "/dev/zero".into()] {
        assert_eq!(FileSource::new(special).read(), (Arc::default(), Some("is not a regular file".to_owned())));
    }
}

#[test]
fn the_registry_is_a_roster() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::at(folder.path()));
    let mut source = RegistrySource::new(Arc::clone(&store));
    assert_eq!(source.read(), (Arc::default(), None));
    let registration = |name: &str, at: u64, process: Option<u32>| Registration {
        session_id: SessionId::parse("shop").unwrap(),
        session_name: Some("Shop".to_owned()),
        root_path: Some("/srv/shop".to_owned()),
        agent_name: AgentName::parse(name).unwrap(),
        specialization: None,
        process: process.map(|pid| RegisteredProcess {
            pid,
            start: 5,
            boot_id: "boot".to_owned(),
            pid_namespace: "pid:[1]".to_owned(),
        }),
        owner: "ada".to_owned(),
        registered_by: "test".to_owned(),
        registered_at_ms: at,
    };
    store.register(&registration("backend", 2000, Some(7))).unwrap();
    store.register(&registration("remote", 1000, None)).unwrap();
    let (roster, error) = source.read();
    assert_eq!(error, None);
    let [shop] = roster.sessions.as_slice() else { panic!("{roster:?}") };
    assert_eq!((shop.name.as_deref(), shop.declared_at_ms), (Some("Shop"), Some(1000)));
    assert_eq!(shop.owner.as_deref(), Some("ada"));
    let machine = Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() };
    let backend = shop.agents.iter().find(|agent| agent.name.as_str() == "backend").unwrap();
    assert_eq!(backend.process, Locator::Exactly { machine, id: ProcessId { pid: 7, start: 5 } });
    assert!(shop.agents.iter().any(|agent| agent.process == Locator::Elsewhere));
    assert!(Arc::ptr_eq(&roster, &source.read().0));
    fs::remove_file(store.path()).unwrap();
    fs::create_dir(store.path()).unwrap();
    let (kept, error) = source.read();
    assert!(Arc::ptr_eq(&roster, &kept) && error.unwrap().ends_with("headcount.db: is not a regular file"));
}
