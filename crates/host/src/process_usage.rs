//! What a worker uses, read from `/proc` by the host.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Readers for one process, opened once: each sample is two `pread` calls.
#[derive(Debug)]
pub(crate) struct UsageReader {
    statm: File,
    stat: File,
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory that is not backed by a file, in bytes; pages still shared with the zygote count.
    pub(crate) memory: u64,
    /// User and system time of all threads, ended ones included.
    pub(crate) cpu: Duration,
    /// Live threads.
    pub(crate) threads: u64,
}

impl UsageReader {
    /// Opens the files of the process `pid`. The caller holds a pidfd that showed the process alive afterwards, or
    /// the number may have been reused.
    ///
    /// # Errors
    ///
    /// The files cannot be read, or the `/proc` mounted here numbers the processes of another namespace: the files under
    /// that number would be a stranger's.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let own = std::fs::read_link("/proc/self")?;
        if own.to_str() != Some(std::process::id().to_string().as_str()) {
            return Err(io::Error::other(format!(
                "/proc is of another process namespace: this process is {} and there {}",
                std::process::id(),
                own.display()
            )));
        }
        Ok(Self {
            statm: File::open(format!("/proc/{pid}/statm"))?,
            stat: File::open(format!("/proc/{pid}/stat"))?,
        })
    }

    /// Takes a sample; fails with `ESRCH` once the process is gone.
    pub(crate) fn sample(&self) -> io::Result<Usage> {
        let mut buffer = [0_u8; 1024];
        let length = self.statm.read_at(&mut buffer, 0)?;
        let memory = parse_statm(&buffer[..length]).ok_or_else(|| malformed("statm"))?;
        let length = self.stat.read_at(&mut buffer, 0)?;
        let (cpu, threads) = parse_stat(&buffer[..length]).ok_or_else(|| malformed("stat"))?;
        Ok(Usage { memory, cpu, threads })
    }
}

fn malformed(file: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("/proc/PID/{file} is not in the form proc(5) describes"),
    )
}

/// proc(5): size, resident and shared pages come first; shared is what a file backs.
fn parse_statm(text: &[u8]) -> Option<u64> {
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace().skip(1);
    let resident: u64 = fields.next()?.parse().ok()?;
    let shared: u64 = fields.next()?.parse().ok()?;
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

/// proc(5): the name in parentheses may hold anything, so fields count from the last `)`: utime is field 14, stime 15,
/// `num_threads` 20.
fn parse_stat(text: &[u8]) -> Option<(Duration, u64)> {
    let after_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&text[after_name..]).ok()?.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let threads: u64 = fields.nth(4)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some((Duration::from_millis((user + system) * 1000 / per_second), threads))
}

/// The process id of the parent, from `/proc/PID/stat`: field 4.
pub(crate) fn parse_parent(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_no_file_backs() {
        let page = rustix::param::page_size() as u64;
        assert_eq!(parse_statm(b"18000 900 650 12 0 400 0\n"), Some(250 * page));
        assert_eq!(parse_statm(b"18000"), None);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = b"77 (a) b (c) S 1 77 77 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 3 0 999 1 2\n";
        assert_eq!(parse_stat(line), Some((Duration::from_secs(3), 3)));
        assert_eq!(parse_stat(b"no parenthesis"), None);
        assert_eq!(parse_parent("77 (a) b (c) S 12 77 77 0"), Some(12));
        assert_eq!(parse_parent("no parenthesis"), None);
    }

    #[test]
    fn a_sample_of_this_process_sees_memory_that_it_touches() {
        let reader = UsageReader::open(rustix::process::getpid().as_raw_pid()).unwrap();
        let before = reader.sample().unwrap();
        let block = vec![1_u8; 64 << 20];
        let after = reader.sample().unwrap();
        assert!(after.memory >= before.memory + (60 << 20), "{before:?} {after:?}");
        assert!(after.threads >= 1);
        drop(block);
    }
}
