//! What punctuators open, close and let follow, where the table of transitions does not say.

use crate::characters::name_end;
use crate::class::Class;
use crate::frame::{Expect, Function, Kind};
use crate::keyword::Keyword;
use crate::scanner::{Scanner, Sink};

impl<S: Sink> Scanner<'_, S> {
    /// Closes a parenthesis or a square bracket, unless none of that kind is innermost.
    pub(crate) fn close(&mut self, kinds: &[Kind]) {
        while self.kind().is_open_ended() {
            self.pop();
        }
        let kind = self.kind();
        self.expect = if kinds.contains(&kind) { self.pop().then() } else { Expect::After };
    }

    pub(crate) fn close_parenthesis(&mut self, start: usize) -> usize {
        while self.kind().is_open_ended() {
            self.pop();
        }
        let is_async = self.kind() == Kind::AsyncParenthesis;
        self.close(&[Kind::Parenthesis, Kind::AsyncParenthesis, Kind::TypeParenthesis]);
        if is_async && matches!(self.follows(start + 1), b'=' | b':') {
            // No call of a function of that name.
            self.stack.top.set_awaits_arrow(true);
        }
        start + 1
    }

    /// Closes the arrow functions that end in front of a token of this class.
    pub(crate) fn end_arrows(&mut self, start: usize, class: Class) {
        let begins = self.newline && self.expect.is_after();
        while self.kind() == Kind::Arrow {
            let ends = match class {
                Class::Comma | Class::Semicolon => true,
                Class::Colon => {
                    self.top().ternaries() == 0 && !(self.expect.is_after_type() && self.conditionals > 0)
                }
                Class::Word => {
                    let word = &self.source[start..name_end(self.source, start).0];
                    begins
                        && !matches!(
                            Keyword::of(word),
                            Keyword::In | Keyword::Instanceof | Keyword::As | Keyword::Satisfies
                        )
                }
                Class::Digit | Class::OpenBrace => begins,
                _ => begins && matches!(self.source[start], b'"' | b'\'' | b'#' | b'\\' | 0x80..),
            };
            if !ends {
                return;
            }
            self.pop();
        }
    }

    /// A point where a number may start or that is one of three.
    pub(crate) fn dot(&mut self, start: usize) -> usize {
        if self.expect == Expect::Member {
            // The second: of three, or after a number such as `1.`.
            if self.source.get(start + 1) == Some(&b'.') {
                self.expect = Expect::Operand;
                return start + 2;
            }
            return start + 1;
        }
        match self.source.get(start + 1) {
            Some(byte) if byte.is_ascii_digit() => {
                self.literal();
                crate::literal::number_end(self.source, start)
            }
            Some(b'.') if self.source.get(start + 2) == Some(&b'.') => {
                self.expect = Expect::Operand;
                start + 3
            }
            _ => {
                self.expect = Expect::Member;
                start + 1
            }
        }
    }

    /// An equals sign after or in a type.
    pub(crate) fn equals(&mut self, start: usize) -> usize {
        let is_arrow = self.source.get(start + 1) == Some(&b'>');
        if self.expect != Expect::InType {
            self.expect = if is_arrow { Expect::Type } else { Expect::Operand };
        }
        start + 1 + usize::from(is_arrow)
    }

    /// The end of an arrow or of types.
    pub(crate) fn greater(&mut self, start: usize) -> usize {
        if self.expect == Expect::Equals {
            return self.arrow(start + 1);
        }
        self.expect = self.pop().then();
        start + 1
    }

    /// What follows an arrow is the body of a function, in braces or an expression.
    fn arrow(&mut self, start: usize) -> usize {
        let is_async = self.top().awaits_arrow();
        self.stack.top.set_awaits_arrow(false);
        let function = if is_async { Function::Async } else { Function::Plain };
        let end = self.trivia(start);
        if self.source.get(end) == Some(&b'{') {
            self.push_function(Kind::Block, Expect::Statement, function);
            self.expect = Expect::Statement;
            return end + 1;
        }
        self.expect = Expect::Operand;
        if function != self.top().inside() {
            self.push_function(Kind::Arrow, Expect::After, function);
        }
        end
    }

    /// A bar or an ampersand in or after a type.
    pub(crate) fn bar_ampersand(&mut self, start: usize) -> usize {
        if self.source.get(start + 1) == Some(&self.source[start]) {
            if self.expect != Expect::InType {
                self.expect = Expect::Operand;
            }
            return start + 2;
        }
        if self.expect.is_after_type() {
            self.expect = Expect::Type;
        }
        start + 1
    }

    /// A star in front of a generator's name.
    pub(crate) fn star(&mut self, start: usize) -> usize {
        if self.expect == Expect::FunctionName {
            let function = self.top().inside().generator();
            self.stack.top.set_inside(function);
        } else {
            let method = self.top().method().generator();
            self.stack.set_method(method);
            self.expect = Expect::Key;
        }
        start + 1
    }

    /// A sign at the start of a line, in a type, or after another one; that was `follows`.
    pub(crate) fn sign(&mut self, start: usize, follows: bool) -> usize {
        let byte = self.source[start];
        if follows && start > 0 && self.source[start - 1] == byte {
            // `a++` ends an operand.
            self.expect = Expect::After;
            return start + 1;
        }
        let is_double = self.source.get(start + 1) == Some(&byte);
        let stays = self.expect == Expect::InType || (self.expect == Expect::Type && byte == b'-');
        if is_double || !stays {
            // `++a` starts an operand, also on the line after one.
            self.expect = Expect::Operand;
        }
        start + 1 + usize::from(is_double)
    }

    pub(crate) fn private_name(&mut self, start: usize) -> usize {
        self.expect = match self.expect {
            Expect::Key | Expect::KeyDone => Expect::KeyDone,
            _ if self.starts_member() => Expect::KeyDone,
            _ => Expect::After,
        };
        name_end(self.source, start + 1).0
    }

    /// A parenthesis of a type, or of the parameters of a method that is async or a generator.
    pub(crate) fn open_parenthesis(&mut self, start: usize) -> usize {
        let (kind, then, inside) = match self.expect {
            Expect::Type => (Kind::TypeParenthesis, Expect::TypeParenthesis, Expect::InType),
            Expect::InType | Expect::InterfaceHead => (Kind::TypeParenthesis, self.expect, Expect::InType),
            _ => (Kind::Parenthesis, Expect::After, Expect::Operand),
        };
        let method = self.top().method();
        if method == Function::Plain {
            self.push(kind, then);
        } else {
            self.push_function(kind, then, method);
        }
        self.expect = inside;
        start + 1
    }

    /// A bracket of a type or of a class.
    pub(crate) fn open_bracket(&mut self, start: usize) -> usize {
        let (kind, then, inside) = match self.expect {
            Expect::Key | Expect::KeyDone => (Kind::Bracket, Expect::KeyDone, Expect::Operand),
            Expect::Type => (Kind::TypeBracket, Expect::TypeAfter, Expect::InType),
            Expect::TypeAfter | Expect::TypeParenthesis if !self.newline => {
                (Kind::TypeBracket, Expect::TypeAfter, Expect::InType)
            }
            Expect::InType | Expect::InterfaceHead => (Kind::TypeBracket, self.expect, Expect::InType),
            _ => (Kind::Bracket, Expect::After, Expect::Operand),
        };
        if then == Expect::KeyDone && self.kind() == Kind::Class {
            // A computed key belongs to what is around the class.
            let outer = self.stack.outer().inside();
            self.push_function(kind, then, outer);
        } else {
            self.push(kind, then);
        }
        self.expect = inside;
        start + 1
    }

    /// A brace of a type, a class, a list of names, or a body after a type.
    pub(crate) fn open_brace(&mut self, start: usize) -> usize {
        let block = |then| (Kind::Block, then, Expect::Statement);
        // What kind of function the inside is in, if in another.
        let mut function = None;
        let (kind, then, inside) = match self.expect {
            Expect::Export | Expect::ImportHead => (Kind::Specifiers, Expect::Statement, Expect::Key),
            Expect::Type => (Kind::TypeBraces, Expect::TypeAfter, Expect::InType),
            Expect::InType => (Kind::TypeBraces, Expect::InType, Expect::InType),
            Expect::InterfaceHead => (Kind::TypeBraces, Expect::Statement, Expect::InType),
            _ => match self.kind() {
                Kind::FunctionHeader => {
                    let header = self.pop();
                    function = Some(header.inside());
                    block(header.then())
                }
                Kind::ClassHeader => {
                    function = Some(Function::Plain);
                    (Kind::Class, self.pop().then(), Expect::Key)
                }
                kind @ (Kind::Object | Kind::Class) => {
                    function = Some(self.top().method());
                    self.stack.set_method(Function::Plain);
                    block(if kind == Kind::Object { Expect::After } else { Expect::Key })
                }
                _ => block(Expect::Statement),
            },
        };
        match function {
            Some(function) => self.push_function(kind, then, function),
            None => self.push(kind, then),
        }
        self.expect = inside;
        start + 1
    }

    /// A comma after the key of a method that has no body.
    pub(crate) fn comma(&mut self, start: usize) -> usize {
        self.stack.set_method(Function::Plain);
        self.expect = Expect::Key;
        start + 1
    }

    /// A semicolon in a class, a type or the script itself, or in place of a body.
    pub(crate) fn semicolon(&mut self, start: usize) -> usize {
        while matches!(self.kind(), Kind::FunctionHeader | Kind::ClassHeader) {
            self.pop();
        }
        self.stack.top.set_ternaries(0);
        self.stack.top.set_awaits_arrow(false);
        self.expect = match self.kind() {
            Kind::Class => {
                self.stack.set_method(Function::Plain);
                Expect::Key
            }
            Kind::Parenthesis | Kind::AsyncParenthesis => Expect::Operand,
            Kind::TypeBraces | Kind::TypeParenthesis | Kind::TypeBracket | Kind::Angle => Expect::InType,
            _ => Expect::Statement,
        };
        start + 1
    }

    pub(crate) fn colon(&mut self, start: usize) -> usize {
        self.expect = match self.expect {
            Expect::FirstWord | Expect::Default => Expect::Statement,
            Expect::TypeAfter | Expect::TypeParenthesis if self.conditionals > 0 => {
                self.conditionals -= 1;
                Expect::Type
            }
            _ if self.top().ternaries() > 0 => {
                let count = self.top().ternaries() - 1;
                self.stack.top.set_ternaries(count);
                Expect::Operand
            }
            Expect::KeyDone if self.kind() != Kind::Class => Expect::Operand,
            _ if self.top().awaits_case() => {
                self.stack.top.set_awaits_case(false);
                Expect::Statement
            }
            _ => {
                self.conditional = false;
                self.conditionals = 0;
                Expect::Type
            }
        };
        start + 1
    }

    /// A condition, an optional chain, or what makes a parameter, a property or a method optional in TypeScript.
    pub(crate) fn question(&mut self, start: usize) -> usize {
        match self.source.get(start + 1) {
            Some(b'.') if !self.source.get(start + 2).is_some_and(u8::is_ascii_digit) => {
                self.expect = Expect::Member;
                return start + 2;
            }
            Some(b'?') => {
                self.expect = Expect::Operand;
                return start + 2;
            }
            _ => {}
        }
        match self.expect {
            Expect::InType | Expect::KeyDone => {}
            Expect::TypeAfter | Expect::TypeParenthesis if self.conditional => {
                self.conditional = false;
                self.conditionals += 1;
                self.expect = Expect::Type;
            }
            _ => {
                if !matches!(self.follows(start + 1), b':' | b',' | b')' | b'=' | b';') {
                    let count = self.top().ternaries().saturating_add(1);
                    self.stack.top.set_ternaries(count);
                    self.expect = Expect::Operand;
                }
            }
        }
        start + 1
    }

    /// `<`: a comparison, an element of JSX, or the start of type parameters or arguments.
    pub(crate) fn less(&mut self, start: usize) -> usize {
        if self.source.get(start + 1) == Some(&b'<') && !self.expect.is_type() {
            self.expect = Expect::Operand;
            return start + 2;
        }
        let then = match self.expect {
            Expect::InType | Expect::Type | Expect::InterfaceHead | Expect::AliasName | Expect::KeyDone => {
                self.expect
            }
            Expect::TypeAfter | Expect::TypeParenthesis if !self.newline => Expect::TypeAfter,
            Expect::FunctionName | Expect::ClassName => Expect::After,
            Expect::After if matches!(self.kind(), Kind::FunctionHeader | Kind::ClassHeader) => Expect::After,
            _ if self.expect.takes_operand() => {
                if self.starts_element(start) {
                    return self.element(start, Expect::After);
                }
                Expect::Operand
            }
            _ => {
                self.expect = Expect::Operand;
                return start + 1;
            }
        };
        self.push(Kind::Angle, then);
        self.expect = Expect::InType;
        start + 1
    }
}
