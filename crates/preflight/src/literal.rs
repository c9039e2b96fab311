//! Where literals end, and what a string or a name with escapes means.

use crate::characters::{line_end, name_end};

/// The first position from `position` on that holds one of a few bytes; the length of the source if none does.
#[inline]
pub(crate) fn find<const N: usize>(source: &[u8], mut position: usize, bytes: [u8; N]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    while let Some(chunk) = source.get(position..).and_then(<[u8]>::first_chunk::<8>) {
        let chunk = u64::from_le_bytes(*chunk);
        let mut found = 0;
        for byte in bytes {
            // The highest bit of each byte that is zero here, and perhaps of some after the first such.
            let differences = chunk ^ (ONES * u64::from(byte));
            found |= differences.wrapping_sub(ONES) & !differences & (ONES << 7);
        }
        if found != 0 {
            return position + (found.trailing_zeros() / 8) as usize;
        }
        position += 8;
    }
    let rest = source.get(position..).unwrap_or_default();
    position.min(source.len()) + rest.iter().position(|byte| bytes.contains(byte)).unwrap_or(rest.len())
}

/// The same where it is likely to be far away.
pub(crate) fn find_far<const N: usize>(source: &[u8], mut position: usize, bytes: [u8; N]) -> usize {
    while let Some(chunk) = source.get(position..).and_then(<[u8]>::first_chunk::<64>) {
        // Without branches, so that the compiler makes vectors of it.
        let mut found = 0;
        for byte in chunk {
            for sought in bytes {
                found |= u8::from(*byte == sought);
            }
        }
        if found != 0 {
            break;
        }
        position += chunk.len();
    }
    find(source, position, bytes)
}

/// The end of a string from after its opening quote; an unclosed one ends with its line.
#[inline]
pub(crate) fn string_end(source: &[u8], mut position: usize, quote: u8) -> usize {
    loop {
        position = find(source, position, [quote, b'\\', b'\n', b'\r']);
        match source.get(position) {
            Some(b'\\') => position += 1 + escaped_length(source, position + 1),
            Some(byte) if *byte == quote => return position + 1,
            _ => return position,
        }
    }
}

/// A line end after a backslash is one character, so that `\r\n` continues the string.
fn escaped_length(source: &[u8], position: usize) -> usize {
    line_end(source, position).unwrap_or(usize::from(position < source.len()))
}

/// How a stretch of a template's text ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateEnd {
    /// With the template.
    Closed,
    /// With `${`.
    Substitution,
}

/// The end of a template's text, past what ends it, and what that was. An unclosed one ends with the source.
pub(crate) fn template_text_end(source: &[u8], mut position: usize) -> (usize, TemplateEnd) {
    loop {
        position = find(source, position, [b'`', b'$', b'\\']);
        match source.get(position) {
            Some(b'`') => return (position + 1, TemplateEnd::Closed),
            Some(b'$') if source.get(position + 1) == Some(&b'{') => {
                return (position + 2, TemplateEnd::Substitution);
            }
            Some(b'$') => position += 1,
            Some(_) => position = (position + 2).min(source.len()),
            None => return (position, TemplateEnd::Closed),
        }
    }
}

/// The end of a regular expression with its flags, from after its opening slash. An unclosed one ends with its line:
/// reading on from its slash instead would read the rest of the line again for each of them.
///
/// The `v` flag's nested classes need no attention: where a literal ends, the grammar knows one level of brackets.
pub(crate) fn regex_end(source: &[u8], mut position: usize) -> usize {
    let mut in_class = false;
    while let Some(&byte) = source.get(position) {
        match byte {
            b'/' if !in_class => return name_end(source, position + 1).0,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'\\' if line_end(source, position + 1).is_none() => {
                position = (position + 2).min(source.len());
                continue;
            }
            b'\n' | b'\r' | 0xe2 if line_end(source, position).is_some() => return position,
            _ => {}
        }
        position += 1;
    }
    position
}

/// The end of a number that starts with a digit or with a point and a digit.
pub(crate) fn number_end(source: &[u8], start: usize) -> usize {
    let digits = |mut position: usize| {
        while source.get(position).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
            position += 1;
        }
        position
    };
    if let [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', ..] = source[start..] {
        return name_end(source, start).0;
    }
    let mut position = digits(start);
    // The dot after an old octal such as 010 is no decimal point, but the start of a property.
    let octal = position - start > 1
        && source[start] == b'0'
        && source[start..position].iter().all(|byte| matches!(byte, b'0'..=b'7'));
    if source.get(position) == Some(&b'.') && !octal {
        position = digits(position + 1);
    }
    if let Some(b'e' | b'E') = source.get(position) {
        let sign = usize::from(matches!(source.get(position + 1), Some(b'+' | b'-')));
        position = digits(position + 1 + sign);
    }
    position + usize::from(source.get(position) == Some(&b'n'))
}

/// What a name or a string's inside with escapes means, as UTF-8; a lone surrogate becomes U+FFFD.
pub(crate) fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut position = 0;
    while let Some(&byte) = raw.get(position) {
        position += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        if let Some(length) = line_end(raw, position) {
            position += length;
            continue;
        }
        let Some(&escaped) = raw.get(position) else { break };
        position += 1;
        let code = match escaped {
            b'x' => digits_value(raw, &mut position, 2, 16),
            b'u' if raw.get(position) == Some(&b'{') => {
                position += 1;
                let value = digits_value(raw, &mut position, usize::MAX, 16);
                position += usize::from(raw.get(position) == Some(&b'}'));
                value
            }
            b'u' => digits_value(raw, &mut position, 4, 16),
            b'0'..=b'7' => {
                position -= 1;
                digits_value(raw, &mut position, if escaped < b'4' { 3 } else { 2 }, 8)
            }
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            other => {
                out.push(other);
                continue;
            }
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out
}

/// The value of at most `most` digits, which `position` moves past.
fn digits_value(raw: &[u8], position: &mut usize, most: usize, radix: u32) -> u32 {
    let mut value = 0u32;
    let mut count = 0;
    while count < most
        && let Some(digit) = raw.get(*position).and_then(|byte| char::from(*byte).to_digit(radix))
    {
        value = value.saturating_mul(radix).saturating_add(digit);
        *position += 1;
        count += 1;
    }
    value
}
