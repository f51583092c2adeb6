//! What the service manager is told of a server.

use crate::http_client::{Server, token};
use crate::http_tls::Issued;
use crate::world::{PATIENCE, World};
use serde_json::json;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;

/// One who has started a server and wants to be told.
struct Manager(UnixDatagram);

impl Manager {
    fn new(world: &World) -> Self {
        let socket = UnixDatagram::bind(world.path("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// A server that it has started, with these variables beside.
    fn start(&self, world: &World, args: &[&str], variables: &[(&str, &str)]) -> Server {
        let socket = world.path("notify");
        let variables = [&[("NOTIFY_SOCKET", socket.to_str().unwrap())], variables].concat();
        Server::start_with(world, &[], args, &variables)
    }

    /// The next message, line by line.
    fn told(&self) -> Vec<String> {
        let mut message = [0; 4096];
        let length = self.0.recv(&mut message).unwrap();
        std::str::from_utf8(&message[..length]).unwrap().lines().map(str::to_owned).collect()
    }

    /// What else was said.
    fn rest(&self) -> Vec<Vec<String>> {
        self.0.set_nonblocking(true).unwrap();
        let mut rest = Vec::new();
        let mut message = [0; 4096];
        loop {
            match self.0.recv(&mut message) {
                Ok(length) => {
                    rest.push(String::from_utf8_lossy(&message[..length]).lines().map(str::to_owned).collect());
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return rest;
                }
            }
        }
    }
}

#[test]
fn the_service_manager_hears_of_beginning_and_end() {
    let world = World::new();
    let manager = Manager::new(&world);
    let server = manager.start(&world, &[], &[]);
    let status = format!("STATUS=serves MCP and REST at http://{}", server.address);
    assert_eq!(manager.told(), ["READY=1", &status]);
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
    assert_eq!(manager.told(), ["STOPPING=1"]);
    assert_eq!(manager.rest(), Vec::<Vec<String>>::new(), "nobody watches it, and nothing was new");
}

#[test]
fn the_service_manager_hears_of_a_new_certificate() {
    let world = World::new();
    let manager = Manager::new(&world);
    let server = manager.start(&world, &Issued::new(&world).args(), &[]);
    assert_eq!(manager.told()[1], format!("STATUS=serves MCP and REST at https://{}", server.address));
    Issued::new(&world);
    let told = manager.told();
    assert_eq!(told[0], "RELOADING=1");
    assert!(told[1].strip_prefix("MONOTONIC_USEC=").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(manager.told(), ["READY=1"]);
}

#[test]
fn a_server_that_is_watched_says_that_it_lives() {
    let world = World::new();
    let manager = Manager::new(&world);
    let server = manager.start(&world, &[], &[("WATCHDOG_USEC", "200000")]);
    assert_eq!(manager.told()[0], "READY=1");
    for _ in 0..5 {
        assert_eq!(manager.told(), ["WATCHDOG=1"]);
    }
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
    assert_eq!(manager.rest().last().unwrap(), &["STOPPING=1"]);
    let server = manager.start(&world, &[], &[("WATCHDOG_USEC", "200000"), ("WATCHDOG_PID", "1")]);
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
    assert!(manager.rest().iter().flatten().all(|told| told != "WATCHDOG=1"), "another process is watched");
}

#[test]
fn a_service_manager_that_has_gone_keeps_nobody_from_being_served() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let manager = Manager::new(&world);
    drop(manager.0);
    let gone = world.path("notify");
    let variables = [("NOTIFY_SOCKET", gone.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    let server = Server::start_with(&world, &[], &[], &variables);
    assert_eq!(server.connect(&good).ask("tools/list", json!({})).status, 200);
    let (code, log) = server.terminate(PATIENCE);
    assert!(code == Some(0) && log.contains("the service manager cannot be told"), "{log}");
}
