//! What most tokens do: a table, so that the scanner need not branch on what cannot be predicted.

use crate::class::Class;
use crate::frame::{Expect, Frame, Kind, Place};

/// What a token does: where a scan stands then, and what becomes of the innermost frame.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The bits of a place, or `LOOK`.
    place: u16,
    /// The bits of the place where a scan stands once what opens is closed; above them half of how many bits of the innermost
    /// frame are lost.
    effect: u16,
}

impl Entry {
    /// How far up the number of lost bits is.
    const LOST: u32 = 11;
    /// What a header says of the function and of what follows it stays when its body begins.
    const BODY: u16 = (Frame::CLOSED as u16 / 2) << Self::LOST;
    /// What kind of function code is in stays when a bracket opens.
    const BRACKET: u16 = (Frame::INSIDE as u16 / 2) << Self::LOST;
    /// Nothing stays when it opens a plain function of its own.
    const FUNCTION: u16 = 31 << Self::LOST;
    /// It must be looked at.
    const LOOK: Self = Self { place: u16::MAX, effect: 0 };
    /// It closes a bracket.
    const POP: Self = Self { place: 0, effect: 0 };

    const fn to(kind: Kind, expect: Expect) -> Self {
        Self { place: Place::new(kind, expect, false).bits(), effect: 0 }
    }

    /// Opens a bracket in the same function.
    const fn push(outer: Kind, expect: Expect, kind: Kind, then: Expect) -> Self {
        Self { effect: Self::BRACKET | Self::to(outer, then).place, ..Self::to(kind, expect) }
    }

    /// Opens one in a plain function of its own.
    const fn push_function(outer: Kind, expect: Expect, kind: Kind, then: Expect) -> Self {
        Self { effect: Self::FUNCTION | Self::to(outer, then).place, ..Self::to(kind, expect) }
    }

    /// Makes a function's header its body.
    const fn begin_body() -> Self {
        Self { effect: Self::BODY, ..Self::to(Kind::Block, Expect::Statement) }
    }

    #[inline]
    pub(crate) const fn must_look(self) -> bool {
        self.place == Self::LOOK.place
    }

    #[inline]
    pub(crate) fn pushes(self) -> bool {
        self.effect >= Self::BRACKET
    }

    /// Where a scan stands then, unless it closes a bracket.
    #[inline]
    pub(crate) const fn place(self) -> Place {
        Place::from_bits(self.place)
    }

    /// The innermost frame then, unless it closes one.
    #[inline]
    pub(crate) fn frame(self, top: Frame) -> Frame {
        let closed = Place::from_bits(self.effect & ((1 << Self::LOST) - 1));
        top.with(closed, 2 * u32::from(self.effect >> Self::LOST))
    }
}

/// How many classes there is room for.
const CLASSES: usize = 32;

/// By class and place; in the second half for a token behind a plain word.
type Table = [[Entry; Place::COUNT]; 2 * CLASSES];

#[allow(long_running_const_eval, reason = "it is a large table and not an endless loop")]
static TABLE: Table = {
    let mut table = [[Entry::LOOK; _]; _];
    let mut class = 0;
    while class < Class::COUNT {
        let mut kind = 0;
        while kind < Kind::ALL.len() {
            let mut expect = 0;
            while expect < Expect::ALL.len() {
                let (at, before, token) = (Kind::ALL[kind], Expect::ALL[expect], Class::ALL[class]);
                let mut newline = 0;
                while newline < 2 {
                    let place = Place::new(at, before, newline == 1);
                    table[class][place.index()] = entry(place, token);
                    table[class + CLASSES][place.index()] = entry_behind_word(place, token);
                    newline += 1;
                }
                expect += 1;
            }
            kind += 1;
        }
        class += 1;
    }
    table
};

/// What a token does, or one behind a plain word together with that.
#[inline]
pub(crate) fn transition(place: Place, class: u8, behind_word: bool) -> Entry {
    // Only the place waits for the token before.
    let class = usize::from(class) % CLASSES + CLASSES * usize::from(behind_word);
    TABLE[class][place.index()]
}

const fn entry_behind_word(place: Place, class: Class) -> Entry {
    let word = entry(place, Class::Word);
    if word.must_look() { word } else { entry(word.place(), class) }
}

const fn entry(place: Place, class: Class) -> Entry {
    use Expect::{After, Key, Member, Operand};
    let (kind, expect, newline) = (place.kind(), place.expect(), place.newline());
    if matches!(class, Class::Newline) {
        return Entry { place: Place::new(kind, expect, true).bits(), effect: 0 };
    }
    if matches!(expect, Expect::JsxAttribute | Expect::JsxValue | Expect::JsxText) {
        return Entry::LOOK;
    }
    let is_after = expect.is_after();
    match class {
        Class::Word => word(kind, newline, expect),
        Class::In
        | Class::Prefix
        | Class::Return
        | Class::New
        | Class::Control
        | Class::Statement
        | Class::Function
        | Class::Let => keyword(kind, newline, expect, class),
        Class::Digit => match expect {
            Key | Expect::KeyDone => Entry::LOOK,
            Expect::InType => Entry::to(kind, Expect::InType),
            Expect::Type => Entry::to(kind, Expect::TypeAfter),
            _ if is_after && newline && matches!(kind, Kind::Arrow) => Entry::LOOK,
            _ if is_after && matches!(kind, Kind::Class | Kind::Method) => Entry::LOOK,
            _ => Entry::to(kind, After),
        },
        Class::Comma => match (expect, kind) {
            (_, Kind::Arrow) => Entry::LOOK,
            (Expect::InType | Expect::InterfaceHead | Expect::ImportHead, _) => Entry::to(kind, expect),
            (_, Kind::ClassHeader) if expect.is_after_type() => Entry::to(kind, Expect::Type),
            (_, Kind::Object | Kind::Specifiers | Kind::Class) => Entry::to(kind, Key),
            (_, Kind::Method) => Entry::LOOK,
            _ => Entry::to(kind, Operand),
        },
        Class::Semicolon => match kind {
            Kind::Block => Entry::to(kind, Expect::Statement),
            Kind::Parenthesis => Entry::to(kind, Operand),
            _ => Entry::LOOK,
        },
        Class::Colon => match (expect, kind) {
            (Expect::InType | Expect::InterfaceHead, _) => Entry::to(kind, expect),
            (Expect::KeyDone, Kind::Object | Kind::Specifiers) => Entry::to(kind, Operand),
            _ => Entry::LOOK,
        },
        Class::Dot => match expect {
            Expect::Type | Expect::InType | Expect::InterfaceHead => Entry::to(kind, expect),
            Expect::TypeAfter | Expect::TypeParenthesis => Entry::to(kind, Expect::Type),
            // A number may start with it, or it is one of three.
            Member | Key | Expect::KeyDone => Entry::LOOK,
            _ => Entry::to(kind, Member),
        },
        Class::Equals => match expect {
            Expect::InType | Expect::TypeParenthesis => Entry::LOOK,
            Expect::AliasName => Entry::to(kind, Expect::Type),
            _ => Entry::to(kind, Expect::Equals),
        },
        Class::Greater => match (expect, kind) {
            (Expect::Equals, _) => Entry::LOOK,
            (_, Kind::Angle) if expect.is_type() || expect.is_after_type() => Entry::LOOK,
            _ => operator(kind, expect),
        },
        Class::BarAmpersand if expect.is_type() || expect.is_after_type() => Entry::LOOK,
        Class::Star if matches!(expect, Key | Expect::KeyDone | Expect::FunctionName) => Entry::LOOK,
        // TypeScript: `a!` is `a`, and so is a key. The equals sign of `a != b` makes it an operator.
        Class::Bang if (is_after && !newline) || matches!(expect, Expect::KeyDone) => Entry::to(kind, expect),
        // It may be one of two, or of a comment `-->`.
        Class::Sign if newline || matches!(expect, Expect::Sign | Expect::Type) => Entry::LOOK,
        Class::Sign if is_after => Entry::to(kind, Expect::Sign),
        Class::Sign | Class::Operator | Class::BarAmpersand | Class::Star | Class::Bang => {
            operator(kind, expect)
        }
        Class::OpenParenthesis | Class::OpenBracket | Class::OpenBrace => open(kind, newline, expect, class),
        Class::CloseParenthesis if matches!(kind, Kind::Parenthesis) => Entry::POP,
        Class::CloseBracket if matches!(kind, Kind::Bracket) => Entry::POP,
        Class::CloseBrace if matches!(kind, Kind::Block | Kind::Object | Kind::Specifiers | Kind::Class) => {
            Entry::POP
        }
        _ => Entry::LOOK,
    }
}

const fn operator(kind: Kind, expect: Expect) -> Entry {
    Entry::to(
        kind,
        match expect {
            Expect::InType => Expect::InType,
            _ => Expect::Operand,
        },
    )
}

/// A word that is no keyword.
const fn word(kind: Kind, newline: bool, expect: Expect) -> Entry {
    Entry::to(
        kind,
        match expect {
            Expect::Key | Expect::KeyDone => Expect::KeyDone,
            Expect::AliasName | Expect::InType | Expect::InterfaceHead | Expect::ImportHead => expect,
            Expect::Type => Expect::TypeAfter,
            Expect::Statement => Expect::FirstWord,
            Expect::Let => Expect::After,
            _ if expect.is_after() && matches!(kind, Kind::Class | Kind::Method) => Expect::KeyDone,
            _ if expect.is_after() && newline => {
                if matches!(kind, Kind::Arrow) {
                    return Entry::LOOK;
                }
                Expect::FirstWord
            }
            _ => Expect::After,
        },
    )
}

const fn keyword(kind: Kind, newline: bool, expect: Expect, class: Class) -> Entry {
    let is_after = expect.is_after();
    if is_after && matches!(class, Class::In) {
        return Entry::to(kind, Expect::Operand);
    }
    match expect {
        Expect::Type | Expect::TypeAfter | Expect::TypeParenthesis => return Entry::LOOK,
        Expect::Let => {}
        _ if !expect.is_expression() => return word(kind, newline, expect),
        _ if is_after && matches!(kind, Kind::Class | Kind::Method) => {
            return word(kind, newline, expect);
        }
        _ if is_after && newline && matches!(kind, Kind::Arrow) => return Entry::LOOK,
        _ => {}
    }
    Entry::to(
        kind,
        match class {
            Class::Prefix => Expect::Operand,
            Class::Return => Expect::Return,
            Class::New => Expect::New,
            Class::Control => Expect::ControlHead,
            Class::Statement => Expect::Statement,
            Class::Let => Expect::Let,
            Class::Function => {
                if is_after && matches!(kind, Kind::FunctionHeader) {
                    return Entry::LOOK;
                }
                let then = body_then(newline, expect);
                return Entry::push_function(kind, Expect::FunctionName, Kind::FunctionHeader, then);
            }
            _ => return word(kind, newline, expect),
        },
    )
}

/// What is expected after a function or a class: where it is an expression, a value ends with its body.
pub(crate) const fn body_then(newline: bool, before: Expect) -> Expect {
    let is_declaration = before.is_after()
        || matches!(before, Expect::Statement | Expect::Export | Expect::Default)
        || (matches!(before, Expect::Return) && newline);
    if is_declaration { Expect::Statement } else { Expect::After }
}

const fn open(kind: Kind, newline: bool, expect: Expect, class: Class) -> Entry {
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
        (Class::OpenParenthesis, Expect::ControlHead) => {
            Entry::push(kind, Operand, Kind::Parenthesis, Statement)
        }
        (Class::OpenParenthesis, Expect::KeyDone) => match kind {
            // The parameters of a method belong to it.
            Kind::Object | Kind::Specifiers | Kind::Class => {
                Entry::push_function(kind, Operand, Kind::Parenthesis, After)
            }
            _ => Entry::LOOK,
        },
        (Class::OpenParenthesis, _) => Entry::push(kind, Operand, Kind::Parenthesis, After),
        (Class::OpenBracket, Expect::Key | Expect::KeyDone) => match kind {
            Kind::Object | Kind::Specifiers => Entry::push(kind, Operand, Kind::Bracket, Expect::KeyDone),
            _ => Entry::LOOK,
        },
        (Class::OpenBracket, _) => Entry::push(kind, Operand, Kind::Bracket, After),
        (_, Expect::Return) if newline => Entry::push(kind, Statement, Kind::Block, Statement),
        (
            _,
            Operand
            | Expect::Equals
            | Expect::Sign
            | Expect::New
            | Expect::Return
            | Expect::Default
            | Expect::Let,
        ) => Entry::push(kind, Expect::Key, Kind::Object, After),
        (_, Statement) => Entry::push(kind, Statement, Kind::Block, Statement),
        (_, Expect::After | Expect::FunctionName) if matches!(kind, Kind::FunctionHeader) => {
            Entry::begin_body()
        }
        (_, Expect::After | Expect::FirstWord)
            if matches!(kind, Kind::Block | Kind::Parenthesis | Kind::Bracket) =>
        {
            Entry::push(kind, Statement, Kind::Block, Statement)
        }
        (_, Expect::After) if matches!(kind, Kind::Object | Kind::Specifiers) => {
            Entry::push_function(kind, Statement, Kind::Block, After)
        }
        (_, Expect::After) if matches!(kind, Kind::Class) => {
            Entry::push_function(kind, Statement, Kind::Block, Expect::Key)
        }
        _ => Entry::LOOK,
    }
}
