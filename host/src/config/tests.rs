//! Tests of the configuration; a file under `tests/configs` is a test.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The `.toml` files of a folder under `tests/configs`.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/configs")
        .join(folder);
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    assert!(!files.is_empty());
    files.sort();
    files
}

fn read(path: &Path) -> Result<Checked<Config>, Problems> {
    check_toml(
        &fs::read_to_string(path).unwrap(),
        path.file_name().unwrap().as_ref(),
    )
}

#[test]
fn valid_files_are_read() {
    for path in files("valid") {
        assert!(
            read(&path).is_ok(),
            "{}: {}",
            path.display(),
            read(&path).unwrap_err()
        );
    }
}

#[test]
fn invalid_files_say_all_that_is_wrong() {
    for path in files("invalid") {
        let problems = read(&path)
            .map(|_| ())
            .expect_err(&path.display().to_string())
            .to_string();
        let expected = path.with_extension("stderr");
        if !expected.exists() {
            fs::write(&expected, format!("{problems}\n")).unwrap();
            panic!(
                "{} was written: is it what should be said?",
                expected.display()
            );
        }
        assert_eq!(
            format!("{problems}\n"),
            fs::read_to_string(&expected).unwrap(),
            "{}",
            path.display()
        );
    }
}

proptest! {
    #[test]
    fn no_text_panics_the_checker(text in any::<String>()) {
        let _ = check_toml::<Config>(&text, Path::new("x.toml"));
    }

    #[test]
    fn no_mangled_file_panics_the_checker(which in 0..100_usize, at in any::<prop::sample::Index>(), noise in ".{0,3}", cut in 0..20_usize) {
        let files = [files("valid"), files("invalid")].concat();
        let mut chars: Vec<char> = fs::read_to_string(&files[which % files.len()]).unwrap().chars().collect();
        let start = if chars.is_empty() { 0 } else { at.index(chars.len()) };
        let end = (start + cut).min(chars.len());
        chars.splice(start..end, noise.chars());
        let _ = check_toml::<Config>(&String::from_iter(chars), Path::new("x.toml"));
    }

    #[test]
    fn a_span_is_written_as_it_is_read(nanos in any::<u64>()) {
        let span = Span(std::time::Duration::from_nanos(nanos));
        prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
    }
}
