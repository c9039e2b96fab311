//! The calls that a template makes besides a worker's, by purpose. Its forks are under this filter, too, so whatever only
//! they are to do until they have a worker's filter of their own is here.

use super::allowed::{entry, one_of};
use super::{Condition, Entry, Test};

/// What the C library's `fork` passes: a process with memory of its own, and no namespace.
const PROCESS: u64 = (libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD) as u64;

/// The calls that a template makes, and what their arguments must be. A call of [`ALLOWED`](super::ALLOWED) that stands
/// here again may have either arguments.
pub const TEMPLATE: &[Entry] = &[
    // Requests, and forks.
    entry("recvmsg", [47, 212], &[], "a request for a fork comes with its socket"),
    entry(
        "sendmsg",
        [46, 211],
        &[],
        "the answer goes with the fork's pidfd; there is no other socket to name",
    ),
    entry("epoll_ctl", [233, 21], &[], "the template waits for requests and for the ends of its forks"),
    entry("epoll_pwait", [281, 22], &[], "as above"),
    entry(
        "pread64",
        [17, 67],
        &[],
        "counts the process's threads, before each fork, in a file of /proc that was open before the sandbox",
    ),
    entry(
        "clone",
        [56, 220],
        &[Condition { argument: 0, test: Test::Exactly(PROCESS) }],
        "the C library's `fork`",
    ),
    entry(
        "pidfd_open",
        [434, 434],
        &[one_of(1, &[0])],
        "a name for the fork that cannot come to mean another",
    ),
    entry("waitid", [247, 95], &[one_of(0, &[libc::P_PIDFD])], "how a fork ended"),
    // What a fork does first.
    entry("setsid", [112, 157], &[], "a session of its own"),
    entry("getppid", [110, 173], &[], "whether the template still lives"),
    entry(
        "prctl",
        [157, 167],
        &[one_of(0, &[libc::PR_SET_PDEATHSIG as u32]), one_of(1, &[libc::SIGKILL as u32])],
        "the fork dies with the template",
    ),
    entry(
        "prctl",
        [157, 167],
        &[one_of(0, &[libc::PR_GET_PDEATHSIG as u32, libc::PR_GET_DUMPABLE as u32])],
        "checks both",
    ),
    entry("close_range", [436, 436], &[], "every descriptor but the fork's own"),
    entry("dup3", [292, 24], &[], "a wake-up descriptor of its own under the number that the engine knows"),
    entry(
        "prlimit64",
        [302, 261],
        &[one_of(0, &[0]), one_of(1, &[libc::RLIMIT_NOFILE])],
        "fewer descriptors; more are for the privileged",
    ),
    entry("landlock_create_ruleset", [444, 444], &[], "a domain of its own within the template's"),
    entry("landlock_restrict_self", [446, 446], &[], "as above"),
    entry(
        "seccomp",
        [317, 277],
        &[one_of(0, &[libc::SECCOMP_SET_MODE_FILTER]), one_of(1, &[libc::SECCOMP_FILTER_FLAG_TSYNC as u32])],
        "a worker's filter on top of this one; a filter can only take away",
    ),
];
