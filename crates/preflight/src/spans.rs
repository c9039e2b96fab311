//! What the scanner takes each stretch of a source for, for whoever wants to compare.

use std::ops::Range;

use crate::scanner::{Role, Scanner, Sink, TextKind};

/// A stretch of a source that is not simply code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// What it is.
    pub kind: SpanKind,
    /// Where it stands, in bytes.
    pub range: Range<usize>,
}

/// What a stretch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// Text, and no code at all.
    Text(TextKind),
    /// A property's name: after a dot, or a key of an object literal or a class.
    Property,
    /// A word of a type.
    Type,
}

/// Every stretch of a source that is text, a property or of a type, in order.
pub fn spans(source: &[u8]) -> Vec<Span> {
    Scanner::new(source, Spans(Vec::new())).run().0
}

struct Spans(Vec<Span>);

impl Sink for Spans {
    const EVERY_WORD: bool = true;

    fn word(&mut self, _: &[u8], range: Range<usize>, _: bool, role: Role) {
        let kind = match role {
            Role::Member | Role::ObjectKey => SpanKind::Property,
            Role::Type => SpanKind::Type,
            Role::Reference | Role::New | Role::Keyword | Role::Name => return,
        };
        self.0.push(Span { kind, range });
    }

    fn text(&mut self, _: &[u8], range: Range<usize>, kind: TextKind) {
        self.0.push(Span { kind: SpanKind::Text(kind), range });
    }

    fn steps(&mut self, _: usize) {}
}
