//! How much of a component there is to compile: padding buys no time.

/// The id of a section that a compiler passes over.
const CUSTOM: u8 = 0;
/// Sections of a component that hold a core module, or another component.
const NESTED: [u8; 2] = [1, 4];
/// Bytes before the first section.
const HEADER: usize = 8;
/// Components may lie in components; deeper than this nobody nests them.
const DEEPEST: usize = 16;

/// The bytes of all sections but custom ones; what cannot be read as sections counts whole.
pub(super) fn code_size(component: &[u8]) -> usize {
    sections(component, true, 0)
}

fn sections(bytes: &[u8], is_component: bool, depth: usize) -> usize {
    let mut size = 0;
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while let Some((&id, after)) = rest.split_first() {
        let Some((length, after)) = leb128(after) else { return size + rest.len() };
        let Some((section, after)) = after.split_at_checked(length) else { return size + rest.len() };
        size += match id {
            CUSTOM => 0,
            id if is_component && NESTED.contains(&id) && depth < DEEPEST => {
                sections(section, id == NESTED[1], depth + 1)
            }
            _ => section.len(),
        };
        rest = after;
    }
    size
}

/// A length as WebAssembly writes it: seven bits a byte, the lowest first.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (n, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[n + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::BUILTIN;
    use proptest::prelude::*;

    fn padded(component: &[u8], padding: u8) -> Vec<u8> {
        // A custom section with an empty name.
        [component, &[CUSTOM, padding + 1, 0], &vec![7; usize::from(padding)]].concat()
    }

    #[test]
    fn padding_does_not_count() {
        let size = code_size(BUILTIN);
        assert!(size > BUILTIN.len() / 2 && size <= BUILTIN.len());
        assert_eq!(code_size(&padded(BUILTIN, 100)), size);
    }

    #[test]
    fn what_cannot_be_read_counts() {
        assert_eq!(code_size(&[BUILTIN, &[9, 0xff, 0xff]].concat()), code_size(BUILTIN) + 3);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_more_than_there_are(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert!(code_size(&bytes) <= bytes.len());
        }
    }
}
