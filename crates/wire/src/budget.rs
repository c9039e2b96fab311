//! How large one value may be.

use crate::message::Limits;

/// Bounds on one value, enforced by whoever encodes it and again by whoever decodes it.
///
/// A list of values that travels together (a call's arguments) shares one budget for bytes and nodes; the depth
/// is each value's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the encoding.
    pub bytes: usize,
    /// Nodes: the value itself and every value inside it, a `Map`'s keys included. An object's keys are not nodes.
    pub nodes: usize,
    /// Containers around each other, empty ones included: 0 for a scalar, 2 for `[[1]]`. Whatever stands here,
    /// [`Budget::MAX_DEPTH`] is never passed.
    pub depth: u32,
}

impl Budget {
    /// The deepest value that is ever encoded or decoded.
    ///
    /// Encoder and decoder keep their own stacks and could go on, but Rust drops, clones, compares and prints a
    /// nested [`Value`](crate::Value) by recursion, and a stack that overflows kills the process. A value of this
    /// depth is dropped within 256 KiB of stack, and cloned, compared and printed within 2 MiB, also in a debug
    /// build. Whoever builds a value by other means than decoding must keep within this depth while building.
    pub const MAX_DEPTH: u32 = 512;

    /// The depth that is enforced: the smaller of [`depth`](Self::depth) and [`MAX_DEPTH`](Self::MAX_DEPTH).
    pub fn effective_depth(&self) -> u32 {
        self.depth.min(Self::MAX_DEPTH)
    }
}

impl Default for Budget {
    /// 64 MiB, two million nodes, depth 100.
    fn default() -> Self {
        Self { bytes: 64 << 20, nodes: 2_000_000, depth: 100 }
    }
}

impl From<&Limits> for Budget {
    fn from(limits: &Limits) -> Self {
        let clamp = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            bytes: clamp(limits.max_value_bytes),
            nodes: clamp(limits.max_value_nodes),
            depth: limits.max_value_depth,
        }
    }
}

/// What is left of a budget while values that share it are encoded or decoded.
#[derive(Debug)]
pub(crate) struct Allowance {
    pub(crate) budget: Budget,
    pub(crate) bytes: usize,
    pub(crate) nodes: usize,
}

impl Allowance {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { budget: *budget, bytes: budget.bytes, nodes: budget.nodes }
    }

    /// Takes `count` nodes, or says that they are not there.
    pub(crate) fn take_nodes(&mut self, count: usize) -> bool {
        match self.nodes.checked_sub(count) {
            Some(left) => {
                self.nodes = left;
                true
            }
            None => false,
        }
    }
}
