//! The command that an agent runs at an event, also as a person has changed it.

/// The name of the program, unless somebody has given it another one.
const NAME: &str = "headcount";

/// The command that runs `program` for an agent of this kind. One of another name is marked by a last word, so that it can be
/// found later, wherever the program is by then.
pub fn of(program: &str, kind: &str) -> String {
    let mark = if is_headcount(program) { String::new() } else { format!(" {NAME}") };
    format!("{} hook {kind}{mark}", quoted(program))
}

/// Whether a hook's last word is only that mark, and no event.
pub fn is_mark(word: &[u8]) -> bool {
    word == NAME.as_bytes()
}

/// Whether a command runs headcount's hook of this kind, perhaps among others: `program`, whatever it is called, or one of
/// headcount's name.
pub fn runs(command: &str, kind: &str, program: &str) -> bool {
    hook_in(&words(command), kind).is_some() || runs_program(command, kind, program)
}

/// Whether a command runs this very program's hook, perhaps among others.
pub fn runs_program(command: &str, kind: &str, program: &str) -> bool {
    words(command).windows(3).any(|three| three[0].0 == program && three[1].0 == "hook" && three[2].0 == kind)
}

/// Whether a command does nothing else: before it only variables may be set, behind it only its output be sent elsewhere.
pub fn is_ours(command: &str, kind: &str) -> bool {
    let words = words(command);
    let Some((at, end)) = hook_in(&words, kind) else { return false };
    let rest = command.get(end..).unwrap_or_default();
    words[..at].iter().all(|(word, _)| is_assignment(word)) && (sends_output(rest) || rest.trim() == "|| true")
}

/// Where headcount's hook of this kind stands among these words, by its name or its mark, and where in the command it ends.
fn hook_in(words: &[(String, usize)], kind: &str) -> Option<(usize, usize)> {
    words.windows(3).enumerate().find_map(|(at, three)| {
        let [(program, _), (hook, _), (word, end)] = three else { return None };
        let mark = words.get(at + 3).filter(|(word, _)| is_mark(word.as_bytes()));
        let is_ours = hook == "hook" && word == kind && (mark.is_some() || is_headcount(program));
        is_ours.then_some((at, mark.map_or(*end, |(_, end)| *end)))
    })
}

fn is_headcount(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name) == NAME
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// Whether nothing follows but `> FILE`, `2>/dev/null`, `2>&1` and the like.
fn sends_output(rest: &str) -> bool {
    let mut rest = rest.trim();
    while !rest.is_empty() {
        let from = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('&');
        let Some(to) = from.strip_prefix('>') else { return false };
        let to = to.trim_start_matches(['>', '&']).trim_start();
        let end = to.find(char::is_whitespace).unwrap_or(to.len());
        if end == 0 || to[..end].contains([';', '|', '&', '`', '$', '(', '<', '>']) {
            return false;
        }
        rest = to[end..].trim_start();
    }
    true
}

/// The words as a shell reads them, each with where it ends. What separates commands and begins redirections ends a word.
fn words(command: &str) -> Vec<(String, usize)> {
    let mut words: Vec<(String, usize)> = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    let mut chars = command.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            // Elsewhere it is part of a path.
            (None, '\\') if chars.peek().is_some_and(|(_, next)| "'\" $".contains(*next)) => {
                word.extend(chars.next().map(|(_, next)| next));
            }
            (None, c) if c.is_whitespace() || ";|&<>()".contains(c) => {
                if !word.is_empty() {
                    words.push((std::mem::take(&mut word), at));
                }
                if !c.is_whitespace() {
                    words.push((c.to_string(), at + 1));
                }
            }
            _ => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push((word, command.len()));
    }
    words
}

/// A path as a word of a shell.
fn quoted(path: &str) -> String {
    if path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+:@%".contains(&b)) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted("/usr/bin/headcount"), "/usr/bin/headcount");
        assert_eq!(quoted("/it's $HOME/headcount"), "'/it'\\''s $HOME/headcount'");
        let program = "/it's $HOME/headcount";
        assert!(runs_program(&of(program, "claude"), "claude", program));
        assert!(!runs_program(&of(program, "claude"), "claude", "/opt/headcount"));
    }

    #[test]
    fn only_our_own_commands_are_ours() {
        for ours in [
            "headcount hook claude",
            "/a/headcount hook claude",
            "'/a b/headcount' hook claude",
            "C:\\headcount.exe hook claude",
            "FOO=1 A=b /a/headcount hook claude ",
            "/a/headcount hook claude 2>/dev/null",
            "/a/headcount  hook claude > /tmp/log 2>&1",
            "/a/headcount hook claude || true",
        ] {
            assert!(is_ours(ours, "claude") && runs(ours, "claude", "/x/hc"), "{ours}");
        }
        for beside in ["headcount hook claude; rm -rf /", "say; headcount hook claude", "headcount hook claude 2>&1; x"]
        {
            assert!(!is_ours(beside, "claude") && runs(beside, "claude", "/x/hc"), "{beside}");
        }
        assert!(runs("/x/hc hook claude", "claude", "/x/hc") && !is_ours("/x/hc hook claude", "claude"));
        assert_eq!(of("/x/hc", "claude"), "/x/hc hook claude headcount");
        for ours in ["/x/hc hook claude headcount", "A=1 '/a b/hc' hook claude headcount 2>&1"] {
            assert!(is_ours(ours, "claude") && runs(ours, "claude", "/y/other"), "{ours}");
        }
        assert!(
            !is_ours("/x/hc hook claude headcount; x", "claude") && !is_ours("/x/hc hook codex headcount", "claude")
        );
        for other in
            ["headcount hook codex", "myheadcount hook claude", "echo hook claude", "headcount hook claude2", ""]
        {
            assert!(!is_ours(other, "claude") && !runs(other, "claude", "/x/hc"), "{other}");
        }
    }
}
