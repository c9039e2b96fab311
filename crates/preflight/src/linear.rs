//! Proof that the work grows with the length of the source and no faster, by counting bytes read and brackets looked
//! at, on sources made to be slow; and that nesting, which is all that takes memory, takes little.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::frame::Frame;
use crate::policy::{Policy, PolicyRules};
use crate::relevant;
use crate::rules::{Options, Rules};
use crate::scanner::{Role, Scanner, Sink, TextKind};

/// Passes on what it gets and counts.
struct Counting<S> {
    inner: S,
    steps: usize,
}

impl<S: Sink> Sink for Counting<S> {
    const EVERY_WORD: bool = S::EVERY_WORD;

    fn word(&mut self, source: &[u8], span: Range<usize>, escaped: bool, role: Role) {
        self.inner.word(source, span, escaped, role);
    }

    fn text(&mut self, source: &[u8], span: Range<usize>, kind: TextKind) {
        self.inner.text(source, span, kind);
    }

    fn steps(&mut self, count: usize) {
        self.steps += count;
    }
}

/// The steps for a check and for a policy that reads everything.
fn steps(source: &str) -> usize {
    let source = source.as_bytes();
    let checked = Scanner::new(source, Counting { inner: Rules::new(Options::default()), steps: 0 }).run();
    let policy = Policy {
        forbidden_identifiers: BTreeSet::from([b"a".to_vec()]),
        forbid_dynamic_import: true,
        forbid_computed_global_access: true,
        include_preflight_rules: true,
        ..Policy::default()
    };
    let inner = PolicyRules::new(&policy, Options::default());
    let applied = Scanner::new(source, Counting { inner, steps: 0 }).run();
    let (_, looked_for) = relevant::end_and_steps(source, Options::default());
    looked_for + checked.steps + checked.inner.steps() + applied.steps + applied.inner.steps()
}

/// What could be read again and again: unclosed literals, brackets, what a word reads ahead, what a `?` looks at.
const PIECES: &[&str] = &[
    "=/[",
    "/",
    "'\\",
    "`",
    "`${",
    "`${`",
    "${",
    "(",
    "{",
    "[",
    "<",
    "a<",
    "=<",
    ">",
    ")",
    "}",
    "]",
    "?",
    "a?",
    "? ",
    "?/**/",
    "/*",
    "//",
    "\\",
    "\\u{0",
    "\\u0061",
    "fetch ",
    "fetch/**/",
    "globalThis.",
    "globalThis[",
    "globalThis['globalThis']",
    "globalThis['",
    "window.self",
    "WebSocket ",
    "WebSocket,",
    "a<WebSocket,",
    ".constructor",
    "import ",
    "import type ",
    "export type ",
    "type ",
    "async ",
    "let ",
    "class ",
    "class extends ",
    "function ",
    "function(",
    "case ",
    "a:",
    "a?b:",
    "type a=",
    "interface a<",
    "=>",
    "=>{",
    "\u{2028}",
    "\u{a0}",
    "\u{e9}",
    "<!--",
    "-->",
    "@",
    "#",
    ".",
    "...",
    "1",
    "1e",
    "0x",
    "import(",
    "import.defer",
    "a as b extends c?",
    "'import '",
    "/*import ",
    "'globalThis ",
    "await ",
    "await /**/",
    "async ",
    "async(",
    "async x=>",
    "x=>",
    "=<a",
    "=<a>",
    "=<a<",
    "=<a b",
    "=<a>{",
    "=<a b={",
    "=<>",
    "</a>",
    "=<a/>",
];

#[test]
fn the_work_grows_with_the_source_and_no_faster() {
    for piece in PIECES {
        let at = |length: usize| steps(&piece.repeat(length / piece.len()));
        let (short, long) = (at(4_000), at(64_000));
        assert!(short <= 60 * 4_000, "{piece:?} takes {short} steps for 4000 bytes");
        assert!(
            long <= 17 * short + 4_000,
            "{piece:?} takes {short} steps, and {long} for 16 times the length"
        );
    }
}

#[test]
fn pairs_of_pieces_do_not_make_each_other_slow() {
    for first in PIECES {
        for second in PIECES {
            for source in [
                format!("{first}{second}").repeat(400),
                format!("{}{}", first.repeat(400), second.repeat(400)),
            ] {
                let steps = steps(&source);
                assert!(
                    steps <= 64 * source.len() + 1_000,
                    "{first:?}, {second:?}: {steps} for {}",
                    source.len()
                );
            }
        }
    }
}

#[test]
fn nesting_takes_eight_bytes_a_bracket() {
    assert!(size_of::<Frame>() <= 8, "{} bytes", size_of::<Frame>());
}

#[test]
fn counting_sees_what_is_read_twice() {
    let once = steps(&" ".repeat(1_000));
    let twice = steps(&format!("fetch{}", " ".repeat(995)));
    assert!(twice >= once + 1_000, "{once} and {twice}");
}
