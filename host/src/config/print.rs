//! The effective configuration as text.

use super::load::Loaded;
use super::problem::{Origin, Origins, entry, item};
use toml::de::{DeTable, DeValue};

impl Loaded {
    /// The effective configuration as TOML, which reads as the same configuration; with `origin`, a comment behind each
    /// setting says where it was set.
    ///
    /// # Errors
    /// When a setting is nothing that TOML can say; one that was loaded always is.
    pub fn print(&self, origin: bool) -> Result<String, toml::ser::Error> {
        let text = toml::to_string(&self.config)?;
        let Ok(root) = DeTable::parse(&text) else {
            return Ok(text);
        };
        if !origin {
            return Ok(text);
        }
        let mut notes = Notes { origins: &self.origins, at: vec![] };
        notes.table(root.get_ref(), "");
        notes.at.sort_unstable();
        let mut noted = String::new();
        let mut start = 0;
        for (end, note) in &notes.at {
            noted.push_str(&text[start..*end]);
            noted.push_str(note);
            start = *end;
        }
        noted.push_str(&text[start..]);
        Ok(noted)
    }
}

/// What to write behind which byte.
struct Notes<'o> {
    origins: &'o Origins,
    at: Vec<(usize, String)>,
}

impl Notes<'_> {
    fn table(&mut self, table: &DeTable<'_>, path: &str) {
        for (name, value) in table {
            let path = entry(path, name.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.table(table, &path),
                DeValue::Array(items) if !items.is_empty() && items.iter().all(|i| i.get_ref().is_table()) => {
                    for (index, table) in items.iter().enumerate() {
                        if let DeValue::Table(table) = table.get_ref() {
                            self.table(table, &item(&path, index));
                        }
                    }
                }
                _ => {
                    // A file's name may hold what would end a comment.
                    let origin = self.origins.get(&path).unwrap_or(&Origin::Default);
                    let origin = origin.to_string().replace(char::is_control, "?");
                    self.at.push((value.span().end, format!("  # {origin}")));
                }
            }
        }
    }
}
