//! The calls that a worker makes, by purpose.

use super::{Condition, Entry, NONE, Test};

/// What the C library's `pthread_create` passes: a thread of this process, and no namespace.
const THREAD: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID) as u64;

/// Every bit of an `int`.
const WHOLE: u32 = u32::MAX;

const fn int(argument: u8, mask: i32, values: &'static [u32]) -> Condition {
    Condition { argument, test: Test::Int { mask: mask as u32, values } }
}

pub(super) const fn one_of(argument: u8, values: &'static [u32]) -> Condition {
    Condition { argument, test: Test::Int { mask: WHOLE, values } }
}

const fn null(argument: u8) -> Condition {
    Condition { argument, test: Test::Null }
}

pub(super) const fn entry(
    name: &'static str,
    numbers: [u32; 2],
    conditions: &'static [Condition],
    reason: &'static str,
) -> Entry {
    Entry { name, numbers, conditions, reason }
}

/// Private memory only. Sharing needs a descriptor of a file, which a worker has no business with.
const PRIVATE: Condition =
    int(3, libc::MAP_TYPE | libc::MAP_ANONYMOUS, &[(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u32]);

/// Nothing new is executable in any tier: the JIT's one region is mapped before the filter.
const NOT_EXECUTABLE: Condition = int(2, libc::PROT_EXEC, &[0]);

/// The calls that a worker makes, and what their arguments must be.
pub const ALLOWED: &[Entry] = &[
    // The socket and the wake-up descriptor.
    entry("read", [0, 63], &[], "the worker reads frames; the engine's helper thread reads its wake-ups"),
    entry("write", [1, 64], &[], "the worker writes frames; the engine wakes its helper thread"),
    entry("readv", [19, 65], &[], "frames read into two buffers"),
    entry("writev", [20, 66], &[], "a frame's head and body in one call"),
    entry("recvfrom", [45, 207], &[null(4)], "`recv` on the worker's socket"),
    entry(
        "sendto",
        [44, 206],
        &[null(4)],
        "`send` on the worker's socket; with an address it could name another",
    ),
    entry("poll", [7, NONE], &[], "the engine's helper thread waits for its next deadline"),
    entry("ppoll", [271, 73], &[], "`poll` on aarch64"),
    entry("close", [3, 57], &[], "the helper thread's wake-up descriptor, when the thread ends"),
    entry("eventfd2", [290, 19], &[], "the wake-up descriptor of the engine's helper thread"),
    entry(
        "fcntl",
        [72, 25],
        &[one_of(1, &[libc::F_GETFD as u32, libc::F_GETFL as u32])],
        "Rust checks that a descriptor it closes is open",
    ),
    // Memory.
    entry("madvise", [28, 233], &[int(2, -1, ADVICE)], "the engine gives pages back and takes them again"),
    entry("mmap", [9, 222], &[NOT_EXECUTABLE, PRIVATE], "heap, buffers and thread stacks"),
    entry("mprotect", [10, 226], &[NOT_EXECUTABLE], "guard pages; pages of a reserved range put to use"),
    entry("munmap", [11, 215], &[], "heap, buffers and stacks given back"),
    entry("mremap", [25, 216], &[], "the C library's `realloc` of a large block"),
    entry("brk", [12, 214], &[], "the C library's allocator"),
    // Threads.
    entry("futex", [202, 98], &[int(1, FUTEX_COMMAND, FUTEX_PLAIN)], "every lock and every wait for one"),
    entry(
        "clone",
        [56, 220],
        &[Condition { argument: 0, test: Test::Exactly(THREAD) }],
        "the engine's helper, collector and compiler threads",
    ),
    entry("exit", [60, 93], &[], "a thread ends"),
    entry("exit_group", [231, 94], &[], "the worker ends"),
    entry("set_robust_list", [273, 99], &[], "the C library, in every new thread"),
    entry("rseq", [334, 293], &[], "the C library, in every new thread"),
    entry("gettid", [186, 178], &[], "the engine, in every new thread; `abort`"),
    entry("getpid", [39, 172], &[], "the C library, before it signals one of its threads; `abort`"),
    entry("sched_yield", [24, 124], &[], "the engine's spinning locks"),
    entry(
        "prctl",
        [157, 167],
        &[one_of(0, &[libc::PR_SET_NAME as u32, libc::PR_GET_SECCOMP as u32])],
        "the engine names its threads; this crate checks its own filter",
    ),
    // Signals.
    entry("rt_sigaction", [13, 134], &[], "the engine's handlers; the C library's for its own signals"),
    entry("rt_sigprocmask", [14, 135], &[], "the C library, around thread creation; `abort`"),
    entry("rt_sigreturn", [15, 139], &[], "the return from a handler"),
    entry("rt_sigsuspend", [130, 133], &[], "a thread that the collector has stopped"),
    entry("sigaltstack", [131, 132], &[], "Rust's handler of stack overflows, in every new thread"),
    entry(
        "tgkill",
        [234, 131],
        &[Condition { argument: 0, test: Test::OwnProcess }],
        "the collector stops this process's other threads; `abort`",
    ),
    entry("restart_syscall", [219, 128], &[], "the kernel, to go on with a wait that a signal interrupted"),
    // Clocks and facts about the machine.
    entry(
        "clock_gettime",
        [228, 113],
        &[one_of(0, CLOCKS)],
        "`Date.now`, the time limit; where the kernel's page cannot answer",
    ),
    entry("gettimeofday", [96, 169], &[], "as `clock_gettime`, in older code"),
    entry("time", [201, NONE], &[], "as `clock_gettime`, in older code"),
    entry(
        "clock_nanosleep",
        [230, 115],
        &[one_of(0, &[libc::CLOCK_REALTIME as u32, libc::CLOCK_MONOTONIC as u32])],
        "sleeping threads of the engine and of the worker",
    ),
    entry("nanosleep", [35, 101], &[], "as `clock_nanosleep`, in older code"),
    entry("getrandom", [318, 278], &[], "seeds"),
    entry("getrusage", [98, 165], &[], "the engine measures the processor time of its threads"),
    entry("sysinfo", [99, 179], &[], "the collector paces itself by the machine's memory"),
    entry("getrlimit", [97, 163], &[], "the size of a stack"),
    entry(
        "prlimit64",
        [302, 261],
        &[one_of(0, &[0]), null(2)],
        "as `getrlimit`; this process only, reading only",
    ),
];

/// The machine's clocks and this process's own. Other numbers are made of a process's id, and read how much processor time
/// that process has used, whoever owns it.
const CLOCKS: &[u32] = &[
    libc::CLOCK_REALTIME as u32,
    libc::CLOCK_MONOTONIC as u32,
    libc::CLOCK_PROCESS_CPUTIME_ID as u32,
    libc::CLOCK_THREAD_CPUTIME_ID as u32,
    libc::CLOCK_MONOTONIC_RAW as u32,
    libc::CLOCK_REALTIME_COARSE as u32,
    libc::CLOCK_MONOTONIC_COARSE as u32,
    libc::CLOCK_BOOTTIME as u32,
];

/// `MADV_*` of the engine and of the C library's allocator. Others change what several processes see or share.
const ADVICE: &[u32] = &[
    libc::MADV_NORMAL as u32,
    libc::MADV_WILLNEED as u32,
    libc::MADV_DONTNEED as u32,
    libc::MADV_FREE as u32,
    libc::MADV_HUGEPAGE as u32,
    libc::MADV_NOHUGEPAGE as u32,
    libc::MADV_DONTDUMP as u32,
    libc::MADV_DODUMP as u32,
];

/// `futex` without the flags that say which clock and whether private.
const FUTEX_COMMAND: i32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);

/// Without the priority-inheriting operations, which nothing here uses and which have had holes.
const FUTEX_PLAIN: &[u32] = &[
    libc::FUTEX_WAIT as u32,
    libc::FUTEX_WAKE as u32,
    libc::FUTEX_REQUEUE as u32,
    libc::FUTEX_CMP_REQUEUE as u32,
    libc::FUTEX_WAKE_OP as u32,
    libc::FUTEX_WAIT_BITSET as u32,
    libc::FUTEX_WAKE_BITSET as u32,
];
