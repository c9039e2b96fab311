//! The descriptors that the engine opens when it is initialised and remembers by number.
//!
//! A worker closes everything it does not need. If it closed these, their numbers would be free for something else, and
//! the engine would later read or write that in their stead.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::process;

/// What the zygote holds for the engine.
#[derive(Debug, Default)]
pub(crate) struct EngineDescriptors {
    /// `/dev/urandom`. Forks may share it: it has no position.
    random: Vec<OwnedFd>,
    /// How the engine's run loop is woken. Forks must not share it: they could tell each other something.
    wakeups: Vec<OwnedFd>,
}

impl EngineDescriptors {
    /// Takes over those that are open now, in a process whose own descriptors are the three standard ones.
    pub(crate) fn find() -> io::Result<Self> {
        let mut found = Self::default();
        for entry in fs::read_dir("/proc/self/fd")? {
            let entry = entry?;
            let number: i32 = entry.file_name().to_string_lossy().parse().map_err(io::Error::other)?;
            // The directory that is being read is in the list, too, and is gone by the time it is looked at.
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            match target.to_string_lossy().as_ref() {
                _ if number <= 2 => {}
                "/dev/urandom" => found.random.push(process::take_over(number)),
                "anon_inode:[eventfd]" => found.wakeups.push(process::take_over(number)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// In a fork: gives it wake-ups of its own under the same numbers.
    pub(crate) fn separate(&mut self) -> io::Result<()> {
        for wakeup in &mut self.wakeups {
            let own = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            rustix::io::dup3(&own, wakeup, rustix::io::DupFlags::CLOEXEC)?;
        }
        Ok(())
    }

    /// All of them, to be kept.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.random.iter().chain(&self.wakeups).map(AsFd::as_fd)
    }
}
