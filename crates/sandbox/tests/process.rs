//! Layer 0 and the limit on tasks, from inside: descriptors, the parent, threads.

#![allow(unsafe_code, reason = "forks, and asks for descriptors by number")]

mod confined;

use std::os::unix::process::parent_id;
use std::thread;
use std::time::Duration;

use confined::{confine, confine_under, parts, run, say};
use pydeno_sandbox::Mode;

parts!(
    descriptors,
    descriptors_when_off,
    wrong_parent,
    wrong_parent_when_off,
    threads_beforehand,
    many_threads,
    many_threads_when_off,
    orphan,
    orphan_unconfined,
);

/// The open descriptors below 2,000.
fn open_descriptors() -> Vec<i32> {
    // SAFETY: asks for flags; a number that is not open is an error.
    (0..2000).filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0).collect()
}

fn close_and_say(mode: Mode) {
    for copy in [7, 63, 64, 65, 900, 1500] {
        // SAFETY: makes a descriptor that nothing owns.
        assert_eq!(unsafe { libc::dup2(1, copy) }, copy);
    }
    let before = open_descriptors();
    assert!(before.len() >= 9, "{before:?}");
    confine(mode, true).expect("this machine can confine a worker");
    say(&format!("{:?}", open_descriptors()));
}

fn descriptors() {
    close_and_say(Mode::Require);
}

fn descriptors_when_off() {
    close_and_say(Mode::Off);
}

fn say_refusal(refused: Result<pydeno_sandbox::Report, pydeno_sandbox::Refusal>) {
    let refusal = refused.expect_err("the process is not fit to be confined");
    say(&format!("{}: {refusal}", refusal.layer));
}

fn wrong_parent() {
    say_refusal(confine_under(1, Mode::Auto, true));
}

fn wrong_parent_when_off() {
    say_refusal(confine_under(1, Mode::Off, true));
}

fn threads_beforehand() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let thread = thread::spawn(move || wait.recv());
    say_refusal(confine(Mode::Auto, true));
    drop(release);
    thread.join().expect("the thread ends").expect_err("nothing was sent");
}

/// Starts threads that stay, up to a hundred, and says how many there are.
fn start_threads_and_say(mode: Mode) {
    confine(mode, true).expect("this machine can confine a worker");
    let mut started = 0;
    for _ in 0..100 {
        let stack = thread::Builder::new().stack_size(64 * 1024);
        if stack
            .spawn(|| {
                loop {
                    thread::park();
                }
            })
            .is_err()
        {
            break;
        }
        started += 1;
    }
    say(&format!("{started}"));
}

fn many_threads() {
    start_threads_and_say(Mode::Require);
}

fn many_threads_when_off() {
    start_threads_and_say(Mode::Off);
}

/// Forks `child`, waits until it has said that it is ready, and ends.
fn leave_behind(child: impl FnOnce(i32)) {
    let parent = std::process::id().cast_signed();
    let mut ends = [0; 2];
    // SAFETY: `ends` holds two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the part has one thread.
    match unsafe { libc::fork() } {
        0 => {
            // Standard input is not needed, and is kept over the confinement.
            // SAFETY: replaces a descriptor that nothing else uses.
            assert_eq!(unsafe { libc::dup2(ends[1], 0) }, 0);
            child(parent);
            // SAFETY: ends the fork without the part's destructors.
            unsafe { libc::_exit(0) };
        }
        id => assert!(id > 0, "{}", std::io::Error::last_os_error()),
    }
    let mut byte = 0_u8;
    // SAFETY: reads one byte into `byte`.
    assert_eq!(unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) }, 1);
}

fn ready() {
    // SAFETY: writes one byte of a constant.
    assert_eq!(unsafe { libc::write(0, c"r".as_ptr().cast(), 1) }, 1);
}

fn orphan() {
    leave_behind(|parent| {
        confine_under(parent, Mode::Require, true).expect("this machine can confine a worker");
        ready();
        // Longer than any test waits: who is still there then has outlived its parent.
        thread::sleep(Duration::from_secs(20));
        say("outlived its parent");
    });
}

fn orphan_unconfined() {
    leave_behind(|parent| {
        ready();
        while parent_id() == parent.cast_unsigned() {
            thread::yield_now();
        }
        say("outlived its parent");
    });
}

#[test]
fn every_descriptor_is_closed_but_those_that_are_kept() {
    for part in ["descriptors", "descriptors_when_off"] {
        assert_eq!(run(part).said().trim(), "[0, 1, 2]", "{part}");
    }
}

#[test]
fn a_process_whose_parent_has_gone_does_not_start() {
    for part in ["wrong_parent", "wrong_parent_when_off"] {
        let said = run(part).said();
        assert!(
            said.starts_with("process: the sandbox layer process is not in force: the parent is process ")
        );
        assert!(said.contains(", not 1: it has ended"), "{said}");
    }
}

#[test]
fn a_process_with_threads_is_not_confined() {
    let said = run("threads_beforehand").said();
    assert!(said.contains("the process has more than one thread"), "{said}");
}

#[test]
fn the_kernel_stops_a_confined_process_at_64_tasks() {
    assert_eq!(run("many_threads").said().trim(), "63");
    assert_eq!(run("many_threads_when_off").said().trim(), "100");
}

#[test]
fn a_confined_process_ends_with_its_parent() {
    // The orphan holds the pipe that it would speak through, so both runs end only after it has.
    assert_eq!(run("orphan").said(), "");
    assert_eq!(run("orphan_unconfined").said(), "outlived its parent\n");
}
