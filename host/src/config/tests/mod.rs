//! Tests of the configuration; a file under `tests/configs` is a test.

mod load;

use super::*;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The `.toml` files of a folder under `tests/configs`.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/configs").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert!(!files.is_empty());
    files.sort();
    files
}

fn read(path: &Path) -> Result<Checked<Config>, Problems> {
    check_toml(&fs::read_to_string(path).unwrap(), path.file_name().unwrap().as_ref())
}

#[test]
fn valid_files_are_read() {
    for path in files("valid") {
        assert!(read(&path).is_ok(), "{}: {}", path.display(), read(&path).unwrap_err());
    }
}

#[test]
fn invalid_files_say_all_that_is_wrong() {
    for path in files("invalid") {
        let problems = read(&path).map(|_| ()).expect_err(&path.display().to_string()).to_string();
        let expected = path.with_extension("stderr");
        if !expected.exists() {
            fs::write(&expected, format!("{problems}\n")).unwrap();
            panic!("{} was written: is it what should be said?", expected.display());
        }
        assert_eq!(format!("{problems}\n"), fs::read_to_string(&expected).unwrap(), "{}", path.display());
    }
}

#[test]
fn the_checker_heeds_every_keyword_of_the_schema() {
    assert_eq!(unheeded_keywords(schema().as_value()), Vec::<String>::new());
}

#[test]
fn what_is_printed_reads_as_the_same() {
    for path in files("valid") {
        let variables = [("HOME", "/h"), ("HEADCOUNT_SAMPLING_KEEP_ENDED", "7s")].into_iter().collect();
        let loaded = load(&variables, Some(&path), &[]).unwrap();
        for origin in [false, true] {
            let printed = loaded.print(origin).unwrap();
            let again = check_toml::<Config>(&printed, Path::new("printed")).unwrap();
            assert_eq!(again.value, loaded.config, "{printed}");
        }
    }
}

#[test]
fn each_printed_setting_says_its_origin() {
    let text = "[audit]\nkeep = 2\n[[kind]]\nname = \"k\"\nexe = [\"a\",\n  \"b\"]\n[[policy]]\npath = \"builtin\"\nsettings.note = \"two\\nlines\"";
    let loaded = load::load_text(text, &[("HEADCOUNT_SAMPLING_TICK", "2s")], &[]).unwrap();
    let printed = loaded.print(true).unwrap();
    let dir = loaded.file.unwrap().parent().unwrap().display().to_string() + "/";
    insta::assert_snapshot!(printed.replace(&dir, ""));
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
    fn any_valid_setting_prints_and_reads_as_the_same(
        tick in 100..1_000_000_u64, cpu in 0.0..1e9_f64, io in 0..i64::MAX as u64, keep in 1..1000_u32, memory in (64_u64 << 10)..(1 << 30),
        path in "/[^/\0]{1,12}", names in prop::collection::btree_set("[a-z0-9-]{1,8}", 0..3), note in any::<String>(),
    ) {
        let mut config = Config::default();
        config.sampling.tick = Span::from_millis(tick);
        config.sampling.idle_tick = Span::from_millis(tick * 2);
        config.sampling.window = Span::from_millis(tick * 3);
        config.sampling.quiet_cpu_percent = cpu;
        config.sampling.quiet_io = io;
        config.audit.keep = keep;
        config.rosters = vec![path.into()];
        config.kinds = names.into_iter().map(|name| Kind {
            name, exe: vec![], program: vec!["*".into()], script: vec![], module: vec![note.clone()], exclude: vec![], launcher: vec![],
        }).collect();
        let settings = [(note.clone(), note.into())].into_iter().collect();
        config.policies = vec![Policy { settings, ..Policy::builtin() }];
        config.limits.memory = Size(memory);
        let loaded = Loaded { config, file: None, origins: Origins::default() };
        for origin in [false, true] {
            let printed = loaded.print(origin).unwrap();
            let again = check_toml::<Config>(&printed, Path::new("printed")).map_err(|e| TestCaseError::fail(format!("{e}\n{printed}")))?;
            prop_assert_eq!(&again.value, &loaded.config);
        }
    }

    #[test]
    fn a_span_is_written_as_it_is_read(nanos in any::<u64>()) {
        let span = Span(std::time::Duration::from_nanos(nanos));
        prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
    }
}
