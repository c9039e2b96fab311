//! Runs a part of a test in a process of its own, because a sandbox cannot be taken off again.
//!
//! A test file lists its parts with [`parts!`]. [`run`] starts the file's own binary again with the part's name in the
//! environment; the part runs before the test harness, while the process has one thread, and prints what it found.

#![allow(unsafe_code, reason = "the part must run before the harness starts threads")]
#![allow(dead_code, reason = "no test file uses every one of these")]

use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{ExitStatusExt, parent_id};
use std::process::{Child, Command, ExitStatus, Stdio};

use pydeno_sandbox::{Limits, Mode, Refusal, Report, Request};

/// Names the part that the process is to run.
pub(crate) const PART: &str = "PYDENO_SANDBOX_TEST_PART";

/// What is left of a part.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) said: String,
    pub(crate) complained: String,
    pub(crate) status: ExitStatus,
}

impl Outcome {
    /// What the part said, if it ended well.
    #[track_caller]
    pub(crate) fn said(self) -> String {
        assert!(self.status.success(), "the part ended with {}: {self:?}", self.status);
        self.said
    }

    /// The signal that killed the part.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

/// Runs a part with an empty environment, as a worker runs.
pub(crate) fn run(part: &str) -> Outcome {
    run_with(part, &[])
}

/// Runs a part with these variables.
pub(crate) fn run_with(part: &str, environment: &[(&str, &str)]) -> Outcome {
    let output = command(part)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("a test binary starts again");
    Outcome {
        said: String::from_utf8_lossy(&output.stdout).into_owned(),
        complained: String::from_utf8_lossy(&output.stderr).into_owned(),
        status: output.status,
    }
}

/// The command that runs a part.
fn command(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a running test knows its executable"));
    command.env_clear().env(PART, part);
    command
}

/// A part that has come to [`wait_for_the_test`], and waits there for as long as this lives.
pub(crate) struct Waiting {
    child: Child,
}

impl Waiting {
    pub(crate) fn start(part: &str) -> Self {
        let mut child = command(part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test binary starts again");
        let output = child.stdout.as_mut().expect("standard output is a pipe");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("the part says something");
        assert_eq!(line, "ready\n", "{part}");
        Self { child }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let ended = self.child.wait().expect("the part is a child of this process");
        if !std::thread::panicking() {
            assert!(ended.success(), "the part ended with {ended}");
        }
    }
}

/// Lets the test look at this process until it has seen enough.
pub(crate) fn wait_for_the_test() {
    say("ready");
    let end = std::io::stdin().read(&mut [0]).expect("standard input is open");
    assert_eq!(end, 0, "the test closes standard input and writes nothing");
}

/// Lists the parts of a test file.
macro_rules! parts {
    ($($name:ident),* $(,)?) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        #[allow(unsafe_code, reason = "runs before the harness starts threads")]
        static START: extern "C" fn() = {
            extern "C" fn start() {
                confined::start(&[$((stringify!($name), $name)),*]);
            }
            start
        };
    };
}
pub(crate) use parts;

/// Runs the part that the environment names, if it names one, and ends the process.
pub(crate) fn start(parts: &[(&str, fn())]) {
    let Some(wanted) = std::env::var_os(PART) else { return };
    let code = match parts.iter().find(|(name, _)| wanted == *name) {
        Some((_, part)) => i32::from(std::panic::catch_unwind(part).is_err()),
        None => 2,
    };
    std::process::exit(code)
}

/// Says something to the test. One write, because a confined process keeps nothing buffered.
pub(crate) fn say(text: &str) {
    let stdout = std::io::stdout();
    rustix::io::write(stdout.as_fd(), format!("{text}\n").as_bytes()).expect("the test listens");
}

/// Standard input, output and error, which a part keeps.
pub(crate) fn stdio() -> [BorrowedFd<'static>; 3] {
    [0, 1, 2].map(|number| {
        // SAFETY: the test gave this process the three descriptors, and nothing closes them.
        unsafe { BorrowedFd::borrow_raw(number) }
    })
}

/// Confines this process, keeping [`stdio`].
pub(crate) fn confine(mode: Mode, empty_root: bool) -> Result<Report, Refusal> {
    confine_under(parent_id().cast_signed(), mode, empty_root)
}

/// Confines this process, which says that its parent is this one.
pub(crate) fn confine_under(parent: i32, mode: Mode, empty_root: bool) -> Result<Report, Refusal> {
    let keep = stdio();
    let request = Request { mode, empty_root, parent, keep: &keep, limits: Limits::default() };
    // SAFETY: a part uses no other descriptors.
    unsafe { pydeno_sandbox::apply(&request) }
}

/// One line a layer.
pub(crate) fn say_report(report: &Report) {
    for layer in &report.layers {
        say(&format!("{}|{}|{}|{}", layer.name, layer.applied, layer.detail, layer.fix));
    }
}

/// Gives up root for an ordinary user, if the process is root.
pub(crate) fn become_ordinary_user() {
    const ORDINARY: u32 = 54_321;
    if rustix::process::getuid().is_root() {
        let (user, group) =
            (rustix::process::Uid::from_raw(ORDINARY), rustix::process::Gid::from_raw(ORDINARY));
        rustix::thread::set_thread_groups(&[]).expect("root drops its groups");
        rustix::thread::set_thread_res_gid(group, group, group).expect("root changes its group");
        rustix::thread::set_thread_res_uid(user, user, user).expect("root changes its user");
        // As a process is that such a user starts.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
            .expect("a process may be looked into");
    }
}
