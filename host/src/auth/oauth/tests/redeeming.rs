//! Codes and refresh tokens that are redeemed, as they should be and otherwise.

use super::*;

#[tokio::test]
async fn a_code_becomes_a_grant_that_the_gate_knows() {
    let home = Home::new();
    let code = home.code();
    assert!(home.store.grants("ada").unwrap().is_empty(), "a consent alone is no grant yet");
    let issued = home.token(&home.redeems(&code)).unwrap();
    let principal = home.admit(&issued).await.unwrap();
    assert_eq!((principal.user_id.as_str(), principal.client_id.as_ref()), ("ada", Some(&home.client.id)));
    assert_eq!((names(&principal.scopes), issued.expires_in), ("status:read clients:read".into(), 3600));
    let [grant] = &home.store.grants("ada").unwrap()[..] else { panic!("there is one grant") };
    assert_eq!((grant.name.as_str(), &grant.id), ("Agent", &principal.grant_id));
    let admitted = home.gate.admit(Some(issued.access.reveal())).await.unwrap();
    assert_eq!(admitted.resource, Some(home.issuer.resource()));
    // Neither a code nor a refresh token lets anybody in.
    for other in [&*code, issued.refresh.reveal()] {
        assert!(matches!(home.gate.admit(Some(other)).await, Err(Denied::Invalid)));
    }
}

#[test]
fn a_code_is_its_own_clients_alone() {
    let home = Home::new();
    let other = home.server.register(metadata("other", &[REDIRECT])).unwrap();
    let sent = home.redeems(&home.code());
    for (name, value, code) in [
        ("code_verifier", "another-verifier-that-is-long-enough-for-it", ErrorCode::InvalidGrant),
        ("code_verifier", &*challenge(), ErrorCode::InvalidGrant),
        ("code_verifier", "", ErrorCode::InvalidRequest),
        ("redirect_uri", "http://127.0.0.1:4321/callback", ErrorCode::InvalidGrant),
        ("redirect_uri", "", ErrorCode::InvalidRequest),
        ("client_id", &*other.id, ErrorCode::InvalidGrant),
        ("client_id", "hci_00", ErrorCode::InvalidClient),
        ("client_id", "https://agents.example/client.json", ErrorCode::InvalidGrant),
        ("client_id", "", ErrorCode::InvalidRequest),
        ("client_secret", "secret", ErrorCode::InvalidClient),
        ("client_assertion", "a.b.c", ErrorCode::InvalidClient),
        ("resource", "http://localhost:1/mcp", ErrorCode::InvalidTarget),
        ("grant_type", "password", ErrorCode::UnsupportedGrantType),
        ("grant_type", "client_credentials", ErrorCode::UnsupportedGrantType),
        ("grant_type", "", ErrorCode::InvalidRequest),
        ("code", "hcc_AAAA", ErrorCode::InvalidGrant),
        ("code", Code::generate().unwrap().reveal(), ErrorCode::InvalidGrant),
    ] {
        let error = home.token(&with(&sent, name, value)).unwrap_err();
        assert_eq!(error.code, code, "{name}={value}: {error}");
    }
    let elsewhere = Issuer::at("http://127.0.0.1:7878");
    let without = with(&sent, "resource", "");
    assert_eq!(home.server.token(&params(&without), &elsewhere).unwrap_err().code, ErrorCode::InvalidTarget);
    assert!(home.token(&sent).is_ok(), "none of that has hurt it");
}

#[tokio::test]
async fn a_code_that_is_shown_twice_ends_what_came_of_it() {
    let home = Home::new();
    let kept = home.tokens();
    let sent = home.redeems(&home.code());
    let issued = home.token(&sent).unwrap();
    // Whether or not whoever has it knows the verifier.
    let again = home.token(&with(&sent, "code_verifier", "another-verifier-that-is-long-enough-for-it"));
    assert_eq!(again.unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(matches!(home.admit(&issued).await, Err(Denied::Revoked)));
    assert_eq!(home.refresh(&issued.refresh).unwrap_err().code, ErrorCode::InvalidGrant);
    assert!(home.admit(&kept).await.is_ok(), "other grants of the same client are untouched");
}

#[test]
fn of_those_who_show_a_code_at_once_one_gets_tokens_at_most() {
    let home = Home::new();
    let sent = home.redeems(&home.code());
    let given = std::thread::scope(|scope| {
        let running: Vec<_> = (0..8).map(|_| scope.spawn(|| home.token(&sent).is_ok())).collect();
        running.into_iter().map(|one| one.join().unwrap()).filter(|given| *given).count()
    });
    assert_eq!((given, home.revoked()), (1, vec![true]), "and that is revoked, since others have the code");
}

#[test]
fn a_code_holds_for_a_minute() {
    let home = Home::new();
    let (first, second) = (home.code(), home.code());
    home.clock.advance(Duration::from_millis(59_999));
    assert!(home.token(&home.redeems(&first)).is_ok());
    home.clock.advance(Duration::from_millis(1));
    assert_eq!(home.token(&home.redeems(&second)).unwrap_err().code, ErrorCode::InvalidGrant);
    assert_eq!(home.revoked(), [false]);
}

#[tokio::test]
async fn an_access_token_expires_and_its_grant_lives_on() {
    let home = Home::new();
    let first = home.tokens();
    let id = home.admit(&first).await.unwrap().grant_id;
    home.pass(3600);
    assert!(matches!(home.admit(&first).await, Err(Denied::Expired)));
    let second = home.refresh(&first.refresh).unwrap();
    assert_eq!(home.admit(&second).await.unwrap().grant_id, id, "refreshing changes no grant");
    // For months, as long as it is used.
    let mut last = second;
    for _ in 0..5 {
        home.pass(80 * 24 * 3600);
        last = home.refresh(&last.refresh).unwrap();
        assert_eq!(home.admit(&last).await.unwrap().grant_id, id);
    }
    home.pass(90 * 24 * 3600);
    assert!(matches!(home.admit(&last).await, Err(Denied::Expired | Denied::Invalid)));
    assert_eq!(home.refresh(&last.refresh).unwrap_err().code, ErrorCode::InvalidGrant);
    assert_eq!(home.revoked(), [false]);
}

#[tokio::test]
async fn streams_end_with_their_token_and_sessions_with_their_grant() {
    let home = Home::new();
    let mut last = home.tokens();
    let open = home.gate.admit(Some(last.access.reveal())).await.unwrap();
    home.pass(3600);
    last = home.refresh(&last.refresh).unwrap();
    tokio::time::timeout(Duration::from_secs(30), open.expired.cancelled()).await.expect("the stream ends");
    let next = home.gate.admit(Some(last.access.reveal())).await.unwrap();
    for _ in 0..3 {
        home.pass(60 * 24 * 3600);
        last = home.refresh(&last.refresh).unwrap();
        home.admit(&last).await.unwrap();
    }
    assert!(!open.ended.is_cancelled() && !next.ended.is_cancelled());
    home.server.revoke(&params(&[("token", last.refresh.reveal().to_owned())].into())).unwrap();
    tokio::time::timeout(Duration::from_secs(30), open.ended.cancelled()).await.expect("it is cut");
}

#[tokio::test]
async fn clients_refresh_in_parallel_and_a_thief_comes_later() {
    let home = Home::new();
    let first = home.tokens();
    let pairs: Vec<Issued> = (0..3).map(|_| home.refresh(&first.refresh).unwrap()).collect();
    home.pass(30);
    let late = home.refresh(&first.refresh).unwrap();
    for issued in pairs.iter().chain([&late, &first]) {
        assert!(home.admit(issued).await.is_ok());
    }
    assert_eq!(home.store.grants("ada").unwrap().len(), 1);
    home.clock.advance(Duration::from_millis(1));
    let error = home.refresh(&first.refresh).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidGrant);
    assert_eq!(home.revoked(), [true]);
    for issued in pairs.iter().chain([&late]) {
        assert!(matches!(home.admit(issued).await, Err(Denied::Revoked)));
        assert_eq!(home.refresh(&issued.refresh).unwrap_err().code, ErrorCode::InvalidGrant);
    }
}

#[tokio::test]
async fn a_thief_who_refreshes_ever_so_often_is_found_out() {
    let home = Home::new();
    let stolen = home.tokens().refresh;
    let mut last = home.refresh(&stolen).unwrap();
    for _ in 0..40 {
        home.pass(31);
        last = home.refresh(&last.refresh).unwrap();
    }
    assert!(home.admit(&last).await.is_ok());
    // Its owner shows it at last, even at the wrong address.
    let elsewhere = Issuer::at("http://127.0.0.1:7878");
    let error = home.server.token(&params(&home.refreshes(&stolen)), &elsewhere).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidGrant);
    assert!(matches!(home.admit(&last).await, Err(Denied::Revoked)));
    assert_eq!(home.refresh(&last.refresh).unwrap_err().code, ErrorCode::InvalidGrant);
}

#[test]
fn a_clock_that_goes_back_makes_no_refresh_token_fresh() {
    let home = Home::new();
    let first = home.tokens();
    home.pass(3600);
    home.refresh(&first.refresh).unwrap();
    home.clock.set(NOON + 60_000);
    assert_eq!(home.refresh(&first.refresh).unwrap_err().code, ErrorCode::InvalidGrant);
    assert_eq!(home.revoked(), [true]);
}

#[tokio::test]
async fn a_clock_that_was_months_ahead_takes_no_grant_with_it() {
    let home = Home::new();
    let (first, other) = (home.tokens(), home.tokens());
    home.clock.set(NOON + 89 * 24 * 3_600_000);
    let ahead = home.refresh(&first.refresh).unwrap();
    home.clock.set(NOON + 178 * 24 * 3_600_000);
    home.refresh(&ahead.refresh).unwrap();
    home.clock.set(NOON + 3_600_000);
    assert!(home.refresh(&other.refresh).is_ok());
}

#[tokio::test]
async fn scopes_become_fewer_and_never_more() {
    let home = Home::new();
    let first = home.tokens();
    let narrowed = home.token(&with(&home.refreshes(&first.refresh), "scope", "status:read")).unwrap();
    assert_eq!(names(&narrowed.scopes), "status:read");
    let principal = home.admit(&narrowed).await.unwrap();
    assert!(principal.may(Scope::StatusRead) && !principal.may(Scope::ClientsRead));
    for more in ["status:read roster:write", "grants:revoke", "openid"] {
        let error = home.token(&with(&home.refreshes(&narrowed.refresh), "scope", more)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidScope, "{more}");
    }
    // The refresh token is worth what was granted (RFC 6749, section 6).
    let again = home.refresh(&narrowed.refresh).unwrap();
    assert_eq!(names(&again.scopes), "status:read clients:read");
}

#[test]
fn a_refresh_token_is_its_own_clients_and_its_own_servers_alone() {
    let home = Home::new();
    let other = home.server.register(metadata("other", &[REDIRECT])).unwrap();
    let issued = home.tokens();
    let sent = home.refreshes(&issued.refresh);
    for (name, value, code) in [
        ("client_id", &*other.id, ErrorCode::InvalidGrant),
        ("client_id", "", ErrorCode::InvalidRequest),
        ("refresh_token", issued.access.reveal(), ErrorCode::InvalidGrant),
        ("refresh_token", RefreshToken::generate().unwrap().reveal(), ErrorCode::InvalidGrant),
        ("refresh_token", "", ErrorCode::InvalidRequest),
        ("resource", "https://agents.example/mcp", ErrorCode::InvalidTarget),
    ] {
        let error = home.token(&with(&sent, name, value)).unwrap_err();
        assert_eq!(error.code, code, "{name}={value}: {error}");
    }
    let elsewhere = Issuer::at("https://agents.example");
    assert_eq!(home.server.token(&params(&sent), &elsewhere).unwrap_err().code, ErrorCode::InvalidTarget);
    assert!(home.token(&sent).is_ok() && home.revoked() == [false]);
}

#[tokio::test]
async fn revoking_any_token_ends_its_grant() {
    let home = Home::new();
    let revoke = |token: &str, client: &str| {
        let sent = [("token", token.to_owned()), ("client_id", client.to_owned())].into();
        home.server.revoke(&params(&sent)).map_err(|error| error.code)
    };
    for by_refresh in [true, false] {
        let (issued, other) = (home.tokens(), home.tokens());
        let shown = if by_refresh { issued.refresh.reveal() } else { issued.access.reveal() };
        assert_eq!(revoke(shown, "hci_00"), Err(ErrorCode::InvalidGrant), "another client's");
        assert!(home.admit(&issued).await.is_ok());
        assert_eq!((revoke(shown, &home.client.id), revoke(shown, "")), (Ok(()), Ok(())), "twice is as once");
        assert!(matches!(home.admit(&issued).await, Err(Denied::Revoked)));
        assert_eq!(home.refresh(&issued.refresh).unwrap_err().code, ErrorCode::InvalidGrant);
        assert!(home.admit(&other).await.is_ok());
    }
    for unknown in ["x", "hct_", home.code().as_str(), RefreshToken::generate().unwrap().reveal()] {
        assert_eq!(revoke(unknown, &home.client.id), Ok(()));
    }
    assert_eq!(revoke("", &home.client.id), Err(ErrorCode::InvalidRequest));
}

#[test]
fn where_nothing_can_be_told_nothing_is_revoked_or_given() {
    let home = Home::new();
    let issued = home.tokens();
    let sent = home.redeems(&home.code());
    let (path, away) = (home.store.path(), home.store.path().with_extension("away"));
    std::fs::rename(&path, &away).unwrap();
    std::fs::create_dir(&path).unwrap();
    for result in [home.token(&sent), home.refresh(&issued.refresh)] {
        assert_eq!(result.unwrap_err().code, ErrorCode::TemporarilyUnavailable);
    }
    std::fs::remove_dir(&path).unwrap();
    std::fs::rename(&away, &path).unwrap();
    assert!(home.token(&sent).is_ok() && home.refresh(&issued.refresh).is_ok());
}
