//! Sessions for agents: a guest whose tools are the host's, that can stop at a tool call, be written down and go on elsewhere.
//!
//! An [`AgentSession`] runs programs one after the other in one worker. A tool is an asynchronous host function: the guest
//! gets a promise and goes on until nothing is left to run before an answer arrives. Only then is one answer handed over, so
//! that what the guest does depends on its programs and on the answers in their order, and on nothing else.
//!
//! # Terms
//!
//! - A **run** is one program with the calls it made and how it ended.
//! - The **journal** is what is needed to have it all again: every run's program, its calls (as digests) and the answers in
//!   the order they were handed over, and a digest of how it ended.
//! - A **replay** runs the journal's programs in a fresh worker with its answers. No tool is called. The first call, wait or
//!   end that is not the journal's is a **divergence**.
//! - A **sealed** journal is its encoding behind an HMAC, see [`seal`] and [`open`].
//!
//! Time is read by the drivers; nothing here waits but a replay, which waits for the worker alone.

mod digest;
mod envelope;
mod error;
mod guest;
mod journal;
mod machine;
mod program;
mod run;
mod session;
mod surface;

pub use envelope::{MIN_KEY_BYTES, open, seal};
pub use error::{AgentError, JournalFault, Uncaught};
pub use journal::{Answer, Event, Journal, RecordedRun, Spent, ToolError, ToolErrorKind};
pub use machine::{Call, Target};
pub use session::{AgentSession, Hooks, Mode, Settings, Step, Turn};
pub use surface::{Surface, Tool};
