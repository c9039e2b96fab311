//! Strings short enough to need no memory of their own.

/// A string of at most [`ShortString::CAPACITY`] bytes of UTF-8. Most keys are this short, and a large value has many.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ShortString {
    length: u8,
    /// Zero beyond the length, so that equal strings are equal.
    bytes: [u8; Self::CAPACITY],
}

impl ShortString {
    /// As many as leave a [`Text`](super::Text) as large as a `String`.
    pub(super) const CAPACITY: usize = 22;

    pub(super) const EMPTY: Self = Self { length: 0, bytes: [0; Self::CAPACITY] };

    /// The string, if it is short enough.
    pub(super) fn new(string: &str) -> Option<Self> {
        let mut short = Self::EMPTY;
        short.bytes.get_mut(..string.len())?.copy_from_slice(string.as_bytes());
        short.length = string.len() as u8;
        Some(short)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(super) fn as_str(&self) -> &str {
        // They came from a string; looking again costs less than the memory that was saved.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}
