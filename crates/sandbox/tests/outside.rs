//! A confined process as the host sees it in /proc, beside one that is not confined.

#![allow(unsafe_code, reason = "sets the execution domain that a layer is to clear")]

mod confined;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use confined::{Waiting, become_ordinary_user, confine, parts, wait_for_the_test};
use pydeno_sandbox::Mode;

parts!(confined_part, confined_as_an_ordinary_user, unconfined);

fn confined_part() {
    spoil();
    confine(Mode::Require, true).expect("this machine can confine a worker");
    wait_for_the_test();
}

fn confined_as_an_ordinary_user() {
    become_ordinary_user();
    spoil();
    confine(Mode::Require, true).expect("this machine can confine a worker");
    wait_for_the_test();
}

fn unconfined() {
    become_ordinary_user();
    spoil();
    wait_for_the_test();
}

/// Makes this process as a careless host might start it.
fn spoil() {
    if rustix::process::getuid().is_root() {
        let groups = [4, 5].map(rustix::process::Gid::from_raw);
        rustix::thread::set_thread_groups(&groups).expect("root may join groups");
    }
    // SAFETY: later mappings of this process become executable, which nothing here minds.
    assert!(unsafe { libc::personality(libc::READ_IMPLIES_EXEC as libc::c_ulong) } >= 0);
    // SAFETY: ignores a signal that nothing here waits for.
    assert!(unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) } != libc::SIG_ERR);
    // SAFETY: all zeroes is the empty set.
    let mut blocked = unsafe { std::mem::zeroed() };
    // SAFETY: `blocked` lives on this stack.
    unsafe { libc::sigaddset(&raw mut blocked, libc::SIGHUP) };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut()) }, 0);
}

/// What /proc shows of a part that waits.
struct Seen {
    part: Waiting,
}

fn fields(status: &str) -> HashMap<String, String> {
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

impl Seen {
    fn of(part: &str) -> Self {
        Self { part: Waiting::start(part) }
    }

    fn path(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.part.id())
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("the file is there for everyone to read")
    }

    fn status(&self) -> HashMap<String, String> {
        fields(&self.read("status"))
    }

    /// Soft and hard limit, as the kernel words them.
    fn limit(&self, name: &str) -> (String, String) {
        let limits = self.read("limits");
        let line = limits.lines().find(|line| line.starts_with(name)).expect("the kernel has the limit");
        let mut values = line[name.len()..].split_whitespace().map(str::to_owned);
        (values.next().expect("a soft limit"), values.next().expect("a hard limit"))
    }

    /// The field of `stat` with this number, as proc(5) counts, from after the name.
    fn stat(&self, field: usize) -> i64 {
        let stat = self.read("stat");
        let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
        fields.split(' ').nth(field - 3).expect("the field").parse().expect("a number")
    }
}

const CONFINED: [&str; 2] = ["confined_part", "confined_as_an_ordinary_user"];

#[test]
fn a_confined_process_has_no_privileges_and_a_filter() {
    for part in CONFINED {
        let status = Seen::of(part).status();
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status[set], "0000000000000000", "{part} {set}");
        }
        assert_eq!(status["NoNewPrivs"], "1", "{part}");
        assert_eq!(status["Seccomp"], "2", "{part}");
        assert_eq!(status["Threads"], "1", "{part}");
        assert!(!status["Uid"].split('\t').any(|id| id == "0"), "{part} {}", status["Uid"]);
    }
    let unconfined = Seen::of("unconfined").status();
    // Whatever confines the tests themselves, such as a container, is inherited.
    let own = fields(&fs::read_to_string("/proc/self/status").expect("/proc is mounted"));
    for field in ["CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters"] {
        assert_eq!(unconfined[field], own[field], "{field}");
    }
}

#[test]
fn root_has_become_nobody_in_every_id() {
    if rustix::process::getuid().is_root() {
        let status = Seen::of("confined_part").status();
        let nobody = ["65534"; 4].join("\t");
        assert_eq!(status["Uid"], nobody);
        assert_eq!(status["Gid"], nobody);
        assert_eq!(status["Groups"], "");
    } else {
        let own = rustix::process::getuid().as_raw().to_string();
        assert_eq!(Seen::of("confined_part").status()["Uid"], [own.as_str(); 4].join("\t"));
    }
}

#[test]
fn signals_are_neither_blocked_nor_ignored_but_the_two_that_writes_report() {
    const PIPE_AND_FILE_SIZE: u64 = 1 << (libc::SIGPIPE - 1) | 1 << (libc::SIGXFSZ - 1);
    let mask = |status: &HashMap<String, String>, name: &str| {
        u64::from_str_radix(&status[name], 16).expect("the kernel writes hexadecimal")
    };
    for part in CONFINED {
        let status = Seen::of(part).status();
        assert_eq!(mask(&status, "SigBlk"), 0, "{part}");
        assert_eq!(mask(&status, "SigIgn"), PIPE_AND_FILE_SIZE, "{part}");
    }
    let status = Seen::of("unconfined").status();
    assert_ne!(mask(&status, "SigBlk"), 0);
    assert_ne!(mask(&status, "SigIgn") & 1 << (libc::SIGTERM - 1), 0);
}

#[test]
fn limits_are_low_and_cannot_be_raised() {
    let wanted = [
        ("Max core file size", "0"),
        ("Max file size", "0"),
        ("Max open files", "64"),
        ("Max locked memory", "0"),
        ("Max msgqueue size", "0"),
        ("Max nice priority", "0"),
        ("Max realtime priority", "0"),
        ("Max processes", "64"),
    ];
    for part in CONFINED {
        let process = Seen::of(part);
        for (name, value) in wanted {
            assert_eq!(process.limit(name), (value.to_owned(), value.to_owned()), "{part} {name}");
        }
    }
    let unconfined = Seen::of("unconfined");
    for name in ["Max file size", "Max open files", "Max locked memory", "Max processes"] {
        let value = wanted.iter().find(|(wanted, _)| *wanted == name).expect("it is listed").1;
        assert_ne!(unconfined.limit(name).1, value, "{name}");
    }
}

#[test]
fn a_confined_process_leads_a_session_of_its_own() {
    const SESSION: usize = 6;
    for part in CONFINED {
        let process = Seen::of(part);
        assert_eq!(process.stat(SESSION), i64::from(process.part.id()), "{part}");
    }
    let unconfined = Seen::of("unconfined");
    assert_ne!(unconfined.stat(SESSION), i64::from(unconfined.part.id()));
}

#[test]
fn the_kernel_prefers_a_confined_process_when_memory_runs_out() {
    for part in CONFINED {
        assert_eq!(Seen::of(part).read("oom_score_adj").trim(), "300", "{part}");
    }
    assert_ne!(Seen::of("unconfined").read("oom_score_adj").trim(), "300");
}

#[test]
fn a_confined_process_is_closed_to_others_of_its_user() {
    // What only a debugger may read belongs to root when the process is not dumpable.
    for part in CONFINED {
        let process = Seen::of(part);
        assert_eq!(fs::metadata(process.path("environ")).expect("it is there").uid(), 0, "{part}");
    }
    let process = Seen::of("unconfined");
    assert_ne!(fs::metadata(process.path("environ")).expect("it is there").uid(), 0);
}

/// What the kernel shows to root, and to nobody else once the process is not dumpable.
#[test]
fn the_namespaces_are_its_own_and_the_root_is_empty() {
    for part in CONFINED {
        let process = Seen::of(part);
        if !rustix::process::getuid().is_root() {
            let refused = fs::read_link(process.path("ns/user")).expect_err("the process is not dumpable");
            assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
            continue;
        }
        for namespace in ["user", "mnt", "net", "ipc", "uts", "cgroup"] {
            let its = fs::read_link(process.path(&format!("ns/{namespace}"))).expect("root may look");
            let own = fs::read_link(format!("/proc/self/ns/{namespace}")).expect("this process may look");
            assert_ne!(its, own, "{part} {namespace}");
        }
        assert_eq!(fs::read_dir(process.path("root")).expect("root may look").count(), 0, "{part}");
        let mounts = process.read("mountinfo");
        assert_eq!(mounts.lines().count(), 1, "{part} {mounts}");
        assert!(mounts.contains(" / / ro,nosuid,nodev,noexec,relatime - tmpfs "), "{part} {mounts}");
        let interfaces = process.read("net/dev");
        assert_eq!(interfaces.lines().filter(|line| line.contains(':')).count(), 1, "{part} {interfaces}");
        assert_eq!(fs::read_dir(process.path("fd")).expect("root may look").count(), 3, "{part}");
        let personality = i32::from_str_radix(process.read("personality").trim(), 16).expect("hexadecimal");
        assert_eq!(personality & libc::READ_IMPLIES_EXEC, 0, "{part}");
    }
    let process = Seen::of("unconfined");
    if rustix::process::getuid().is_root() {
        let personality = i32::from_str_radix(process.read("personality").trim(), 16).expect("hexadecimal");
        assert_ne!(personality & libc::READ_IMPLIES_EXEC, 0);
        assert_ne!(fs::read_dir(process.path("root")).expect("root may look").count(), 0);
    }
}
