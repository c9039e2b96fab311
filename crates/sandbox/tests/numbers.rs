//! The table's numbers against the kernel's headers, which `linux-libc-dev` (a part of `build-essential`) installs.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use pydeno_sandbox::filter::Architecture;
use pydeno_sandbox::syscalls::{ABSENT, ALLOWED, FATAL, REFUSED, TEMPLATE};

/// Every call of the table.
fn calls() -> impl Iterator<Item = (&'static str, [u32; 2])> {
    let groups = [FATAL, REFUSED, ABSENT].into_iter().flatten();
    let grouped = groups.flat_map(|group| group.calls).map(|(name, numbers)| (*name, *numbers));
    ALLOWED.iter().chain(TEMPLATE).map(|entry| (entry.name, entry.numbers)).chain(grouped)
}

/// The `__NR_*` numbers that `header` defines, by name, as the C preprocessor sees them.
fn header_numbers(header: &str, defines: &[&str]) -> HashMap<String, u32> {
    let output = Command::new("cc")
        .args(["-E", "-dM", "-x", "c", "-include", header])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("/dev/null")
        .output()
        .expect("a C compiler is installed: apt-get install build-essential");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("headers are ASCII");
    let definitions: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define "))
        .filter_map(|line| line.split_once(' '))
        .collect();
    definitions
        .iter()
        .filter_map(|(name, value)| {
            let call = name.strip_prefix("__NR_")?;
            // `__NR_mmap` is `__NR3264_mmap`, which is the number.
            let value = definitions.get(value).unwrap_or(value);
            Some((call.to_owned(), value.parse().ok()?))
        })
        .collect()
}

/// The headers that this machine has, by the architecture whose calls they define. aarch64 uses the generic header,
/// which is installed everywhere; the one of x86 comes with compilers for x86 only.
fn headers() -> Vec<(Architecture, HashMap<String, u32>)> {
    // What the kernel's own header for aarch64 defines before it includes the generic one.
    let aarch64 = [
        "__BITS_PER_LONG=64",
        "__ARCH_WANT_RENAMEAT",
        "__ARCH_WANT_NEW_STAT",
        "__ARCH_WANT_SET_GET_RLIMIT",
        "__ARCH_WANT_SYS_CLONE3",
        "__ARCH_WANT_MEMFD_SECRET",
    ];
    let mut headers = vec![(Architecture::Aarch64, header_numbers("asm-generic/unistd.h", &aarch64))];
    if cfg!(target_arch = "x86_64") {
        headers.push((Architecture::X86_64, header_numbers("asm/unistd_64.h", &[])));
    }
    headers
}

#[test]
fn the_numbers_are_those_of_the_headers() {
    for (architecture, header) in headers() {
        assert!(header.len() > 250, "the header of {architecture:?} defines {} calls", header.len());
        for (name, numbers) in calls() {
            assert_eq!(architecture.number(numbers), header.get(name).copied(), "{architecture:?} {name}");
        }
    }
}

#[test]
fn the_table_leaves_out_no_call_of_the_headers() {
    // Reserved on x86_64 for what never came; the kernel itself answers `ENOSYS`.
    const NEVER_MADE: [&str; 6] = ["afs_syscall", "getpmsg", "putpmsg", "security", "tuxcall", "vserver"];
    // Bounds of the generic header, not calls.
    const BOUNDS: [&str; 2] = ["arch_specific_syscall", "syscalls"];
    // The last call of Linux 6.1. Newer headers define more, which the filter answers as absent.
    const NEWEST: u32 = 450;
    let known: HashSet<&str> = calls().map(|(name, _)| name).collect();
    for (architecture, header) in headers() {
        for (name, number) in header {
            let call = !NEVER_MADE.contains(&name.as_str()) && !BOUNDS.contains(&name.as_str());
            assert!(
                !call || number > NEWEST || known.contains(name.as_str()),
                "{architecture:?} {name} {number}"
            );
        }
    }
}
