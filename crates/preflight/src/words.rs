//! What a word is by where it stands, and what may follow it.

use std::ops::Range;

use crate::characters::skip_trivia;
use crate::frame::{Expect, Kind};
use crate::scanner::{Role, Scanner, Sink};
use crate::word_set::WordSet;

/// The words that mean something where an expression or a statement can stand.
static KEYWORDS: WordSet = WordSet::new(&[
    "as",
    "async",
    "await",
    "break",
    "case",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "of",
    "return",
    "satisfies",
    "throw",
    "type",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
]);

impl<S: Sink> Scanner<'_, S> {
    /// A word of code. A keyword with escapes in it is none.
    #[inline]
    pub(crate) fn word(&mut self, span: Range<usize>, escaped: bool) {
        let role = if self.expect.is_expression() {
            if KEYWORDS.may_hold(&self.source[span.clone()]) && !escaped {
                self.keyword_or_identifier(&span)
            } else {
                self.identifier()
            }
        } else {
            self.word_elsewhere(&span)
        };
        self.sink.word(self.source, span, escaped, role);
    }

    /// A word where only a certain kind of name can stand, or in a type.
    fn word_elsewhere(&mut self, span: &Range<usize>) -> Role {
        match self.expect {
            Expect::Member => {
                self.expect = Expect::After;
                Role::Member
            }
            Expect::Key | Expect::KeyDone => {
                self.expect = Expect::KeyDone;
                match self.top.kind {
                    Kind::Object => Role::ObjectKey,
                    Kind::Class => Role::Member,
                    _ => Role::Name,
                }
            }
            Expect::FunctionName => {
                self.expect = Expect::After;
                Role::Name
            }
            Expect::ClassName => self.class_name(span),
            Expect::AliasName => Role::Name,
            Expect::InType | Expect::InterfaceHead => Role::Type,
            Expect::Type => self.word_of_type(span),
            Expect::TypeAfter | Expect::TypeParenthesis
                if !self.newline && matches!(&self.source[span.clone()], b"extends" | b"is") =>
            {
                self.conditional |= self.source[span.start] == b'e';
                self.expect = Expect::Type;
                Role::Type
            }
            _ => self.keyword_or_identifier(span),
        }
    }

    fn class_name(&mut self, span: &Range<usize>) -> Role {
        self.expect = match &self.source[span.clone()] {
            b"extends" => Expect::Operand,
            b"implements" => Expect::Type,
            _ => Expect::After,
        };
        Role::Name
    }

    fn word_of_type(&mut self, span: &Range<usize>) -> Role {
        self.expect = match &self.source[span.clone()] {
            b"keyof" | b"typeof" | b"infer" | b"readonly" | b"unique" | b"asserts" | b"new" | b"abstract"
            | b"import"
                if self.name_or_bracket_follows(span.end) =>
            {
                Expect::Type
            }
            _ => Expect::TypeAfter,
        };
        Role::Type
    }

    fn name_or_bracket_follows(&mut self, end: usize) -> bool {
        self.name_follows(end).is_some() || matches!(self.follows(end), Some(b'(' | b'[' | b'{' | b'<'))
    }

    /// The first byte of the next token.
    fn follows(&mut self, end: usize) -> Option<u8> {
        let skipped = skip_trivia(self.source, end);
        self.sink.steps(skipped.position - end);
        self.source.get(skipped.position).copied()
    }

    /// A variable's name, or a label; in a class the name of the next member.
    fn identifier(&mut self) -> Role {
        let role = match self.expect {
            Expect::New => Role::New,
            Expect::ImportHead => return Role::Name,
            _ => Role::Reference,
        };
        if self.starts_member() {
            self.expect = Expect::KeyDone;
            return Role::Member;
        }
        let begins = match self.expect {
            Expect::Statement => true,
            _ => self.expect.is_after() && self.newline,
        };
        self.expect = if begins { Expect::FirstWord } else { Expect::After };
        role
    }

    #[allow(clippy::too_many_lines, reason = "one arm a keyword")]
    fn keyword_or_identifier(&mut self, span: &Range<usize>) -> Role {
        let before = self.expect;
        // A word after an operand begins a statement, or is an operator that is a word.
        let is_after = before.is_after();
        let begins = is_after || matches!(before, Expect::Statement | Expect::Export);
        self.expect = match &self.source[span.clone()] {
            b"in" | b"instanceof" if is_after => Expect::Operand,
            b"as" | b"satisfies" if is_after && !self.newline => {
                self.conditional = false;
                Expect::Type
            }
            _ if self.starts_member() => return self.identifier(),
            b"of" if is_after && self.top.then == Expect::Statement && self.top.kind == Kind::Parenthesis => {
                Expect::Operand
            }
            b"extends" if is_after && self.top.kind == Kind::ClassHeader => Expect::Operand,
            b"implements" if is_after && self.top.kind == Kind::ClassHeader => Expect::Type,
            b"if" | b"while" | b"for" | b"with" => Expect::ControlHead,
            b"await" if before == Expect::ControlHead => Expect::ControlHead,
            b"do" | b"else" | b"break" | b"continue" => Expect::Statement,
            b"return" => Expect::Return,
            b"new" => Expect::New,
            b"throw" | b"typeof" | b"delete" | b"void" | b"await" | b"const" | b"var" | b"enum" => {
                Expect::Operand
            }
            b"case" => {
                self.top.flag = true;
                Expect::Operand
            }
            b"yield" if self.generator => Expect::Return,
            b"let" if self.binding_follows(span.end) => Expect::Operand,
            b"default" => Expect::Default,
            b"function" => {
                self.begin(Kind::FunctionHeader, before);
                Expect::FunctionName
            }
            b"class" => {
                self.begin(Kind::ClassHeader, before);
                Expect::ClassName
            }
            // What follows decides whether a function is a declaration: the same as in front of it.
            b"async" if self.word_follows(span.end, |word| word == b"function") => return Role::Reference,
            // TypeScript: the type parameters of an async arrow function.
            b"async" if self.follows(span.end) == Some(b'<') => Expect::Operand,
            b"import" => {
                self.expect = Expect::ImportHead;
                return Role::Keyword;
            }
            b"export" => {
                self.expect = Expect::Export;
                return Role::Keyword;
            }
            b"type" if before == Expect::Export && matches!(self.follows(span.end), Some(b'{' | b'*')) => {
                Expect::Export
            }
            b"type" if begins && self.word_follows(span.end, names_type) => Expect::AliasName,
            b"interface" if begins && self.word_follows(span.end, names_type) => Expect::InterfaceHead,
            _ => return self.identifier(),
        };
        Role::Reference
    }

    /// Opens the header of a function or class. Where it is an expression, a value ends with its body.
    fn begin(&mut self, kind: Kind, before: Expect) {
        if self.top.kind == Kind::FunctionHeader && before.is_after() {
            // TypeScript: the header before was an overload and has no body.
            self.pop();
        }
        let is_declaration = before.is_after()
            || matches!(before, Expect::Statement | Expect::Export | Expect::Default)
            || (before == Expect::Return && self.newline);
        self.push(kind, if is_declaration { Expect::Statement } else { Expect::After });
    }

    fn word_follows(&mut self, end: usize, accepts: fn(&[u8]) -> bool) -> bool {
        self.name_follows(end).is_some_and(|name| accepts(&self.source[name]))
    }

    /// After `let`: whether it declares. Else it is a name, as scripts may use it.
    fn binding_follows(&mut self, end: usize) -> bool {
        matches!(
            self.follows(end),
            Some(b'[' | b'{' | b'_' | b'$' | b'\\' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..)
        )
    }
}

/// Whether the word after `type` or `interface` is the name of one.
fn names_type(word: &[u8]) -> bool {
    !matches!(word, b"in" | b"instanceof" | b"of" | b"as" | b"satisfies")
}
