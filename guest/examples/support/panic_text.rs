//! Why a policy panicked, for the host to read. A policy imports nothing, so it cannot print: it leaves the text in its
//! memory, behind a mark that the host looks for.

use std::panic::PanicHookInfo;
use std::sync::Mutex;

/// The longest text that is kept, in bytes.
const LONGEST: usize = 1024;

#[repr(C)]
struct PanicText {
    mark: [u8; 16],
    /// Of the text, in bytes; 0 until there is one.
    length: u32,
    text: [u8; LONGEST],
}

// Without `used`, the compiler would drop what is only ever written.
#[used]
static PANIC_TEXT: Mutex<PanicText> =
    Mutex::new(PanicText { mark: *b"headcount-panic\0", length: 0, text: [0; LONGEST] });

/// Has every panic from now on leave its text.
pub fn keep() {
    std::panic::set_hook(Box::new(note));
}

fn note(panic: &PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("a panic without a text");
    let said = panic.location().map_or_else(|| what.to_owned(), |place| format!("{what}, at {place}"));
    let said = &said[..said.floor_char_boundary(LONGEST)];
    // It is free unless this is a panic within a panic, of which the first is told.
    if let (Ok(mut kept), Ok(length)) = (PANIC_TEXT.try_lock(), u32::try_from(said.len())) {
        kept.text[..said.len()].copy_from_slice(said.as_bytes());
        kept.length = length.to_le();
    }
}
