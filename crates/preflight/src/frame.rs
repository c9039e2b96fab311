//! What the scanner remembers: what may come next, and which brackets are open.

use crate::transition::Entry;

/// What the grammar expects at a point. It decides whether `/` divides, what `{` opens and what a word is.
/// Those up to `Default` take any expression or statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// A statement.
    Statement,
    /// The operand of an expression.
    Operand,
    /// The same right after `=`, which a `>` makes an arrow.
    Equals,
    /// The same right after `+` or `-`, of which a second one makes an operand of what was before.
    Sign,
    /// The operand of `new`.
    New,
    /// The operand of `return` or `yield`, or the end of the line.
    Return,
    /// The braces of an arrow function.
    ArrowBody,
    /// What follows an operand: an operator, a call, the end of the statement.
    After,
    /// What follows a word that began a statement: the colon of a label, too.
    FirstWord,
    /// What follows `let`, which declares something or is a name.
    Let,
    /// The parenthesis of `if`, `for`, `while` or `with`.
    ControlHead,
    /// What follows `export`.
    Export,
    /// What follows `import`.
    ImportHead,
    /// What follows `default`, of an export or a switch.
    Default,
    /// A property's name, after a dot.
    Member,
    /// A key of an object literal or a class.
    Key,
    /// What follows a key, or a modifier in front of one.
    KeyDone,
    /// The name of a function, or its parameters.
    FunctionName,
    /// The name of a class, its heritage or its body.
    ClassName,
    /// TypeScript: the name of a type alias, or its equals sign.
    AliasName,
    /// TypeScript: what stands between `interface` and its body.
    InterfaceHead,
    /// TypeScript: a type.
    Type,
    /// TypeScript: what follows a type that ended.
    TypeAfter,
    /// TypeScript: the same, when it ended with a parenthesis that may be a function type's.
    TypeParenthesis,
    /// TypeScript: anything, inside the brackets of a type.
    InType,
    /// JSX: an attribute, or the end of the tag.
    JsxAttribute,
    /// JSX: the value of an attribute.
    JsxValue,
    /// JSX: what is between two tags.
    JsxText,
}

impl Expect {
    const COUNT: usize = Self::JsxText as usize + 1;

    /// Every one, in their order.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Statement,
        Self::Operand,
        Self::Equals,
        Self::Sign,
        Self::New,
        Self::Return,
        Self::ArrowBody,
        Self::After,
        Self::FirstWord,
        Self::Let,
        Self::ControlHead,
        Self::Export,
        Self::ImportHead,
        Self::Default,
        Self::Member,
        Self::Key,
        Self::KeyDone,
        Self::FunctionName,
        Self::ClassName,
        Self::AliasName,
        Self::InterfaceHead,
        Self::Type,
        Self::TypeAfter,
        Self::TypeParenthesis,
        Self::InType,
        Self::JsxAttribute,
        Self::JsxValue,
        Self::JsxText,
    ];

    /// Whether a slash starts a regular expression here.
    pub(crate) fn takes_operand(self) -> bool {
        matches!(
            self,
            Self::Statement | Self::Operand | Self::New | Self::Return | Self::ArrowBody | Self::Default
        )
    }

    /// Whether a word here is a keyword, an operator or a variable.
    #[inline]
    pub(crate) const fn is_expression(self) -> bool {
        // Asked of every word, and one comparison by the order of the variants.
        (self as u8) <= Self::Default as u8
    }

    /// Whether an operand has just ended, as far as expressions are concerned.
    pub(crate) const fn is_after(self) -> bool {
        matches!(self, Self::After | Self::FirstWord | Self::TypeAfter | Self::TypeParenthesis)
    }

    /// Whether a type has just ended.
    pub(crate) const fn is_after_type(self) -> bool {
        matches!(self, Self::TypeAfter | Self::TypeParenthesis)
    }

    /// Whether a word here belongs to a type, whatever it is.
    pub(crate) const fn is_type(self) -> bool {
        matches!(self, Self::Type | Self::InType | Self::InterfaceHead)
    }
}

/// What an open bracket is; or what has begun and is ended by something else than a bracket of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The script itself.
    Script,
    Block,
    Object,
    /// The braces of `import {...}` and `export {...}`.
    Specifiers,
    Class,
    Parenthesis,
    /// The parameters of an async arrow function, or the arguments of a function named so.
    AsyncParenthesis,
    Bracket,
    /// `${...}` in a template.
    Substitution,
    /// A function that has begun and whose body has not.
    FunctionHeader,
    /// The same of a class.
    ClassHeader,
    /// The body of an arrow function that is an expression.
    Arrow,
    /// `{...}` in a type.
    TypeBraces,
    /// `(...)` in a type.
    TypeParenthesis,
    /// `[...]` in a type.
    TypeBracket,
    /// `<...>` of types.
    Angle,
    /// JSX: `<...>`, or the text between two of them.
    Jsx,
    /// `{...}` in JSX.
    JsxHole,
}

impl Kind {
    const ALL: [Self; Self::JsxHole as usize + 1] = [
        Self::Script,
        Self::Block,
        Self::Object,
        Self::Specifiers,
        Self::Class,
        Self::Parenthesis,
        Self::AsyncParenthesis,
        Self::Bracket,
        Self::Substitution,
        Self::FunctionHeader,
        Self::ClassHeader,
        Self::Arrow,
        Self::TypeBraces,
        Self::TypeParenthesis,
        Self::TypeBracket,
        Self::Angle,
        Self::Jsx,
        Self::JsxHole,
    ];

    /// Whether `}` closes it.
    pub(crate) const fn has_braces(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Object
                | Self::Specifiers
                | Self::Class
                | Self::Substitution
                | Self::TypeBraces
                | Self::JsxHole
        )
    }

    /// Whether it is closed by something else than a bracket of its own, so that any closing bracket ends it.
    pub(crate) const fn is_open_ended(self) -> bool {
        matches!(self, Self::FunctionHeader | Self::ClassHeader | Self::Angle | Self::Arrow)
    }
}

/// What kind of function code is in, which decides what `await` and `yield` are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Plain,
    Async,
    Generator,
    AsyncGenerator,
    /// None: the code is outside of functions.
    Outside,
}

impl Function {
    const ALL: [Self; 5] = [Self::Plain, Self::Async, Self::Generator, Self::AsyncGenerator, Self::Outside];

    pub(crate) fn is_async(self) -> bool {
        matches!(self, Self::Async | Self::AsyncGenerator)
    }

    pub(crate) fn is_generator(self) -> bool {
        matches!(self, Self::Generator | Self::AsyncGenerator)
    }

    /// The same with a star.
    pub(crate) fn generator(self) -> Self {
        if self.is_async() { Self::AsyncGenerator } else { Self::Generator }
    }
}

/// What the innermost bracket is, as far as most tokens are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Context {
    /// Anything else: what closes it must be looked at.
    Other,
    Block,
    Parenthesis,
    Bracket,
    Object,
    Class,
    /// An object or a class with the key of a method that is async or a generator.
    Method,
    FunctionHeader,
    ClassHeader,
    Angle,
    /// A comma or a new statement ends it.
    Arrow,
}

impl Context {
    /// Every one, in their order.
    pub(crate) const ALL: [Self; Self::Arrow as usize + 1] = [
        Self::Other,
        Self::Block,
        Self::Parenthesis,
        Self::Bracket,
        Self::Object,
        Self::Class,
        Self::Method,
        Self::FunctionHeader,
        Self::ClassHeader,
        Self::Angle,
        Self::Arrow,
    ];

    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Block => Self::Block,
            Kind::Parenthesis => Self::Parenthesis,
            Kind::Bracket => Self::Bracket,
            Kind::Object | Kind::Specifiers => Self::Object,
            Kind::Class => Self::Class,
            Kind::FunctionHeader => Self::FunctionHeader,
            Kind::ClassHeader => Self::ClassHeader,
            Kind::Angle => Self::Angle,
            Kind::Arrow => Self::Arrow,
            _ => Self::Other,
        }
    }
}

/// An open bracket, in eight bytes that can be moved and masked as one. From bit 11 on, 4 bits of its context and 5 each
/// of its kind and of what is expected once it is closed; then a byte each of the functions and the flags; two bytes of count.
#[derive(Clone, Copy)]
pub(crate) struct Frame(u64);

impl Frame {
    /// The bits of what is expected, the kind and the context.
    pub(crate) const FIELDS: u64 = 0x1ff_f800;
    /// The bits of what is expected.
    pub(crate) const THEN: u64 = 31 << 20;
    /// The bits of what kind of function is inside.
    pub(crate) const INSIDE: u64 = 0xff << 32;

    /// The bits of `FIELDS`.
    pub(crate) const fn fields(kind: Kind, then: Expect) -> u64 {
        (Context::of(kind) as u64) << 11 | (kind as u64) << 15 | (then as u64) << 20
    }

    pub(crate) const fn new(kind: Kind, then: Expect, inside: Function) -> Self {
        Self(Self::fields(kind, then) | (inside as u64) << 32)
    }

    /// These bits, and what the mask keeps of this.
    #[inline]
    pub(crate) const fn with(self, bits: u64, keep: u64) -> Self {
        Self(bits | self.0 & keep)
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::ALL[(self.0 >> 15 & 31) as usize]
    }

    /// Where the part for its context is in the table of transitions.
    #[inline]
    pub(crate) fn context_bits(self) -> u32 {
        self.0 as u32 & 15 << 11
    }

    /// The row of what is expected once it is closed.
    #[inline]
    pub(crate) fn then_bits(self) -> u32 {
        (self.0 >> 15) as u32 & 31 << 5
    }

    /// What is expected once it is closed.
    pub(crate) fn then(self) -> Expect {
        Expect::ALL[(self.0 >> 20 & 31) as usize]
    }

    /// What kind of function is inside.
    pub(crate) fn inside(self) -> Function {
        Function::ALL[(self.0 >> 32 & 7) as usize]
    }

    pub(crate) fn set_inside(&mut self, function: Function) {
        self.set(32, 0xff, function as u64);
    }

    /// An object or class: what the method is whose key was read.
    pub(crate) fn method(self) -> Function {
        Function::ALL[(self.0 >> 40 & 7) as usize]
    }

    pub(crate) fn set_method(&mut self, function: Function) {
        self.set(40, 0xff, function as u64);
        let context = if function == Function::Plain { Context::of(self.kind()) } else { Context::Method };
        self.set(11, 15, context as u64);
    }

    /// A block: whether a `case` awaits its colon.
    pub(crate) fn awaits_case(self) -> bool {
        self.0 >> 26 & 1 == 1
    }

    pub(crate) fn set_awaits_case(&mut self, awaits: bool) {
        self.set(26, 1, u64::from(awaits));
    }

    /// Whether an `async` was read whose arrow was not.
    pub(crate) fn awaits_arrow(self) -> bool {
        self.0 >> 27 & 1 == 1
    }

    pub(crate) fn set_awaits_arrow(&mut self, awaits: bool) {
        self.set(27, 1, u64::from(awaits));
    }

    /// How many `?` await their colon.
    pub(crate) fn ternaries(self) -> u16 {
        (self.0 >> 48) as u16
    }

    pub(crate) fn set_ternaries(&mut self, count: u16) {
        self.set(48, 0xffff, u64::from(count));
    }

    fn set(&mut self, shift: u32, mask: u64, value: u64) {
        self.0 = self.0 & !(mask << shift) | value << shift;
    }
}

/// Where a scan stands: all that most tokens change.
#[derive(Clone, Copy)]
pub(crate) struct State {
    /// The innermost bracket.
    pub(crate) top: Frame,
    /// How many brackets are around it.
    pub(crate) depth: usize,
    /// The row of the table: what is expected, and whether a line ended since the last token.
    pub(crate) row: u32,
}

impl State {
    pub(crate) fn expect(self) -> Expect {
        Expect::ALL[(self.row >> 5 & 31) as usize]
    }

    pub(crate) fn newline(self) -> bool {
        self.row >> 10 & 1 == 1
    }
}

/// The open brackets. There is always one around the innermost.
pub(crate) struct Stack {
    frames: Vec<Frame>,
    /// How many are around the innermost one.
    pub(crate) depth: usize,
    /// The innermost one.
    pub(crate) top: Frame,
}

impl Stack {
    pub(crate) fn new() -> Self {
        let script = Frame::new(Kind::Script, Expect::Statement, Function::Outside);
        Self { frames: vec![script; 32], depth: 1, top: script }
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        let outer = std::mem::replace(&mut self.top, frame);
        match self.frames.get_mut(self.depth) {
            Some(free) => *free = outer,
            None => self.frames.push(outer),
        }
        self.depth += 1;
    }

    /// The bracket around the innermost one.
    pub(crate) fn outer(&self) -> Frame {
        self.frames[self.depth - 1]
    }

    /// Opens or closes a bracket in a state that is not that of the stack itself.
    #[inline]
    pub(crate) fn apply(&mut self, entry: Entry, state: &mut State) {
        if entry.pops() {
            state.row = state.top.then_bits();
            state.depth -= 1;
            state.top = self.frames[state.depth];
            return;
        }
        if entry.pushes() {
            match self.frames.get_mut(state.depth) {
                Some(free) => *free = state.top,
                None => self.frames.push(state.top),
            }
            state.depth += 1;
        }
        state.row = entry.row_bits();
        state.top = entry.frame(state.top);
    }

    /// Closes the innermost bracket; the script itself stays.
    pub(crate) fn pop(&mut self) -> Frame {
        let closed = self.top;
        if self.depth > 1 {
            self.depth -= 1;
            self.top = self.frames[self.depth];
        }
        closed
    }
}
