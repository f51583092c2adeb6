//! Where an agent keeps its records: in a folder that a variable of its environment names, or below the home directory.

use super::Subject;
use std::path::{Path, PathBuf};

/// The folder of an agent, by the environment of its own process, not by that of this program.
///
/// # Errors
/// It cannot be known.
pub(super) fn folder(agent: &Subject, variable: &str, home: Option<&Path>, below: &str) -> Result<PathBuf, String> {
    let Some((_, program)) = agent.processes.last() else { return Err("it has no process here".to_owned()) };
    let environment = program.env.as_ref().map_err(|why| format!("its environment cannot be read: {why}"))?;
    let named = environment.iter().find(|(name, value)| name == variable && !value.trim().is_empty());
    match (named, home) {
        (Some((_, value)), _) if Path::new(value).is_absolute() => Ok(PathBuf::from(value)),
        (Some(_), _) => Err(format!("{variable} of its environment is no absolute path")),
        (None, Some(home)) => Ok(home.join(below)),
        (None, None) => Err("there is no home directory".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subject;
    use super::*;

    #[test]
    fn the_agents_own_environment_says_where() {
        let home = Some(Path::new("/home/me"));
        let place = |env| folder(&subject("copilot", env), "COPILOT_HOME", home, ".copilot");
        let set =
            |value: &str| Ok(vec![("TMUX".to_owned(), "x".to_owned()), ("COPILOT_HOME".to_owned(), value.to_owned())]);
        assert_eq!(place(Ok(vec![])), Ok("/home/me/.copilot".into()));
        assert_eq!(place(set("/srv/copilot")), Ok("/srv/copilot".into()));
        assert_eq!(place(set(" ")), Ok("/home/me/.copilot".into()));
        assert!(place(set("copilot")).unwrap_err().contains("no absolute path"));
        assert!(place(Err("permission denied".to_owned())).unwrap_err().contains("permission denied"));
        assert!(folder(&subject("copilot", Ok(vec![])), "COPILOT_HOME", None, ".copilot").is_err());
    }
}
