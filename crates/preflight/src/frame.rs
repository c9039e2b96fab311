//! What the scanner remembers of an open bracket, and where it stands: what may come next, and in which bracket.

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
    /// Any with the key of a method that is async or a generator.
    Method,
}

impl Kind {
    /// Every one, in their order.
    pub(crate) const ALL: [Self; Self::Method as usize + 1] = [
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
        Self::Method,
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

/// Where a scan stands, as far as the table of transitions is concerned: what the innermost bracket is, what is expected,
/// and whether a line ended since the last token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// How many there are.
    pub(crate) const COUNT: usize = Kind::ALL.len() << 6;

    pub(crate) const fn new(kind: Kind, expect: Expect, newline: bool) -> Self {
        Self((kind as u32) << 6 | (newline as u32) << 5 | expect as u32)
    }

    /// From the eleven bits of one.
    #[inline]
    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits as u32)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u16 {
        self.0 as u16
    }

    /// The place as an index.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn kind(self) -> Kind {
        Kind::ALL[(self.0 >> 6) as usize]
    }

    pub(crate) const fn newline(self) -> bool {
        self.0 >> 5 & 1 == 1
    }

    pub(crate) const fn expect(self) -> Expect {
        Expect::ALL[(self.0 & 31) as usize]
    }
}

/// What is remembered of an open bracket, in eight bytes that can be moved and masked as one.
///
/// The more brackets and bodies something outlives, the higher its bits: a shift says what stays. From the lowest bit on, what
/// awaits a `case` or an `async`, what has the key of which method, and how many `?` await a colon; from `CLOSED` on, the place
/// where a scan stands once the bracket is closed; from `INSIDE` on, what kind of function is inside.
#[derive(Clone, Copy)]
pub(crate) struct Frame(u64);

impl Frame {
    pub(crate) const CLOSED: u32 = 32;
    pub(crate) const INSIDE: u32 = 44;
    const METHOD: u32 = 2;
    const METHOD_OF: u32 = 5;
    const TERNARIES: u32 = 10;

    pub(crate) const fn new(closed: Place, inside: Function) -> Self {
        Self((closed.0 as u64) << Self::CLOSED | (inside as u64) << Self::INSIDE)
    }

    /// What is above so many bits of this, and a place where a scan stands once it is closed.
    #[inline]
    pub(crate) const fn with(self, closed: Place, lost: u32) -> Self {
        Self((closed.0 as u64) << Self::CLOSED | self.0 & u64::MAX << lost)
    }

    /// Where a scan stands once it is closed.
    #[inline]
    pub(crate) const fn closed(self) -> Place {
        Place::from_bits((self.0 >> Self::CLOSED & 0x7ff) as u16)
    }

    /// What is expected once it is closed.
    pub(crate) fn then(self) -> Expect {
        self.closed().expect()
    }

    /// What kind of function is inside.
    pub(crate) fn inside(self) -> Function {
        Function::ALL[(self.0 >> Self::INSIDE & 7) as usize]
    }

    pub(crate) fn set_inside(&mut self, function: Function) {
        self.set(Self::INSIDE, 7, function as u64);
    }

    /// An object or class: what the method is whose key was read.
    pub(crate) fn method(self) -> Function {
        Function::ALL[(self.0 >> Self::METHOD & 7) as usize]
    }

    pub(crate) fn set_method(&mut self, function: Function, kind: Kind) {
        self.set(Self::METHOD, 7, function as u64);
        self.set(Self::METHOD_OF, 31, kind as u64);
    }

    /// What has the key of a method.
    pub(crate) fn method_of(self) -> Kind {
        Kind::ALL[(self.0 >> Self::METHOD_OF & 31) as usize]
    }

    /// A block: whether a `case` awaits its colon.
    pub(crate) fn awaits_case(self) -> bool {
        self.0 & 1 == 1
    }

    pub(crate) fn set_awaits_case(&mut self, awaits: bool) {
        self.set(0, 1, u64::from(awaits));
    }

    /// Whether an `async` was read whose arrow was not.
    pub(crate) fn awaits_arrow(self) -> bool {
        self.0 >> 1 & 1 == 1
    }

    pub(crate) fn set_awaits_arrow(&mut self, awaits: bool) {
        self.set(1, 1, u64::from(awaits));
    }

    /// How many `?` await their colon.
    pub(crate) fn ternaries(self) -> u16 {
        (self.0 >> Self::TERNARIES) as u16
    }

    pub(crate) fn set_ternaries(&mut self, count: u16) {
        self.set(Self::TERNARIES, 0xffff, u64::from(count));
    }

    fn set(&mut self, shift: u32, mask: u64, value: u64) {
        self.0 = self.0 & !(mask << shift) | value << shift;
    }
}
