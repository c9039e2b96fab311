//! Between UTF-16 with lone surrogates and WTF-8, its extension of UTF-8 (<https://wtf-8.codeberg.page/>).

use std::error::Error;
use std::fmt;

/// Bytes that are not generalized UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidWtf8 {
    /// The first byte that cannot stand where it does.
    pub offset: usize,
}

impl fmt::Display for InvalidWtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not generalized UTF-8 at byte {}", self.offset)
    }
}

impl Error for InvalidWtf8 {}

/// UTF-8 of well-formed UTF-16, or `None` at the first lone surrogate.
pub(super) fn utf16_to_utf8(units: &[u16]) -> Option<String> {
    /// ASCII is found and narrowed this many units at a time, which compilers vectorize.
    const STRIDE: usize = 64;

    let mut string = String::with_capacity(units.len());
    let mut rest = units;
    while !rest.is_empty() {
        while let Some((chunk, after)) = rest.split_first_chunk::<STRIDE>()
            && chunk.iter().fold(0, |all, unit| all | unit) < 0x80
        {
            string.push_str(std::str::from_utf8(&chunk.map(|unit| unit as u8)).ok()?);
            rest = after;
        }
        let (stretch, after) = rest.split_at(rest.len().min(STRIDE));
        // A pair that the stretch would split goes with it.
        let splits_pair = matches!(stretch, [.., 0xD800..=0xDBFF]) && !after.is_empty();
        let (stretch, after) = rest.split_at(stretch.len() + usize::from(splits_pair));
        for character in char::decode_utf16(stretch.iter().copied()) {
            string.push(character.ok()?);
        }
        rest = after;
    }
    Some(string)
}

/// WTF-8 of any UTF-16.
pub(super) fn utf16_to_wtf8(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(units.len() + units.len() / 2);
    for decoded in char::decode_utf16(units.iter().copied()) {
        match decoded {
            Ok(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(error) => {
                let unit = error.unpaired_surrogate();
                bytes.extend_from_slice(&[0xED, 0x80 | (unit >> 6 & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]);
            }
        }
    }
    bytes
}

/// The code units of generalized UTF-8.
pub(super) fn wtf8_to_utf16(bytes: &[u8]) -> Result<Vec<u16>, InvalidWtf8> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let valid = match std::str::from_utf8(rest) {
            Ok(string) => string,
            // Valid up to there by the error's own account.
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        units.extend(valid.encode_utf16());
        rest = &rest[valid.len()..];
        match *rest {
            [] => return Ok(units),
            [0xED, middle @ 0xA0..=0xBF, low @ 0x80..=0xBF, ..] => {
                units.push(0xD000 | u16::from(middle & 0x3F) << 6 | u16::from(low & 0x3F));
                rest = &rest[3..];
            }
            _ => return Err(InvalidWtf8 { offset: bytes.len() - rest.len() }),
        }
    }
}
