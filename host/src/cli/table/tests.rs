//! What a person sees at terminals of several widths.

use super::*;
use crate::observe::facts::Usage;
use crate::report::tests::any_report;

/// Two agents: one at work, and one of which little is known.
fn working() -> Report {
    let mut report = any_report();
    report.attention.clear();
    report.agents[0].agent_name = "claude".to_owned();
    report.agents[0].work = Some(Usage {
        model: Some("claude-opus-4-5".to_owned()),
        input_tokens: Some(1_200),
        output_tokens: Some(34_400),
        cache_read_tokens: Some(1_249_999),
        cache_write_tokens: Some(20_000),
        context_used_percent: Some(41.4),
        current_tool: Some("Bash".to_owned()),
        subagents: Some(2),
        mcp_servers: Some(1),
    });
    report.agents[1].agent_name = "codex".to_owned();
    let reason = "it has no rollout open".to_owned();
    let metrics = report.agents[1].metrics.as_mut().unwrap();
    metrics.unmeasured.insert("usage".to_owned(), reason);
    metrics.expected.insert("usage".to_owned());
    report
}

/// What is shown at this width, without colours.
fn at(report: &Report, width: Option<u16>) -> String {
    anstream::adapter::strip_str(&arranged(report, &View::default(), width)).to_string()
}

#[test]
fn work_is_shown_at_every_width() {
    let shown = [Some(60), Some(80), Some(120), Some(200), None].map(|width| {
        let width_said = width.map_or_else(|| "no terminal".to_owned(), |width| format!("{width} columns"));
        format!("--- {width_said}\n{}", at(&working(), width))
    });
    insta::assert_snapshot!(shown.concat());
}

#[test]
fn where_no_agent_says_anything_of_its_work_nothing_of_it_is_shown() {
    for width in [Some(60), Some(120), Some(200), None] {
        let shown = at(&any_report(), width);
        assert!(!shown.contains("WORK") && !shown.contains('?') && !shown.contains(" in ·"), "{shown}");
    }
}

#[test]
fn no_name_of_a_model_breaks_the_table() {
    let hostile =
        ["\u{1b}[2J\u{202e}evil\u{7}\nx".to_owned(), "日本語".repeat(30), "x".repeat(64), "👩\u{200d}🔧".repeat(40)];
    for model in &hostile {
        let mut report = working();
        // As a report has it.
        report.agents[0].work.as_mut().unwrap().model = Some(crate::report::clean(model));
        for width in [60, 80, 120, 200] {
            let shown = at(&report, Some(width));
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
            assert!(shown.contains("34k out"), "{shown}");
            let table = shown.lines().skip(1);
            // Of joined emoji each terminal has its own opinion.
            let widest = table.map(|line| line.replace("👩\u{200d}🔧", "👩").width()).max().unwrap();
            assert!(widest <= usize::from(width), "{widest} of {width}:\n{shown}");
        }
    }
}
