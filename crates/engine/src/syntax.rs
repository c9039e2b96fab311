//! Where a text that is no script is wrong.
//!
//! The engine names the line and not the column. It reads from the front and stops at the first token that cannot stand
//! where it does, so the shortest beginning of the text with the same error ends with that token; parsing beginnings finds
//! it. Nothing of the text runs.

use pydeno_wire::Text;
use pydeno_wire::message::{Failure, Frame, JsError};

use crate::ffi::{Context, EngineString};

/// The longest beginning of a source that is parsed again, in code units: twenty times at most, some milliseconds each.
const MAX_PROBED: usize = 256 << 10;

/// The engine's words for a text, or a literal in it, that ends too early.
const ENDS: [&str; 2] = ["Unexpected end of script", "Unexpected EOF"];

/// The error for a text that is no script, in which the engine found `message` in `line`.
pub(crate) fn error(
    context: &Context,
    source: &EngineString,
    name: &EngineString,
    message: &EngineString,
    line: i32,
) -> Failure {
    let frame = Frame {
        function: Text::default(),
        file: name.to_text(),
        line: u32::try_from(line).unwrap_or(0),
        column: column(context, source.units(), message, line),
    };
    Failure::Js(JsError {
        name: "SyntaxError".into(),
        message: message.to_text(),
        stack: Text::default(),
        frames: vec![frame],
        details: None,
    })
}

/// The column of the token that cannot stand where it does, in code units from 1; 0 when it is not found.
fn column(context: &Context, source: &[u16], message: &EngineString, line: i32) -> u32 {
    let Some((start, end)) = usize::try_from(line).ok().and_then(|line| line_of(source, line)) else {
        return 0;
    };
    let text = message.to_text().to_string();
    let at = |offset: usize| u32::try_from(offset.saturating_sub(start) + 1).unwrap_or(0);
    if ENDS.iter().any(|words| text.starts_with(words)) {
        return at(end);
    }
    let fails_in = |length: usize| {
        let beginning = EngineString::from_utf16(context.table(), &source[..length]);
        context
            .syntax_error(&beginning)
            .is_some_and(|(again, at)| at == line && again.units() == message.units())
    };
    // A token may go on over several lines.
    let Some(whole) =
        [end, source.len()].into_iter().find(|&length| length <= MAX_PROBED && fails_in(length))
    else {
        return 0;
    };
    let (mut without, mut with) = (start, whole);
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        if fails_in(middle) { with = middle } else { without = middle }
    }
    at(with - quoted_at_the_end(&source[start..with], &text).max(1))
}

/// Beginning and end of a line counted from 1, the terminator not included.
fn line_of(source: &[u16], line: usize) -> Option<(usize, usize)> {
    let mut start = 0;
    for _ in 1..line {
        start += terminator(&source[start..])?.1;
    }
    let length = terminator(&source[start..]).map_or(source.len() - start, |(length, _)| length);
    Some((start, start + length))
}

/// Where the first line terminator begins and where it ends.
fn terminator(source: &[u16]) -> Option<(usize, usize)> {
    const LINE_FEED: u16 = 0x0A;
    const CARRIAGE_RETURN: u16 = 0x0D;
    let begin =
        source.iter().position(|unit| matches!(*unit, LINE_FEED | CARRIAGE_RETURN | 0x2028 | 0x2029))?;
    let is_pair = source[begin..].starts_with(&[CARRIAGE_RETURN, LINE_FEED]);
    Some((begin, begin + 1 + usize::from(is_pair)))
}

/// The length of the longest token at a text's end that the engine's message quotes, 0 when it quotes none.
fn quoted_at_the_end(source: &[u16], message: &str) -> usize {
    let longest = source.len().min(message.encode_utf16().count());
    (1..=longest)
        .rev()
        .find(|length| {
            let token = String::from_utf16_lossy(&source[source.len() - length..]);
            let is_literal = token.len() > 1 && token.starts_with(['\'', '"', '`']);
            message.contains(&format!("'{token}'")) || (is_literal && message.contains(&token))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_text(source: &str, line: usize) -> Option<String> {
        let units: Vec<u16> = source.encode_utf16().collect();
        line_of(&units, line).map(|(start, end)| String::from_utf16_lossy(&units[start..end]))
    }

    #[test]
    fn every_terminator_of_the_language_ends_a_line() {
        let source = "a\r\nb\rc\n\u{2028}d\u{2029}e";
        let lines: Vec<_> = (1..=7).map_while(|line| line_text(source, line)).collect();
        assert_eq!(lines, ["a", "b", "c", "", "d", "e"]);
    }

    #[test]
    fn the_token_is_the_longest_one_that_the_message_quotes() {
        let quoted = |source: &str, message: &str| {
            quoted_at_the_end(&source.encode_utf16().collect::<Vec<_>>(), message)
        };
        assert_eq!(quoted("let ab", "Unexpected identifier 'ab'"), 2);
        assert_eq!(quoted("a \"b\"", "Unexpected string literal \"b\""), 3);
        assert_eq!(quoted("a b", "Invalid left-hand side"), 0);
    }
}
