//! Whether this process has been given a part of the cgroup v2 tree in which it could make groups for its workers.
//!
//! pydeno does not use one: limits are enforced by sampling. The status says which of the two is so, because a group's
//! memory limit would hold without a sampling interval.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

const ROOT: &str = "/sys/fs/cgroup";

/// What there is, in words for a layer's detail.
pub(crate) fn describe() -> &'static str {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    match own_group(&groups, Path::new(ROOT)) {
        Some(group) if is_delegated(&group) => "not by the cgroup v2 that this process was delegated",
        Some(_) => "and the cgroup v2 of this process is not delegated to it",
        None => "and there is no cgroup v2",
    }
}

/// The directory of the process's group in the unified hierarchy, from `/proc/self/cgroup`.
fn own_group(groups: &str, root: &Path) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let group = root.join(path);
    group.join("cgroup.controllers").exists().then_some(group)
}

/// Whether groups with a memory limit could be made in the directory.
fn is_delegated(group: &Path) -> bool {
    let has_memory = fs::read_to_string(group.join("cgroup.controllers")).is_ok_and(|controllers| {
        controllers.split_ascii_whitespace().any(|controller| controller == "memory")
    });
    let writable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
    has_memory && writable(group) && writable(&group.join("cgroup.subtree_control"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_told_from_the_old_ones() {
        let root = std::env::temp_dir().join(format!("pydeno-cgroup-{}", std::process::id()));
        let group = root.join("user.slice/app");
        fs::create_dir_all(&group).unwrap();
        assert_eq!(own_group("0::/user.slice/app\n", &root), None, "without controllers it is no group");
        fs::write(group.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        fs::write(group.join("cgroup.subtree_control"), "").unwrap();
        assert_eq!(own_group("9:name=systemd:/\n0::/user.slice/app\n", &root), Some(group.clone()));
        assert_eq!(own_group("9:name=systemd:/\n4:memory:/a\n", &root), None);
        assert!(is_delegated(&group));
        fs::write(group.join("cgroup.controllers"), "cpu pids\n").unwrap();
        assert!(!is_delegated(&group), "without the memory controller there is nothing to gain");
        fs::remove_dir_all(&root).unwrap();
    }
}
