//! Files: none may be read, written, listed or seen, and what was open before is closed.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;

use super::{Attempt, Outcome, Targets, attempt, check, number_of, raw};

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt("read a file", |_| of(fs::read("/etc/passwd"))),
    attempt("write a file", |_| {
        let flags = libc::O_TMPFILE;
        of(fs::OpenOptions::new().write(true).custom_flags(flags).mode(0o600).open("/tmp"))
    }),
    attempt("see whether a file is there", |_| of(fs::metadata("/etc/passwd"))),
    attempt("list the root directory", |_| of(fs::read_dir("/"))),
    attempt("list the processes in /proc", |_| of(fs::read_dir("/proc"))),
    attempt("read the host's command line", |targets| {
        of(fs::read(format!("/proc/{}/cmdline", targets.host)))
    }),
    attempt("read its own environment", |_| of(fs::read("/proc/self/environ"))),
    attempt("write its own memory through /proc", |_| {
        of(fs::OpenOptions::new().write(true).open("/proc/self/mem"))
    }),
    attempt("open the random device", |_| of(fs::File::open("/dev/urandom"))),
    attempt("change the directory", |_| of(std::env::set_current_dir("/"))),
    attempt("write to a file that was open before", write_to_open_file),
];

fn of<T>(result: std::io::Result<T>) -> Outcome {
    result.map(drop).map_err(|error| number_of(&error))
}

fn write_to_open_file(targets: &Targets) -> Outcome {
    // SAFETY: writes one byte of a static; the number may not be open, which the call says.
    check(unsafe { libc::write(raw(&targets.open_file), b"x".as_ptr().cast(), 1) } as i64).map(drop)
}
