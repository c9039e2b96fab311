//! What the scanner remembers: what may come next, and which brackets are open.

/// What the grammar expects at a point. It decides whether `/` divides, what `{` opens and what a word is.
/// Those up to `Default` take any expression or statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// A statement.
    Statement,
    /// The operand of an expression.
    Operand,
    /// The operand of `new`.
    New,
    /// The operand of `return` or `yield`, or the end of the line.
    Return,
    /// The body of an arrow function.
    ArrowBody,
    /// What follows an operand: an operator, a call, the end of the statement.
    After,
    /// What follows a word that began a statement: the colon of a label, too.
    FirstWord,
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
}

impl Expect {
    /// Whether a slash starts a regular expression here.
    pub(crate) fn takes_operand(self) -> bool {
        matches!(
            self,
            Self::Statement | Self::Operand | Self::New | Self::Return | Self::ArrowBody | Self::Default
        )
    }

    /// Whether a word here is a keyword, an operator or a variable.
    #[inline]
    pub(crate) fn is_expression(self) -> bool {
        // Asked of every word, and one comparison by the order of the variants.
        (self as u8) <= Self::Default as u8
    }

    /// Whether an operand has just ended, as far as expressions are concerned.
    pub(crate) fn is_after(self) -> bool {
        matches!(self, Self::After | Self::FirstWord | Self::TypeAfter | Self::TypeParenthesis)
    }

    /// Whether a type has just ended.
    pub(crate) fn is_after_type(self) -> bool {
        matches!(self, Self::TypeAfter | Self::TypeParenthesis)
    }

    /// Whether a word here belongs to a type, whatever it is.
    pub(crate) fn is_type(self) -> bool {
        matches!(self, Self::Type | Self::InType | Self::InterfaceHead)
    }
}

/// What an open bracket is; or a function or class that has begun and whose body has not.
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
    Bracket,
    /// `${...}` in a template.
    Substitution,
    FunctionHeader,
    ClassHeader,
    /// `{...}` in a type.
    TypeBraces,
    /// `(...)` in a type.
    TypeParenthesis,
    /// `[...]` in a type.
    TypeBracket,
    /// `<...>` of types.
    Angle,
}

impl Kind {
    /// Whether `}` closes it.
    pub(crate) fn has_braces(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Object
                | Self::Specifiers
                | Self::Class
                | Self::Substitution
                | Self::TypeBraces
        )
    }

    /// Whether it is closed by something else than a bracket of its own, so that any closing bracket ends it.
    pub(crate) fn is_open_ended(self) -> bool {
        matches!(self, Self::FunctionHeader | Self::ClassHeader | Self::Angle)
    }

    /// Whether its keys are names and no references.
    pub(crate) fn has_keys(self) -> bool {
        matches!(self, Self::Object | Self::Specifiers | Self::Class)
    }
}

/// An open bracket, in eight bytes at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// What is expected once it is closed.
    pub(crate) then: Expect,
    /// The body of a function: whether `yield` is an operator outside of it.
    pub(crate) outer_generator: Option<bool>,
    /// A function's header: whether `yield` is an operator in its body. A block: whether a `case` awaits its colon.
    pub(crate) flag: bool,
    /// How many `?` await their colon.
    pub(crate) ternaries: u16,
}

impl Frame {
    pub(crate) fn new(kind: Kind, then: Expect) -> Self {
        Self { kind, then, outer_generator: None, flag: false, ternaries: 0 }
    }
}
