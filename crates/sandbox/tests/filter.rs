//! The compiled program, run by an interpreter over every number and every argument that matters.

mod interpreter;

use interpreter::{Call, run};
use pydeno_sandbox::filter::{Architecture, Role, compile, compile_for};
use pydeno_sandbox::syscalls::{ABSENT, ALLOWED, FATAL, Group, Outcome, REFUSED, TEMPLATE};

const PROCESS: u32 = 4242;
const BOTH: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
/// Beyond every call of today, and of the years to come.
const BEYOND: u32 = 2000;

fn answer(architecture: Architecture, number: u32, arguments: [u64; 6]) -> Outcome {
    run(&compile(architecture, PROCESS), Call { architecture: architecture.audit(), number, arguments })
}

/// What the filter answers to a call of `ALLOWED`, by name.
#[track_caller]
fn asked(name: &str, arguments: [u64; 6]) -> Outcome {
    let entry = ALLOWED.iter().find(|entry| entry.name == name).expect("the call is in the table");
    let answers = BOTH.map(|architecture| {
        architecture.number(entry.numbers).map(|number| answer(architecture, number, arguments))
    });
    match answers {
        [Some(first), Some(second)] => {
            assert_eq!(first, second, "{name} is answered alike on both architectures");
            first
        }
        [Some(only), None] | [None, Some(only)] => only,
        [None, None] => panic!("{name} exists on no architecture"),
    }
}

#[test]
fn every_number_is_answered_as_the_table_says() {
    for architecture in BOTH {
        let program = compile(architecture, PROCESS);
        for number in 0..BEYOND {
            let here = |numbers| architecture.number(numbers) == Some(number);
            let grouped = [FATAL, REFUSED, ABSENT].into_iter().flatten().find_map(|group: &Group| {
                group.calls.iter().any(|(_, numbers)| here(*numbers)).then_some(group.outcome)
            });
            let free = ALLOWED
                .iter()
                .any(|entry| here(entry.numbers) && entry.conditions.is_empty())
                .then_some(Outcome::Allow);
            let bound = ALLOWED.iter().any(|entry| here(entry.numbers) && !entry.conditions.is_empty());
            if !bound {
                let wanted = grouped.or(free).unwrap_or(Outcome::Absent);
                let call = Call { architecture: architecture.audit(), number, arguments: [u64::MAX; 6] };
                assert_eq!(run(&program, call), wanted, "{architecture:?} {number}");
            }
        }
    }
}

#[test]
fn no_call_is_listed_twice() {
    for architecture in BOTH {
        let groups = [FATAL, REFUSED, ABSENT].into_iter().flatten();
        let grouped = groups.flat_map(|group| group.calls).map(|(name, numbers)| (*name, *numbers));
        let mut seen = std::collections::BTreeMap::new();
        for (name, numbers) in ALLOWED.iter().map(|entry| (entry.name, entry.numbers)).chain(grouped) {
            if let Some(number) = architecture.number(numbers) {
                assert_eq!(seen.insert(number, name), None, "{architecture:?} {number} {name}");
            }
        }
    }
}

#[test]
fn a_call_of_another_architecture_kills() {
    const I386: u32 = 0x4000_0003;
    const ARM: u32 = 0x4000_0028;
    for architecture in BOTH {
        let program = compile(architecture, PROCESS);
        let other = BOTH.into_iter().find(|other| *other != architecture).expect("there are two").audit();
        for foreign in [I386, ARM, other, 0] {
            for number in 0..BEYOND {
                let call = Call { architecture: foreign, number, arguments: [0; 6] };
                assert_eq!(run(&program, call), Outcome::Kill, "{architecture:?} {foreign:#x} {number}");
            }
        }
    }
}

#[test]
fn an_x32_call_kills() {
    const X32: u32 = 0x4000_0000;
    for number in (0..BEYOND).map(|number| X32 | number).chain([u32::MAX, u32::MAX - 1]) {
        assert_eq!(answer(Architecture::X86_64, number, [0; 6]), Outcome::Kill, "{number:#x}");
    }
}

#[test]
fn a_number_far_beyond_the_table_is_absent() {
    for architecture in BOTH {
        for number in [BEYOND, 10_000, 0x3fff_ffff] {
            assert_eq!(answer(architecture, number, [0; 6]), Outcome::Absent, "{architecture:?} {number}");
        }
    }
}

#[test]
fn a_thread_may_be_made_with_the_flags_of_pthread_create_only() {
    const THREAD: u64 = 0x3d_0f00;
    const SIGCHLD: u64 = 0x11;
    assert_eq!(asked("clone", [THREAD, 1, 2, 3, 4, 0]), Outcome::Allow);
    let high = 1 << 32;
    for flags in [0, SIGCHLD, THREAD | SIGCHLD, THREAD | high, THREAD ^ 0x100] {
        assert_eq!(asked("clone", [flags, 0, 0, 0, 0, 0]), Outcome::Refuse, "{flags:#x}");
    }
    for namespace in
        [0x80, 0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
    {
        assert_eq!(asked("clone", [THREAD | namespace, 0, 0, 0, 0, 0]), Outcome::Refuse, "{namespace:#x}");
    }
    for missing in (0..22).map(|bit| 1 << bit).filter(|bit| THREAD & bit != 0) {
        assert_eq!(asked("clone", [THREAD & !missing, 0, 0, 0, 0, 0]), Outcome::Refuse, "{missing:#x}");
    }
}

#[test]
fn memory_is_private_and_never_executable() {
    const PRIVATE: u64 = 0x22;
    for protection in 0..16_u64 {
        let wanted = if protection & 4 == 0 { Outcome::Allow } else { Outcome::Refuse };
        assert_eq!(asked("mmap", [0, 4096, protection, PRIVATE, u64::MAX, 0]), wanted, "mmap {protection}");
        assert_eq!(asked("mprotect", [4096, 4096, protection, 0, 0, 0]), wanted, "mprotect {protection}");
    }
    // Shared, shared and validated, shared and anonymous, private of a file, no type.
    for flags in [0x01, 0x03, 0x21, 0x02, 0x20] {
        assert_eq!(asked("mmap", [0, 4096, 3, flags, 3, 0]), Outcome::Refuse, "{flags:#x}");
    }
    // The engine's own: fixed, without reserve, a stack.
    for flags in [0x4022, 0x4032, 0x2_0022] {
        assert_eq!(asked("mmap", [0, 4096, 0, flags, u64::MAX, 0]), Outcome::Allow, "{flags:#x}");
    }
}

#[test]
fn only_this_process_can_be_signalled() {
    let own = u64::from(PROCESS);
    assert_eq!(asked("tgkill", [own, 77, 10, 0, 0, 0]), Outcome::Allow);
    for other in [0, 1, own - 1, own + 1, u64::from(u32::MAX)] {
        assert_eq!(asked("tgkill", [other, 77, 10, 0, 0, 0]), Outcome::Refuse, "{other}");
    }
}

#[test]
fn a_message_names_no_other_address() {
    for call in ["sendto", "recvfrom"] {
        assert_eq!(asked(call, [3, 4096, 8, 0, 0, 0]), Outcome::Allow);
        for address in [1, 0x7fff_0000_0000, 1 << 32, u64::MAX] {
            assert_eq!(asked(call, [3, 4096, 8, 0, address, 16]), Outcome::Refuse, "{call} {address:#x}");
        }
    }
}

#[test]
fn limits_are_read_and_not_set() {
    assert_eq!(asked("prlimit64", [0, 3, 0, 4096, 0, 0]), Outcome::Allow);
    assert_eq!(asked("prlimit64", [1, 3, 0, 4096, 0, 0]), Outcome::Refuse);
    assert_eq!(asked("prlimit64", [0, 3, 4096, 0, 0, 0]), Outcome::Refuse);
    assert_eq!(asked("prlimit64", [0, 3, 1 << 32, 0, 0, 0]), Outcome::Refuse);
}

#[test]
fn futexes_do_not_inherit_priority() {
    const PRIVATE: u64 = 128;
    const REALTIME: u64 = 256;
    for (operation, wanted) in [
        (0, Outcome::Allow),
        (1, Outcome::Allow),
        (2, Outcome::Refuse),
        (3, Outcome::Allow),
        (4, Outcome::Allow),
        (5, Outcome::Allow),
        (6, Outcome::Refuse),
        (7, Outcome::Refuse),
        (8, Outcome::Refuse),
        (9, Outcome::Allow),
        (10, Outcome::Allow),
        (11, Outcome::Refuse),
        (12, Outcome::Refuse),
        (13, Outcome::Refuse),
        (14, Outcome::Refuse),
    ] {
        for flags in [0, PRIVATE, PRIVATE | REALTIME] {
            assert_eq!(asked("futex", [4096, operation | flags, 0, 0, 0, 0]), wanted, "{operation} {flags}");
        }
    }
}

#[test]
fn an_option_is_judged_by_the_bits_that_the_kernel_looks_at() {
    // The kernel cuts an `int` to 32 bits, so what stands above them must not turn a refusal into leave.
    const SET_NAME: u64 = 15;
    const SET_DUMPABLE: u64 = 4;
    const SET_PDEATHSIG: u64 = 1;
    let high = 7 << 32;
    assert_eq!(asked("prctl", [SET_NAME, 4096, 0, 0, 0, 0]), Outcome::Allow);
    assert_eq!(asked("prctl", [high | SET_NAME, 4096, 0, 0, 0, 0]), Outcome::Allow);
    for option in [SET_DUMPABLE, SET_PDEATHSIG, high | SET_DUMPABLE, 8, 22, 23, 24, 28, 38, 47, 59] {
        assert_eq!(asked("prctl", [option, 1, 0, 0, 0, 0]), Outcome::Refuse, "{option:#x}");
    }
}

#[test]
fn descriptors_are_not_copied_and_advice_is_only_taken_on_own_memory() {
    for command in 0..2000_u64 {
        let wanted = if [1, 3].contains(&command) { Outcome::Allow } else { Outcome::Refuse };
        assert_eq!(asked("fcntl", [3, command, 0, 0, 0, 0]), wanted, "{command}");
    }
    for advice in 0..128_u64 {
        let wanted =
            if [0, 3, 4, 8, 14, 15, 16, 17].contains(&advice) { Outcome::Allow } else { Outcome::Refuse };
        assert_eq!(asked("madvise", [4096, 4096, advice, 0, 0, 0]), wanted, "{advice}");
    }
}

#[test]
fn a_condition_holds_only_where_all_do() {
    // Executable and private, or shared and not executable: one condition each.
    assert_eq!(asked("mmap", [0, 4096, 7, 0x22, u64::MAX, 0]), Outcome::Refuse);
    assert_eq!(asked("mmap", [0, 4096, 3, 0x21, u64::MAX, 0]), Outcome::Refuse);
    assert_eq!(asked("mmap", [0, 4096, 3, 0x22, u64::MAX, 0]), Outcome::Allow);
}

#[test]
fn the_program_fits_and_only_jumps_forward_within_itself() {
    for architecture in BOTH {
        let program = compile(architecture, PROCESS);
        assert!(program.len() <= 4096, "the kernel takes no more");
        interpreter::check(&program);
    }
}

/// What a template's filter answers, on this architecture.
fn template(number: i64, arguments: [u64; 6]) -> Outcome {
    let program = compile_for(Role::Template, Architecture::NATIVE, PROCESS);
    let number = u32::try_from(number).expect("numbers of calls are small");
    run(&program, Call { architecture: Architecture::NATIVE.audit(), number, arguments })
}

#[test]
fn a_template_may_do_what_a_worker_may_and_what_its_own_table_adds_and_nothing_else() {
    for architecture in BOTH {
        let (worker, template) =
            (compile(architecture, PROCESS), compile_for(Role::Template, architecture, PROCESS));
        let added: Vec<u32> =
            TEMPLATE.iter().filter_map(|entry| architecture.number(entry.numbers)).collect();
        for number in 0..BEYOND {
            for arguments in [[0; 6], [1; 6], [u64::MAX; 6]] {
                let call = |arguments| Call { architecture: architecture.audit(), number, arguments };
                let (before, after) = (run(&worker, call(arguments)), run(&template, call(arguments)));
                let may_differ = added.contains(&number) && before != Outcome::Allow;
                assert!(before == after || may_differ, "{architecture:?} {number}: {before:?}, {after:?}");
            }
        }
    }
}

#[test]
fn a_template_forks_processes_and_threads_and_makes_nothing_between_them() {
    let process = (libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD) as u64;
    assert_eq!(template(libc::SYS_clone, [process, 0, 0, 0, 0, 0]), Outcome::Allow);
    for flag in
        [libc::CLONE_VM, libc::CLONE_NEWUSER, libc::CLONE_PARENT, libc::CLONE_VFORK, libc::CLONE_FILES]
    {
        let flags = process | flag as u64;
        assert_eq!(template(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), Outcome::Refuse, "{flags:#x}");
    }
    assert_eq!(template(libc::SYS_clone, [process | 1 << 40, 0, 0, 0, 0, 0]), Outcome::Refuse);
    assert_eq!(template(libc::SYS_clone3, [0; 6]), Outcome::Absent);
}

#[test]
fn a_template_can_neither_outlive_its_parent_nor_become_dumpable_nor_raise_a_limit() {
    let prctl = |operation: i32, value: u64| template(libc::SYS_prctl, [operation as u64, value, 0, 0, 0, 0]);
    assert_eq!(prctl(libc::PR_SET_PDEATHSIG, 9), Outcome::Allow);
    assert_eq!(prctl(libc::PR_SET_PDEATHSIG, 0), Outcome::Refuse);
    assert_eq!(prctl(libc::PR_GET_DUMPABLE, 0), Outcome::Allow);
    assert_eq!(prctl(libc::PR_SET_DUMPABLE, 1), Outcome::Refuse);
    assert_eq!(prctl(libc::PR_SET_NAME, 1), Outcome::Allow, "the worker's conditions still count");
    let limit = |process: u64, resource: u32| {
        template(libc::SYS_prlimit64, [process, u64::from(resource), 1, 0, 0, 0])
    };
    assert_eq!(limit(0, libc::RLIMIT_NOFILE), Outcome::Allow);
    assert_eq!(limit(0, libc::RLIMIT_CORE), Outcome::Refuse);
    assert_eq!(limit(7, libc::RLIMIT_NOFILE), Outcome::Refuse);
}

#[test]
fn a_template_can_neither_signal_nor_trace_nor_leave_its_namespaces() {
    assert_eq!(template(libc::SYS_kill, [1, 0, 0, 0, 0, 0]), Outcome::Refuse);
    assert_eq!(template(libc::SYS_pidfd_send_signal, [3, 9, 0, 0, 0, 0]), Outcome::Refuse);
    assert_eq!(template(libc::SYS_tgkill, [1, 1, 9, 0, 0, 0]), Outcome::Refuse);
    assert_eq!(template(libc::SYS_ptrace, [0; 6]), Outcome::Kill);
    assert_eq!(template(libc::SYS_process_vm_readv, [0; 6]), Outcome::Kill);
    assert_eq!(template(libc::SYS_pidfd_getfd, [0; 6]), Outcome::Kill);
    assert_eq!(template(libc::SYS_unshare, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]), Outcome::Kill);
    assert_eq!(template(libc::SYS_setns, [0; 6]), Outcome::Kill);
    assert_eq!(template(libc::SYS_execve, [0; 6]), Outcome::Kill);
    assert_eq!(template(libc::SYS_waitid, [u64::from(libc::P_ALL), 0, 0, 0, 0, 0]), Outcome::Refuse);
}
