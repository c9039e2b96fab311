//! Every system-call number, fired as native code would fire it from inside a confined worker, each in a fresh process.
//!
//! What can be reached is what `reachable/x86_64.txt` lists, neither more nor less; `docs/security.md` has the same list.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, reason = "fires every system call")]

mod confined;

use std::collections::{BTreeMap, BTreeSet};

use confined::{become_ordinary_user, confine, parts, run, say};
use libc::{c_int, c_long};
use pydeno_sandbox::Mode;
use pydeno_sandbox::filter::Architecture;
use pydeno_sandbox::syscalls::{ALLOWED, Condition, FATAL, Group, REFUSED, Test};

parts!(fire_confined, fire_unconfined, other_interfaces_confined, other_interfaces_unconfined);

/// Beyond the newest call of the kernel's table, and what follows it: the numbers that x86 keeps for its x32 interface.
const NUMBERS: std::ops::Range<c_long> = 0..560;
/// The calls of the x32 interface start here.
const X32: c_long = 0x4000_0000;

/// What can be reached, one `number name` a line.
const REACHABLE: &str = include_str!("reachable/x86_64.txt");

/// `uretprobe` and `uprobe`. A kernel that has them asks no filter about them, whoever installed it. Made from anywhere but
/// a probe that a tracer has set, the first ends the process and the second answers `ENXIO`.
const ASKED_OF_NO_FILTER: [(c_long, &str); 2] = [(335, "335 signal 4"), (336, "336 6")];

/// What became of a number: everything that was answered with some arguments or other.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Fate {
    /// The filter killed the process.
    Killed,
    /// `EPERM` whatever the arguments.
    Refused,
    /// `ENOSYS` whatever the arguments.
    Absent,
    /// The kernel ran the call.
    Reachable,
}

/// Six arguments that no call can do anything with: no address, no descriptor, no process; and six zeroes.
const BAD: [[c_long; 6]; 2] = [[-1; 6], [0; 6]];

/// The arguments, changed only so far that they pass the filter's own conditions on this call.
fn passing(mut arguments: [c_long; 6], conditions: &[Condition]) -> [c_long; 6] {
    for Condition { argument, test } in conditions {
        let value = &mut arguments[usize::from(*argument)];
        *value = match *test {
            Test::Int { values, .. } => c_long::from(values[0]),
            Test::Null => 0,
            Test::Exactly(exactly) => exactly as c_long,
            Test::OwnProcess => c_long::from(rustix::process::getpid().as_raw_pid()),
        };
    }
    arguments
}

fn fire(number: c_long, arguments: [c_long; 6]) {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: no argument is an address of this process or the number of anything in it, so a call that runs finds nothing
    // to work on; the few that act without arguments act on this process alone, which is there for it.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    say(&format!("{number} {}", if result == -1 { error } else { 0 }));
}

fn fire_with_every_kind_of_arguments(number: c_long) {
    for arguments in BAD {
        fire(number, arguments);
    }
    let allowed = ALLOWED.iter().find(|entry| c_long::from(entry.numbers[0]) == number);
    if let Some(entry) = allowed.filter(|entry| !entry.conditions.is_empty()) {
        for arguments in BAD {
            fire(number, passing(arguments, entry.conditions));
        }
    }
}

/// Ends a process that waits in a call.
fn bound() {
    const SECONDS: u32 = 2;
    // SAFETY: sets a timer whose signal ends this process.
    unsafe { libc::alarm(SECONDS) };
}

/// Runs `child` in a fork and says how it ended.
fn in_fork(number: c_long, child: impl FnOnce()) {
    // SAFETY: the part has one thread.
    let id = unsafe { libc::fork() };
    assert!(id >= 0, "{}", std::io::Error::last_os_error());
    if id == 0 {
        bound();
        child();
        // SAFETY: ends the fork without the part's destructors.
        unsafe { libc::_exit(0) };
    }
    let mut status: c_int = 0;
    // SAFETY: `status` lives on this stack.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    if libc::WIFSIGNALED(status) {
        say(&format!("{number} signal {}", libc::WTERMSIG(status)));
    } else {
        say(&format!("{number} end {}", libc::WEXITSTATUS(status)));
    }
}

/// Confines this process and shows that it is.
fn be_confined() {
    let report = confine(Mode::Require, true).expect("this machine can confine a worker");
    assert!(report.is_complete());
    assert_eq!(rustix::thread::secure_computing_mode(), Ok(rustix::thread::SecureComputingMode::Filter));
    assert!(std::fs::read_dir("/").is_err(), "a confined process opens nothing");
}

fn fire_confined() {
    for number in NUMBERS {
        in_fork(number, || {
            be_confined();
            fire_with_every_kind_of_arguments(number);
        });
    }
}

/// Those that would make an unconfined process hang, or share its memory with another one.
const NOT_FIRED_UNCONFINED: [c_long; 2] = [libc::SYS_vfork, libc::SYS_pause];

fn fire_unconfined() {
    become_ordinary_user();
    for number in NUMBERS.filter(|number| !NOT_FIRED_UNCONFINED.contains(number)) {
        in_fork(number, || fire(number, BAD[0]));
    }
}

/// What the confined and the unconfined process say, by number.
fn fates(said: &str) -> BTreeMap<c_long, Fate> {
    let mut answers: BTreeMap<c_long, Vec<Fate>> = BTreeMap::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = words[0].parse().expect("a line starts with a number");
        let fate = match words[1..] {
            ["signal", signal] if signal == libc::SIGSYS.to_string() => Some(Fate::Killed),
            ["end", "0"] => None,
            ["end", _] => {
                let ends = [libc::SYS_exit, libc::SYS_exit_group].contains(&number);
                assert!(ends, "{number}: the process failed before or after the call");
                Some(Fate::Reachable)
            }
            [error] if error == libc::EPERM.to_string() => Some(Fate::Refused),
            [error] if error == libc::ENOSYS.to_string() => Some(Fate::Absent),
            // Another answer, or an end that the call itself brought: `rt_sigreturn`, a thread without a stack.
            [_] | ["signal", _] => Some(Fate::Reachable),
            _ => panic!("{line:?} is not understood"),
        };
        answers.entry(number).or_default().extend(fate);
    }
    let combined = |answers: Vec<Fate>| {
        let first = answers[0];
        if answers.iter().all(|answer| *answer == first) { first } else { Fate::Reachable }
    };
    answers.into_iter().map(|(number, answers)| (number, combined(answers))).collect()
}

fn numbers_with(fates: &BTreeMap<c_long, Fate>, wanted: Fate) -> BTreeSet<c_long> {
    fates.iter().filter(|(_, fate)| **fate == wanted).map(|(number, _)| *number).collect()
}

fn table(groups: &'static [Group]) -> BTreeSet<c_long> {
    let calls = groups.iter().flat_map(|group| group.calls);
    calls.filter_map(|(_, numbers)| Architecture::X86_64.number(*numbers).map(c_long::from)).collect()
}

#[test]
fn what_a_confined_process_can_reach_is_what_is_listed() {
    let said = run("fire_confined").said();
    let mut fates = fates(&said);
    assert_eq!(fates.len(), NUMBERS.count(), "every number was fired");
    for (number, harmless) in ASKED_OF_NO_FILTER {
        let fate = fates.remove(&number).expect("it was fired");
        assert!(fate == Fate::Absent || said.lines().any(|line| line == harmless), "{number} {fate:?}");
    }
    let names: BTreeMap<c_long, &str> =
        ALLOWED.iter().map(|entry| (c_long::from(entry.numbers[0]), entry.name)).collect();
    let reached: Vec<String> = numbers_with(&fates, Fate::Reachable)
        .into_iter()
        .map(|number| format!("{number} {}", names.get(&number).unwrap_or(&"not in the table")))
        .collect();
    let listed: Vec<&str> = REACHABLE.lines().collect();
    assert_eq!(reached, listed);
    assert_eq!(numbers_with(&fates, Fate::Killed), table(FATAL));
    assert_eq!(numbers_with(&fates, Fate::Refused), table(REFUSED));
}

#[test]
fn an_unconfined_process_reaches_nearly_everything() {
    let fates = fates(&run("fire_unconfined").said());
    let killed = numbers_with(&fates, Fate::Killed);
    assert!(killed.is_empty(), "{killed:?} killed a process without a filter");
    let reached = numbers_with(&fates, Fate::Reachable).len();
    assert!(reached > 300, "only {reached} calls were reached");
    for number in [libc::SYS_openat, libc::SYS_socket, libc::SYS_kill, libc::SYS_fork, libc::SYS_execve] {
        assert_eq!(fates.get(&number), Some(&Fate::Reachable), "{number}");
    }
}

/// Asks for the process's id through the 32-bit gate.
fn ask_32_bit() -> c_int {
    const GETPID_32: c_int = 20;
    let mut answer = GETPID_32;
    // SAFETY: the gate takes a number and changes no register but that of the answer.
    unsafe {
        std::arch::asm!("int 0x80", inout("eax") answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    answer
}

fn through_other_interfaces(prepare: fn()) {
    in_fork(0, || {
        prepare();
        say(&format!("gate {}", ask_32_bit() == rustix::process::getpid().as_raw_pid()));
    });
    for number in [X32 + libc::SYS_getpid, X32 + 520, X32 + libc::SYS_read] {
        in_fork(number, || {
            prepare();
            fire(number, BAD[0]);
        });
    }
}

fn other_interfaces_confined() {
    through_other_interfaces(be_confined);
}

fn other_interfaces_unconfined() {
    through_other_interfaces(|| {});
}

#[test]
fn the_32_bit_gate_and_the_x32_numbers_kill() {
    let said = run("other_interfaces_confined").said();
    let ends: Vec<&str> = said.lines().collect();
    assert_eq!(ends.len(), 4, "{said}");
    // A kernel without the gate ends the process for having touched it.
    let gate = ends[0];
    assert!(
        [libc::SIGSYS, libc::SIGSEGV].map(|signal| format!("0 signal {signal}")).contains(&gate.to_owned())
    );
    assert!(ends[1..].iter().all(|end| end.ends_with(&format!(" signal {}", libc::SIGSYS))), "{said}");
}

#[test]
fn without_a_filter_the_gate_and_the_numbers_do_not_kill() {
    let said = run("other_interfaces_unconfined").said();
    assert!(!said.contains(&format!("signal {}", libc::SIGSYS)), "{said}");
    assert!(said.lines().filter(|line| line.ends_with(" end 0")).count() >= 3, "{said}");
}
