//! Records that are looked for by the id of a conversation, in folders that do not say whose they are.

use super::value::Id;
use crate::clock::Moment;
use crate::files::Stamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How soon a record that was not found is looked for again.
const RETRY: Duration = Duration::from_secs(5);

/// How soon one that was found is: there may be a copy by now.
const FOUND_FOR: Duration = Duration::from_secs(60);

/// Where the records of conversations are, by the folder below which they are looked for and the conversation.
#[derive(Debug, Default)]
pub(super) struct Sought(HashMap<(PathBuf, String), Found>);

#[derive(Debug)]
struct Found {
    records: Vec<PathBuf>,
    at: Duration,
    /// Whether it was asked for in this tick.
    wanted: bool,
}

impl Sought {
    /// Begins a tick: forgets what was not asked for in the last one.
    pub(super) fn begin(&mut self) {
        self.0.retain(|_, found| std::mem::take(&mut found.wanted));
    }

    /// The only record of a conversation below a folder, as `search` finds it there. It is looked for now and then, and when
    /// the one that was found is gone.
    ///
    /// # Errors
    /// There is none, there are several, or nobody can search.
    pub(super) fn only(
        &mut self,
        below: PathBuf,
        id: &Id,
        now: Moment,
        search: impl Fn(&Path) -> Result<Vec<PathBuf>, String>,
    ) -> Result<PathBuf, String> {
        let key = (below, id.as_str().to_owned());
        let stands = |found: &Found| {
            let age = now.steady.saturating_sub(found.at);
            match found.records.as_slice() {
                [record] => age < FOUND_FOR && Stamp::of_itself(record).is_ok(),
                _ => age < RETRY,
            }
        };
        let found = match self.0.remove(&key).filter(stands) {
            Some(found) => Found { wanted: true, ..found },
            None => Found { records: search(&key.0)?, at: now.steady, wanted: true },
        };
        let said = match found.records.as_slice() {
            [] => Err("its conversation has no record yet".to_owned()),
            [record] => Ok(record.clone()),
            several => {
                Err(format!("its conversation has {} records; which one is meant is not decided", several.len()))
            }
        };
        self.0.insert(key, found);
        said
    }

    /// Has the record of a conversation be looked for anew.
    pub(super) fn forget(&mut self, record: &Path) {
        self.0.retain(|_, found| found.records != [record]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;

    #[test]
    fn a_record_is_looked_for_now_and_then_and_when_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        let (mut sought, searched, id) = (Sought::default(), Cell::new(0), Id::new("x").unwrap());
        let mut look = |second, there: &[&PathBuf]| {
            let now = Moment { unix_ms: 0, steady: Duration::from_secs(second) };
            sought.begin();
            sought.only(dir.path().to_owned(), &id, now, |_| {
                searched.set(searched.get() + 1);
                Ok(there.iter().map(|path| path.to_path_buf()).collect())
            })
        };
        assert!(look(0, &[]).unwrap_err().contains("no record yet"));
        assert!(look(4, &[&one]).is_err());
        fs::write(&one, "").unwrap();
        assert_eq!(look(5, &[&one]), Ok(one.clone()));
        assert_eq!(look(64, &[&one, &two]), Ok(one.clone()));
        assert!(look(65, &[&one, &two]).unwrap_err().contains("has 2 records"));
        assert_eq!(look(70, &[&one]), Ok(one.clone()));
        fs::remove_file(&one).unwrap();
        assert!(look(71, &[]).is_err());
        assert_eq!(searched.get(), 5);
        sought.begin();
        sought.begin();
        assert!(sought.0.is_empty());
    }
}
