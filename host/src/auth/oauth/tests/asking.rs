//! Clients that ask, and the owner's answers.

use super::*;

#[test]
fn until_it_is_sure_where_the_answer_goes_nothing_is_sent_anywhere() {
    let home = Home::new();
    for (name, value) in [
        ("redirect_uri", ""),
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:1234/callback2"),
        ("redirect_uri", "http://127.0.0.1:1234/callback?a=b"),
        ("redirect_uri", "http://localhost:1234/callback"),
        ("state", &"x".repeat(5000)),
    ] {
        let refused = home.begin(&with(&home.asks(), name, value)).unwrap_err();
        assert!(matches!(refused, Refused::ToUser(_)), "{name}={value}: {refused:?}");
    }
    assert!(home.begin(&with(&home.asks(), "redirect_uri", "http://127.0.0.1:9/callback")).is_ok(), "any port");
    assert_eq!(home.server.registered("hci_00").unwrap_err().code, ErrorCode::InvalidClient);
}

#[test]
fn what_cannot_be_granted_the_client_is_told() {
    let home = Home::new();
    for (name, value, code) in [
        ("response_type", "", ErrorCode::InvalidRequest),
        ("response_type", "token", ErrorCode::UnsupportedResponseType),
        ("response_mode", "fragment", ErrorCode::InvalidRequest),
        ("code_challenge", "", ErrorCode::InvalidRequest),
        ("code_challenge_method", "plain", ErrorCode::InvalidRequest),
        ("code_challenge_method", "", ErrorCode::InvalidRequest),
        ("resource", "http://localhost:7878/other", ErrorCode::InvalidTarget),
        ("resource", "https://agents.example/mcp", ErrorCode::InvalidTarget),
        ("scope", "openid profile", ErrorCode::InvalidScope),
    ] {
        let Err(Refused::ToClient(error, redirect)) = home.begin(&with(&home.asks(), name, value)) else {
            panic!("{name}={value} is refused, and the client is told");
        };
        assert_eq!(error.code, code, "{name}={value}");
        let says = says(&redirect);
        assert_eq!((says["error"].as_str(), says["state"].as_str()), (code.as_str(), "its state"));
        assert_eq!(says["iss"], home.issuer.as_str());
        assert!(redirect.to_string().starts_with(REDIRECT), "{redirect}");
    }
    assert!(home.store.requests(&(0..=u64::MAX >> 1)).unwrap().is_empty(), "nothing waits for it");
}

#[test]
fn a_client_that_names_no_scope_gets_the_least() {
    let home = Home::new();
    assert_eq!(home.begin(&with(&home.asks(), "scope", "")).unwrap().request.scopes, "status:read");
    let some = with(&home.asks(), "scope", "offline_access clients:read");
    assert_eq!(home.begin(&some).unwrap().request.scopes, "clients:read");
    let none = with(&home.asks(), "resource", "");
    assert_eq!(home.begin(&none).unwrap().request.resource, home.issuer.resource());
}

#[test]
fn only_the_code_of_the_owners_terminal_consents_and_five_may_be_tried() {
    let home = Home::new();
    let begun = home.begin(&home.asks()).unwrap();
    let other = home.begin(&home.asks()).unwrap();
    let right = &begun.request.user_code;
    assert_eq!(requests(&home.store, &*home.clock).unwrap().requests.len(), 2);
    for (typed, scopes, expected) in [
        ("", "status:read", Flaw::NoCode),
        (" - ", "status:read", Flaw::NoCode),
        (right, "", Flaw::NothingChosen),
        (right, "grants:revoke", Flaw::NothingChosen),
        ("BCDF-GHJK", "status:read", Flaw::WrongCode { left: 4 }),
        (&other.request.user_code, "status:read", Flaw::WrongCode { left: 3 }),
    ] {
        let answered = home.answer(&begun.id, typed, scopes).unwrap();
        assert!(matches!(answered, Answered::Again(_, flaw) if flaw == expected), "{answered:?}");
    }
    // Lower case and without its hyphen.
    let typed = right.to_lowercase().replace('-', "");
    assert!(matches!(home.answer(&begun.id, &typed, "status:read"), Ok(Answered::Granted(_))));
    home.pass(10);
    assert!(matches!(home.answer(&begun.id, right, "status:read"), Err(Refused::ToUser(_))), "once");
    for _ in 0..4 {
        assert!(matches!(home.answer(&other.id, "x", "status:read"), Ok(Answered::Again(_, Flaw::WrongCode { .. }))));
    }
    let Err(Refused::ToClient(error, _)) = home.answer(&other.id, "x", "status:read") else { panic!("it is over") };
    assert_eq!(error.code, ErrorCode::AccessDenied);
    assert!(matches!(home.answer(&other.id, &other.request.user_code, "status:read"), Err(Refused::ToUser(_))));
}

#[test]
fn the_owner_consents_to_as_much_as_was_asked_at_most() {
    let home = Home::new();
    let consented = |scopes| {
        let begun = home.begin(&home.asks()).unwrap();
        match home.answer(&begun.id, &begun.request.user_code, scopes) {
            Ok(Answered::Granted(to)) => names(&home.token(&home.redeems(&says(&to)["code"])).unwrap().scopes),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(consented("clients:read"), "clients:read");
    assert_eq!(consented("status:read grants:revoke"), "status:read");
}

#[test]
fn power_over_other_grants_is_chosen_on_purpose() {
    let home = Home::new();
    let suggested = |scope| {
        let begun = home.begin(&with(&home.asks(), "scope", scope)).unwrap();
        names(&AuthorizationServer::suggested(&begun.request))
    };
    assert_eq!(suggested("status:read grants:revoke metrics:read"), "status:read metrics:read");
    assert_eq!(suggested("grants:revoke"), "grants:revoke");
}

#[test]
fn who_is_denied_is_told_so_and_the_request_is_over() {
    let home = Home::new();
    let begun = home.begin(&home.asks()).unwrap();
    let Err(Refused::ToClient(_, redirect)) = home.server.deny(&begun.id, &home.issuer) else { panic!("denied") };
    assert_eq!((says(&redirect)["error"].as_str(), says(&redirect)["state"].as_str()), ("access_denied", "its state"));
    assert!(matches!(home.server.deny(&begun.id, &home.issuer), Err(Refused::ToUser(_))));
    assert!(matches!(home.answer(&begun.id, &begun.request.user_code, "status:read"), Err(Refused::ToUser(_))));
}

#[test]
fn a_request_waits_for_ten_minutes() {
    let home = Home::new();
    let (first, second) = (home.begin(&home.asks()).unwrap(), home.begin(&home.asks()).unwrap());
    home.pass(600);
    assert!(matches!(home.answer(&first.id, &first.request.user_code, "status:read"), Ok(Answered::Granted(_))));
    home.clock.advance(Duration::from_millis(1));
    assert!(matches!(home.answer(&second.id, &second.request.user_code, "status:read"), Err(Refused::ToUser(_))));
    assert!(requests(&home.store, &*home.clock).unwrap().requests.is_empty());
}

#[test]
fn a_flood_of_requests_blocks_nobody_elses() {
    let home = Home::new();
    let other = home.server.register(metadata("other", &[REDIRECT])).unwrap();
    let begin = || home.server.begin(&other, &params(&home.asks()), &home.issuer).unwrap();
    let flood = |n| (0..n).for_each(|_| drop(home.begin(&home.asks()).unwrap()));
    flood(20);
    let early = begin();
    flood(100);
    let late = begin();
    flood(100);
    assert_eq!(home.store.requests(&(0..=u64::MAX >> 1)).unwrap().len(), 32);
    for mine in [early, late] {
        assert!(matches!(home.answer(&mine.id, &mine.request.user_code, "status:read"), Ok(Answered::Granted(_))));
    }
}

#[test]
fn the_owner_sends_requests_away_unseen() {
    let home = Home::new();
    let begun = [(); 3].map(|()| home.begin(&home.asks()).unwrap());
    let labels = || requests(&home.store, &*home.clock).unwrap().requests.into_iter().map(|row| row.request);
    let first = labels().next().unwrap();
    let gone = deny(&home.store, &*home.clock, |row| row.request == first).unwrap();
    assert_eq!((gone.len(), &gone[0].request, labels().count()), (1, &first, 2));
    assert!(labels().all(|label| label != first));
    assert_eq!(deny(&home.store, &*home.clock, |_| true).unwrap().len(), 2);
    for Begun { id, request } in begun {
        assert!(matches!(home.answer(&id, &request.user_code, "status:read"), Err(Refused::ToUser(_))));
    }
}

#[test]
fn a_flood_of_registrations_drives_out_nobody_who_was_consented_to() {
    let home = Home::new();
    let waiting = home.code();
    let used = home.server.register(metadata("used", &[REDIRECT])).unwrap();
    let begun = home.server.begin(&used, &params(&home.asks()), &home.issuer).unwrap();
    let Ok(Answered::Granted(to)) = home.answer(&begun.id, &begun.request.user_code, "status:read") else { panic!() };
    home.token(&with(&home.redeems(&says(&to)["code"]), "client_id", &used.id)).unwrap();
    let asking = home.server.register(metadata("asking", &[REDIRECT])).unwrap();
    home.server.begin(&asking, &params(&with(&home.asks(), "client_id", &asking.id)), &home.issuer).unwrap();
    let first = home.server.register(metadata("first", &[REDIRECT])).unwrap();
    for n in 0..200 {
        home.clock.advance(Duration::from_millis(1));
        let client = home.server.register(metadata(&format!("flood {n}"), &[REDIRECT])).unwrap();
        assert!(home.server.registered(&client.id).is_ok());
    }
    assert!(home.server.registered(&first.id).is_err(), "the oldest make room");
    assert!(home.server.registered(&used.id).is_ok());
    assert!(home.server.registered(&asking.id).is_ok(), "its owner may be looking at the page");
    assert!(home.token(&home.redeems(&waiting)).is_ok(), "nor who has a code");
}

#[test]
fn a_client_registers_with_what_it_can_be() {
    let home = Home::new();
    let register = |value: serde_json::Value| home.server.register(serde_json::from_value(value).unwrap());
    let base = || serde_json::json!({"redirect_uris": [REDIRECT], "client_name": "\u{1b}[31m<b>\u{202e}x</b>\n"});
    assert_eq!(register(base()).unwrap().name.as_deref(), Some("<b>x</b>"));
    let many: Vec<String> = (0..17).map(|n| format!("https://agents.example/{n}")).collect();
    for (name, value, code) in [
        ("redirect_uris", serde_json::json!([]), ErrorCode::InvalidRedirectUri),
        ("redirect_uris", serde_json::json!(many), ErrorCode::InvalidRedirectUri),
        ("redirect_uris", serde_json::json!([REDIRECT, "javascript:alert(1)"]), ErrorCode::InvalidRedirectUri),
        ("grant_types", serde_json::json!(["implicit"]), ErrorCode::InvalidClientMetadata),
        ("response_types", serde_json::json!(["token"]), ErrorCode::InvalidClientMetadata),
    ] {
        let mut bad = base();
        bad[name] = value;
        assert_eq!(register(bad.clone()).unwrap_err().code, code, "{bad}");
    }
    let mut blank = base();
    blank["client_name"] = "\u{200b} ".into();
    assert_eq!(register(blank).unwrap().name, None);
}

#[test]
fn who_consents_twice_at_once_is_sent_to_the_same_place() {
    let home = Home::new();
    let begun = home.begin(&home.asks()).unwrap();
    let consent = || match home.answer(&begun.id, &begun.request.user_code, "status:read") {
        Ok(Answered::Granted(redirect)) => Some(redirect.to_string()),
        _ => None,
    };
    let sent = std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|_| scope.spawn(consent)).collect();
        running.into_iter().map(|one| one.join().unwrap().expect("each is sent on")).collect::<Vec<_>>()
    });
    assert!(sent.iter().all(|one| *one == sent[0]));
    assert!(home.answer(&begun.id, "BBBB-BBBB", "status:read").is_err(), "not for whoever has no code");
    home.pass(10);
    assert_eq!(consent(), None);
    let code = Url::parse(&sent[0]).unwrap().query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    assert!(home.token(&home.redeems(&code)).is_ok() && home.token(&home.redeems(&code)).is_err());
}
