//! The filter's table, as data: every system call that a worker may meet, what the filter answers, and why.
//!
//! The calls that are allowed come from tracing workers on `x86_64` with the JIT off, at its baseline and in full: large heaps
//! and collections, strings and arrays that exhaust memory, deep recursion, every kind of regular expression,
//! `Intl` in several locales, dates, promises, `WebAssembly`, weak references, the time limit; and from what the C
//! library and Rust do around them (threads, allocation, `abort`). A number that is in no table answers `ENOSYS`, so
//! that libraries fall back as they do on an older kernel.

mod allowed;
mod fatal;
mod refused;
mod template;

pub use allowed::ALLOWED;
pub use fatal::FATAL;
pub use refused::REFUSED;
pub use template::TEMPLATE;

/// The call does not exist on this architecture.
pub const NONE: u32 = u32::MAX;

/// What the filter answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The kernel runs the call.
    Allow,
    /// `EPERM`.
    Refuse,
    /// `ENOSYS`, as if the kernel did not have the call.
    Absent,
    /// The process dies with `SIGSYS`.
    Kill,
}

/// A call that a worker makes.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The kernel's name for it.
    pub name: &'static str,
    /// Its numbers on `x86_64` and aarch64, or [`NONE`].
    pub numbers: [u32; 2],
    /// What its arguments must be; the call is refused otherwise.
    pub conditions: &'static [Condition],
    /// Who makes it and what for.
    pub reason: &'static str,
}

/// Calls with one answer and one reason.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The answer.
    pub outcome: Outcome,
    /// Why.
    pub reason: &'static str,
    /// Names, and numbers on `x86_64` and aarch64.
    pub calls: &'static [(&'static str, [u32; 2])],
}

/// Something an argument must be.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Which argument, from 0.
    pub argument: u8,
    /// What it must be.
    pub test: Test,
}

/// A test of one argument. `Int` tests look at the low 32 bits, as the kernel does for an `int`.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// The `int`, after keeping the bits of `mask`, is one of `values`.
    Int {
        /// The bits that are looked at.
        mask: u32,
        /// What they may be.
        values: &'static [u32],
    },
    /// All 64 bits are zero: a null pointer.
    Null,
    /// All 64 bits are this value.
    Exactly(u64),
    /// The `int` is this process's id.
    OwnProcess,
}

/// Calls that answer `ENOSYS` although the kernel has them, because that is how a library learns to do without.
pub const ABSENT: &[Group] = &[
    Group {
        outcome: Outcome::Absent,
        reason: "The flags are in memory, where no filter sees them; the C library then uses `clone`.",
        calls: &[("clone3", [435, 435])],
    },
    Group {
        outcome: Outcome::Absent,
        reason: "Tells of any process on the machine whether it is there. The C library asks for a thread's stack bounds, \
                 and only from this answer goes on without.",
        calls: &[("sched_getaffinity", [204, 123])],
    },
];
