//! Where tokens start and what they are, found for 64 bytes at once.
//!
//! Nothing here depends on what is expected, or on where the token before ends, so that the processor need not wait for one
//! to look at the next. In what turns out to be a string or a comment the work was in vain. A bit stands for a byte, the
//! lowest for the first.

use crate::class::{CLASSES, LOOK};
use crate::keyword::class_of;

/// How many bytes a block has.
pub(crate) const BLOCK: usize = 64;

/// How many bytes of a word are needed to know what it is.
const WORD: usize = 8;

/// Bits beside a class's number: whether the byte is of ASCII and in a name, or a digit; whether it is white space within a
/// line; whether it is outside ASCII or a backslash.
const NAME: u8 = 1 << 5;
const SPACE: u8 = 1 << 6;
const WIDE: u8 = 1 << 7;

/// The class of each byte with those bits.
static BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let bits = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' => NAME,
            b' ' | b'\t' | 0x0b | 0x0c => SPACE,
            b'\\' | 0x80.. => WIDE,
            _ => 0,
        };
        table[byte] = CLASSES[byte] as u8 | bits;
        byte += 1;
    }
    table
};

/// A stretch of the source.
pub(crate) struct Block {
    /// Where it starts in the source.
    pub(crate) base: usize,
    /// The bytes from which on a token is to be read: no white space, and of a name only the first.
    pub(crate) starts: u64,
    /// What is of ASCII and in a name, or a digit.
    names: u64,
    /// The number of the class of the token that each byte starts, if it starts one, and the bits of the byte.
    classes: [u8; BLOCK],
}

impl Block {
    /// The block that holds `position`; one of spaces at the end of the source. With `words` every word is to be looked at.
    pub(crate) fn at(source: &[u8], position: usize, words: bool) -> Self {
        let mut block = Self { base: 0, starts: 0, names: 0, classes: [LOOK; BLOCK] };
        block.load(source, position, words);
        block
    }

    /// Goes on to the block that holds `position`.
    pub(crate) fn load(&mut self, source: &[u8], position: usize, words: bool) {
        self.base = position - position % BLOCK;
        let carry = self.base > 0 && BYTES[usize::from(source[self.base - 1])] & NAME != 0;
        let rest = source.get(self.base..).unwrap_or_default();
        if let Some(window) = rest.first_chunk() {
            self.look_at(window, carry, words);
        } else {
            let mut window = [b' '; BLOCK + WORD];
            window[..rest.len()].copy_from_slice(rest);
            self.look_at(&window, carry, words);
        }
    }

    /// The number of the class of the token that starts at `offset`; the bits above it mean something else.
    #[inline]
    pub(crate) fn class(&self, offset: usize) -> u8 {
        self.classes[offset % BLOCK]
    }

    /// Where tokens start from the end of one on.
    #[inline]
    pub(crate) fn starts_after(&mut self, end: usize) -> u64 {
        let offset = end % BLOCK;
        let bit = 1 << offset;
        if self.names & !self.starts & bit != 0 {
            // What follows a number without a space is a token, too.
            self.starts |= bit;
            self.classes[offset] = LOOK;
        }
        self.starts & u64::MAX << offset
    }

    #[inline]
    fn look_at(&mut self, window: &[u8; BLOCK + WORD], carry: bool, words: bool) {
        for (class, &byte) in self.classes.iter_mut().zip(window) {
            *class = BYTES[usize::from(byte)];
        }
        let (mut names, mut spaces, mut wide) = (0, 0, 0);
        for (index, eight) in self.classes.as_chunks::<8>().0.iter().enumerate() {
            let eight = u64::from_le_bytes(*eight);
            names |= gather(eight, NAME) << (8 * index);
            spaces |= gather(eight, SPACE) << (8 * index);
            wide |= gather(eight, WIDE) << (8 * index);
        }
        self.names = names;
        self.starts = !spaces & !(names & (names << 1 | u64::from(carry)));
        // What is more than a letter or a digit, or may go on in the next block.
        let mut longer = self.starts & names & ((names | wide) >> 1 | 1 << (BLOCK - 1));
        if words {
            longer = self.starts & names;
        }
        while longer != 0 {
            let offset = longer.trailing_zeros() as usize;
            longer &= longer - 1;
            let mut length = (names >> offset).trailing_ones() as usize;
            let mut looks = words;
            if offset + length < BLOCK {
                looks |= wide >> (offset + length) & 1 == 1;
            } else {
                let mut next = window[BLOCK..].iter().map(|byte| BYTES[usize::from(*byte)]);
                length += next.clone().take_while(|byte| byte & NAME != 0).count();
                // What goes on behind the window or with bytes outside ASCII is not known here.
                looks |= next.find(|byte| byte & NAME == 0).is_none_or(|byte| byte & WIDE != 0);
            }
            let eight = window[offset..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
            self.classes[offset] = if looks { LOOK } else { class_of(eight, length, self.classes[offset]) };
        }
    }
}

/// One of the bits of eight bytes, put together.
#[inline]
fn gather(eight: u64, bit: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let bits = eight >> bit.trailing_zeros() & ONES;
    // Every byte of the product's highest is one of the bits, moved to a place of its own.
    bits.wrapping_mul(0x0102_0408_1020_4080) >> 56
}
