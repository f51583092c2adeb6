//! The page where the owner consents, and who cannot in the owner's place.

use crate::http_client::{Connection, Server};
use crate::oauth_client::{Client, REDIRECT, encoded, post, query, register, with};
use crate::world::World;
use headcount::auth::Scope;
use serde_json::json;
use std::io::{BufRead as _, BufReader};

#[test]
fn a_page_says_who_asks_for_what_and_runs_nothing() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let hostile = "\u{1b}]0;x\u{7}\"><script>alert(1)</script>\u{202e}{{7*7}} & \u{200b}Agent";
    let answer = register(&server, &json!({"client_name": hostile, "redirect_uris": [REDIRECT]}));
    let id = answer.json()["client_id"].as_str().unwrap().to_owned();
    let client = Client { world: &world, server: &server, id };
    let page = client.page("status:read grants:revoke");
    let text = page.answer.text();
    assert!(text.contains("&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;{{7*7}} &#38; Agent"), "{text}");
    assert!(!text.contains("<script") && !text.contains('\u{202e}') && !text.contains('\u{1b}'));
    for shown in ["127.0.0.1", "see your sessions", "revoke it", "status:read", "grants:revoke"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert!(!text.contains("roster:write"));
    let code = client.one_time_code(&page);
    assert!(!text.contains(&code) && !text.contains(&code.replace('-', "")), "it stands in the terminal alone");
    let policy = page.answer.header("content-security-policy");
    for rule in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self' http://127.0.0.1:4711", "sha256-"]
    {
        assert!(policy.contains(rule), "{policy}");
    }
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(page.answer.header(name), value);
    }
    let cookie = page.answer.header("set-cookie");
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    // In the terminal nothing acts either.
    let listed = world.run(&["grants", "requests"]);
    assert!(listed.stdout.contains(&code) && listed.stdout.contains("127.0.0.1"), "{listed:#?}");
    assert!(!listed.stdout.contains('\u{1b}') && !listed.stdout.contains('\u{202e}'), "{listed:#?}");
}

#[test]
fn nobody_is_sent_where_the_client_has_not_registered() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let asks = client.asks("status:read");
    for (name, value) in [
        ("client_id", "hci_0"),
        ("client_id", ""),
        ("client_id", "javascript:alert(1)"),
        ("redirect_uri", "https://evil.example/"),
        ("redirect_uri", "http://127.0.0.1:4711@evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:4711/callback/../x"),
        ("redirect_uri", "//evil.example"),
        ("redirect_uri", ""),
    ] {
        let answer = client.open(&with(&asks, name, value));
        assert_eq!((answer.status, answer.header("location")), (400, ""), "{name}={value}");
        assert!(answer.header("content-type").starts_with("text/html") && !answer.text().contains("evil"));
    }
    let twice = format!("/oauth/authorize?{}&redirect_uri={}", encoded(&asks), "https%3A%2F%2Fevil.example%2F");
    let answer = Connection::to(server.address, None).get(&twice);
    assert_eq!((answer.status, answer.header("location")), (400, ""));
    for (name, value, named) in [
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("scope", "everything", "invalid_scope"),
    ] {
        let answer = client.open(&with(&asks, name, value));
        let told = query(answer.header("location"));
        assert!(answer.status == 303 && answer.header("location").starts_with(REDIRECT), "{answer:#?}");
        assert_eq!((told["error"].as_str(), told["state"].as_str()), (named, "its state"));
        assert_eq!((told["iss"].as_str(), told.get("code")), ("http://localhost", None));
    }
    // A link to this server leads to no page in the web by itself, whoever has registered it.
    let web = register(&server, &json!({"redirect_uris": ["https://evil.example/cb"]})).json()["client_id"].clone();
    let asks = with(&with(&asks, "client_id", web.as_str().unwrap()), "redirect_uri", "https://evil.example/cb");
    let answer = client.open(&with(&asks, "scope", "everything"));
    assert_eq!((answer.status, answer.header("location")), (400, ""));
    assert!(answer.text().contains("href=\"https://evil.example/cb?error=invalid_scope"), "{}", answer.text());
    // Nor is the owner asked for what a page only embeds.
    let open = |to| {
        let path = format!("/oauth/authorize?{}", encoded(&client.asks("status:read")));
        Connection::to(server.address, None).request("GET", &path, &[("sec-fetch-dest", to)], b"").status
    };
    assert_eq!([open("image"), open("iframe"), open("empty")], [400; 3]);
    let path = format!("/oauth/authorize?{}", encoded(&client.asks("status:read")));
    Connection::to(server.address, None).send("HEAD", &path, &[], b"");
    assert_eq!(client.requests().len(), 0);
    assert_eq!(open("document"), 200);
}

#[test]
fn who_waits_in_the_terminal_hears_of_each_request() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let before = client.page("status:read");
    let mut watch = world.command(&["grants", "requests", "--watch"]).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let line = next();
    assert!(line.contains(&client.one_time_code(&before)) && line.contains("Agent"), "{line}");
    assert!(line.starts_with(&format!("{}: ", before.label)), "{line}");
    let after = client.page("status:read");
    let line = next();
    assert!(line.contains(&client.one_time_code(&after)) && line.contains(&after.label), "{line}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn the_owner_sends_requests_away_in_the_terminal() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let pages = [(); 3].map(|()| client.page("status:read"));
    let sent = pages.each_ref().map(|page| client.approves(page));
    let deny = |which: &str| {
        let ran = world.run(&["grants", "requests", "deny", which]);
        (ran.code, ran.stdout)
    };
    assert_eq!(deny(&pages[0].label), (Some(0), format!("denied: {}\n", pages[0].label)));
    assert_eq!(deny(&pages[0].label).0, Some(2), "it is gone");
    assert_eq!(world.run(&["grants", "requests", "deny"]).code, Some(64), "all are not meant by saying nothing");
    assert_eq!(client.requests().len(), 2);
    assert_eq!(client.answer(&pages[0], &sent[0]).status, 400);
    assert_eq!(client.answer(&pages[1], &sent[1]).status, 303, "the others are as they were");
    assert_eq!(deny("--all"), (Some(0), format!("denied: {}\n", pages[2].label)));
    assert_eq!(deny("--all"), (Some(0), String::new()));
    assert_eq!(client.answer(&pages[2], &sent[2]).status, 400);
}

#[test]
fn only_who_reads_the_owners_terminal_consents() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let (page, other) = (client.page("status:read"), client.page("status:read"));
    let sent = client.approves(&page);
    // Not from another page, not without the cookie, not with that of another request, not in an address.
    let status = |headers: &[(&str, &str)]| post(&server, "/oauth/authorize", headers, &encoded(&sent)).status;
    assert_eq!(status(&[]), 400);
    assert_eq!(status(&[("cookie", &other.cookie)]), 400);
    assert_eq!(status(&[("cookie", &format!("{}x", page.cookie))]), 400);
    for origin in ["https://evil.example", "null", "http://localhost:1", "https://localhost"] {
        assert_eq!(status(&[("cookie", &page.cookie), ("origin", origin)]), 403, "{origin}");
    }
    assert_eq!(status(&[("cookie", &page.cookie), ("content-type", "text/plain")]), 400);
    let in_address = format!("/oauth/authorize?{}", encoded(&sent));
    assert_eq!(post(&server, &in_address, &[("cookie", &page.cookie)], &encoded(&sent)).status, 400);
    // Wrong codes: that of another request among them. None at all costs no try.
    for (typed, left) in [
        ("", "The code is missing"),
        ("w", "There are 4 more tries."),
        (&*client.one_time_code(&other), "are 3 more"),
        ("x", "are 2 more"),
        ("y", "There is one more try."),
    ] {
        let answer = client.answer(&page, &with(&sent, "code", typed));
        assert!(answer.status == 403 && answer.text().contains(left), "{}", answer.text());
    }
    let last = client.answer(&page, &with(&sent, "code", "z"));
    assert_eq!((last.status, query(last.header("location"))["error"].as_str()), (303, "access_denied"));
    assert_eq!(client.answer(&page, &sent).status, 400, "the right one comes too late");
    // Denied, and not consented to in the second place.
    let denied = client.answer(&other, &with(&client.approves(&other), "decision", "deny"));
    assert_eq!((denied.status, query(denied.header("location"))["error"].as_str()), (303, "access_denied"));
    assert!(client.requests().is_empty());
    assert_eq!(world.run(&["grants", "list", "--json"]).json()["grants"], json!([]));
}

#[test]
fn the_owner_may_consent_to_less() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let page = client.page("status:read clients:read");
    // What was not asked for is not given, whatever the form says.
    let sent = with(&client.approves(&page), "clients:read", "");
    let answer = client.answer(&page, &sent);
    let tokens = client.token(&client.redeems(&query(answer.header("location"))["code"])).json();
    assert_eq!(tokens["scope"], "status:read");
}

#[test]
fn what_was_chosen_stays_chosen_until_the_code_is_right() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let page = client.page("status:read clients:read grants:revoke");
    let ticked = |text: &str| {
        let boxes = text.split("<input type=\"checkbox\" name=\"").skip(1);
        let ticked = boxes.filter(|one| one.split('>').next().unwrap().ends_with(" checked"));
        ticked.map(|one| one.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ticked(&page.answer.text()), ["status:read", "clients:read"], "no power over grants by itself");
    let less = with(&with(&client.approves(&page), "clients:read", ""), "grants:revoke", "");
    let again = client.answer(&page, &with(&less, "code", "wrong"));
    assert_eq!((again.status, ticked(&again.text())), (403, vec!["status:read".to_owned()]));
    let other = with(&with(&less, "status:read", ""), "grants:revoke", "on");
    assert_eq!(ticked(&client.answer(&page, &with(&other, "code", "")).text()), ["grants:revoke"]);
    // Nothing is no answer: it is asked again, and no try is gone.
    let nothing = Scope::ALL.iter().fold(less.clone(), |sent, scope| with(&sent, scope.as_str(), ""));
    let again = client.answer(&page, &nothing);
    assert!(again.status == 403 && again.text().contains("Tick what the client may do"), "{}", again.text());
    assert!(ticked(&again.text()).is_empty());
    assert!(client.answer(&page, &with(&less, "code", "wrong")).text().contains("are 3 more tries"));
    assert_eq!(client.answer(&page, &less).status, 303);
}
