//! The group of one worker.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::fork_generation;

/// What a worker may use beyond its limit before the kernel ends it. Sampling counts what is private to the worker; a group
/// counts page tables, kernel stacks and buffers of the socket, too.
const MARGIN: u64 = 64 << 20;
/// Tasks beyond the limit on threads: while it proves its sandbox a worker has children.
const SPARE_TASKS: u64 = 16;
/// Every group's name starts like this; then come the host's process id and a number.
const PREFIX: &str = "pydeno-";

/// Groups whose worker had not ended when nobody needed them any more. Nobody waits for the lock: a forked process may have
/// inherited it from a thread that it does not have. What is left out is stale for the next process.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A group for one worker. Dropping it removes the directory, now or when the worker has ended. A forked copy of the host
/// leaves the directory alone: its owner's worker may be about to enter.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    processes: File,
    generation: u32,
}

impl Group {
    /// An empty group without limits.
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        sweep();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        match OpenOptions::new().write(true).open(path.join("cgroup.procs")) {
            Ok(processes) => Ok(Self { path, processes, generation: fork_generation::current() }),
            Err(error) => {
                // It is empty; and what is left is removed by the next process that finds it.
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Sets what the worker may use: bytes of memory and live threads, as they are sampled.
    pub(crate) fn limit(&self, memory: u64, threads: u64) -> io::Result<()> {
        self.write("memory.max", &memory.saturating_add(MARGIN).to_string())?;
        self.write("memory.oom.group", "1")?;
        for (file, value) in [("memory.swap.max", 0), ("pids.max", threads + SPARE_TASKS)] {
            match self.write(file, &value.to_string()) {
                // Not every kernel counts swap, and the tree may have no controller for tasks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// A descriptor to which a process writes `0` to enter the group.
    pub(crate) fn entrance(&self) -> BorrowedFd<'_> {
        self.processes.as_fd()
    }

    /// Puts a process into the group.
    pub(crate) fn admit(&self, pid: Pid) -> io::Result<()> {
        (&self.processes).write_all(pid.as_raw_pid().to_string().as_bytes())
    }

    /// Whether a process is in the group, as the kernel says.
    pub(crate) fn holds(&self, pid: Pid) -> bool {
        let pid = pid.as_raw_pid().to_string();
        self.read("cgroup.procs").is_ok_and(|processes| processes.lines().any(|line| line == pid))
    }

    /// The memory limit in force, in bytes.
    pub(crate) fn memory_limit(&self) -> io::Result<u64> {
        self.read("memory.max")?.trim().parse().map_err(io::Error::other)
    }

    /// Whether the kernel has ended a process of the group because it was over its memory limit.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.read("memory.events").is_ok_and(|events| kills(&events) > 0)
    }

    fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.path.join(file))
    }

    /// Writes to a file that is there. Nobody may create one in the kernel's tree, and who would is told that permission is
    /// denied, not that there is none.
    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        OpenOptions::new().write(true).truncate(true).open(self.path.join(file))?.write_all(value.as_bytes())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.generation == fork_generation::current()
            && !is_removed(&self.path)
            && let Ok(mut left) = LEFT.try_lock()
        {
            left.push(std::mem::take(&mut self.path));
        }
    }
}

/// How many processes of a group were ended, from its `memory.events`.
fn kills(events: &str) -> u64 {
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// Removes the groups whose workers have ended since.
pub(crate) fn sweep() {
    if let Ok(mut left) = LEFT.try_lock() {
        left.retain(|path| !is_removed(path));
    }
}

/// Removes the groups of workers that are about to end, and waits for it so long at most.
pub(crate) fn sweep_within(patience: Duration) {
    let until = Instant::now() + patience;
    loop {
        sweep();
        if LEFT.try_lock().is_ok_and(|left| left.is_empty()) || Instant::now() >= until {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes the groups that processes left that are no more. A group that still holds a process stays.
pub(super) fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            is_removed(&entry.path());
        }
    }
}

/// Whether there is no such group any more. One that holds a process cannot be removed.
fn is_removed(path: &Path) -> bool {
    match fs::remove_dir(path) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a group is to `Drop`, in a directory of an ordinary file system.
    fn empty_group(name: &str, forks_ago: u32) -> (PathBuf, Group) {
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let generation = fork_generation::current().wrapping_sub(forks_ago);
        let group = Group { path: path.clone(), processes: File::open("/dev/null").unwrap(), generation };
        (path, group)
    }

    #[test]
    fn a_group_is_removed_by_the_process_that_made_it() {
        let (path, group) = empty_group("own", 0);
        drop(group);
        assert!(!path.exists());
    }

    #[test]
    fn a_forked_copy_leaves_the_group_to_its_owner() {
        let (path, group) = empty_group("inherited", 1);
        drop(group);
        assert!(path.exists());
        fs::remove_dir(path).unwrap();
    }

    #[test]
    fn a_group_that_was_still_in_use_is_waited_for_and_removed() {
        let (path, group) = empty_group("ending", 0);
        let process = path.join("process");
        fs::write(&process, "").unwrap();
        drop(group);
        sweep_within(Duration::ZERO);
        assert!(path.exists(), "it cannot be removed yet");
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            fs::remove_file(process).unwrap();
        });
        sweep_within(Duration::from_secs(20));
        assert!(!path.exists());
        ending.join().unwrap();
    }

    #[test]
    fn only_the_limit_on_memory_has_to_be_there() {
        let (path, group) = empty_group("limits", 0);
        let without = group.limit(1 << 20, 1).unwrap_err();
        assert_eq!(without.kind(), io::ErrorKind::NotFound);
        for file in ["memory.max", "memory.oom.group"] {
            fs::write(path.join(file), "").unwrap();
        }
        group.limit(1 << 20, 1).unwrap();
        assert_eq!(group.memory_limit().unwrap(), (1 << 20) + MARGIN);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2, "no file is made");
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn kills_are_counted_apart_from_what_is_named_alike() {
        let events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(kills(events), 2);
        assert_eq!(kills("max 12\noom 3\noom_kill 0\noom_group_kill 0\n"), 0);
        assert_eq!(kills(""), 0);
    }
}
