//! A report as text, made once for all who ask for the same thing within one tick.

use super::{Report, summary};

/// A report as JSON and in words; only its age is still open.
#[derive(Debug)]
pub struct Rendered {
    after_age: String,
    /// The report in words.
    pub summary: String,
    /// How many agents it lists.
    pub agents: usize,
    /// Whether something could not be measured or read.
    pub partial: bool,
}

const AGE: &str = "{\"age_ms\":";

impl Rendered {
    /// Writes `report` out.
    ///
    /// # Errors
    /// None that is known: the report has no map with keys that are no text.
    pub fn new(report: &Report) -> serde_json::Result<Self> {
        let json = serde_json::to_string(report)?;
        let after_age = json.split_once(',').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        debug_assert!(json.starts_with(AGE), "the age stands first");
        Ok(Self { after_age, summary: summary(report), agents: report.agents.len(), partial: report.partial })
    }

    /// The JSON's beginning with the age that the report has now; [`Self::tail`] is the rest.
    pub fn head(age_ms: u64) -> String {
        format!("{AGE}{age_ms},")
    }

    /// The JSON after the age.
    pub fn tail(&self) -> &str {
        &self.after_age
    }
}
