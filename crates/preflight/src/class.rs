//! What a token can be by its first byte, or by its text where it is a keyword.

/// The class of a token. White space is none: it is no part of any token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// A name that is no keyword.
    Word,
    /// `in`.
    In,
    /// A keyword in front of an operand: `typeof`, `var`.
    Prefix,
    /// `return`.
    Return,
    /// `new`.
    New,
    /// A keyword in front of a parenthesis and a statement: `if`.
    Control,
    /// A keyword in front of a statement: `else`.
    Statement,
    /// `function`.
    Function,
    /// `let`.
    Let,
    Digit,
    Newline,
    Dot,
    Comma,
    Semicolon,
    Colon,
    Equals,
    Greater,
    Bang,
    Star,
    /// `|` or `&`.
    BarAmpersand,
    /// `+` or `-`.
    Sign,
    /// An operator that is like any other, or a byte that means nothing.
    Operator,
    OpenParenthesis,
    OpenBracket,
    OpenBrace,
    CloseParenthesis,
    CloseBracket,
    CloseBrace,
    /// What must be looked at in any case.
    Special,
}

impl Class {
    pub(crate) const COUNT: usize = Self::Special as usize + 1;

    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Word,
        Self::In,
        Self::Prefix,
        Self::Return,
        Self::New,
        Self::Control,
        Self::Statement,
        Self::Function,
        Self::Let,
        Self::Digit,
        Self::Newline,
        Self::Dot,
        Self::Comma,
        Self::Semicolon,
        Self::Colon,
        Self::Equals,
        Self::Greater,
        Self::Bang,
        Self::Star,
        Self::BarAmpersand,
        Self::Sign,
        Self::Operator,
        Self::OpenParenthesis,
        Self::OpenBracket,
        Self::OpenBrace,
        Self::CloseParenthesis,
        Self::CloseBracket,
        Self::CloseBrace,
        Self::Special,
    ];

    /// Whether a token closes a bracket, by the number of its class and unless it must be looked at.
    #[inline]
    pub(crate) const fn closes(class: u8) -> bool {
        // One comparison by the order of the variants.
        class >= Self::CloseParenthesis as u8
    }

    const fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => Self::Word,
            b'0'..=b'9' => Self::Digit,
            b'\n' | b'\r' => Self::Newline,
            b'.' => Self::Dot,
            b',' => Self::Comma,
            b';' => Self::Semicolon,
            b':' => Self::Colon,
            b'=' => Self::Equals,
            b'>' => Self::Greater,
            b'!' => Self::Bang,
            b'*' => Self::Star,
            b'|' | b'&' => Self::BarAmpersand,
            b'+' | b'-' => Self::Sign,
            b'(' => Self::OpenParenthesis,
            b')' => Self::CloseParenthesis,
            b'[' => Self::OpenBracket,
            b']' => Self::CloseBracket,
            b'{' => Self::OpenBrace,
            b'}' => Self::CloseBrace,
            b'\\' | 0x80.. | b'"' | b'\'' | b'`' | b'/' | b'?' | b'<' | b'#' => Self::Special,
            _ => Self::Operator,
        }
    }
}

/// The number of the class of what must be looked at.
pub(crate) const LOOK: u8 = Class::Special as u8;

/// The class of each byte.
pub(crate) static CLASSES: [Class; 256] = {
    let mut table = [Class::Operator; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = Class::of(byte as u8);
        byte += 1;
    }
    table
};
