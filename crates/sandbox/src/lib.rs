//! The layers that a worker applies to itself before any guest code, and the proof that they hold.
//!
//! # Terms
//!
//! - A **layer** is one mechanism of the kernel. It is *applied* when a check made afterwards says that it is in
//!   force; that the kernel accepted a call is not enough.
//! - The **canary** is something that could be opened a moment before Landlock and must not be afterwards.
//! - The **filter** is the seccomp program compiled from the table in [`syscalls`]. It answers a call with *allow*,
//!   *refuse* (`EPERM`), *absent* (`ENOSYS`) or *kill* (the process dies with `SIGSYS`).
//! - The **self-test** tries from inside what a guest would try. Anything that works refuses the start.
//! - A **template** is a process that confines itself as a worker does, but may still fork. Its forks are workers: they
//!   have its layers from the first moment, and add those that take the fork away again.
//!
//! # Order
//!
//! | layer | module | needed by [`Mode::Require`] |
//! |---|---|---|
//! | `process` | `process` | yes, in every mode |
//! | `empty_root` | `empty_root` | no: a bonus that not every host allows |
//! | `privileges` | `privileges` | yes |
//! | `no_new_privs` | `no_new_privs` | yes |
//! | `landlock` | `landlock` | yes |
//! | `seccomp` | `seccomp`, from [`syscalls`] by [`filter`] | yes |
//! | `self_test` | `self_test` | yes |
//!
//! Root's identity is given up before `empty_root`: a process can map only its own id into a new user namespace, and
//! the kernel exempts root from the limit on tasks. The capabilities follow in `privileges`.
//!
//! # What it does not do
//!
//! It does not bound memory or time (the host samples and kills), does not start processes apart from the throwaway
//! child of [`kill_is_enforced`], and knows nothing of the engine but the system calls it makes.

mod empty_root;
pub mod filter;
mod landlock;
mod no_new_privs;
mod privileges;
mod probe;
mod process;
mod report;
mod request;
mod seccomp;
mod self_test;
mod sys;
pub mod syscalls;

use std::error::Error;
use std::fmt;

use filter::Role;

pub use probe::kill_is_enforced;
pub use report::{Layer, Refusal, Report, layer};
pub use request::{Limits, Mode, Request};

/// A layer's error, with the words that help to put the layer in force.
trait Missing: Error + Send + Sync + 'static {
    fn fix(&self) -> String;
}

/// What a layer found: the words for [`Layer::detail`], or why it is not in force.
type Found<E> = Result<String, E>;

/// Confines this process for the rest of its life and reports what is in force.
///
/// # Errors
///
/// A [`Refusal`] when the `process` layer fails, in any mode, or another required layer under [`Mode::Require`]. The
/// process is then partly confined and must end.
///
/// # Safety
///
/// Every descriptor outside [`Request::keep`] is closed, whoever owns it: the caller must see to it that nothing in the
/// process uses one of them, or its number, afterwards.
#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
pub unsafe fn apply(request: &Request<'_>) -> Result<Report, Refusal> {
    // SAFETY: passed on to the caller.
    unsafe { confine(Role::Worker, request) }
}

/// As [`apply`], for a process that is to fork workers from then on. It can do what a worker can, and besides fork
/// processes that do [`apply_in_fork`], and wait for them; nothing that would be a breach of the self-test.
///
/// # Errors
///
/// As `apply`.
///
/// # Safety
///
/// As `apply`.
#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
pub unsafe fn apply_as_template(request: &Request<'_>) -> Result<Report, Refusal> {
    // SAFETY: passed on to the caller.
    unsafe { confine(Role::Template, request) }
}

#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
unsafe fn confine(role: Role, request: &Request<'_>) -> Result<Report, Refusal> {
    let mut progress = Progress { mode: request.mode, report: Report::default() };
    // SAFETY: the caller promises that no descriptor outside `keep` is used again.
    let process = unsafe { process::apply(request) };
    progress.record_floor(layer::PROCESS, process)?;
    if request.mode == Mode::Off {
        for name in
            [layer::EMPTY_ROOT, layer::PRIVILEGES, layer::NO_NEW_PRIVS, layer::LANDLOCK, layer::SECCOMP]
        {
            progress.skip(name, "the sandbox is off", "start with the sandbox on");
        }
        progress.record(layer::SELF_TEST, self_test::apply(request))?;
        return Ok(progress.report);
    }
    let identity = privileges::leave_root();
    if request.empty_root {
        progress.record(layer::EMPTY_ROOT, empty_root::apply(request))?;
    } else {
        progress.skip(layer::EMPTY_ROOT, "not asked for", "ask for an empty root");
    }
    progress.record(layer::PRIVILEGES, privileges::apply(identity))?;
    if let Err(error) = process::hold(request) {
        progress.record_floor(layer::PROCESS, Err(error))?;
    }
    progress.record(layer::NO_NEW_PRIVS, no_new_privs::apply())?;
    progress.record(layer::LANDLOCK, landlock::apply())?;
    progress.record(layer::SECCOMP, seccomp::apply(role))?;
    progress.record(layer::SELF_TEST, self_test::apply(request))?;
    Ok(progress.report)
}

/// Makes a worker of this fork of a template: `template` is the report of [`apply_as_template`]. Namespaces, root, identity
/// and the missing privileges came with the fork and stay shared; the process, a Landlock domain and the worker's filter
/// are its own, and the whole self-test is done again. A layer that the template lacked is still missing, unless it is one
/// of those.
///
/// # Errors
///
/// As [`apply`].
///
/// # Safety
///
/// As [`apply`].
#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
pub unsafe fn apply_in_fork(request: &Request<'_>, template: &Report) -> Result<Report, Refusal> {
    let mut progress = Progress { mode: request.mode, report: Report::default() };
    // SAFETY: the caller promises that no descriptor outside `keep` is used again.
    let process = unsafe { process::apply_in_fork(request) };
    progress.record_floor(layer::PROCESS, process)?;
    for name in [layer::EMPTY_ROOT, layer::PRIVILEGES, layer::NO_NEW_PRIVS] {
        progress.inherit(name, template)?;
    }
    if request.mode == Mode::Off {
        progress.inherit(layer::LANDLOCK, template)?;
        progress.inherit(layer::SECCOMP, template)?;
    } else {
        if template.has(layer::LANDLOCK) {
            progress.record(layer::LANDLOCK, landlock::apply_in_fork())?;
        } else {
            progress.inherit(layer::LANDLOCK, template)?;
        }
        progress.record(layer::SECCOMP, seccomp::apply(Role::Worker))?;
    }
    progress.record(layer::SELF_TEST, self_test::apply(request))?;
    Ok(progress.report)
}

/// The report so far, and the mode that decides whether a missing layer ends it.
struct Progress {
    mode: Mode,
    report: Report,
}

impl Progress {
    /// A layer that every mode needs.
    fn record_floor<E: Missing>(&mut self, name: &'static str, found: Found<E>) -> Result<(), Refusal> {
        self.add(name, found).map_or(Ok(()), |cause| self.refuse(name, cause))
    }

    fn record<E: Missing>(&mut self, name: &'static str, found: Found<E>) -> Result<(), Refusal> {
        match self.add(name, found) {
            Some(cause) if self.mode == Mode::Require && layer::is_required(name) => self.refuse(name, cause),
            _ => Ok(()),
        }
    }

    fn add<E: Missing>(&mut self, name: &'static str, found: Found<E>) -> Option<E> {
        let (entry, cause) = match found {
            Ok(detail) => (Layer { name, applied: true, detail, fix: String::new() }, None),
            Err(error) => {
                (Layer { name, applied: false, detail: error.to_string(), fix: error.fix() }, Some(error))
            }
        };
        match self.report.layers.iter_mut().find(|layer| layer.name == name) {
            Some(layer) => *layer = entry,
            None => self.report.layers.push(entry),
        }
        cause
    }

    /// Takes over what a template found about a layer that a fork cannot apply.
    fn inherit(&mut self, name: &'static str, template: &Report) -> Result<(), Refusal> {
        match template.layer(name) {
            Some(found) if found.applied => {
                let detail = format!("{}; shared with its template", found.detail);
                self.report.layers.push(Layer { detail, ..found.clone() });
                Ok(())
            }
            Some(found) => {
                let missing = NotInherited { detail: found.detail.clone(), fix: found.fix.clone() };
                self.record(name, Err(missing))
            }
            None => self.record(name, Err(NotInherited::not_reached())),
        }
    }

    fn refuse<E: Missing>(&mut self, name: &'static str, cause: E) -> Result<(), Refusal> {
        Err(Refusal::new(std::mem::take(&mut self.report), name, Box::new(cause)))
    }

    fn skip(&mut self, name: &'static str, detail: &str, fix: &str) {
        self.report.layers.push(Layer {
            name,
            applied: false,
            detail: detail.to_owned(),
            fix: fix.to_owned(),
        });
    }
}

/// A layer that a fork lacks because its template does.
#[derive(Debug)]
struct NotInherited {
    detail: String,
    fix: String,
}

impl NotInherited {
    fn not_reached() -> Self {
        Self {
            detail: "its template did not come to it".to_owned(),
            fix: "look at what the template reports".to_owned(),
        }
    }
}

impl fmt::Display for NotInherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Error for NotInherited {}

impl Missing for NotInherited {
    fn fix(&self) -> String {
        self.fix.clone()
    }
}
