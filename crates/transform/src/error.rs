//! Why a source could not be made into a script.

use std::fmt;

use crate::Position;

/// What is wrong with a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It does not parse, or breaks a rule that is checked before anything runs: a `SyntaxError`.
    Syntax,
    /// It is a module (it has `import` or `export` declarations) and was to be a script.
    ModuleSyntax,
    /// JSX, which has no meaning without a library that gives it one.
    Jsx,
    /// Decorators, where they were not asked for.
    Decorators,
    /// Something else that cannot be made into a script; the message says what.
    Unsupported,
    /// The source is longer than the options allow.
    TooLarge,
    /// Brackets are nested deeper than [`MAX_NESTING`](crate::MAX_NESTING).
    TooDeep,
    /// A mistake in this crate or in the parser. The message is for a bug report; nothing was produced.
    Internal,
}

/// A source could not be made into a script. Nothing is kept from the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// What is wrong, in words. It may quote the source.
    pub message: String,
    /// Where, in the author's text.
    pub position: Position,
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.position)
    }
}

impl std::error::Error for TransformError {}

impl TransformError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, position: Position) -> Self {
        Self { kind, message: message.into(), position }
    }
}
