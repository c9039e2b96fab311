//! A layer taken away: `Require` refuses and says what would help, `Auto` reports it, and nothing is passed over.

mod confined;
mod without;

use confined::{become_ordinary_user, confine, parts, run, say};
use libc::{EACCES, EINVAL, ENOSYS, EPERM};
use pydeno_sandbox::Mode;
use without::{without, without_refusal};

parts!(
    no_landlock,
    no_landlock_automatic,
    landlock_that_pretends,
    no_seccomp,
    no_seccomp_automatic,
    seccomp_that_pretends,
    no_namespaces,
    namespaces_that_cannot_mount,
    no_new_privs_refused,
    capabilities_kept,
    root_kept,
    root_kept_automatic,
    dumpable_kept,
    descriptors_kept,
    descriptors_kept_when_off,
    breach,
    nothing_taken,
);

fn nothing_taken() {
    attempt(Mode::Require);
}

fn no_landlock() {
    without(libc::SYS_landlock_create_ruleset, None, ENOSYS);
    attempt(Mode::Require);
}

fn no_landlock_automatic() {
    without(libc::SYS_landlock_create_ruleset, None, ENOSYS);
    attempt(Mode::Auto);
}

fn landlock_that_pretends() {
    without(libc::SYS_landlock_restrict_self, None, 0);
    attempt(Mode::Require);
}

fn no_seccomp() {
    without(libc::SYS_seccomp, None, EINVAL);
    attempt(Mode::Require);
}

fn no_seccomp_automatic() {
    without(libc::SYS_seccomp, None, EINVAL);
    attempt(Mode::Auto);
}

fn seccomp_that_pretends() {
    without(libc::SYS_seccomp, None, 0);
    attempt(Mode::Require);
}

fn no_namespaces() {
    without(libc::SYS_unshare, None, EPERM);
    attempt(Mode::Require);
}

fn namespaces_that_cannot_mount() {
    without(libc::SYS_fsopen, None, EACCES);
    attempt(Mode::Require);
}

fn no_new_privs_refused() {
    without(libc::SYS_prctl, Some(libc::PR_SET_NO_NEW_PRIVS as u32), EPERM);
    attempt(Mode::Require);
}

fn capabilities_kept() {
    become_ordinary_user();
    without(libc::SYS_capset, None, EPERM);
    attempt(Mode::Require);
}

fn root_kept() {
    without(libc::SYS_setresuid, None, EPERM);
    attempt(Mode::Require);
}

fn root_kept_automatic() {
    without(libc::SYS_setresuid, None, EPERM);
    attempt(Mode::Auto);
}

fn dumpable_kept() {
    without(libc::SYS_prctl, Some(libc::PR_SET_DUMPABLE as u32), 0);
    attempt(Mode::Auto);
}

fn breach() {
    without_refusal(libc::SYS_kill);
    attempt(Mode::Require);
}

fn descriptors_kept() {
    without(libc::SYS_close_range, None, ENOSYS);
    attempt(Mode::Require);
}

fn descriptors_kept_when_off() {
    without(libc::SYS_close_range, None, ENOSYS);
    attempt(Mode::Off);
}

/// Says `started`, or what refused the start, and then each layer that is missing.
fn attempt(mode: Mode) {
    let report = match confine(mode, true) {
        Ok(report) => {
            say(&format!("started {} complete {}", report.applied_string(), report.is_complete()));
            report
        }
        Err(refusal) => {
            say(&format!("refused {}: {refusal}", refusal.layer));
            refusal.report
        }
    };
    for missing in report.missing() {
        assert!(!missing.fix.is_empty(), "{missing:?} says what would help");
        say(&format!("missing {}: {}", missing.name, missing.detail));
    }
}

#[track_caller]
fn says(part: &str, wanted: &[&str]) {
    let said = run(part).said();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), wanted.len(), "{said}");
    for (line, wanted) in lines.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line:?} does not start with {wanted:?}");
    }
}

#[test]
fn nothing_is_refused_while_nothing_is_taken() {
    says("nothing_taken", &["started landlock+seccomp complete true"]);
}

#[test]
fn without_landlock_a_start_is_refused() {
    says(
        "no_landlock",
        &[
            "refused landlock: the sandbox layer landlock is not in force: the kernel has no Landlock: Function not \
           implemented (os error 38); to fix it, use Linux 5.13",
            "missing landlock",
        ],
    );
}

#[test]
fn without_landlock_an_automatic_start_says_so() {
    says(
        "no_landlock_automatic",
        &[
            "started seccomp complete false",
            "missing landlock: the kernel has no Landlock: Function not implemented",
        ],
    );
}

#[test]
fn landlock_that_is_accepted_and_not_enforced_is_not_in_force() {
    says(
        "landlock_that_pretends",
        &[
            "refused landlock: the sandbox layer landlock is not in force: the kernel accepted the ruleset and does not \
           enforce it",
            "missing landlock",
        ],
    );
}

#[test]
fn without_a_filter_a_start_is_refused() {
    says("no_seccomp", &["refused seccomp: ", "missing seccomp: the kernel did not take the filter"]);
}

#[test]
fn without_a_filter_the_self_test_names_what_works() {
    let said = run("no_seccomp_automatic").said();
    assert!(said.starts_with("started landlock complete false\nmissing seccomp: "), "{said}");
    let breaches = said.lines().last().expect("the self-test is reported last");
    assert!(breaches.starts_with("missing self_test: "), "{breaches}");
    for breach in ["map executable memory", "make an IPv4 socket", "start a process"] {
        assert!(breaches.contains(breach), "{breach:?} is missing from {breaches:?}");
    }
    // What Landlock and the dropped privileges stop by themselves.
    for stopped in ["list the root directory", "write a file", "become root"] {
        assert!(!breaches.contains(stopped), "{stopped:?} is in {breaches:?}");
    }
}

#[test]
fn a_filter_that_is_accepted_and_not_enforced_is_not_in_force() {
    says("seccomp_that_pretends", &["refused seccomp: ", "missing seccomp: getppid worked"]);
}

#[test]
fn without_namespaces_a_worker_starts_and_says_so() {
    says(
        "no_namespaces",
        &[
            "started landlock+seccomp complete true",
            "missing empty_root: the kernel made no namespaces: Operation not",
        ],
    );
}

#[test]
fn where_namespaces_cannot_mount_a_worker_starts_and_says_so() {
    says(
        "namespaces_that_cannot_mount",
        &[
            "started landlock+seccomp complete true",
            "missing empty_root: an empty file system could not be made: Permission denied",
        ],
    );
}

#[test]
fn without_no_new_privs_a_start_is_refused() {
    says(
        "no_new_privs_refused",
        &["refused no_new_privs: ", "missing no_new_privs: PR_SET_NO_NEW_PRIVS failed"],
    );
}

#[test]
fn capabilities_that_cannot_be_dropped_refuse_a_start() {
    says(
        "capabilities_kept",
        &["refused privileges: ", "missing privileges: the capabilities could not be dropped"],
    );
}

#[test]
fn root_that_cannot_be_dropped_refuses_a_start() {
    if rustix::process::getuid().is_root() {
        let said = run("root_kept").said();
        assert!(said.starts_with("refused privileges: "), "{said}");
        assert!(said.contains("missing privileges: root's user could not be changed"), "{said}");
        let said = run("root_kept_automatic").said();
        assert!(said.starts_with("started landlock+seccomp complete false"), "{said}");
        assert!(said.contains("missing privileges: root's user could not be changed"), "{said}");
    } else {
        says("root_kept", &["started landlock+seccomp complete true"]);
    }
}

#[test]
fn a_breach_refuses_a_start_although_every_layer_is_in_force() {
    says("breach", &["refused self_test: ", "missing self_test: 1 of 21 attempts worked: signal its parent"]);
}

#[test]
fn a_process_that_stays_dumpable_is_refused_in_every_mode() {
    says("dumpable_kept", &["refused process: ", "missing process: the process is still dumpable"]);
}

#[test]
fn descriptors_that_stay_open_refuse_a_start_in_every_mode() {
    for part in ["descriptors_kept", "descriptors_kept_when_off"] {
        says(part, &["refused process: ", "missing process: close_range failed: Function not implemented"]);
    }
}
