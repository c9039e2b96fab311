//! What the sandbox can be on this machine, found out with throwaway processes and without an engine.
//!
//! The worker's own executable, in probe mode, does what a zygote and its worker do: a child of it proves that the filter
//! kills, then it confines itself and reports. A second one is measured and killed from here, as the monitor would. The calling
//! process is left as it was.

mod probe;
mod words;

use std::path::Path;

use pydeno_wire::message::LayerReport;

use crate::oversight::{RESOURCE_PROBES, TERMINATION, missing};

/// Every layer, in the order in which they are told.
const LAYERS: [&str; 10] = [
    "seatbelt",
    "process",
    "empty_root",
    "privileges",
    "no_new_privs",
    "landlock",
    "seccomp",
    "self_test",
    RESOURCE_PROBES,
    TERMINATION,
];
/// Those that a worker under `sandbox="require"` needs on Linux.
const REQUIRED: [&str; 8] = [
    "process",
    "privileges",
    "no_new_privs",
    "landlock",
    "seccomp",
    "self_test",
    RESOURCE_PROBES,
    TERMINATION,
];
/// Those that a worker's sandbox is named after.
const ENFORCING: [&str; 2] = ["landlock", "seccomp"];
/// The bonus: not every host lets a process make namespaces, and the other layers hold without it.
const EMPTY_ROOT: &str = "empty_root";

/// The layers that a worker could have here, as they were checked a moment ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxStatus {
    layers: Vec<LayerReport>,
    kernel: String,
}

/// Finds out what the sandbox can be here, with the worker's executable `worker`.
///
/// It never fails: what could not be found out is a layer that is not in force, with the reason. It takes milliseconds,
/// and a second at the most; what overruns that is killed and reaped.
pub fn sandbox_status(worker: &Path) -> SandboxStatus {
    SandboxStatus::of(&probe::examine(worker))
}

impl SandboxStatus {
    /// The status of an installation that has no worker to ask.
    pub fn unknown(reason: &str) -> Self {
        Self::of(&Err(probe::Unknown { reason: reason.to_owned(), fix: probe::REINSTALL }))
    }

    fn of(found: &Result<Vec<LayerReport>, probe::Unknown>) -> Self {
        let layer = |name: &'static str| match found {
            _ if name == "seatbelt" => missing(name, "not applicable on Linux".to_owned(), ""),
            Ok(layers) => layers.iter().find(|layer| layer.name == name).cloned().unwrap_or_else(|| {
                let refused =
                    layers.iter().find(|layer| !layer.applied).map_or("an earlier one", |layer| &layer.name);
                missing(name, format!("not reached: {refused} was refused"), "put the refused layer in force")
            }),
            Err(unknown) => missing(name, unknown.reason.clone(), unknown.fix),
        };
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        Self { layers: LAYERS.into_iter().map(layer).collect(), kernel }
    }

    /// Every layer, in the order in which a worker applies them.
    pub fn layers(&self) -> &[LayerReport] {
        &self.layers
    }

    /// The names of the layers that `sandbox="require"` needs on this platform.
    pub fn required(&self) -> &'static [&'static str] {
        &REQUIRED
    }

    /// What this was built for.
    pub fn platform(&self) -> &'static str {
        std::env::consts::OS
    }

    /// The kernel's release.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// The enforcing layers in force, such as `landlock+seccomp`, or `none`: what a worker would report.
    pub fn applied(&self) -> String {
        let names: Vec<&str> = ENFORCING.into_iter().filter(|name| self.has(name)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join("+") }
    }

    /// Whether `sandbox="require"` starts here.
    pub fn is_complete(&self) -> bool {
        REQUIRED.into_iter().all(|name| self.has(name))
    }

    /// Whether a worker also gets an empty root.
    pub fn is_hardened(&self) -> bool {
        self.is_complete() && self.has(EMPTY_ROOT)
    }

    fn has(&self, name: &str) -> bool {
        self.layers.iter().any(|layer| layer.name == name && layer.applied)
    }

    /// The layers that are not in force and could be.
    fn missing(&self) -> impl Iterator<Item = &LayerReport> {
        self.layers.iter().filter(|layer| !layer.applied && !layer.fix.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oversight::in_force;

    fn with_missing(absent: &[&str]) -> SandboxStatus {
        let report = |name: &&str| {
            if absent.contains(name) {
                missing(name, "taken away".to_owned(), "give it back")
            } else {
                in_force(name, "checked".to_owned())
            }
        };
        SandboxStatus::of(&Ok(LAYERS.iter().map(report).collect()))
    }

    #[test]
    fn every_required_layer_is_needed_to_be_complete() {
        assert!(with_missing(&[]).is_complete());
        for name in REQUIRED {
            assert!(!with_missing(&[name]).is_complete(), "{name}");
        }
    }

    #[test]
    fn an_empty_root_is_a_bonus() {
        let status = with_missing(&[EMPTY_ROOT]);
        assert!(status.is_complete());
        assert!(!status.is_hardened());
        assert!(with_missing(&[]).is_hardened());
        assert!(!with_missing(&["self_test"]).is_hardened(), "what is not complete is not hardened");
        assert_eq!(status.warnings().len(), 1);
    }

    #[test]
    fn the_enforcing_layers_name_the_sandbox() {
        assert_eq!(with_missing(&[]).applied(), "landlock+seccomp");
        assert_eq!(with_missing(&["landlock"]).applied(), "seccomp");
        assert_eq!(with_missing(&["landlock", "seccomp"]).applied(), "none");
    }

    #[test]
    fn what_was_not_reached_says_which_layer_stopped_it() {
        let status =
            SandboxStatus::of(&Ok(vec![missing("process", "no session".to_owned(), "let setsid pass")]));
        let landlock = status.layers().iter().find(|layer| layer.name == "landlock").unwrap();
        assert_eq!(landlock.detail, "not reached: process was refused");
        assert!(!status.is_complete());
    }

    #[test]
    fn a_machine_that_lacks_nothing_has_no_warning() {
        assert_eq!(with_missing(&[]).warnings(), Vec::<String>::new());
    }
}
