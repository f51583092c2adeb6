//! What becomes of requests, whatever is put into the folder and whenever the session ends.

use super::folder::{Content, Folder, Lasting, Unusable};
use super::mailbox::{Accepted, Mailbox};
use super::request::{Id, REQUEST_MAX, Request};
use super::response::{Category, Done, RESPONSE_MAX, Response};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

/// A folder of a session, beside a file that no session is to touch.
struct Scene {
    dir: TempDir,
    now: Duration,
}

impl Scene {
    fn new() -> (Self, Mailbox) {
        let scene = Self { dir: tempfile::tempdir().unwrap(), now: Duration::ZERO };
        fs::write(scene.dir.path().join("else"), r#"{"tool":"else"}"#).unwrap();
        let mailbox = Mailbox::new(Folder::make(&scene.path("")).unwrap().unwrap());
        (scene, mailbox)
    }

    /// What an ended session has left is gone on with.
    fn again(&self, certain: bool) -> Mailbox {
        let mut mailbox = Mailbox::new(Folder::open(&self.path("")).unwrap().unwrap());
        mailbox.resume(certain).unwrap();
        mailbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("session").join(name)
    }

    fn put(&self, name: &str, content: &str) {
        let new = self.path("writer.tmp");
        fs::write(&new, content).unwrap();
        // What is no file is not replaced by one.
        let _ = fs::rename(&new, self.path(name));
    }

    fn response(&self, id: &str) -> Option<Response> {
        let content = fs::read(self.path(&format!("response-{id}.json"))).ok()?;
        Some(serde_json::from_slice(&content).unwrap())
    }

    fn error(&self, id: &str) -> Option<Category> {
        self.response(id)?.error
    }

    /// The requests that are accepted until nothing is left that may yet become one.
    fn drain(&mut self, mailbox: &mut Mailbox) -> Vec<Accepted> {
        let mut all = Vec::new();
        loop {
            while let Some(accepted) = mailbox.next(self.now).unwrap() {
                all.push(accepted);
            }
            match mailbox.wake_at() {
                Some(at) => self.now = at,
                None => return all,
            }
        }
    }

    fn names(&self) -> BTreeSet<String> {
        fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn call(text: &str, tool: &str) -> Accepted {
    Accepted::Call(id(text), Request { tool: tool.to_owned(), arguments: None })
}

#[test]
fn requests_are_taken_in_order_of_arrival_and_answered_once() {
    let (mut scene, mut mailbox) = Scene::new();
    for (id, tool) in [("c", "first"), ("a", "second"), ("b", "close")] {
        scene.put(&format!("request-{id}.json"), &format!(r#"{{"tool":"{tool}"}}"#));
    }
    // They may all have come within one tick of the clock.
    mailbox.heard(["c", "a", "b"].map(id));
    let all = scene.drain(&mut mailbox);
    assert_eq!(all, [call("c", "first"), call("a", "second"), Accepted::Close(id("b"))]);
    assert_eq!(scene.names(), ["a", "b", "c"].map(|id| format!("accepted-{id}.json")).into());
    mailbox.answer(&id("c"), &Response::success()).unwrap();
    assert_eq!(scene.response("c"), Some(Response::success()));
    assert!(!scene.path("accepted-c.json").exists());
    let mode = |name: &str| fs::metadata(scene.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("response-c.json")), (0o700, 0o600));
}

#[test]
fn who_was_heard_of_comes_before_who_was_not_yet() {
    for _ in 0..20 {
        let (mut scene, mut mailbox) = Scene::new();
        // Within one tick of the system's clock, most of the times.
        for name in ["b", "a"] {
            scene.put(&format!("request-{name}.json"), r#"{"tool":"t"}"#);
        }
        mailbox.heard([id("b")]);
        assert_eq!(scene.drain(&mut mailbox), [call("b", "t"), call("a", "t")]);
    }
}

#[test]
fn a_folder_is_had_by_one_alone_and_by_no_other_user() {
    let (scene, mailbox) = Scene::new();
    let open = || Folder::open(&scene.path("")).unwrap();
    assert_eq!(Folder::make(&scene.path("")).unwrap().unwrap_err(), Unusable::Exists);
    assert_eq!(open().unwrap_err(), Unusable::InUse);
    drop(mailbox);
    assert!(open().is_ok());
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(open().unwrap_err(), Unusable::Shared);
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o700)).unwrap();
    let link = scene.dir.path().join("link");
    symlink(scene.path(""), &link).unwrap();
    for path in [link.join(""), link, scene.dir.path().join("else")] {
        assert_eq!(Folder::open(&path).unwrap().unwrap_err(), Unusable::NoFolder, "{}", path.display());
    }
}

#[test]
fn a_folder_that_is_lost_is_told_from_one_that_is_there() {
    let (scene, mailbox) = Scene::new();
    let check = || mailbox.folder().check().unwrap();
    assert_eq!(check(), Ok(()));
    let aside = scene.dir.path().join("aside");
    fs::rename(scene.path(""), &aside).unwrap();
    assert_eq!(check(), Err(Unusable::Removed));
    fs::create_dir(scene.path("")).unwrap();
    assert_eq!(check(), Err(Unusable::Replaced));
    fs::remove_dir(scene.path("")).unwrap();
    fs::rename(&aside, scene.path("")).unwrap();
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o701)).unwrap();
    assert_eq!(check(), Err(Unusable::Shared));
    fs::remove_dir_all(scene.path("")).unwrap();
    assert_eq!(check(), Err(Unusable::Removed));
}

#[test]
fn what_is_no_request_is_refused_and_nothing_else_happens() {
    let (mut scene, mut mailbox) = Scene::new();
    let elsewhere = scene.dir.path().join("else");
    let path = |id: &str| scene.path(&format!("request-{id}.json"));
    scene.put("request-01.json", r#"{"tool":"a""#);
    scene.put("request-02.json", &format!(r#"{{"tool":"a","x":"{}"}}"#, "x".repeat(REQUEST_MAX as usize)));
    symlink(&elsewhere, path("03")).unwrap();
    symlink("/dev/zero", path("04")).unwrap();
    symlink("nowhere", path("05")).unwrap();
    crate::files::make_pipe(&path("06"));
    fs::create_dir(path("07")).unwrap();
    fs::create_dir_all(path("08").join("full")).unwrap();
    fs::hard_link(&elsewhere, path("09")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(path("0a")).unwrap();
    scene.put("request-0B.json", r#"{"tool":"a"}"#);
    scene.put(&format!("request-{}.json", "0".repeat(65)), r#"{"tool":"a"}"#);
    fs::write(path("0c"), r#"{"tool":"a"}"#).unwrap();
    fs::set_permissions(path("0c"), fs::Permissions::from_mode(0o000)).unwrap();
    let others = ["request-g.json", "request-0d.json.tmp", "request-0e.txt"];
    others.iter().for_each(|name| scene.put(name, r#"{"tool":"a"}"#));
    // Whoever may read everything may read that one too.
    let readable = fs::read(path("0c")).is_ok();
    assert_eq!(scene.drain(&mut mailbox).len(), usize::from(readable));
    let refused = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "0a", "0B", &"0".repeat(65)];
    for refused in refused {
        let wanted = Response::error(Category::INVALID_REQUEST, Done::No);
        assert_eq!(scene.response(refused), Some(wanted), "{refused}");
    }
    let left: BTreeSet<String> = scene.names().into_iter().filter(|name| name.starts_with("request")).collect();
    // A folder that holds something is not removed; it is answered once all the same.
    assert_eq!(left, others.map(str::to_owned).into_iter().chain(["request-08.json".to_owned()]).collect());
    assert_eq!(scene.drain(&mut mailbox), []);
    assert_eq!(scene.error("08"), Some(Category::INVALID_REQUEST));
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), r#"{"tool":"else"}"#);
    drop(socket);
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let (mut scene, mut mailbox) = Scene::new();
    let whole = r#"{"tool":"a"}"#;
    for written in 0..whole.len() {
        fs::write(scene.path("request-a.json"), &whole[..written]).unwrap();
        assert_eq!(mailbox.next(scene.now).unwrap(), None);
        scene.now += Duration::from_millis(300);
    }
    fs::write(scene.path("request-a.json"), whole).unwrap();
    assert_eq!(mailbox.next(scene.now).unwrap(), Some(call("a", "a")));
    // One that links and unlinks, so as to replace nothing.
    fs::write(scene.path("tmp"), whole).unwrap();
    fs::hard_link(scene.path("tmp"), scene.path("request-b.json")).unwrap();
    assert_eq!(mailbox.next(scene.now).unwrap(), None);
    fs::remove_file(scene.path("tmp")).unwrap();
    assert_eq!(mailbox.next(scene.now).unwrap(), Some(call("b", "a")));
    // One that never comes to an end.
    let begun = scene.now;
    while scene.error("c").is_none() {
        fs::write(scene.path("request-c.json"), "x".repeat(scene.now.as_millis() as usize)).unwrap();
        assert_eq!(mailbox.next(scene.now).unwrap(), None);
        scene.now += Duration::from_millis(300);
        assert!(scene.now - begun < Duration::from_secs(10));
    }
    assert_eq!(scene.error("c"), Some(Category::INVALID_REQUEST));
}

#[test]
fn what_was_accepted_is_never_run_again_wherever_the_session_was_cut_off() {
    let request = r#"{"tool":"a"}"#;
    let unknown = Response::error(Category::UNKNOWN_OUTCOME, Done::Unknown);
    let answer = Response { result: json!(1), ..Response::success() };
    for (step, wanted) in [("marked", &unknown), ("called", &unknown), ("answered", &answer), ("done", &answer)] {
        let (mut scene, mut mailbox) = Scene::new();
        scene.put("request-a.json", request);
        fs::hard_link(scene.path("request-a.json"), scene.dir.path().join("kept")).unwrap();
        // As long as it has two names it is none; this one is for telling its inode later.
        fs::remove_file(scene.dir.path().join("kept")).unwrap();
        let file = fs::File::open(scene.path("request-a.json")).unwrap();
        assert_eq!(mailbox.next(scene.now).unwrap(), Some(call("a", "a")));
        match step {
            "marked" => {
                // The request is back as if it had not been removed yet.
                drop(file);
                let mark: Value = serde_json::from_slice(&fs::read(scene.path("accepted-a.json")).unwrap()).unwrap();
                scene.put("request-a.json", request);
                let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(scene.path("request-a.json")).unwrap());
                let mark = mark.to_string().replace(&mark["accepted"].to_string(), &inode.to_string());
                scene.put("accepted-a.json", &mark);
            }
            "answered" => scene.put("accepted-a.json", &String::from_utf8(answer.to_bytes()).unwrap()),
            "done" => mailbox.answer(&id("a"), &answer).unwrap(),
            _ => {}
        }
        scene.put("request-b.json", request);
        drop(mailbox);
        let mut mailbox = scene.again(true);
        assert_eq!(scene.response("a").as_ref(), Some(wanted), "{step}");
        assert_eq!(scene.drain(&mut mailbox), [call("b", "a")], "{step}: what was never accepted is run");
        assert_eq!(scene.response("a").as_ref(), Some(wanted), "{step}");
    }
}

#[test]
fn where_marks_may_be_lost_nothing_is_run_that_was_asked_before() {
    let (mut scene, mailbox) = Scene::new();
    scene.put("request-a.json", r#"{"tool":"a"}"#);
    scene.put("request-b.json", r#"{"tool":"a"}"#);
    scene.put("response-b.json", r#"{"is_error":false,"result":1}"#);
    drop(mailbox);
    let mut mailbox = scene.again(false);
    assert_eq!(scene.drain(&mut mailbox), []);
    assert_eq!(scene.error("a"), Some(Category::UNKNOWN_OUTCOME));
    assert_eq!(scene.response("b").unwrap().result, 1, "it was answered, and only the request not yet removed");
}

#[test]
fn responses_that_nobody_fetches_are_forgotten_and_nothing_else_is() {
    let (scene, mut mailbox) = Scene::new();
    for name in ["response-a.json", "request-a.json", "response-g.json", "status.json"] {
        scene.put(name, "{}");
    }
    let written = |mailbox: &Mailbox| mailbox.folder().stamp("response-a.json").unwrap().unwrap().modified_ms();
    let at = written(&mailbox);
    mailbox.forget(at).unwrap();
    assert!(scene.path("response-a.json").exists());
    mailbox.forget(at + 1).unwrap();
    assert_eq!(scene.names(), ["request-a.json", "response-g.json", "status.json"].map(str::to_owned).into());
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else() {
    let (scene, mut mailbox) = Scene::new();
    fs::create_dir_all(scene.path("response-0.json/full")).unwrap();
    for id in ["a", "b"] {
        scene.put(&format!("response-{id}.json"), "{}");
    }
    assert!(mailbox.forget(u64::MAX).is_err());
    assert_eq!(scene.names(), ["response-0.json".to_owned()].into());
}

#[test]
fn a_second_request_costs_no_answer_that_is_there() {
    let (mut scene, mut mailbox) = Scene::new();
    let first = json!({"is_error": false, "result": "x".repeat(RESPONSE_MAX - 40)}).to_string();
    assert!(first.len() < RESPONSE_MAX);
    scene.put("response-a.json", &first);
    scene.put("request-a.json", r#"{"tool":"t","arguments":{}}"#);
    assert_eq!(scene.drain(&mut mailbox), []);
    assert_eq!(fs::read_to_string(scene.path("response-a.json")).unwrap(), first);
    assert_eq!(scene.names(), ["response-a.json".to_owned()].into());
}

#[test]
fn folders_that_cannot_be_removed_stop_no_writing() {
    let (scene, mailbox) = Scene::new();
    for name in [".headcount-new", "response-a.json"] {
        for again in [false, true] {
            fs::create_dir_all(scene.path(name).join("full")).unwrap();
            mailbox.folder().write("response-a.json", b"{}", Lasting::Cached).unwrap();
            assert!(scene.path("response-a.json").is_file(), "{name} {again}");
            fs::remove_file(scene.path("response-a.json")).unwrap();
        }
    }
}

#[test]
fn what_stands_in_the_way_of_a_file_is_put_aside() {
    let (scene, mailbox) = Scene::new();
    fs::create_dir_all(scene.path("status.json").join("full")).unwrap();
    mailbox.folder().write("status.json", b"{}", Lasting::Synced).unwrap();
    assert!(matches!(mailbox.folder().read("status.json", 10).unwrap(), Content::File(content, _) if content == b"{}"));
    let outside = scene.dir.path().join("else");
    symlink(&outside, scene.path("response-a.json")).unwrap();
    symlink(&outside, scene.path(".headcount-new")).unwrap();
    mailbox.folder().write("response-a.json", b"{}", Lasting::Cached).unwrap();
    assert!(fs::symlink_metadata(scene.path("response-a.json")).unwrap().is_file());
    assert_eq!(fs::read_to_string(outside).unwrap(), r#"{"tool":"else"}"#);
}

/// What happens in the folder, or to the session.
#[derive(Debug, Clone)]
enum Step {
    Put(usize, Shape),
    Take { answer: bool },
    Fetch(usize),
    Pass(u64),
    Crash { certain: bool },
}

#[derive(Debug, Clone)]
enum Shape {
    Good,
    InPlace,
    Half,
    Bytes(Vec<u8>),
    Link,
    Pipe,
    Folder,
    HardLink,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let shape = prop_oneof![
        6 => Just(Shape::Good),
        2 => Just(Shape::InPlace),
        1 => Just(Shape::Half),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Shape::Bytes),
        1 => prop_oneof![Just(Shape::Link), Just(Shape::Pipe), Just(Shape::Folder), Just(Shape::HardLink)],
    ];
    let step = prop_oneof![
        4 => (0..4_usize, shape).prop_map(|(id, shape)| Step::Put(id, shape)),
        5 => any::<bool>().prop_map(|answer| Step::Take { answer }),
        2 => (0..4_usize).prop_map(Step::Fetch),
        1 => (1..700_u64).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(|certain| Step::Crash { certain }),
    ];
    proptest::collection::vec(step, 1..60)
}

const IDS: [&str; 4] = ["a", "b-1", "0", "ffff"];

/// What has happened.
#[derive(Default)]
struct Told {
    puts: u64,
    run: BTreeSet<u64>,
    /// Those of which the answer is still owed.
    open: BTreeMap<Id, u64>,
}

impl Told {
    fn took(&mut self, accepted: &Accepted) -> Id {
        let Accepted::Call(id, request) = accepted else { panic!("nobody has asked for an end") };
        let n = request.arguments.as_ref().and_then(|arguments| arguments["n"].as_u64()).expect("it was put so");
        assert!(self.run.insert(n), "{n} is run twice");
        self.open.insert(id.clone(), n);
        id.clone()
    }
}

fn put(scene: &Scene, told: &mut Told, id: usize, shape: &Shape) {
    let name = format!("request-{}.json", IDS[id]);
    told.puts += 1;
    let good = json!({"tool": "a", "arguments": {"n": told.puts}}).to_string();
    let path = scene.path(&name);
    let elsewhere = scene.dir.path().join("else");
    match shape {
        Shape::Good => scene.put(&name, &good),
        // There may be a folder.
        Shape::InPlace if !is_special(&path) => fs::write(path, good).unwrap(),
        Shape::Half => scene.put(&name, &good[..good.len() / 2]),
        Shape::Bytes(bytes) if Request::parse(bytes).is_none() && !is_special(&path) => fs::write(path, bytes).unwrap(),
        Shape::Link => drop(symlink(elsewhere, path)),
        Shape::Pipe if fs::symlink_metadata(&path).is_err() => crate::files::make_pipe(&path),
        Shape::Folder => drop(fs::create_dir(path)),
        Shape::HardLink => drop(fs::hard_link(elsewhere, path)),
        _ => {}
    }
}

/// Whether writing to it would go elsewhere, or never end.
fn is_special(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() || found.nlink() > 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_run_twice_and_everything_is_answered(steps in steps()) {
        let (mut scene, mut mailbox) = Scene::new();
        let mut told = Told::default();
        let answer = Response { result: json!("done"), ..Response::success() };
        for step in &steps {
            match step {
                Step::Put(id, shape) => put(&scene, &mut told, *id, shape),
                Step::Take { answer: answers } => {
                    // The one that is being called comes to its end before the next is taken.
                    if let Some((id, _)) = told.open.pop_first() {
                        mailbox.answer(&id, &answer).unwrap();
                    }
                    if let Some(accepted) = mailbox.next(scene.now).unwrap() {
                        let id = told.took(&accepted);
                        if *answers {
                            mailbox.answer(&id, &answer).unwrap();
                            told.open.remove(&id);
                        }
                    }
                }
                Step::Fetch(id) => drop(fs::remove_file(scene.path(&format!("response-{}.json", IDS[*id])))),
                Step::Pass(ms) => scene.now += Duration::from_millis(*ms),
                Step::Crash { certain } => {
                    drop(mailbox);
                    mailbox = scene.again(*certain);
                    for id in std::mem::take(&mut told.open).into_keys() {
                        let found = fs::read(scene.path(&id.response())).unwrap();
                        let found: Response = serde_json::from_slice(&found).unwrap();
                        prop_assert_eq!(found.error, Some(Category::UNKNOWN_OUTCOME));
                    }
                }
            }
        }
        for id in std::mem::take(&mut told.open).into_keys() {
            mailbox.answer(&id, &answer).unwrap();
        }
        for accepted in scene.drain(&mut mailbox) {
            let id = told.took(&accepted);
            mailbox.answer(&id, &answer).unwrap();
        }
        let names = scene.names();
        let is_response = |name: &String| name.starts_with("response-");
        prop_assert!(names.iter().filter(|name| *name != "writer.tmp").all(is_response), "{:?}", names);
        for name in names.iter().filter(|name| is_response(name)) {
            let response: Result<Response, _> = serde_json::from_slice(&fs::read(scene.path(name)).unwrap());
            prop_assert!(response.is_ok(), "{} is whole", name);
        }
        prop_assert_eq!(fs::read_to_string(scene.dir.path().join("else")).unwrap(), r#"{"tool":"else"}"#);
    }
}
