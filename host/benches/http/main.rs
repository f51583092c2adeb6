//! What a call over HTTP costs, against the same call over stdio: real servers, whole reports, loopback; medians from one run
//! in which both take turns. Then many clients at once, each with a token of its own, and what of a call is finding out who
//! asks and writing it down.
//!
//! `cargo bench --bench http [CALLS] [CLIENTS]`

// The figures are this program's output.
#![allow(clippy::print_stdout)]

#[cfg(target_os = "linux")]
mod clients;

#[cfg(target_os = "linux")]
fn main() -> linux::Result {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    linux::run(numbers.next().unwrap_or(1000), numbers.next().unwrap_or(200))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the agents of this bench are Linux processes");
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::clients::{Era, Http, Server, Stdio};
    use headcount::auth::{Gate, NewToken, Scopes, create_token, revoke};
    use headcount::clients::{Ledger, NewClient};
    use headcount::clock::{Clock, SystemClock};
    use headcount::observe::sessions::Owners;
    use headcount::store::Store;
    use headcount::store::clients::Activity;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;
    use std::process::{Child, Command};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    pub(super) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

    /// Calls before the first that counts.
    const WARM_UP: usize = 200;

    /// Calls of each of many clients.
    const EACH: usize = 50;

    /// Clients whose grants are revoked.
    const CUTS: usize = 20;

    /// Agents of the report that many clients ask for, and by which the share of the gate is told.
    const MANY: usize = 100;

    pub(super) fn run(calls: usize, clients: usize) -> Result {
        let home = tempfile::tempdir()?;
        let state = home.path().join(".local/state/headcount");
        let crowd = Crowd::gather(1000)?;
        let tokens = tokens(&state, clients)?;
        println!("agents  era     stdio p50    p99   http p50    p99   http/stdio   rest p50");
        let mut with_many = Duration::ZERO;
        for agents in [1, MANY, 1000] {
            let roster = crowd.roster(home.path(), agents)?;
            let called = turns(home.path(), &roster, &tokens[0], calls)?;
            if agents == MANY {
                with_many = called;
            }
        }
        let roster = crowd.roster(home.path(), MANY)?;
        at_once(home.path(), &state, &roster, &tokens)?;
        share(&state, &tokens[0], calls, with_many)
    }

    /// Both transports in turns, in both eras. Returns the median over HTTP in the newer one.
    fn turns(home: &Path, roster: &Path, token: &str, calls: usize) -> Result<Duration> {
        let server = Server::start(home, roster)?;
        let mut rest = Http::connect(&server, token)?;
        let (mut by_rest, mut medians) = (Vec::new(), Vec::new());
        for era in [Era::Modern, Era::Legacy] {
            let (mut near, mut far) = (Stdio::start(home, roster, era)?, Http::connect(&server, token)?);
            far.greet(era)?;
            let (mut by_stdio, mut by_http) = (Vec::new(), Vec::new());
            for _ in 0..WARM_UP + calls {
                by_stdio.push(timed(|| near.status())?);
                by_http.push(timed(|| far.status())?);
                by_rest.push(timed(|| rest.rest())?);
            }
            let [stdio, http, over_rest] = [by_stdio, by_http, by_rest.split_off(0)].map(|all| Times::of(all, WARM_UP));
            println!(
                "{:>6}  {era:?}  {:>9.0?} {:>6.0?}  {:>9.0?} {:>6.0?}  {:>11.2}  {:>9.0?}",
                agents(roster)?,
                stdio.median,
                stdio.p99,
                http.median,
                http.p99,
                http.median.as_secs_f64() / stdio.median.as_secs_f64(),
                over_rest.median,
            );
            medians.push(http.median);
        }
        Ok(medians[0])
    }

    /// Many clients at once, and in the midst of them some whose grants are revoked while they wait.
    fn at_once(home: &Path, state: &Path, roster: &Path, tokens: &[String]) -> Result {
        let server = Server::start(home, roster)?;
        let cutting = AtomicBool::new(true);
        let ask = |mut client: Http| -> Result<Vec<Duration>> {
            let mut all = Vec::new();
            while all.len() < EACH || cutting.load(Ordering::Relaxed) {
                all.push(timed(|| client.status())?);
            }
            Ok(all)
        };
        let mut clients = tokens.iter().map(|token| Http::connect(&server, token)).collect::<Result<Vec<_>>>()?;
        // The first call of each is written down.
        clients.iter_mut().try_for_each(Http::status)?;
        let (asked, cut) = thread::scope(|scope| {
            let asking: Vec<_> = clients.into_iter().map(|client| scope.spawn(|| ask(client))).collect();
            let cut = (0..CUTS).map(|nth| cut(&server, state, nth)).collect::<Result<Vec<_>>>();
            cutting.store(false, Ordering::Relaxed);
            let asked = asking.into_iter().map(|client| client.join().map_err(|_| "a client has failed")?);
            (asked.collect::<Result<Vec<_>>>(), cut)
        });
        let all = asked?.concat();
        let (answered, times, cut) = (all.len(), Times::of(all, 0), Times::of(cut?, 0));
        let ratio = times.p99.as_secs_f64() / times.median.as_secs_f64();
        println!(
            "{} clients at once: {answered} calls answered, p50 {:.1?}, p99 {:.1?}, p99/p50 {ratio:.1}",
            tokens.len(),
            times.median,
            times.p99
        );
        println!("a call cut after its grant was revoked, meanwhile: p50 {:.1?}, longest {:.1?}", cut.median, cut.p99);
        Ok(())
    }

    /// How long one still waits whose grant was revoked.
    fn cut(server: &Server, state: &Path, nth: usize) -> Result<Duration> {
        let (store, clock, user_id) = (Store::at(state), SystemClock::default(), Owners::default().me());
        let scopes = Scopes::of_text("status:read");
        let new = NewToken { user_id: user_id.clone(), name: format!("cut {nth}"), scopes, lifetime: None };
        let (grant, token) = create_token(&store, &clock, new)?;
        let mut waits = Http::connect(server, token.reveal())?;
        waits.wait()?;
        // Until it is let in, and a different moment between two looks each time.
        thread::sleep(Duration::from_millis(200 + 17 * nth as u64));
        revoke(&store, &clock, &user_id, &grant.id)?.ok_or("the grant is not there")?;
        timed(|| waits.is_cut())
    }

    /// What of a call is for the gate and the ledger.
    fn share(state: &Path, token: &str, calls: usize, of: Duration) -> Result {
        let clock = Arc::new(SystemClock::default());
        let store = Arc::new(Store::at(state));
        let gate = Gate::open(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>);
        let keep = Duration::from_secs(3600);
        let ledger = Ledger::open(store, clock, state.to_owned(), keep)?;
        let client = ledger.record(NewClient { user_id: "bench".into(), ..NewClient::default() })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut all = Vec::new();
        for _ in 0..WARM_UP + calls {
            all.push(timed(|| {
                runtime.block_on(gate.admit(Some(token)))?;
                ledger.touch(&client, Activity::default());
                Ok(())
            })?);
        }
        let times = Times::of(all, WARM_UP);
        let share = 100.0 * times.median.as_secs_f64() / of.as_secs_f64();
        println!(
            "gate and ledger: p50 {:.1?}, p99 {:.1?}, {share:.1} % of a call with {MANY} agents",
            times.median, times.p99
        );
        Ok(())
    }

    fn timed(work: impl FnOnce() -> Result) -> Result<Duration> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed())
    }

    struct Times {
        median: Duration,
        p99: Duration,
    }

    impl Times {
        fn of(mut all: Vec<Duration>, skip: usize) -> Self {
            all.drain(..skip);
            all.sort_unstable();
            Self { median: all[all.len() / 2], p99: all[all.len() * 99 / 100] }
        }
    }

    fn tokens(state: &Path, count: usize) -> Result<Vec<String>> {
        let store = Store::at(state);
        let scopes: Scopes = Scopes::of_text("status:read");
        let user_id = Owners::default().me();
        let token = |n| {
            let new = NewToken {
                user_id: user_id.clone(),
                name: format!("bench {n}"),
                scopes: scopes.clone(),
                lifetime: None,
            };
            Ok(create_token(&store, &SystemClock::default(), new)?.1.reveal().to_owned())
        };
        (0..count).map(token).collect()
    }

    /// How many agents a roster has, as it says in its name.
    fn agents(roster: &Path) -> Result<usize> {
        Ok(roster.file_stem().and_then(|stem| stem.to_str()).ok_or("a roster without a name")?.parse()?)
    }

    /// Processes that wait, and end with the run.
    struct Crowd(Vec<Child>);

    impl Crowd {
        fn gather(size: usize) -> Result<Self> {
            let mut crowd = Self(Vec::with_capacity(size));
            for _ in 0..size {
                crowd.0.push(Command::new("sleep").arg("600").spawn()?);
            }
            Ok(crowd)
        }

        /// A roster with so many of them.
        fn roster(&self, home: &Path, agents: usize) -> Result<std::path::PathBuf> {
            let mut text = "[[session]]\nid = \"bench\"\n".to_owned();
            for child in &self.0[..agents] {
                write!(text, "[[session.agent]]\nname = \"a{0}\"\npid = {0}\n", child.id())?;
            }
            let path = home.join(format!("{agents}.toml"));
            fs::write(&path, text)?;
            Ok(path)
        }
    }

    impl Drop for Crowd {
        fn drop(&mut self) {
            for child in &mut self.0 {
                // One that has ended already has ended.
                let _ = child.kill();
            }
            for child in &mut self.0 {
                let _ = child.wait();
            }
        }
    }
}
