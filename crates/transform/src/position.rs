//! Places in a text, and the way from a place in the output back to the author's.

use std::fmt;

/// A place in a text. Both numbers count from 1; columns count UTF-16 code units, as the engine's own stacks do.
///
/// A line ends at `\n`, `\r`, `\r\n`, U+2028 or U+2029.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in UTF-16 code units, from 1.
    pub column: u32,
}

impl Position {
    /// The beginning of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Where the lines of a text begin.
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<u32>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let mut starts = vec![0];
        starts.extend(line_ends(text).map(|end| end as u32));
        Self { text, starts }
    }

    /// The position of a byte. One past the end is the end; one inside a character is that character.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = floor_boundary(self.text, offset);
        let line = self.starts.partition_point(|&start| start as usize <= offset) - 1;
        let before = &self.text[self.starts[line] as usize..offset];
        Position { line: line as u32 + 1, column: utf16_len(before) + 1 }
    }
}

/// Where each line of a text ends, after its terminator. A last line without one is not among them.
pub(crate) fn line_ends(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    memchr::memchr3_iter(b'\n', b'\r', 0xe2, bytes).filter_map(move |at| match bytes[at] {
        b'\n' => Some(at + 1),
        b'\r' => (bytes.get(at + 1) != Some(&b'\n')).then_some(at + 1),
        _ => matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])).then_some(at + 3),
    })
}

pub(crate) fn utf16_len(text: &str) -> u32 {
    if text.is_ascii() { text.len() as u32 } else { text.encode_utf16().count() as u32 }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// From where on the output is what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) output: Position,
    pub(crate) source: Position,
    pub(crate) kind: SegmentKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// The author's text, character by character.
    Verbatim,
    /// Text that was made for one place of the source.
    Made,
}

/// The way from a place in the output to the author's text.
///
/// It holds one entry for each edit and, for a text that was printed anew, one for each name and operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PositionMap {
    /// Stages from the last to the first; each is sorted by its output.
    stages: Vec<Vec<Segment>>,
}

impl PositionMap {
    /// The map of a text that is the author's own.
    pub const fn identity() -> Self {
        Self { stages: Vec::new() }
    }

    pub(crate) fn of(segments: Vec<Segment>) -> Self {
        debug_assert!(segments.is_sorted_by_key(|segment| segment.output));
        Self { stages: vec![segments] }
    }

    /// This map of a text that was itself made from another by `earlier`.
    pub(crate) fn after(mut self, earlier: Self) -> Self {
        self.stages.extend(earlier.stages);
        self
    }

    /// Whether the output is the author's text, unchanged.
    pub fn is_identity(&self) -> bool {
        self.stages.is_empty()
    }

    /// The author's place for one of the output.
    ///
    /// Exact where the output has the author's characters. What was put in maps to the place that it was put in for;
    /// of a text that was printed anew (TypeScript, `using`) each name maps to the same name, and what follows it up to
    /// the next name to there too. A place beyond the end of the output maps to something near the end.
    pub fn original(&self, position: Position) -> Position {
        self.stages.iter().fold(position, |position, segments| {
            let next = segments.partition_point(|segment| segment.output <= position);
            // What is before the first entry was put in for it; without any there is nothing of the author's.
            let Some(segment) = segments.get(next.saturating_sub(1)) else { return Position::START };
            match segment.kind {
                SegmentKind::Made => segment.source,
                SegmentKind::Verbatim => {
                    let lines = position.line.saturating_sub(segment.output.line);
                    let column = if lines == 0 {
                        segment.source.column + position.column.saturating_sub(segment.output.column)
                    } else {
                        position.column
                    };
                    Position { line: segment.source.line + lines, column }
                }
            }
        })
    }

    /// How many bytes the map takes.
    pub fn size(&self) -> usize {
        self.stages.iter().map(|segments| segments.len() * size_of::<Segment>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_terminator_ends_a_line_and_columns_count_utf16_units() {
        let text = "a\r\nb\rc\u{2028}d\u{2029}e\n€😀f";
        let lines = Lines::new(text);
        let at = |found: &str| lines.position(text.find(found).expect("it is there"));
        assert_eq!(at("b"), Position { line: 2, column: 1 });
        assert_eq!(at("c"), Position { line: 3, column: 1 });
        assert_eq!(at("d"), Position { line: 4, column: 1 });
        assert_eq!(at("e"), Position { line: 5, column: 1 });
        assert_eq!(at("f"), Position { line: 6, column: 4 });
        assert_eq!(lines.position(usize::MAX), Position { line: 6, column: 5 });
    }

    #[test]
    fn a_byte_inside_a_character_is_that_character() {
        assert_eq!(Lines::new("é!").position(1), Position { line: 1, column: 1 });
    }
}
