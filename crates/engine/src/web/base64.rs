//! Base64 as `atob` and `btoa` have it: the Infra standard's forgiving decoding, on strings whose characters are bytes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text for these characters; `None` where one is no byte.
pub(super) fn encode(units: &[u16]) -> Option<String> {
    let bytes: Vec<u8> = units.iter().map(|&unit| u8::try_from(unit).ok()).collect::<Option<_>>()?;
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, &byte| group << 8 | u32::from(byte));
        let group = group << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let sextet = (group >> (18 - 6 * index)) & 63;
            text.push(if index <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    Some(text)
}

/// The characters of a text; `None` where it is no base64.
pub(super) fn decode(text: &[u16]) -> Option<Vec<u16>> {
    const SPACES: [u16; 5] = [0x09, 0x0A, 0x0C, 0x0D, 0x20];
    const PADDING: u16 = b'=' as u16;
    let mut data: Vec<u16> = text.iter().copied().filter(|unit| !SPACES.contains(unit)).collect();
    if data.len().is_multiple_of(4) {
        for _ in 0..2 {
            if data.last() == Some(&PADDING) {
                data.pop();
            }
        }
    }
    if data.len() % 4 == 1 {
        return None;
    }
    let mut units = Vec::with_capacity(data.len() / 4 * 3 + 2);
    for chunk in data.chunks(4) {
        let mut group = 0_u32;
        for &unit in chunk {
            group = group << 6 | sextet(unit)?;
        }
        group <<= 6 * (4 - chunk.len());
        units.extend((0..chunk.len() - 1).map(|index| (group >> (16 - 8 * index)) as u16 & 0xff));
    }
    Some(units)
}

fn sextet(unit: u16) -> Option<u32> {
    let byte = u8::try_from(unit).ok()?;
    Some(match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn every_length_comes_back() {
        for length in 0..50_u16 {
            let original: Vec<u16> = (0..length).map(|unit| unit * 37 % 256).collect();
            let text = encode(&original).expect("every character is a byte");
            assert_eq!(text.len() % 4, 0);
            assert_eq!(decode(&units(&text)), Some(original));
        }
    }

    #[test]
    fn padding_may_be_left_out_but_not_be_half_there() {
        for (text, bytes) in
            [("YQ==", "a"), ("YQ", "a"), (" Y Q\n", "a"), ("YWI=", "ab"), ("YWI", "ab"), ("YR", "a")]
        {
            assert_eq!(decode(&units(text)), Some(units(bytes)), "{text}");
        }
        for text in ["Y", "YQ=", "YQ===", "=", "Y=Q=", "YQ\u{a0}", "Y-", "YW==I"] {
            assert_eq!(decode(&units(text)), None, "{text}");
        }
    }

    #[test]
    fn characters_beyond_bytes_are_refused() {
        assert_eq!(encode(&[0xff]).as_deref(), Some("/w=="));
        assert_eq!(encode(&[0x100]), None);
    }
}
