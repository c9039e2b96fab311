//! What ECMAScript takes for white space, line ends and the characters of names, on bytes of UTF-8.

use crate::literal::find;

/// How a byte takes part in a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InName {
    No,
    Yes,
    /// It starts an escape, or a character that may be white space.
    Look,
}

const IN_NAME: [InName; 256] = {
    let mut table = [InName::No; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            // The first bytes of the white space outside ASCII.
            b'\\' | 0xc2 | 0xe1 | 0xe2 | 0xe3 | 0xef => InName::Look,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80.. => InName::Yes,
            _ => InName::No,
        };
        byte += 1;
    }
    table
};

/// 1 for what is in a name without a second look.
const PLAIN: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(IN_NAME[byte], InName::Yes) as u32;
        byte += 1;
    }
    table
};

/// The end of a name that starts at `start`, and whether it has escapes.
#[inline]
pub(crate) fn name_end(source: &[u8], start: usize) -> (usize, bool) {
    if let Some(window) = source.get(start..start + 8) {
        // Most names are short and of no predictable length: looking at eight bytes at once is faster than at each.
        let bits = window.iter().rev().fold(0u32, |bits, byte| bits << 1 | PLAIN[*byte as usize]);
        let length = bits.trailing_ones() as usize;
        if length < 8 && IN_NAME[window[length] as usize] == InName::No {
            return (start + length, false);
        }
    }
    name_end_by_byte(source, start)
}

fn name_end_by_byte(source: &[u8], start: usize) -> (usize, bool) {
    let mut end = start;
    let mut escaped = false;
    while let Some(&byte) = source.get(end) {
        match IN_NAME[byte as usize] {
            InName::No => break,
            InName::Look if byte == b'\\' => {
                escaped = true;
                end = escape_end(source, end);
            }
            InName::Look if wide_space(source, end).is_some() => break,
            InName::Yes | InName::Look => end += 1,
        }
    }
    (end, escaped)
}

/// The end of `\uXXXX` or `\u{X...}`; of the backslash alone when it is neither.
fn escape_end(source: &[u8], start: usize) -> usize {
    let digits = start + 2;
    match source.get(start + 1..) {
        Some([b'u', b'{', rest @ ..]) => {
            // Leading zeros are allowed without end.
            let length = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            digits + 1 + length + usize::from(rest.get(length) == Some(&b'}'))
        }
        Some([b'u', rest @ ..]) => {
            digits + rest.iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count()
        }
        _ => start + 1,
    }
}

/// Whether a name may start with the byte at `position`.
pub(crate) fn starts_name(source: &[u8], position: usize) -> bool {
    source.get(position).is_some_and(|byte| {
        IN_NAME[*byte as usize] != InName::No
            && !byte.is_ascii_digit()
            && wide_space(source, position).is_none()
    })
}

/// White space outside ASCII at `position`: its length, and whether it ends the line.
pub(crate) fn wide_space(source: &[u8], position: usize) -> Option<(usize, bool)> {
    match source.get(position..)? {
        [0xc2, 0xa0, ..] => Some((2, false)),
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => Some((3, true)),
        // U+1680, U+2000 to U+200A, U+202F, U+205F, U+3000, U+FEFF.
        [0xe1, 0x9a, 0x80, ..]
        | [0xe2, 0x80, 0x80..=0x8a | 0xaf, ..]
        | [0xe2, 0x81, 0x9f, ..]
        | [0xe3, 0x80, 0x80, ..]
        | [0xef, 0xbb, 0xbf, ..] => Some((3, false)),
        _ => None,
    }
}

/// The length of the line end at `position`, if there is one; `\r\n` is one.
pub(crate) fn line_end(source: &[u8], position: usize) -> Option<usize> {
    match source.get(position..)? {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n' | b'\r', ..] => Some(1),
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => Some(3),
        _ => None,
    }
}

/// The first position from `position` on that is neither white space nor in a comment.
pub(crate) fn skip_trivia(source: &[u8], mut position: usize) -> Skipped {
    let mut newline = false;
    while let Some(&byte) = source.get(position) {
        match byte {
            b' ' | b'\t' | 0x0b | 0x0c => position += 1,
            b'\n' | b'\r' => {
                newline = true;
                position += 1;
            }
            b'/' => match source.get(position + 1) {
                Some(b'/') => position = line_comment_end(source, position + 2),
                Some(b'*') => {
                    let comment = block_comment_end(source, position + 2);
                    position = comment.position;
                    newline |= comment.newline;
                }
                _ => break,
            },
            _ => match wide_space(source, position) {
                Some((length, ends_line)) => {
                    newline |= ends_line;
                    position += length;
                }
                None => break,
            },
        }
    }
    Skipped { position, newline }
}

/// Where a skipped stretch ended, and whether a line ended in it.
#[derive(Clone, Copy)]
pub(crate) struct Skipped {
    pub(crate) position: usize,
    pub(crate) newline: bool,
}

/// The end of a comment that runs to the end of its line.
pub(crate) fn line_comment_end(source: &[u8], mut position: usize) -> usize {
    loop {
        position = find(source, position, [b'\n', b'\r', 0xe2]);
        if position == source.len() || line_end(source, position).is_some() {
            return position;
        }
        position += 1;
    }
}

/// The end of a comment from after its `/*`; of the text when it is not closed.
pub(crate) fn block_comment_end(source: &[u8], mut position: usize) -> Skipped {
    let mut newline = false;
    loop {
        position = find(source, position, [b'*', b'\n', b'\r', 0xe2]);
        match source.get(position) {
            Some(b'*') if source.get(position + 1) == Some(&b'/') => {
                return Skipped { position: position + 2, newline };
            }
            Some(b'*') => {}
            Some(_) => newline |= line_end(source, position).is_some(),
            None => return Skipped { position, newline },
        }
        position += 1;
    }
}

/// Whether the byte at `position` continues the name before it.
pub(crate) fn continues_name(source: &[u8], position: usize) -> bool {
    source
        .get(position)
        .is_some_and(|byte| IN_NAME[*byte as usize] != InName::No && wide_space(source, position).is_none())
}
