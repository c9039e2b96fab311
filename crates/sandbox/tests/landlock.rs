//! Landlock by itself, with the filter taken away so that the calls reach it; and the same attempts without it.

mod confined;
mod without;

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use confined::{Waiting, become_ordinary_user, confine, parts, run_with, say, wait_for_the_test};
use pydeno_sandbox::{Mode, layer};
use rustix::process::{Pid, test_kill_process};
use without::without;

parts!(restricted, unrestricted, neighbour);

/// Where the test listens on TCP.
const PORT: &str = "PORT";
/// The abstract name under which it listens.
const NAME: &str = "NAME";
/// The process to signal.
const NEIGHBOUR: &str = "NEIGHBOUR";

fn restricted() {
    become_ordinary_user();
    without(libc::SYS_seccomp, None, libc::EINVAL);
    attempt_everything();
}

fn unrestricted() {
    become_ordinary_user();
    without(libc::SYS_landlock_create_ruleset, None, libc::ENOSYS);
    without(libc::SYS_seccomp, None, libc::EINVAL);
    attempt_everything();
}

/// A process of the same user, outside the restriction, until the test lets it go.
fn neighbour() {
    become_ordinary_user();
    wait_for_the_test();
}

/// Says the kernel's Landlock interface, or 0, and what became of each attempt.
fn attempt_everything() {
    let port = std::env::var(PORT).expect("the test listens").parse().expect("a port");
    let name = std::env::var(NAME).expect("the test listens");
    let neighbour = std::env::var(NEIGHBOUR).expect("the test starts one").parse().expect("a process id");
    let neighbour = Pid::from_raw(neighbour).expect("a process id");
    let report = confine(Mode::Auto, false).expect("this machine can confine a worker");
    let landlock = report.layer(layer::LANDLOCK).expect("it was reached");
    let abi = landlock.detail.strip_prefix("ABI ").and_then(|rest| rest.split(',').next());
    say(abi.filter(|_| landlock.applied).unwrap_or("0"));

    let address = SocketAddr::from_abstract_name(name).expect("a short name");
    say_attempt("list", fs::read_dir("/").map(drop));
    say_attempt("read", fs::File::open("/etc/passwd").map(drop));
    say_attempt("connect", TcpStream::connect(("127.0.0.1", port)).map(drop));
    say_attempt("bind", TcpListener::bind(("127.0.0.1", 0)).map(drop));
    say_attempt("abstract", UnixStream::connect_addr(&address).map(drop));
    say_attempt("signal", test_kill_process(neighbour).map_err(io::Error::from));
}

fn say_attempt(name: &str, result: io::Result<()>) {
    match result {
        Ok(()) => say(&format!("{name} worked")),
        Err(error) => say(&format!("{name} failed: {:?}", error.kind())),
    }
}

/// What the part says of each attempt, and the interface it found.
fn attempts(part: &str) -> (u32, Vec<String>) {
    let tcp = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let name = format!("pydeno-sandbox-{part}-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let unix = UnixListener::bind_addr(&address).expect("a free name");
    let number = tcp.local_addr().expect("it listens").port().to_string();
    let neighbour = Waiting::start("neighbour");
    let environment = [(PORT, &*number), (NAME, &*name), (NEIGHBOUR, &*neighbour.id().to_string())];
    let said = run_with(part, &environment).said();
    drop((tcp, unix, neighbour));
    let mut lines = said.lines().map(str::to_owned);
    let abi = lines.next().expect("the interface comes first").parse().expect("a number");
    (abi, lines.collect())
}

#[test]
fn landlock_alone_keeps_files_sockets_and_signals_away() {
    let (abi, attempts) = attempts("restricted");
    assert!(abi >= 1, "the kernel has Landlock");
    // What each attempt needs to be refused, by the interface that brought it.
    let since = [("list", 1), ("read", 1), ("connect", 4), ("bind", 4), ("abstract", 6), ("signal", 6)];
    assert_eq!(attempts.len(), since.len());
    for ((name, since), attempt) in since.iter().zip(attempts) {
        let wanted = if abi >= *since { "failed: PermissionDenied" } else { "worked" };
        assert_eq!(attempt, format!("{name} {wanted}"), "ABI {abi}");
    }
}

#[test]
fn without_landlock_every_attempt_works() {
    let (abi, attempts) = attempts("unrestricted");
    assert_eq!(abi, 0);
    assert_eq!(attempts.len(), 6);
    assert!(attempts.iter().all(|attempt| attempt.ends_with(" worked")), "{attempts:?}");
}
