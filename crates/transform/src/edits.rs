//! Edits of a text by ranges, and the map that they leave.

use crate::position::{Lines, Position, PositionMap, Segment, SegmentKind, line_ends, utf16_len};

/// Replacements of ranges of a text; everything else stays as it is.
///
/// Edits do not overlap: a range that is replaced has no edits inside. Several at one place come out in the order in which
/// they were made.
pub(crate) struct Edits<'s> {
    source: &'s str,
    list: Vec<Edit>,
    moved: Vec<(usize, usize)>,
}

struct Edit {
    start: usize,
    end: usize,
    text: String,
}

impl<'s> Edits<'s> {
    pub(crate) const fn new(source: &'s str) -> Self {
        Self { source, list: Vec::new(), moved: Vec::new() }
    }

    pub(crate) const fn source(&self) -> &'s str {
        self.source
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.moved.is_empty()
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at, at, text);
    }

    pub(crate) fn remove(&mut self, start: usize, end: usize) {
        self.replace(start, end, "");
    }

    pub(crate) fn replace(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.list.push(Edit { start, end, text: text.into() });
    }

    /// Takes a range out of its place; [`Output::push_range`] puts it somewhere else, with the edits inside it. What was
    /// inserted right before it stays. Ranges that are moved do not overlap.
    pub(crate) fn take_out(&mut self, start: usize, end: usize) {
        self.moved.push((start, end));
    }

    /// The output, to be put together.
    pub(crate) fn output(mut self) -> Output<'s> {
        self.list.sort_by_key(|edit| (edit.start, edit.end));
        self.moved.sort_unstable();
        let capacity = self.source.len() + self.list.iter().map(|edit| edit.text.len()).sum::<usize>() + 256;
        Output {
            lines: Lines::new(self.source),
            edits: self,
            text: String::with_capacity(capacity),
            segments: Vec::new(),
            line: 1,
            column: 1,
        }
    }
}

/// A text that is put together from pieces of the source and what is put in between.
pub(crate) struct Output<'s> {
    edits: Edits<'s>,
    lines: Lines<'s>,
    text: String,
    segments: Vec<Segment>,
    line: u32,
    column: u32,
}

impl Output<'_> {
    /// Adds text that was made for a place of the source.
    pub(crate) fn push(&mut self, text: &str, place: usize) {
        self.add(text, place, SegmentKind::Made);
    }

    /// Adds a range that was taken out of its place, with the edits inside it.
    pub(crate) fn push_range(&mut self, start: usize, end: usize) {
        let first = self.edits.list.partition_point(|edit| edit.start < start || edit.end <= start);
        let mut at = start;
        for index in first..self.edits.list.len() {
            if self.edits.list[index].start >= end {
                break;
            }
            self.edit(&mut at, index);
        }
        self.add_source(at, end);
    }

    /// Adds the whole source, with an empty statement for each range that was taken out.
    pub(crate) fn push_rest(&mut self) {
        let moved = std::mem::take(&mut self.edits.moved);
        let (mut at, mut index) = (0, 0);
        for (start, end) in moved {
            while self.edits.list.get(index).is_some_and(|edit| edit.start < start || edit.end <= start) {
                self.edit(&mut at, index);
                index += 1;
            }
            self.add_source(at, start);
            self.push(";", start);
            at = end;
            while self.edits.list.get(index).is_some_and(|edit| edit.start < end) {
                index += 1;
            }
        }
        for index in index..self.edits.list.len() {
            self.edit(&mut at, index);
        }
        self.add_source(at, self.edits.source.len());
    }

    /// The text and its map.
    pub(crate) fn finish(self) -> (String, PositionMap) {
        (self.text, PositionMap::of(self.segments))
    }

    fn edit(&mut self, at: &mut usize, index: usize) {
        let Edit { start, end, .. } = self.edits.list[index];
        debug_assert!(*at <= start, "edits overlap at {start}");
        self.add_source(*at, start);
        let text = std::mem::take(&mut self.edits.list[index].text);
        self.add(&text, start, SegmentKind::Made);
        *at = (*at).max(end);
    }

    fn add_source(&mut self, start: usize, end: usize) {
        if start < end {
            let source = self.edits.source;
            self.add(&source[start..end], start, SegmentKind::Verbatim);
        }
    }

    fn add(&mut self, text: &str, place: usize, kind: SegmentKind) {
        if text.is_empty() {
            return;
        }
        let output = Position { line: self.line, column: self.column };
        self.segments.push(Segment { output, source: self.lines.position(place), kind });
        // The two characters of one line end, of which the first is counted.
        let counted = usize::from(self.text.ends_with('\r') && text.starts_with('\n'));
        self.text.push_str(text);
        let text = &text[counted..];
        let mut last_line = 0;
        for end in line_ends(text) {
            self.line += 1;
            self.column = 1;
            last_line = end;
        }
        self.column += utf16_len(&text[last_line..]);
    }
}
