//! What is taken of answers, and what becomes of it.

use super::fuzzing::{pointers, taker};
use super::listing::{AGENTS_MAX, Listing, SESSIONS_MAX};
use super::report::{self, Part};
use super::{Taker, answer, map};
use crate::clock::Moment;
use crate::judge::tests::{builtin, cases, judge_of};
use crate::names::{Identity, Instance};
use crate::observe::facts::{Claim, Snapshot};
use crate::observe::roster::{DeclaredAgent, Given, Roster};
use crate::observe::tests::world::{BEGIN_MS, Scene};
use crate::report::{View, report as as_report};
use crate::upstream::CallToolResult;
use proptest::prelude::*;
use rmcp::model::ContentBlock;
use serde_json::{Value, json};
use std::time::Duration;

/// When everything here is heard.
const HEARD: Moment = Moment { unix_ms: BEGIN_MS, steady: Duration::from_secs(100) };

fn later(seconds: u64) -> Moment {
    Moment { unix_ms: HEARD.unix_ms + seconds * 1000, steady: HEARD.steady + Duration::from_secs(seconds) }
}

fn report_of(agents: &Value) -> Value {
    json!({ "schema": "headcount.report/1", "session_id": "shop-1a2b3c", "session_name": "shop", "agents": agents })
}

fn told(answer: &Value, taker: &Taker) -> Result<Listing, String> {
    let mut listing = Listing::default();
    report::take(answer, taker, &mut listing).map(|_| listing)
}

fn mapped(answer: &Value) -> Result<Listing, String> {
    let mut listing = Listing::default();
    map::take(answer, &pointers(), &taker(), &mut listing).map(|()| listing)
}

fn declared(listing: &Listing) -> Roster {
    taker().roster(listing, HEARD, HEARD)
}

fn only(roster: &Roster) -> &DeclaredAgent {
    assert_eq!(roster.sessions.len(), 1, "{roster:#?}");
    assert_eq!(roster.sessions[0].agents.len(), 1, "{roster:#?}");
    &roster.sessions[0].agents[0]
}

#[test]
fn structure_comes_before_text_and_text_may_be_json() {
    let text = |text: &str| ContentBlock::text(text);
    let mut result = CallToolResult::success(vec![text("two agents"), text("{\"a\":1}"), text("[2]")]);
    assert_eq!(*answer::json(&result).unwrap(), json!({ "a": 1 }));
    result.structured_content = Some(json!([3]));
    assert_eq!(*answer::json(&result).unwrap(), json!([3]));
    let nothing = CallToolResult::success(vec![text("7"), text("two agents")]);
    assert!(answer::json(&nothing).unwrap_err().contains("holds no JSON"));
    let failed = CallToolResult::error(vec![text("no\u{1b}[2Jbody")]);
    assert_eq!(answer::json(&failed).unwrap_err(), "the tool has failed: nobody");
}

#[test]
fn a_list_is_read_by_its_map() {
    let list = json!({ "agents": [
        { "id": 7, "name": "Ada", "state": "busy", "reason": "writes", "since": 1_800_000_000, "pid": "42", "kind": "codex",
          "session": "s1", "session_name": "Shop", "root": "/srv/shop", "created_at": "2027-01-15T07:00:00Z" },
        { "id": "b", "name": null, "state": "Idle", "session": "s1" },
        { "id": "c", "state": "frobs" },
        { "id": "d" },
        { "name": "nobody" },
    ]});
    let listing = mapped(&list).unwrap();
    assert!(listing.left_out().unwrap().contains("`agents_from.map.id` \"/id\" finds no id in one"), "{listing:?}");
    let roster = declared(&listing);
    let ids: Vec<_> = roster.sessions.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, ["s1.u", "u"], "who is in no session is in the server's own");
    assert_eq!(roster.sessions[0].name.as_deref(), Some("Shop"));
    let [ada, b] = &roster.sessions[0].agents[..] else { panic!("{roster:#?}") };
    assert_eq!(
        (ada.name.as_str(), ada.said.called.as_deref(), b.said.called.as_deref()),
        ("7@u", Some("Ada"), Some("b"))
    );
    assert_eq!((ada.said.kind.as_deref(), ada.said.created_at_ms), (Some("codex"), Some(1_799_996_400_000)));
    let said = &ada.said.evidence[0];
    assert_eq!((said.claim, said.word.as_str(), said.at_ms), (Claim::Working, "busy", 1_800_000_000_000));
    assert_eq!(said.detail.as_deref(), Some("writes"));
    assert_eq!(ada.said.unmeasured[0].reason, "process 42 at u");
    assert_eq!(b.said.evidence[0].claim, Claim::Idle, "in any case");
    let [c, d] = &roster.sessions[1].agents[..] else { panic!("{roster:#?}") };
    assert_eq!((c.said.evidence[0].claim, c.said.evidence[0].word.as_str()), (Claim::Unknown, "frobs"));
    assert!(d.said.evidence.is_empty() && d.said.unmeasured.iter().any(|gap| gap.reason.contains("does not say")));
}

#[test]
fn a_pointer_that_finds_nothing_is_named_with_the_keys_that_are_there() {
    let error = |answer: Value| mapped(&answer).unwrap_err();
    assert_eq!(
        error(json!({ "items": [{ "secret": 1 }], "total": 3 })),
        "`agents_from.map.agents` \"/agents\" finds nothing: there is an object with items, total"
    );
    assert!(error(json!({ "agents": { "a": 1 } })).ends_with("wanted a list, found an object with a"));
    let told = error(json!({ "agents": [{ "key": "s3cret" }] }));
    assert_eq!(told, "`agents_from.map.id` \"/id\" finds nothing: there is an object with key");
    let listing = mapped(&json!({ "agents": [{ "id": "a", "status": "busy" }] })).unwrap();
    assert_eq!(listing.left_out(), None, "an agent may lack all but its id");
    let told = listing.note().unwrap();
    let expected = "`agents_from.map.activity` \"/state\" finds nothing: there is an object with id, status; ";
    assert!(told.starts_with(expected) && told.ends_with(" more") && told.chars().count() < 256, "{told}");
    assert_eq!(mapped(&json!({ "agents": [] })).unwrap().left_out(), None, "nobody is nobody");
    let deep = crate::config::AgentMap { agents: "/a/b/c".into(), ..pointers() };
    let error = map::take(&json!({ "a": { "b": { "d": 1 } } }), &deep, &taker(), &mut Listing::default()).unwrap_err();
    assert!(error.ends_with("finds nothing: at \"/a/b\" is an object with d"), "{error}");
}

#[test]
fn what_came_from_here_or_too_far_is_not_taken_up() {
    let me = taker().me.to_string();
    let other = Instance::of(&[b"other"]).to_string();
    let agents = json!([
        { "agent_id": "own", "via": [me] },
        { "agent_id": "far", "via": vec![&other; 8] },
        { "agent_id": "near", "via": [&other], "identity": "0123456789abcdef" },
        { "agent_id": "theirs" },
    ]);
    let mut report = report_of(&agents);
    report["instance"] = json!(other);
    let roster = declared(&told(&report, &taker()).unwrap());
    let [near, theirs] = &roster.sessions[0].agents[..] else { panic!("{roster:#?}") };
    let other = Instance::parse(&other).unwrap();
    assert_eq!((near.name.as_str(), &near.said.via[..]), ("near@u", &[other, other][..]));
    assert_eq!(near.said.identity, Identity::parse("0123456789abcdef"));
    assert!(theirs.said.via == [other] && theirs.said.identity.is_some(), "it is one of its list: {theirs:?}");

    let mut own = report_of(&json!([]));
    own["instance"] = json!(me);
    let itself = told(&own, &taker()).unwrap();
    assert!(itself.note().unwrap().contains("this very headcount") && itself.left_out().is_none(), "{itself:?}");
    // Who does not say which headcount it is says nothing of which agents its own are.
    let nameless = report_of(&json!([{ "agent_id": "a", "identity": "0123456789abcdef" }]));
    assert_eq!(only(&declared(&told(&nameless, &taker()).unwrap())).said.identity, None);
    // Who has only agents from here is not listed as a session.
    let mut listing = Listing::default();
    let all_own = report_of(&json!([{ "agent_id": "own", "via": [me] }]));
    let Part { session, .. } = report::take(&all_own, &taker(), &mut listing).unwrap();
    listing.drop_if_nobody_is_left(session.unwrap());
    assert!(declared(&listing).sessions.is_empty());
    assert_eq!(
        report::take(&report_of(&json!([])), &taker(), &mut listing).unwrap().session,
        None,
        "an empty one stays"
    );
}

#[test]
fn an_answer_ages_and_is_then_withheld() {
    let agents = json!([{ "agent_id": "a", "status": "ACTIVE", "activity": { "state": "working", "reason": "busy" },
        "work": { "model": "opus", "output_tokens": 5, "colour": "red" } }]);
    let (taker, listing) = (taker(), told(&report_of(&agents), &taker()).unwrap());
    let first = taker.roster(&listing, HEARD, HEARD);
    assert_eq!(only(&first).said.evidence[0].at_ms, HEARD.unix_ms, "since it was first heard");
    let again = taker.roster(&listing, later(30), later(59));
    assert_eq!(only(&again), only(&first), "what is heard again keeps its own time");
    assert_eq!(only(&again).said.usage.as_ref().unwrap().output_tokens, Some(5));
    let silent = taker.roster(&listing, later(30), later(210));
    assert!(only(&silent).said.evidence.is_empty() && only(&silent).said.usage.is_some());
    let why = "u has not answered for 3 min";
    assert!(only(&silent).said.unmeasured.iter().any(|gap| gap.field == "activity" && gap.reason == why));
    assert_eq!(taker.silence(later(30), later(210)).as_deref(), Some(why));
    assert_eq!(only(&taker.roster(&listing, later(211), later(211))), only(&first), "and it is heard again");
    let idle = told(&report_of(&json!([{ "agent_id": "a", "activity": { "state": "idle" } }])), &taker).unwrap();
    assert_eq!(only(&taker.roster(&idle, later(220), later(220))).said.evidence[0].at_ms, later(220).unix_ms);
}

#[test]
fn lists_without_end_are_cut_and_hostile_words_cleaned() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\u{1b}[2J".to_owned() + &"y".repeat(100_000);
    let one = |n: usize| json!({ "id": "same", "name": hostile, "state": hostile, "kind": format!("kind-{n}"), "reason": hostile });
    let listing = mapped(&json!({ "agents": (0..=AGENTS_MAX).map(one).collect::<Vec<_>>() })).unwrap();
    assert!(listing.left_out().unwrap().contains("only the first 5000 agents"));
    let roster = declared(&listing);
    let agents = &roster.sessions[0].agents;
    let names: std::collections::HashSet<_> = agents.iter().map(|agent| &agent.name).collect();
    assert_eq!((agents.len(), names.len()), (AGENTS_MAX, AGENTS_MAX), "those of one id are all listed");
    let kinds: std::collections::HashSet<_> = agents.iter().map(|agent| &agent.said.kind).collect();
    assert_eq!(kinds.len(), 33);
    let said = format!("{:?}", agents[0]);
    assert!(said.len() < 3_000 && !said.contains("u{1b}") && !said.contains("u{202e}"), "{said}");
    let many = (0..=SESSIONS_MAX).map(|n| json!({ "id": "a", "session": n }));
    let listing = mapped(&json!({ "agents": many.collect::<Vec<_>>() })).unwrap();
    assert_eq!(declared(&listing).sessions.len(), SESSIONS_MAX);
}

#[test]
fn a_report_that_says_itself_that_it_is_not_whole_is_not_taken_for_whole() {
    let mut report = report_of(&json!([{ "agent_id": "a" }]));
    report["agent_count"] = json!(3);
    let mut listing = Listing::default();
    let part = report::take(&report, &taker(), &mut listing).unwrap();
    part.leave_out_the_rest(&mut listing);
    assert_eq!(listing.left_out(), None);
    Part::leave_out_beyond(part.listed, part.count, &mut listing);
    assert_eq!(listing.left_out().as_deref(), Some("it lists 1 of its 3 agents"));
    report["truncated"] = json!(true);
    let mut listing = Listing::default();
    report::take(&report, &taker(), &mut listing).unwrap().leave_out_the_rest(&mut listing);
    assert_eq!(listing.left_out().as_deref(), Some("it says itself that it does not list all agents"));
}

/// Whatever another headcount has found, the judge here comes to the same where it can be known.
#[test]
fn our_judge_says_of_another_headcounts_agents_what_theirs_says() {
    let judge = judge_of(builtin(""));
    let mut compared = 0;
    for (name, facts, settings) in
        headcount_policy::cases::all().into_iter().filter(|(.., settings)| settings.is_empty())
    {
        let there = cases::snapshot(&facts);
        let report = as_report(&there, &judge.judge(&there), &View::whole(), 0);
        let listing = told(&serde_json::to_value(&report).unwrap(), &taker()).unwrap();
        assert_eq!(listing.left_out(), None, "{name}: {settings}");
        let here = observed(taker().roster(&listing, HEARD, HEARD));
        let judged = as_report(&here, &judge.judge(&here), &View::whole(), 0);
        assert_eq!(judged.agents.len(), report.agents.len(), "{name}");
        for theirs in report.agents {
            let is_it =
                |agent: &&crate::report::AgentReport| agent.agent_id.starts_with(&theirs.agent_id.to_lowercase());
            let ours = judged.agents.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {}", theirs.agent_id));
            let said = |agent: &crate::report::AgentReport| format!("{:?} {:?}", agent.status, agent.activity.state);
            let expected = match said(&theirs).as_str() {
                // What cannot be told there cannot be told here.
                words if words.contains("Unknown") => "Unknown Unknown".to_owned(),
                words => words.to_owned(),
            };
            assert_eq!(said(ours), expected, "{name}: {:?} from {:?}", ours.activity, theirs.activity);
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
}

/// The only session that is seen where nothing but `roster` is declared.
fn observed(roster: Roster) -> Snapshot {
    let mut scene = Scene::new(vec![Box::new(Given::new("upstream:u", roster))], |_, _| {});
    let mut seen = scene.look();
    assert_eq!(seen.len(), 1);
    seen.remove(0)
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = "agents|id|name|state|since|pid|session|schema|session_id|agent_id|activity|via|instance|[a-z]{1,3}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("headcount.report/1")),
        "busy|idle|dead|stalled|FAILED|2027-01-15T08:00:00Z".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_to_its_end_and_to_the_same(value in any_json(), agents in prop::collection::vec(any_json(), 0..6)) {
        for answer in [value.clone(), json!({ "agents": agents }), report_of(&json!(agents)), json!(agents)] {
            let text = answer.to_string();
            let said = super::fuzzing::read(&text);
            prop_assert_eq!(&said, &super::fuzzing::read(&text));
            prop_assert!(said.len() < 20_000 + 64 * text.len(), "{} of {}", said.len(), text.len());
        }
        prop_assert!(answer::form(&value).chars().count() < 700);
    }
}
