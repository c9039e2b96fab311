//! Memory: none may be executable or shared with another process.

use std::ptr;

use libc::c_int;

use super::{Attempt, attempt, call, check, last_error};

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt("map executable memory and run it", |_| {
        let page = map(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC, libc::MAP_PRIVATE)?;
        run_return(page);
        Ok(())
    }),
    attempt("make memory executable and run it", |_| {
        let page = map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE)?;
        // SAFETY: the page was mapped above and holds nothing yet.
        unsafe { page.write(RETURN) };
        // SAFETY: as above.
        check(unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_EXEC) }.into())?;
        jump(page);
        Ok(())
    }),
    attempt("make its own code writable", |_| {
        let page = (run_return as *const () as usize) & !(PAGE - 1);
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: what is mapped there stays mapped; only what may be done to it changes.
        check(unsafe { libc::mprotect(page as *mut libc::c_void, PAGE, all) }.into()).map(drop)
    }),
    attempt("share memory with what it starts", |_| {
        map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED).map(drop)
    }),
    attempt("make a file in memory", |_| {
        // SAFETY: makes a descriptor of this process.
        check(unsafe { libc::memfd_create(c"attempt".as_ptr(), 0) }.into()).map(drop)
    }),
    attempt("make a System V segment", |_| {
        // SAFETY: makes a segment that nobody has attached, removed below.
        let segment = check(unsafe { libc::shmget(libc::IPC_PRIVATE, PAGE, 0o600) }.into())? as c_int;
        // SAFETY: removes that segment.
        check(unsafe { libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()) }.into()).map(drop)
    }),
    attempt("make a System V message queue", |_| {
        // SAFETY: makes a queue that nobody else knows, removed below.
        let queue = check(unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) }.into())? as c_int;
        // SAFETY: removes that queue.
        check(unsafe { libc::msgctl(queue, libc::IPC_RMID, ptr::null_mut()) }.into()).map(drop)
    }),
    attempt("make a POSIX message queue", |_| {
        let flags = (libc::O_CREAT | libc::O_RDWR) as usize;
        let name = c"pydeno-attempt".as_ptr() as usize;
        // SAFETY: the name is a static; no attributes are given.
        unsafe { call(libc::SYS_mq_open, [name, flags, 0o600, 0, 0, 0]) }?;
        // SAFETY: removes the name that was made above.
        unsafe { call(libc::SYS_mq_unlink, [name, 0, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt("lock memory", |_| {
        // SAFETY: numbers only.
        check(unsafe { libc::mlockall(libc::MCL_CURRENT) }.into()).map(drop)
    }),
];

const PAGE: usize = 4096;
/// The instruction that returns.
#[cfg(target_arch = "x86_64")]
const RETURN: u32 = 0xc3;
#[cfg(target_arch = "aarch64")]
const RETURN: u32 = 0xd65f_03c0;

fn map(protection: c_int, sharing: c_int) -> Result<*mut u32, c_int> {
    let flags = sharing | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous mapping at an address of the kernel's choice replaces nothing.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED { Err(last_error()) } else { Ok(page.cast()) }
}

/// Writes a function that returns at once, and calls it.
fn run_return(page: *mut u32) {
    // SAFETY: the caller mapped the page writable and nothing else uses it.
    unsafe { page.write(RETURN) };
    jump(page);
}

fn jump(page: *mut u32) {
    // SAFETY: the page holds one instruction that returns, and may be executed.
    let function = unsafe { std::mem::transmute::<*mut u32, extern "C" fn()>(page) };
    function();
}
