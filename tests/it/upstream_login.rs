//! Somebody who logs in to an upstream server: the command, the browser, and the owner of the other server.

use crate::http_client::{Connection, Server};
use crate::oauth_client::{encoded, query};
use crate::world::{PATIENCE, Ran, World, ended};
use headcount::auth::Scope;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use url::Url;

/// A world whose configuration names one server, with these settings.
pub fn client(url: &str, settings: &str) -> World {
    let world = World::new();
    configure(&world, url, settings);
    world
}

pub fn configure(world: &World, url: &str, settings: &str) {
    let config = format!("[[upstream]]\nname = \"far\"\nurl = \"{url}\"\n{settings}\n");
    world.write(".config/headcount/config.toml", config);
}

/// Where logins are kept.
pub const KEPT: &str = ".local/state/headcount/upstream-logins/far.json";

/// A command that waits for consent.
pub struct Login {
    child: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
    /// The address that it wants opened.
    pub url: Url,
}

impl Login {
    /// Starts it, and reads up to the address.
    pub fn start(world: &World, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = world.command(&[&["upstream", "login", "far"], args].concat());
        let mut child = command.envs(variables.iter().copied()).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (mut said, mut line) = (String::new(), String::new());
        let url = loop {
            line.clear();
            if stdout.read_line(&mut line).unwrap() == 0 {
                let mut stderr = String::new();
                child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
                panic!("no address in {said:?}, and {stderr:?}");
            }
            said += &line;
            if let Some(url) = Some(line.trim()).filter(|line| line.starts_with("http")) {
                break url.parse().unwrap();
            }
        };
        Self { child, stdout, said, url }
    }

    /// Pastes an address.
    pub fn paste(&mut self, address: &str) {
        writeln!(self.child.stdin.take().unwrap(), "{address}").unwrap();
    }

    /// What came of it.
    pub fn end(mut self) -> Ran {
        let code = ended(&mut self.child, PATIENCE);
        self.stdout.read_to_string(&mut self.said).unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ran { code, stdout: self.said, stderr }
    }
}

/// Opens the address as a browser, consents to these scopes as the owner of the server, and says where the browser is sent.
pub fn consent(owner: &World, server: &Server, url: &Url, scopes: &[Scope]) -> Url {
    let host = server.address.to_string();
    let path = format!("{}?{}", url.path(), url.query().unwrap());
    let page = Connection::to(server.address, None).request("GET", &path, &[("host", &host)], b"");
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text();
    let between = |from: &str, to| text.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
    let (id, label) = (between(r#"name="request" value=""#, '"'), between("request <code>", '<'));
    let requests = owner.run(&["grants", "requests", "--json"]).json()["requests"].take();
    let asked = requests.as_array().unwrap().iter().find(|request| request["request"] == *label).unwrap().clone();
    let code = asked["code"].as_str().unwrap().to_owned();
    let ticked = scopes.iter().map(|scope| (scope.as_str(), "on".to_owned()));
    let sent = ticked.chain([("request", id), ("code", code), ("decision", "approve".into())]).collect();
    let cookie = page.header("set-cookie").split(';').next().unwrap().to_owned();
    let origin = format!("http://{host}");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let headers = [form, ("host", &*host), ("cookie", &*cookie), ("origin", &*origin)];
    let answer =
        Connection::to(server.address, None).request("POST", "/oauth/authorize", &headers, encoded(&sent).as_bytes());
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.header("location").parse().unwrap()
}

/// Goes where the browser is sent, and reads what is there.
pub fn follow(url: &Url) -> String {
    let mut stream = TcpStream::connect(url.socket_addrs(|| None).unwrap()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", url.authority()).unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    heard
}

/// Logs in to a server, with these scopes.
pub fn log_in(world: &World, owner: &World, server: &Server, args: &[&str], scopes: &[Scope]) -> Ran {
    let login = Login::start(world, args, &[]);
    let redirect = consent(owner, server, &login.url, scopes);
    assert_eq!(query(redirect.as_str())["state"], query(login.url.as_str())["state"]);
    assert!(follow(&redirect).starts_with("HTTP/1.1 200"));
    let ran = login.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran
}
