//! Projects and what their builds come to. The real build of a real project is tested with the executable.

use super::build::build;
use super::project::{LANGUAGES, typed, write};
use super::{MANIFEST, Manifest};
use headcount_tests::BUDGET_POLICY;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};

/// A project with this manifest.
fn project(manifest: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join(MANIFEST), manifest).unwrap();
    folder
}

/// A project whose build makes this.
fn built(output: &[u8]) -> TempDir {
    let folder = project("name = \"p\"\nbuild = [\"cp\", \"source\", \"out\"]\noutput = \"out\"\n");
    fs::write(folder.path().join("source"), output).unwrap();
    folder
}

/// Builds a project and puts the component in its place.
fn component(project: &Path) -> anyhow::Result<PathBuf> {
    let built = build(project)?;
    built.write()?;
    Ok(built.path)
}

/// Why no component could be made.
fn failure(folder: &TempDir) -> String {
    component(folder.path()).unwrap_err().to_string()
}

/// Every file below a folder, with its text where it is one.
fn texts(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn a_project_in_each_language_bears_its_own_name() {
    for language in LANGUAGES {
        let folder = tempdir().unwrap();
        let project = write(folder.path(), "night-shift_2", language).unwrap();
        assert_eq!(Manifest::read(&project).unwrap().name, "night-shift_2");
        let mut files = Vec::new();
        texts(&project, &mut files);
        for name in ["policy.toml", "README.md", ".gitignore", "wit/policy.wit", "within_budget/expected.json"] {
            assert!(files.iter().any(|(path, _)| path.ends_with(name)), "{}: no {name}", language.name);
        }
        for (path, text) in &files {
            assert!(!text.contains("\"budget\"") && !text.contains("budget.wasm"), "{path}");
        }
        let named = files.iter().filter(|(_, text)| text.contains("\"night-shift_2\"")).count();
        assert!(named >= 2, "{}: the manifest and the source", language.name);
    }
}

#[test]
fn what_is_there_is_not_written_over() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(write(folder.path(), "empty", &LANGUAGES[0]).is_ok());
    let again = write(folder.path(), "empty", &LANGUAGES[0]).unwrap_err().to_string();
    assert!(again.contains("not empty: take another name"), "{again}");
    fs::write(folder.path().join("file"), "").unwrap();
    let file = write(folder.path(), "file", &LANGUAGES[0]).unwrap_err().to_string();
    assert!(file.contains("in the way"), "{file}");
}

#[test]
fn a_name_must_do_as_a_folder_a_file_and_a_package() {
    let folder = tempdir().unwrap();
    let longest = "a".repeat(40);
    for good in ["a", "night-watch_2", &longest] {
        assert!(write(folder.path(), good, &LANGUAGES[0]).is_ok(), "{good}");
    }
    let too_long = "a".repeat(41);
    for bad in ["", "A", "2nd", "-a", "a b", "a/b", "..", "ä", &too_long] {
        let error = write(folder.path(), bad, &LANGUAGES[0]).unwrap_err().to_string();
        assert!(error.contains("take a small letter"), "{bad}: {error}");
    }
}

#[test]
fn a_manifest_that_is_not_sound_is_refused_by_the_key() {
    for (manifest, named) in [
        ("name = \"p\"\nbuild = [\"true\"]\noutputs = \"out\"\n", "`outputs`"),
        ("name = \"p\"\noutput = \"out\"\n", "`build`"),
        ("name = \"p\"\nbuild = \"true\"\noutput = \"out\"\n", "expected a sequence"),
        ("name = \"P!\"\nbuild = [\"true\"]\noutput = \"out\"\n", "\"P!\""),
        ("name = \"p\"\nbuild = []\noutput = \"out\"\n", "no command in `build`"),
        ("name = \"p\"\nbuild = [\"true\"]\noutput = \"../out\"\n", "`output` is \"../out\""),
        ("name = \"p\"\nbuild = [\"true\"]\noutput = \"a/../../out\"\n", "`output` is \"a/../../out\""),
        ("name = \"p\"\nbuild = [\"true\"]\noutput = \"/tmp/out\"\n", "`output` is \"/tmp/out\""),
        ("name = \"p\"\nbuild = [\"true\"]\noutput = \"\"\n", "`output` is \"\""),
        ("name = \"p\"\nbuild = [\"true\"]\noutput = \"./p.wasm\"\n", "`output` must be another file than p.wasm"),
    ] {
        let error = failure(&project(manifest));
        assert!(error.contains(named) && error.contains("policy.toml") && !error.contains('\n'), "{error}");
    }
    let nowhere = failure(&tempdir().unwrap());
    assert!(nowhere.contains("headcount policy new NAME"), "{nowhere}");
}

#[test]
fn a_build_that_fails_says_what_to_type() {
    let install = "output = \"out\"\ninstall = \"get the-tool\"\n";
    let missing = failure(&project(&format!("name = \"p\"\nbuild = [\"no-such-tool-anywhere\"]\n{install}")));
    assert!(missing.contains("`no-such-tool-anywhere`, which is not installed"), "{missing}");
    assert!(missing.ends_with("get the-tool"), "{missing}");
    let failed = failure(&project(&format!("name = \"p\"\nbuild = [\"false\"]\n{install}")));
    assert!(failed.contains("`false` failed (exit status: 1)") && failed.ends_with("get the-tool"), "{failed}");
    let made_nothing = failure(&project(&format!("name = \"p\"\nbuild = [\"true\"]\n{install}")));
    assert!(made_nothing.contains("`true` did not make") && made_nothing.contains("`output`"), "{made_nothing}");
}

#[cfg(unix)]
#[test]
fn a_tool_may_lie_in_the_project() {
    let folder = project("name = \"p\"\nbuild = [\"tools/nothing\"]\noutput = \"out\"\n");
    assert!(failure(&folder).contains("`tools/nothing`, which is not installed"));
    fs::create_dir(folder.path().join("tools")).unwrap();
    std::os::unix::fs::symlink("/bin/true", folder.path().join("tools/nothing")).unwrap();
    assert!(failure(&folder).contains("did not make"), "it runs");
}

#[test]
fn what_the_build_makes_must_be_webassembly_with_the_interface() {
    let text = failure(&built(b"#!/bin/sh"));
    assert!(text.contains("is no WebAssembly"), "{text}");
    let no_interface = failure(&built(b"\0asm\x01\0\0\0"));
    assert!(no_interface.contains("does not export headcount:policy/policy"), "{no_interface}");
    let damaged = failure(&built(&BUDGET_POLICY[..BUDGET_POLICY.len() / 2]));
    assert!(damaged.contains("is damaged"), "{damaged}");
    let core_damaged = failure(&built(b"\0asm\x01\0\0\0?"));
    assert!(core_damaged.contains("no component can be made"), "{core_damaged}");
}

#[test]
fn a_component_is_taken_as_it_is() {
    let folder = built(BUDGET_POLICY);
    let path = component(folder.path()).unwrap();
    assert_eq!(path, folder.path().join("p.wasm"));
    assert_eq!(fs::read(path).unwrap(), BUDGET_POLICY);
}

/// What an earlier build has left must not be taken for what this one makes, and must not be lost.
#[test]
fn what_this_build_did_not_make_is_not_taken() {
    let folder = built(BUDGET_POLICY);
    let out = folder.path().join("out");
    for _ in 0..2 {
        assert!(component(folder.path()).is_ok(), "a second build moves the output of the first aside");
    }
    let manifest = |build: &str| {
        let manifest = format!("name = \"p\"\nbuild = [{build}]\noutput = \"out\"\n");
        fs::write(folder.path().join(MANIFEST), manifest).unwrap();
    };
    manifest("\"true\"");
    assert_eq!(failure(&folder), "`true` did not make out; correct `output` in policy.toml");
    assert_eq!(fs::read(&out).unwrap(), BUDGET_POLICY, "it is there again");
    manifest("\"sh\", \"-c\", \"echo half > out; exit 1\"");
    assert!(failure(&folder).contains("failed (exit status: 1)"));
    assert_eq!(fs::read(&out).unwrap(), BUDGET_POLICY, "what a build that failed has left does not stay");
    manifest("\"sh\", \"-c\", \"echo new > out\"");
    assert!(failure(&folder).contains("is no WebAssembly"));
    assert_eq!(fs::read(&out).unwrap(), b"new\n");
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let hidden: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_neither_read_nor_made_elsewhere() {
    let folder = project("name = \"p\"\nbuild = [\"mkfifo\", \"out\"]\noutput = \"out\"\n");
    assert!(failure(&folder).contains("out: is not a regular file"));
    let endless = project("name = \"p\"\nbuild = [\"ln\", \"-s\", \"/dev/zero\", \"out\"]\noutput = \"out\"\n");
    assert!(failure(&endless).contains("out: is not a regular file"));
    let huge = project("name = \"p\"\nbuild = [\"truncate\", \"-s\", \"65M\", \"out\"]\noutput = \"out\"\n");
    assert!(failure(&huge).contains("out: is larger than 64 MiB"));
    let long = project(&format!("name = \"p\" # {}", "x".repeat(64 << 10)));
    assert!(failure(&long).contains("is larger than 64 KiB"));
    let pipe = tempdir().unwrap();
    crate::files::make_pipe(&pipe.path().join(MANIFEST));
    assert!(failure(&pipe).contains("is not a regular file"));
    let (elsewhere, linked) =
        (tempdir().unwrap(), project("name = \"p\"\nbuild = [\"true\"]\noutput = \"link/a/out\"\n"));
    std::os::unix::fs::symlink(elsewhere.path(), linked.path().join("link")).unwrap();
    assert!(failure(&linked).contains("did not make link/a/out"));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "folders are made in the project only");
}

/// A file where a folder should be stands for a full disk.
#[test]
fn half_a_project_does_not_stay() {
    let folder = tempdir().unwrap();
    let language = super::project::Language::of(&[("a/b", b"x"), ("a/b/c", b"x")]);
    fs::create_dir(folder.path().join("there")).unwrap();
    for (parent, name) in [("new/parent", "p"), ("", "p"), ("", "there")] {
        let error = write(&folder.path().join(parent), name, &language).unwrap_err().to_string();
        assert!(error.contains("cannot be written") && !error.contains("are left"), "{error}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["there"]);
    assert_eq!(fs::read_dir(folder.path().join("there")).unwrap().count(), 0);
}

#[test]
fn a_path_is_shown_as_it_is_typed() {
    for (path, shown) in [
        ("a/b-c_1.wasm", "a/b-c_1.wasm"),
        ("my policies/p", "'my policies/p'"),
        ("it's/$HOME", r"'it'\''s/$HOME'"),
        ("-p", "./-p"),
        ("a\u{1b}[2Jb;c", "'ab;c'"),
    ] {
        assert_eq!(typed(Path::new(path)), shown);
    }
}
