//! Text from bytes, by the Encoding standard.

use encoding_rs::{CoderResult, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The standard's name of the encoding with this label, in lower case.
pub(super) fn name_of(label: &str) -> Option<String> {
    Encoding::for_label_no_replacement(label.as_bytes()).map(|encoding| encoding.name().to_ascii_lowercase())
}

/// The code units of `bytes`. `None` where the encoding has no such name, or where `is_fatal` and they are malformed.
pub(super) fn decode(name: &str, bytes: &[u8], is_fatal: bool, is_last: bool) -> Option<Vec<u16>> {
    let encoding = Encoding::for_label(name.as_bytes())?;
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf16_buffer_length(bytes.len())?;
    let mut units = vec![0; room];
    let written = if is_fatal {
        let (result, _, written) = decoder.decode_to_utf16_without_replacement(bytes, &mut units, is_last);
        if result != DecoderResult::InputEmpty {
            return None;
        }
        written
    } else {
        let (result, _, written, _) = decoder.decode_to_utf16(bytes, &mut units, is_last);
        debug_assert_eq!(result, CoderResult::InputEmpty, "there is room for everything");
        written
    };
    units.truncate(written);
    Some(units)
}

/// How many bytes at the end begin a character that more bytes may complete. `None` for an encoding whose decoder keeps more
/// than that from one piece to the next.
pub(super) fn incomplete(name: &str, bytes: &[u8]) -> Option<usize> {
    let encoding = Encoding::for_label(name.as_bytes())?;
    if encoding == UTF_8 {
        let is_beginning = |&length: &usize| {
            let tail = &bytes[bytes.len() - length..];
            std::str::from_utf8(tail)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        };
        return Some((1..=bytes.len().min(3)).rev().find(is_beginning).unwrap_or(0));
    }
    if encoding == UTF_16LE || encoding == UTF_16BE {
        let odd = bytes.len() % 2;
        let last = bytes[..bytes.len() - odd].last_chunk::<2>();
        let unit =
            last.map(
                |&pair| {
                    if encoding == UTF_16LE { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
                },
            );
        return Some(odd + if unit.is_some_and(|unit| (0xd800..0xdc00).contains(&unit)) { 2 } else { 0 });
    }
    encoding.is_single_byte().then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_a_character_is_left_for_later() {
        for (bytes, left) in [
            (&b"abc"[..], 0),
            (b"ab\xc3", 1),
            (b"\xe2\x82", 2),
            (b"\xf0\x9f\x98", 3),
            (b"\xf0\x9f\x98\x80", 0),
            (b"\xe0\x80", 0),
            (b"\xed\xa0", 0),
            (b"\x80\x80", 0),
            (b"\xff", 0),
            (b"", 0),
        ] {
            assert_eq!(incomplete("utf-8", bytes), Some(left), "{bytes:?}");
        }
        assert_eq!(incomplete("utf-16le", b"a\0b"), Some(1));
        assert_eq!(incomplete("utf-16le", b"\x3d\xd8"), Some(2));
        assert_eq!(incomplete("utf-16be", b"\xd8\x3d\xde"), Some(3));
        assert_eq!(incomplete("windows-1252", b"\xe2\x82"), Some(0));
        assert_eq!(incomplete("shift_jis", b"\x82"), None);
    }
}
