//! The scanner: one pass over the source that knows of every byte whether it is code, and of every word its role.
//!
//! It keeps what the grammar expects next ([`Expect`]) and a stack of open brackets, and calls a [`Sink`] with what it
//! finds. It never goes back: each byte is read once here, and what a sink reads ahead is read twice.

use std::ops::Range;

use crate::characters::{
    block_comment_end, line_comment_end, name_end, skip_trivia, starts_name, wide_space,
};
use crate::frame::{Expect, Frame, Kind};
use crate::literal::{TemplateEnd, number_end, regex_end, string_end, template_text_end};

/// The role of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It stands for a variable.
    Reference,
    /// The same, right after `new`.
    New,
    /// `import` or `export`, as a keyword.
    Keyword,
    /// A property after a dot, or a member that a class declares.
    Member,
    /// A key of an object literal; followed by neither a colon nor a parenthesis it is a variable as well.
    ObjectKey,
    /// A name that is given: a function, a class, a type, what an import is called.
    Name,
    /// It belongs to a type.
    Type,
}

/// What is text and not code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextKind {
    /// A comment, or the line of a `#!`.
    Comment,
    /// A string with its quotes.
    String,
    /// A stretch of a template's text with what delimits it.
    Template,
    /// A regular expression with its flags.
    Regex,
}

/// What takes the scanner's findings.
pub(crate) trait Sink {
    /// A word of code.
    fn word(&mut self, source: &[u8], span: Range<usize>, escaped: bool, role: Role);
    /// A stretch that is no code.
    fn text(&mut self, source: &[u8], span: Range<usize>, kind: TextKind);
    /// So many bytes were read, or brackets looked at.
    fn steps(&mut self, count: usize);
}

/// The state of a scan.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about where the scan stands")]
pub(crate) struct Scanner<'a, S> {
    pub(crate) source: &'a [u8],
    pub(crate) sink: S,
    pub(crate) expect: Expect,
    pub(crate) top: Frame,
    below: Vec<Frame>,
    /// Whether a line ended since the last token.
    pub(crate) newline: bool,
    /// Whether `yield` is an operator.
    pub(crate) generator: bool,
    /// Whether the method whose key was read is a generator.
    pub(crate) generator_key: bool,
    /// Whether the type being read has an `extends` that a `?` may follow.
    pub(crate) conditional: bool,
    /// How many `?` of conditional types await their colon.
    pub(crate) conditionals: usize,
}

impl<'a, S: Sink> Scanner<'a, S> {
    pub(crate) fn new(source: &'a [u8], sink: S) -> Self {
        Self {
            source,
            sink,
            expect: Expect::Statement,
            top: Frame::new(Kind::Script, Expect::Statement),
            below: Vec::new(),
            // `-->` at the start of the script is a comment.
            newline: true,
            generator: false,
            generator_key: false,
            conditional: false,
            conditionals: 0,
        }
    }

    /// Scans the whole source and returns the sink.
    pub(crate) fn run(mut self) -> S {
        let source = self.source;
        let mut position = 0;
        if source.starts_with(b"#!") {
            position = self.text(0, line_comment_end(source, 2), TextKind::Comment);
        }
        while let Some(&byte) = source.get(position) {
            let start = position;
            // Half of all tokens are words. Telling them apart first leaves a jump that is easier to predict.
            if byte.is_ascii_alphabetic() {
                position = self.name(start);
                self.newline = false;
                self.sink.steps(position - start);
                continue;
            }
            match byte {
                b' ' | b'\t' | 0x0b | 0x0c => {
                    position += 1;
                    continue;
                }
                b'\n' | b'\r' => {
                    self.newline = true;
                    position += 1;
                    continue;
                }
                b'_' | b'$' | b'\\' => position = self.name(start),
                // The most frequent punctuators; the others are matched apart.
                b'(' => {
                    self.open_parenthesis();
                    position += 1;
                }
                b')' => {
                    self.close([Kind::Parenthesis, Kind::TypeParenthesis]);
                    position += 1;
                }
                b',' => {
                    self.comma();
                    position += 1;
                }
                b';' => {
                    self.semicolon();
                    position += 1;
                }
                b':' => {
                    self.colon();
                    position += 1;
                }
                b'{' => {
                    self.open_brace();
                    position += 1;
                }
                b'[' => {
                    self.open_bracket();
                    position += 1;
                }
                b']' => {
                    self.close([Kind::Bracket, Kind::TypeBracket]);
                    position += 1;
                }
                b'.' => position = self.dot(start),
                b'=' => position = self.equals(start),
                0x80.. => {
                    if let Some((length, ends_line)) = wide_space(source, position) {
                        self.newline |= ends_line;
                        position += length;
                        continue;
                    }
                    position = self.name(start);
                }
                b'0'..=b'9' => position = self.number(start),
                b'"' | b'\'' => {
                    position = self.text(start, string_end(source, start + 1, byte), TextKind::String);
                    self.literal();
                }
                b'`' => {
                    let then = self.after_literal();
                    position = self.template_text(start, start + 1, then);
                }
                b'/' => match self.slash(start) {
                    (end, true) => {
                        position = end;
                        continue;
                    }
                    (end, false) => position = end,
                },
                b'<' if source[start..].starts_with(b"<!--") => {
                    position = self.text(start, line_comment_end(source, start + 4), TextKind::Comment);
                    continue;
                }
                b'-' if self.newline && source[start..].starts_with(b"-->") => {
                    position = self.text(start, line_comment_end(source, start + 3), TextKind::Comment);
                    continue;
                }
                b'}' => position = self.close_brace(start),
                _ => position = self.punctuator(start, byte),
            }
            self.newline = false;
            self.sink.steps(position - start);
        }
        self.sink
    }

    /// Reports a stretch of text and returns its end.
    fn text(&mut self, start: usize, end: usize, kind: TextKind) -> usize {
        self.sink.steps(end - start);
        self.sink.text(self.source, start..end, kind);
        end
    }

    #[inline]
    fn name(&mut self, start: usize) -> usize {
        let (end, escaped) = name_end(self.source, start);
        self.word(start..end, escaped);
        end
    }

    pub(crate) fn number(&mut self, start: usize) -> usize {
        self.literal();
        number_end(self.source, start)
    }

    /// A string or a number was read, which may be a key.
    fn literal(&mut self) {
        self.expect = self.after_literal();
    }

    fn after_literal(&self) -> Expect {
        match self.expect {
            Expect::Key | Expect::KeyDone => Expect::KeyDone,
            Expect::InType => Expect::InType,
            Expect::Type => Expect::TypeAfter,
            _ if self.starts_member() => Expect::KeyDone,
            _ => Expect::After,
        }
    }

    /// Whether a token that is no operator begins the next member of a class: its initializers need no semicolons.
    pub(crate) fn starts_member(&self) -> bool {
        self.expect.is_after() && self.top.kind == Kind::Class
    }

    /// Reads a template's text from `position` on; `start` is where its stretch began.
    fn template_text(&mut self, start: usize, position: usize, then: Expect) -> usize {
        let (end, ended) = template_text_end(self.source, position);
        self.text(start, end, TextKind::Template);
        if ended == TemplateEnd::Substitution {
            self.push(Kind::Substitution, then);
            self.expect = Expect::Operand;
        } else {
            self.expect = then;
        }
        end
    }

    /// A comment, a regular expression or an operator; whether it was a comment.
    fn slash(&mut self, start: usize) -> (usize, bool) {
        match self.source.get(start + 1) {
            Some(b'/') => {
                (self.text(start, line_comment_end(self.source, start + 2), TextKind::Comment), true)
            }
            Some(b'*') => {
                let comment = block_comment_end(self.source, start + 2);
                self.newline |= comment.newline;
                (self.text(start, comment.position, TextKind::Comment), true)
            }
            _ if self.expect.takes_operand() => {
                let end = self.text(start, regex_end(self.source, start + 1), TextKind::Regex);
                self.expect = Expect::After;
                (end, false)
            }
            _ => {
                if self.expect != Expect::InType {
                    self.expect = Expect::Operand;
                }
                (start + 1, false)
            }
        }
    }

    pub(crate) fn push(&mut self, kind: Kind, then: Expect) {
        let outer = std::mem::replace(&mut self.top, Frame::new(kind, then));
        self.below.push(outer);
    }

    /// Closes the innermost bracket; the script itself stays.
    pub(crate) fn pop(&mut self) -> Frame {
        self.sink.steps(1);
        let closed = self.top;
        if let Some(outer) = self.below.pop() {
            self.top = outer;
        }
        if let Some(generator) = closed.outer_generator {
            self.generator = generator;
        }
        closed
    }

    fn close_brace(&mut self, start: usize) -> usize {
        while !self.top.kind.has_braces() && self.top.kind != Kind::Script {
            self.pop();
        }
        if self.top.kind == Kind::Script {
            self.expect = Expect::Statement;
            return start + 1;
        }
        let closed = self.pop();
        if closed.kind == Kind::Substitution {
            return self.template_text(start, start + 1, closed.then);
        }
        self.expect = closed.then;
        start + 1
    }

    /// Whether the next token, on the same line, starts a name.
    pub(crate) fn name_follows(&mut self, end: usize) -> Option<Range<usize>> {
        let skipped = skip_trivia(self.source, end);
        self.sink.steps(skipped.position - end);
        if skipped.newline || !starts_name(self.source, skipped.position) {
            return None;
        }
        Some(skipped.position..name_end(self.source, skipped.position).0)
    }
}
