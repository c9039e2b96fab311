//! Why a guest's value does not cross.

use pydeno_wire::message::Failure;
use pydeno_wire::{Path, Text};

use crate::ffi::Thrown;

/// Why a value could not be exported.
pub(crate) enum ConversionError<'c> {
    /// Something in the value does not cross.
    Refused(Refused),
    /// The engine threw while it was read: it has no memory or no stack left.
    Engine(Thrown<'c>),
    /// There is no stack left to read it with.
    NoStack,
}

/// What does not cross, and where it stands.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) path: Path,
    pub(crate) reason: Refusal,
}

/// Why something does not cross. The prelude's JavaScript knows these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Symbol = 2,
    Proxy = 3,
    Getter = 4,
    Promise = 5,
    TooDeep = 6,
    TooManyNodes = 7,
    TooManyBytes = 8,
    InvalidDate = 9,
    Detached = 10,
    Cyclic = 11,
    Unreadable = 12,
    Error = 13,
    Opaque = 14,
    TooManyFunctions = 15,
}

impl Refusal {
    const ALL: [Self; 14] = [
        Self::Symbol,
        Self::Proxy,
        Self::Getter,
        Self::Promise,
        Self::TooDeep,
        Self::TooManyNodes,
        Self::TooManyBytes,
        Self::InvalidDate,
        Self::Detached,
        Self::Cyclic,
        Self::Unreadable,
        Self::Error,
        Self::Opaque,
        Self::TooManyFunctions,
    ];

    /// The refusal of this number; `None` for 0, which is none.
    pub(crate) fn from_number(number: f64) -> Option<Self> {
        if number == 0.0 {
            return None;
        }
        Some(
            Self::ALL
                .into_iter()
                .find(|&refusal| f64::from(refusal as u32) == number)
                .unwrap_or(Self::Unreadable),
        )
    }

    fn text(self) -> &'static str {
        match self {
            Self::Symbol => "is a symbol; return its description instead",
            Self::Proxy => "is a proxy, whose traps are not run; return a plain copy instead",
            Self::Getter => "is a getter, which is not run; return its value as a plain property instead",
            Self::Promise => "is a promise that cannot be awaited from outside; await it in the script",
            Self::TooDeep => "is nested more deeply than the limit",
            Self::TooManyNodes => "takes the value over the limit of its parts",
            Self::TooManyBytes => "takes the value over the limit of its bytes",
            Self::InvalidDate => "is an invalid date",
            Self::Detached => "has a detached buffer, whose bytes are gone",
            Self::Cyclic => "is part of a cycle",
            Self::Error => "is an error; return its message, or throw it",
            Self::Opaque => {
                "is an object of a built-in class that shows nothing of itself; return what it stands for"
            }
            Self::TooManyFunctions => {
                "is one function or stream more than the host holds at a time; let it release some"
            }
            Self::Unreadable => "could not be read from this version of the engine",
        }
    }
}

impl Refused {
    /// A refusal of the value itself.
    pub(crate) fn root(reason: Refusal) -> Self {
        Self { path: Path::root(), reason }
    }

    /// The whole as one text, for an error that the guest sees.
    pub(crate) fn message(&self, what: &str) -> Text {
        Text::from(format!("{what} cannot cross: {} {}", self.path, self.reason.text()))
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Conversion { path: refused.path.to_string(), reason: refused.reason.text().to_owned() }
    }
}

impl From<Refused> for ConversionError<'_> {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl<'c> From<Thrown<'c>> for ConversionError<'c> {
    fn from(thrown: Thrown<'c>) -> Self {
        Self::Engine(thrown)
    }
}
