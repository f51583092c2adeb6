//! Makes components of the policies that are written as WebAssembly text, some for other versions of the interface.

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The version of the interface in `wit/`, as it stands there and in the names of exports.
const VERSION: &str = "@0.1.0";

/// The honest policy, in parts that other files replace.
const HONEST: &str = "honest.wat";

/// The honest policy for an interface that may differ from the one in `wit/`.
struct Variation {
    name: &'static str,
    version: &'static str,
    /// What stands in the interface, and what stands there instead.
    wit: Option<(&'static str, &'static str)>,
    /// What such a module has besides.
    wat: &'static str,
}

const VARIATIONS: [Variation; 6] = [
    Variation { name: "honest", version: VERSION, wit: None, wat: "" },
    Variation { name: "patch", version: "@0.1.1", wit: None, wat: "" },
    Variation { name: "pre-release", version: "@0.1.1-rc.1", wit: None, wat: "" },
    Variation { name: "next-version", version: "@0.2.0", wit: None, wat: "" },
    Variation {
        name: "added-field",
        version: "@0.1.1",
        wit: Some(("{ field: string, reason: string }", "{ field: string, reason: string, since-ms: option<u64> }")),
        wat: "",
    },
    Variation {
        name: "added-import",
        version: "@0.1.1",
        wit: Some(("export policy;", "import now: func() -> u64; export policy;")),
        wat: r#"(import "$root" "now" (func (result i64)))"#,
    },
];

/// Writes `OUT/NAME.wasm` for each `NAME.wat` in `folder` and for each variation of the honest one.
///
/// # Errors
/// What is wrong with which of them.
pub fn build(folder: &Path, wit: &Path, out: &Path) -> Result<()> {
    let wit = read(wit)?;
    let honest = read(&folder.join(HONEST))?;
    let write = |name: &Path, component: Result<Vec<u8>>| -> Result<()> {
        let component = component.with_context(|| name.display().to_string())?;
        Ok(fs::write(out.join(name).with_extension("wasm"), component)?)
    };
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() || path.ends_with(HONEST) {
            continue;
        }
        let own = read(&path)?;
        let component = if own.contains("(component") {
            wat::parse_str(&own).map_err(Into::into)
        } else {
            component(&complete(&own, &honest), &wit)
        };
        write(path.file_stem().map_or(&path, Path::new), component)?;
    }
    write(Path::new("compile-bomb"), component(&format!("{honest}\n{}", bomb()), &wit))?;
    write(Path::new("composed"), composed(&folder.join("composed"), &honest, &wit))?;
    VARIATIONS.iter().try_for_each(|variation| write(Path::new(variation.name), variation.component(&honest, &wit)))
}

/// A function that is small, and on which a compiler works for seconds: many values are alive across many branches.
fn bomb() -> String {
    const LOCALS: usize = 1_500;
    const BRANCHES: usize = 12_000;
    let branch = |n: usize| {
        let (to, from) = (n * 7 % LOCALS, (n * 13 + 5) % LOCALS);
        format!("(if (local.get {from}) (then (local.set {to} (i32.add (local.get {from}) (local.get {to})))))")
    };
    let body: Vec<String> = (0..BRANCHES).map(branch).collect();
    let sum = (0..LOCALS).map(|n| format!("(i32.xor (local.get {n}))")).collect::<Vec<_>>().join(" ");
    let locals = "i32 ".repeat(LOCALS - 1);
    format!("(func (param i32) (result i32) (local {locals}) {} (i32.const 0) {sum})", body.join("\n"))
}

impl Variation {
    fn component(&self, honest: &str, wit: &str) -> Result<Vec<u8>> {
        let mut wit = replace(wit, VERSION, self.version)?;
        if let Some((from, to)) = self.wit {
            wit = replace(&wit, from, to)?;
        }
        let honest = replace(honest, VERSION, self.version)?;
        component(&format!("{}\n{honest}", self.wat), &wit)
    }
}

/// Two components in one. Text cannot hold one that is encoded already, so the outer's text begins with an empty component, and
/// the policy takes its place.
fn composed(folder: &Path, honest: &str, wit: &str) -> Result<Vec<u8>> {
    const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
    /// The number of a section that holds a component.
    const COMPONENT: u8 = 4;
    let wit = replace(wit, "export policy;", "import take: func(elements: u32); export policy;")?;
    let module = complete(&read(&folder.join("inner.wat"))?, honest);
    let inner = component(&format!("(import \"$root\" \"take\" (func $take (param i32)))\n{module}"), &wit)?;
    let outer = wat::parse_str(read(&folder.join("outer.wat"))?)?;
    let begins_with_it = outer.starts_with(HEADER) && outer[HEADER.len()] == COMPONENT;
    ensure!(begins_with_it, "the outer component does not begin with another one");
    // Its length is that of its name and a few bytes more, so one byte has it.
    let others = &outer[HEADER.len() + 2 + usize::from(outer[HEADER.len() + 1])..];
    Ok([HEADER, &[COMPONENT], &leb128(inner.len()), &inner, others].concat())
}

/// A number as WebAssembly writes lengths: seven bits a byte, the lowest first.
fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A module's `own` fields, after those parts of the honest one whose exports it does not have.
fn complete(own: &str, honest: &str) -> String {
    let export = |part: &str| {
        let (_, name) = part.split_once("(export ")?;
        Some(format!("(export {}", name.split_inclusive(')').next()?))
    };
    let parts = honest.split("\n\n").filter(|part| export(part).is_none_or(|export| !own.contains(&export)));
    parts.chain([own]).collect::<Vec<_>>().join("\n\n")
}

/// Encodes a module, given as text, for the only world of `wit`.
fn component(module: &str, wit: &str) -> Result<Vec<u8>> {
    let mut module = wat::parse_str(module)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_source("policy.wit", wit)?;
    let world = resolve.select_world(&[package], None)?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default().validate(true).module(&module)?.encode()
}

fn replace(text: &str, from: &str, to: &str) -> Result<String> {
    ensure!(text.contains(from), "{from} is no longer in it");
    Ok(text.replace(from, to))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
