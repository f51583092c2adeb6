//! Changes of inputs, always the same for the same seed: what a fuzzer does, but without looking at what comes of it.

/// What often matters to a parser.
const TOKENS: [&[u8]; 22] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"\0",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    b"\xf0\x9f\x92\xa9",
    b") ",
];

/// Makes changes.
#[derive(Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// Changes that this seed decides.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or(0) % end.max(1)
    }

    /// One of `seeds` with one to four changes.
    pub fn change(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            self.change_once(&mut bytes, seeds);
        }
        bytes
    }

    fn change_once(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let (from, length) = (self.below(bytes.len() + 1), self.below(64));
        let to = bytes.len().min(from + length);
        match self.below(8) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..to)),
            2 => bytes[from..to].iter_mut().for_each(|byte| *byte ^= 1 << self.below(8)),
            3 => drop(bytes.splice(from..to, std::iter::repeat_n(b'x', 1 + self.below(500)))),
            4 => {
                let repeated = bytes[from..to].repeat(1 + self.below(200));
                bytes.splice(from..from, repeated);
            }
            5 => {
                let other = &seeds[self.below(seeds.len())];
                let part = &other[self.below(other.len() + 1)..];
                bytes.splice(from..to, part.iter().copied());
            }
            _ => {
                let token = TOKENS[self.below(TOKENS.len())];
                let to = if self.below(2) == 0 { from } else { to };
                bytes.splice(from..to, token.iter().copied());
            }
        }
    }
}
