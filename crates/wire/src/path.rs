//! Where in a value something stands.

use std::fmt;

use crate::text::{CodePoint, Text, is_invisible};

/// The way from a value's root to something inside it, shown as `$.items[3].x`.
///
/// A guest chooses keys and depth, so what is shown is bounded and safe to print: a key that is no identifier is
/// quoted and escaped and cut after 64 characters, and of a long path the middle is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    segments: Vec<Segment>,
}

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// An object's property: `.name`, or `["a b"]` when the key is no identifier.
    Key(Text),
    /// An array's element: `[3]`.
    Index(usize),
    /// A `Set`'s member, counted in insertion order from 0: `<member 3>`.
    Member(usize),
    /// The key of a `Map`'s entry, counted likewise: `<key 3>`.
    MapKey(usize),
    /// The value of a `Map`'s entry, counted likewise: `<value 3>`.
    MapValue(usize),
}

impl Path {
    /// Characters of a key that are shown.
    const SHOWN_CHARACTERS: usize = 64;

    /// Segments that are shown at either end of a path longer than both together.
    const SHOWN_SEGMENTS: usize = 16;

    /// The path of the root itself, `$`.
    pub fn root() -> Self {
        Self::default()
    }

    /// Goes one step in.
    pub fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Goes one step out, and gives the step; `None` at the root.
    pub fn pop(&mut self) -> Option<Segment> {
        self.segments.pop()
    }

    /// The steps, from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self { segments: segments.into_iter().collect() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        let hidden = self.segments.len().saturating_sub(2 * Self::SHOWN_SEGMENTS);
        if hidden == 0 {
            return self.segments.iter().try_for_each(|segment| segment.fmt(f));
        }
        let (head, rest) = self.segments.split_at(Self::SHOWN_SEGMENTS);
        head.iter().try_for_each(|segment| segment.fmt(f))?;
        write!(f, " …({hidden} more)… ")?;
        rest[hidden..].iter().try_for_each(|segment| segment.fmt(f))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) if is_short_identifier(key) => write!(f, ".{key}"),
            Self::Key(key) => {
                f.write_str("[")?;
                key.write_literal(f, Path::SHOWN_CHARACTERS)?;
                f.write_str("]")
            }
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Member(index) => write!(f, "<member {index}>"),
            Self::MapKey(index) => write!(f, "<key {index}>"),
            Self::MapValue(index) => write!(f, "<value {index}>"),
        }
    }
}

/// Whether the key is an identifier that is shown whole; a few rare identifiers are quoted instead.
fn is_short_identifier(key: &Text) -> bool {
    let mut length = 0;
    let is_part = |point: CodePoint| {
        let CodePoint::Character(character) = point else { return false };
        length += 1;
        let letter = character.is_alphabetic() || matches!(character, '_' | '$');
        length <= Path::SHOWN_CHARACTERS
            && !is_invisible(character)
            && (letter || length > 1 && character.is_numeric())
    };
    !key.is_empty() && key.code_points().all(is_part)
}
