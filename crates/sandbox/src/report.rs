//! What was found after applying: the report of a worker that starts, the refusal of one that does not.

use std::error::Error;
use std::fmt;

/// The names of the layers, in the order in which they are applied.
pub mod layer {
    /// The process itself: session, parent's death, descriptors, signals, resource limits, no dumps.
    pub const PROCESS: &str = "process";
    /// Namespaces of its own and an empty, read-only root.
    pub const EMPTY_ROOT: &str = "empty_root";
    /// No root, no capabilities.
    pub const PRIVILEGES: &str = "privileges";
    /// No privileges through `execve`.
    pub const NO_NEW_PRIVS: &str = "no_new_privs";
    /// No files, TCP, outside signals or abstract sockets, by the Landlock security module.
    pub const LANDLOCK: &str = "landlock";
    /// The system-call filter.
    pub const SECCOMP: &str = "seccomp";
    /// The attempts from inside that must all fail.
    pub const SELF_TEST: &str = "self_test";

    /// Every layer, in order.
    pub const ALL: [&str; 7] = [PROCESS, EMPTY_ROOT, PRIVILEGES, NO_NEW_PRIVS, LANDLOCK, SECCOMP, SELF_TEST];

    /// Whether a worker under [`Mode::Require`](crate::Mode::Require) needs the layer. `empty_root` is a bonus: not
    /// every host lets a process make namespaces, and the other layers hold without it.
    pub fn is_required(name: &str) -> bool {
        name != EMPTY_ROOT
    }
}

/// One layer, as it was found after it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// One of [`layer::ALL`].
    pub name: &'static str,
    /// Whether the layer is in force.
    pub applied: bool,
    /// What was checked, or why the layer is not in force.
    pub detail: String,
    /// What would put it in force; empty when it is.
    pub fix: String,
}

/// The layers in the order in which they were applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One entry a layer.
    pub layers: Vec<Layer>,
}

impl Report {
    /// The layer with this name, if it was reached.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// Whether the layer with this name is in force.
    pub fn has(&self, name: &str) -> bool {
        self.layer(name).is_some_and(|layer| layer.applied)
    }

    /// The enforcing layers in force, such as `landlock+seccomp`, or `none`.
    pub fn applied_string(&self) -> String {
        let enforcing: Vec<&str> =
            [layer::LANDLOCK, layer::SECCOMP].into_iter().filter(|name| self.has(name)).collect();
        if enforcing.is_empty() { "none".to_owned() } else { enforcing.join("+") }
    }

    /// Whether every required layer is in force: what [`Mode::Require`](crate::Mode::Require) accepts.
    pub fn is_complete(&self) -> bool {
        layer::ALL.into_iter().filter(|name| layer::is_required(name)).all(|name| self.has(name))
    }

    /// Whether every layer is in force, the empty root included.
    pub fn is_hardened(&self) -> bool {
        layer::ALL.into_iter().all(|name| self.has(name))
    }

    /// The layers that were reached and are not in force.
    pub fn missing(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !layer.applied)
    }
}

/// The worker must not start: a layer that was asked for is not in force. What was applied stays applied; the process
/// is good for saying so and ending.
#[derive(Debug)]
pub struct Refusal {
    /// The layers up to and including the missing one.
    pub report: Report,
    /// The missing layer.
    pub layer: &'static str,
    cause: Box<dyn Error + Send + Sync>,
}

impl Refusal {
    pub(crate) fn new(report: Report, layer: &'static str, cause: Box<dyn Error + Send + Sync>) -> Self {
        Self { report, layer, cause }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the sandbox layer {} is not in force: {}", self.layer, self.cause)?;
        match self.report.layer(self.layer) {
            Some(layer) if !layer.fix.is_empty() => write!(f, "; to fix it, {}", layer.fix),
            _ => Ok(()),
        }
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
