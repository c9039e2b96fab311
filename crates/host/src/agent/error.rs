//! What can go wrong with a session.

use std::fmt;
use std::time::Duration;

use pydeno_wire::message::JsError;

use crate::agent::journal::ToolErrorKind;
use crate::error::Error;

/// Why a run has no value, or an operation on a session failed.
#[derive(Debug)]
pub enum AgentError {
    /// As with any runtime.
    Runtime(Error),
    /// The guest did not catch the error of a tool. The session is usable.
    Uncaught(Box<Uncaught>),
    /// The session's budget of calls is used up and the run was stopped. Its runs before are kept; programs that call no
    /// tools still run.
    CallBudget {
        /// The limit.
        max_tool_calls: u64,
    },
    /// The run waited longer for answers than allowed and was stopped. The session is usable.
    MaxPause {
        /// The limit.
        max_pause: Duration,
    },
    /// A replay is not what the journal says.
    Divergence {
        /// Which run, from 1.
        run: usize,
        /// What differs.
        what: String,
    },
    /// There is no journal, or it is not one that can be used.
    Journal(JournalFault),
}

/// An error of a tool that the guest did not catch.
#[derive(Debug)]
pub struct Uncaught {
    /// Why the call was answered with an error.
    pub kind: ToolErrorKind,
    /// The number of the call.
    pub call: u64,
    /// The tool's number, if there is such a tool.
    pub tool: Option<usize>,
    /// The error as the guest threw it.
    pub error: JsError,
}

/// Why a journal cannot be used. No worker was started for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalFault {
    /// The key is shorter than [`MIN_KEY_BYTES`](crate::agent::MIN_KEY_BYTES).
    ShortKey,
    /// The bytes are no journal, or are cut off.
    NoJournal,
    /// It was changed, signed with another key, or is for other associated data.
    Signature,
    /// It is longer than allowed.
    TooLong {
        /// The limit in bytes.
        most: usize,
    },
    /// It is signed and not what a journal looks like.
    Malformed(String),
    /// It is of another build, engine, or of a session with other options.
    Foreign(String),
    /// The session keeps no journal, or no longer.
    NotKept(&'static str),
}

impl AgentError {
    /// The error's stable name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Runtime(error) => error.kind(),
            Self::Uncaught(uncaught) => match uncaught.kind {
                ToolErrorKind::Failed => "tool_failed",
                ToolErrorKind::NotFound => "tool_not_found",
                ToolErrorKind::Budget => "tool_budget",
                ToolErrorKind::Arguments => "js_error",
            },
            Self::CallBudget { .. } => "host_call_budget",
            Self::MaxPause { .. } => "max_pause",
            Self::Divergence { .. } => "replay_divergence",
            Self::Journal(JournalFault::ShortKey) => "invalid_input",
            Self::Journal(_) => "journal_invalid",
        }
    }

    /// Whether the session takes further runs in the same worker.
    pub fn runtime_survives(&self) -> bool {
        match self {
            Self::Runtime(error) => error.runtime_survives(),
            Self::Uncaught(_) | Self::CallBudget { .. } | Self::MaxPause { .. } | Self::Journal(_) => true,
            Self::Divergence { .. } => false,
        }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => error.fmt(f),
            Self::Uncaught(uncaught) => {
                let JsError { name, message, .. } = &uncaught.error;
                write!(f, "{}: {}", name.display_safe(), message.display_safe())
            }
            Self::CallBudget { max_tool_calls } => write!(
                f,
                "the session has made {max_tool_calls} calls of tools and the run was stopped; raise `max_tool_calls` if \
                 the work is legitimate"
            ),
            Self::MaxPause { max_pause } => write!(
                f,
                "the run waited longer than {max_pause:?} for answers and was stopped; raise `max_pause`, or dump the \
                 session while it waits"
            ),
            Self::Divergence { run, what } => write!(
                f,
                "the replay of run {run} is not what the journal says: {what}; the session cannot be continued here"
            ),
            Self::Journal(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortKey => f.write_str("the key must have 16 bytes at least; use secrets.token_bytes(32)"),
            Self::NoJournal => f.write_str("the data is not a journal of this version, or is cut off"),
            Self::Signature => f.write_str(
                "the journal's signature does not match: it was changed, signed with another key, or is for other \
                 associated data",
            ),
            Self::TooLong { most } => {
                write!(f, "the journal is longer than {most} bytes; raise `max_journal_bytes`")
            }
            Self::Malformed(what) => write!(f, "the journal cannot be read: {what}"),
            Self::Foreign(what) => write!(f, "the journal cannot be used here: {what}"),
            Self::NotKept(why) => write!(f, "there is no journal: {why}"),
        }
    }
}

impl std::error::Error for AgentError {}
impl std::error::Error for JournalFault {}

impl From<Error> for AgentError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<JournalFault> for AgentError {
    fn from(fault: JournalFault) -> Self {
        Self::Journal(fault)
    }
}
