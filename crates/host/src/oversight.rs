//! What the host must be able to do to a worker for its limits to mean anything: read what it uses, and end it.

use pydeno_wire::message::LayerReport;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::cgroup::Containment;
use crate::process_usage::UsageReader;

/// The name of the layer that says whether a worker's use of resources can be read.
pub(crate) const RESOURCE_PROBES: &str = "resource_probes";
/// The name of the layer that says whether a worker can be killed.
pub(crate) const TERMINATION: &str = "termination";

/// Reads the memory, CPU time and threads of the process `pid`, as the monitor does, and looks whether it is in its group.
pub(crate) fn resource_probes(pid: Pid, containment: &Containment) -> LayerReport {
    let group = match containment {
        Containment::Group(group) => match (group.holds(pid), group.memory_limit()) {
            (true, Ok(limit)) => format!("in a group of its own: memory.max is {} MiB", limit >> 20),
            (true, Err(error)) => {
                return missing(RESOURCE_PROBES, format!("the limit of a group: {error}"), GROUP_FIX);
            }
            (false, _) => {
                let detail = "a confined process is not in the group that was made for it".to_owned();
                return missing(RESOURCE_PROBES, detail, GROUP_FIX);
            }
        },
        Containment::Sampled(reason) => reason.clone(),
        Containment::Failed(reason) => return missing(RESOURCE_PROBES, reason.clone(), GROUP_FIX),
    };
    match UsageReader::open(pid.as_raw_pid()).and_then(|reader| reader.sample()) {
        Ok(usage) if usage.memory > 0 && usage.threads > 0 => in_force(
            RESOURCE_PROBES,
            format!(
                "read from outside: {} KiB of memory, {} ms of CPU time, {} thread{}; sampled; {group}",
                usage.memory >> 10,
                usage.cpu.as_millis(),
                usage.threads,
                if usage.threads == 1 { "" } else { "s" },
            ),
        ),
        Ok(usage) => missing(
            RESOURCE_PROBES,
            format!("/proc says that a live process uses nothing: {usage:?}"),
            PROC_FIX,
        ),
        Err(error) => missing(
            RESOURCE_PROBES,
            format!("memory, CPU time and threads of a confined process cannot be read: {error}"),
            if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                FILES_FIX
            } else {
                PROC_FIX
            },
        ),
    }
}

/// Asks whether this process may signal the process `pid`, without doing so.
pub(crate) fn termination(pid: Pid) -> LayerReport {
    match test_kill_process(pid) {
        Ok(()) => in_force(TERMINATION, "the host may kill the worker".to_owned()),
        Err(error) => cannot_kill(error),
    }
}

/// The kernel does not let this process kill a worker.
pub(crate) fn cannot_kill(error: Errno) -> LayerReport {
    missing(TERMINATION, format!("the host may not kill a confined process: {error}"), KILL_FIX)
}

/// A layer that was found in force.
pub(crate) fn in_force(name: &str, detail: String) -> LayerReport {
    LayerReport { name: name.to_owned(), applied: true, detail, fix: String::new() }
}

/// A layer that is not in force, and what would change that.
pub(crate) fn missing(name: &str, detail: String, fix: &str) -> LayerReport {
    LayerReport { name: name.to_owned(), applied: false, detail, fix: fix.to_owned() }
}

const PROC_FIX: &str = "mount /proc of the host's own process namespace where it runs, without hidepid or with a gid= \
     that its user belongs to";
const GROUP_FIX: &str = "delegate to this user a cgroup v2 group that holds no process, and the group around it and the host's, or unset \
     PYDENO_CGROUP";
const FILES_FIX: &str = "let the host open two more descriptors (ulimit -n)";
const KILL_FIX: &str = "run the host as an ordinary user, or leave CAP_KILL to its container (docker run --cap-add=KILL), \
     and let its system-call filter pass kill and pidfd_send_signal";
