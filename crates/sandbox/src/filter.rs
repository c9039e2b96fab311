//! The compiler from the table in [`syscalls`](crate::syscalls) to the kernel's filter language.
//!
//! A program looks at the architecture, finds the call's number by binary search over ranges with one answer, and there
//! either answers or looks at arguments. Every jump of the language goes forward and most reach 255 instructions, so the
//! program is written from its end: what is jumped to already stands.

use std::collections::BTreeMap;

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter,
};

use crate::syscalls::{
    ABSENT, ALLOWED, Condition, Entry, FATAL, Group, NONE, Outcome, REFUSED, TEMPLATE, Test,
};

/// A machine whose calls a filter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86. Its 32-bit and x32 calls kill.
    X86_64,
    /// 64-bit Arm. Its 32-bit calls kill.
    Aarch64,
}

impl Architecture {
    /// The one this code was compiled for.
    #[cfg(target_arch = "x86_64")]
    pub const NATIVE: Self = Self::X86_64;
    /// The one this code was compiled for.
    #[cfg(target_arch = "aarch64")]
    pub const NATIVE: Self = Self::Aarch64;

    /// The kernel's `AUDIT_ARCH_*` constant.
    pub const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    /// The call's number here.
    pub const fn number(self, numbers: [u32; 2]) -> Option<u32> {
        let number = match self {
            Self::X86_64 => numbers[0],
            Self::Aarch64 => numbers[1],
        };
        if number == NONE { None } else { Some(number) }
    }
}

/// Where the kernel's `seccomp_data` holds the call's number.
const NUMBER: u32 = 0;
/// Where it holds the architecture.
const ARCHITECTURE: u32 = 4;
/// Where it holds the first of six 64-bit arguments.
const ARGUMENTS: u32 = 16;
/// Numbers from here on are calls of `x86_64`'s x32 interface.
const X32: u32 = 0x4000_0000;

/// Whose calls a program judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A process that runs guest code.
    Worker,
    /// A process that has run trusted code and forks workers.
    Template,
}

impl Role {
    /// The tables of what is allowed.
    fn allowed(self) -> &'static [&'static [Entry]] {
        match self {
            Self::Worker => &[ALLOWED],
            Self::Template => &[ALLOWED, TEMPLATE],
        }
    }
}

/// The call numbers from `start` to the next range's start.
#[derive(Clone, Debug)]
struct Range {
    start: u32,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    Always(Outcome),
    /// Allowed if all conditions of one of these hold.
    AllowIf(Vec<&'static [Condition]>),
}

/// The program for a worker with this process id.
pub fn compile(architecture: Architecture, process: u32) -> Vec<sock_filter> {
    compile_for(Role::Worker, architecture, process)
}

/// The program for a process of this role with this id.
pub fn compile_for(role: Role, architecture: Architecture, process: u32) -> Vec<sock_filter> {
    let ranges = ranges(role, architecture);
    let mut program = Program { reversed: Vec::with_capacity(512), returns: [None; 4], process };
    let search = program.search(&ranges);
    let load_number = program.push(BPF_LD | BPF_W | BPF_ABS, NUMBER);
    debug_assert_eq!(load_number, search + 1, "the search follows the number it looks for");
    let kill = program.answer(Outcome::Kill);
    // `answer` may have written a return of its own, over which the right architecture jumps.
    program.branch(BPF_JEQ, architecture.audit(), load_number, kill);
    program.push(BPF_LD | BPF_W | BPF_ABS, ARCHITECTURE);
    program.reversed.reverse();
    program.reversed
}

/// What is answered to every number that stands in a table.
fn answers(role: Role, architecture: Architecture) -> BTreeMap<u32, Answer> {
    let mut answers = BTreeMap::new();
    for Group { outcome, calls, .. } in [FATAL, REFUSED, ABSENT].into_iter().flatten() {
        for (_, numbers) in *calls {
            if let Some(number) = architecture.number(*numbers) {
                answers.insert(number, Answer::Always(*outcome));
            }
        }
    }
    for entry in role.allowed().iter().copied().flatten() {
        let Some(number) = architecture.number(entry.numbers) else { continue };
        match (answers.get_mut(&number), entry.conditions) {
            (Some(Answer::Always(Outcome::Allow)), _) => {}
            (_, []) => drop(answers.insert(number, Answer::Always(Outcome::Allow))),
            (Some(Answer::AllowIf(alternatives)), conditions) => alternatives.push(conditions),
            (_, conditions) => drop(answers.insert(number, Answer::AllowIf(vec![conditions]))),
        }
    }
    answers
}

/// All numbers, in ranges of one answer.
fn ranges(role: Role, architecture: Architecture) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut add = |start, answer| match (ranges.last(), &answer) {
        (Some(Range { answer: Answer::Always(last), .. }), Answer::Always(next)) if last == next => {}
        _ => ranges.push(Range { start, answer }),
    };
    let mut next = 0;
    for (number, answer) in answers(role, architecture) {
        if next < number {
            add(next, Answer::Always(Outcome::Absent));
        }
        add(number, answer);
        next = number + 1;
    }
    add(next, Answer::Always(Outcome::Absent));
    if architecture == Architecture::X86_64 {
        add(X32, Answer::Always(Outcome::Kill));
    }
    ranges
}

/// A program under construction, last instruction first. A place is an index into `reversed`.
struct Program {
    reversed: Vec<sock_filter>,
    /// The latest return of each outcome.
    returns: [Option<usize>; 4],
    process: u32,
}

impl Program {
    fn push(&mut self, code: u32, k: u32) -> usize {
        self.push_jump(code, k, 0, 0)
    }

    fn push_jump(&mut self, code: u32, k: u32, jt: u8, jf: u8) -> usize {
        self.reversed.push(sock_filter { code: code as u16, jt, jf, k });
        self.reversed.len() - 1
    }

    /// How many instructions stand between the next one to be written and `place`.
    fn distance(&self, place: usize) -> usize {
        self.reversed.len() - 1 - place
    }

    /// A place within the reach of a branch that answers so.
    fn answer(&mut self, outcome: Outcome) -> usize {
        // One less than the reach, because a branch may have to write a jump for its other side first.
        match self.returns[outcome as usize] {
            Some(place) if self.distance(place) < usize::from(u8::MAX) => place,
            _ => {
                let place = self.push(BPF_RET | BPF_K, value(outcome));
                self.returns[outcome as usize] = Some(place);
                place
            }
        }
    }

    /// `place`, or a jump to it when it is out of a branch's reach.
    fn near(&mut self, place: usize) -> usize {
        if self.distance(place) < usize::from(u8::MAX) {
            place
        } else {
            let far = self.distance(place) as u32;
            self.push(BPF_JMP | BPF_JA, far)
        }
    }

    fn branch(&mut self, comparison: u32, k: u32, yes: usize, no: usize) -> usize {
        let yes = self.near(yes);
        let no = self.near(no);
        let (yes, no) = (self.distance(yes), self.distance(no));
        let reach = |distance| u8::try_from(distance).expect("`near` keeps places within reach");
        self.push_jump(BPF_JMP | comparison | BPF_K, k, reach(yes), reach(no))
    }

    /// Finds the number, which is loaded, among the ranges. The last instruction written is where to start.
    fn search(&mut self, ranges: &[Range]) -> usize {
        match ranges {
            [] => unreachable!("every number lies in a range"),
            [Range { answer: Answer::Always(outcome), .. }] => self.answer(*outcome),
            [Range { answer: Answer::AllowIf(alternatives), .. }] => {
                let refuse = self.answer(Outcome::Refuse);
                alternatives
                    .iter()
                    .rev()
                    .fold(refuse, |otherwise, conditions| self.conditions(conditions, otherwise))
            }
            _ => {
                let (below, above) = ranges.split_at(ranges.len() / 2);
                let no = self.search(above);
                let yes = self.search(below);
                self.branch(BPF_JGE, above[0].start, no, yes)
            }
        }
    }

    /// Allows if all hold, and goes on at `otherwise` if one does not.
    fn conditions(&mut self, conditions: &[Condition], otherwise: usize) -> usize {
        let mut start = self.answer(Outcome::Allow);
        for condition in conditions.iter().rev() {
            start = self.condition(*condition, start, otherwise);
        }
        start
    }

    /// Goes on at `holds` or at `otherwise`.
    fn condition(
        &mut self,
        Condition { argument, test }: Condition,
        holds: usize,
        otherwise: usize,
    ) -> usize {
        // Little-endian on both architectures: the low half comes first.
        let low = ARGUMENTS + 8 * u32::from(argument);
        let high = low + 4;
        match test {
            Test::Int { mask, values } => {
                let compare = self.compare_any(values, holds, otherwise);
                debug_assert_eq!(
                    compare + 1,
                    self.reversed.len(),
                    "the value is loaded right before it is compared"
                );
                if mask != u32::MAX {
                    self.push(BPF_ALU | BPF_AND | BPF_K, mask);
                }
                self.push(BPF_LD | BPF_W | BPF_ABS, low)
            }
            Test::OwnProcess => {
                self.compare_any(&[self.process], holds, otherwise);
                self.push(BPF_LD | BPF_W | BPF_ABS, low)
            }
            Test::Null => self.compare_both(low, high, 0, holds, otherwise),
            Test::Exactly(value) => self.compare_both(low, high, value, holds, otherwise),
        }
    }

    fn compare_any(&mut self, values: &[u32], holds: usize, otherwise: usize) -> usize {
        let mut start = otherwise;
        for &value in values {
            start = self.branch(BPF_JEQ, value, holds, start);
        }
        start
    }

    fn compare_both(&mut self, low: u32, high: u32, value: u64, holds: usize, otherwise: usize) -> usize {
        self.compare_any(&[value as u32], holds, otherwise);
        let low = self.push(BPF_LD | BPF_W | BPF_ABS, low);
        self.compare_any(&[(value >> 32) as u32], low, otherwise);
        self.push(BPF_LD | BPF_W | BPF_ABS, high)
    }
}

/// The kernel's number for an outcome.
const fn value(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Allow => libc::SECCOMP_RET_ALLOW,
        Outcome::Refuse => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        Outcome::Absent => libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        Outcome::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    }
}
