//! Where tokens start and what they are, found for 64 bytes at once.
//!
//! Nothing here depends on what is expected, or on where the token before ends, so that the processor need not wait for one
//! to look at the next. In what turns out to be a string or a comment the work was in vain. A bit stands for a byte, the
//! lowest for the first.

use crate::class::{CLASSES, Class, LOOK};
use crate::keyword::class_of;

/// How many bytes a block has.
pub(crate) const BLOCK: usize = 64;

/// How many bytes of a word are needed to know what it is.
const WORD: usize = 8;

/// Bits beside a class's number: whether the byte is of ASCII and in a name, or a digit; whether it is white space within a
/// line, or with the first bit a digit; whether it is outside ASCII or a backslash.
const NAME: u8 = 1 << 5;
const SPACE: u8 = 1 << 6;
const WIDE: u8 = 1 << 7;

/// The class of each byte with those bits.
static BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let bits = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => NAME,
            b'0'..=b'9' => NAME | SPACE,
            b' ' | b'\t' | 0x0b | 0x0c => SPACE,
            b'\\' | 0x80.. => WIDE,
            _ => 0,
        };
        table[byte] = CLASSES[byte] as u8 | bits;
        byte += 1;
    }
    table
};

/// What is left of a block to be read.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    /// Where each token starts that is not joined with the one behind it.
    pub(crate) starts: u64,
    /// Those with which a plain word is joined.
    pub(crate) behind_words: u64,
}

/// A stretch of the source.
pub(crate) struct Block {
    /// Where it starts in the source.
    pub(crate) base: usize,
    /// The bytes from which on a token is to be read: no white space, and of a name only the first.
    starts: u64,
    /// What is of ASCII and in a name, or a digit.
    names: u64,
    /// The plain words that are read in one step with the token behind them.
    joined: u64,
    /// Those tokens.
    behind_words: u64,
    /// The number of the class of the token that each byte starts, if it starts one, and the bits of the byte.
    classes: [u8; BLOCK],
}

impl Block {
    /// The block that holds `position`; one of spaces at the end of the source. With `words` every word is to be looked at.
    pub(crate) fn at(source: &[u8], position: usize, words: bool) -> Self {
        let mut block = Self { base: 0, starts: 0, names: 0, joined: 0, behind_words: 0, classes: [LOOK; _] };
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

    /// The number of the class of the token that starts at `offset`.
    #[inline]
    pub(crate) fn class(&self, offset: usize) -> u8 {
        self.classes[offset % BLOCK] % NAME
    }

    /// All steps of the block.
    #[inline]
    pub(crate) fn steps(&self) -> Steps {
        Steps { starts: self.starts & !self.joined, behind_words: self.behind_words }
    }

    /// The steps from the end of a token on.
    #[inline]
    pub(crate) fn steps_after(&mut self, end: usize) -> Steps {
        let offset = end % BLOCK;
        let (bit, from) = (1 << offset, u64::MAX << offset);
        let starts = self.starts & from;
        // A word in front of the first token was read already.
        let first = starts & starts.wrapping_neg();
        let mut steps =
            Steps { starts: starts & !self.joined, behind_words: self.behind_words & from & !first };
        if self.names & !self.starts & bit != 0 {
            // What follows a number without a space is a token, too.
            steps.starts |= bit;
            self.classes[offset] = LOOK;
        }
        steps
    }

    /// Where the last token starts in front of another one.
    pub(crate) fn start_before(&self, offset: usize) -> usize {
        let before = self.starts & ((1 << offset) - 1);
        before.checked_ilog2().map_or(offset, |start| start as usize)
    }

    /// Finds all of this in a window of the source; `carry` says whether the byte in front of it is in a name.
    #[inline]
    fn look_at(&mut self, window: &[u8; BLOCK + WORD], carry: bool, words: bool) {
        let (mut names, mut spaces, mut wides) = (0, 0, 0);
        let (bytes, behind) = window.as_chunks::<8>().0.split_at(BLOCK / 8);
        for (index, (classes, bytes)) in self.classes.as_chunks_mut::<8>().0.iter_mut().zip(bytes).enumerate()
        {
            let eight = look_up(bytes);
            *classes = eight.to_le_bytes();
            names |= gather(eight, NAME) << (8 * index);
            spaces |= gather(eight, SPACE) << (8 * index);
            wides |= eight;
        }
        let behind = look_up(&behind[0]);
        let names_behind = gather(behind, NAME);
        let (digits, spaces) = (spaces & names, spaces & !names);
        self.names = names;
        self.starts = !spaces & !(names & (names << 1 | u64::from(carry)));
        let plain = self.starts & names & !digits;
        let mut longer = plain & (names >> 1 | names_behind << (BLOCK - 1));
        let mut special = 0;
        while longer != 0 && !words {
            let offset = longer.trailing_zeros() as usize;
            longer &= longer - 1;
            let length = from(offset, names, names_behind).trailing_ones() as usize;
            let eight = window[offset..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
            let class = class_of(eight, length);
            self.classes[offset] = class;
            special |= u64::from(class != Class::Word as u8) << offset;
        }
        let goes_on = names >> (BLOCK - 1) == 1 && names_behind == 0xff;
        if words || goes_on || gather(wides | behind, WIDE) != 0 {
            special |= self.look_at_unclear(behind, words);
        }
        self.join(plain & !special);
    }

    /// Has those names be looked at that go on, or may go on, with what is outside ASCII or behind the window, and with
    /// `words` all words. Returns where they start.
    #[cold]
    fn look_at_unclear(&mut self, behind: u64, words: bool) -> u64 {
        let wide =
            self.classes.as_chunks::<8>().0.iter().enumerate().fold(0, |wide, (index, eight)| {
                wide | gather(u64::from_le_bytes(*eight), WIDE) << (8 * index)
            });
        // What is behind the window is not known.
        let (names_behind, wide_behind) = (gather(behind, NAME), gather(behind, WIDE) | !0xff);
        let mut names = self.starts & self.names;
        let mut unclear = 0;
        while names != 0 {
            let offset = names.trailing_zeros() as usize;
            names &= names - 1;
            let length = from(offset, self.names, names_behind).trailing_ones() as usize;
            if words || length == BLOCK || from(offset, wide, wide_behind) >> length & 1 == 1 {
                self.classes[offset] = LOOK;
                unclear |= 1 << offset;
            }
        }
        unclear
    }

    /// Joins each plain word with the token behind it, unless that is joined with another one, or of another block.
    #[inline]
    fn join(&mut self, plain: u64) {
        // A carry runs through all that starts no token.
        let behind = |words: u64| (!self.starts).wrapping_add(words << 1) & self.starts;
        let last = self.starts.checked_ilog2().map_or(0, |last| 1 << last);
        let words = plain & !last;
        self.joined = words & !behind(words);
        self.behind_words = behind(self.joined);
    }
}

/// The bits of the block and behind it, from an offset on.
#[inline]
fn from(offset: usize, bits: u64, behind: u64) -> u64 {
    // A shift by all bits is none, so the second is made in two.
    bits >> offset | behind << 1 << (BLOCK - 1 - offset)
}

/// The classes of eight bytes with their bits. They are put together before they are written, since what is read in another
/// size than it was written in has to wait.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "bytes that are copied are moved into one word and shifted out"
)]
#[inline]
fn look_up(bytes: &[u8; 8]) -> u64 {
    (0..8).fold(0, |eight, at| eight | u64::from(BYTES[usize::from(bytes[at])]) << (8 * at))
}

/// One of the bits of eight bytes, put together.
#[inline]
fn gather(eight: u64, bit: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let bits = eight >> bit.trailing_zeros() & ONES;
    // Every byte of the product's highest is one of the bits, moved to a place of its own.
    bits.wrapping_mul(0x0102_0408_1020_4080) >> 56
}
