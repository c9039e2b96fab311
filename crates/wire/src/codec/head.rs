//! CBOR's heads: the major type and argument that every data item begins with (RFC 8949, section 3).

use super::error::DecodeError;

/// A data item's major type, but 7, whose items have no argument in this sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Major {
    Unsigned = 0,
    Negative = 1,
    Bytes = 2,
    Text = 3,
    Array = 4,
    Map = 5,
    Tag = 6,
}

/// What the low five bits of an initial byte say when the argument does not fit into them: where it is instead.
const ONE_BYTE: u8 = 0x18;
const TWO_BYTES: u8 = 0x19;
const FOUR_BYTES: u8 = 0x1A;
const EIGHT_BYTES: u8 = 0x1B;

/// Initial bytes of the items of major type 7 that are used.
pub(super) mod simple {
    pub(in crate::codec) const FALSE: u8 = 0xF4;
    pub(in crate::codec) const TRUE: u8 = 0xF5;
    pub(in crate::codec) const NULL: u8 = 0xF6;
    pub(in crate::codec) const UNDEFINED: u8 = 0xF7;
    pub(in crate::codec) const FLOAT64: u8 = 0xFB;
}

/// The length of the head with this argument.
pub(super) fn head_length(argument: u64) -> usize {
    match argument {
        0..=23 => 1,
        24..=0xFF => 2,
        0x100..=0xFFFF => 3,
        0x1_0000..=0xFFFF_FFFF => 5,
        _ => 9,
    }
}

/// Appends a head in its shortest form.
pub(super) fn write_head(out: &mut Vec<u8>, major: Major, argument: u64) {
    let initial = (major as u8) << 5;
    match head_length(argument) {
        1 => out.push(initial | argument as u8),
        2 => out.extend_from_slice(&[initial | ONE_BYTE, argument as u8]),
        3 => {
            let [high, low] = (argument as u16).to_be_bytes();
            out.extend_from_slice(&[initial | TWO_BYTES, high, low]);
        }
        5 => {
            out.push(initial | FOUR_BYTES);
            out.extend_from_slice(&(argument as u32).to_be_bytes());
        }
        _ => {
            out.push(initial | EIGHT_BYTES);
            out.extend_from_slice(&argument.to_be_bytes());
        }
    }
}

/// Bytes that are read from the front.
#[derive(Clone, Debug)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    position: usize,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// A reader of the next `length` bytes at most, whose offsets are this one's.
    pub(super) fn window(&self, length: usize) -> Self {
        Self { bytes: &self.bytes[..self.position + length.min(self.remaining())], position: self.position }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Goes to where another reader of the same bytes stands.
    pub(super) fn skip_to(&mut self, other: &Self) {
        self.position = other.position;
    }

    /// Refuses bytes after the end.
    pub(super) fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(DecodeError::TrailingBytes { offset: self.position, count }),
        }
    }

    /// The next byte, which stays.
    pub(super) fn peek(&self) -> Result<u8, DecodeError> {
        self.bytes.get(self.position).copied().ok_or(DecodeError::Truncated { offset: self.bytes.len() })
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: u64) -> Result<&'b [u8], DecodeError> {
        let bytes = usize::try_from(length).ok().and_then(|length| self.bytes[self.position..].get(..length));
        let bytes = bytes.ok_or(DecodeError::Truncated { offset: self.bytes.len() })?;
        self.position += bytes.len();
        Ok(bytes)
    }

    /// The next `N` bytes as an array.
    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes[self.position..].first_chunk();
        let bytes = *bytes.ok_or(DecodeError::Truncated { offset: self.bytes.len() })?;
        self.position += N;
        Ok(bytes)
    }

    /// The next item's head, which must not be one of major type 7, and must be in its shortest form.
    pub(super) fn head(&mut self) -> Result<(Major, u64), DecodeError> {
        let offset = self.position;
        let [initial] = self.take_array()?;
        let major = match initial >> 5 {
            0 => Major::Unsigned,
            1 => Major::Negative,
            2 => Major::Bytes,
            3 => Major::Text,
            4 => Major::Array,
            5 => Major::Map,
            6 => Major::Tag,
            _ => return Err(DecodeError::Unsupported { offset, initial }),
        };
        let argument = match initial & 0x1F {
            small @ 0..=23 => return Ok((major, u64::from(small))),
            ONE_BYTE => u64::from(u8::from_be_bytes(self.take_array()?)),
            TWO_BYTES => u64::from(u16::from_be_bytes(self.take_array()?)),
            FOUR_BYTES => u64::from(u32::from_be_bytes(self.take_array()?)),
            EIGHT_BYTES => u64::from_be_bytes(self.take_array()?),
            _ => return Err(DecodeError::Unsupported { offset, initial }),
        };
        if head_length(argument) == self.position - offset {
            Ok((major, argument))
        } else {
            Err(DecodeError::NotCanonical { offset, what: "a length or integer in more bytes than it needs" })
        }
    }

    /// The next item's argument, the item being of this major type.
    pub(super) fn expect(&mut self, major: Major, what: &'static str) -> Result<u64, DecodeError> {
        let offset = self.position;
        match self.head()? {
            (found, argument) if found == major => Ok(argument),
            _ => Err(DecodeError::Unexpected { offset, expected: what }),
        }
    }

    /// The eight bytes after an initial byte already seen.
    pub(super) fn float_after_initial(&mut self) -> Result<u64, DecodeError> {
        self.skip_initial();
        Ok(u64::from_be_bytes(self.take_array()?))
    }

    /// Steps over an initial byte already seen by [`peek`](Self::peek).
    pub(super) fn skip_initial(&mut self) {
        self.position += 1;
    }
}
