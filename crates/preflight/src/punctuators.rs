//! What punctuators open, close and let follow.

use crate::characters::{name_end, skip_trivia};
use crate::frame::{Expect, Kind};
use crate::scanner::{Scanner, Sink};

impl<S: Sink> Scanner<'_, S> {
    /// Closes a parenthesis or a square bracket, unless none of that kind is innermost.
    pub(crate) fn close(&mut self, kinds: [Kind; 2]) {
        while self.top.kind.is_open_ended() {
            self.pop();
        }
        self.expect = if kinds.contains(&self.top.kind) { self.pop().then } else { Expect::After };
    }

    pub(crate) fn dot(&mut self, start: usize) -> usize {
        match self.source.get(start + 1) {
            Some(byte) if byte.is_ascii_digit() => return self.number(start),
            Some(b'.') if self.source.get(start + 2) == Some(&b'.') => {
                if self.expect != Expect::InType {
                    self.expect = Expect::Operand;
                }
                return start + 3;
            }
            _ if self.expect.is_type() => {}
            _ if self.expect.is_after_type() => self.expect = Expect::Type,
            _ => self.expect = Expect::Member,
        }
        start + 1
    }

    pub(crate) fn equals(&mut self, start: usize) -> usize {
        let is_arrow = self.source.get(start + 1) == Some(&b'>');
        self.expect = match self.expect {
            Expect::InType => Expect::InType,
            Expect::TypeParenthesis if is_arrow => Expect::Type,
            _ if is_arrow => Expect::ArrowBody,
            Expect::AliasName => Expect::Type,
            _ => Expect::Operand,
        };
        start + 1 + usize::from(is_arrow)
    }

    pub(crate) fn punctuator(&mut self, start: usize, byte: u8) -> usize {
        let next = self.source.get(start + 1).copied().unwrap_or(0);
        let mut end = start + 1;
        match byte {
            b'?' => {
                if next == b'.' && !self.source.get(start + 2).is_some_and(u8::is_ascii_digit) {
                    self.expect = Expect::Member;
                    return start + 2;
                }
                if next == b'?' {
                    self.expect = Expect::Operand;
                    return start + 2;
                }
                self.question(end);
            }
            b'+' | b'-' if next == byte => {
                end = start + 2;
                // `a++` ends an operand; `++a` starts one, also on the line after an operand.
                if !self.expect.is_after() || self.newline {
                    self.expect = Expect::Operand;
                }
            }
            b'!' if next != b'=' && self.expect.is_after() && !self.newline => {
                // TypeScript: `a!` is `a`.
            }
            b'!' if self.expect == Expect::KeyDone => {}
            b'<' if next == b'<' && !self.expect.is_type() => {
                end = start + 2;
                self.expect = Expect::Operand;
            }
            b'<' => self.less(),
            b'>' if self.top.kind == Kind::Angle
                && (self.expect.is_type() || self.expect.is_after_type()) =>
            {
                self.expect = self.pop().then;
            }
            b'|' | b'&' if next != byte && (self.expect.is_type() || self.expect.is_after_type()) => {
                if self.expect.is_after_type() {
                    self.expect = Expect::Type;
                }
            }
            b'-' if self.expect == Expect::Type => {}
            b'*' if matches!(self.expect, Expect::Key | Expect::KeyDone) => {
                self.generator_key = true;
                self.expect = Expect::Key;
            }
            b'*' if self.expect == Expect::FunctionName => self.top.flag = true,
            b'#' => return self.private_name(start),
            _ => {
                if self.expect != Expect::InType {
                    self.expect = Expect::Operand;
                }
            }
        }
        end
    }

    fn private_name(&mut self, start: usize) -> usize {
        self.expect = match self.expect {
            Expect::Key | Expect::KeyDone => Expect::KeyDone,
            _ if self.starts_member() => Expect::KeyDone,
            _ => Expect::After,
        };
        name_end(self.source, start + 1).0
    }

    pub(crate) fn open_parenthesis(&mut self) {
        let (kind, then, inside) = match self.expect {
            Expect::ControlHead => (Kind::Parenthesis, Expect::Statement, Expect::Operand),
            Expect::Type => (Kind::TypeParenthesis, Expect::TypeParenthesis, Expect::InType),
            Expect::InType | Expect::InterfaceHead => (Kind::TypeParenthesis, self.expect, Expect::InType),
            _ => (Kind::Parenthesis, Expect::After, Expect::Operand),
        };
        self.push(kind, then);
        self.expect = inside;
    }

    pub(crate) fn open_bracket(&mut self) {
        let (kind, then, inside) = match self.expect {
            Expect::Key | Expect::KeyDone => (Kind::Bracket, Expect::KeyDone, Expect::Operand),
            Expect::Type => (Kind::TypeBracket, Expect::TypeAfter, Expect::InType),
            Expect::TypeAfter | Expect::TypeParenthesis if !self.newline => {
                (Kind::TypeBracket, Expect::TypeAfter, Expect::InType)
            }
            Expect::InType | Expect::InterfaceHead => (Kind::TypeBracket, self.expect, Expect::InType),
            _ => (Kind::Bracket, Expect::After, Expect::Operand),
        };
        self.push(kind, then);
        self.expect = inside;
    }

    pub(crate) fn open_brace(&mut self) {
        let object = |then| (Kind::Object, then, Expect::Key);
        let block = |then| (Kind::Block, then, Expect::Statement);
        // The body of a function: whether of a generator.
        let mut generator = None;
        let (kind, then, inside) = match self.expect {
            Expect::Return if self.newline => block(Expect::Statement),
            Expect::Operand | Expect::New | Expect::Return | Expect::Default => object(Expect::After),
            Expect::Export | Expect::ImportHead => (Kind::Specifiers, Expect::Statement, Expect::Key),
            Expect::ArrowBody => {
                generator = Some(false);
                block(Expect::Statement)
            }
            Expect::Type => (Kind::TypeBraces, Expect::TypeAfter, Expect::InType),
            Expect::InType => (Kind::TypeBraces, Expect::InType, Expect::InType),
            Expect::InterfaceHead => (Kind::TypeBraces, Expect::Statement, Expect::InType),
            Expect::Statement => block(Expect::Statement),
            _ => match self.top.kind {
                Kind::FunctionHeader => {
                    let header = self.pop();
                    generator = Some(header.flag);
                    block(header.then)
                }
                Kind::ClassHeader => (Kind::Class, self.pop().then, Expect::Key),
                Kind::Object => {
                    generator = Some(std::mem::take(&mut self.generator_key));
                    block(Expect::After)
                }
                Kind::Class => {
                    generator = Some(std::mem::take(&mut self.generator_key));
                    block(Expect::Key)
                }
                _ => block(Expect::Statement),
            },
        };
        self.push(kind, then);
        self.expect = inside;
        if let Some(generator) = generator {
            self.top.outer_generator = Some(std::mem::replace(&mut self.generator, generator));
        }
    }

    pub(crate) fn semicolon(&mut self) {
        while matches!(self.top.kind, Kind::FunctionHeader | Kind::ClassHeader) {
            self.pop();
        }
        self.top.ternaries = 0;
        self.generator_key = false;
        self.expect = match self.top.kind {
            Kind::Class => Expect::Key,
            Kind::Parenthesis => Expect::Operand,
            Kind::TypeBraces | Kind::TypeParenthesis | Kind::TypeBracket | Kind::Angle => Expect::InType,
            _ => Expect::Statement,
        };
    }

    pub(crate) fn comma(&mut self) {
        self.expect = match self.expect {
            Expect::InType | Expect::InterfaceHead | Expect::ImportHead => return,
            _ if self.expect.is_after_type() && self.top.kind == Kind::ClassHeader => Expect::Type,
            _ if self.top.kind.has_keys() => Expect::Key,
            _ => Expect::Operand,
        };
        self.generator_key = false;
    }

    pub(crate) fn colon(&mut self) {
        self.expect = match self.expect {
            Expect::InType | Expect::InterfaceHead => return,
            Expect::FirstWord | Expect::Default => Expect::Statement,
            Expect::TypeAfter | Expect::TypeParenthesis if self.conditionals > 0 => {
                self.conditionals -= 1;
                Expect::Type
            }
            _ if self.top.ternaries > 0 => {
                self.top.ternaries -= 1;
                Expect::Operand
            }
            Expect::KeyDone if self.top.kind != Kind::Class => Expect::Operand,
            _ if self.top.kind == Kind::Block && self.top.flag => {
                self.top.flag = false;
                Expect::Statement
            }
            _ => {
                self.conditional = false;
                self.conditionals = 0;
                Expect::Type
            }
        };
    }

    /// A `?` alone: a condition, or what makes a parameter, a property or a method optional in TypeScript.
    fn question(&mut self, end: usize) {
        match self.expect {
            Expect::InType | Expect::KeyDone => {}
            Expect::TypeAfter | Expect::TypeParenthesis if self.conditional => {
                self.conditional = false;
                self.conditionals += 1;
                self.expect = Expect::Type;
            }
            _ => {
                let skipped = skip_trivia(self.source, end);
                self.sink.steps(skipped.position - end);
                if !matches!(self.source.get(skipped.position), Some(b':' | b',' | b')' | b'=' | b';')) {
                    self.top.ternaries = self.top.ternaries.saturating_add(1);
                    self.expect = Expect::Operand;
                }
            }
        }
    }

    /// `<`: a comparison, or the start of type parameters or arguments where nothing could be compared.
    fn less(&mut self) {
        let then = match self.expect {
            Expect::InType | Expect::Type | Expect::InterfaceHead | Expect::AliasName | Expect::KeyDone => {
                self.expect
            }
            Expect::TypeAfter | Expect::TypeParenthesis if !self.newline => Expect::TypeAfter,
            Expect::FunctionName | Expect::ClassName => Expect::After,
            Expect::After if matches!(self.top.kind, Kind::FunctionHeader | Kind::ClassHeader) => {
                Expect::After
            }
            _ if self.expect.takes_operand() => Expect::Operand,
            _ => {
                self.expect = Expect::Operand;
                return;
            }
        };
        self.push(Kind::Angle, then);
        self.expect = Expect::InType;
    }
}
