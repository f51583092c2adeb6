//! Cursor's transcripts. Nothing in them names a process or a time, and no process holds them open: a transcript is an agent's only
//! if the agent's hooks, or else its command line, name the conversation that it is of.

pub(super) mod transcript;

use super::folder::Folder;
use super::follow::Followed;
use super::sought::Sought;
use super::value::Id;
use super::{Records, Subject, Testimony, home_of, told_conversations};
use crate::clock::Moment;
use crate::files::Stamp;
use crate::observe::facts::{Evidence, Gap, Source};
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::Transcript;

/// What to say, and what would help, where nothing names a conversation.
const UNTOLD: &str = "its records name no process, and neither a hook nor its command line has told which conversation it is in; \
                      `headcount hook install cursor` has it do so";

/// So many projects are looked through.
const MOST_PROJECTS: usize = 10_000;

/// Reads the transcripts of Cursor.
#[derive(Debug, Default)]
pub struct Cursor {
    places: Sought,
    transcripts: Followed<Transcript>,
}

impl Records for Cursor {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["cursor"]
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.transcripts.begin();
        self.places.begin();
        let ids = told_conversations(subjects, conversation, UNTOLD);
        let found: Vec<_> =
            subjects.iter().zip(ids).map(|(agent, id)| agent.sees(self.transcript_of(agent, &id?, now)?)).collect();
        let mut order: Vec<_> = (0..subjects.len()).collect();
        order.sort_by_cached_key(|at| found[*at].as_ref().map_or(0, |path| self.transcripts.behind(path)));
        let mut said = vec![Testimony::default(); subjects.len()];
        for at in order {
            let path = found[at].clone();
            said[at] = path.and_then(|path| self.testimony(subjects[at], &path, now)).into();
        }
        said
    }
}

impl Cursor {
    fn transcript_of(&mut self, agent: &Subject, id: &Id, now: Moment) -> Result<PathBuf, String> {
        let program = &agent.processes.first().ok_or("it has no process")?.1;
        let projects = home_of(program, "HOME", "")?.join(".cursor/projects");
        self.places.only(projects, id, now, |projects| transcripts_of(id, projects, now))
    }

    /// Of what its last line says, the time when the file was written is the time. Of older lines there is none.
    fn testimony(&mut self, agent: &Subject, path: &Path, now: Moment) -> Result<Testimony, String> {
        let said = self.transcripts.read(path, now)?;
        let last = said.parser.last();
        let mut unmeasured = said.gaps(last.is_some() && said.whole);
        if said.whole {
            unmeasured.push(Gap::by_design("usage", "Cursor's transcripts have neither models nor tokens"));
        }
        let evidence = last.zip(said.modified_ms).map(|(last, at_ms)| Evidence {
            source: Source::Transcript,
            claim: last.claim,
            word: last.word.clone(),
            detail: last.detail.clone(),
            at_ms,
        });
        let evidence: Vec<_> = evidence.filter(|said| agent.ran_at(said.at_ms)).into_iter().collect();
        if evidence.is_empty() && said.whole && last.is_none() {
            unmeasured.push(Gap::by_design("evidence", "its transcript does not tell where turns end"));
        }
        Ok(Testimony { evidence, unmeasured, ..Testimony::default() })
    }
}

/// The conversation that an agent is in: the one that its hooks have told last, else the one that it was started with, by
/// `--resume=ID` or `--resume ID`.
fn conversation(agent: &Subject) -> Option<Id> {
    if let Some(told) = &agent.conversation {
        return Id::new(told);
    }
    let argv = agent.processes.iter().filter_map(|(_, program)| program.argv.as_ref().ok());
    argv.filter_map(|argv| resumed(argv)).next_back()
}

fn resumed(argv: &[String]) -> Option<Id> {
    // What comes after `--` is a prompt.
    let mut slots = argv.iter().take_while(|slot| *slot != "--");
    let id = slots.find_map(|slot| match slot.strip_prefix("--resume")? {
        "" => Some(None),
        id => Some(Some(id.strip_prefix('=')?)),
    })?;
    Id::new(id.or_else(|| slots.next().map(String::as_str))?)
}

/// The transcripts of a conversation, in whatever project.
fn transcripts_of(id: &Id, projects: &Path, now: Moment) -> Result<Vec<PathBuf>, String> {
    let mut folder = Folder::new(projects.to_owned(), MOST_PROJECTS, Duration::ZERO);
    let names = folder.names(now, |_| true).map_err(|why| format!("its projects cannot be listed: {why}"))?;
    let id = id.as_str();
    let place = |name: &String| projects.join(name).join("agent-transcripts").join(id).join(format!("{id}.jsonl"));
    Ok(names.iter().map(place).filter(|path| Stamp::of_itself(path).is_ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{home, now, subject, undecided};
    use super::*;
    use crate::observe::facts::Claim;
    use crate::observe::processes::Program;
    use std::fs::{self, File};
    use std::sync::Arc;
    use std::time::SystemTime;

    const ID: &str = "1f2e3d4c-0000-4000-8000-000000000001";
    const USER: &str = "{\"role\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"secret\"}]}}\n";
    const ENDED: &str = "{\"type\":\"turn_ended\",\"status\":\"success\"}\n";

    /// A home directory with transcripts, and a reader of them.
    struct Stage {
        home: tempfile::TempDir,
        reader: Cursor,
    }

    impl Stage {
        fn new() -> Self {
            Self { home: tempfile::tempdir().unwrap(), reader: Cursor::default() }
        }

        /// A transcript that was written so many seconds after the beginning.
        fn write(&self, project: &str, id: &str, content: &str, second: u64) -> PathBuf {
            let folder = self.home.path().join(".cursor/projects").join(project).join("agent-transcripts").join(id);
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("{id}.jsonl"));
            fs::write(&path, content).unwrap();
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(now(second).unix_ms);
            File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
            path
        }

        fn agent(&self, argv: &[&str]) -> Subject {
            let mut agent = subject("cursor", home(self.home.path()));
            let (_, program) = &mut agent.processes[0];
            let argv = Ok(argv.iter().map(ToString::to_string).collect());
            *program = Arc::new(Program { argv, ..Program::clone(program) });
            agent
        }

        fn look(&mut self, agent: &Subject, second: u64) -> Testimony {
            self.reader.read(&[agent], now(second)).remove(0)
        }
    }

    fn claims(said: &Testimony) -> Vec<(Claim, u64)> {
        said.evidence.iter().map(|said| (said.claim, said.at_ms)).collect()
    }

    #[test]
    fn a_transcript_is_that_of_the_agent_that_names_it_dated_by_its_last_writing() {
        let mut stage = Stage::new();
        stage.write("shop", ID, USER, 7);
        stage.write("shop", "other", ENDED, 7);
        let untold = stage.agent(&["cursor-agent"]);
        assert!(undecided(&stage.look(&untold, 8)).contains("headcount hook install cursor"));
        for argv in [&["cursor-agent", "--resume", ID][..], &["cursor-agent", "-p", &format!("--resume={ID}"), "go on"]]
        {
            let resumed = stage.agent(argv);
            assert_eq!(claims(&stage.look(&resumed, 8)), [(Claim::Working, now(7).unix_ms)]);
        }
        let told = Subject { conversation: Some("other".to_owned()), ..stage.agent(&["cursor-agent", "--resume", ID]) };
        let said = stage.look(&told, 8);
        assert_eq!(claims(&said), [(Claim::Idle, now(7).unix_ms)], "it has gone over to another one");
        assert_eq!(said.unmeasured.iter().map(|gap| &*gap.field).collect::<Vec<_>>(), ["usage"]);
    }

    #[test]
    fn what_was_written_before_it_started_is_not_its_doing() {
        let mut stage = Stage::new();
        stage.write("shop", ID, USER, 0);
        let mut later = stage.agent(&["cursor-agent", "--resume", ID]);
        later.started_at_ms += 60_000;
        let said = stage.look(&later, 70);
        assert_eq!(claims(&said), []);
        stage.write("shop", ID, &format!("{USER}{USER}"), 71);
        assert_eq!(claims(&stage.look(&later, 72)), [(Claim::Working, now(71).unix_ms)]);
    }

    #[test]
    fn what_is_not_decided_is_said() {
        let mut stage = Stage::new();
        stage.write("a", ID, USER, 1);
        stage.write("b", ID, USER, 1);
        let agent = stage.agent(&["cursor-agent", "--resume", ID]);
        assert!(undecided(&stage.look(&agent, 2)).contains("has 2 records"));
        let mut other = agent.clone();
        other.processes[0].0.pid += 1;
        let said = stage.reader.read(&[&agent, &other], now(3));
        assert!(said.iter().all(|said| undecided(said).contains("its conversation is that of process")), "{said:?}");
        let none = stage.agent(&["cursor-agent", "--resume", "unknown"]);
        assert!(undecided(&stage.look(&none, 4)).contains("no record yet"));
    }

    #[test]
    fn an_id_in_a_prompt_is_none() {
        let of = |argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            resumed(&argv).map(|id| id.as_str().to_owned())
        };
        assert_eq!(of(&["agent", "--resume", "x"]), Some("x".to_owned()));
        for none in [
            &["agent", "--resume"][..],
            &["agent", "--", "--resume=x"],
            &["agent", "say --resume=x"],
            &["agent", "--resume=../x"],
            &["agent", "--resume", "fix the bug"],
            &["agent", "--resumed=x"],
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
