//! What is text and what is code, for whoever wants to compare.

use std::ops::Range;

use crate::scanner::{Role, Scanner, Sink, TextKind};

/// A stretch of a source that is text and not code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// What it is.
    pub kind: TextKind,
    /// Where it stands, in bytes.
    pub range: Range<usize>,
}

/// Every stretch of text of a source, in order.
pub fn spans(source: &[u8]) -> Vec<Span> {
    Scanner::new(source, Spans(Vec::new())).run().0
}

struct Spans(Vec<Span>);

impl Sink for Spans {
    fn word(&mut self, _: &[u8], _: Range<usize>, _: bool, _: Role) {}

    fn text(&mut self, _: &[u8], range: Range<usize>, kind: TextKind) {
        self.0.push(Span { kind, range });
    }

    fn steps(&mut self, _: usize) {}
}
