//! The installed filter, asked in confined children: what is fatal kills, what is refused answers, and without the
//! filter neither happens.

#![allow(unsafe_code, reason = "makes the calls that must not be made")]

mod confined;
mod without;

use std::time::Duration;

use confined::{confine, parts, run, say};
use libc::{c_int, c_long};
use pydeno_sandbox::filter::Architecture;
use pydeno_sandbox::syscalls::{ABSENT, FATAL, Group, REFUSED};
use pydeno_sandbox::{Mode, kill_is_enforced};
use without::{without, without_end};

parts!(
    fatal,
    fatal_unconfined,
    refused,
    refused_unconfined,
    absent,
    proof,
    no_proof,
    no_proof_with_threads,
    no_proof_in_time,
    abort
);

/// How long a proof may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends a part that hangs because a call was allowed that waits.
fn bound() {
    const SECONDS: u32 = 60;
    // SAFETY: sets a timer whose signal ends this process.
    unsafe { libc::alarm(SECONDS) };
}

/// Names and native numbers of a table's calls.
fn native(groups: &'static [Group]) -> impl Iterator<Item = (&'static str, c_long)> {
    groups
        .iter()
        .flat_map(|group| group.calls)
        .filter_map(|(name, numbers)| Some((*name, c_long::from(Architecture::NATIVE.number(*numbers)?))))
}

/// Makes a call with zeroes and says what it answers.
fn ask(number: c_long) -> Result<c_long, c_int> {
    // SAFETY: the callers choose calls that do nothing with zeroes, or that the filter does not let through.
    let result = unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) };
    if result == -1 { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(result) }
}

/// Runs `child` in a fork and returns how it ended, as `waitpid` says it.
fn in_fork(child: impl FnOnce()) -> c_int {
    // SAFETY: the part has one thread.
    let id = unsafe { libc::fork() };
    assert!(id >= 0, "{}", std::io::Error::last_os_error());
    if id == 0 {
        child();
        // SAFETY: ends the fork without the part's destructors.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` lives on this stack.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    status
}

fn say_end(name: &str, status: c_int) {
    if libc::WIFSIGNALED(status) {
        say(&format!("{name} killed by {}", libc::WTERMSIG(status)));
    } else {
        say(&format!("{name} lived"));
    }
}

fn fatal() {
    bound();
    for (name, number) in native(FATAL) {
        let status = in_fork(|| {
            confine(Mode::Require, false).expect("this machine can confine a worker");
            let _ = ask(number);
        });
        say_end(name, status);
    }
}

/// Of the fatal calls, those that do nothing with zeroes.
const HARMLESS: [&str; 6] = ["execve", "unshare", "personality", "bpf", "mount", "init_module"];

fn fatal_unconfined() {
    for (name, number) in native(FATAL).filter(|(name, _)| HARMLESS.contains(name)) {
        let status = in_fork(|| {
            let _ = ask(number);
        });
        say_end(name, status);
    }
}

fn refused() {
    bound();
    confine(Mode::Require, false).expect("this machine can confine a worker");
    for (name, number) in native(REFUSED) {
        say(&format!("{name} {:?}", ask(number)));
    }
}

fn refused_unconfined() {
    let harmless = ["getppid", "getuid", "uname", "openat", "socket", "setpriority", "mincore", "lseek"];
    for (name, number) in native(REFUSED).filter(|(name, _)| harmless.contains(name)) {
        say(&format!("{name} {}", ask(number) == Err(libc::EPERM)));
    }
}

fn absent() {
    confine(Mode::Require, false).expect("this machine can confine a worker");
    for (name, number) in native(ABSENT).chain([("beyond", 1000), ("far beyond", 100_000)]) {
        say(&format!("{name} {:?}", ask(number)));
    }
}

fn proof() {
    let layer = kill_is_enforced(PATIENCE);
    say(&format!("{} {} {}", layer.name, layer.applied, layer.detail));
    // SAFETY: asks for any child of this process without waiting.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    say(&format!("child {child}"));
    say(&format!("caller {:?}", rustix::thread::secure_computing_mode()));
    say(&format!("caller can open {}", std::fs::read_dir("/").is_ok()));
}

fn no_proof() {
    without(libc::SYS_seccomp, None, libc::EINVAL);
    let layer = kill_is_enforced(PATIENCE);
    say(&format!("{} {} {}", layer.applied, layer.detail, !layer.fix.is_empty()));
}

fn no_proof_in_time() {
    without_end(libc::SYS_landlock_restrict_self);
    let layer = kill_is_enforced(PATIENCE);
    say(&format!("{} {}", layer.applied, layer.detail));
    // SAFETY: asks for any child of this process without waiting.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    say(&format!("child {child}"));
}

fn no_proof_with_threads() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    let layer = kill_is_enforced(PATIENCE);
    say(&format!("{} {}", layer.applied, layer.detail));
    drop(release);
    thread.join().expect("the thread ends").expect_err("nothing was sent");
}

fn abort() {
    confine(Mode::Require, true).expect("this machine can confine a worker");
    std::process::abort();
}

#[test]
fn every_fatal_call_kills_a_confined_process() {
    let said = run("fatal").said();
    let ends: Vec<&str> = said.lines().collect();
    assert_eq!(ends.len(), native(FATAL).count());
    for ((name, _), end) in native(FATAL).zip(ends) {
        assert_eq!(end, format!("{name} killed by {}", libc::SIGSYS));
    }
}

#[test]
fn a_fatal_call_does_not_kill_an_unconfined_process() {
    let said = run("fatal_unconfined").said();
    assert_eq!(said.lines().count(), HARMLESS.len());
    assert!(said.lines().all(|line| line.ends_with(" lived")), "{said}");
}

#[test]
fn every_refused_call_answers_that_it_is_not_permitted() {
    let said = run("refused").said();
    let answers: Vec<&str> = said.lines().collect();
    assert_eq!(answers.len(), native(REFUSED).count());
    for ((name, _), answer) in native(REFUSED).zip(answers) {
        assert_eq!(answer, format!("{name} Err({})", libc::EPERM));
    }
}

#[test]
fn a_refused_call_answers_otherwise_in_an_unconfined_process() {
    let said = run("refused_unconfined").said();
    assert_eq!(said.lines().count(), 8);
    assert!(said.lines().all(|line| line.ends_with(" false")), "{said}");
}

#[test]
fn an_absent_call_answers_that_there_is_no_such_call() {
    let said = run("absent").said();
    assert_eq!(said.lines().count(), native(ABSENT).count() + 2);
    assert!(said.lines().all(|line| line.ends_with(" Err(38)")), "{said}");
}

#[test]
fn the_proof_finds_that_the_filter_kills_and_leaves_the_caller_as_it_was() {
    let said = run("proof").said();
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "seccomp true a confined child that called execve was killed",
            "child -1",
            "caller Ok(Disabled)",
            "caller can open true"
        ]
    );
}

#[test]
fn the_proof_notices_a_filter_that_does_not_kill() {
    let said = run("no_proof").said();
    assert_eq!(said.trim(), "false exec-not-killed: a confined child called execve and lived true");
}

#[test]
fn the_proof_is_not_tried_in_a_process_with_threads() {
    let said = run("no_proof_with_threads").said();
    assert_eq!(said.trim(), "false the process has more than one thread");
}

#[test]
fn a_proof_that_overruns_is_reaped() {
    let said = run("no_proof_in_time").said();
    assert_eq!(said, "false the child overran 1s and was killed\nchild -1\n");
}

#[test]
fn a_confined_process_can_abort() {
    let outcome = run("abort");
    assert_eq!(outcome.signal(), Some(libc::SIGABRT), "{outcome:?}");
}
