//! The part of `wasi_snapshot_preview1` that a program needs which computes and prints: arguments, an environment, clocks,
//! randomness, and two streams to write to. It has no files.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use wasmtime::error::Context as _;
use wasmtime::{Caller, Extern, Linker, Result, bail};

/// What the program can ask for.
pub struct World {
    arguments: Vec<String>,
    environment: Vec<String>,
    started: Instant,
}

impl World {
    /// A world whose monotonic clock begins now.
    pub fn new(arguments: Vec<String>) -> Self {
        // A panic ends the program, and what had been captured of the test would be lost.
        let environment = vec!["RUST_TEST_NOCAPTURE=1".to_owned()];
        Self { arguments, environment, started: Instant::now() }
    }
}

/// The program has ended itself.
#[derive(Debug)]
pub struct Exit(pub ExitCode);

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it ended itself: {:?}", self.0)
    }
}

impl std::error::Error for Exit {}

/// An `errno` of WASI.
type Errno = i32;
const SUCCESS: Errno = 0;
/// Nobody has such a descriptor.
const BADF: Errno = 8;

/// Makes the functions known to `linker`.
///
/// # Errors
/// They are known already.
pub fn link(linker: &mut Linker<World>) -> Result<()> {
    const WASI: &str = "wasi_snapshot_preview1";
    linker
        .func_wrap(WASI, "args_sizes_get", |mut world: Caller<'_, World>, count: u32, size: u32| {
            let sizes = sizes(&world.data().arguments);
            write_all(&mut world, [(count, sizes.0), (size, sizes.1)])
        })?
        .func_wrap(WASI, "args_get", |mut world: Caller<'_, World>, pointers: u32, texts: u32| {
            let arguments = world.data().arguments.clone();
            write_texts(&mut world, &arguments, pointers, texts)
        })?
        .func_wrap(WASI, "environ_sizes_get", |mut world: Caller<'_, World>, count: u32, size: u32| {
            let sizes = sizes(&world.data().environment);
            write_all(&mut world, [(count, sizes.0), (size, sizes.1)])
        })?
        .func_wrap(WASI, "environ_get", |mut world: Caller<'_, World>, pointers: u32, texts: u32| {
            let environment = world.data().environment.clone();
            write_texts(&mut world, &environment, pointers, texts)
        })?
        .func_wrap(WASI, "clock_time_get", clock_time_get)?
        .func_wrap(WASI, "random_get", random_get)?
        .func_wrap(WASI, "fd_write", fd_write)?
        .func_wrap(WASI, "fd_prestat_get", |_: u32, _: u32| BADF)?
        .func_wrap(WASI, "fd_fdstat_get", |_: u32, _: u32| BADF)?
        .func_wrap(WASI, "fd_close", |_: u32| BADF)?
        .func_wrap(WASI, "sched_yield", || SUCCESS)?
        .func_wrap(WASI, "proc_exit", proc_exit)?;
    Ok(())
}

fn clock_time_get(mut world: Caller<'_, World>, clock: u32, _precision: u64, place: u32) -> Result<Errno> {
    let time = match clock {
        0 => SystemTime::now().duration_since(UNIX_EPOCH)?,
        1 => world.data().started.elapsed(),
        other => bail!("there is no clock {other}"),
    };
    let nanoseconds = u64::try_from(time.as_nanos())?;
    write(&mut world, place, &nanoseconds.to_le_bytes())
}

/// The standard library's own source of random numbers, which is good enough for what tests do with them.
fn random_get(mut world: Caller<'_, World>, place: u32, length: u32) -> Result<Errno> {
    let state = RandomState::new();
    let bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|n| state.hash_one(n).to_le_bytes()).collect();
    write(&mut world, place, &bytes[..length as usize])
}

fn fd_write(mut world: Caller<'_, World>, descriptor: u32, vectors: u32, count: u32, written: u32) -> Result<Errno> {
    let mut bytes = Vec::new();
    for vector in (0..count).map(|n| vectors + 8 * n) {
        let [start, length] = [vector, vector + 4].map(|place| read_number(&mut world, place));
        bytes.extend_from_slice(read(&mut world, start?, length?)?);
    }
    match descriptor {
        1 => io::stdout().write_all(&bytes)?,
        2 => io::stderr().write_all(&bytes)?,
        _ => return Ok(BADF),
    }
    write_all(&mut world, [(written, u32::try_from(bytes.len())?)])
}

fn proc_exit(code: u32) -> Result<()> {
    // A code above 255 is none that this process could end with.
    Err(Exit(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)).into())
}

/// How many texts there are, and their size with a zero after each.
fn sizes(texts: &[String]) -> (u32, u32) {
    let size: usize = texts.iter().map(|text| text.len() + 1).sum();
    (texts.len() as u32, size as u32)
}

/// Writes the texts, each with a zero after it, and where each begins.
fn write_texts(world: &mut Caller<'_, World>, texts: &[String], pointers: u32, mut place: u32) -> Result<Errno> {
    for (text, pointer) in texts.iter().zip((pointers..).step_by(4)) {
        write(world, pointer, &place.to_le_bytes())?;
        write(world, place, &[text.as_bytes(), &[0]].concat())?;
        place += text.len() as u32 + 1;
    }
    Ok(SUCCESS)
}

/// Writes each number to its place.
fn write_all<const N: usize>(world: &mut Caller<'_, World>, numbers: [(u32, u32); N]) -> Result<Errno> {
    for (place, number) in numbers {
        write(world, place, &number.to_le_bytes())?;
    }
    Ok(SUCCESS)
}

fn write(world: &mut Caller<'_, World>, place: u32, bytes: &[u8]) -> Result<Errno> {
    memory(world)?.write(world, place as usize, bytes)?;
    Ok(SUCCESS)
}

fn read<'a>(world: &'a mut Caller<'_, World>, start: u32, length: u32) -> Result<&'a [u8]> {
    let end = start as usize + length as usize;
    memory(world)?.data(world).get(start as usize..end).context("a text lies outside its memory")
}

fn read_number(world: &mut Caller<'_, World>, place: u32) -> Result<u32> {
    Ok(u32::from_le_bytes(read(world, place, 4)?.try_into()?))
}

fn memory(world: &mut Caller<'_, World>) -> Result<wasmtime::Memory> {
    world.get_export("memory").and_then(Extern::into_memory).context("it exports no memory")
}
