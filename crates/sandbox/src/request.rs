//! What a worker asks of its sandbox.

use std::os::fd::BorrowedFd;

/// What a missing layer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A required layer that is not in force refuses the start.
    Require,
    /// A layer that is not in force is reported, and the next one is applied.
    Auto,
    /// Only [`process`](crate::layer::PROCESS) is applied, and the process stays visible to a debugger.
    Off,
}

/// The limits that the kernel enforces for the life of the process; nothing in it can raise them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The first descriptor number that can no longer be opened. Descriptors that are kept may lie above it.
    pub open_files: u64,
    /// How many tasks (threads and processes) may exist in the worker's namespace, itself included.
    pub tasks: u64,
}

impl Default for Limits {
    /// Enough for the engine's threads in every JIT tier, and for the two descriptors it opens while it runs.
    fn default() -> Self {
        Self { open_files: 64, tasks: 64 }
    }
}

impl Limits {
    /// Those of a template, whose namespaces its forks share: a descriptor for each, and the tasks of all. The kernel
    /// lowers the first to what the process may have.
    pub const TEMPLATE: Self = Self { open_files: 1 << 20, tasks: 8192 };
}

/// What [`apply`](crate::apply) is to do.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What a missing layer means.
    pub mode: Mode,
    /// Whether to enter an empty root in namespaces of its own.
    pub empty_root: bool,
    /// The process that must outlive this one: its parent. A worker whose parent has gone does not start.
    pub parent: i32,
    /// The descriptors that stay open; every other one is closed.
    pub keep: &'a [BorrowedFd<'a>],
    /// The kernel's limits.
    pub limits: Limits,
}
