//! HTTPS: who is understood, what is none, and certificates that are renewed.

use crate::http_client::{Connection, Server, socket, token};
use crate::mcp_client::{LEGACY, MODERN};
use crate::world::{PATIENCE, World, ended, until};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

/// Bytes of a message that says why a connection is closed.
const ALERT: usize = 7;

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A certificate with its key, in files.
pub struct Issued {
    certificate: PathBuf,
    key: PathBuf,
    trusted: CertificateDer<'static>,
}

impl Issued {
    pub fn new(world: &World) -> Self {
        Self::until(world, 2099)
    }

    fn until(world: &World, year: i32) -> Self {
        let (params, key) = certificate(year);
        let issued = params.self_signed(&key).unwrap();
        let files = (world.path("cert.pem"), world.path("key.pem"));
        put(&files.0, &issued.pem());
        put(&files.1, &key.serialize_pem());
        Self { certificate: files.0, key: files.1, trusted: issued.der().clone() }
    }

    pub fn args(&self) -> [&str; 4] {
        ["--tls-cert", self.certificate.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    /// A socket to a server on which nothing has been said yet, or why there can be none.
    fn client(&self, server: &Server, versions: &[&'static SupportedProtocolVersion], alpn: &[&str]) -> TlsStream {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config.with_protocol_versions(versions).unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(client, socket(server.address))
    }

    /// A connection whose handshake is over.
    fn connect(&self, server: &Server, token: Option<&str>) -> Result<Connection, std::io::Error> {
        let mut stream = self.client(server, &[&TLS12, &TLS13], &[]);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Connection::over(stream, token))
    }
}

fn certificate(until: i32) -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    (params, KeyPair::generate().unwrap())
}

/// Puts a file there as a whole, for its owner alone.
fn put(file: &Path, content: &str) {
    let new = file.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&new, file).unwrap();
}

/// What a client that has begun sends first.
fn hello(issued: &Issued, server: &Server) -> Vec<u8> {
    let mut client = issued.client(server, &[&TLS12, &TLS13], &[]);
    let mut hello = Vec::new();
    client.conn.write_tls(&mut hello).unwrap();
    hello
}

/// What a server says until it goes. What it has said last may be lost with the connection.
fn last_words(mut stream: impl Read) -> Vec<u8> {
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    said
}

#[test]
fn mcp_and_rest_are_served_in_both_versions_of_tls() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let (issued, socket) = (Issued::new(&world), world.path("socket"));
    let args = [&issued.args()[..], &["--unix", socket.to_str().unwrap()]].concat();
    let server = Server::start_with(&world, &[], &args, &[]);
    for (version, spoken) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        for alpn in [&[][..], &["h2", "http/1.1"]] {
            let mut stream = issued.client(&server, &[version], alpn);
            stream.conn.complete_io(&mut stream.sock).unwrap();
            assert_eq!(stream.conn.protocol_version(), Some(spoken));
            assert_eq!(stream.conn.alpn_protocol(), alpn.last().map(|name| name.as_bytes()));
            let mut connection = Connection::over(stream, Some(&good));
            assert_eq!(connection.get("/v1/sessions").status, 200);
            assert_eq!(connection.ask("tools/list", json!({})).status, 200, "{MODERN}");
            assert_eq!(connection.initialize(LEGACY[3]).status, 200);
            let big = " ".repeat(4 << 20);
            assert_eq!(connection.post(&[], &big).status, 400, "large bodies come through");
            assert_eq!(connection.get("/healthz").text(), "ok\n");
        }
    }
    let mut no_http = issued.client(&server, &[&TLS13], &["h2"]);
    assert!(no_http.conn.complete_io(&mut no_http.sock).is_err(), "there is no HTTP/2");
    assert_eq!(issued.connect(&server, None).unwrap().get("/v1/sessions").status, 401);
    // What others on this machine cannot read is not encrypted.
    let plain = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    assert_eq!(Connection::over(plain, Some(&good)).get("/v1/sessions").status, 200);
    let (code, log) = server.terminate(PATIENCE);
    assert!(code == Some(0) && log.contains("serves MCP at https://127.0.0.1:"), "{log}");
}

#[test]
fn a_renewed_certificate_is_shown_to_whoever_comes_next() {
    let world = World::new();
    let old = Issued::new(&world);
    let server = Server::start_with(&world, &[], &old.args(), &[]);
    let mut stays = old.connect(&server, None).unwrap();
    assert_eq!(stays.get("/healthz").status, 200);
    // It is written in steps, and between them nothing fits.
    let (params, key) = certificate(2099);
    let new = params.self_signed(&key).unwrap();
    fs::write(&old.certificate, &new.pem()[..100]).unwrap();
    until("half a file is told", || server.log().contains("no whole certificate"));
    assert!(old.connect(&server, None).is_ok(), "and changes nothing");
    put(&old.certificate, &new.pem());
    put(&old.key, &key.serialize_pem());
    let new = Issued { certificate: old.certificate.clone(), key: old.key.clone(), trusted: new.der().clone() };
    until("the new one is shown", || new.connect(&server, None).is_ok());
    assert!(old.connect(&server, None).is_err());
    assert_eq!(stays.get("/healthz").status, 200, "who was there is not disturbed");
    until("so it is said", || server.log().contains("the new certificate is in use now"));
    let (code, log) = server.terminate(PATIENCE);
    assert!(code == Some(0) && log.contains("stays in use: ") && log.contains("cert.pem"), "{log}");
    assert!(!log.contains("BEGIN"), "{log}");
}

#[test]
fn who_does_not_finish_a_handshake_is_left_and_holds_nobody_up() {
    let world = World::new();
    let issued = Issued::new(&world);
    let server = Server::start_with(&world, &[], &issued.args(), &[]);
    let hello = hello(&issued, &server);
    let begun = Instant::now();
    let says = |bytes: &[u8]| {
        let mut stream = socket(server.address);
        stream.write_all(bytes).unwrap();
        stream
    };
    let silent: Vec<TcpStream> = [&[][..], &hello[..1], &hello[..40], &hello].into_iter().map(says).collect();
    // Those who leave in the midst of it.
    for part in [1, 40, hello.len()] {
        says(&hello[..part]).shutdown(Shutdown::Both).unwrap();
    }
    // What is no TLS at all.
    for other in [&b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"[..], &[0xff; 64], &[0x16; 64]] {
        assert!(last_words(says(other)).len() <= ALERT, "{other:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "what is no handshake is not waited for: {:?}", begun.elapsed());
    // One that is cut off after the handshake, in the midst of a record.
    let mut cut = issued.client(&server, &[&TLS13], &[]);
    cut.conn.complete_io(&mut cut.sock).unwrap();
    cut.conn.writer().write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut record = Vec::new();
    cut.conn.write_tls(&mut record).unwrap();
    cut.sock.write_all(&record[..record.len() / 2]).unwrap();
    cut.sock.shutdown(Shutdown::Write).unwrap();
    assert!(last_words(cut).is_empty(), "half a request is no request");
    assert_eq!(issued.connect(&server, None).unwrap().get("/healthz").status, 200);
    for stream in silent {
        last_words(stream);
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(issued.connect(&server, None).unwrap().get("/healthz").status, 200);
}

#[test]
fn a_flood_of_handshakes_takes_no_more_than_all_connections_may() {
    let world = World::new();
    let issued = Issued::new(&world);
    // As many files as leave room for 44 connections.
    let mut command = world.command(&[]);
    let serve = ["-c", "ulimit -n 300 && exec \"$@\"", "sh", crate::world::HEADCOUNT, "serve", "--http", "127.0.0.1:0"];
    let program = std::mem::replace(&mut command, Command::new("/bin/sh"));
    command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .args(serve)
        .args(issued.args())
        .env_clear()
        .envs(program.get_envs().filter_map(|(n, v)| Some((n, v?))));
    let server = Server::spawn(command);
    let open = || fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    assert_eq!(issued.connect(&server, None).unwrap().get("/healthz").status, 200);
    let (before, hello) = (open(), hello(&issued, &server));
    let flood: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = socket(server.address);
            // One that is too many is closed before it has said anything.
            let _ = stream.write_all(&hello[..40]);
            stream
        })
        .collect();
    assert!(issued.connect(&server, None).is_err(), "all places are taken");
    assert!(open() <= before + 60, "{} files, before {before}", open());
    drop(flood);
    until("there is room again", || issued.connect(&server, None).is_ok());
}

#[test]
fn other_machines_may_come_where_there_is_tls() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let issued = Issued::new(&world);
    let mut command = world.command(&["serve", "--http", "0.0.0.0:0"]);
    command.args(issued.args());
    let mut server = Server::spawn(command);
    server.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(issued.connect(&server, Some(&good)).unwrap().get("/v1/sessions").status, 200);
}

#[test]
fn files_of_no_use_are_told_at_the_start() {
    let world = World::new();
    let issued = Issued::new(&world);
    let serve = |args: &[&str]| world.run(&[&["serve", "--http", "127.0.0.1:0"], args].concat());
    let [cert, cert_file, key, key_file] = issued.args();
    for half in [&[cert, cert_file][..], &[key, key_file]] {
        assert_eq!(serve(half).code, Some(64), "{half:?}");
    }
    let only_unix = world.run(&["serve", "--unix", "socket", cert, cert_file, key, key_file]);
    assert_eq!(only_unix.code, Some(64), "{only_unix:#?}");
    let refused = serve(&[cert, key_file, key, key_file]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains(key_file), "{refused:#?}");
    fs::set_permissions(key_file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = serve(&issued.args());
    assert!(refused.code == Some(2) && refused.stderr.contains("chmod"), "{refused:#?}");
    assert!(refused.stderr.contains(key_file), "{refused:#?}");
}

#[test]
fn a_certificate_that_has_expired_is_told_and_used() {
    let world = World::new();
    let issued = Issued::until(&world, 2021);
    let mut command = world.command(&["serve", "--http", "127.0.0.1:0"]);
    let mut child = command.args(issued.args()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    while !said.contains("serves MCP at https://") {
        let mut some = [0; 1024];
        let length = stderr.read(&mut some).unwrap();
        assert!(length > 0, "{said}");
        said += std::str::from_utf8(&some[..length]).unwrap();
    }
    assert!(said.contains("it has expired at 2021-01-01T00:00:00.000Z"), "{said}");
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(ended(&mut child, PATIENCE), Some(0));
}
