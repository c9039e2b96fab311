//! The part of the kernel's filter language that programs are compiled to, run outside the kernel.

use libc::sock_filter;
use pydeno_sandbox::syscalls::Outcome;

/// What the kernel shows a filter of a call.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) architecture: u32,
    pub(crate) number: u32,
    pub(crate) arguments: [u64; 6],
}

impl Call {
    /// `seccomp_data`, as little-endian machines lay it out.
    fn bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[0..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.architecture.to_le_bytes());
        for (place, argument) in bytes[16..].chunks_exact_mut(8).zip(self.arguments) {
            place.copy_from_slice(&argument.to_le_bytes());
        }
        bytes
    }
}

/// The program's answer.
pub(crate) fn run(program: &[sock_filter], call: Call) -> Outcome {
    let bytes = call.bytes();
    let mut accumulator = 0;
    let mut next = 0;
    loop {
        let sock_filter { code, jt, jf, k } = program[next];
        let jump = |holds| usize::from(if holds { jt } else { jf });
        next += 1;
        match u32::from(code) {
            // ld [k]
            0x20 => {
                let word = bytes[k as usize..][..4].try_into().expect("four bytes");
                accumulator = u32::from_le_bytes(word);
            }
            // and k
            0x54 => accumulator &= k,
            // ja, jeq, jge
            0x05 => next += k as usize,
            0x15 => next += jump(accumulator == k),
            0x35 => next += jump(accumulator >= k),
            // ret
            0x06 => return outcome(k),
            other => panic!("instruction {other:#x} at {}", next - 1),
        }
    }
}

/// Panics if the program could leave itself.
pub(crate) fn check(program: &[sock_filter]) {
    for (at, instruction) in program.iter().enumerate() {
        let inside = |offset: usize| at + 1 + offset < program.len();
        let fits = match u32::from(instruction.code) {
            0x05 => inside(instruction.k as usize),
            0x15 | 0x35 => inside(instruction.jt.into()) && inside(instruction.jf.into()),
            0x06 => true,
            _ => inside(0),
        };
        assert!(fits, "instruction {at} leads out of the program");
    }
}

fn outcome(value: u32) -> Outcome {
    match value {
        0x7fff_0000 => Outcome::Allow,
        0x0005_0001 => Outcome::Refuse,
        0x0005_0026 => Outcome::Absent,
        0x8000_0000 => Outcome::Kill,
        other => panic!("the program answers {other:#x}"),
    }
}
