//! Takes a system call away from this process, as an old kernel or a container's filter does.

#![allow(unsafe_code, reason = "installs a filter of its own")]
#![allow(dead_code, reason = "no test file uses every one of these")]

use std::ffi::c_void;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, c_int, c_long, c_ulong, sock_filter, sock_fprog,
};

/// Makes a system call answer `errno`, or zero without doing anything; with `first_argument`, only calls with that one.
pub(crate) fn without(call: c_long, first_argument: Option<u32>, errno: i32) {
    install(call, first_argument, libc::SECCOMP_RET_ERRNO | errno as u32, 0);
}

/// Makes a system call wait for ever, for an answer that nobody gives while this process lives.
pub(crate) fn without_end(call: c_long) {
    install(call, None, libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

/// Makes a system call answer zero without doing anything, even where a later filter refuses it.
pub(crate) fn without_refusal(call: c_long) {
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = answer_zero as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler touches nothing but the context that it is given.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) }, 0);
    install(call, None, libc::SECCOMP_RET_TRAP, 0);
}

/// Puts zero where the interrupted code looks for the system call's answer.
extern "C" fn answer_zero(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the interrupted thread's context, which nothing else uses until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    {
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = 0;
    }
    #[cfg(target_arch = "aarch64")]
    {
        context.uc_mcontext.regs[0] = 0;
    }
}

fn install(call: c_long, first_argument: Option<u32>, answer: u32, flags: c_ulong) {
    let skip = u8::from(first_argument.is_some()) * 2;
    let mut program = vec![
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, call as u32, 0, 1 + skip),
    ];
    if let Some(argument) = first_argument {
        program.push(instruction(BPF_LD | BPF_W | BPF_ABS, 16, 0, 0));
        program.push(instruction(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1));
    }
    program.push(instruction(BPF_RET | BPF_K, answer, 0, 0));
    program.push(instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0));
    let header = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let operation = c_long::from(libc::SECCOMP_SET_MODE_FILTER);

    rustix::thread::set_no_new_privs(true).expect("a process may give up new privileges");
    // SAFETY: `header` and the program it points to live until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const header) };
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}
