//! Where the statements of a program begin, as far as that can be told without a parser.
//!
//! It is for whoever wants the value of a program's last statement: each place is a proposal, to be confirmed by letting an
//! engine parse what is on either side of it.

use std::collections::VecDeque;
use std::ops::Range;

use crate::characters::{name_end, starts_name, wide_space};
use crate::scanner::TextKind;
use crate::spans::{Span, SpanKind, spans};

/// How many of the last statements' beginnings are kept.
const MOST_STARTS: usize = 64;

/// The rough shape of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Where the last statements may begin, in order. None is followed by a semicolon that another statement follows.
    pub starts: Vec<Start>,
    /// The end of the last token, semicolons not counted, in bytes.
    pub end: usize,
    /// Whether no semicolon separates statements.
    pub is_single: bool,
    /// The words `export default` where they begin a statement, with the blanks after them.
    pub export_default: Option<Range<usize>>,
}

/// Where a statement may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Of its first token, in bytes.
    pub at: usize,
    /// Where what stands before it ends: right after a closing brace, if the token could also go on with what the brace
    /// ends; otherwise the same as `at`.
    pub before: usize,
    /// Whether it begins with a word that no expression begins with, or declares something.
    pub is_statement: bool,
}

/// Finds where the statements of a program begin.
pub fn outline(source: &[u8]) -> Outline {
    let mut walk =
        Walk { source, outline: Outline { is_single: true, ..Outline::default() }, ..Walk::default() };
    let mut starts = VecDeque::new();
    let mut position = 0;
    let spans = spans(source);
    let mut texts = spans.iter().filter(|span| matches!(span.kind, SpanKind::Text(_))).peekable();
    while position < source.len() {
        if let Some(span) = texts.next_if(|span| span.range.start == position) {
            walk.text(span, &mut starts);
            position = span.range.end.max(position + 1);
            continue;
        }
        let until = texts.peek().map_or(source.len(), |span| span.range.start);
        position = walk.code(position, until, &mut starts);
    }
    walk.outline.starts = starts.into();
    walk.outline
}

#[derive(Default)]
struct Walk<'a> {
    source: &'a [u8],
    outline: Outline,
    depth: usize,
    /// Whether a line ended since the last token.
    newline: bool,
    /// The last byte of the last token, and 0 before the first.
    last: u8,
    /// Whether the token before was `export`, and where it began.
    export: Option<usize>,
}

impl<'a> Walk<'a> {
    fn text(&mut self, span: &Span, starts: &mut VecDeque<Start>) {
        let Range { start, end } = span.range;
        match span.kind {
            SpanKind::Text(TextKind::Comment) => {
                self.newline |= self.source[start..end].contains(&b'\n');
            }
            SpanKind::Text(TextKind::Template) => {
                let bytes = &self.source[start..end];
                if bytes.first() == Some(&b'`') {
                    self.token(start, starts);
                } else {
                    self.depth = self.depth.saturating_sub(1);
                }
                if bytes.ends_with(b"${") {
                    self.depth += 1;
                }
                self.ended(end, b'`');
            }
            _ => {
                self.token(start, starts);
                self.ended(end, b'"');
            }
        }
    }

    /// Reads one token or blank, which ends before `until`.
    fn code(&mut self, start: usize, until: usize, starts: &mut VecDeque<Start>) -> usize {
        let byte = self.source[start];
        match byte {
            b' ' | b'\t' | 0x0b | 0x0c => return start + 1,
            b'\n' | b'\r' => {
                self.newline = true;
                return start + 1;
            }
            0x80.. => {
                if let Some((length, ends_line)) = wide_space(self.source, start) {
                    self.newline |= ends_line;
                    return start + length;
                }
            }
            _ => {}
        }
        if byte == b';' {
            self.newline = false;
            self.last = b';';
            return start + 1;
        }
        self.token(start, starts);
        let end = if starts_name(self.source, start) || byte.is_ascii_digit() {
            name_end(self.source, start).0.clamp(start + 1, until)
        } else {
            start + 1
        };
        match byte {
            b'(' | b'[' | b'{' => self.depth += 1,
            b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.ended(end, self.source[end - 1]);
        end
    }

    /// A token begins.
    fn token(&mut self, at: usize, starts: &mut VecDeque<Start>) {
        let export = self.export.take();
        if self.depth > 0 || matches!(self.source[at], b')' | b']' | b'}') {
            return;
        }
        let word = self.word(at);
        if word == b"default"
            && let Some(export) = export
        {
            let blanks = self.source[at + 7..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.outline.export_default.get_or_insert(export..at + 7 + blanks);
            return;
        }
        let after_brace = self.last == b'}';
        let goes_on = self.can_go_on(at, word);
        let before = match self.last {
            0 => at,
            b';' => {
                starts.clear();
                self.outline.is_single = self.outline.end == 0;
                at
            }
            b'}' if goes_on => self.outline.end,
            _ if (after_brace || self.newline) && !goes_on => at,
            _ => return,
        };
        if word == b"export" {
            self.export = Some(at);
        }
        if starts.len() == MOST_STARTS {
            starts.pop_front();
        }
        starts.push_back(Start { at, before, is_statement: self.is_statement(at, word) });
    }

    fn ended(&mut self, end: usize, last: u8) {
        self.outline.end = end;
        self.last = last;
        self.newline = false;
    }

    fn word(&self, at: usize) -> &'a [u8] {
        if starts_name(self.source, at) { &self.source[at..name_end(self.source, at).0] } else { b"" }
    }

    /// Whether the token can go on with an expression that ended before it, on the line before as well.
    fn can_go_on(&self, at: usize, word: &[u8]) -> bool {
        match self.source[at] {
            b'+' | b'-' => self.source.get(at + 1) != Some(&self.source[at]),
            b'(' | b'[' | b'`' | b'/' | b'.' | b',' | b'?' | b':' | b'*' | b'%' | b'&' | b'|' | b'^'
            | b'<' | b'>' | b'=' => true,
            b'!' => self.source.get(at + 1) == Some(&b'='),
            _ => matches!(word, b"in" | b"instanceof"),
        }
    }

    /// Whether a statement that begins with this word is no expression, or would lose its meaning as one.
    fn is_statement(&self, at: usize, word: &[u8]) -> bool {
        match word {
            b"async" => {
                let rest = self.source[at + 5..].trim_ascii_start();
                rest.starts_with(b"function") && !starts_name(rest, 8)
            }
            b"function" | b"class" | b"const" | b"let" | b"var" | b"if" | b"for" | b"while" | b"do"
            | b"switch" | b"try" | b"catch" | b"finally" | b"else" | b"return" | b"throw" | b"break"
            | b"continue" | b"with" | b"debugger" | b"import" | b"export" => true,
            _ => false,
        }
    }
}
