//! The brackets that are open, and how most tokens open and close them.

use std::hint::select_unpredictable;

use crate::block::{BLOCK, Block, Steps};
use crate::class::Class;
use crate::frame::{Expect, Frame, Function, Kind, Place};
use crate::transition::{Entry, transition};

/// All that most tokens change.
struct State {
    place: Place,
    top: Frame,
    depth: usize,
}

impl State {
    /// Does what the table says of a token of a class.
    ///
    /// This does not branch on whether a bracket opens or closes, which nothing predicts; and the place, which every token
    /// waits for, takes little more than the table.
    #[inline]
    fn apply(&mut self, entry: Entry, class: u8, frames: &mut [Frame]) {
        let closes = Class::closes(class);
        // Where nothing opens, this is behind all that is kept.
        frames[self.depth] = self.top;
        let outer = frames[self.depth - 1];
        self.place = select_unpredictable(closes, self.top.closed(), entry.place());
        self.top = select_unpredictable(closes, outer, entry.frame(self.top));
        self.depth = self.depth + usize::from(entry.pushes()) - usize::from(closes);
    }
}

/// The open brackets. There is always one around the innermost.
pub(crate) struct Stack {
    frames: Vec<Frame>,
    /// How many are around the innermost one.
    pub(crate) depth: usize,
    /// The innermost one.
    pub(crate) top: Frame,
    /// What the innermost one is, as part of a place.
    pub(crate) kind: Kind,
}

impl Stack {
    pub(crate) fn new() -> Self {
        let script = Frame::new(Place::new(Kind::Script, Expect::Statement, false), Function::Outside);
        Self { frames: vec![script; 32], depth: 1, top: script, kind: Kind::Script }
    }

    /// What the innermost bracket is.
    pub(crate) fn kind(&self) -> Kind {
        if self.kind == Kind::Method { self.top.method_of() } else { self.kind }
    }

    /// Sets what the method is whose key was read.
    pub(crate) fn set_method(&mut self, function: Function) {
        let kind = self.kind();
        self.top.set_method(function, kind);
        self.kind = if function == Function::Plain { kind } else { Kind::Method };
    }

    /// Opens a bracket.
    pub(crate) fn push(&mut self, kind: Kind, then: Expect, inside: Function) {
        let frame = Frame::new(Place::new(self.kind, then, false), inside);
        let outer = std::mem::replace(&mut self.top, frame);
        self.make_room(1);
        self.frames[self.depth] = outer;
        self.depth += 1;
        self.kind = kind;
    }

    /// The bracket around the innermost one.
    pub(crate) fn outer(&self) -> Frame {
        self.frames[self.depth - 1]
    }

    /// Takes steps in a block, up to a token that must be looked at. Returns where that starts in the block, and the place
    /// where it is met.
    ///
    /// It is a function of its own, so that all it needs is in registers.
    #[inline(never)]
    pub(crate) fn follow(&mut self, block: &Block, steps: Steps, place: Place) -> (Option<usize>, Place) {
        self.make_room(BLOCK);
        let mut state = State { place, top: self.top, depth: self.depth };
        let mut starts = steps.starts;
        let mut looks = None;
        while starts != 0 {
            let offset = starts.trailing_zeros() as usize;
            let class = block.class(offset);
            let behind_word = steps.behind_words >> offset & 1 == 1;
            let entry = transition(state.place, class, behind_word);
            if entry.must_look() {
                looks = Some(offset);
                if behind_word {
                    match transition(state.place, Class::Word as u8, false) {
                        word if word.must_look() => looks = Some(block.start_before(offset)),
                        word => state.place = word.place(),
                    }
                }
                break;
            }
            starts &= starts - 1;
            state.apply(entry, class, &mut self.frames);
        }
        (self.depth, self.top) = (state.depth, state.top);
        (looks, state.place)
    }

    /// Does what the table says of a token that need not be looked at, and returns where a scan stands then.
    pub(crate) fn apply(&mut self, entry: Entry, class: Class, place: Place) -> Place {
        self.make_room(1);
        let mut state = State { place, top: self.top, depth: self.depth };
        state.apply(entry, class as u8, &mut self.frames);
        (self.depth, self.top) = (state.depth, state.top);
        state.place
    }

    /// Makes sure that so many brackets can be opened.
    fn make_room(&mut self, count: usize) {
        if self.frames.len() <= self.depth + count {
            self.frames.resize(2 * self.frames.len() + count, self.top);
        }
    }

    /// Closes the innermost bracket; the script itself stays.
    pub(crate) fn pop(&mut self) -> Frame {
        let closed = self.top;
        if self.depth > 1 {
            self.depth -= 1;
            self.top = self.frames[self.depth];
            self.kind = closed.closed().kind();
        }
        closed
    }
}
