//! JavaScript strings.

mod invisible;
mod short;
mod wtf8;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use short::ShortString;

pub(crate) use invisible::is_invisible;
pub use wtf8::InvalidWtf8;

/// A JavaScript string: any sequence of UTF-16 code units, NUL and lone surrogates included.
///
/// Nearly every string is well-formed and is held as UTF-8, a short one without memory of its own; only one with a
/// lone surrogate is held as UTF-16. So equal strings have equal representations.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Representation);

/// Three words; a string has one representation only.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Representation {
    Short(ShortString),
    /// Longer than a [`ShortString`] can be.
    Long(Box<str>),
    /// With at least one lone surrogate.
    IllFormed(Box<[u16]>),
}

use Representation::{IllFormed, Long, Short};

impl Text {
    /// The string with these UTF-16 code units.
    pub fn from_utf16(units: &[u16]) -> Self {
        match wtf8::utf16_to_utf8(units) {
            Some(string) => Self::from(string),
            None => Self(IllFormed(units.into())),
        }
    }

    /// The string whose generalized UTF-8 this is: UTF-8 in which a surrogate may stand too, in three bytes.
    ///
    /// This is what Python's `surrogatepass` error handler writes. Strict WTF-8 has no surrogate pair written
    /// as two times three bytes; here such a pair is accepted and becomes the one character that it is in
    /// JavaScript.
    ///
    /// # Errors
    ///
    /// With the offset of the first byte that is not generalized UTF-8.
    pub fn from_wtf8(bytes: Vec<u8>) -> Result<Self, InvalidWtf8> {
        match String::from_utf8(bytes) {
            Ok(string) => Ok(Self::from(string)),
            Err(error) => Ok(Self::from_utf16(&wtf8::wtf8_to_utf16(error.as_bytes())?)),
        }
    }

    /// The string as UTF-8, or `None` when it has a lone surrogate. Copies nothing.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Short(short) => Some(short.as_str()),
            Long(string) => Some(string),
            IllFormed(_) => None,
        }
    }

    /// The string as UTF-8.
    ///
    /// # Errors
    ///
    /// With itself when it has a lone surrogate.
    pub fn into_string(self) -> Result<String, Self> {
        match self.0 {
            Short(short) => Ok(short.as_str().to_owned()),
            Long(string) => Ok(string.into_string()),
            IllFormed(_) => Err(self),
        }
    }

    /// The string as WTF-8: UTF-8, a lone surrogate in three bytes. Python reads it with `surrogatepass`.
    pub fn to_wtf8(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Short(short) => Cow::Borrowed(short.as_bytes()),
            Long(string) => Cow::Borrowed(string.as_bytes()),
            IllFormed(units) => Cow::Owned(wtf8::utf16_to_wtf8(units)),
        }
    }

    /// The string's UTF-16 code units.
    pub fn to_utf16(&self) -> Vec<u16> {
        match &self.0 {
            Short(short) => short.as_str().encode_utf16().collect(),
            Long(string) => string.encode_utf16().collect(),
            IllFormed(units) => units.to_vec(),
        }
    }

    /// The string as UTF-8, each lone surrogate replaced by U+FFFD.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Short(short) => Cow::Borrowed(short.as_str()),
            Long(string) => Cow::Borrowed(string),
            IllFormed(units) => Cow::Owned(String::from_utf16_lossy(units)),
        }
    }

    /// The length of [`to_wtf8`](Self::to_wtf8).
    pub fn len_bytes(&self) -> usize {
        match &self.0 {
            Short(short) => short.as_bytes().len(),
            Long(string) => string.len(),
            IllFormed(_) => self.code_points().map(CodePoint::len_bytes).sum(),
        }
    }

    /// Whether the string has no code unit.
    pub fn is_empty(&self) -> bool {
        self.0 == Short(ShortString::EMPTY)
    }

    /// Whether the string has no lone surrogate.
    pub fn is_well_formed(&self) -> bool {
        !matches!(self.0, IllFormed(_))
    }

    /// The string for showing to a person, on a terminal or in a log.
    ///
    /// A guest chooses its texts, and could move the cursor, reorder what is read or hide what it says. Removed
    /// are: control characters (general category Cc) but line feed and tab, the line and paragraph separators
    /// (Zl, Zp), everything that Unicode calls `Default_Ignorable_Code_Point` (bidirectional controls, zero-width
    /// characters, soft hyphen, variation selectors, tags, fillers) and the interlinear annotation controls
    /// U+FFF9 to U+FFFB. A lone surrogate becomes U+FFFD.
    pub fn display_safe(&self) -> Cow<'_, str> {
        let shown = |character: char| matches!(character, '\n' | '\t') || !is_invisible(character);
        match self.to_string_lossy() {
            Cow::Borrowed(string) if string.chars().all(shown) => Cow::Borrowed(string),
            string => Cow::Owned(string.chars().filter(|&character| shown(character)).collect()),
        }
    }

    /// The string if it takes at most `max_bytes` as WTF-8, else its beginning and an ellipsis (U+2026) that
    /// together do. Nothing fits below the three bytes of the ellipsis.
    pub fn shortened(&self, max_bytes: usize) -> Cow<'_, Self> {
        if self.len_bytes() <= max_bytes {
            return Cow::Borrowed(self);
        }
        let Some(room) = max_bytes.checked_sub('…'.len_utf8()) else {
            return Cow::Owned(Self::default());
        };
        let mut kept_bytes = 0;
        let mut units = Vec::new();
        for point in self.code_points() {
            kept_bytes += point.len_bytes();
            if kept_bytes > room {
                break;
            }
            match point {
                CodePoint::Character(character) => {
                    units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
                }
                CodePoint::LoneSurrogate(unit) => units.push(unit),
            }
        }
        units.push('…' as u16);
        Cow::Owned(Self::from_utf16(&units))
    }

    /// The string's characters and lone surrogates.
    pub(crate) fn code_points(&self) -> impl Iterator<Item = CodePoint> {
        let (string, units) = match &self.0 {
            Short(short) => (short.as_str(), [].as_slice()),
            Long(string) => (&**string, [].as_slice()),
            IllFormed(units) => ("", &**units),
        };
        // One of the two is empty.
        let characters = string.chars().map(CodePoint::Character);
        characters.chain(char::decode_utf16(units.iter().copied()).map(|decoded| match decoded {
            Ok(character) => CodePoint::Character(character),
            Err(error) => CodePoint::LoneSurrogate(error.unpaired_surrogate()),
        }))
    }

    /// Writes the string's first `max` characters as a JavaScript string literal, every character that a person
    /// would not see as an escape.
    pub(crate) fn write_literal(&self, f: &mut fmt::Formatter<'_>, max: usize) -> fmt::Result {
        f.write_char('"')?;
        for (index, point) in self.code_points().enumerate() {
            match point {
                _ if index == max => {
                    f.write_char('…')?;
                    break;
                }
                CodePoint::Character(quoted @ ('"' | '\\')) => write!(f, "\\{quoted}")?,
                CodePoint::Character('\n') => f.write_str("\\n")?,
                CodePoint::Character('\t') => f.write_str("\\t")?,
                CodePoint::Character(hidden) if is_invisible(hidden) => {
                    for unit in hidden.encode_utf16(&mut [0; 2]) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
                CodePoint::Character(character) => f.write_char(character)?,
                CodePoint::LoneSurrogate(unit) => write!(f, "\\u{unit:04x}")?,
            }
        }
        f.write_char('"')
    }
}

/// A Unicode code point as JavaScript counts them.
#[derive(Clone, Copy)]
pub(crate) enum CodePoint {
    Character(char),
    LoneSurrogate(u16),
}

impl CodePoint {
    fn len_bytes(self) -> usize {
        match self {
            Self::Character(character) => character.len_utf8(),
            Self::LoneSurrogate(_) => 3,
        }
    }
}

impl Default for Text {
    /// The empty string.
    fn default() -> Self {
        Self(Short(ShortString::EMPTY))
    }
}

impl From<String> for Text {
    fn from(string: String) -> Self {
        match ShortString::new(&string) {
            Some(short) => Self(Short(short)),
            None => Self(Long(string.into_boxed_str())),
        }
    }
}

impl From<&str> for Text {
    fn from(string: &str) -> Self {
        match ShortString::new(string) {
            Some(short) => Self(Short(short)),
            None => Self(Long(string.into())),
        }
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl fmt::Display for Text {
    /// As [`Text::to_string_lossy`]; what a person may see is [`Text::display_safe`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_string_lossy())
    }
}

impl fmt::Debug for Text {
    /// As a JavaScript string literal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_literal(f, usize::MAX)
    }
}
