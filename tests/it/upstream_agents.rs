//! Agents that another server knows of: two headcounts that name each other, one that is started, and a list of another form.

use crate::http_client::{Connection, Server, token};
use crate::mcp_client::{Client, MODERN};
use crate::world::{HEADCOUNT, PATIENCE, World, agent, descendants, posing_as, stand_in};
use headcount::demo::stand_in::Behaviour;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// An address that is known before the server behind it is, and may be cut off.
struct Relay {
    address: SocketAddr,
    behind: Arc<Mutex<Option<SocketAddr>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let behind: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (target, kept) = (Arc::clone(&behind), Arc::clone(&open));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Some(far) = target.lock().unwrap().and_then(|to| TcpStream::connect(to).ok()) else { continue };
                kept.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, behind, open }
    }

    fn leads_to(&self, address: SocketAddr) {
        *self.behind.lock().unwrap() = Some(address);
    }

    fn cut(&self) {
        *self.behind.lock().unwrap() = None;
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A headcount that others may name, and whom it names.
struct Site {
    world: World,
    name: &'static str,
    relay: Relay,
    token: String,
}

impl Site {
    fn new(name: &'static str) -> Self {
        let world = World::new();
        let token = token(&world, "others", &["status:read"]);
        Self { world, name, relay: Relay::new(), token }
    }

    /// Has it name these others, with more settings for what they tell.
    fn names(&self, others: &[&Site], more: &str) {
        let mut config = String::new();
        for other in others {
            let file = self.world.write(&format!("{}.token", other.name), &other.token);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            config += &format!(
                "[[upstream]]\nname = {:?}\nurl = \"http://{}/mcp\"\ntoken_file = {file:?}\n\
                 agents_from = {{ tool = \"list_sessions\", every = \"100ms\"{more} }}\n",
                other.name, other.relay.address
            );
        }
        self.world.write(".config/headcount/config.toml", config);
    }

    fn start(&self) -> Running<'_> {
        let server = Server::start(&self.world, &[]);
        self.relay.leads_to(server.address);
        Running { connection: Mutex::new(server.connect(&self.token)), server, site: self }
    }

    /// Registers an agent whose process this is.
    fn register(&self, session: &str, name: &str, pid: u32) {
        let pid = pid.to_string();
        let ran = self.world.run(&["register", "--session", session, "--name", name, "--pid", &pid]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
}

/// One that serves.
struct Running<'s> {
    site: &'s Site,
    server: Server,
    connection: Mutex<Connection>,
}

impl Running<'_> {
    fn get(&self, path: &str) -> Option<Value> {
        let mut connection = self.connection.lock().unwrap();
        connection.send("GET", path, &[], b"");
        let response = connection.response();
        (response.status == 200).then(|| response.json())
    }

    /// The report of a session, as soon as it is so.
    fn until(&self, session: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let report = self.get(&format!("/v1/sessions/{session}/status"));
            if let Some(report) = report.clone().filter(|report| is_so(report)) {
                return report;
            }
            assert!(start.elapsed() < PATIENCE, "{}: {what}: {report:#?}\n{}", self.site.name, self.server.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The ids of the sessions with this in their id.
    fn sessions(&self, with: &str) -> Vec<String> {
        let listed = self.get("/v1/sessions").unwrap();
        let ids = listed["sessions"].as_array().unwrap().iter().map(|one| one["session_id"].as_str().unwrap());
        ids.filter(|id| id.contains(with)).map(str::to_owned).collect()
    }
}

fn names(report: &Value) -> Vec<&str> {
    report["agents"].as_array().unwrap().iter().map(|agent| agent["agent_name"].as_str().unwrap()).collect()
}

fn source<'r>(report: &'r Value, name: &str) -> Option<&'r Value> {
    report["sources"].as_array().unwrap().iter().find(|source| source["name"] == name)
}

#[test]
fn two_that_name_each_other_list_each_agent_once_and_know_when_the_other_is_silent() {
    let (a, b) = (Site::new("a-site"), Site::new("b-site"));
    a.names(&[&b], ", stale_after = \"2s\"");
    b.names(&[&a], "");
    let agents = [Behaviour::Idle; 4].map(stand_in);
    let everybodys = posing_as("claude", &a.world, |_| {});
    a.register("alpha", "ada", agents[0].pid());
    b.register("beta", "bob", agents[1].pid());
    let (at_a, at_b) = (a.start(), b.start());

    let told = at_b.until("alpha.a-site", "it hears of ada", |report| names(report) == ["ada"]);
    let ada = agent(&told, "ada");
    let own = at_a.until("alpha", "its own", |report| names(report) == ["ada"]);
    assert_eq!(ada["via"], json!([own["instance"]]));
    assert_eq!((&ada["identity"], &ada["process_id"]), (&agent(&own, "ada")["identity"], &Value::Null));
    let (state, at) = (ada["activity"]["state"].as_str().unwrap(), &ada["metrics"]["unmeasured"]["process"]);
    assert!(["idle", "working"].contains(&state) && ada["activity"]["decided_by"] == "upstream", "{ada:#}");
    assert_eq!(*at, json!(format!("process {} at a-site", agents[0].pid())));
    assert_eq!(
        (told["session_name"].as_str(), told["partial"].as_bool()),
        (Some("alpha@a-site"), Some(false)),
        "{told:#}"
    );

    // By now each lists the other's agents; what it has from the other does not come back, however often they ask.
    b.register("beta", "carl", agents[2].pid());
    at_a.until("beta.b-site", "it hears of carl", |report| names(report) == ["bob", "carl"]);
    a.register("alpha", "dora", agents[3].pid());
    at_b.until("alpha.a-site", "it hears of dora", |report| names(report).contains(&"dora"));
    for site in [&at_a, &at_b] {
        let found = |with| site.sessions(with);
        assert_eq!((found("alpha").len(), found("beta").len()), (1, 1), "{:?}", found("-site"));
    }
    // Both see this one, so that neither has it from the other.
    let project = fs::canonicalize(a.world.path("project")).unwrap();
    for site in [&at_a, &at_b] {
        let listed = site.get("/v1/sessions").unwrap();
        let rows = listed["sessions"].as_array().unwrap().iter();
        let ours: Vec<_> = rows.filter(|row| row["root_path"] == project.to_str().unwrap()).collect();
        assert_eq!((ours.len(), &ours[0]["agent_count"]), (1, &json!(1)), "{ours:#?}");
    }
    drop(everybodys);

    // One of them falls silent: its last facts stay, then nobody knows, and only its own sessions say so.
    b.relay.cut();
    let failing = |report: &Value| source(report, "upstream:b-site").is_some_and(|source| source["ok"] == false);
    let report = at_a.until("beta.b-site", "it says that b is silent", failing);
    assert_eq!(names(&report), ["bob", "carl"]);
    let unknown = |report: &Value| agent(report, "bob")["activity"]["state"] == "unknown";
    let report = at_a.until("beta.b-site", "nobody knows", unknown);
    assert!(report["partial"] == true && agent(&report, "bob")["status"] == "UNKNOWN", "{report:#}");
    assert!(agent(&report, "bob")["activity"]["reason"].as_str().unwrap().contains("b-site has not answered for"));
    let own = at_a.until("alpha", "its own", |report| names(report).contains(&"ada"));
    assert!(source(&own, "upstream:b-site").is_none(), "{own:#}");
    let listed = at_a.get("/v1/sessions").unwrap();
    assert_eq!(source(&listed, "upstream:b-site").unwrap()["ok"], false);
    b.relay.leads_to(at_b.server.address);
    at_a.until("beta.b-site", "it hears of them again", |report| !unknown(report) && !failing(report));
}

#[test]
fn agents_are_passed_on_and_come_the_shortest_way() {
    let (a, b, c) = (Site::new("a-site"), Site::new("b-site"), Site::new("c-site"));
    a.names(&[&b, &c], "");
    b.names(&[&c], "");
    c.names(&[&a], "");
    let agents = [Behaviour::Idle, Behaviour::Idle].map(stand_in);
    c.register("gamma", "cleo", agents[0].pid());
    a.register("alpha", "ada", agents[1].pid());
    let (at_c, at_b) = (c.start(), b.start());
    let second = at_b.until("gamma.c-site", "it hears of cleo", |report| names(report) == ["cleo"]);
    let at_a = a.start();
    let third = at_a.until("gamma.c-site", "it hears of cleo", |report| names(report) == ["cleo"]);
    assert_eq!(agent(&third, "cleo")["via"], agent(&second, "cleo")["via"], "from c itself");
    // From a over c to b: each on the way is named, and a never hears of its own.
    let on = at_b.until("alpha.a-site.c-site", "it hears of ada", |report| names(report) == ["ada"]);
    let instance = |at: &Running<'_>, session| at.until(session, "it is there", |_| true)["instance"].clone();
    let expected = json!([instance(&at_a, "alpha"), instance(&at_c, "gamma")]);
    assert_eq!(agent(&on, "ada")["via"], expected);
    assert_eq!(on["session_name"], "alpha@a-site@c-site");
    for _ in 0..5 {
        assert_eq!(at_a.sessions("alpha"), ["alpha"]);
        assert_eq!(at_a.sessions("gamma"), ["gamma.c-site"], "once, and not over b too");
    }
    assert_eq!(at_c.sessions("gamma"), ["gamma"]);
}

#[test]
fn one_that_is_started_tells_of_its_agents_and_starts_nobody_again() {
    let world = World::new();
    let state = world.path("elsewhere");
    world.write(
        ".config/headcount/config.toml",
        format!(
            "[sampling]\nupstream_deadline = \"20s\"\n\
             [[upstream]]\nname = \"other\"\ncommand = \"{HEADCOUNT}\"\nargs = [\"serve\"]\n\
             env = {{ HEADCOUNT_STATE_DIR = {state:?} }}\nagents_from = {{ tool = \"list_sessions\", every = \"100ms\" }}\n\
             [[upstream]]\nname = \"self\"\ncommand = \"{HEADCOUNT}\"\nargs = [\"serve\"]\n\
             agents_from = {{ tool = \"list_sessions\", every = \"100ms\" }}\n"
        ),
    );
    let it = stand_in(Behaviour::Idle);
    let mut register =
        world.command(&["register", "--session", "delta", "--name", "dan", "--pid", &it.pid().to_string()]);
    register.env("HEADCOUNT_STATE_DIR", &state);
    assert_eq!(crate::world::finish(register).code, Some(0));
    let own = stand_in(Behaviour::Idle);
    let registered = world.run(&["register", "--session", "epsilon", "--name", "eva", "--pid", &own.pid().to_string()]);
    assert_eq!(registered.code, Some(0), "{registered:#?}");

    let status = world.run(&["status", "delta.other", "--json"]);
    let report = status.json();
    let dan = agent(&report, "dan");
    assert_eq!(dan["via"].as_array().unwrap().len(), 1, "{report:#}");
    assert!(dan["agent_id"].as_str().unwrap().contains("-other-") && dan["process_id"].is_null(), "{dan:#}");

    let mut client = Client::connect(&world, &[], MODERN);
    let start = Instant::now();
    let listed = loop {
        let listed = client.structured("list_sessions", json!({}));
        let is_well = source(&listed, "upstream:self").unwrap()["ok"] == true;
        if is_well && listed.to_string().contains("delta.other") {
            break listed;
        }
        assert!(start.elapsed() < PATIENCE, "{listed:#}");
    };
    let upstreams = world.run(&["upstream", "list", "--json"]);
    assert_eq!(upstreams.code, Some(0), "to name oneself is no failure: {upstreams:?}");
    assert!(
        upstreams.json().to_string().contains("this very headcount: nothing of it"),
        "but it is said: {upstreams:?}"
    );
    for twice in ["delta.other.self", "epsilon.self", "epsilon.other"] {
        assert!(!listed.to_string().contains(twice), "{listed:#}");
    }
    let serving = |(pid, _): &(u32, u64)| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("\0serve\0")
    };
    // `other` and `self`; and as `other` reads the same configuration, its own two, which start nobody.
    let below: Vec<_> = descendants(client.pid()).into_iter().filter(serving).collect();
    assert!((2..=4).contains(&below.len()), "{below:?}");
    assert_eq!(client.close(PATIENCE).0, Some(0));
}

#[test]
fn a_list_of_another_form_is_shown_by_every_surface() {
    let world = World::new();
    let list = r#"arguments = { team = [
        { key = "w1", who = "Wanda \u001b[2J", role = "writer", doing = "busy", since = "2026-01-02T03:04:05Z", pid = 77 },
        { key = "w2", who = "Willi", doing = "on hold" },
        { key = "w3", who = "Walter", doing = "broken", why = "out of tokens" },
        { key = "w4", who = "Wim", doing = "frobs" } ] }"#;
    let map = r#"map = { agents = "/team", id = "/key", name = "/who", specialization = "/role", activity = "/doing",
        reason = "/why", since = "/since", pid = "/pid", words = { busy = "working", "on hold" = "waiting", broken = "failed" } }"#;
    let list = list.replace('\n', " ");
    let map = map.replace('\n', " ");
    world.write(
        ".config/headcount/config.toml",
        format!(
            "[sampling]\nupstream_deadline = \"20s\"\n[[upstream]]\nname = \"desk\"\ncommand = \"{HEADCOUNT}\"\n\
             args = [\"stand-in-server\"]\n[upstream.agents_from]\ntool = \"echo\"\nevery = \"100ms\"\nsession = \"Writers\"\n\
             {list}\n{map}\n"
        ),
    );
    let expected = [
        ("Wanda ", "working", "ACTIVE"),
        ("Willi", "waiting_for_input", "ACTIVE"),
        ("Walter", "finished", "FAILED"),
        ("Wim", "unknown", "UNKNOWN"),
    ];
    let is_as_told = |report: &Value| {
        for (name, state, status) in expected {
            let agent = agent(report, name);
            assert_eq!((&agent["activity"]["state"], &agent["status"]), (&json!(state), &json!(status)), "{agent:#}");
        }
        let wanda = agent(report, "Wanda ");
        assert_eq!(wanda["activity"]["since"], "2026-01-02T03:04:05.000Z");
        assert_eq!(wanda["metrics"]["unmeasured"]["process"], "process 77 at desk");
        assert_eq!((&report["session_id"], &report["session_name"]), (&json!("Writers.desk"), &json!("Writers@desk")));
        assert_eq!(report["partial"], false, "{report:#}");
    };
    let shown = world.run(&["status", "Writers@desk", "--json"]);
    assert_eq!(shown.code, Some(1), "one has failed");
    is_as_told(&shown.json());
    let table = world.run(&["status", "Writers.desk"]).stdout;
    assert!(["Wanda", "writer", "Willi", "out of tokens", "frobs"].iter().all(|word| table.contains(word)), "{table}");
    assert!(!table.contains("\u{1b}[2J"), "{table}");
    let listed = world.run(&["sessions", "--json"]).json();
    let rows = listed["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["session_id"] == "Writers.desk").unwrap();
    assert_eq!((&row["agent_count"], &row["waiting_agents"]), (&json!(4), &json!(1)));

    let good = token(&world, "reader", &[]);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&good);
    let start = Instant::now();
    let report = loop {
        connection.send("GET", "/v1/sessions/Writers.desk/status", &[], b"");
        let response = connection.response();
        if response.status == 200 {
            break response.json();
        }
        assert!(start.elapsed() < PATIENCE, "{}", response.text());
    };
    is_as_told(&report);
    let called = connection
        .ask("tools/call", json!({ "name": "get_session_status", "arguments": { "session_id": "Writers@desk" } }));
    is_as_told(&called.message()["result"]["structuredContent"]);
    let attention = report["attention"].as_array().unwrap();
    assert!(attention.iter().any(|one| one["why"].as_str().unwrap().contains("out of tokens")), "{attention:#?}");
}

#[test]
fn a_map_that_finds_nothing_says_where_and_harms_nothing_else() {
    let world = World::new();
    world.write(
        ".config/headcount/config.toml",
        format!(
            "[sampling]\nupstream_deadline = \"20s\"\n[[upstream]]\nname = \"desk\"\ncommand = \"{HEADCOUNT}\"\n\
             args = [\"stand-in-server\"]\n[upstream.agents_from]\ntool = \"echo\"\narguments = {{ crew = [], s3cret = \"hunter2\" }}\n\
             map = {{ agents = \"/team\", id = \"/key\" }}\n"
        ),
    );
    let it = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("backend", it.pid())]);
    let (code, report) = world.status("shop", &roster);
    assert_eq!((code, names(&report)), (Some(0), vec!["backend"]));
    assert!(source(&report, "upstream:desk").is_none());
    let listed = world.run(&["sessions", "--json"]).json();
    let told = source(&listed, "upstream:desk").unwrap()["error"].as_str().unwrap();
    assert_eq!(told, "`agents_from.map.agents` \"/team\" finds nothing: there is an object with crew, s3cret");
}
