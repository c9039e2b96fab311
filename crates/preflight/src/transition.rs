//! What most tokens do: a table, so that the scanner need not branch on what cannot be predicted.

use crate::class::Class;
use crate::frame::{Context, Expect, Frame, Kind, State};

/// What a token does: what is expected then, and what it opens or closes.
///
/// The lowest eleven bits are the [`row`] of what is expected; then come the [`Frame::FIELDS`] of what is opened, and what is
/// done to the stack.
#[derive(Clone, Copy)]
pub(crate) struct Entry(u32);

impl Entry {
    /// Two bits that say what of the innermost frame stays: all, what functions it is in, nothing, or what its header said.
    const KEEPS: u32 = 25;
    const PUSHES: u32 = 1 << 27;
    const POPS: u32 = 1 << 28;
    /// It must be looked at.
    const LOOK: Self = Self(1 << 31);

    const fn to(expect: Expect) -> Self {
        Self(row(expect, false))
    }

    /// Opens a bracket in the same function.
    const fn push(expect: Expect, kind: Kind, then: Expect) -> Self {
        Self(row(expect, false) | Frame::fields(kind, then) as u32 | 1 << Self::KEEPS | Self::PUSHES)
    }

    /// Opens one in a plain function of its own.
    const fn push_function(expect: Expect, kind: Kind, then: Expect) -> Self {
        Self(row(expect, false) | Frame::fields(kind, then) as u32 | 2 << Self::KEEPS | Self::PUSHES)
    }

    /// Makes a function's header its body.
    const fn begin_body() -> Self {
        let fields = Frame::fields(Kind::Block, Expect::Statement) & !Frame::THEN;
        Self(row(Expect::Statement, false) | fields as u32 | 3 << Self::KEEPS)
    }

    /// The row of what is expected, if that is all that changes.
    #[inline]
    pub(crate) fn row(self) -> Option<u32> {
        (self.0 < (ROWS * CLASSES) as u32).then_some(self.0)
    }

    #[inline]
    pub(crate) fn must_look(self) -> bool {
        self.0 & Self::LOOK.0 != 0
    }

    #[inline]
    pub(crate) fn pops(self) -> bool {
        self.0 & Self::POPS != 0
    }

    #[inline]
    pub(crate) fn pushes(self) -> bool {
        self.0 & Self::PUSHES != 0
    }

    /// The row of what is expected inside of what it opens.
    #[inline]
    pub(crate) fn row_bits(self) -> u32 {
        self.0 & (ROWS * CLASSES - 1) as u32
    }

    /// The innermost frame then, unless it closes one.
    #[inline]
    pub(crate) fn frame(self, top: Frame) -> Frame {
        const KEEP: [u64; 4] = [u64::MAX, Frame::INSIDE, 0, Frame::INSIDE | Frame::THEN];
        let keep = KEEP[(self.0 >> Self::KEEPS & 3) as usize];
        top.with(u64::from(self.0) & Frame::FIELDS, keep)
    }
}

const CLASSES: usize = 32;
/// Of what is expected, and whether a line ended in front of the token.
const ROWS: usize = 64;

/// By context, row and class.
type Table = [Entry; 16 * ROWS * CLASSES];

#[allow(long_running_const_eval, reason = "it is a large table and not an endless loop")]
static TABLE: Table = {
    let mut table = [Entry::LOOK; _];
    let mut context = 0;
    while context < Context::ALL.len() {
        let mut expect = 0;
        while expect < Expect::ALL.len() {
            let mut class = 0;
            while class < Class::COUNT {
                let (at, before, token) = (Context::ALL[context], Expect::ALL[expect], Class::ALL[class]);
                let first = context * ROWS * CLASSES + class;
                table[first + row(before, false) as usize] = entry(at, false, before, token);
                table[first + row(before, true) as usize] = entry(at, true, before, token);
                class += 1;
            }
            expect += 1;
        }
        context += 1;
    }
    table
};

/// What a token does.
#[inline]
pub(crate) fn transition(state: State, class: u8) -> Entry {
    // Only the row waits for the token before.
    let place = state.top.context_bits() | (u32::from(class) % CLASSES as u32);
    TABLE[(place | state.row) as usize % TABLE.len()]
}

/// The row of what is expected: where it is in the part of the table for a context.
pub(crate) const fn row(expect: Expect, newline: bool) -> u32 {
    (expect as u32) << 5 | (newline as u32) << 10
}

const fn entry(context: Context, newline: bool, expect: Expect, class: Class) -> Entry {
    use Expect::{After, Key, Member, Operand};
    if matches!(class, Class::Newline) {
        return Entry(row(expect, true));
    }
    if matches!(expect, Expect::JsxAttribute | Expect::JsxValue | Expect::JsxText) {
        return Entry::LOOK;
    }
    let is_after = expect.is_after();
    match class {
        Class::Word => word(context, newline, expect),
        Class::In
        | Class::Prefix
        | Class::Return
        | Class::New
        | Class::Control
        | Class::Statement
        | Class::Function
        | Class::Let => keyword(context, newline, expect, class),
        Class::Digit => match expect {
            Key | Expect::KeyDone => Entry::LOOK,
            Expect::InType => Entry::to(Expect::InType),
            Expect::Type => Entry::to(Expect::TypeAfter),
            _ if is_after && newline && matches!(context, Context::Arrow) => Entry::LOOK,
            _ if is_after && matches!(context, Context::Class | Context::Method) => Entry::LOOK,
            _ => Entry::to(After),
        },
        Class::Comma => match (expect, context) {
            (_, Context::Arrow) => Entry::LOOK,
            (Expect::InType | Expect::InterfaceHead | Expect::ImportHead, _) => Entry::to(expect),
            (_, Context::ClassHeader) if expect.is_after_type() => Entry::to(Expect::Type),
            (_, Context::Object | Context::Class) => Entry::to(Key),
            (_, Context::Method) => Entry::LOOK,
            _ => Entry::to(Operand),
        },
        Class::Semicolon => match context {
            Context::Block => Entry::to(Expect::Statement),
            Context::Parenthesis => Entry::to(Operand),
            _ => Entry::LOOK,
        },
        Class::Colon => match (expect, context) {
            (Expect::InType | Expect::InterfaceHead, _) => Entry::to(expect),
            (Expect::KeyDone, Context::Object) => Entry::to(Operand),
            _ => Entry::LOOK,
        },
        Class::Dot => match expect {
            Expect::Type | Expect::InType | Expect::InterfaceHead => Entry::to(expect),
            Expect::TypeAfter | Expect::TypeParenthesis => Entry::to(Expect::Type),
            // A number may start with it, or it is one of three.
            Member | Key | Expect::KeyDone => Entry::LOOK,
            _ => Entry::to(Member),
        },
        Class::Equals => match expect {
            Expect::InType | Expect::TypeParenthesis => Entry::LOOK,
            Expect::AliasName => Entry::to(Expect::Type),
            _ => Entry::to(Expect::Equals),
        },
        Class::Greater => match (expect, context) {
            (Expect::Equals, _) => Entry::LOOK,
            (_, Context::Angle) if expect.is_type() || expect.is_after_type() => Entry::LOOK,
            _ => operator(expect),
        },
        Class::BarAmpersand if expect.is_type() || expect.is_after_type() => Entry::LOOK,
        Class::Star if matches!(expect, Key | Expect::KeyDone | Expect::FunctionName) => Entry::LOOK,
        // TypeScript: `a!` is `a`, and so is a key. The equals sign of `a != b` makes it an operator.
        Class::Bang if (is_after && !newline) || matches!(expect, Expect::KeyDone) => Entry::to(expect),
        // It may be one of two, or of a comment `-->`.
        Class::Sign if newline || matches!(expect, Expect::Sign | Expect::Type) => Entry::LOOK,
        Class::Sign if is_after => Entry::to(Expect::Sign),
        Class::Sign | Class::Operator | Class::BarAmpersand | Class::Star | Class::Bang => operator(expect),
        Class::OpenParenthesis | Class::OpenBracket | Class::OpenBrace => {
            open(context, newline, expect, class)
        }
        Class::CloseParenthesis if matches!(context, Context::Parenthesis) => Entry(Entry::POPS),
        Class::CloseBracket if matches!(context, Context::Bracket) => Entry(Entry::POPS),
        Class::CloseBrace if matches!(context, Context::Block | Context::Object | Context::Class) => {
            Entry(Entry::POPS)
        }
        _ => Entry::LOOK,
    }
}

const fn operator(expect: Expect) -> Entry {
    Entry::to(match expect {
        Expect::InType => Expect::InType,
        _ => Expect::Operand,
    })
}

/// A word that is no keyword.
const fn word(context: Context, newline: bool, expect: Expect) -> Entry {
    Entry::to(match expect {
        Expect::Key | Expect::KeyDone => Expect::KeyDone,
        Expect::AliasName | Expect::InType | Expect::InterfaceHead | Expect::ImportHead => expect,
        Expect::Type => Expect::TypeAfter,
        Expect::Statement => Expect::FirstWord,
        Expect::Let => Expect::After,
        _ if expect.is_after() && matches!(context, Context::Class | Context::Method) => Expect::KeyDone,
        _ if expect.is_after() && newline => {
            if matches!(context, Context::Arrow) {
                return Entry::LOOK;
            }
            Expect::FirstWord
        }
        _ => Expect::After,
    })
}

const fn keyword(context: Context, newline: bool, expect: Expect, class: Class) -> Entry {
    let is_after = expect.is_after();
    if is_after && matches!(class, Class::In) {
        return Entry::to(Expect::Operand);
    }
    match expect {
        Expect::Type | Expect::TypeAfter | Expect::TypeParenthesis => return Entry::LOOK,
        Expect::Let => {}
        _ if !expect.is_expression() => return word(context, newline, expect),
        _ if is_after && matches!(context, Context::Class | Context::Method) => {
            return word(context, newline, expect);
        }
        _ if is_after && newline && matches!(context, Context::Arrow) => return Entry::LOOK,
        _ => {}
    }
    Entry::to(match class {
        Class::Prefix => Expect::Operand,
        Class::Return => Expect::Return,
        Class::New => Expect::New,
        Class::Control => Expect::ControlHead,
        Class::Statement => Expect::Statement,
        Class::Let => Expect::Let,
        Class::Function => {
            if is_after && matches!(context, Context::FunctionHeader) {
                return Entry::LOOK;
            }
            let then = body_then(newline, expect);
            return Entry::push_function(Expect::FunctionName, Kind::FunctionHeader, then);
        }
        _ => return word(context, newline, expect),
    })
}

/// What is expected after a function or a class: where it is an expression, a value ends with its body.
pub(crate) const fn body_then(newline: bool, before: Expect) -> Expect {
    let is_declaration = before.is_after()
        || matches!(before, Expect::Statement | Expect::Export | Expect::Default)
        || (matches!(before, Expect::Return) && newline);
    if is_declaration { Expect::Statement } else { Expect::After }
}

const fn open(context: Context, newline: bool, expect: Expect, class: Class) -> Entry {
    use Expect::{After, Operand, Statement};
    match (class, expect) {
        (
            _,
            Expect::Type
            | Expect::TypeAfter
            | Expect::TypeParenthesis
            | Expect::InType
            | Expect::InterfaceHead,
        ) => Entry::LOOK,
        (Class::OpenParenthesis, Expect::ControlHead) => Entry::push(Operand, Kind::Parenthesis, Statement),
        (Class::OpenParenthesis, Expect::KeyDone) => match context {
            // The parameters of a method belong to it.
            Context::Object | Context::Class => Entry::push_function(Operand, Kind::Parenthesis, After),
            _ => Entry::LOOK,
        },
        (Class::OpenParenthesis, _) => Entry::push(Operand, Kind::Parenthesis, After),
        (Class::OpenBracket, Expect::Key | Expect::KeyDone) => match context {
            Context::Object => Entry::push(Operand, Kind::Bracket, Expect::KeyDone),
            _ => Entry::LOOK,
        },
        (Class::OpenBracket, _) => Entry::push(Operand, Kind::Bracket, After),
        (_, Expect::Return) if newline => Entry::push(Statement, Kind::Block, Statement),
        (
            _,
            Operand
            | Expect::Equals
            | Expect::Sign
            | Expect::New
            | Expect::Return
            | Expect::Default
            | Expect::Let,
        ) => Entry::push(Expect::Key, Kind::Object, After),
        (_, Statement) => Entry::push(Statement, Kind::Block, Statement),
        (_, Expect::After | Expect::FunctionName) if matches!(context, Context::FunctionHeader) => {
            Entry::begin_body()
        }
        (_, Expect::After | Expect::FirstWord)
            if matches!(context, Context::Block | Context::Parenthesis | Context::Bracket) =>
        {
            Entry::push(Statement, Kind::Block, Statement)
        }
        (_, Expect::After) if matches!(context, Context::Object) => {
            Entry::push_function(Statement, Kind::Block, After)
        }
        (_, Expect::After) if matches!(context, Context::Class) => {
            Entry::push_function(Statement, Kind::Block, Expect::Key)
        }
        _ => Entry::LOOK,
    }
}
