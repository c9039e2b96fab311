//! What stops an encoding or a decoding.

use std::error::Error;
use std::fmt;

use crate::path::Path;
use crate::text::Text;

/// Why something was not encoded. The buffer is as it was; both ends of the conversation are unharmed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A value's encoding is longer than the budget.
    Bytes {
        /// Where in the value the budget ran out.
        path: Path,
        /// The budget.
        limit: usize,
    },
    /// A value has more nodes than the budget.
    Nodes {
        /// The container with which the budget ran out.
        path: Path,
        /// The budget.
        limit: usize,
    },
    /// A value is nested deeper than the budget.
    Depth {
        /// The container that is too deep.
        path: Path,
        /// The budget.
        limit: u32,
    },
    /// An object has a key twice.
    DuplicateKey {
        /// The key's second occurrence.
        path: Path,
    },
    /// A date is further from 1970 than JavaScript's can be.
    DateOutOfRange {
        /// The date.
        path: Path,
        /// What it holds.
        milliseconds: i64,
    },
    /// A field of a message is longer than its bound.
    FieldTooLong {
        /// The field.
        field: &'static str,
        /// Its length, in bytes or items.
        length: usize,
        /// Its bound.
        limit: usize,
    },
    /// A message is longer than a frame can say.
    FrameTooLong {
        /// The message's length, in bytes.
        length: usize,
    },
}

impl EncodeError {
    /// Where in the value the error stands, when it is about a value.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Bytes { path, .. }
            | Self::Nodes { path, .. }
            | Self::Depth { path, .. }
            | Self::DuplicateKey { path }
            | Self::DateOutOfRange { path, .. } => Some(path),
            Self::FieldTooLong { .. } | Self::FrameTooLong { .. } => None,
        }
    }

    /// What is wrong, without the path.
    pub fn reason(&self) -> String {
        match self {
            Self::Bytes { limit, .. } => {
                format!("the value takes more than {limit} bytes; return less, or raise the limit on bytes")
            }
            Self::Nodes { limit, .. } => {
                format!("the value has more than {limit} nodes; return less, or raise the limit on nodes")
            }
            Self::Depth { limit, .. } => {
                format!("the value is nested more than {limit} deep; flatten it, or raise the limit on depth")
            }
            Self::DuplicateKey { .. } => "the object has this key twice; keep one".to_owned(),
            Self::DateOutOfRange { milliseconds, .. } => {
                format!("{milliseconds} ms from 1970 is no date in JavaScript; keep within ±8.64e15")
            }
            Self::FieldTooLong { field, length, limit } => {
                format!("{field} has length {length}; keep within {limit}")
            }
            Self::FrameTooLong { length } => {
                format!("the message takes {length} bytes, more than a frame can hold; send less at once")
            }
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.reason())
    }
}

impl Error for EncodeError {}

/// Why bytes were not decoded. Whoever sent them broke the protocol: there is nothing to repair and nothing to
/// retry, the peer is to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside an item.
    Truncated {
        /// Where they end.
        offset: usize,
    },
    /// There are bytes after the end.
    TrailingBytes {
        /// Where the end was.
        offset: usize,
        /// How many there are.
        count: usize,
    },
    /// A container claims more items than the bytes left could hold.
    TooFewBytes {
        /// The container.
        offset: usize,
        /// How many items it claims, a map's keys and values counted apart.
        claimed: u64,
        /// How many bytes are left for them.
        available: usize,
    },
    /// A value's encoding is longer than the budget.
    Bytes {
        /// The budget.
        limit: usize,
    },
    /// A value has more nodes than the budget.
    Nodes {
        /// The container with which the budget ran out.
        offset: usize,
        /// The budget.
        limit: usize,
    },
    /// A value is nested deeper than the budget.
    Depth {
        /// The container that is too deep.
        offset: usize,
        /// The budget.
        limit: u32,
    },
    /// An item that begins as none at its place does, such as one of indefinite length.
    Unsupported {
        /// The item.
        offset: usize,
        /// Its first byte.
        initial: u8,
    },
    /// A tag that this encoding never has.
    UnknownTag {
        /// The tag.
        offset: usize,
        /// Its number.
        tag: u64,
    },
    /// An item where another kind of item must stand.
    Unexpected {
        /// The item.
        offset: usize,
        /// What must stand there.
        expected: &'static str,
    },
    /// A second way to write what has only one.
    NotCanonical {
        /// The item.
        offset: usize,
        /// What it is.
        what: &'static str,
    },
    /// An integer outside the range of its place.
    IntegerOutOfRange {
        /// The integer.
        offset: usize,
    },
    /// A text string that is not UTF-8, or a tag 273 whose bytes are not WTF-8.
    InvalidText {
        /// The string's first byte.
        offset: usize,
    },
    /// An object has a key twice.
    DuplicateKey {
        /// The object's end.
        offset: usize,
        /// The key, shortened.
        key: Text,
    },
    /// A date is further from 1970 than JavaScript's can be.
    DateOutOfRange {
        /// The date.
        offset: usize,
    },
    /// A message, or a choice inside one, that does not exist or does not have this many fields.
    UnknownRecord {
        /// Where it begins.
        offset: usize,
        /// What was to be read.
        expected: &'static str,
        /// The number it begins with.
        number: u64,
        /// How many fields follow.
        fields: u64,
    },
    /// A field of a message is longer than its bound.
    FieldTooLong {
        /// The field.
        field: &'static str,
        /// Its length, in bytes or items.
        length: u64,
        /// Its bound.
        limit: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => write!(f, "the bytes end at {offset}, inside an item"),
            Self::TrailingBytes { offset, count } => write!(f, "{count} bytes follow the end at {offset}"),
            Self::TooFewBytes { offset, claimed, available } => {
                write!(f, "the container at byte {offset} claims {claimed} items in {available} bytes")
            }
            Self::Bytes { limit } => write!(f, "the value takes more than {limit} bytes"),
            Self::Nodes { offset, limit } => {
                write!(f, "the value has more than {limit} nodes with the container at byte {offset}")
            }
            Self::Depth { offset, limit } => {
                write!(f, "the value is nested more than {limit} deep at byte {offset}")
            }
            Self::Unsupported { offset, initial } => {
                write!(f, "the item at byte {offset} begins with {initial:#04x}, as none there does")
            }
            Self::UnknownTag { offset, tag } => write!(f, "tag {tag} at byte {offset} is not used here"),
            Self::Unexpected { offset, expected } => write!(f, "{expected} must stand at byte {offset}"),
            Self::NotCanonical { offset, what } => write!(f, "{what} at byte {offset}"),
            Self::IntegerOutOfRange { offset } => write!(f, "the integer at byte {offset} is out of range"),
            Self::InvalidText { offset } => write!(f, "the string at byte {offset} is ill-formed"),
            Self::DuplicateKey { offset, key } => {
                write!(f, "the object that ends at byte {offset} has the key {key:?} twice")
            }
            Self::DateOutOfRange { offset } => {
                write!(f, "the date at byte {offset} is out of JavaScript's range")
            }
            Self::UnknownRecord { offset, expected, number, fields } => {
                write!(f, "no {expected} has number {number} and {fields} fields, as at byte {offset}")
            }
            Self::FieldTooLong { field, length, limit } => {
                write!(f, "{field} has length {length}, more than {limit}")
            }
        }
    }
}

impl Error for DecodeError {}
