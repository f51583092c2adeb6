//! Which tools may be called. Nothing that stands in a request has a say in it.

use super::response::Category;
use crate::upstream::Tool;
use std::collections::BTreeSet;

/// Who may be called though it may change something.
#[derive(Debug, Clone, Default)]
pub struct Permit {
    /// By name, exactly.
    pub allowed: BTreeSet<String>,
    /// Where it is set, no other tool may be called in any case.
    pub only: Option<BTreeSet<String>>,
}

impl Permit {
    /// Whether the tool of this name may be called, among those that the server has now.
    ///
    /// # Errors
    /// When it may not, or there is none.
    pub fn check(&self, name: &str, tools: &[Tool]) -> Result<(), Category> {
        if self.only.as_ref().is_some_and(|only| !only.contains(name)) {
            return Err(Category::NOT_ALLOWED);
        }
        let mut of_this_name = tools.iter().filter(|tool| tool.name == name).peekable();
        if of_this_name.peek().is_none() {
            return Err(Category::UNKNOWN_TOOL);
        }
        // Of two with one name nobody knows which one is called.
        let may = self.allowed.contains(name) || of_this_name.all(is_read_only);
        if may { Ok(()) } else { Err(Category::NOT_ALLOWED) }
    }

    /// The names of the tools that may be called, each once.
    pub fn names(&self, tools: &[Tool]) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let may = |tool: &&Tool| self.check(&tool.name, tools).is_ok() && seen.insert(tool.name.clone());
        tools.iter().filter(may).map(|tool| tool.name.to_string()).collect()
    }

    /// How many are allowed by name that the server does not have.
    pub fn missing(&self, tools: &[Tool]) -> usize {
        self.allowed.iter().filter(|name| !tools.iter().any(|tool| tool.name == **name)).count()
    }
}

fn is_read_only(tool: &Tool) -> bool {
    tool.annotations.as_ref().is_some_and(|says| says.read_only_hint == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, annotations: serde_json::Value) -> Tool {
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn who_changes_nothing_or_is_named_may_be_called() {
        let tools = [
            tool("reads", json!({"readOnlyHint": true})),
            tool("writes", json!({"readOnlyHint": false, "idempotentHint": true})),
            tool("says_nothing", json!(null)),
            tool("twice", json!({"readOnlyHint": true})),
            tool("twice", json!({"readOnlyHint": false})),
        ];
        let permit = Permit { allowed: ["says_nothing".to_owned(), "gone".to_owned()].into(), only: None };
        assert_eq!((permit.names(&tools), permit.missing(&tools)), (vec!["reads".into(), "says_nothing".into()], 1));
        for (name, wanted) in [
            ("reads", Ok(())),
            ("says_nothing", Ok(())),
            ("writes", Err(Category::NOT_ALLOWED)),
            ("twice", Err(Category::NOT_ALLOWED)),
            ("gone", Err(Category::UNKNOWN_TOOL)),
            ("Reads", Err(Category::UNKNOWN_TOOL)),
            ("reads ", Err(Category::UNKNOWN_TOOL)),
        ] {
            assert_eq!(permit.check(name, &tools), wanted, "{name}");
        }
        let only = Permit { only: Some(["writes".to_owned()].into()), ..permit };
        assert_eq!(only.check("reads", &tools), Err(Category::NOT_ALLOWED));
        assert_eq!(only.check("writes", &tools), Err(Category::NOT_ALLOWED));
    }
}
