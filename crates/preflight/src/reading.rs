//! Reading ahead from a word: what is done with it.

use std::borrow::Cow;
use std::ops::Range;

use crate::characters::{name_end, skip_trivia, starts_name};
use crate::literal::{TemplateEnd, string_end, template_text_end, unescape};

/// The longest literal in brackets, in bytes of source, that can be a name of interest.
const MAX_LITERAL: usize = 128;

/// What follows a word.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Next<'a> {
    /// `(` or `?.(`.
    Call,
    /// A property by name, or by a literal in brackets: its meaning and where it ends.
    Property(Cow<'a, [u8]>, usize),
    /// `[` and something else than a literal.
    Computed,
    /// Anything else, by its first byte; 0 at the end.
    Other(u8),
}

/// Reads ahead, and counts how far.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) steps: usize,
}

impl Reader {
    /// What follows position `end`.
    pub(crate) fn next<'a>(&mut self, source: &'a [u8], end: usize) -> Next<'a> {
        let mut position = self.skip(source, end);
        let mut optional = false;
        loop {
            match source.get(position) {
                // `?.5` is a condition and a number.
                Some(b'?')
                    if !optional
                        && source.get(position + 1) == Some(&b'.')
                        && !source.get(position + 2).is_some_and(u8::is_ascii_digit) =>
                {
                    optional = true;
                    position = self.skip(source, position + 2);
                    if starts_name(source, position) {
                        break property(source, position);
                    }
                }
                Some(b'.') if !optional && source.get(position + 1) != Some(&b'.') => {
                    position = self.skip(source, position + 1);
                    break property(source, position);
                }
                Some(b'(') => break Next::Call,
                Some(b'[') => {
                    position = self.skip(source, position + 1);
                    break self.bracketed(source, position);
                }
                Some(&byte) => break Next::Other(byte),
                None => break Next::Other(0),
            }
        }
    }

    /// The first byte of the next token and where it is.
    pub(crate) fn token(&mut self, source: &[u8], end: usize) -> (u8, usize) {
        let position = self.skip(source, end);
        (source.get(position).copied().unwrap_or(0), position)
    }

    fn skip(&mut self, source: &[u8], from: usize) -> usize {
        let position = skip_trivia(source, from).position;
        self.steps += position - from;
        position
    }

    fn bracketed<'a>(&mut self, source: &'a [u8], start: usize) -> Next<'a> {
        let window = &source[..source.len().min(start + MAX_LITERAL)];
        let end = match window.get(start) {
            Some(&quote @ (b'"' | b'\'')) => string_end(window, start + 1, quote),
            Some(b'`') => match template_text_end(window, start + 1) {
                (end, TemplateEnd::Closed) => end,
                (_, TemplateEnd::Substitution) => return Next::Computed,
            },
            _ => return Next::Computed,
        };
        self.steps += end - start;
        let after = self.skip(source, end);
        if source.get(after) != Some(&b']') || end < start + 2 {
            return Next::Computed;
        }
        Next::Property(meaning(source, start + 1..end - 1), after + 1)
    }
}

fn property(source: &[u8], start: usize) -> Next<'_> {
    let end = name_end(source, start).0;
    Next::Property(meaning(source, start..end), end)
}

/// The meaning of a name or of a literal's inside.
pub(crate) fn meaning(source: &[u8], span: Range<usize>) -> Cow<'_, [u8]> {
    let raw = &source[span];
    if raw.contains(&b'\\') { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) }
}
