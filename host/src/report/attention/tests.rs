//! Who needs somebody in made-up reports.

use super::super::tests::any_report;
use super::*;
use crate::report::CheckOutcome;

const SINCE: &str = "2026-09-21T13:33:20.000Z";

/// A report of two agents at work, of whom nobody needs anything, with what is changed in it.
fn report(change: impl FnOnce(&mut Report)) -> Report {
    let mut report = any_report();
    report.attention.clear();
    change(&mut report);
    report
}

fn standing(change: impl FnOnce(&mut Report)) -> Standing {
    Standing::of(&report(change))
}

/// What the first agent does, told by itself.
fn does(report: &mut Report, status: AgentStatus, state: ActivityState, since: Option<&str>) {
    let agent = &mut report.agents[0];
    agent.status = status;
    agent.activity.state = state;
    agent.activity.reason = "permission prompt".into();
    agent.activity.since = since.map(str::to_owned);
    agent.activity.inferred = false;
}

fn waits(report: &mut Report) {
    does(report, AgentStatus::Active, ActivityState::WaitingForInput, Some(SINCE));
}

fn finished(report: &mut Report) {
    does(report, AgentStatus::Offline, ActivityState::Finished, None);
}

fn advice(about: Option<usize>, action: &str) -> impl Fn(&mut Report) {
    let action = action.to_owned();
    move |report| {
        let agent_id = about.map(|index| report.agents[index].agent_id.clone());
        report.attention.push(Attention { agent_id, why: "it is so".into(), action: action.clone() });
    }
}

fn kinds(needs: &[Need]) -> Vec<NeedKind> {
    needs.iter().map(|need| need.kind).collect()
}

#[test]
fn nobody_needs_anybody_where_all_work() {
    let standing = standing(|_| {});
    assert_eq!((standing.pressing(), standing.counts(), standing.mark()), (vec![], (2, 2), Mark::default()));
}

#[test]
fn each_kind_of_need_is_known_by_what_was_judged() {
    use {ActivityState as Does, AgentStatus as Is, NeedKind as Kind};
    for (status, state, kind) in [
        (Is::Active, Does::WaitingForInput, Some(Kind::Waiting)),
        (Is::Failed, Does::WaitingForInput, Some(Kind::Failed)),
        (Is::Failed, Does::Finished, Some(Kind::Failed)),
        (Is::Failed, Does::Dead, Some(Kind::Failed)),
        (Is::Degraded, Does::Stalled, Some(Kind::Stalled)),
        (Is::Offline, Does::Finished, Some(Kind::Finished)),
        (Is::Degraded, Does::Working, None),
        (Is::Active, Does::Idle, None),
        (Is::Unknown, Does::Unknown, None),
    ] {
        let standing = standing(|report| does(report, status, state, None));
        let found = standing.begun_since(&Mark::default());
        assert_eq!(kinds(&found), kind.into_iter().collect::<Vec<_>>(), "{status:?} {state:?}");
    }
}

#[test]
fn what_a_policy_says_of_an_agent_in_need_is_said_of_the_need() {
    let said = standing(|report| {
        waits(report);
        advice(Some(0), "answer it now")(report);
        advice(Some(0), "save its work")(report);
        advice(Some(1), "look at its memory")(report);
        advice(None, "mend the policy")(report);
    })
    .pressing();
    let (waiting, others) = said.split_first().unwrap();
    assert_eq!(
        (waiting.kind, waiting.why.as_str(), waiting.action.as_str()),
        (NeedKind::Waiting, "it is so", "answer it now")
    );
    assert_eq!(waiting.since.as_deref(), Some(SINCE));
    let others: Vec<_> =
        others.iter().map(|n| (n.kind, n.agent_name.as_deref().unwrap_or("-"), n.action.as_str())).collect();
    let advice = NeedKind::Advice;
    let expected = [
        (advice, "agent 1", "save its work"),
        (advice, "agent 2", "look at its memory"),
        (advice, "-", "mend the policy"),
    ];
    assert_eq!(others, expected);
}

#[test]
fn without_advice_the_reason_is_told_and_something_to_do() {
    let said = standing(waits).pressing();
    assert_eq!((said[0].why.as_str(), said[0].action.is_empty()), ("waiting: permission prompt", false));
}

#[test]
fn who_has_finished_is_news_only_to_those_who_waited() {
    let before = standing(|_| {});
    let after = standing(finished);
    assert_eq!(after.pressing(), vec![]);
    assert_eq!(kinds(&after.begun_since(&before.mark())), [NeedKind::Finished]);
    assert_eq!(after.begun_since(&after.quiet_mark()), vec![]);
}

#[test]
fn what_stood_at_a_mark_is_not_new_and_what_begins_again_is() {
    let first = standing(waits);
    let mark: Mark = first.mark().to_string().parse().unwrap();
    assert_eq!(first.begun_since(&mark), vec![]);
    let again = standing(|report| {
        does(report, AgentStatus::Active, ActivityState::WaitingForInput, Some("2026-09-21T13:40:00.000Z"));
    });
    assert_eq!(kinds(&again.begun_since(&mark)), [NeedKind::Waiting], "it was answered, and waits again");
    let failed = standing(|report| does(report, AgentStatus::Failed, ActivityState::Dead, None));
    assert_eq!(kinds(&failed.begun_since(&mark)), [NeedKind::Failed], "the same agent needs something else");
    let unseen = standing(|report| {
        does(report, AgentStatus::Failed, ActivityState::Dead, None);
        report.agents[0].process_id = None;
        report.agents[0].activity.reason = "ended, exit code unknown".into();
    });
    assert_eq!(unseen.begun_since(&failed.mark()), vec![], "a process that has not seen it alive knows less");
    let elsewhere = standing(|report| {
        waits(report);
        report.session_id = "docs".into();
    });
    assert_eq!(kinds(&elsewhere.begun_since(&mark)), [NeedKind::Waiting], "a mark is of one session");
}

#[test]
fn what_was_concluded_has_no_beginning_of_its_own() {
    let stalled = |since: &str| {
        standing(|report| {
            does(report, AgentStatus::Degraded, ActivityState::Stalled, Some(since));
            report.agents[0].activity.inferred = true;
        })
    };
    let mark = stalled(SINCE).mark();
    assert_eq!(stalled("2026-09-21T13:33:20.001Z").begun_since(&mark), vec![], "a moment counted back from now");
}

#[test]
fn a_beginning_that_nobody_has_told_is_no_part_of_a_need() {
    let waiting = |since: &str, observed_at: &str, undated: bool| {
        standing(|report| {
            does(report, AgentStatus::Active, ActivityState::WaitingForInput, Some(since));
            report.agents[0].activity.undated = undated;
            report.observed_at = observed_at.into();
        })
    };
    let (early, late) = ("2026-09-21T13:40:00.000Z", "2026-09-21T13:40:01.000Z");
    let ahead = waiting(early, early, false).mark();
    assert_eq!(waiting(late, late, false).begun_since(&ahead), vec![], "a date ahead is cut to each look's");
    let undated = waiting(SINCE, late, true).mark();
    assert_eq!(waiting(early, late, true).begun_since(&undated), vec![], "another process has seen it later");
    let told = waiting(SINCE, late, false).mark();
    assert_eq!(kinds(&waiting(early, late, false).begun_since(&told)), [NeedKind::Waiting]);
}

#[test]
fn advice_is_the_same_though_its_figures_move() {
    let mark = standing(advice(None, "free 12 GiB")).mark();
    assert_eq!(standing(advice(None, "free 13 GiB")).begun_since(&mark), vec![]);
    assert_eq!(kinds(&standing(advice(None, "stop one")).begun_since(&mark)), [NeedKind::Advice]);
}

#[test]
fn who_is_there_no_more_has_left_unless_its_end_was_told() {
    let gone = |report: &mut Report| drop(report.agents.remove(0));
    let left = standing(gone).left_since(&standing(|_| {}));
    assert_eq!(
        left.iter().map(|n| (n.kind, n.agent_name.as_deref())).collect::<Vec<_>>(),
        [(NeedKind::Left, Some("agent 1"))]
    );
    assert_eq!(standing(gone).left_since(&standing(finished)), vec![], "that it has finished was told");
    assert_eq!(standing(gone).left_since(&standing(gone)), vec![]);
    assert_eq!(standing(|_| {}).left_since(&standing(gone)), vec![], "one that comes has not left");
}

#[test]
fn figures_change_nothing_that_matters_and_all_else_does() {
    let plain = standing(|_| {}).outline();
    let figures = |report: &mut Report| {
        report.age_ms = 99;
        report.session_score = Some(12);
        report.observed_at = "2026-09-21T14:00:00.000Z".into();
        let agent = &mut report.agents[0];
        agent.activity.reason = "CPU or IO 3 s ago".into();
        agent.activity.since = None;
        agent.metrics = None;
        let health = agent.health.as_mut().unwrap();
        health.score = Some(12);
        health.check_results[0].detail = "very many threads".into();
        health.check_results[0].value = Some(1300.0);
    };
    assert_eq!(standing(figures).outline(), plain);
    let changes: [fn(&mut Report); 8] = [
        |report| report.agents[0].status = AgentStatus::Degraded,
        |report| report.agents[0].activity.state = ActivityState::Idle,
        |report| report.agents[0].health.as_mut().unwrap().check_results[0].outcome = CheckOutcome::Fail,
        |report| report.agents[0].health.as_mut().unwrap().check_results.clear(),
        |report| drop(report.agents.pop()),
        |report| report.session_health = SessionHealth::Degraded,
        |report| report.sources[0].ok = false,
        |report| report.policies[0].outcome = "deadline",
    ];
    let mut outlines: BTreeSet<u64> = changes.into_iter().map(|change| standing(change).outline()).collect();
    outlines.extend([plain, standing(waits).outline(), standing(advice(None, "mend it")).outline()]);
    assert_eq!(outlines.len(), 11, "each is another");
}

#[test]
fn an_attention_report_as_json() {
    let standing = standing(|report| {
        waits(report);
        advice(None, "mend the policy")(report);
    });
    insta::assert_json_snapshot!(standing.attention(standing.pressing()));
}
