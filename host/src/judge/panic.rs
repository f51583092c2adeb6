//! What a policy said before it broke. It has nowhere to write to, so it leaves its words in its own memory, behind a mark
//! that nothing else begins with; `wit/README.md` has the format.

use wasmtime::{AsContext, WasmCoreDump};

/// What the words stand behind.
const MARK: &[u8; 16] = b"headcount-panic\0";
/// The longest text that is taken.
const MAX: usize = 1024;

/// The text that a policy left in any of its memories before it trapped.
pub(super) fn text(error: &wasmtime::Error, store: impl AsContext) -> Option<String> {
    let dump = error.downcast_ref::<WasmCoreDump>()?;
    dump.memories().iter().find_map(|memory| find(memory.data(&store)))
}

fn find(memory: &[u8]) -> Option<String> {
    memchr::memmem::find_iter(memory, MARK).find_map(|at| {
        let (length, rest) = memory.get(at + MARK.len()..)?.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?.min(MAX);
        let text = String::from_utf8_lossy(rest.get(..length)?);
        (length > 0).then(|| text.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(length: u32, text: &[u8]) -> Vec<u8> {
        [b"\0\0x".as_slice(), MARK, &length.to_le_bytes(), text].concat()
    }

    #[test]
    fn the_words_behind_the_mark_are_found() {
        assert_eq!(find(&memory(5, b"oh no")).as_deref(), Some("oh no"));
        assert_eq!(find(&memory(2, b"oh no")).as_deref(), Some("oh"));
        assert_eq!(find(&[memory(0, b""), memory(3, b"yes")].concat()).as_deref(), Some("yes"));
    }

    #[test]
    fn where_there_are_none_nothing_is_found() {
        for memory in [memory(0, b"oh no"), memory(9, b"short"), memory(u32::MAX, b"x"), MARK.to_vec(), vec![]] {
            assert_eq!(find(&memory), None);
        }
    }
}
