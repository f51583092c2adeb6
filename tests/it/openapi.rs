//! The description of the REST interface: that it says what there is, and that what is answered is as it says.

use crate::http_client::{Response, Server, token};
use crate::mcp_client::LEGACY;
use crate::world::{NO_PID, World};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const SCOPES: [&str; 5] = ["status:read", "roster:write", "clients:read", "grants:revoke", "metrics:read"];

fn document(server: &Server) -> Value {
    let mut anybody = crate::http_client::Connection::to(server.address, None);
    let answer = anybody.get("/openapi.json");
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    answer.json()
}

/// What is wrong with a value by its schema; every keyword that is used there is known here.
fn check(document: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        return assert_eq!(schema, &Value::Bool(true), "{at}");
    };
    for (keyword, wanted) in schema {
        let fails = |schema: &Value| {
            let mut found = Vec::new();
            check(document, schema, value, at, &mut found);
            !found.is_empty()
        };
        let holds = match keyword.as_str() {
            "description" | "default" | "title" | "format" => true,
            "$ref" => !fails(document.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap()),
            "type" => wanted.as_array().unwrap_or(&vec![wanted.clone()]).iter().any(|kind| is_a(kind, value)),
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => wanted == value,
            "anyOf" => wanted.as_array().unwrap().iter().any(|one| !fails(one)),
            "oneOf" => wanted.as_array().unwrap().iter().filter(|one| !fails(one)).count() == 1,
            "pattern" => value.as_str().is_none_or(|text| Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text)),
            "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap()),
            "required" => wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    match wanted.get(name) {
                        Some(schema) => check(document, schema, member, &format!("{at}/{name}"), wrong),
                        // Nothing is answered that is not described.
                        None => wrong.push(format!("{at}: there is no member {name}")),
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, member) in value.as_object().into_iter().flatten() {
                    if known.is_none_or(|known| !known.contains_key(name)) {
                        check(document, wanted, member, &format!("{at}/{name}"), wrong);
                    }
                }
                true
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.for_each(|(n, item)| check(document, wanted, item, &format!("{at}/{n}"), wrong));
                true
            }
            other => panic!("{at}: the keyword {other} is not known"),
        };
        if !holds {
            wrong.push(format!("{at}: {keyword} {wanted} is not so for {value}"));
        }
    }
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

/// That an answer is one of those that the operation describes.
fn is_described(document: &Value, path: &str, method: &str, answer: &Response) {
    let operation = &document["paths"][path][method];
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{method} {path}: {} is not described: {}", answer.status, answer.text());
    let Some(content) = response["content"].as_object() else {
        return assert!(answer.body.is_empty(), "{method} {path} {}", answer.status);
    };
    let described = content.get(answer.header("content-type"));
    let described = described.unwrap_or_else(|| panic!("{method} {path}: {answer:#?} is not among {content:#?}"));
    if answer.header("content-type").ends_with("json") {
        let mut wrong = Vec::new();
        check(document, &described["schema"], &answer.json(), path, &mut wrong);
        assert_eq!(wrong, Vec::<String>::new(), "{method} {path} {}", answer.status);
    }
}

#[test]
fn what_is_described_is_there_and_nothing_else_can_be_done() {
    let world = World::new();
    let all = token(&world, "all", &SCOPES);
    let server = Server::start(&world, &[]);
    let document = document(&server);
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let address = path.replace("{id}", "none");
        let mut can: BTreeSet<String> = operations.as_object().unwrap().keys().map(|m| m.to_uppercase()).collect();
        if can.contains("GET") {
            can.insert("HEAD".to_owned());
        }
        for (method, operation) in operations.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}");
            let answer = server.connect(&all).request(&method.to_uppercase(), &address, &[], b"");
            assert!(answer.status != 405 && !answer.text().contains("no such address"), "{method} {path}: {answer:#?}");
            is_described(&document, path, method, &answer);
            // Without a token there is nothing but what needs none.
            let mut anybody = crate::http_client::Connection::to(server.address, None);
            let status = anybody.request(&method.to_uppercase(), &address, &[], b"").status;
            assert_eq!(status == 401, operation["security"] != json!([]), "{method} {path}: {status}");
        }
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            if can.contains(method) {
                continue;
            }
            let answer = server.connect(&all).request(method, &address, &[], b"");
            assert_eq!(answer.status, if method == "OPTIONS" { 204 } else { 405 }, "{method} {path}");
            let allowed: BTreeSet<String> = answer.header("allow").split(',').map(str::to_owned).collect();
            assert_eq!(allowed, can, "{method} {path}");
            assert_eq!(answer.status == 405, answer.header("content-type") == "application/problem+json");
        }
    }
    let text = document.to_string();
    for part in text.split("\"$ref\":\"#").skip(1) {
        let pointer = part.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
}

#[test]
fn what_is_answered_is_as_it_is_described() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id()), ("two", NO_PID)]);
    let all = token(&world, "all", &SCOPES);
    let none = token(&world, "none", &["roster:write"]);
    let server = Server::start(&world, &[&roster]);
    let document = document(&server);
    let mut connection = server.connect(&all);
    connection.initialize(LEGACY[3]);
    connection.structured("list_sessions", json!({}));
    let client = connection.get("/v1/mcp/sessions").json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    let grants = connection.get("/v1/grants").json()["grants"].take();
    let grant = grants.as_array().unwrap().iter().find(|grant| grant["name"] == "none").unwrap()["id"].clone();
    let grant = grant.as_str().unwrap();
    for (path, address, status) in [
        ("/v1/sessions", "/v1/sessions".to_owned(), 200),
        ("/v1/sessions", "/v1/sessions?x=1".to_owned(), 400),
        ("/v1/sessions/{id}/status", "/v1/sessions/shop/status".to_owned(), 200),
        ("/v1/sessions/{id}/status", "/v1/sessions/shop/status?limit=1&include_metrics=false".to_owned(), 200),
        ("/v1/sessions/{id}/status", "/v1/sessions/shop/status?include_health=false&only=idle".to_owned(), 200),
        ("/v1/sessions/{id}/status", "/v1/sessions/shop/status?include_metrics&include_health".to_owned(), 200),
        ("/v1/sessions/{id}/status", "/v1/sessions/shop/status?limit=0".to_owned(), 400),
        ("/v1/sessions/{id}/status", "/v1/sessions/none/status".to_owned(), 404),
        ("/v1/mcp/sessions", "/v1/mcp/sessions?state=all&limit=1".to_owned(), 200),
        ("/v1/mcp/sessions", "/v1/mcp/sessions?cursor=x".to_owned(), 400),
        ("/v1/mcp/sessions/{id}", format!("/v1/mcp/sessions/{client}"), 200),
        ("/v1/mcp/sessions/{id}", "/v1/mcp/sessions/none".to_owned(), 404),
        ("/v1/grants", "/v1/grants?all=true".to_owned(), 200),
        ("/v1/grants", "/v1/grants?all".to_owned(), 200),
        ("/v1/grants", "/v1/grants?all=x".to_owned(), 400),
        ("/metrics", "/metrics".to_owned(), 200),
        ("/metrics", "/metrics?x=1".to_owned(), 400),
        ("/healthz", "/healthz?x=1".to_owned(), 400),
        ("/healthz", "/healthz".to_owned(), 200),
        ("/readyz", "/readyz".to_owned(), 200),
    ] {
        let answer = connection.get(&address);
        assert_eq!(answer.status, status, "{address}: {}", answer.text());
        is_described(&document, path, "get", &answer);
        for (token, status) in [(&*none, 403), ("hct_x", 401)] {
            let answer = server.connect(token).get(&address);
            if document["paths"][path]["get"]["security"] != json!([]) {
                assert_eq!(answer.status, status, "{address}: {}", answer.text());
            }
            is_described(&document, path, "get", &answer);
        }
        let head = |accept| {
            let mut connection = server.connect(&all);
            connection.send("HEAD", &address, &[("accept", accept)], b"");
            connection.head()
        };
        assert_eq!(head("*/*").status, status, "{address}");
        assert_eq!(head("image/png").status, 406, "{address}");
    }
    for status in [204, 204, 404] {
        let id = if status == 404 { "none" } else { grant };
        let answer = connection.request("DELETE", &format!("/v1/grants/{id}"), &[], b"");
        assert_eq!(answer.status, status, "{}", answer.text());
        is_described(&document, "/v1/grants/{id}", "delete", &answer);
    }
}

/// The ledger on the wire, member by member.
#[test]
fn a_client_on_the_wire_has_these_members_and_no_others() {
    let world = World::new();
    let all = token(&world, "all", &SCOPES);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&all);
    connection.initialize(LEGACY[3]);
    let page = connection.get("/v1/mcp/sessions").json();
    let names = |object: &Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(page.as_object().unwrap()), ["next_cursor", "sessions"]);
    let expected = "agents_registered calls_by_tool client_id client_name client_version connected_at ended ended_at ended_reason \
                    grant_id id last_activity_at protocol tool_calls tool_failures transport user_id";
    assert_eq!(names(page["sessions"][0].as_object().unwrap()), expected.split(' ').collect::<Vec<_>>());
}

#[test]
fn the_description_is_as_it_was() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    insta::assert_json_snapshot!(document(&server));
}

/// What is not ready is named, to whoever may not know more.
#[test]
fn a_server_that_is_not_ready_says_what_is_not() {
    let world = World::new();
    token(&world, "all", &SCOPES);
    let server = Server::start(&world, &[]);
    let document = document(&server);
    let mut anybody = crate::http_client::Connection::to(server.address, None);
    assert_eq!(anybody.get("/readyz").status, 200);
    std::fs::write(world.state().join("headcount.db"), [b'x'; 8192]).unwrap();
    let answer = anybody.get("/readyz");
    is_described(&document, "/readyz", "get", &answer);
    let problem = answer.json();
    assert_eq!((answer.status, &problem["not_ready"][0]["part"]), (503, &json!("database")), "{problem:#}");
    assert_eq!(problem["not_ready"].as_array().unwrap().len(), 1, "{problem:#}");
    assert!(!answer.text().contains("headcount.db"), "where it is concerns nobody outside");
    assert_eq!(anybody.get("/healthz").status, 200, "it lives");
}
