//! What can go wrong with a runtime, from the host's point of view.

use std::fmt;
use std::time::Duration;

use pydeno_wire::Text;
use pydeno_wire::message::{ExitStatus, JsError, LayerReport, SandboxReport};

/// Why a runtime could not start, or an operation on one failed.
///
/// [`Error::kind`] is the stable name of each, [`Error::runtime_survives`] says what is still alive.
#[derive(Clone, Debug)]
pub enum Error {
    /// The guest threw. The runtime is usable.
    Js(Box<JsError>),
    /// A value cannot cross. The runtime is usable.
    Conversion {
        /// Where it stands, from the value's root: `$.items[3].x`.
        path: String,
        /// What stands there and why it does not cross.
        reason: String,
    },
    /// The result is a promise that nothing is left to settle. The runtime is usable.
    NeverSettles,
    /// The result is a promise, and promises do not settle while the guest waits for a host function that is not
    /// asynchronous. The runtime is usable.
    CannotWait,
    /// The guest's function that was to be called has been released. The runtime is usable.
    UnknownFunction,
    /// The stream has no more items. The runtime is usable.
    StreamEnded,
    /// The script ran longer than allowed and was stopped by the engine. The runtime is usable.
    Stopped {
        /// The limit it ran into.
        timeout: Duration,
    },
    /// The engine's heap passed its limit and the script was stopped. The runtime is usable.
    HeapFull {
        /// The limit in bytes.
        max_heap_size: u64,
    },
    /// The evaluation called more host functions than allowed and was stopped. The runtime is usable.
    HostCallBudget {
        /// The limit.
        max_host_calls: u64,
    },
    /// The evaluation had more asynchronous host functions in flight than allowed and was stopped. The runtime is usable.
    InflightLimit {
        /// The limit.
        max_inflight_host_calls: u64,
    },
    /// The evaluation waited for host functions longer than allowed and was stopped. The runtime is usable.
    HostWait {
        /// The limit.
        max_host_wait: Duration,
    },
    /// The evaluation took longer in all than allowed and was stopped. The runtime is usable.
    StoppedLate {
        /// The limit.
        request_timeout: Duration,
    },
    /// The caller asked to stop the evaluation, and the script was stopped. The runtime is usable.
    Cancelled,
    /// The worker passed a limit and was killed. The runtime is closed.
    Killed {
        /// Which limit.
        limit: Limit,
        /// The limit's value in words: `1073741824 bytes`.
        allowed: String,
    },
    /// The worker's memory, CPU time and threads could not be read, so it was killed. The runtime is closed.
    LimitsUnmeasurable,
    /// The worker died by itself or was killed by somebody else. The runtime is closed.
    WorkerCrashed {
        /// How it ended.
        status: ExitStatus,
    },
    /// The kernel killed the worker for a system call that it never has a reason to make. The runtime is closed.
    SandboxViolation,
    /// The worker did not follow the protocol and was killed. The runtime is closed.
    ProtocolViolation {
        /// What it did.
        what: String,
    },
    /// A layer of the sandbox that was asked for is not in force. No guest code has run.
    SandboxUnavailable {
        /// Every layer, as the worker found it.
        report: SandboxReport,
    },
    /// The engine cannot be loaded. No guest code has run.
    EngineUnavailable {
        /// What was tried and what to install.
        reason: String,
    },
    /// The worker's executable cannot be started. No guest code has run.
    WorkerUnavailable {
        /// Which step failed, and what to do.
        reason: String,
    },
    /// No worker of the pool became free in time. The pool, and every runtime checked out of it, is usable.
    CheckoutTimeout {
        /// How long was waited.
        waited: Duration,
        /// How many workers the pool may have.
        max_workers: usize,
    },
    /// The pool was closed before or during the operation. Runtimes checked out of it are usable.
    PoolClosed,
    /// The runtime was closed before or during the operation.
    Closed,
    /// The runtime was terminated from another thread during the operation. It is closed.
    Terminated,
    /// The operation was made from a host function that this runtime is waiting for. The runtime is usable.
    Reentrant,
    /// Another thread or an event loop is evaluating. The runtime is usable.
    Busy,
    /// The runtime belongs to the process that this one was forked from. It is usable there.
    ForeignProcess,
    /// The arguments are outside what can be asked for. The runtime is usable.
    InvalidInput {
        /// What is wrong, and what would be right.
        what: String,
    },
}

/// A limit that the host enforces from outside by killing the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Wall time: the request's, or the script's when the engine could not stop it.
    Time,
    /// CPU time of all threads.
    Cpu,
    /// Private memory.
    Memory,
    /// Live threads.
    Threads,
}

impl Error {
    /// The error's stable name, the same that Python sees as `.kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Js(_) | Self::NeverSettles => "js_error",
            Self::Conversion { .. }
            | Self::InvalidInput { .. }
            | Self::CannotWait
            | Self::UnknownFunction
            | Self::StreamEnded
            | Self::Reentrant
            | Self::Busy
            | Self::ForeignProcess => "invalid_input",
            Self::Stopped { .. } | Self::StoppedLate { .. } | Self::Killed { limit: Limit::Time, .. } => {
                "timeout"
            }
            Self::HeapFull { .. } | Self::Killed { limit: Limit::Memory, .. } => "memory_limit",
            Self::Killed { limit: Limit::Cpu, .. } => "cpu_limit",
            Self::Killed { limit: Limit::Threads, .. } => "thread_limit",
            Self::HostCallBudget { .. } => "host_call_budget",
            Self::InflightLimit { .. } => "inflight_limit",
            Self::HostWait { .. } => "host_wait",
            Self::Cancelled => "cancelled",
            Self::LimitsUnmeasurable => "limits_unmeasurable",
            Self::WorkerCrashed { .. } | Self::WorkerUnavailable { .. } => "worker_crashed",
            Self::SandboxViolation => "sandbox_violation",
            Self::ProtocolViolation { .. } => "protocol_violation",
            Self::SandboxUnavailable { .. } => "sandbox_unavailable",
            Self::EngineUnavailable { .. } => "engine_unavailable",
            Self::CheckoutTimeout { .. } => "checkout_timeout",
            Self::Closed | Self::PoolClosed => "closed",
            Self::Terminated => "terminated",
        }
    }

    /// Whether the runtime takes further evaluations after this error.
    pub fn runtime_survives(&self) -> bool {
        matches!(
            self,
            Self::Js(_)
                | Self::Conversion { .. }
                | Self::NeverSettles
                | Self::CannotWait
                | Self::UnknownFunction
                | Self::StreamEnded
                | Self::Stopped { .. }
                | Self::HeapFull { .. }
                | Self::HostCallBudget { .. }
                | Self::InflightLimit { .. }
                | Self::HostWait { .. }
                | Self::StoppedLate { .. }
                | Self::Busy
                | Self::CheckoutTimeout { .. }
                | Self::Cancelled
                | Self::Reentrant
                | Self::InvalidInput { .. }
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Js(error) => {
                let (name, message) = (shown(&error.name), shown(&error.message));
                let between = if name.is_empty() || message.is_empty() { "" } else { ": " };
                write!(f, "{name}{between}{message}")
            }
            Self::Conversion { path, reason } => {
                write!(f, "{} cannot cross: {}", shown(&path.as_str().into()), shown(&reason.as_str().into()))
            }
            Self::NeverSettles => f.write_str(
                "the result is a promise that can never settle: no job and no host function is left that would \
                 resolve it",
            ),
            Self::CannotWait => f.write_str(
                "the result is a promise, and none can settle while the guest waits for the host function that makes \
                 this call; make the host function async, and await the call",
            ),
            Self::StreamEnded => f.write_str("the stream has no more items"),
            Self::UnknownFunction => {
                f.write_str("the function was released; keep its JsFunction open for as long as it is called")
            }
            Self::Stopped { .. }
            | Self::HeapFull { .. }
            | Self::HostCallBudget { .. }
            | Self::InflightLimit { .. }
            | Self::HostWait { .. }
            | Self::StoppedLate { .. } => self.write_stopped(f),
            Self::Cancelled => f.write_str("the evaluation was cancelled; the runtime is usable"),
            Self::Killed { limit, allowed } => {
                let (what, option) = match limit {
                    Limit::Time => ("did not end within", "`timeout` or `request_timeout`"),
                    Limit::Cpu => ("used more CPU time than", "`timeout`"),
                    Limit::Memory => ("used more memory than", "`max_memory`"),
                    Limit::Threads => ("ran more threads than", "`jit`"),
                };
                write!(
                    f,
                    "the worker {what} {allowed} and was killed; this runtime is closed, make a new one; see {option}"
                )
            }
            Self::LimitsUnmeasurable => f.write_str(
                "the worker's memory, CPU time and threads cannot be read from /proc, so its limits cannot be \
                 enforced and it was killed; make /proc readable for this user (hidepid?) and make a new runtime",
            ),
            Self::WorkerCrashed { status } => write_end(f, *status),
            Self::SandboxViolation => f.write_str(
                "the kernel killed the worker for a forbidden system call (SIGSYS); guest code may have taken over \
                 the engine: treat the script as hostile; this runtime is closed",
            ),
            Self::ProtocolViolation { what } => write!(
                f,
                "the worker broke the protocol ({}) and was killed; guest code may have taken over the engine: \
                 treat the script as hostile; this runtime is closed",
                shown(&what.as_str().into())
            ),
            Self::SandboxUnavailable { report } => write_missing_layers(f, report),
            Self::EngineUnavailable { reason } | Self::WorkerUnavailable { reason } => f.write_str(reason),
            Self::CheckoutTimeout { waited, max_workers } => {
                write_checkout_timeout(f, *waited, *max_workers)
            }
            Self::PoolClosed => f.write_str("the pool is closed; make a new one"),
            Self::Closed => f.write_str("the runtime is closed; make a new one"),
            Self::Terminated => f.write_str("the runtime was terminated; make a new one"),
            Self::Reentrant => f.write_str(
                "this runtime is waiting for the host function that is making the call; use another runtime there",
            ),
            Self::Busy => f.write_str(
                "this runtime is evaluating on an event loop or on another thread; wait for that, or use another runtime",
            ),
            Self::ForeignProcess => f.write_str(
                "this runtime belongs to the process that this one was forked from; make a new runtime after the fork",
            ),
            Self::InvalidInput { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The text of a limit at which a script was stopped.
    fn write_stopped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { timeout } => write!(
                f,
                "the script ran longer than its timeout of {timeout:?} and was stopped; the runtime is usable; raise \
                 `timeout` if the work is legitimate"
            ),
            Self::HeapFull { max_heap_size } => write!(
                f,
                "the script's heap passed {max_heap_size} bytes and it was stopped; the runtime is usable; raise \
                 `max_heap_size` if the work is legitimate"
            ),
            Self::HostCallBudget { max_host_calls } => write!(
                f,
                "the script called more than {max_host_calls} host functions in one evaluation and was stopped; the \
                 runtime is usable; raise `max_host_calls` if the work is legitimate"
            ),
            Self::InflightLimit { max_inflight_host_calls } => write!(
                f,
                "the script had more than {max_inflight_host_calls} async host functions in flight at a time and was \
                 stopped; the runtime is usable; raise `max_inflight_host_calls` if the work is legitimate"
            ),
            Self::HostWait { max_host_wait } => write!(
                f,
                "the script waited for host functions longer than {max_host_wait:?} in all and was stopped; the \
                 runtime is usable; raise `max_host_wait`, and `request_timeout` with it, if the functions need longer"
            ),
            Self::StoppedLate { request_timeout } => write!(
                f,
                "the evaluation took longer than {request_timeout:?} with host functions and was stopped; the runtime is \
                 usable; raise `request_timeout` if the work is legitimate"
            ),
            _ => Ok(()),
        }
    }
}

/// The longest text of a worker's in an error's own, in bytes; the whole is in the error's fields.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// What a person may see of a worker's text.
fn shown(text: &Text) -> String {
    text.shortened(MAX_SHOWN_BYTES).display_safe().into_owned()
}

fn write_end(f: &mut fmt::Formatter<'_>, status: ExitStatus) -> fmt::Result {
    match status {
        ExitStatus::Signal(9) => f.write_str(
            "the worker was killed from outside (SIGKILL), perhaps by the kernel for lack of memory; this runtime is \
             closed, make a new one",
        ),
        ExitStatus::Signal(signal) => {
            write!(f, "the worker died of signal {signal}; this runtime is closed, make a new one")
        }
        ExitStatus::Code(code) => {
            write!(f, "the worker exited with code {code}; this runtime is closed, make a new one")
        }
        ExitStatus::Unknown => f.write_str("the worker is gone; this runtime is closed, make a new one"),
    }
}

fn write_checkout_timeout(f: &mut fmt::Formatter<'_>, waited: Duration, max_workers: usize) -> fmt::Result {
    write!(
        f,
        "none of the pool's {max_workers} workers became free within {waited:?}; close runtimes when they are done, or \
         raise `max_workers` or `checkout_timeout`"
    )
}

fn write_missing_layers(f: &mut fmt::Formatter<'_>, report: &SandboxReport) -> fmt::Result {
    f.write_str("no worker was started, because its sandbox would not be what was asked for")?;
    for LayerReport { name, detail, fix, .. } in report.layers.iter().filter(|layer| !layer.applied) {
        write!(f, "; {}: {}", shown(&name.as_str().into()), shown(&detail.as_str().into()))?;
        if !fix.is_empty() {
            write!(f, " (to fix: {})", shown(&fix.as_str().into()))?;
        }
    }
    Ok(())
}
