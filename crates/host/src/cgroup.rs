//! Control groups: a limit on memory and tasks for each worker that the kernel itself enforces, where this process was
//! given a part of the cgroup v2 tree.
//!
//! Limits hold without one, by sampling from outside. A group's limit holds between two samples, too, and for what the
//! kernel keeps on behalf of a worker. Sampling comes first and says which limit was passed; a group is the backstop.
//!
//! # Terms
//!
//! - A group is **delegated** when whoever manages the tree has left everything beneath it to this process's user.
//! - The **parent** is the delegated group in which the workers' groups are made. No process may be in it itself: the kernel
//!   has limits in a group or processes, and not both.

mod delegation;
mod group;

use std::fmt;

use rustix::process::Pid;

pub(crate) use delegation::Delegation;
pub(crate) use group::{Group, sweep_within};

/// What bounds a worker beside sampling.
#[derive(Debug)]
pub(crate) enum Containment {
    /// A group of its own.
    Group(Group),
    /// Nothing, for this reason.
    Sampled(String),
    /// A group that was asked for, or is there for others, and cannot be had for this one.
    Failed(String),
}

impl Containment {
    /// A group without limits, where there is a parent for it.
    pub(crate) fn new(delegation: &Delegation) -> Self {
        match delegation {
            Delegation::Parent(parent) => match Group::create(parent) {
                Ok(group) => Self::Group(group),
                Err(error) => {
                    Self::failed(&format!("a group cannot be made in {}", parent.display()), &error)
                }
            },
            Delegation::None(reason) => Self::Sampled(reason.clone()),
            Delegation::Unusable(reason) => Self::Failed(reason.clone()),
        }
    }

    /// Sets a group's limits: bytes of memory and live threads.
    pub(crate) fn limited(self, memory: u64, threads: u64) -> Self {
        match self {
            Self::Group(group) => match group.limit(memory, threads) {
                Ok(()) => Self::Group(group),
                Err(error) => Self::failed("a group cannot be limited", &error),
            },
            other => other,
        }
    }

    /// Puts a process into the group that does not enter it by itself.
    pub(crate) fn admitting(self, pid: Pid) -> Self {
        match self {
            Self::Group(group) => match group.admit(pid) {
                Ok(()) => Self::Group(group),
                Err(error) => Self::failed("a process cannot be put into a group", &error),
            },
            other => other,
        }
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        match self {
            Self::Group(group) => Some(group),
            Self::Sampled(_) | Self::Failed(_) => None,
        }
    }

    fn failed(what: &str, error: &dyn fmt::Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }
}
