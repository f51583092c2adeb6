//! What the readers of agents' records add to a tick, with 150 agents of which three have transcripts of 40 MB: the first tick,
//! those until all is read, one in which nothing has changed, one in which a tenth of the agents has written. CPU time, and
//! the time that the tick took.
//!
//! `cargo bench --bench records [ROUNDS]`

// The figures are this program's output.
#![allow(clippy::print_stdout)]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100);
    linux::run(rounds)
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("Codex's rollouts are found by Linux's procfs");
}

#[cfg(target_os = "linux")]
mod linux {
    use headcount::clock::{Clock as _, Moment, SystemClock};
    use headcount::observe::processes::{Machine, Options, ProcessId, Program, Sampler};
    use headcount::observe::records::{Codex, Copilot, Qwen, Readers, Subject, claude::Claude, hooks::Hooks};
    use nix::time::{ClockId, clock_gettime};
    use serde_json::{Value, json};
    use std::error::Error;
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    /// How many agents there are of each kind.
    const AGENTS: [(&str, u32); 4] = [("claude", 110), ("codex", 20), ("copilot", 10), ("qwen", 10)];

    /// So many of the Claude Code agents have a long transcript, of so many bytes.
    const LONG: (u32, usize) = (3, 40 << 20);

    /// The others' records have so many bytes.
    const USUAL: usize = 200 << 10;

    /// What comes of doing something once.
    struct Cost {
        cpu: Duration,
        wall: Duration,
    }

    /// Agents with records, and who reads them.
    struct Scene {
        home: tempfile::TempDir,
        readers: Readers,
        subjects: Vec<Subject>,
        /// Each agent's record, and a line that goes on in it.
        records: Vec<(PathBuf, String)>,
        /// Those that hold a rollout open.
        held_open: Vec<Child>,
        now: Moment,
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            for child in &mut self.held_open {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    pub(super) fn run(rounds: usize) -> Result<(), Box<dyn Error>> {
        let mut scene = Scene::new()?;
        let first = scene.tick()?;
        let (mut ticks, mut worst) = (1, Duration::ZERO);
        while scene.unread()? > 0 {
            worst = worst.max(scene.tick()?.wall);
            ticks += 1;
        }
        println!("{} agents, {rounds} rounds, medians", scene.subjects.len());
        println!("{:>28} {:>12} {:>12}", "", "CPU", "time");
        let show =
            |what: &str, cost: &Cost| println!("{what:>28} {:>9.2} ms {:>9.2} ms", millis(cost.cpu), millis(cost.wall));
        show("first tick", &first);
        println!("{:>28} {ticks} ticks, the longest {:.0} ms", "all is read after", millis(worst));
        for (what, percent) in [("nothing has changed", 0), ("a tenth has written", 10), ("all have written", 100)] {
            let mut costs = Vec::with_capacity(rounds);
            for round in 0..rounds {
                scene.stir(percent, round)?;
                costs.push(scene.tick()?);
            }
            let cpu = median(costs.iter().map(|cost| cost.cpu).collect());
            show(what, &Cost { cpu, wall: median(costs.iter().map(|cost| cost.wall).collect()) });
        }
        Ok(())
    }

    impl Scene {
        fn new() -> Result<Self, Box<dyn Error>> {
            let home = tempfile::tempdir()?;
            let machine = headcount::observe::processes::lineage()?.machine;
            let readers = Readers::new(vec![
                Box::<Claude>::default(),
                Box::<Codex>::default(),
                Box::<Copilot>::default(),
                Box::new(Qwen::new(machine.clone())),
                Box::new(Hooks::new(home.path(), machine.clone())),
            ]);
            let now = SystemClock::default().now();
            let (subjects, records, held_open) = (Vec::new(), Vec::new(), Vec::new());
            let mut scene = Self { home, readers, subjects, records, held_open, now };
            for (kind, count) in AGENTS {
                for nth in 0..count {
                    scene.agent(kind, nth, &machine)?;
                }
            }
            scene.identify()?;
            Ok(scene)
        }

        fn agent(&mut self, kind: &str, nth: u32, machine: &Machine) -> Result<(), Box<dyn Error>> {
            // Beyond the highest pid that the kernel gives.
            let id = ProcessId { pid: 5_000_000 + u32::try_from(self.subjects.len())?, start: 1000 };
            let now = jiff::Timestamp::from_millisecond(i64::try_from(self.now.unix_ms)?)?;
            let session = format!("{kind}-{nth}");
            let folder = |below: &str| self.home.path().join(below);
            let (record, line) = match kind {
                "claude" => {
                    let said = json!({"pid": id.pid, "procStart": "1000", "sessionId": session, "cwd": "/w", "status": "busy"});
                    write(&folder(&format!(".claude/sessions/{}.json", id.pid)), &said)?;
                    (folder(&format!(".claude/projects/-w/{session}.jsonl")), claude_line(&now.to_string()))
                }
                "codex" => {
                    let event = json!({"timestamp": now, "type": "event_msg", "payload": {"type": "task_started"}});
                    (folder(&format!(".codex/sessions/2026/11/30/rollout-{nth}.jsonl")), event)
                }
                "copilot" => {
                    let below = folder(&format!(".copilot/session-state/{session}"));
                    write(&below.join(format!("inuse.{}.lock", id.pid)), &json!(""))?;
                    (below.join("events.jsonl"), json!({"timestamp": now, "type": "assistant.turn_start", "data": {}}))
                }
                _ => {
                    let namespace = machine.pid_namespace.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>()?;
                    let said = json!({"schemaVersion": 1, "pid": id.pid, "procStart": format!("{}:1000", machine.boot_id),
                        "pidNs": namespace, "sessionId": session});
                    write(&folder(&format!(".qwen/sessions/{}.json", id.pid)), &said)?;
                    let usage = json!({"promptTokenCount": 500, "candidatesTokenCount": 20});
                    let line = json!({"type": "assistant", "model": "qwen3", "usageMetadata": usage});
                    (folder(&format!(".qwen/projects/-w/chats/{session}.jsonl")), line)
                }
            };
            let size = if kind == "claude" && nth < LONG.0 { LONG.1 } else { USUAL };
            fill(&record, &line, size)?;
            if kind == "codex" {
                let held = File::options().append(true).open(&record)?;
                self.held_open.push(Command::new("sleep").arg("600").stdout(held).spawn()?);
            }
            self.records.push((record, format!("{line}\n")));
            let home = self.home.path().to_string_lossy().into_owned();
            let none = || "not asked for".to_owned();
            let env = Ok(vec![("HOME".to_owned(), home)]);
            let program = Program { exe: Err(none()), argv: Ok(Vec::new()), cwd: Err(none()), env, uid: None };
            let processes = vec![(id, Arc::new(program))];
            let started_at_ms = self.now.unix_ms - 60_000;
            self.subjects.push(Subject {
                kind: kind.into(),
                processes,
                started_at_ms,
                conversation: None,
                open: Vec::new(),
                children: Vec::new(),
                calls: vec![],
            });
            Ok(())
        }

        /// Gives each agent that holds a rollout open the identity of the process that does.
        fn identify(&mut self) -> Result<(), Box<dyn Error>> {
            let mut sampler = Sampler::new(Arc::new(SystemClock::default()), Options::default());
            sampler.refresh()?;
            let holders = self.subjects.iter_mut().filter(|subject| &*subject.kind == "codex");
            for (subject, child) in holders.zip(&self.held_open) {
                subject.processes[0].0 = sampler.get(child.id()).ok_or("a process has ended")?.id;
            }
            Ok(())
        }

        /// Has so many of a hundred agents write a line.
        fn stir(&self, percent: usize, round: usize) -> std::io::Result<()> {
            for (_, (record, line)) in self.records.iter().enumerate().filter(|(nth, _)| (nth + round) % 100 < percent)
            {
                File::options().append(true).open(record)?.write_all(line.as_bytes())?;
            }
            Ok(())
        }

        /// A tick, a second after the one before.
        fn tick(&mut self) -> Result<Cost, Box<dyn Error>> {
            self.now.steady += Duration::from_secs(1);
            self.now.unix_ms += 1000;
            let subjects = self.subjects.clone();
            let (cpu, wall) = (cpu_time()?, Instant::now());
            let found = self.readers.read(subjects, &[], self.now);
            let cost = Cost { wall: wall.elapsed(), cpu: cpu_time()? - cpu };
            if found.len() != self.subjects.len() {
                return Err(format!("{} agents are told of", found.len()).into());
            }
            Ok(cost)
        }

        /// How many agents have records that are not read to their end.
        fn unread(&mut self) -> Result<usize, Box<dyn Error>> {
            let found = self.readers.read(self.subjects.clone(), &[], self.now);
            let unread =
                found.values().filter(|said| said.usage.is_none() && said.evidence.is_empty() || still_read(said));
            Ok(unread.count())
        }
    }

    fn still_read(said: &headcount::observe::records::Testimony) -> bool {
        said.unmeasured.iter().any(|gap| gap.reason.contains("still"))
    }

    fn claude_line(now: &str) -> Value {
        let usage = json!({"input_tokens": 9, "output_tokens": 300, "cache_read_input_tokens": 20_000, "cache_creation_input_tokens": 50});
        let text = json!({"type": "text", "text": "x".repeat(1500)});
        let call = json!({"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "ls"}});
        let message = json!({"id": "msg_01", "model": "opus", "stop_reason": "tool_use", "usage": usage, "content": [text, call]});
        json!({"type": "assistant", "timestamp": now, "sessionId": "s", "message": message})
    }

    fn write(path: &Path, content: &Value) -> std::io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, content.to_string())
    }

    /// Writes a line until there are so many bytes.
    fn fill(path: &Path, line: &Value, size: usize) -> std::io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        let line = format!("{line}\n");
        fs::write(path, line.repeat(size / line.len() + 1))
    }

    /// CPU time of this process.
    fn cpu_time() -> Result<Duration, nix::errno::Errno> {
        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
    }

    fn median(mut times: Vec<Duration>) -> Duration {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn millis(time: Duration) -> f64 {
        time.as_secs_f64() * 1000.0
    }
}
