//! Supervision: everything that happens outside a worker.
//!
//! A [`Runtime`] is one guest's home. It holds a *worker*, a process that has confined itself before any guest code,
//! and talks to it over a socket. Workers are forked by a *zygote*, one process for each JIT tier that has loaded
//! the engine and never sees guest code. The *session* is the conversation with a worker as a state machine without
//! input or output. Two *drivers* move its bytes: one on the calling thread, which waits, and one for an event loop, which never does. A [`Pool`] has workers ready before they
//! are asked for. The *monitor*, one thread for the
//! whole process, watches busy workers from outside and kills those that pass a limit.
//!
//! Nothing here trusts a worker: what it sends is checked against what the session allows at that moment, and the
//! first violation ends it. Nothing here runs JavaScript or knows Python.

mod affinity;
pub mod agent;
mod blocking;
mod cgroup;
mod clock;
mod error;
mod event_loop;
mod first_words;
pub mod fork_generation;
mod host_functions;
mod link;
mod monitor;
mod options;
mod oversight;
mod pool;
mod process_usage;
mod rhythm;
mod runtime;
mod session;
mod signal_mask;
mod status;
mod supervisor;
mod turn;
mod watch;
mod webassembly;
mod worker;
mod zygote;

pub use error::{Error, Limit};
pub use event_loop::{Ended, Progress};
pub use host_functions::{HostFunctions, Interrupted};
pub use options::{JitTier, Options, WebAssembly, WorkerStart};
pub use pool::{Pool, PoolStats, Spare, Ticket};
pub use runtime::Runtime;
pub use status::{SandboxStatus, sandbox_status};
pub use supervisor::{Supervisor, ZygoteRotation, find_engine, supervisor};
pub use webassembly::{WasmFunction, WasmOutline};
pub use zygote::WorkerBinary;
