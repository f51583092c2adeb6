//! What is made of the files of an agent, in a home of its own.

use super::*;
use crate::observe::facts::{Claim, Evidence, Source, Usage};
use crate::observe::processes::Program;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

mod answers;
mod cost;

/// When all agents start, Unix milliseconds.
const START: u64 = 1_700_000_000_000;

const PROMPT: &str = r#""type":"user","message":{"content":"secret plan"}"#;
const CALL: &str = r#""type":"assistant","message":{"id":"m1","model":"opus","stop_reason":"tool_use",
    "usage":{"input_tokens":9,"output_tokens":3,"cache_read_input_tokens":70,"cache_creation_input_tokens":5},
    "content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat secret"}}]}"#;
const END: &str = r#""type":"assistant","message":{"id":"m2","model":"opus","stop_reason":"end_turn","content":[],
    "usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":80,"cache_creation_input_tokens":0}}"#;

/// A home with agents in it.
struct Scene {
    dir: tempfile::TempDir,
    claude: Claude,
    now: Moment,
    agents: Vec<Subject>,
}

impl Scene {
    fn new() -> Self {
        let now = Moment { unix_ms: START + 1_000_000, steady: Duration::from_secs(1000) };
        Self { dir: tempfile::tempdir().unwrap(), claude: Claude::default(), now, agents: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(".claude").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Adds lines to a transcript, each a second after the one before, the first so many seconds after the start.
    fn tell(&self, transcript: &str, from: u64, lines: &[&str]) {
        let path = self.path(transcript);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        for (second, line) in (from..).zip(lines) {
            let at = jiff::Timestamp::from_millisecond(i64::try_from(START + second * 1000).unwrap()).unwrap();
            writeln!(file, r#"{{"timestamp":"{at}",{}}}"#, line.replace('\n', "")).unwrap();
        }
    }

    /// An agent without any record; its start token is ten times its pid.
    fn agent(&mut self, pid: u32) {
        let program = Program {
            exe: Err("not asked for".to_owned()),
            argv: Ok(vec!["claude".to_owned()]),
            cwd: Ok(PathBuf::from("/w/app")),
            env: Ok(vec![("HOME".to_owned(), self.dir.path().to_str().unwrap().to_owned())]),
            uid: Some(0),
        };
        let id = ProcessId { pid, start: u64::from(pid) * 10 };
        self.agents.push(Subject {
            kind: "claude".into(),
            processes: vec![(id, Arc::new(program))],
            started_at_ms: START,
            conversation: None,
            open: Vec::new(),
            children: vec![],
            calls: vec![],
        });
    }

    /// What the session file of an agent says beside the usual.
    fn session(&self, pid: u32, more: &Value) {
        let mut record = json!({"pid": pid, "procStart": (pid * 10).to_string(), "sessionId": format!("s-{pid}"),
            "cwd": "/w/app", "kind": "interactive", "statusUpdatedAt": START + 5_000, "updatedAt": START + 5_000});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.write(&format!("sessions/{pid}.json"), record.to_string());
    }

    fn all(&mut self) -> Vec<Testimony> {
        let subjects: Vec<&Subject> = self.agents.iter().collect();
        self.claude.read(&subjects, self.now)
    }

    /// What is said of the only agent.
    fn look(&mut self) -> Testimony {
        self.all().pop().unwrap()
    }

    fn look_after(&mut self, seconds: u64) -> Testimony {
        self.now.steady += Duration::from_secs(seconds);
        self.now.unix_ms += seconds * 1000;
        self.look()
    }
}

/// The scene of one agent that has the pid 7.
fn one() -> Scene {
    let mut scene = Scene::new();
    scene.agent(7);
    scene
}

const TRANSCRIPT: &str = "projects/-w-app/s-7.jsonl";

fn claims(said: &Testimony) -> Vec<(Source, Claim, u64)> {
    let date = |evidence: &Evidence| evidence.at_ms.saturating_sub(START) / 1000;
    said.evidence.iter().map(|evidence| (evidence.source, evidence.claim, date(evidence))).collect()
}

fn gaps(said: &Testimony) -> Vec<(&str, &str)> {
    said.unmeasured.iter().map(|gap| (gap.field.as_ref(), gap.reason.as_str())).collect()
}

/// All but that the size of the model's context is not known.
fn other_gaps(said: &Testimony) -> Vec<(&str, &str)> {
    gaps(said).into_iter().filter(|(field, _)| *field != "context-used-percent").collect()
}

fn both(reason: &str) -> Vec<(&str, &str)> {
    vec![("evidence", reason), ("usage", reason)]
}

#[test]
fn an_agent_says_what_it_does_and_what_it_has_cost() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy"}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT, CALL]);
    let said = scene.look();
    let (own, transcript) = (Source::OwnRecord, Source::Transcript);
    let working = Claim::Working;
    assert_eq!(claims(&said), [(own, working, 5), (transcript, working, 5), (transcript, working, 6)]);
    let usage = Usage {
        model: Some("opus".to_owned()),
        input_tokens: Some(9),
        output_tokens: Some(3),
        cache_read_tokens: Some(70),
        cache_write_tokens: Some(5),
        current_tool: Some("Bash".to_owned()),
        subagents: Some(0),
        ..Usage::default()
    };
    let size = "how large its model's context is, is not recorded";
    assert_eq!((said.usage.as_ref(), gaps(&said)), (Some(&usage), vec![("context-used-percent", size)]));
    assert!(!format!("{said:?}").contains("secret"));
    scene.tell(TRANSCRIPT, 8, &[END]);
    let said = scene.look();
    assert_eq!(claims(&said).last(), Some(&(transcript, Claim::Idle, 8)));
    let usage = said.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.cache_read_tokens, usage.current_tool), (Some(10), Some(150), None));
}

#[test]
fn a_record_of_another_process_with_the_same_pid_claims_nothing() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy", "procStart": "71"}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT]);
    let said = scene.look();
    assert_eq!((said.evidence.len(), said.usage.is_none()), (0, true));
    assert_eq!(gaps(&said), both("its record belongs to another process"));
}

#[test]
fn an_agent_without_a_record_says_so() {
    let mut scene = one();
    assert_eq!(gaps(&scene.look()), both("it keeps no record of its process"));
    scene.write("sessions/7.json", "{");
    assert_eq!(gaps(&scene.look()), both("the record of its process: is not understood (line 1)"));
    scene.session(7, &json!({"entrypoint": "sdk-ts"}));
    let reasons =
        [("evidence", "the record of its process has no status"), ("usage", "there is no transcript of it yet")];
    assert_eq!(gaps(&scene.look()), reasons);
}

#[test]
fn an_environment_that_may_not_be_read_leaves_a_gap() {
    let mut scene = one();
    let change = |scene: &mut Scene, env: Result<Vec<(String, String)>, String>| {
        let (_, program) = &mut scene.agents[0].processes[0];
        *program = Arc::new(Program { env, ..Program::clone(program) });
    };
    change(&mut scene, Err("Permission denied".to_owned()));
    assert_eq!(gaps(&scene.look()), both("where it keeps its records is not known: Permission denied"));
    change(&mut scene, Ok(vec![]));
    assert_eq!(gaps(&scene.look()), both("where it keeps its records is not known: it has no home"));
    let elsewhere = scene.path("");
    change(&mut scene, Ok(vec![("CLAUDE_CONFIG_DIR".to_owned(), elsewhere.to_str().unwrap().to_owned())]));
    scene.session(7, &json!({"status": "idle"}));
    assert_eq!(claims(&scene.look()), [(Source::OwnRecord, Claim::Idle, 5)]);
}

#[test]
fn a_background_job_that_asks_is_waiting_since_it_asked() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy", "kind": "bg", "jobId": "a1b2"}));
    let missing = [("evidence", "the record of its background job: no such file")];
    assert!(gaps(&scene.look()).starts_with(&missing));
    let job = |updated: &str, tempo: &str| {
        json!({"state": "working", "tempo": tempo, "needs": "secret?", "sessionId": "s-7", "updatedAt": updated})
            .to_string()
    };
    scene.write("jobs/a1b2/state.json", job("2023-11-14T22:13:50Z", "blocked"));
    let said = scene.look();
    assert_eq!(claims(&said), [(Source::OwnRecord, Claim::Waiting, 30)]);
    assert!(!format!("{said:?}").contains("secret"));
    scene.write("jobs/a1b2/state.json", job("2023-11-14T22:14:19.5Z", "blocked"));
    assert_eq!(claims(&scene.look()), [(Source::OwnRecord, Claim::Waiting, 30)], "nothing new was asked");
    scene.write("jobs/a1b2/state.json", job("2023-11-14T22:14:30Z", "active"));
    assert_eq!(claims(&scene.look()), [(Source::OwnRecord, Claim::Working, 5)]);
    scene.write("jobs/a1b2/state.json", job("2023-11-14T22:14:40Z", "blocked").replace("s-7", "other"));
    let said = scene.look();
    assert_eq!(claims(&said), [(Source::OwnRecord, Claim::Working, 5)]);
    assert_eq!(gaps(&said)[0], ("evidence", "the record of its background job is of another conversation"));
}

#[test]
fn a_parked_turn_leaves_its_agent_idle_until_it_has_another_one() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy", "parkedJobId": "a1b2", "updatedAt": START + 60_000}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT, CALL]);
    let said = scene.look();
    assert_eq!(claims(&said)[0], (Source::OwnRecord, Claim::Idle, 60));
    assert_eq!(said.evidence[0].detail.as_deref(), Some("its turn was parked in the background"));
    scene.tell(TRANSCRIPT, 100, &[PROMPT]);
    let working = (Source::Transcript, Claim::Working, 100);
    assert_eq!(claims(&scene.look()), [working]);
}

#[test]
fn two_in_one_folder_have_each_their_own_conversation_also_after_clear() {
    let mut scene = one();
    scene.agent(8);
    scene.session(7, &json!({"status": "idle", "sessionId": "old"}));
    scene.session(8, &json!({"status": "idle"}));
    scene.tell("projects/-w-app/old.jsonl", 1, &[PROMPT, CALL]);
    scene.tell("projects/-w-app/s-8.jsonl", 1, &[PROMPT, CALL, END]);
    // A copy elsewhere with the same id, and a subagent that wrote last.
    scene.tell("projects/-w-other/s-8.jsonl", 9, &[PROMPT]);
    let aside = |line: &str| format!(r#""isSidechain":true,{line}"#);
    let [prompt, call, end] = [PROMPT, CALL, END].map(aside);
    scene.tell("projects/-w-app/s-8/subagents/agent-1.jsonl", 9, &[&prompt, &call]);
    scene.tell("projects/-w-app/s-8/subagents/agent-2.jsonl", 9, &[&prompt, &end]);
    let inputs = |said: &[Testimony]| -> Vec<_> {
        said.iter().map(|said| said.usage.as_ref().and_then(|usage| usage.input_tokens)).collect()
    };
    let said = scene.all();
    assert_eq!(inputs(&said), [Some(9), Some(10)]);
    let subagents: Vec<_> = said.iter().map(|said| said.usage.as_ref().unwrap().subagents).collect();
    assert_eq!(subagents, [Some(0), Some(1)]);
    scene.session(7, &json!({"status": "idle", "sessionId": "new"}));
    let said = scene.all();
    assert_eq!(inputs(&said), [None, Some(10)], "a conversation that was cleared is another agent's no more");
    assert_eq!(gaps(&said[0]), [("usage", "there is no transcript of it yet")]);
}

#[test]
fn a_conversation_that_two_processes_are_in_is_shown_of_neither() {
    let mut scene = one();
    scene.agent(8);
    scene.session(7, &json!({"status": "busy"}));
    scene.session(8, &json!({"sessionId": "s-7"}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT, CALL]);
    let said = scene.all();
    assert_eq!(claims(&said[0]), [(Source::OwnRecord, Claim::Working, 5)], "its own record is its own");
    assert_eq!(gaps(&said[0]), [("usage", "its conversation is that of process 8 too")]);
    let no_status = ("evidence", "the record of its process has no status");
    let shared = "its conversation is that of process 7 too";
    assert_eq!((claims(&said[1]), gaps(&said[1])), (vec![], vec![no_status, ("evidence", shared), ("usage", shared)]));
    assert!(said.iter().all(|said| said.usage.is_none()));
    scene.session(8, &json!({"sessionId": "s-8"}));
    let said = scene.all();
    assert_eq!(said[0].usage.as_ref().unwrap().input_tokens, Some(9), "alone it is its own again");
}

#[test]
fn a_conversation_is_one_in_whatever_folder_its_transcript_is() {
    let mut scene = one();
    scene.agent(8);
    scene.session(7, &json!({"status": "busy"}));
    scene.session(8, &json!({"status": "busy", "sessionId": "s-7", "cwd": "/w/other"}));
    for transcript in [TRANSCRIPT, "projects/-w-other/s-7.jsonl"] {
        scene.tell(transcript, 5, &[PROMPT, CALL]);
    }
    let said = scene.all();
    assert!(said.iter().all(|said| said.usage.is_none()), "{said:?}");
    assert_eq!(gaps(&said[0]), [("usage", "its conversation is that of process 8 too")]);
}

#[test]
fn what_a_transcript_had_before_it_was_replaced_is_not_counted() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy"}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT, CALL]);
    scene.tell("projects/-w-app/s-7/subagents/agent-a.jsonl", 6, &[PROMPT, &CALL.replace("m1", "m3")]);
    assert_eq!(scene.look().usage.unwrap().input_tokens, Some(18));
    fs::remove_file(scene.path(TRANSCRIPT)).unwrap();
    scene.tell(TRANSCRIPT, 7, &[PROMPT, END]);
    let input = |said: Testimony| said.usage.unwrap().input_tokens;
    let replaced = input(scene.look_after(20));
    scene.claude = Claude::default();
    assert_eq!((replaced, input(scene.look())), (Some(10), Some(10)), "as by who looks for the first time");
}

#[test]
fn a_transcript_that_moved_is_found_by_its_id_if_there_is_one_only() {
    let mut scene = one();
    scene.session(7, &json!({"status": "idle", "cwd": "/w/app/some_where"}));
    scene.tell("projects/-w-app-some-wher-1x2y/s-7.jsonl", 1, &[PROMPT, END]);
    scene.look();
    assert_eq!(scene.look().usage.unwrap().input_tokens, Some(1));
    scene.session(7, &json!({"status": "idle", "sessionId": "long", "cwd": format!("/w/{}", "x".repeat(300))}));
    scene.tell("projects/-w-xxx-1x2y/long.jsonl", 1, &[PROMPT, CALL]);
    scene.look();
    assert_eq!(scene.look().usage.unwrap().input_tokens, Some(9), "a name that no file can have");
    let mut scene = one();
    scene.session(7, &json!({"status": "idle"}));
    for project in ["projects/a/s-7.jsonl", "projects/b/s-7.jsonl"] {
        scene.tell(project, 1, &[PROMPT, END]);
    }
    scene.look();
    let said = scene.look();
    assert_eq!((said.usage.as_ref(), gaps(&said)), (None, vec![("usage", "2 transcripts have its id")]));
    // What is where it should be settles it.
    scene.tell(TRANSCRIPT, 1, &[PROMPT, CALL]);
    let said = scene.look_after(20);
    assert_eq!((other_gaps(&said), said.usage.as_ref().unwrap().input_tokens), (vec![], Some(9)));
}

#[test]
fn what_was_open_before_the_process_started_is_not_its_work() {
    let mut scene = one();
    scene.session(7, &json!({}));
    scene.tell(TRANSCRIPT, 1, &[PROMPT, CALL]);
    scene.agents[0].started_at_ms = START + 60_000;
    let said = scene.look();
    assert_eq!(claims(&said), []);
    let usage = said.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.current_tool), (Some(9), None));
}

#[test]
fn lines_that_nobody_understands_are_counted_and_the_rest_is_read() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy"}));
    scene.write(
        TRANSCRIPT,
        b"\xff\xfe\n{\"half\n{\"type\": \"assistant\", \"message\": 5}\n{\"type\": \"novelty\", \"message\": 5}\n",
    );
    scene.tell(TRANSCRIPT, 1, &[PROMPT, CALL]);
    let said = scene.look();
    assert_eq!(other_gaps(&said), [("usage", "2 lines of its record are not understood")]);
    assert_eq!(said.usage.unwrap().output_tokens, Some(3));
}

#[test]
fn a_transcript_that_is_gone_says_nothing() {
    let mut scene = one();
    scene.session(7, &json!({}));
    scene.tell(TRANSCRIPT, 1, &[PROMPT, CALL]);
    assert_eq!(claims(&scene.look()).len(), 2);
    fs::remove_file(scene.path(TRANSCRIPT)).unwrap();
    let said = scene.look();
    assert_eq!((claims(&said), said.usage.as_ref()), (vec![], None));
    assert_eq!(gaps(&said)[1], ("usage", "there is no transcript of it yet"));
    scene.tell(TRANSCRIPT, 1, &[PROMPT, CALL, END]);
    assert_eq!(scene.look_after(10).usage.unwrap().input_tokens, Some(10), "it is another file");
}

#[test]
fn an_agent_that_is_not_asked_for_is_forgotten() {
    let mut scene = one();
    scene.session(7, &json!({"status": "busy"}));
    scene.look();
    assert_eq!(scene.claude.agents.len(), 1);
    scene.claude.read(&[], scene.now);
    assert_eq!(scene.claude.agents.len(), 0);
}

/// A transcript of so many MiB that ends with an open turn.
fn long_transcript(path: &Path, mebibytes: usize) {
    let line = format!("{{\"type\":\"progress\",\"data\":\"{}\"}}\n", "x".repeat((1 << 20) - 30));
    assert_eq!(line.len(), 1 << 20);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    (0..mebibytes).for_each(|_| file.write_all(line.as_bytes()).unwrap());
}

#[test]
fn many_agents_and_long_transcripts_are_read_within_the_budget_of_each_tick() {
    let mut scene = Scene::new();
    for pid in 1..=150 {
        scene.agent(pid);
        scene.session(pid, &json!({"status": "busy"}));
        let transcript = format!("projects/-w-app/s-{pid}.jsonl");
        if pid <= 3 {
            long_transcript(&scene.path(&transcript), 40);
        }
        scene.tell(&transcript, 1, &[PROMPT, CALL]);
    }
    let subjects: Vec<&Subject> = scene.agents.iter().collect();
    let mut reads = Vec::new();
    loop {
        let mut budget = Budget::new(PER_TICK);
        let said = scene.claude.read_within(&subjects, scene.now, &mut budget);
        reads.push(PER_TICK - budget.left());
        let unknown: Vec<usize> = (0..150).filter(|&at| said[at].usage.is_none()).collect();
        assert!(unknown.iter().all(|&at| at < 3), "a long transcript keeps nobody else waiting: {unknown:?}");
        // What goes on in a long one is known at once; what it has cost is not.
        assert!(said.iter().all(|said| claims(said).contains(&(Source::Transcript, Claim::Working, 2))));
        if unknown.is_empty() {
            break;
        }
        for at in unknown {
            let [(field, reason)] = gaps(&said[at])[..] else { panic!("{:?}", said[at]) };
            assert!(field == "usage" && reason.starts_with("still reading, "), "{field}: {reason}");
        }
        assert!(reads.len() < 30, "it comes to an end");
    }
    let whole: u64 = reads.iter().sum();
    assert!(whole > 120 << 20 && whole < 122 << 20, "each byte is read once, and their ends once more: {whole}");
    assert_eq!(reads.iter().filter(|&&read| read == PER_TICK).count(), 7, "{reads:?}");
    let mut budget = Budget::new(PER_TICK);
    let said = scene.claude.read_within(&subjects, scene.now, &mut budget);
    assert_eq!(budget.left(), PER_TICK, "nothing is new");
    assert!(said.iter().all(|said| said.usage.as_ref().is_some_and(|usage| usage.output_tokens == Some(3))));
}

const UNDATED: (&str, &str) = ("since", "its record does not say since when");

#[test]
fn a_date_that_cannot_be_is_when_it_was_seen_first_and_stays_so() {
    let now_ms = START + 1_000_000;
    for date in [json!(0), json!(START / 1000), json!(START - 60_000), json!(now_ms + 3_600_000), json!(u64::MAX)] {
        let mut scene = one();
        let says = |scene: &Scene, written_ms: u64| {
            let more = json!({"status": "waiting", "statusUpdatedAt": date, "updatedAt": written_ms});
            scene.session(7, &more);
        };
        says(&scene, START + 40_000);
        let since = |said: &Testimony| (claims(said), gaps(said).contains(&UNDATED));
        let first = (vec![(Source::OwnRecord, Claim::Waiting, 40)], true);
        assert_eq!(since(&scene.look()), first, "{date}");
        says(&scene, START + 999_000);
        assert_eq!(since(&scene.look_after(5)), first, "{date}: written once more");
        scene.session(7, &json!({"status": "idle", "statusUpdatedAt": START + 1_001_000}));
        assert_eq!(since(&scene.look()), (vec![(Source::OwnRecord, Claim::Idle, 1001)], false));
        says(&scene, START + 1_003_000);
        assert_eq!(since(&scene.look()).0, [(Source::OwnRecord, Claim::Waiting, 1003)], "it waits again");
    }
}

#[test]
fn an_open_turn_is_seen_before_lines_that_are_longer_than_a_first_look() {
    let mut scene = one();
    scene.session(7, &json!({"entrypoint": "sdk-ts"}));
    let long = |bytes: usize| format!("{{\"type\":\"progress\",\"data\":\"{}\"}}\n", "x".repeat(bytes));
    long_transcript(&scene.path(TRANSCRIPT), 20);
    scene.tell(TRANSCRIPT, 5, &[PROMPT]);
    let mut file = OpenOptions::new().append(true).open(scene.path(TRANSCRIPT)).unwrap();
    file.write_all(long(1 << 20).as_bytes()).unwrap();
    assert_eq!(claims(&scene.look()), [(Source::Transcript, Claim::Working, 5)]);
}

#[test]
fn what_is_not_read_yet_is_not_as_if_nothing_were_recorded() {
    let mut scene = one();
    scene.session(7, &json!({"entrypoint": "sdk-ts"}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT]);
    long_transcript(&scene.path(TRANSCRIPT), 20);
    let unread = ["evidence", "activity"].map(|field| (field, "its record is still being read"));
    let said = scene.look();
    assert!(said.evidence.is_empty() && unread.iter().all(|unread| gaps(&said).contains(unread)), "{said:?}");
    let said = scene.look();
    assert_eq!(claims(&said), [(Source::Transcript, Claim::Working, 5)]);
    assert!(!unread.iter().any(|unread| gaps(&said).contains(unread)), "{said:?}");
}

#[test]
fn of_eighty_long_transcripts_each_open_turn_is_seen_in_the_first_look() {
    let mut scene = Scene::new();
    for pid in 1..=80 {
        scene.agent(pid);
        scene.session(pid, &json!({"entrypoint": "sdk-ts"}));
        let transcript = format!("projects/-w-app/s-{pid}.jsonl");
        long_transcript(&scene.path(&transcript), 1);
        scene.tell(&transcript, 5, &[PROMPT]);
    }
    let working = [(Source::Transcript, Claim::Working, 5)];
    assert!(scene.all().iter().all(|said| claims(said) == working));
}
