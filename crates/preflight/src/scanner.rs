//! The scanner: one pass over the source that knows of every byte whether it is code, and of every word its role.
//!
//! It keeps what the grammar expects next ([`Expect`]) and a stack of open brackets, and calls a [`Sink`] with what it
//! finds. Most tokens do what a table says ([`transition`]); the others are looked at one by one. It never goes back: each
//! byte is read once here, and what a sink or a question reads ahead is read twice.

use std::ops::Range;

use crate::block::{BLOCK, Block};
use crate::characters::{
    block_comment_end, line_comment_end, name_end, skip_trivia, starts_name, wide_space,
};
use crate::class::{CLASSES, Class};
use crate::frame::{Expect, Frame, Function, Kind, Place};
use crate::jsx::ClosingTags;
use crate::literal::{TemplateEnd, number_end, regex_end, string_end, template_text_end};
use crate::stack::Stack;
use crate::transition::transition;

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
    /// What stands between two tags of JSX.
    Jsx,
}

/// What takes the scanner's findings.
pub(crate) trait Sink {
    /// Whether it must be told of every word. Otherwise those that rules are about are enough.
    const EVERY_WORD: bool;

    /// A word of code.
    fn word(&mut self, source: &[u8], span: Range<usize>, escaped: bool, role: Role);
    /// A stretch that is no code.
    fn text(&mut self, source: &[u8], span: Range<usize>, kind: TextKind);
    /// So many bytes were read, or brackets looked at.
    fn steps(&mut self, count: usize);
}

/// The state of a scan.
pub(crate) struct Scanner<'a, S> {
    pub(crate) source: &'a [u8],
    pub(crate) sink: S,
    pub(crate) expect: Expect,
    pub(crate) stack: Stack,
    /// Whether a line ended since the last token.
    pub(crate) newline: bool,
    /// Outside of functions: whether `await` is an operator, where that is known.
    pub(crate) awaits: Option<bool>,
    /// Whether the type being read has an `extends` that a `?` may follow.
    pub(crate) conditional: bool,
    /// How many `?` of conditional types await their colon.
    pub(crate) conditionals: usize,
    pub(crate) closing_tags: ClosingTags<'a>,
}

impl<'a, S: Sink> Scanner<'a, S> {
    pub(crate) fn new(source: &'a [u8], sink: S) -> Self {
        Self {
            source,
            sink,
            expect: Expect::Statement,
            stack: Stack::new(),
            // `-->` at the start of the script is a comment.
            newline: true,
            awaits: None,
            conditional: false,
            conditionals: 0,
            closing_tags: ClosingTags::default(),
        }
    }

    /// Scans the whole source and returns the sink.
    pub(crate) fn run(self) -> S {
        let end = self.source.len();
        self.run_to(end)
    }

    /// Scans the source up to `end` at least, and returns the sink.
    pub(crate) fn run_to(mut self, end: usize) -> S {
        if end == 0 {
            return self.sink;
        }
        let source = self.source;
        let mut position = 0;
        if source.starts_with(b"#!") {
            position = self.text(0, line_comment_end(source, 2), TextKind::Comment);
        }
        let mut block = Block::at(source, position, S::EVERY_WORD);
        let mut steps = block.steps_after(position);
        loop {
            let (looks, place) = self.stack.follow(&block, steps, self.place());
            self.stand_at(place);
            let token_end = looks.map(|offset| self.token(block.base + offset));
            position = token_end.unwrap_or(block.base + BLOCK);
            if position >= block.base + BLOCK {
                if position >= end {
                    return self.sink;
                }
                self.sink.steps(BLOCK);
                block.load(source, position, S::EVERY_WORD);
            }
            steps = match token_end {
                Some(end) => block.steps_after(end),
                None => block.steps(),
            };
        }
    }

    fn place(&self) -> Place {
        Place::new(self.stack.kind, self.expect, self.newline)
    }

    fn stand_at(&mut self, place: Place) {
        self.stack.kind = place.kind();
        self.expect = place.expect();
        self.newline = place.newline();
    }

    /// Reads a token of any kind and returns its end.
    fn token(&mut self, start: usize) -> usize {
        let end = match self.any_token(start) {
            Token::Code(end) => end,
            Token::Trivia(end) => return end,
        };
        self.newline = false;
        self.sink.steps(end - start);
        end
    }

    fn any_token(&mut self, start: usize) -> Token {
        let source = self.source;
        let byte = source[start];
        let class = CLASSES[usize::from(byte)];
        match byte {
            b'\n' | b'\r' => {
                self.newline = true;
                return Token::Trivia(start + 1);
            }
            b'/' if matches!(source.get(start + 1), Some(b'/' | b'*')) => {
                return Token::Trivia(self.comment(start));
            }
            0x80.. => {
                if let Some((length, ends_line)) = wide_space(source, start) {
                    self.newline |= ends_line;
                    return Token::Trivia(start + length);
                }
            }
            _ => {}
        }
        match self.kind() {
            Kind::Jsx => return Token::Code(self.in_tag(start)),
            Kind::Arrow => self.end_arrows(start, class),
            _ => {}
        }
        if class == Class::Word || matches!(byte, b'\\' | 0x80..) {
            return Token::Code(self.name(start));
        }
        if class == Class::Digit {
            return Token::Code(self.number(start));
        }
        if class != Class::Special && self.follow(class) {
            return Token::Code(start + 1);
        }
        let follows_sign = self.expect == Expect::Sign;
        // What is to be looked at sees only what the grammar expects, and not how it came to that.
        match self.expect {
            Expect::Equals if byte != b'>' => self.expect = Expect::Operand,
            Expect::Sign => self.expect = Expect::Operand,
            Expect::Let if byte == b':' && self.top().ternaries() == 0 => self.expect = Expect::FirstWord,
            Expect::Let => self.expect = Expect::After,
            _ => {}
        }
        Token::Code(match byte {
            b'"' | b'\'' => {
                let end = self.text(start, string_end(source, start + 1, byte), TextKind::String);
                self.literal();
                end
            }
            b'`' => {
                let then = self.after_literal();
                self.template_text(start, start + 1, then)
            }
            b'/' => self.slash(start),
            b'<' if source[start..].starts_with(b"<!--") => {
                return Token::Trivia(self.text(
                    start,
                    line_comment_end(source, start + 4),
                    TextKind::Comment,
                ));
            }
            b'<' => self.less(start),
            b'-' if self.newline && source[start..].starts_with(b"-->") => {
                return Token::Trivia(self.text(
                    start,
                    line_comment_end(source, start + 3),
                    TextKind::Comment,
                ));
            }
            b'+' | b'-' => self.sign(start, follows_sign),
            b'(' => self.open_parenthesis(start),
            b')' => self.close_parenthesis(start),
            b'[' => self.open_bracket(start),
            b']' => {
                self.close(&[Kind::Bracket, Kind::TypeBracket]);
                start + 1
            }
            b'{' => self.open_brace(start),
            b'}' => self.close_brace(start),
            b'.' => self.dot(start),
            b',' => self.comma(start),
            b';' => self.semicolon(start),
            b':' => self.colon(start),
            b'?' => self.question(start),
            b'=' => self.equals(start),
            b'>' => self.greater(start),
            b'|' | b'&' => self.bar_ampersand(start),
            b'*' => self.star(start),
            b'#' => self.private_name(start),
            _ => start + 1,
        })
    }

    /// Does what the table says of a token, if it does.
    pub(crate) fn follow(&mut self, class: Class) -> bool {
        let entry = transition(self.place(), class as u8, false);
        if entry.must_look() {
            return false;
        }
        let place = self.stack.apply(entry, class, self.place());
        self.stand_at(place);
        true
    }

    /// What is remembered of the innermost bracket.
    pub(crate) fn top(&self) -> Frame {
        self.stack.top
    }

    /// What the innermost bracket is.
    pub(crate) fn kind(&self) -> Kind {
        self.stack.kind()
    }

    /// Reports a stretch of text and returns its end.
    pub(crate) fn text(&mut self, start: usize, end: usize, kind: TextKind) -> usize {
        self.sink.steps(end - start);
        self.sink.text(self.source, start..end, kind);
        end
    }

    pub(crate) fn comment(&mut self, start: usize) -> usize {
        let end = if self.source.get(start + 1) == Some(&b'/') {
            line_comment_end(self.source, start + 2)
        } else {
            let comment = block_comment_end(self.source, start + 2);
            self.newline |= comment.newline;
            comment.position
        };
        self.text(start, end, TextKind::Comment)
    }

    fn name(&mut self, start: usize) -> usize {
        let (end, escaped) = name_end(self.source, start);
        self.word(start..end, escaped)
    }

    /// A number; the table has read the point that it may start with.
    fn number(&mut self, start: usize) -> usize {
        if self.expect == Expect::Member {
            self.expect = Expect::After;
            let point = usize::from(start > 0 && self.source[start - 1] == b'.');
            return number_end(self.source, start - point);
        }
        self.literal();
        number_end(self.source, start)
    }

    /// A string or a number was read, which may be a key.
    pub(crate) fn literal(&mut self) {
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
        self.expect.is_after() && self.kind() == Kind::Class
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

    /// A regular expression or an operator.
    fn slash(&mut self, start: usize) -> usize {
        if self.expect.takes_operand() {
            let end = self.text(start, regex_end(self.source, start + 1), TextKind::Regex);
            self.expect = Expect::After;
            return end;
        }
        if self.expect != Expect::InType {
            self.expect = Expect::Operand;
        }
        start + 1
    }

    /// Opens a bracket in the same function.
    pub(crate) fn push(&mut self, kind: Kind, then: Expect) {
        let inside = self.stack.top.inside();
        self.push_function(kind, then, inside);
    }

    pub(crate) fn push_function(&mut self, kind: Kind, then: Expect, inside: Function) {
        self.stack.push(kind, then, inside);
    }

    /// Closes the innermost bracket; the script itself stays.
    pub(crate) fn pop(&mut self) -> Frame {
        self.sink.steps(1);
        self.stack.pop()
    }

    fn close_brace(&mut self, start: usize) -> usize {
        while !self.kind().has_braces() && self.kind() != Kind::Script {
            self.pop();
        }
        if self.kind() == Kind::Script {
            self.expect = Expect::Statement;
            return start + 1;
        }
        let closes = self.kind();
        let then = self.pop().then();
        if closes == Kind::Substitution {
            return self.template_text(start, start + 1, then);
        }
        self.expect = then;
        if closes == Kind::JsxHole && then == Expect::JsxText {
            return self.jsx_text(start + 1);
        }
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

    /// Reads white space and comments.
    pub(crate) fn trivia(&mut self, mut position: usize) -> usize {
        loop {
            match self.source.get(position) {
                Some(b' ' | b'\t') => position += 1,
                Some(b'\n' | b'\r') => {
                    self.newline = true;
                    position += 1;
                }
                Some(b'/') if matches!(self.source.get(position + 1), Some(b'/' | b'*')) => {
                    position = self.comment(position);
                }
                _ => return position,
            }
        }
    }

    /// The first byte of the next token; 0 at the end.
    pub(crate) fn follows(&mut self, end: usize) -> u8 {
        let skipped = skip_trivia(self.source, end);
        self.sink.steps(skipped.position - end);
        self.source.get(skipped.position).copied().unwrap_or(0)
    }
}

/// What was read, and where it ends.
enum Token {
    Code(usize),
    /// White space or a comment.
    Trivia(usize),
}
