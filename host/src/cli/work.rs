//! What an agent says of its work, as a person reads it at a glance: `opus · 21k in · 1.2M cached · 34k out · context 41 %`.

use crate::observe::facts::Usage;
use crate::report::AgentReport;
use unicode_width::UnicodeWidthChar as _;

/// What stands between two things that are said.
const BETWEEN: &str = " · ";

/// So many columns of a name are shown: models and tools of MCP servers can have long ones.
const LONGEST_NAME: usize = 32;

/// What is known of an agent's work; empty where there is nothing to know. What could be there and could not be measured is a `?`.
pub fn work(agent: &AgentReport) -> String {
    let nothing = Usage::default();
    let usage = agent.work.as_ref().unwrap_or(&nothing);
    let gaps = agent.metrics.as_ref().map(|metrics| &metrics.expected);
    let is_unmeasured = |field: &str| gaps.is_some_and(|gaps| gaps.contains(field));
    let mut said: Vec<String> = usage.model.as_deref().map(short).into_iter().collect();
    said.extend(tokens(usage, is_unmeasured("usage")));
    let context = usage.context_used_percent.map(|percent| format!("context {percent:.0} %"));
    said.extend(context.or_else(|| is_unmeasured("context_used_percent").then(|| "context ?".to_owned())));
    said.extend(usage.current_tool.as_deref().map(|tool| format!("runs {}", short(tool))));
    said.extend(number(usage.subagents, "subagent"));
    let servers = number(usage.mcp_servers, "MCP server");
    said.extend(servers.or_else(|| is_unmeasured("mcp_servers").then(|| "? MCP servers".to_owned())));
    said.join(BETWEEN)
}

/// What went to the model anew, what it had read before, and what came back.
fn tokens(usage: &Usage, are_unmeasured: bool) -> Vec<String> {
    let Usage {
        input_tokens: input, output_tokens: output, cache_read_tokens: read, cache_write_tokens: written, ..
    } = *usage;
    if input.or(output).or(read).or(written).is_none() {
        return are_unmeasured.then(|| "? tokens".to_owned()).into_iter().collect();
    }
    let shown = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), count);
    let anew = input.map(|input| input.saturating_add(written.unwrap_or(0)));
    let cached = read.filter(|read| *read > 0).map(|read| format!("{} cached", count(read)));
    [Some(format!("{} in", shown(anew))), cached, Some(format!("{} out", shown(output)))]
        .into_iter()
        .flatten()
        .collect()
}

fn number(n: Option<u32>, what: &str) -> Option<String> {
    n.filter(|n| *n > 0).map(|n| format!("{n} {what}{}", if n == 1 { "" } else { "s" }))
}

/// A number in three or four signs.
fn count(n: u64) -> String {
    let units = [(1e3, 'k'), (1e6, 'M'), (1e9, 'G')];
    let exact = n as f64;
    if n < 1000 {
        return n.to_string();
    }
    // What would be rounded up to a thousand of a unit is one of the next.
    let (size, unit) = units.into_iter().find(|(size, _)| exact / size < 999.5).unwrap_or(units[2]);
    let n = exact / size;
    if n < 9.95 { format!("{n:.1}{unit}") } else { format!("{n:.0}{unit}") }
}

/// A name cut to what a table has room for.
fn short(name: &str) -> String {
    let mut width = 0;
    let mut cut = String::new();
    for c in name.chars() {
        width += c.width().unwrap_or(0);
        if width > LONGEST_NAME {
            cut.push('…');
            break;
        }
        cut.push(c);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::any_report;
    use unicode_width::UnicodeWidthStr as _;

    fn said(usage: Option<Usage>, unmeasured: &[&str]) -> String {
        let mut agent = any_report().agents.remove(0);
        agent.work = usage;
        agent.metrics.as_mut().unwrap().expected = unmeasured.iter().map(|field| (*field).to_owned()).collect();
        work(&agent)
    }

    #[test]
    fn everything_that_is_known_is_said_in_one_line() {
        let usage = Usage {
            model: Some("opus".to_owned()),
            input_tokens: Some(1_200),
            output_tokens: Some(34_400),
            cache_read_tokens: Some(1_249_999),
            cache_write_tokens: Some(20_000),
            context_used_percent: Some(41.4),
            current_tool: Some("Bash".to_owned()),
            subagents: Some(1),
            mcp_servers: Some(3),
        };
        let line = "opus · 21k in · 1.2M cached · 34k out · context 41 % · runs Bash · 1 subagent · 3 MCP servers";
        assert_eq!(said(Some(usage), &[]), line);
    }

    #[test]
    fn where_there_is_nothing_nothing_is_said_and_what_is_unmeasured_is_no_0() {
        assert_eq!(said(None, &[]), "");
        assert_eq!(said(Some(Usage { subagents: Some(0), mcp_servers: Some(0), ..Usage::default() }), &[]), "");
        assert_eq!(said(None, &["usage", "evidence"]), "? tokens");
        let output = Usage { model: Some("m".to_owned()), output_tokens: Some(0), ..Usage::default() };
        assert_eq!(said(Some(output.clone()), &["context_used_percent"]), "m · ? in · 0 out · context ?");
        assert_eq!(said(Some(Usage { output_tokens: None, input_tokens: Some(5), ..output }), &[]), "m · 5 in · ? out");
        assert_eq!(said(None, &["mcp_servers"]), "? MCP servers");
    }

    #[test]
    fn numbers_take_no_room() {
        let shown = [0, 999, 1000, 9_949, 9_950, 999_499, 999_500, 1_234_567, 999_500_000, 12_345_678_901].map(count);
        assert_eq!(shown, ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.0M", "1.2M", "1.0G", "12G"]);
        assert_eq!(count(u64::MAX), "18446744074G");
    }

    #[test]
    fn a_long_name_is_cut_by_what_is_shown_of_it() {
        assert_eq!(short(&"x".repeat(64)), format!("{}…", "x".repeat(32)));
        assert_eq!(short(&"日".repeat(64)).width(), 33);
        assert_eq!(short(&"x".repeat(32)), "x".repeat(32));
    }
}
