//! What a word is by where it stands, and what may follow it.

use std::ops::Range;

use crate::characters::name_end;
use crate::class::Class;
use crate::frame::{Expect, Function, Kind};
use crate::keyword::Keyword;
use crate::scanner::{Role, Scanner, Sink};
use crate::transition::body_then;

impl<S: Sink> Scanner<'_, S> {
    /// A word of code, with what belongs to it. Returns the end of that. A keyword with escapes in it is none.
    pub(crate) fn word(&mut self, span: Range<usize>, escaped: bool) -> usize {
        let keyword = if escaped { Keyword::Other } else { Keyword::of(&self.source[span.clone()]) };
        let before = self.expect;
        let role = if self.follow(keyword.class()) {
            self.role(before)
        } else {
            if matches!(before, Expect::Equals | Expect::Sign | Expect::Let) {
                self.expect = Expect::Operand;
            }
            if self.expect.is_expression() {
                self.keyword_or_identifier(keyword, span.end)
            } else {
                self.word_elsewhere(keyword, span.end)
            }
        };
        let end = span.end;
        self.sink.word(self.source, span, escaped, role);
        if keyword == Keyword::Async && role == Role::Reference { self.after_async(end) } else { end }
    }

    /// The role of a word that was read where something was expected.
    fn role(&mut self, before: Expect) -> Role {
        match before {
            Expect::Member => Role::Member,
            Expect::Key | Expect::KeyDone => match self.kind() {
                Kind::Object => Role::ObjectKey,
                Kind::Class => Role::Member,
                _ => Role::Name,
            },
            Expect::New => Role::New,
            Expect::FunctionName | Expect::ClassName | Expect::AliasName | Expect::ImportHead => Role::Name,
            Expect::Type | Expect::InType | Expect::InterfaceHead => Role::Type,
            _ if before.is_after() && self.expect == Expect::KeyDone => Role::Member,
            _ => Role::Reference,
        }
    }

    /// A keyword where only a certain kind of name can stand, or in a type.
    fn word_elsewhere(&mut self, keyword: Keyword, end: usize) -> Role {
        match (self.expect, keyword) {
            (Expect::Key | Expect::KeyDone, Keyword::Async) if self.modifies_key(end) => {
                self.stack.set_method(Function::Async);
            }
            (Expect::ClassName, Keyword::Extends) => {
                self.expect = Expect::Operand;
                return Role::Name;
            }
            (Expect::ClassName, Keyword::Implements) => {
                self.expect = Expect::Type;
                return Role::Name;
            }
            (
                Expect::Type,
                Keyword::Keyof
                | Keyword::Typeof
                | Keyword::Infer
                | Keyword::Readonly
                | Keyword::Unique
                | Keyword::Asserts
                | Keyword::New
                | Keyword::Abstract
                | Keyword::Import,
            ) if self.name_or_bracket_follows(end) => return Role::Type,
            (Expect::TypeAfter | Expect::TypeParenthesis, Keyword::Extends | Keyword::Is)
                if !self.newline =>
            {
                self.conditional |= keyword == Keyword::Extends;
                self.expect = Expect::Type;
                return Role::Type;
            }
            (Expect::TypeAfter | Expect::TypeParenthesis, _) => {
                self.expect = Expect::After;
                if self.follow(keyword.class()) {
                    return self.role(Expect::After);
                }
                return self.keyword_or_identifier(keyword, end);
            }
            _ => {}
        }
        self.identifier()
    }

    fn name_or_bracket_follows(&mut self, end: usize) -> bool {
        self.name_follows(end).is_some() || matches!(self.follows(end), b'(' | b'[' | b'{' | b'<')
    }

    /// Whether a word in front of a key belongs to it, and is no key of its own.
    fn modifies_key(&mut self, end: usize) -> bool {
        self.name_follows(end).is_some()
            || matches!(self.follows(end), b'*' | b'[' | b'"' | b'\'' | b'#' | b'0'..=b'9')
    }

    /// A word as if it were no keyword.
    fn identifier(&mut self) -> Role {
        let before = self.expect;
        self.follow(Class::Word);
        self.role(before)
    }

    #[allow(clippy::too_many_lines, reason = "one arm a keyword")]
    fn keyword_or_identifier(&mut self, keyword: Keyword, end: usize) -> Role {
        let before = self.expect;
        // A word after an operand begins a statement, or is an operator that is a word.
        let is_after = before.is_after();
        let begins = is_after || matches!(before, Expect::Statement | Expect::Export);
        self.expect = match keyword {
            Keyword::In | Keyword::Instanceof if is_after => Expect::Operand,
            Keyword::As | Keyword::Satisfies if is_after && !self.newline => {
                self.conditional = false;
                Expect::Type
            }
            _ if self.starts_member() => {
                if keyword == Keyword::Async && self.modifies_key(end) {
                    self.stack.set_method(Function::Async);
                }
                return self.identifier();
            }
            Keyword::Of
                if is_after && self.top().then() == Expect::Statement && self.kind() == Kind::Parenthesis =>
            {
                Expect::Operand
            }
            Keyword::Extends if is_after && self.kind() == Kind::ClassHeader => Expect::Operand,
            Keyword::Implements if is_after && self.kind() == Kind::ClassHeader => Expect::Type,
            Keyword::Await if before == Expect::ControlHead => {
                if self.top().inside() == Function::Outside {
                    self.awaits = Some(true);
                }
                Expect::ControlHead
            }
            Keyword::Await if self.awaits(end) => Expect::Operand,
            Keyword::Case => {
                self.stack.top.set_awaits_case(true);
                Expect::Operand
            }
            Keyword::Yield if self.top().inside().is_generator() => Expect::Return,
            Keyword::Default => Expect::Default,
            Keyword::Function => {
                self.begin(Kind::FunctionHeader, before);
                Expect::FunctionName
            }
            Keyword::Class => {
                self.begin(Kind::ClassHeader, before);
                Expect::ClassName
            }
            // What follows tells: a function, an arrow function, or a name.
            Keyword::Async if before != Expect::ImportHead => return Role::Reference,
            Keyword::Import => {
                if !matches!(self.follows(end), b'(' | b'.') {
                    self.awaits = Some(true);
                }
                self.expect = Expect::ImportHead;
                return Role::Keyword;
            }
            Keyword::Export => {
                // Only modules have these.
                self.awaits = Some(true);
                self.expect = Expect::Export;
                return Role::Keyword;
            }
            Keyword::Type if before == Expect::Export && matches!(self.follows(end), b'{' | b'*') => {
                Expect::Export
            }
            Keyword::Type if begins && self.word_follows(end, is_no_operator) => Expect::AliasName,
            Keyword::Interface if begins && self.word_follows(end, is_no_operator) => Expect::InterfaceHead,
            _ => return self.identifier(),
        };
        Role::Reference
    }

    /// Reads what follows `async`, as far as that says what it is. Returns the end of that.
    fn after_async(&mut self, end: usize) -> usize {
        if self.word_follows(end, |word| word == Keyword::Function) {
            let (before, newline) = (self.expect, self.newline);
            let start = self.trivia(end);
            self.newline = newline;
            let end = name_end(self.source, start).0;
            self.sink.word(self.source, start..end, false, Role::Reference);
            self.begin(Kind::FunctionHeader, before);
            self.stack.top.set_inside(Function::Async);
            self.expect = Expect::FunctionName;
            return end;
        }
        let next = self.follows(end);
        if next == b'<' {
            // TypeScript: the type parameters of an arrow function.
            self.stack.top.set_awaits_arrow(true);
            self.expect = Expect::Operand;
            return end;
        }
        if self.word_follows(end, is_no_operator) {
            self.stack.top.set_awaits_arrow(true);
        }
        self.identifier();
        if next != b'(' {
            return end;
        }
        let start = self.trivia(end);
        self.push(Kind::AsyncParenthesis, Expect::After);
        self.expect = Expect::Operand;
        start + 1
    }

    /// Opens the header of a function or class.
    fn begin(&mut self, kind: Kind, before: Expect) {
        if self.kind() == Kind::FunctionHeader && before.is_after() {
            // TypeScript: the header before was an overload and has no body.
            self.pop();
        }
        let then = body_then(self.newline, before);
        if kind == Kind::FunctionHeader {
            self.push_function(kind, then, Function::Plain);
        } else {
            self.push(kind, then);
        }
    }

    /// Whether `await` is an operator; elsewhere it is a name. Outside of functions a script has the name and a module the
    /// operator: what was read so far, or what follows, tells which. Where nothing does, it is a name, and what follows
    /// is read as code.
    fn awaits(&mut self, end: usize) -> bool {
        if self.top().inside().is_async() {
            return true;
        }
        if self.top().inside() == Function::Outside
            && let Some(awaits) = self.awaits
        {
            return awaits;
        }
        let operand_follows = match self.name_follows(end) {
            Some(name) => Some(is_no_operator(Keyword::of(&self.source[name]))),
            None => match self.follows(end) {
                b'"' | b'\'' | b'{' | b'!' | b'~' | b'@' | b'0'..=b'9' => Some(true),
                b'=' | b'.' | b',' | b';' | b':' | b')' | b']' | b'}' | b'?' | b'*' | b'%' | b'&' | b'|'
                | b'^' | b'>' => Some(false),
                // A line may have ended, or it could be either.
                _ => None,
            },
        };
        if self.top().inside() == Function::Outside {
            self.awaits = operand_follows;
        }
        operand_follows.unwrap_or(false)
    }

    fn word_follows(&mut self, end: usize, accepts: fn(Keyword) -> bool) -> bool {
        self.name_follows(end).is_some_and(|name| accepts(Keyword::of(&self.source[name])))
    }
}

/// Whether a word after another one is no operator between two operands.
fn is_no_operator(word: Keyword) -> bool {
    !matches!(word, Keyword::In | Keyword::Instanceof | Keyword::Of | Keyword::As | Keyword::Satisfies)
}
