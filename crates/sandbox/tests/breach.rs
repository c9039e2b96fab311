//! What native code inside a worker would really try. Each attempt runs in a process of its own that has confined itself and
//! shown it, and again, as its negative control, in one that has not: there it must report the breach.

#![allow(unsafe_code, reason = "forks, and ends the forks")]

mod attempts;
mod confined;
mod template;
mod without;

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

use attempts::{Attempt, Targets};
use confined::{confine, parts, run, say};
use libc::c_int;
use pydeno_sandbox::{Mode, layer};
use without::without;

parts!(
    confined_attempts,
    confined_attempts_without_an_empty_root,
    confined_attempts_without_a_filter,
    unconfined_attempts,
    attempts_in_a_fork_of_a_template,
    attempts_in_a_fork_without_filters,
    attempts_in_a_fork_without_layers_of_its_own,
);

/// The exit code of an attempt that worked, also of the programs that attempts execute.
const BREACH: c_int = 200;
/// The exit code of a process that did not confine itself.
const NOT_CONFINED: c_int = 201;

/// How long an attempt may take, in seconds. None of them waits.
const PATIENCE: u32 = 5;

fn confined_attempts() {
    run_all(|_| be_confined(true));
}

fn confined_attempts_without_an_empty_root() {
    run_all(|_| be_confined(false));
}

/// The filter alone stops nearly everything; this shows what is left to the other layers.
fn confined_attempts_without_a_filter() {
    run_all(|_| {
        without(libc::SYS_seccomp, None, libc::EINVAL);
        confine(Mode::Auto, true)
            .is_ok_and(|report| !report.has(layer::SECCOMP) && report.has(layer::LANDLOCK))
            && std::fs::read_dir("/").is_err()
    });
}

fn unconfined_attempts() {
    run_all(|_| true);
}

/// What a fork of a template tries, and a sibling in the host's place to try it on.
fn attempts_in_a_fork_of_a_template() {
    run_all(|targets| template::become_fork(targets, Mode::Require, true) && std::fs::read_dir("/").is_err());
}

/// Without any filter the domains of Landlock are all that is between siblings of one user.
fn attempts_in_a_fork_without_filters() {
    run_those(is_at_a_sibling, |targets| {
        without(libc::SYS_seccomp, None, libc::EINVAL);
        template::become_fork(targets, Mode::Auto, true)
    });
}

/// The control: neither a filter nor a domain of its own.
fn attempts_in_a_fork_without_layers_of_its_own() {
    run_those(is_at_a_sibling, |targets| {
        without(libc::SYS_seccomp, None, libc::EINVAL);
        template::become_fork(targets, Mode::Auto, false)
    });
}

/// Confines this process and sees for itself that it is.
fn be_confined(empty_root: bool) -> bool {
    confine(Mode::Require, empty_root).is_ok_and(|report| report.is_complete())
        && rustix::thread::secure_computing_mode() == Ok(rustix::thread::SecureComputingMode::Filter)
        && std::fs::read_dir("/").is_err()
}

fn run_all(prepare: impl Fn(&mut Targets) -> bool) {
    run_those(|_| true, prepare);
}

fn run_those(wanted: impl Fn(&str) -> bool, prepare: impl Fn(&mut Targets) -> bool) {
    let folder = std::path::PathBuf::from(format!("/tmp/pydeno-breach-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of this part's own can be made");
    let (mut targets, _listeners) = targets(&folder);
    // The attempts are made by children; where the host restricts tracing to descendants, they may trace this one.
    // SAFETY: numbers only; any process may trace this one until it ends.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::MAX, 0, 0, 0) };
    for attempt in attempts::all().filter(|attempt| wanted(attempt.name)) {
        say(&format!("{}|{}", attempt.name, in_fork(&mut targets, attempt, &prepare)));
    }
    std::fs::remove_dir_all(folder).expect("the folder can be removed");
}

fn targets(folder: &std::path::Path) -> (Targets, [UnixListener; 2]) {
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let path = folder.join("socket");
    let abstract_name = format!("pydeno-breach-{}", std::process::id()).into_bytes();
    let address = UnixAddress::from_abstract_name(&abstract_name).expect("the name is short");
    let listeners = [
        UnixListener::bind(&path).expect("a socket can be made in the folder"),
        UnixListener::bind_addr(&address).expect("an abstract socket can be made"),
    ];
    let udp = std::net::UdpSocket::bind(loopback).expect("the loopback interface is up");
    udp.local_addr().and_then(|own| udp.connect(own)).expect("a socket may send to itself");
    let targets = Targets {
        host: std::process::id().cast_signed(),
        tcp: std::net::TcpListener::bind(loopback).expect("the loopback interface is up"),
        udp,
        abstract_name,
        path,
        open_file: std::fs::File::create(folder.join("file"))
            .expect("a file can be made in the folder")
            .into(),
    };
    (targets, listeners)
}

/// How an attempt in a fork ended: `breach`, `refused ERRNO`, `killed SIGNAL`.
fn in_fork(targets: &mut Targets, attempt: &Attempt, prepare: &impl Fn(&mut Targets) -> bool) -> String {
    // SAFETY: the part has one thread.
    let id = unsafe { libc::fork() };
    assert!(id >= 0, "{}", std::io::Error::last_os_error());
    if id == 0 {
        // SAFETY: sets a timer whose signal ends this process.
        unsafe { libc::alarm(PATIENCE) };
        let code = if prepare(targets) {
            (attempt.run)(targets).map_or_else(|error| error, |()| BREACH)
        } else {
            NOT_CONFINED
        };
        // SAFETY: ends the fork without the part's destructors.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `status` lives on this stack.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    match libc::WEXITSTATUS(status) {
        _ if libc::WIFSIGNALED(status) => format!("killed {}", libc::WTERMSIG(status)),
        BREACH => "breach".to_owned(),
        NOT_CONFINED => "not confined".to_owned(),
        error => format!("refused {error}"),
    }
}

fn ends(said: &str) -> BTreeMap<&str, &str> {
    said.lines().map(|line| line.split_once('|').expect("a name and an end")).collect()
}

fn stopped(end: &str) -> bool {
    end == format!("killed {}", libc::SIGSYS) || end.starts_with("refused ")
}

#[test]
fn nothing_that_native_code_tries_in_a_worker_works() {
    let said = run("confined_attempts").said();
    let ends = ends(&said);
    assert_eq!(ends.len(), attempts::all().count());
    let worked: Vec<_> = ends.iter().filter(|(_, end)| !stopped(end)).collect();
    assert!(worked.is_empty(), "{worked:?}");
}

/// Of what a worker is in, only the empty root's namespaces let the kernel count its tasks; outside them the host counts.
const NEEDS_THE_EMPTY_ROOT: [&str; 1] = ["start more tasks than a worker may have"];

#[test]
fn an_empty_root_is_needed_for_nothing_but_the_cap_on_tasks() {
    let said = run("confined_attempts_without_an_empty_root").said();
    let worked: Vec<&str> =
        ends(&said).into_iter().filter(|(_, end)| !stopped(end)).map(|(name, _)| name).collect();
    assert_eq!(worked, NEEDS_THE_EMPTY_ROOT);
}

/// What nothing but the filter stops. None of it reaches a file, the network, another process's memory or the host's life.
const ONLY_THE_FILTER: [&str; 27] = [
    "add a key to a keyring",
    "become dumpable",
    "change its execution domain",
    "change the directory",
    "fork",
    "fork with the old call",
    "handle page faults itself",
    "learn the machine's name",
    "learn who its parent is",
    "make a System V message queue",
    "make a System V segment",
    "make a file in memory",
    "make a pair of sockets",
    "make a timer",
    "make a user namespace",
    "make its own code writable",
    "make memory executable and run it",
    "map executable memory and run it",
    "open a handle to the host",
    "outlive its parent",
    "read the host's processor time",
    "read the kernel's clock discipline",
    "see the host's priority",
    "see where the host may run",
    "share memory with what it starts",
    "talk to the kernel over netlink",
    "watch a directory",
];

/// Root's worker has become somebody else; an ordinary user's keeps its id, and with it what the kernel grants to the same
/// user and Landlock says nothing of.
const ONLY_THE_FILTER_FOR_AN_ORDINARY_USER: [&str; 1] = ["change the host's limits"];

#[test]
fn where_the_filter_fails_the_other_layers_still_keep_the_worker_from_the_host() {
    let said = run("confined_attempts_without_a_filter").said();
    let ends = ends(&said);
    assert_eq!(ends.len(), attempts::all().count());
    let mut expected = ONLY_THE_FILTER.to_vec();
    if !rustix::process::getuid().is_root() {
        expected.extend(ONLY_THE_FILTER_FOR_AN_ORDINARY_USER);
    }
    for (name, end) in ends {
        assert!(stopped(end) || (end == "breach" && expected.contains(&name)), "{name}: {end}");
    }
}

#[test]
fn every_attempt_works_where_there_is_no_sandbox() {
    let said = run("unconfined_attempts").said();
    let ends = ends(&said);
    let mut forbidden = 0;
    for attempt in attempts::all() {
        let end = ends[attempt.name];
        if attempt.hosts_forbid && end.starts_with("refused ") {
            forbidden += 1;
        } else {
            assert_eq!(end, "breach", "{}", attempt.name);
        }
    }
    assert!(ends.len() - forbidden > 40, "{said}");
}

/// What the kernel counts for all forks of a template together.
const SHARED_WITH_SIBLINGS: [&str; 1] = ["start more tasks than a worker may have"];

#[test]
fn nothing_that_native_code_tries_in_a_fork_of_a_template_works_on_anything_outside_or_on_a_sibling() {
    let said = run("attempts_in_a_fork_of_a_template").said();
    let ends = ends(&said);
    assert_eq!(ends.len(), attempts::all().count());
    let worked: Vec<_> = ends.iter().filter(|(_, end)| !stopped(end)).collect();
    assert!(
        worked.iter().all(|(name, end)| SHARED_WITH_SIBLINGS.contains(name) && **end == "breach"),
        "{worked:?}"
    );
}

/// What is aimed at another process, here a sibling.
const AT_A_SIBLING: [&str; 4] = [
    "ask whether the host may be signalled",
    "signal a thread of the host",
    "trace the host",
    "read the host's memory",
];

fn is_at_a_sibling(name: &str) -> bool {
    AT_A_SIBLING.contains(&name)
}

#[test]
fn where_the_filters_fail_a_domain_of_its_own_still_keeps_a_fork_from_its_siblings() {
    let with = run("attempts_in_a_fork_without_filters").said();
    let without = run("attempts_in_a_fork_without_layers_of_its_own").said();
    let (with, without) = (ends(&with), ends(&without));
    for name in AT_A_SIBLING {
        assert!(stopped(with[name]), "{name}: {}", with[name]);
    }
    for name in &AT_A_SIBLING[..2] {
        assert_eq!(without[name], "breach", "a control: {name}");
    }
}
