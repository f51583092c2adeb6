//! Whether a process runs a configured command.

use std::fmt;

/// What starts a server, as an agent's configuration has it. Arguments may hold secrets: it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: String,
    /// What it is given.
    pub args: Vec<String>,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Command")
    }
}

/// Programs that do nothing but run others, and interpreters: what stands before a script's name.
const LAUNCHERS: [&str; 22] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "env", "timeout", "nice", "nohup", "stdbuf", "setsid", "sudo", "npm",
    "npx", "node", "bun", "deno", "uv", "uvx", "ruby", "perl",
];

/// Shells, which may be given what they are to run as one text.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Options of `npx` before the package that take the next word.
const NPX_VALUES: [&str; 4] = ["-p", "--package", "-w", "--workspace"];

/// Whether a process does nothing but run others, so that the server may be its child.
pub fn is_launcher(argv: &[String]) -> bool {
    let title = words(argv);
    title.first().is_some_and(|program| is_one_of(program, &LAUNCHERS) || name(program).starts_with("python"))
}

/// Whether a process with this command line runs the configured command: itself, by an interpreter or a launcher whose
/// command line ends with it, as the text that a shell is given, or under the title that `npx` takes.
pub fn runs(argv: &[String], configured: &Command) -> bool {
    let argv = words(argv);
    let plain: Vec<&str> = [configured.program.as_str()].into_iter().chain(args(configured)).collect();
    let forms = [Some(plain), titled(configured), in_shell(&configured.program, &args(configured).collect::<Vec<_>>())];
    let text = argv.first().and_then(|shell| in_shell(shell, &argv[1..]));
    forms.iter().flatten().any(|form| ends_with(&argv, form) || text.as_ref().is_some_and(|text| is_same(text, form)))
}

fn args(command: &Command) -> impl Iterator<Item = &str> {
    command.args.iter().map(String::as_str)
}

/// The words of a command line. One that was written over by a title has it in its first slot, and nothing in the others.
fn words(argv: &[String]) -> Vec<&str> {
    match argv {
        [title, rest @ ..] if title.starts_with("npm ") && rest.iter().all(String::is_empty) => {
            title.split_whitespace().collect()
        }
        argv => argv.iter().map(String::as_str).collect(),
    }
}

/// What `npx` calls itself once it runs: its own options are gone.
fn titled(configured: &Command) -> Option<Vec<&str>> {
    let args: Vec<&str> = args(configured).collect();
    let rest = match (name(&configured.program), args.as_slice()) {
        ("npx", rest) | ("npm", ["exec" | "x", rest @ ..]) => rest,
        _ => return None,
    };
    let mut rest = rest.iter().copied().peekable();
    while let Some(option) = rest.next_if(|word| word.starts_with('-')) {
        if NPX_VALUES.contains(&option) {
            rest.next();
        }
    }
    Some(["npm", "exec"].into_iter().chain(rest).collect())
}

/// The words of the text that a shell is given with `-c`.
fn in_shell<'c>(shell: &str, args: &[&'c str]) -> Option<Vec<&'c str>> {
    if !is_one_of(shell, &SHELLS) {
        return None;
    }
    let at = args.iter().position(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.ends_with('c'))?;
    let is_assignment =
        |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    let words = args.get(at + 1)?.split_whitespace().skip_while(|word| *word == "exec" || is_assignment(word));
    Some(words.map(|word| word.trim_matches(['"', '\''])).collect())
}

/// Whether a command line ends with a command, and what stands before it only runs it.
fn ends_with(argv: &[&str], command: &[&str]) -> bool {
    let Some(at) = argv.len().checked_sub(command.len()) else { return false };
    let launched = at == 0 || is_one_of(argv[0], &LAUNCHERS) || name(argv[0]).starts_with("python");
    launched && is_same(&argv[at..], command)
}

/// Whether two commands are the same, wherever their programs are. What a configuration fills in later may be anything.
fn is_same(argv: &[&str], command: &[&str]) -> bool {
    let same_word = |(a, b): (&&str, &&str)| a == b || b.contains('$');
    let (Some((program, given)), Some((named, args))) = (argv.split_first(), command.split_first()) else {
        return false;
    };
    name(program) == name(named) && given.len() == args.len() && given.iter().zip(args).all(same_word)
}

fn is_one_of(program: &str, names: &[&str]) -> bool {
    names.contains(&name(program))
}

/// What a program is called, without its folder and what only Windows adds.
fn name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots(line: &[&str]) -> Vec<String> {
        line.iter().map(|slot| (*slot).to_owned()).collect()
    }

    fn command(line: &[&str]) -> Command {
        Command { program: line[0].to_owned(), args: slots(&line[1..]) }
    }

    #[test]
    fn a_process_that_runs_the_command_is_known_however_it_was_started() {
        let npx = &["npx", "-y", "@mcp/files@latest", "/srv"][..];
        let uvx = &["uvx", "mcp-server-git", "--repository", "."][..];
        for (argv, configured) in [
            (npx, npx),
            (&["/usr/bin/node", "/usr/bin/npx", "-y", "@mcp/files@latest", "/srv"], npx),
            (&["npm exec @mcp/files@latest /srv", "", "", ""], npx),
            (&["sh", "-c", "npx -y @mcp/files@latest /srv"], npx),
            (&["/bin/bash", "-lc", "A=1 exec npx -y '@mcp/files@latest' /srv"], npx),
            (npx, &["bash", "-c", "npx -y @mcp/files@latest /srv"]),
            (&["npm exec tool a"], &["npx", "--yes", "-p", "@mcp/tools", "tool", "a"]),
            (&["/home/me/.local/bin/uv", "tool", "uvx", "mcp-server-git", "--repository", "."], uvx),
            (&["/usr/bin/python3", "/usr/bin/uvx", "mcp-server-git", "--repository", "."], uvx),
            (&["timeout", "600", "uvx", "mcp-server-git", "--repository", "."], uvx),
            (&["headcount", "serve"], &["/usr/local/bin/headcount", "serve"]),
            (&["node", "/srv/x.js", "--dir", "/home/me/data"], &["node", "/srv/x.js", "--dir", "${HOME}/data"]),
            (&["/bin/sh", "/opt/server"], &["/opt/server"]),
        ] {
            assert!(runs(&slots(argv), &command(configured)), "{argv:?} runs {configured:?}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_another_thing() {
        for (argv, configured) in [
            (&["grep", "-r", "node"][..], &["node"][..]),
            (&["vim", "npx", "-y", "x"], &["npx", "-y", "x"]),
            (&["npx", "-y", "x", "more"], &["npx", "-y", "x"]),
            (&["npx", "-y", "x"], &["npx", "-y", "x", "more"]),
            (&["npm exec other"], &["npx", "x"]),
            (&["bash", "-c", "cat secret && npx x"], &["npx", "x"]),
            (&["bash", "-c", "npx x; true"], &["npx", "x"]),
            (&["node", "other.js"], &["node", "server.js"]),
            (&[], &["node"]),
        ] {
            assert!(!runs(&slots(argv), &command(configured)), "{argv:?} runs {configured:?}");
        }
    }

    #[test]
    fn launchers_are_known() {
        for yes in [&["sh", "-c", "x"][..], &["/usr/bin/python3.12", "x.py"], &["npm exec x"], &["/usr/bin/env", "x"]] {
            assert!(is_launcher(&slots(yes)), "{yes:?}");
        }
        assert!(!is_launcher(&slots(&["vim"])) && !is_launcher(&[]));
    }

    #[test]
    fn no_command_is_shown() {
        assert_eq!(format!("{:?}", command(&["x", "--token", "secret"])), "Command");
    }

    proptest! {
        #[test]
        fn no_command_line_breaks_it(argv in prop::collection::vec(".{0,12}", 0..5), line in prop::collection::vec(".{0,12}", 1..5)) {
            let configured = Command { program: line[0].clone(), args: line[1..].to_vec() };
            let _ = (runs(&argv, &configured), is_launcher(&argv));
            prop_assert!(runs(&line, &configured) || line[0].starts_with("npm "));
        }
    }
}
